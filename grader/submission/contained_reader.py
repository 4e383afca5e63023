"""Reads submissions in a separate process with limits of time and memory.

grader.submission.archive has limits of its own, so submissions should never reach these. They make
sure that no archive, whatever it does to a decompressor, holds up or fills the grader that reads a
whole class.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grader.submission import reader
from grader.submission.archive import PACK_HINT, SubmissionError, shown
from grader.submission.reader import Submission

_SECONDS = 60  # of processor time for one submission; an honest one takes some milliseconds
_MEMORY = 1 << 30  # bytes of addresses
_WAIT = 900.0  # seconds after which the machine is to blame: a disk, or many others at work
_CHUNK = 1 << 20
_CODE = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from grader.submission.contained_reader import serve; serve()"
)


class Reader:
    """A process that reads one submission after the other. Used in a `with`, by any thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def load(self, source: Path, holes: Sequence[str], pristine: Path) -> Submission:
        """What `grader.submission.reader.load_submission` returns and raises.

        Raises:
            SubmissionError: also if reading takes too long or too much memory.
            OSError: also if the process ends without an answer.
        """
        asked = {"source": str(source), "holes": list(holes), "pristine": str(pristine)}
        with self._turn:
            try:
                answer, taken = self._ask(asked)
            except EOFError:
                raise _death(source, self._end()) from None
            except BaseException:
                self._end()
                raise
        if answer["refused"]:
            raise SubmissionError(answer["refused"])
        if answer["failed"]:
            raise OSError(*answer["failed"])
        found = answer["found"]
        return Submission(**{**found, "source": Path(found["source"]), "taken": taken})

    def _ask(self, asked: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
        process = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError as error:
            raise EOFError from error
        end = time.monotonic() + _WAIT
        answer = json.loads(self._read(int.from_bytes(self._read(8, end), "little"), end))
        return answer, {name: self._read(size, end) for name, size in answer["taken"]}

    def _read(self, size: int, end: float) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        parts, descriptor = bytearray(), self._process.stdout.fileno()
        while len(parts) < size:
            if not select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
                raise OSError(errno.ETIMEDOUT, f"reading a submission took more than {_WAIT:g} s")
            part = os.read(descriptor, min(_CHUNK, size - len(parts)))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-B", "-c", _CODE, str(Path(__file__).parents[2])]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        return self._process

    def _end(self) -> int:
        """Ends the process; returns its exit code, 0 if there is none."""
        if self._process is None:
            return 0
        process, self._process = self._process, None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.05 if process.poll() is None else None)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return process.returncode


def load_contained(
    source: Path, holes: Sequence[str], pristine: Path, reader: Reader | None = None
) -> Submission:
    """Reads one submission with a given reader, or with one of its own; see `Reader.load`."""
    if reader is not None:
        return reader.load(source, holes, pristine)
    with Reader() as own:
        return own.load(source, holes, pristine)


def _death(source: Path, code: int) -> Exception:
    if code == -signal.SIGPROF:
        return SubmissionError(
            f"{shown(source.name)} takes more than {_SECONDS} s of processor time to read; "
            f"{PACK_HINT}"
        )
    return OSError(errno.ECHILD, f"the process that reads submissions ended by itself ({code})")


# What follows runs in the process that reads.


def serve() -> None:
    """Answers requests from standard input, a line each, until it ends."""
    with contextlib.suppress(ValueError, OSError):  # macOS knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks ends this
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with open(out, "wb") as replies:
        for line in sys.stdin.buffer:
            signal.setitimer(signal.ITIMER_PROF, _SECONDS)
            answer, taken = _answer(json.loads(line))
            signal.setitimer(signal.ITIMER_PROF, 0)
            header = json.dumps(answer).encode()
            replies.write(len(header).to_bytes(8, "little") + header + b"".join(taken))
            replies.flush()


def _answer(asked: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """The answer to a request, and the contents of the files taken."""
    answer: dict[str, Any] = {"refused": "", "failed": None, "found": None, "taken": []}
    source = Path(asked["source"])
    try:
        found = reader.load_submission(source, asked["holes"], Path(asked["pristine"]))
    except SubmissionError as error:
        return {**answer, "refused": str(error)}, []
    except OSError as error:
        if error.errno == errno.ENOMEM:
            words = f"{shown(source.name)} takes more than {_MEMORY >> 30} GiB of memory to read"
            return {**answer, "refused": f"{words}; {PACK_HINT}"}, []
        return {**answer, "failed": [error.errno, str(error.strerror or error)]}, []
    values = {**asdict(found), "source": str(found.source), "taken": {}}
    sizes = [[name, len(content)] for name, content in found.taken.items()]
    return {**answer, "found": values, "taken": sizes}, list(found.taken.values())
