"""Measures how long a child has waited for cores that others used.

A child could start more threads than there are cores, so that they wait for each other, and gain
time on a clock that stands still meanwhile. So only the part of its waiting counts that the use by
others explains.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from grader.sandbox import usage


@dataclass(frozen=True)
class Interval:
    """The time between two measurements; all values are seconds, except `cores`.

    Attributes:
        length: wall time.
        cores: number of cores that the child may use.
        own: processor time of all the child's processes.
        waited: how long its threads were ready to run without a core, summed.
        longest: the same of the thread that waited longest.
        busy: processor time of everybody on these cores, and what the host took from them.
    """

    length: float
    cores: int
    own: float
    waited: float
    longest: float
    busy: float

    def held_up(self) -> float:
        """How long others held the child up.

        Alone, it would have got the processor time that it asked for, as far as there are cores. It
        lost the part that it did not get, but at most what others used. As many threads lose time
        together as could have run at once.
        """
        alone = min(self.own + self.waited, self.cores * self.length)
        lost = min(max(0.0, alone - self.own), max(0.0, self.busy - self.own))
        at_once = max(1.0, alone / self.length) if self.length > 0 else 1.0
        return min(lost / at_once, self.longest, self.length)


class Run(NamedTuple):
    """A thread: nanoseconds that it ran, nanoseconds that it was ready before it got a core each
    time, and whether it is ready or runs now. See proc_schedstat."""

    ran: int
    waited: int
    ready: bool


@dataclass(frozen=True)
class _Look:
    time: float
    own: float
    busy: float
    pids: frozenset[int]
    runs: dict[str, Run]


class Waiting:
    """Sums up what a child loses to others.

    If its processes change between two measurements, nobody can tell whose their time was, so that
    interval does not count. Nor does any if the kernel does not report it (CONFIG_SCHED_INFO).
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before: _Look | None = None
        self._ahead: dict[str, int] = {}  # of each thread: nanoseconds told before the kernel does

    def look(self, pids: Iterable[int]) -> None:
        """Adds what these processes have lost since the last measurement."""
        known = frozenset(pids)
        runs = {path: run for pid in known for path, run in _runs(pid)}
        now = _Look(time.monotonic(), usage.cpu(known), _busy(), known, runs)
        before, self._before = self._before, now
        if before is not None and before.pids == now.pids:
            self.seconds += self._between(before, now).held_up()

    def _between(self, before: _Look, now: _Look) -> Interval:
        new = Run(0, 0, False)
        olds = {path: before.runs.get(path, new) for path in now.runs}
        ran = [run.ran - olds[path].ran for path, run in now.runs.items()]
        length = int((now.time - before.time) * 1e9)
        waited = [self._waited(path, olds[path], run, length) for path, run in now.runs.items()]
        return _interval(before, now, ran, waited)

    def _waited(self, path: str, old: Run, run: Run, length: int) -> int:
        """How long a thread waited in an interval. The kernel tells a wait when it is over, which
        may last longer than an interval: but who was ready and did not run can't have slept."""
        if old.ready and run.ready and run.ran == old.ran and run.waited == old.waited:
            self._ahead[path] = self._ahead.get(path, 0) + length
            return length
        waited = run.waited - old.waited
        return waited - min(waited, self._ahead.pop(path, 0))


def _interval(before: _Look, now: _Look, ran: list[int], waited: list[int]) -> Interval:
    return Interval(
        length=now.time - before.time,
        cores=len(_cores()),
        own=max(sum(ran) / 1e9, now.own - before.own),
        waited=sum(waited) / 1e9,
        longest=max(waited, default=0) / 1e9,
        busy=now.busy - before.busy,
    )


def _runs(pid: int) -> Iterator[tuple[str, Run]]:
    """The threads of a process, by the folder of each."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            path = Path(f"/proc/{pid}/task/{task}")
            with contextlib.suppress(OSError, ValueError, IndexError):
                ran, waited = (path / "schedstat").read_bytes().split()[:2]
                state = (path / "stat").read_bytes().rpartition(b")")[2].split()[0]
                yield str(path), Run(int(ran), int(waited), state == b"R")


def _cores() -> frozenset[int]:
    """The cores that this process, and what it starts, may use."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _busy() -> float:
    """Seconds that these cores were busy for anybody, with those that the host took."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return 0.0
    cores = {f"cpu{number}" for number in _cores()}
    words = [line.split() for line in lines if line.partition(" ")[0] in cores]
    # user, nice, system, (idle, iowait,) irq, softirq, steal
    ticks = sum(int(w[i]) for w in words for i in (1, 2, 3, 6, 7, 8) if i < len(w))
    return ticks / os.sysconf("SC_CLK_TCK")
