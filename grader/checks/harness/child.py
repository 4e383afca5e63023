"""A session whose submission runs in a contained child process."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import site
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader.checks.harness.call_script import Call
from grader.checks.harness.compare import Failure
from grader.checks.harness.context import Context, Session
from grader.course.rubric import Rubric
from grader.sandbox.isolation import View
from grader.sandbox.process import Limits
from grader.sandbox.scratch import Scratch
from grader.student.proxy import Proxy
from grader.student.remote import ChildDied, ChildExcess, ChildTimeout, Remote

#: Libraries that compute what students write. They need numpy alone, and no child sees these.
_NOT_SEEN = (
    "cupy", "jax", "jaxlib", "numba", "onnxruntime", "scipy", "skimage", "sklearn", "tensorflow",
    "torch", "torchvision",
)  # fmt: skip
_IMPORT = 20.0  # seconds that the import of a module may take; those of numpy take none of them


def _covered() -> tuple[tuple[Path, Path], ...]:
    """An empty folder for each folder of such a library, as View.placed has it."""
    found = _unwanted()
    if found and not _empty().is_dir():  # temporary files were cleared away
        _empty.cache_clear()
    return tuple((_empty(), each) for each in found)


@functools.cache
def _unwanted() -> tuple[Path, ...]:
    roots = {Path(name) for name in site.getsitepackages()}
    for prefix in (sys.base_prefix, "/usr", "/usr/local"):
        roots |= {path for kind in ("site", "dist") for path in _packages(Path(prefix), kind)}
    return tuple(r / name for r in sorted(roots) for name in _NOT_SEEN if (r / name).is_dir())


@functools.cache
def _empty() -> Path:
    scratch = Scratch()  # which is swept if this process is killed
    atexit.register(scratch.remove)
    scratch.path.chmod(0o555)
    return scratch.path


def _packages(prefix: Path, kind: str) -> Iterator[Path]:
    return prefix.glob(f"lib*/python3*/{kind}-packages")


class Unimportable(Exception):
    """A module whose import hung or ended the process in an earlier check."""


class ChildSession(Session):
    """The submission's package in a child process, `remote`.

    An import that hangs or ends the process raises with the module's name as `importing`.
    """

    remote: Remote

    def __init__(
        self,
        remote: Remote,
        note: Callable[[Callable[[], Call]], None],
        unimportable: Mapping[str, str],
    ) -> None:
        self._unimportable = unimportable
        super().__init__(remote, note)

    def module(self, name: str) -> Proxy:
        """A module, imported now, and what is queued before it."""
        if name in self._unimportable:
            raise Unimportable(self._unimportable[name])
        try:
            with self.remote.deadline(_IMPORT):
                return super().module(name)
        except (ChildDied, ChildExcess, ChildTimeout) as error:
            error.importing = name
            raise


@dataclass
class ChildContext(Context):
    """The grader's own context: each session is a new, contained child process.

    Attributes:
        env: environment of the children.
        view: what they see beside their tree.
        reaches: functions that the kernels call and that reach into the system or the process
            itself.
        wrap, fds: passed to every child, see `Remote`.
        reference: gives a folder with the built reference, for as long as it is entered.
        checked: gives such folders with the checked builds of the submission and of the reference;
            None for the latter where there is no solution.
        unimportable: module -> why no check imports it again, as known at the start.
    """

    rubric: Rubric
    env: dict[str, str] = field(default_factory=dict)
    view: View = field(default_factory=View)
    reaches: tuple[str, ...] = ()
    wrap: tuple[str, ...] = ()
    fds: tuple[int, ...] = ()
    reference: Callable[[], contextlib.AbstractContextManager[Path]] | None = None
    checked: Callable[[], contextlib.AbstractContextManager[tuple[Path, Path | None]]] | None = None
    unimportable: Mapping[str, str] = field(default_factory=dict)

    new_process = True

    @contextlib.contextmanager
    def session(self) -> Iterator[ChildSession]:
        """The submission in a new child process, for as long as this is entered."""
        with self.start_child(self.tree, self.env, self.fds) as remote:
            yield ChildSession(remote, self.note, self.unimportable)

    def start_child(self, tree: Path, env: Mapping[str, str], fds: tuple[int, ...]) -> Remote:
        """A new child process over a tree."""
        limits = Limits(wall=self.seconds, cpu=None)  # BLAS may keep many cores busy
        placed = (*self.view.placed, *_covered())
        return Remote(
            *(sys.executable, [str(tree / "python")], tree, limits, env),
            view=dataclasses.replace(self.view, placed=placed), wrap=self.wrap, fds=fds,
        )  # fmt: skip

    def require_harmless(self) -> None:
        """Raises Failure if the kernels call functions that reach into the system."""
        if self.reaches:
            raise Failure(
                f"the kernels call {', '.join(self.reaches)}, which reaches into the system: "
                "so nothing that their process reports can be trusted",
                "kernels and launchers need no functions of the operating system",
            )
