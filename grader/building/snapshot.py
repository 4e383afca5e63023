"""Holds a tree in this process, so that code that runs in one copy can't change the next copy."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
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
    """The files of a submission's tree as they are now: sources and build output.

    Attributes:
        backend: what the tree was built for; "" if it was not built.
        reaches: functions that its kernels call and that reach into the system or the process
            itself.
        fault, hint: why the build can't be graded, a sentence and a hint; "" if it can.
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
        """A fresh folder with the files that a program needs to run in the tree."""
        with scratch_folder() as folder:
            # By plain calls: every check has a copy, and paths as objects take most of its time.
            for name in self._folders:
                os.mkdir(f"{folder}/{name}")
            for name, content in self._of_programs:
                with open(f"{folder}/{name}", "xb", buffering=0) as file:
                    file.write(content)
            yield folder

    @functools.cached_property
    def _of_programs(self) -> list[tuple[str, bytes]]:
        """(name, content) of the files that a program needs."""
        found = self._files.items()
        return [(str(n), content) for n, content in found if n.parts[0] not in build.FOR_BUILDING]

    @functools.cached_property
    def _folders(self) -> list[str]:
        """Those of these files, each behind the one that it is in."""
        found = {parent for name, _ in self._of_programs for parent in Path(name).parents}
        return sorted(map(str, found - {Path(".")}))

    def holds(self, text: str, names: Iterable[str]) -> bool:
        """Whether any of the files contains the text."""
        return any(text.encode() in self._files.get(Path(name), b"") for name in names)


def _files(tree: Path, left_out: tuple[str, ...]) -> Iterator[Path]:
    for path in tree.rglob("*"):
        inside = path.relative_to(tree).parts[: len(left_out)] == left_out
        if not inside and path.is_file() and not path.is_symlink():
            yield path


def reached(tree: Path, kit: Path) -> tuple[tuple[str, ...], str, str]:
    """(functions by which the kernels reach into the system, why the build can't be graded, a
    hint)."""
    try:
        objects = sorted(tree.glob("build/obj/*/*.cu.o"))
        others = (defined(each) for each in tree.glob("build/obj/*/*.o"))
        own = declared(kit).union(*others)
        return tuple(name for each in objects for name in reaching(each, own)), "", ""
    except Unusable as error:
        return (str(error),), str(error), error.hint
