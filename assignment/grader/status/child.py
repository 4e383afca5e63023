"""A process that runs checks, so that one that crashes or never ends takes no other check with
it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from grader.status import here
from grader.status.here import FAIL, PASS, Outcome, PlannedCheck
from grader.student.worker import student_path

_START = 60.0  # seconds for Python to start and to import numpy
_AGAIN = 8.0  # seconds, at most, once something that needs no build did not end
_LOOK = 0.2  # seconds from one look at the clock to the next
_LAST_LINES = 8  # of what was printed before a crash
_FRAMES = 6  # of the student's code, innermost first
_TRACE = re.compile(r"(?:Fatal Python error|Current thread|Thread 0x|Extension modules)")
_FRAME = re.compile(r'\s*File "([^"]+)", line \d+(,?)')

_EMULATED = "emulated GPU: "  # how it begins to say why a process ends
_ENDLESS = "does each turn of a loop change its condition? Ctrl-C shows the line where it is"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Its arguments say, line by line, where the check was."""


class CheckProcess:
    """A process that runs checks. After a failed check, which may leave it or the device in any
    state, the next check gets a new process.

    A check's limit counts seconds of processor time, if the system reports them: a machine that is
    slow because others work on it is nobody's mistake. A check that waits as long without computing
    does not end either.
    """

    def __init__(self, folder: Path, seed: str) -> None:
        self._folder, self._seed = folder, seed
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 closed at the end
        self._replies = -1
        self._read = b""
        self._hung = False  # whether something did not end

    def __enter__(self) -> CheckProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._output.close()

    def run(self, row: PlannedCheck, names: Sequence[str]) -> Outcome:
        """The outcome of a check. `names` are those of this check and of all that may be run
        later."""
        fresh = self._process is None
        if self._process is None:
            self._start(names)
        assert self._process is not None and self._process.stdin is not None
        self._output.seek(0)
        self._output.truncate()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{row.name}\n".encode())
            self._process.stdin.flush()
        limit = here.patience_for(row)
        if self._hung and "build" not in row.requires:
            limit = min(limit, _AGAIN)
        if fresh:
            self._line(_START)  # it is ready
        try:
            line = self._line(limit)
        except KeyboardInterrupt:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            raise Interrupted(f"{row.name} was interrupted", *self._printed()) from None
        outcome = Outcome(**json.loads(line)) if line else self._lost(row, limit)
        if outcome.status != PASS and not outcome.is_of_a_hole:
            known = {line.strip() for line in outcome.details}
            more = [line for line in self._printed() if line.strip() not in known]
            outcome.details = [*outcome.details, *more]
            self._end()
        return outcome

    def _start(self, names: Sequence[str]) -> None:
        self._replies, theirs = os.pipe()
        command = [sys.executable, "-X", "faulthandler", "-m", "grader.status", *names]
        command += ["--folder", str(self._folder), "--seed", self._seed, "--serve", str(theirs)]
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._output, stderr=self._output,
            pass_fds=(theirs,), env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        os.close(theirs)

    def _line(self, seconds: float) -> bytes:
        """The next line of the process; b"" if it ends or takes too long."""
        assert self._process is not None
        clock = _Clock(self._process.pid)
        while b"\n" not in self._read:
            if clock.passed(seconds):
                return b""
            if not select.select([self._replies], [], [], _LOOK)[0]:
                continue
            data = os.read(self._replies, 1 << 16)
            if not data:
                return b""
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _lost(self, row: PlannedCheck, limit: float) -> Outcome:
        """The outcome of a check that ended its process, or did not end."""
        assert self._process is not None
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # faulthandler says where it was
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._hung = True
            return Outcome(
                row.name, FAIL, f"{row.name} did not end within {limit:g} s", hint=_ENDLESS
            )
        how = f"exit code {code}" if code >= 0 else f"signal {-code} ({_name_of(-code)})"
        why = next((line for line in self._printed() if line.startswith(_EMULATED)), _EMULATED)
        why = why.replace(_EMULATED, ": ", 1) if why != _EMULATED else ""
        return Outcome(row.name, FAIL, f"the process ended with {how} while {row.name} ran{why}")

    def _printed(self) -> list[str]:
        """The last lines that the process printed, and the place in the student's code where it
        was."""
        self._output.seek(0)
        text = self._output.read().decode("utf-8", "replace")
        root, code = str(self._folder), here.code_of(self._folder)
        said, frames, hidden = list[str](), list[str](), False
        for line in filter(str.strip, text.splitlines()):
            shown = line.replace(f"{root}{os.sep}", "")
            if frame := _FRAME.match(line):
                is_own = bool(student_path(frame[1], root, code))
                hidden = not is_own and bool(frame[2])  # then its source is the next line
                if is_own:
                    (said if frame[2] else frames).append(shown)
            elif not (hidden and line.startswith("    ")) and not _TRACE.match(line):
                said.append(shown)
        return [*said[-_LAST_LINES:], *frames[:_FRAMES]]

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            os.close(self._replies)
        self._process, self._read = None, b""


class _Clock:
    """The processor time of a process since this was made."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._begun = self._seen = self._now()
        self._since = time.monotonic()  # when it was last seen to compute

    def _now(self) -> float:
        """Seconds of processor time; of wall time if the system reports no other."""
        try:
            text = Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return time.monotonic()
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def passed(self, seconds: float) -> bool:
        """Whether the process has computed for so long, or waited for so long without computing."""
        now, clock = self._now(), time.monotonic()
        if now > self._seen:
            self._seen, self._since = now, clock
        return now - self._begun >= seconds or clock - self._since >= seconds


def _name_of(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return "unknown"
