"""Starts a process under limits, collects what it prints, and ends it with all its descendants."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader import cancel, usage
from grader.isolation import View, confined
from grader.scratch import Scratch

MIB = 1 << 20
_PHYSICAL = usage.machine_memory()
_LOOK = 0.2  # seconds between two looks at what a child uses
_KEEP = 32 << 10  # bytes of output kept at either end
_CHUNK = 64 << 10
_PATIENCE = 5.0  # seconds that a killed process has to vanish
_PR_SET_CHILD_SUBREAPER = 36
#: A child that makes itself wait, by many threads, gets so many times its wall time at most.
MOST_WAITING = 5


class LimitError(Exception):
    """The child used more than its limits allow of `kind`: output, memory, disk or processes."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True)
class Limits:
    """What a child may use; None means no limit.

    `wall` and `cpu` are seconds (cpu: of one process, summed over its threads). While the child
    waits for a core that others use, wall time stands still, up to MOST_WAITING times the limit:
    a busy machine is nobody's fault. The rest are bytes:
    `output` all it prints, `file_size` each file it writes. Of the child and its descendants
    together, looked at several times a second on Linux: `memory` what they hold without backing
    by a file, `disk` what lies in the folders that they may write or in files whose name is gone,
    `processes` their number with threads. (A limit of the address space would do for none of it
    where CUDA runs: the driver reserves far more than it uses.)
    """

    wall: float = 60.0
    cpu: float | None = 600.0
    output: int = 4 * MIB
    file_size: int | None = 1024 * MIB
    memory: int | None = min(8192 * MIB, _PHYSICAL // 2)
    disk: int | None = 2048 * MIB
    processes: int | None = 256 + 4 * (os.cpu_count() or 1)

    def as_rlimits(self, own_user: bool) -> list[list[object]]:
        """[name, soft, hard] of each; of processes only where the user is the child's alone."""
        found: list[list[object]] = [["CORE", 0, 0]]
        if self.file_size is not None:
            found.append(["FSIZE", self.file_size, self.file_size])
        if self.cpu is not None:
            found.append(["CPU", math.ceil(self.cpu), math.ceil(self.cpu) + 1])
        if self.processes is not None and own_user:
            found.append(["NPROC", self.processes, self.processes])
        return found


def plain(text: str) -> str:
    """`text` without what could harm a terminal or a file: control characters, lone surrogates."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", text)


class Output:
    """What a child printed: the first and the last 32 KiB, and `total`, the bytes in all."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = _KEEP - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        del self._tail[:-_KEEP]

    def text(self) -> str:
        """The output as plain text, with a line where the middle was left out."""
        lost = self.total - len(self._head) - len(self._tail)
        gap = b"\n[... %d bytes left out ...]\n" % lost if lost else b""
        return plain(bytes(self._head + gap + self._tail).decode("utf-8", "replace"))


class Child:
    """A running process under limits. Whoever starts it must `kill` it, in a finally."""

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
        self._next_look = time.monotonic() + _LOOK
        self._out: int | None = popen.stdout.fileno()
        self._pidfd = _open_pidfd(popen.pid)
        self._waiting = usage.Waiting()
        self._killed = False
        os.set_blocking(self._out, False)

    def wait(self, deadline: float, fd: int | None = None, events: int = select.POLLIN) -> bool:
        """Waits until `fd` is ready (True) or the process has exited (False).

        Collects output all the while. `deadline` is a time by `now`. Raises TimeoutError past
        it, LimitError when the child uses too much, Cancelled when it is wanted no more.
        """
        while True:
            cancel.go_on()
            left = deadline - self.now()
            if left <= 0:
                raise TimeoutError
            ready = self._poll(fd, events, left)
            if self._out in ready:
                self.collect()
            self._look()
            if fd in ready:
                return True
            if self.exited():
                return False

    def now(self) -> float:
        """time.monotonic() by a clock that stands still while the child waits for a core."""
        return time.monotonic() - min(self._waiting.seconds, MOST_WAITING * self.limits.wall)

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
        """Takes what has been printed so far. Raises LimitError when it is too much."""
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
        """Whether the process has ended. On Linux it stays unreaped, so that its id stays its."""
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
        with _LOCK:
            _LIVE.discard(self.pid)
            _end_strays(self.pid)

    def _poll(self, fd: int | None, events: int, seconds: float) -> set[int]:
        poll = select.poll()
        for watched in (self._out, self._pidfd):
            if watched is not None:
                poll.register(watched, select.POLLIN)
        if fd is not None:
            poll.register(fd, events)
        seconds = min(seconds, _LOOK if self._pidfd is not None else 0.01)
        return {ready for ready, _ in poll.poll(math.ceil(seconds * 1000))}

    def _look(self) -> None:
        """Now and then, whether memory, disk and processes are within their limits."""
        if time.monotonic() < self._next_look:
            return
        limits, table = self.limits, usage.processes(self.pid)
        self._waiting.look(table)
        if limits.processes is not None and sum(table.values()) > limits.processes:
            raise LimitError("processes")
        memory, disk = usage.unnamed(table)
        if limits.memory is not None and usage.memory(table) + memory > limits.memory:
            raise LimitError("memory")
        folders = (self._home.path, *self.view.writable)
        if limits.disk is not None and usage.disk(folders, limits.disk) + disk > limits.disk:
            raise LimitError("disk")
        self._next_look = time.monotonic() + _LOOK

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
    limits, view = limits or Limits(), view or View()
    home = Scratch()
    try:
        command = confined(argv, Path(cwd).resolve(), home.path, limits.as_rlimits, view)
        with _LOCK:
            _adopt_orphans()
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
            _LIVE.add(popen.pid)
    except BaseException:
        home.remove()
        raise
    return Child(popen, limits, view, home)


def _environment(home: Path) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}


@dataclass(frozen=True)
class Completed:
    """How a process ended.

    `reason` is exit, signal, timeout, cpu, file_size or the kind of a LimitError; `rc` is the exit
    code (None unless the reason is exit), `signal` the name of the signal that ended it,
    `seconds` wall time.
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
    """Runs `argv` to its end or its limits, ends its descendants, and tells how it went."""
    child = start(argv, cwd, env, limits, view=view)
    reason = "exit"
    try:
        child.wait(child.deadline)
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
    """SIGSEGV for 11; the number itself for a signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


# Descendants that left the session. On Linux this process adopts the orphans of its children, so
# one that daemonised shows up as our own child in a session that is neither ours nor that of a
# child still running: a session can be left but not joined. Nothing else in this process may
# therefore start processes in sessions of their own.

_LOCK = threading.Lock()  # held while a child is started, so that it is not taken for a stray
_LIVE: set[int] = set()  # leaders not yet killed


def _open_pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _processes() -> Iterator[tuple[int, int, int]]:
    """(pid, parent, session) of every process, zombies too. Empty where there is no /proc."""
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError):
                stat = Path("/proc", name, "stat").read_bytes()
                _, parent, _, session = stat.rpartition(b")")[2].split()[:4]
                yield int(name), int(parent), int(session)


def _strays(session: int) -> set[int]:
    """What is left of `session`, and orphans that left theirs, with their descendants."""
    me, mine = os.getpid(), os.getsid(0)
    table = list(_processes())
    found = {
        pid
        for pid, parent, sid in table
        if sid == session or (parent == me and sid != mine and sid not in _LIVE)
    }
    while more := {pid for pid, parent, _ in table if parent in found} - found:
        found |= more
    return found


def _end_strays(session: int) -> None:
    until = time.monotonic() + _PATIENCE
    while (pids := _strays(session)) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
