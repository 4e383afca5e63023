"""A session whose submission runs in a contained child process."""

from __future__ import annotations

import contextlib
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
from grader.student.proxy import Proxy
from grader.student.remote import ChildDied, ChildExcess, ChildTimeout, Remote

_IMPORT = 20.0  # seconds that the import of a module may take; those of numpy take none of them


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
        return Remote(
            *(sys.executable, [str(tree / "python")], tree, limits, env),
            view=self.view, wrap=self.wrap, fds=fds,
        )  # fmt: skip

    def require_harmless(self) -> None:
        """Raises Failure if the kernels call functions that reach into the system."""
        if self.reaches:
            raise Failure(
                f"the kernels call {', '.join(self.reaches)}, which reaches into the system: "
                "so nothing that their process reports can be trusted",
                "kernels and launchers need no functions of the operating system",
            )
