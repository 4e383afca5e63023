"""Starts a process under limits, collects what it prints, and ends it with all its descendants."""

from __future__ import annotations

import contextlib
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.base.printable import plain
from grader.sandbox import cancel, gpu_memory
from grader.sandbox.isolation import View, confined
from grader.sandbox.limits import MIB, LimitError, Limits, Starved
from grader.sandbox.scratch import Scratch
from grader.sandbox.strays import LIVE, LOCK, adopt_orphans, end_strays, open_pidfd
from grader.sandbox.watch import LOOK, Watch

__all__ = ["MIB", "Child", "Completed", "LimitError", "Limits", "Output", "plain", "run", "start"]

_KEEP = 32 << 10  # bytes of output kept at either end
_CHUNK = 64 << 10
_PATIENCE = 5.0  # seconds that a killed process has to vanish
_LATE = 5.0  # seconds after a deadline in which what is there is still read


class Output:
    """The output of a child: the first and the last 32 KiB, and `total`, the number of all
    bytes."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Appends a chunk of output; keeps the first and the last 32 KiB of all."""
        self.total += len(chunk)
        room = _KEEP - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        del self._tail[:-_KEEP]

    def text(self) -> str:
        """The output as plain text, with a line in place of the omitted middle."""
        lost = self.total - len(self._head) - len(self._tail)
        gap = b"\n[... %d bytes left out ...]\n" % lost if lost else b""
        return plain(bytes(self._head + gap + self._tail).decode("utf-8", "replace"))


class Child:
    """A running process under limits. Whoever starts it must `kill` it in a finally."""

    def __init__(
        self, popen: subprocess.Popen[bytes], limits: Limits, view: View, home: Scratch
    ) -> None:
        assert popen.stdout is not None
        self.pid = popen.pid
        self.limits = limits
        self.view = view
        self.output = Output()
        self.started = time.monotonic()
        self.deadline = self.started + limits.wall
        self._popen = popen
        self._home = home
        self._out: int | None = popen.stdout.fileno()
        self._pidfd = open_pidfd(popen.pid)
        self._watch = Watch(popen.pid, limits, view, home)
        self._killed = False
        os.set_blocking(self._out, False)

    def wait(self, deadline: float, fd: int | None = None, events: int = select.POLLIN) -> bool:
        """Waits until `fd` is ready (True) or the process has exited (False). Collects output
        meanwhile.

        What the child did in time counts, though this process itself may come late to see it.

        Args:
            deadline: a time by `now`.

        Raises:
            TimeoutError: the deadline has passed; Starved, others had the processor.
            LimitError: the child uses too much.
            Cancelled: nobody needs the child any more.
        """
        while True:
            cancel.go_on()
            left = deadline - self.now()
            ready = self._poll(fd, events, max(left, 0.0))
            if self._out in ready:
                self.collect()
            self._watch.look(at_once=left <= 0)
            if fd in ready and left > -_LATE:
                return True
            if self.exited():
                return False
            if left <= 0:
                self._watch.settle()
                if self.now() >= deadline:
                    raise self._watch.time_is_up()

    def now(self) -> float:
        """Like time.monotonic(), by a clock that stands still while the child waits for a core, or
        this process is stopped."""
        return self._watch.now()

    def most(self, kind: str) -> float | None:
        """The limit of the kind that a LimitError names."""
        if kind == "budget":
            return self.view.budget.seconds if self.view.budget else None
        if kind == "gpu_memory":
            return gpu_memory.MOST
        value: float | None = getattr(self.limits, kind)
        return value

    @property
    def memory(self) -> int:
        """The most bytes that the child was seen to hold."""
        return self._watch.memory

    def read_into(self, fd: int, view: memoryview, deadline: float) -> None:
        """Fills `view` from the non-blocking `fd`. Raises as `wait`, EOFError at the end."""
        last = False  # the process had exited before this try, so nothing can come after it
        while view:
            try:
                count = os.readv(fd, [view])
            except BlockingIOError:
                if last:
                    raise EOFError from None
                last = not self.wait(deadline, fd)
                continue
            if not count:
                raise EOFError
            view = view[count:]

    def write_all(self, fd: int, view: memoryview, deadline: float) -> None:
        """Writes `view` to the non-blocking `fd`. Raises as `wait`, EOFError when nobody reads."""
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                if not self.wait(deadline, fd, select.POLLOUT):
                    raise EOFError from None
            except BrokenPipeError:
                raise EOFError from None

    def collect(self) -> None:
        """Takes the output so far. Raises LimitError if it is too much."""
        while self._out is not None:
            try:
                chunk = os.read(self._out, _CHUNK)
            except BlockingIOError:
                return
            self.output.add(chunk)
            if self.output.total > self.limits.output:
                raise LimitError("output")
            if not chunk:
                self._out = None

    def exited(self) -> bool:
        """Whether the process has ended. On Linux it is not reaped yet, so that no other process
        gets its id."""
        if sys.platform == "linux" and not self._killed:
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.pid, flags) is not None
        return self._popen.poll() is not None

    def kill(self) -> int | None:
        """Kills the process and all its descendants, and removes its private folder.

        Returns the exit code, negative for a signal; None for a process that can't be killed.
        Harmless when the process is dead or was killed before.
        """
        if not self._killed:
            self._end_processes()
            self._killed = True
            self._watch.end()
            with contextlib.suppress(LimitError):
                self.collect()
            self._release()
        rc = self._popen.returncode
        told = self.view.level == "bubblewrap" and rc is not None and 128 < rc < 192
        return 128 - rc if told else rc  # how bubblewrap tells a signal

    def _end_processes(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout=_PATIENCE)
        with LOCK:
            LIVE.discard(self.pid)
            end_strays(self.pid)

    def _poll(self, fd: int | None, events: int, seconds: float) -> set[int]:
        poll = select.poll()
        for watched in (self._out, self._pidfd):
            if watched is not None:
                poll.register(watched, select.POLLIN)
        if fd is not None:
            poll.register(fd, events)
        seconds = min(seconds, LOOK if self._pidfd is not None else 0.01)
        return {ready for ready, _ in poll.poll(math.ceil(seconds * 1000))}

    def _release(self) -> None:
        assert self._popen.stdout is not None
        self._out = None
        self._popen.stdout.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        self._home.remove()


def start(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    pass_fds: Sequence[int] = (),
    view: View | None = None,
) -> Child:
    """Starts `argv` in its own session, with a clean environment plus `env`, and nothing on stdin.

    HOME and TMPDIR are a fresh folder that goes with the child; `view` tells what else it sees.
    A program that can't be run shows as exit code 1 and a line of output. Raises OSError when
    `cwd` is no folder.
    """
    view, home = view or View(), Scratch()
    limits = (limits or Limits()).within(shutil.disk_usage(home.path).free)
    try:
        command = confined(argv, Path(cwd).resolve(), home.path, limits.as_rlimits, view,
                           limits.room)  # fmt: skip
        with LOCK:
            adopt_orphans()
            popen = subprocess.Popen(
                command,
                cwd=cwd,
                env=_environment(home.path) | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
            LIVE.add(popen.pid)
    except BaseException:
        home.remove()
        raise
    return Child(popen, limits, view, home)


def _environment(home: Path) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}


@dataclass(frozen=True)
class Completed:
    """The end of a process.

    Attributes:
        reason: exit, signal, timeout, starved, cpu, file_size or the kind of a LimitError.
        rc: the exit code; None unless the reason is exit.
        signal: the name of the signal that ended it.
        seconds: wall time.
    """

    rc: int | None
    signal: str | None
    reason: str
    output: str
    seconds: float


def run(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    view: View | None = None,
) -> Completed:
    """Runs `argv` to its end or its limits, ends its descendants, and returns how it ended."""
    child = start(argv, cwd, env, limits, view=view)
    reason = "exit"
    try:
        child.wait(child.deadline)
    except Starved:
        reason = "starved"
    except TimeoutError:
        reason = "timeout"
    except LimitError as error:
        reason = error.kind
    finally:
        rc = child.kill()
    seconds = time.monotonic() - child.started
    if child.output.total > child.limits.output:
        reason = "output"
    name = signal_name(-rc) if rc is not None and rc < 0 else None
    if reason == "exit" and name is not None:
        reason = {"SIGXCPU": "cpu", "SIGXFSZ": "file_size"}.get(name, "signal")
    return Completed(rc if reason == "exit" else None, name, reason, child.output.text(), seconds)


def signal_name(number: int) -> str:
    """The name of a signal, SIGSEGV for 11; the number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
