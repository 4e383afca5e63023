"""The limits of a child."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace

from grader.sandbox import usage

MIB = 1 << 20
_PHYSICAL = usage.machine_memory()
#: A child that waits for cores that others use gets so many times its wall time more, and no
#: verdict if that is not enough.
MOST_WAITING = 5


class LimitError(Exception):
    """The child used more than its limit of `kind`: output, memory, gpu_memory, disk, processes,
    mappings, cpu, or budget, which is processor time for a whole submission."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class OutOfMemory(Exception):
    """The machine, or its GPU, ran out of memory. No submission is to blame."""


class Starved(TimeoutError):
    """The child's time is up, but others had the cores for most of it. Nobody's submission is to
    blame."""

    def __init__(self, waited: float) -> None:
        super().__init__(
            f"other processes kept this one from the processor for {waited:.0f} s, more than is "
            "made up for; hint: grade fewer at a time, or see which processes use the machine"
        )


@dataclass(frozen=True)
class Limits:
    """The limits of a child; None means no limit.

    `wall` and `cpu` are seconds; `cpu` is processor time. While the child waits for a core that
    others use, its wall time stands still, up to MOST_WAITING times the limit; then it is Starved,
    and nobody is to blame. `files` is the number of files that a process may hold open
    (CUDA takes 37, with compute-sanitizer 55). All others are bytes: `output` is everything
    printed, `file_size` the size of each file written.

    The rest count for the child and its descendants together, several times a second on Linux:
    `cpu`; `memory`, which no file backs, with what open files and mappings may take of the
    kernel's; `disk`, in the folders that they may write and in unnamed files; `processes`, with
    threads; `mappings` of memory (Python with numpy has 140, with CUDA some hundred more). A limit
    of the address space could not replace these where CUDA runs, since the driver reserves far more
    than it uses.
    """

    wall: float = 60.0
    cpu: float | None = 600.0
    output: int = 4 * MIB
    file_size: int | None = 1024 * MIB
    memory: int | None = min(8192 * MIB, _PHYSICAL // 2)
    disk: int | None = 2048 * MIB
    processes: int | None = 256 + 4 * (os.cpu_count() or 1)
    mappings: int | None = 100_000
    files: int | None = 256

    def within(self, free: int) -> Limits:
        """These limits on a disk with so many free bytes: half of them are left to others."""
        return self if self.disk is None else replace(self, disk=min(self.disk, free // 2))

    @property
    def room(self) -> int:
        """The bytes of a child's scratch folder if it lies in memory, where it counts as memory."""
        known = [most for most in (self.disk, self.memory and self.memory // 2) if most is not None]
        return min([*known, 2048 * MIB])

    def as_rlimits(self, own_user: bool) -> list[list[object]]:
        """[name, soft, hard] of each limit; that of processes only if no other child has the same
        user."""
        # Queues of messages and of signals are memory that no process shows, and what is locked
        # of a file stays in memory without being a process's.
        found: list[list[object]] = [["CORE", 0, 0], ["MSGQUEUE", 0, 0], ["SIGPENDING", 1024, 1024]]
        found.append(["MEMLOCK", 64 << 10, 64 << 10])
        if self.files is not None:
            found.append(["NOFILE", self.files, self.files])
        if self.file_size is not None:
            found.append(["FSIZE", self.file_size, self.file_size])
        if self.cpu is not None:
            found.append(["CPU", math.ceil(self.cpu), math.ceil(self.cpu) + 1])
        if self.processes is not None and own_user:
            found.append(["NPROC", self.processes, self.processes])
        return found
