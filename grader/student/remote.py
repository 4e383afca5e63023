"""Drives a student's code in a child process through proxies that read like local objects."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from grader.sandbox import process
from grader.sandbox.isolation import View
from grader.sandbox.limits import Starved
from grader.sandbox.process import LimitError, Limits
from grader.student.pipe import (
    ChildDied,
    ChildExcess,
    ChildTimeout,
    Pipe,
    ReplyTooLarge,
    StartError,
)
from grader.student.proxy import (
    BUILTINS,
    MOST_FETCHED,
    Fault,
    Instruction,
    Opaque,
    Proxies,
    Proxy,
    StudentError,
)
from grader.student.reply import ChildError, ProtocolError, parse_reply

__all__ = [
    "BUILTINS",
    "MOST_FETCHED",
    "ChildDied",
    "ChildError",
    "ChildExcess",
    "ChildTimeout",
    "Opaque",
    "ProtocolError",
    "Proxy",
    "Remote",
    "StartError",
    "StudentError",
]


class Remote(Proxies):
    """A child process, used in a `with`. The end runs what is queued; an error that ends the queue
    also ends the child."""

    def __init__(
        self,
        python: str | Path,
        sys_path: list[str],
        root: Path,
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        *,
        max_reply: int = 1 << 30,
        view: View | None = None,
        wrap: Sequence[str] = (),
        fds: Sequence[int] = (),
    ) -> None:
        """Starts the child.

        Args:
            python, sys_path, limits, env: of the child.
            root: the student's tree and the working folder.
            max_reply: in bytes.
            view: what the child may see besides; by default everything that the user sees.
            wrap: a command that runs the child's command, such as compute-sanitizer.
            fds: descriptors that the child inherits.
        """
        super().__init__()
        limits, view = limits or Limits(), view or View()
        self._pipe = Pipe(python, sys_path, root, limits, env, max_reply, view, wrap, fds)

    def __enter__(self) -> Remote:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._pipe.end()

    @property
    def output(self) -> str:
        """The child's output so far, without its middle."""
        return self._pipe.child.output.text()

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """What is queued inside must be done `seconds` after entry. Flushes before and after."""
        self.flush()
        self._pipe.await_ready()
        outer = self._pipe.deadline
        self._pipe.deadline = min(outer, (self._pipe.child.now() + seconds, seconds))
        try:
            yield
            self.flush()
        finally:
            self._pipe.deadline = outer

    def now(self) -> float:
        """Seconds, by a clock that stands still while others have the child's cores."""
        return self._pipe.child.now()

    def close(self) -> None:
        """Runs what is queued, receives the child's last word, and ends it. Does nothing after
        `dismiss`.

        Raises:
            ChildDied: the child can no longer answer.
            ChildError: as `flush`.
        """
        if self._pipe.dismissed:
            return
        try:
            self._run(last_word=True)
        finally:
            self._pipe.end()

    def dismiss(self, seconds: float) -> None:
        """Ends the child without running what is queued. The child gets so long to end by
        itself."""
        self._pipe.dismiss(seconds)

    def _carry_out(
        self, batch: list[Instruction], arrays: list[np.ndarray[Any, Any]], most: int
    ) -> tuple[list[Any], Fault | None]:
        try:
            header, received = self._pipe.exchange(
                [[i.action, i.target, i.args] for i in batch], arrays, most
            )
            return parse_reply(header, received, len(batch))
        except Starved:
            self._pipe.end()
            raise
        except (EOFError, TimeoutError, LimitError, ProtocolError, ReplyTooLarge) as stop:
            self._end(self._diagnose(stop, batch))

    def _diagnose(self, stop: Exception, batch: list[Instruction]) -> ChildError:
        index = self._pipe.progress()
        known = index is not None and index < len(batch)
        doing = batch[index or 0].doing if known else "nothing (between two calls)"
        limits = self._pipe.child.limits
        if isinstance(stop, TimeoutError):
            return ChildTimeout(self._pipe.deadline[1], doing)
        if isinstance(stop, LimitError):
            most = self._pipe.child.most(stop.kind) or 0
            if stop.kind == "cpu":
                return ChildTimeout(most, doing, " of processor time")
            return ChildExcess(stop.kind, int(most), doing)
        if isinstance(stop, ReplyTooLarge):
            return ChildExcess("answer", stop.most, doing)
        if isinstance(stop, ProtocolError):
            stop.doing = doing
            return stop
        rc = self._pipe.farewell()
        if rc is not None and rc < 0 and process.signal_name(-rc) == "SIGXCPU":
            return ChildTimeout(limits.cpu or 0, doing, " of processor time")
        died = ChildDied(rc, doing)
        died.memory, died.most_memory = self._pipe.child.memory, limits.memory
        return died

    def _end(self, fatal: ChildError) -> NoReturn:
        self._pipe.end()
        super()._end(fatal)

    def _with_output(self, error: ChildError) -> ChildError:
        error.output = self._pipe.printed()
        return error
