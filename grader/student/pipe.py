"""A worker process, the frames to and from it, and the reading of its output."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from grader.sandbox import process
from grader.sandbox.isolation import View
from grader.sandbox.process import LimitError, Limits
from grader.student.reply import MAX_HEADER, Array, ChildError, ProtocolError, parse_header
from grader.student.worker import PREFIX

WORKER = Path(__file__).with_name("worker.py")

_GRACE = 1.0  # seconds between the end of a child's pipe and its own
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031


class StartError(RuntimeError):
    """The worker did not start. No student code has run: the grader or the machine is to blame."""


class ChildDied(ChildError):
    """The process ended, or closed its pipe, before its last word.

    Attributes:
        rc: exit code as of subprocess.
        memory: the most bytes that it was seen to hold.
        most_memory: its limit of memory, or None.
    """

    memory: int = 0
    most_memory: int | None = None

    def __init__(self, rc: int | None, doing: str) -> None:
        self.rc, self.doing = rc, doing
        super().__init__(f"the process {_death(rc)}; it was running: {doing}")


class ChildTimeout(ChildError):
    """The child did not answer in time."""

    def __init__(self, seconds: float, doing: str, kind: str = "") -> None:
        self.seconds, self.doing = seconds, doing
        super().__init__(f"not finished within {seconds:g} s{kind}: {doing}")


_EXCESS = {
    "output": "printed more than {} bytes",
    "memory": "used more than {} bytes of memory",
    "gpu_memory": "used more than {} bytes of the GPU's memory",
    "disk": "wrote more than {} bytes to the disk",
    "processes": "started more than {} processes and threads",
    "mappings": "made more than {} mappings of memory",
    "budget": "used up the {} s of processor time that all checks have together",
    "answer": "answered with more than {} bytes",
}


class ChildExcess(ChildError):
    """The child used more than `limit` of `kind`: output, memory, gpu_memory, disk, answer (bytes),
    processes, mappings, or budget (seconds of processor time, of all children together)."""

    def __init__(self, kind: str, limit: int, doing: str) -> None:
        self.kind, self.limit, self.doing = kind, limit, doing
        super().__init__(f"{_EXCESS[kind].format(f'{limit:,}')} while running: {doing}")


class ReplyTooLarge(Exception):
    """The child answered with more than `most` bytes."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


def _death(rc: int | None) -> str:
    if rc is None:
        return "closed its reply pipe before the check was over"
    if rc < 0:
        return f"was killed by signal {-rc} ({process.signal_name(-rc)})"
    return f"ended with exit code {rc} before the check was over"


class Pipe:
    """A worker process, and the frames to and from it. `deadline` is (by Child.now, seconds)."""

    def __init__(
        self,
        python: str | Path,
        sys_path: list[str],
        root: Path,
        limits: Limits,
        env: Mapping[str, str] | None,
        max_reply: int,
        view: View,
        wrap: Sequence[str] = (),
        fds: Sequence[int] = (),
    ) -> None:
        self.dismissed = False
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._progress = tempfile.TemporaryFile()  # noqa: SIM115 closed by _close
        theirs = (requests, replies, self._progress.fileno())
        config = json.dumps({"sys_path": sys_path, "root": str(root)})
        argv = [*wrap, str(python), "-I", "-B", "-u", str(WORKER), *map(str, theirs), config]
        try:
            seen = replace(view, readable=(*view.readable, WORKER), tools=bool(wrap))
            self.child = process.start(argv, root, env, limits, (*theirs, *fds), seen)
        except BaseException:
            self._close()
            raise
        finally:
            os.close(requests)
            os.close(replies)
        for fd in (self._requests, self._replies):
            _widen(fd)
        self.deadline = (self.child.deadline, limits.wall)
        self._max_reply = max_reply
        self._root = root
        self._ready = False

    def await_ready(self) -> None:
        """Waits for the worker's first word, before which no student code runs.

        Raises:
            StartError: it does not come.
            ChildExcess: earlier children of the submission have spent the budget.
        """
        if self._ready:
            return
        try:
            self._receive("ready")
            self._ready = True
        except (EOFError, TimeoutError, LimitError, ProtocolError, ReplyTooLarge) as error:
            rc = self.farewell()
            self.end()
            if isinstance(error, LimitError) and error.kind == "budget":
                most = int(self.child.most("budget") or 0)
                raise ChildExcess("budget", most, "the start of the check") from error
            raise StartError(
                f"the worker did not start ({type(error).__name__}, exit code {rc}): "
                f"{self.child.output.text().strip()[-2000:]}"
            ) from error

    def exchange(
        self, batch: list[Any], arrays: list[Array], most: int
    ) -> tuple[dict[str, Any], list[Array]]:
        """Sends a batch; returns the reply's header and arrays, at most `most` bytes."""
        self.await_ready()
        os.pwrite(self._progress.fileno(), bytes(PREFIX.size), 0)
        nonce = secrets.token_hex(8)
        specs = [[a.dtype.name, a.shape] for a in arrays]
        request = {"id": nonce, "do": batch, "arrays": specs}
        header = json.dumps(request, separators=(",", ":")).encode()
        self._send(PREFIX.pack(len(header), sum(a.nbytes for a in arrays)) + header)
        for array in arrays:
            self._send(_raw(array))
        reply = self._receive(nonce, most)
        self.child.collect()
        return reply

    def progress(self) -> int | None:
        """The index of the instruction that the child began last. Only the child says so: use it in
        texts alone."""
        data = os.pread(self._progress.fileno(), PREFIX.size, 0)
        index, begun = PREFIX.unpack(data) if len(data) == PREFIX.size else (0, 0)
        return index if begun else None

    def printed(self) -> str:
        """What the child has printed, after `trimmed`."""
        return trimmed(self.child.output.text(), self._root)

    def farewell(self) -> int | None:
        """The exit code of a child that closed its pipe; None if the process itself has not
        ended."""
        with contextlib.suppress(TimeoutError, LimitError):
            if not self.child.wait(self.child.now() + _GRACE):
                return self.child.kill()
        return None

    def dismiss(self, seconds: float) -> None:
        """Tells the worker to end, waits for so long, then ends it."""
        if self._progress.closed or self.dismissed:
            return
        self.dismissed = True
        os.close(self._requests)
        with contextlib.suppress(TimeoutError, LimitError):
            self.child.wait(min(self.deadline[0], self.child.now() + seconds))
        self.end()

    def end(self) -> None:
        """Kills the child and its descendants. May be repeated."""
        self.child.kill()
        self._close()

    def _close(self) -> None:
        if not self._progress.closed:
            self._progress.close()
            os.close(self._replies)
            if not self.dismissed:
                os.close(self._requests)

    def _send(self, data: bytes | memoryview) -> None:
        self.child.write_all(self._requests, memoryview(data), self.deadline[0])

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        self.child.read_into(self._replies, memoryview(data), self.deadline[0])
        return data

    def _receive(self, nonce: str, most: int = 0) -> tuple[dict[str, Any], list[Array]]:
        size, body = PREFIX.unpack(self._read(PREFIX.size))
        if size > MAX_HEADER or body > self._max_reply:
            raise ProtocolError(f"it claims {size} and {body} bytes, more than allowed")
        if body > most:
            raise ReplyTooLarge(most)
        header, arrays = parse_header(self._read(size), nonce, body)
        for array in arrays:
            self.child.read_into(self._replies, _raw(array), self.deadline[0])
        return header, arrays


def _widen(fd: int) -> None:
    """Makes this end of a pipe non-blocking and, if Linux allows it, the pipe larger."""
    os.set_blocking(fd, False)
    with contextlib.suppress(OSError):
        if sys.platform == "linux":
            fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)


def _raw(array: Array) -> memoryview:
    """The bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


# What the worker itself prints: its frames in tracebacks, warnings about its lines.
_WORKER = re.escape(str(WORKER))
_OWN = re.compile(
    rf'^(?:  File "{_WORKER}", line \d+, in .*\n?(?:    .*\n?)*|{_WORKER}:\d+: .*\n?(?:  .*\n?)?)',
    re.MULTILINE,
)
# What faulthandler prints: the fault, and of every thread its frames, the latest first.
_HEAD = r"(Current thread|Thread|Stack)\b.* \(most recent call first\):\n?"
_BLOCK = re.compile(
    rf"^(.*Fatal Python error: .*\n?|(?={_HEAD}))"
    rf"(?P<rest>(?:{_HEAD}|Python runtime state: .*\n?|Extension modules: .*\n?|  .*\n?|\n)*)",
    re.MULTILINE,
)
_THREAD = re.compile(f"^{_HEAD}", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", (line .*)$', re.MULTILINE)


def trimmed(output: str, root: Path) -> str:
    """A child's output without the worker's own lines and whatever else is not the student's.

    A fault keeps its first line and the frames in files below `root`, the latest first; by thread
    if several have such frames.
    """
    spellings = {os.path.abspath(root), os.path.realpath(root)}
    # faulthandler escapes what is not ASCII.
    roots = [path.encode("ascii", "backslashreplace").decode() + os.sep for path in spellings]
    return _BLOCK.sub(lambda block: _shorten(block, roots), _OWN.sub("", output))


def _shorten(block: re.Match[str], roots: list[str]) -> str:
    _, *parts = _THREAD.split(block["rest"])
    stacks = [
        (head, _frames(body, roots)) for head, body in zip(parts[::2], parts[1::2], strict=True)
    ]
    stacks = [(head, frames) for head, frames in stacks if frames]
    named = len(stacks) > 1
    texts = [f"{head} (most recent call first):\n" * named + frames for head, frames in stacks]
    return block[1] + "".join(texts)


def _frames(stack: str, roots: list[str]) -> str:
    """The lines of frames in files below one of `roots`, with paths relative to it."""
    lines = []
    for file, place in _FRAME.findall(stack):
        path = os.path.normpath(file)
        below = [path.removeprefix(root) for root in roots if path.startswith(root)]
        lines += [f'  File "{name}", {place}\n' for name in below[:1]]
    return "".join(lines)
