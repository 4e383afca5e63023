"""What a child may use."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace

from grader.sandbox import usage

MIB = 1 << 20
_PHYSICAL = usage.machine_memory()
#: A child that waits for cores that others use gets so many times its wall time at most.
MOST_WAITING = 5


class LimitError(Exception):
    """The child used more than its limits allow of `kind`: output, memory, gpu_memory, disk,
    processes, cpu, or budget, of processor time for a submission as a whole."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class OutOfMemory(Exception):
    """The machine, or its GPU, had no memory left: nobody's fault who is graded."""


@dataclass(frozen=True)
class Limits:
    """What a child may use; None means no limit.

    `wall` and `cpu` are seconds (cpu: of processor time). While the child waits for a core that
    others use, wall time stands still, up to MOST_WAITING times the limit: a busy machine is
    nobody's fault. `files` is how many a process may hold open (CUDA takes 37, with
    compute-sanitizer 55). The rest are bytes: `output` all it prints, `file_size` each file it
    writes. Of the child and its descendants together, looked at several times a second on Linux:
    `cpu`, `memory` what they hold without backing by a file, `disk` what lies in the folders that
    they may write or in files whose name is gone, `processes` their number with threads. (A limit
    of the address space would do for none of it where CUDA runs: the driver reserves far more
    than it uses.)
    """

    wall: float = 60.0
    cpu: float | None = 600.0
    output: int = 4 * MIB
    file_size: int | None = 1024 * MIB
    memory: int | None = min(8192 * MIB, _PHYSICAL // 2)
    disk: int | None = 2048 * MIB
    processes: int | None = 256 + 4 * (os.cpu_count() or 1)
    files: int | None = 256

    def within(self, free: int) -> Limits:
        """These, for a disk with so many free bytes: half of them stay to others."""
        return self if self.disk is None else replace(self, disk=min(self.disk, free // 2))

    @property
    def room(self) -> int:
        """Bytes of a child's scratch where it lies in memory, of which it is a part."""
        known = [most for most in (self.disk, self.memory and self.memory // 2) if most is not None]
        return min([*known, 2048 * MIB])

    def as_rlimits(self, own_user: bool) -> list[list[object]]:
        """[name, soft, hard] of each; of processes only where the user is the child's alone."""
        # Queues of messages and of signals are memory that no process shows.
        found: list[list[object]] = [["CORE", 0, 0], ["MSGQUEUE", 0, 0], ["SIGPENDING", 1024, 1024]]
        if self.files is not None:
            found.append(["NOFILE", self.files, self.files])
        if self.file_size is not None:
            found.append(["FSIZE", self.file_size, self.file_size])
        if self.cpu is not None:
            found.append(["CPU", math.ceil(self.cpu), math.ceil(self.cpu) + 1])
        if self.processes is not None and own_user:
            found.append(["NPROC", self.processes, self.processes])
        return found
