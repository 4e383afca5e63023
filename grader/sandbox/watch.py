"""Measures a child's use now and then, and stops it at its limits."""

from __future__ import annotations

import random
import time

from grader.sandbox import usage
from grader.sandbox.isolation import View
from grader.sandbox.limits import MOST_WAITING, LimitError, Limits, Starved
from grader.sandbox.pulse import Pulse
from grader.sandbox.scratch import Scratch
from grader.sandbox.waiting import Waiting

LOOK = 0.2  # seconds between two looks, on average
_CHANCE = random.SystemRandom()  # nobody can know when the next one is


class Watch:
    """A child under its limits.

    Attributes:
        memory: the most bytes that it was seen to hold.
    """

    def __init__(self, pid: int, limits: Limits, view: View, home: Scratch) -> None:
        self.memory = 0
        self._pid, self._limits, self._view, self._home = pid, limits, view, home
        self._waiting = Waiting()
        self._next = 0.0
        self._pulse = Pulse()
        self._cpu = 0.0
        self._waiting.look(usage.processes(pid, limits.processes))
        self._plan()

    def now(self) -> float:
        """Like time.monotonic(), by a clock that stands still while the child waits for a core, or
        this process is stopped."""
        waited = min(self._waiting.seconds, MOST_WAITING * self._limits.wall)
        return time.monotonic() - self._pulse.stopped - waited

    def settle(self) -> None:
        """Has `now` know of any time up to here in which this process was stopped."""
        self._pulse.settle()

    def end(self) -> None:
        """Is called when the child has ended."""
        self._pulse.end()

    def time_is_up(self) -> TimeoutError:
        """What to raise at a deadline: Starved if the child lost more than this clock stood still,
        since nobody knows what it would have done with that time."""
        waited = self._waiting.seconds
        return Starved(waited) if waited > MOST_WAITING * self._limits.wall else TimeoutError()

    def look(self, at_once: bool = False) -> None:
        """Measures the child if it is time to, or at once. Raises LimitError at a limit."""
        if time.monotonic() < self._next and not at_once:
            return
        most = self._limits.processes
        table = usage.processes(self._pid, most)
        self._waiting.look(table)
        if most is not None and sum(table.values()) > most:
            raise LimitError("processes")
        self._look_at_time(table)
        self._look_at_room(table)
        self._plan()

    def _plan(self) -> None:
        self._next = time.monotonic() + LOOK * _CHANCE.uniform(0.5, 1.5)

    def _look_at_time(self, table: dict[int, int]) -> None:
        used = max(self._cpu, usage.cpu(table))
        more, self._cpu = used - self._cpu, used
        if self._limits.cpu is not None and used > self._limits.cpu:
            raise LimitError("cpu")
        if self._view.budget is not None and not self._view.budget.spend(more):
            raise LimitError("budget")

    def _look_at_room(self, table: dict[int, int]) -> None:
        limits = self._limits
        scratch, device = usage.scratch(table, self._home.path)
        unseen = usage.unseen(table, limits.mappings, device)
        held = usage.memory(table, unseen.memory) + unseen.kernel + scratch
        self.memory = max(self.memory, held)
        if limits.mappings is not None and unseen.mappings > limits.mappings:
            raise LimitError("mappings")
        if device is not None and scratch >= limits.room:
            raise LimitError("disk")
        if limits.memory is not None and self.memory > limits.memory:
            raise LimitError("memory")
        folders = (self._home.path, *self._view.writable)
        if self._view.gpu is not None:
            self._view.gpu.look(table)
        if limits.disk is not None and usage.disk(folders, limits.disk) + unseen.disk > limits.disk:
            raise LimitError("disk")
