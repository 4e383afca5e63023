"""Quartiles of the time of a call, by the clock of the host or by events on the GPU."""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Seconds of a sample at least: many calls of what takes less. What the host does before the first
#: of them is in a sample, too: some 50 us, which the GPU waits for once.
SAMPLE = 2e-3
#: Samples of a point, at least and at most.
FEWEST, MOST = 5, 25

Run = Callable[[], object]
#: Seconds that so many calls take.
Clock = Callable[[int], float]


@dataclass(frozen=True)
class Timing:
    """Microseconds a call: quartiles of `samples` samples of `calls` calls each."""

    us: tuple[float, float, float]
    samples: int
    calls: int


def by_host(run: Run, wait: Run = lambda: None) -> Clock:
    """The clock of this process; `wait` ends when all that was begun is done."""

    def seconds(count: int) -> float:
        wait()
        begin = time.perf_counter()
        for _ in range(count):
            run()
        wait()
        return time.perf_counter() - begin

    return seconds


def by_events(run: Run, library: Any) -> Clock:
    """Events before and behind the calls, on the stream on which all others wait."""
    begin, end, elapsed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
    for event in (begin, end):
        library.cudaEventCreate(ctypes.byref(event))

    def seconds(count: int) -> float:
        library.cudaEventRecord(begin, None)
        for _ in range(count):
            run()
        library.cudaEventRecord(end, None)
        library.cudaEventSynchronize(end)
        library.cudaEventElapsedTime(ctypes.byref(elapsed), begin, end)
        return elapsed.value / 1000

    return seconds


def timed(clock: Clock, budget: float) -> Timing:
    """Calls it to warm up, then for about `budget` seconds.

    What takes longer than the budget is called once to warm up, and timed thrice; unless it took
    longer because something was compiled or recorded, which the second call may do, too.
    """
    clock(1)
    slow: list[float] = []
    while (about := max(clock(1), 1e-9)) > budget:
        slow.append(about)
        if len(slow) == 2 and slow[0] > 2 * slow[1]:
            del slow[0]  # it was that call
        if len(slow) == 3:
            return _timing(slow, 1)
    if about < SAMPLE:  # one call says little of so short a time
        calls = max(1, round(SAMPLE / about / 4))
        about = clock(calls) / calls
    calls = math.ceil(SAMPLE / about)
    samples = max(FEWEST, min(MOST, int(budget / (about * calls))))
    return _timing([clock(calls) / calls for _ in range(samples)], calls)


def _timing(seconds: list[float], calls: int) -> Timing:
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    us = [float(f"{each * 1e6:.4g}") for each in (low, middle, high)]
    return Timing((us[0], us[1], us[2]), len(seconds), calls)
