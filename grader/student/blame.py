"""Decides who caused the kill of a child, by evidence from before and after it.

The kernel kills processes when memory runs out, and an operator may kill them. Student code can
kill itself, directly or by its limit of processor time. Nothing records who did it. So a check
whose child was killed runs once more, while no other check runs, see grader/sandbox/alone.py. If
the child is killed again, the student's code is to blame, unless the kernel counted a kill for lack
of memory while the child was far below its limit. A check whose import hung or ended the process
runs once more too, because after that no check imports the module again; and one whose child others
kept from the processor, which is an error of the machine if it happens again.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from grader.sandbox.limits import OutOfMemory, Starved
from grader.student.remote import ChildDied, ChildError, ChildExcess

__all__ = ["Evidence", "OutOfMemory", "ends_imports", "may_be_chance", "was_killed"]

#: Of its limit of memory: a child that was seen below that is not what filled the machine.
_LITTLE = 0.5


def was_killed(error: Exception | None) -> TypeGuard[ChildDied]:
    """Whether SIGKILL ended a child. A child over its limits ends with another error."""
    return isinstance(error, ChildDied) and error.rc == -signal.SIGKILL


def may_be_chance(error: Exception | None) -> bool:
    """Whether a check must run once more before it is judged."""
    return was_killed(error) or ends_imports(error) or isinstance(error, Starved)


def ends_imports(error: Exception | None) -> TypeGuard[ChildError]:
    """Whether an import hung or ended the process by its own fault."""
    spent = isinstance(error, ChildExcess) and error.kind == "budget"
    return isinstance(error, ChildError) and bool(error.importing) and not spent


class Evidence:
    """The kernel's counts of kills so far. `root` is where /proc and /sys lie."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._before = dict(_kills(root))

    def judged(self, error: Exception) -> Exception:
        """The error; or OutOfMemory if the machine ended the child; or ChildExcess if the child
        used up the memory before anybody could measure it."""
        # It may be of another process that was killed: the far device's.
        died = error.__cause__ if isinstance(error.__cause__, ChildDied) else error
        ended = self._ended()
        if not ended or not was_killed(died):
            return error
        if died.most_memory is not None and died.memory > _LITTLE * died.most_memory:
            return ChildExcess("memory", died.most_memory, died.doing)
        seen = f"the process held {died.memory >> 20} MiB when last measured"
        if died.most_memory is not None:
            seen += f", of at most {died.most_memory >> 20} MiB"
        return OutOfMemory(
            f"this machine ran out of memory, and the kernel killed {ended} processes "
            f"meanwhile{_pressure(self._root)}; {seen}; hint: grade fewer at a time, or add "
            "memory"
        )

    def _ended(self) -> int:
        """How many processes the kernel has killed for lack of memory since."""
        now = dict(_kills(self._root))
        return max((now[name] - self._before.get(name, 0) for name in now), default=0)


def _kills(root: Path) -> Iterator[tuple[str, int]]:
    """(place, number of kills for lack of memory) for the machine and the control groups around
    us."""
    machine = _fields(root / "proc/vmstat").get("oom_kill")
    if machine is not None:
        yield "machine", machine
    for folder in _groups(root):
        for name in ("memory.events", "memory.oom_control"):
            count = _fields(folder / name).get("oom_kill")
            if count is not None:
                yield str(folder / name), count


def _groups(root: Path) -> Iterator[Path]:
    """The control groups of this process, and those around them."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "memory"):
            top = root / "sys/fs/cgroup" / kinds
            inner = top / path.lstrip("/")
            for folder in (inner, *inner.parents):
                if top in (folder, *folder.parents):
                    yield folder


def _pressure(root: Path) -> str:
    """The share of the last ten seconds in which work stood still for lack of memory, if it is
    told."""
    try:
        words = (root / "proc/pressure/memory").read_text().split()
    except OSError:
        return ""
    shares = [word.partition("=")[2] for word in words if word.startswith("avg10=")]
    return f" (some work waited for memory in {shares[0]} % of the last 10 s)" if shares else ""


def _fields(path: Path) -> Mapping[str, int]:
    """The numbers in a file of lines `name number`; empty if there is no such file."""
    try:
        words = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdigit()}
