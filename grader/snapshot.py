"""A tree held in this process, so that nothing that runs in a copy can change it for the next."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from grader import build
from grader.scratch import scratch_folder
from grader.symbols import reaching

_OBJECTS = ("build", "obj")


class Snapshot:
    """The files of a submission's tree as they are now: its sources, and what was built.

    Attributes:
        backend: what it was built for, "" if nothing was.
        reaches: what its kernels call to get at the system or at the process itself.
    """

    def __init__(self, tree: Path, *, sources_only: bool = False) -> None:
        left_out = ("build",) if sources_only else _OBJECTS
        self.backend = "" if sources_only else build.backend_of(tree)
        self.reaches = () if sources_only else _reaching(tree)
        kept = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
        self._files = {
            path.relative_to(tree): path.read_bytes()
            for path in kept
            if path.relative_to(tree).parts[: len(left_out)] != left_out
        }

    @contextlib.contextmanager
    def copy(self) -> Iterator[Path]:
        """A fresh folder with the tree in it."""
        with scratch_folder() as folder:
            for name, content in self._files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            yield folder

    def holds(self, text: str, names: Iterable[str]) -> bool:
        """Whether one of the files has the text in it."""
        return any(text.encode() in self._files.get(Path(name), b"") for name in names)


def _reaching(tree: Path) -> tuple[str, ...]:
    try:
        objects = sorted(tree.glob("build/obj/*/*.cu.o"))
        return tuple(name for each in objects for name in reaching(each))
    except ValueError as error:
        return (str(error),)
