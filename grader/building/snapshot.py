"""A tree held in this process, so that nothing that runs in a copy can change it for the next."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from grader.building import tree as build
from grader.building.harmless import declared
from grader.building.symbols import SMALL, Unusable, defined, reaching
from grader.sandbox.scratch import scratch_folder

_OBJECTS = ("build", "obj")
#: Bytes and files that a tree may have, without its objects: the kit's takes some megabytes.
_LARGEST, _MOST_FILES = 256 << 20, 20_000


class Snapshot:
    """The files of a submission's tree as they are now: its sources, and what was built.

    Attributes:
        backend: what it was built for, "" if nothing was.
        reaches: what its kernels call to get at the system or at the process itself.
        fault: why what was built can't be graded, a sentence; "" if it can; and a hint.
    """

    def __init__(
        self, tree: Path, kit: Path = build.PRISTINE, *, sources_only: bool = False
    ) -> None:
        """`kit` is what the submission was laid over."""
        left_out = ("build",) if sources_only else _OBJECTS
        self.backend = "" if sources_only else build.backend_of(tree)
        self.reaches, self.fault, self.hint = ((), "", "") if sources_only else reached(tree, kit)
        self._files: dict[Path, bytes] = {}
        found = list(itertools.islice(_files(tree, left_out), _MOST_FILES + 1))
        size = sum(path.stat().st_size for path in found)
        if len(found) > _MOST_FILES or size > _LARGEST:
            self.fault = f"what was built takes {size:,} bytes in {len(found):,} files"
            self.hint = SMALL
        else:
            self._files = {path.relative_to(tree): path.read_bytes() for path in found}

    @contextlib.contextmanager
    def copy(self) -> Iterator[Path]:
        """A fresh folder with what a program needs of the tree to run."""
        with scratch_folder() as folder:
            for name, content in self._files.items():
                if name.parts[0] not in build.FOR_BUILDING:
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes(content)
            yield folder

    def holds(self, text: str, names: Iterable[str]) -> bool:
        """Whether one of the files has the text in it."""
        return any(text.encode() in self._files.get(Path(name), b"") for name in names)


def _files(tree: Path, left_out: tuple[str, ...]) -> Iterator[Path]:
    for path in tree.rglob("*"):
        inside = path.relative_to(tree).parts[: len(left_out)] == left_out
        if not inside and path.is_file() and not path.is_symlink():
            yield path


def reached(tree: Path, kit: Path) -> tuple[tuple[str, ...], str, str]:
    """(what the kernels call, why that can't be told or they can't be used, a hint)."""
    try:
        objects = sorted(tree.glob("build/obj/*/*.cu.o"))
        others = (defined(each) for each in tree.glob("build/obj/*/*.o"))
        own = declared(kit).union(*others)
        return tuple(name for each in objects for name in reaching(each, own)), "", ""
    except Unusable as error:
        return (str(error),), str(error), error.hint
