"""Measures how much of a GPU's memory a child holds, and how much is free, by the driver (NVML).

Others may use the GPU, and when its memory is full, calls fail in any process. The child can't be
trusted to say who filled it. The driver knows, and is asked while the child runs.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import time
from collections.abc import Iterable
from typing import Any

from grader.sandbox import cancel
from grader.sandbox.limits import LimitError, OutOfMemory

GIB = 1 << 30
#: Bytes that a child may hold: the checks need 1.5 GiB, with CUDA's own.
MOST = 8 * GIB
#: Bytes that are to be free before a check is made once more, and seconds to wait for them.
_ENOUGH, _PATIENCE = 4 * GIB, 120.0
#: A GPU with less free memory than that counts as full.
_FULL = GIB
_SAYS = re.compile(r"out of memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_(ALLOC_FAILED|NOT_INIT)")


@functools.cache
def _nvml() -> tuple[Any, list[Any]]:
    """(NVML, its handles of all GPUs); (None, []) if NVML is missing."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
        return nvml, [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
    except Exception:  # not installed, no driver, no GPU: each is its own exception
        return None, []


class Meter:
    """Measures the GPUs' memory while a check runs.

    Attributes:
        held: the most bytes that the child held; 0 if the driver does not tell.
        free: the fewest bytes that were free on a GPU; None if the driver never told.
    """

    def __init__(self) -> None:
        self.held = 0
        self.free: int | None = None
        self._size = 0

    def look(self, pids: Iterable[int]) -> None:
        """Measures once, while these processes are the child.

        Raises:
            LimitError: the child holds too much.
        """
        nvml, handles = _nvml()
        own, held = set(pids), 0
        for handle in handles:
            with contextlib.suppress(nvml.NVMLError):
                memory = nvml.nvmlDeviceGetMemoryInfo(handle)
                free = int(memory.free)
                self.free = free if self.free is None else min(free, self.free)
                self._size = max(self._size, int(memory.total))
                users = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
                held += sum(user.usedGpuMemory or 0 for user in users if user.pid in own)
        self.held = max(self.held, held)
        if held > MOST:
            raise LimitError("gpu_memory")

    def was_full(self, error: Exception | None) -> bool:
        """Whether memory held by others may have caused a failure."""
        if error is None or 2 * self.held > self._size > 0:
            return False
        says = _SAYS.search(str(error)) is not None
        return says if self.free is None else self.free < (_ENOUGH if says else _FULL)

    def judged(self, error: Exception) -> Exception:
        """The error, or OutOfMemory if others had filled the GPU."""
        if not self.was_full(error):
            return error
        left = "unknown" if self.free is None else f"{self.free >> 20} MiB"
        return OutOfMemory(
            f"the GPU ran out of memory twice, the second time after a wait: {left} were "
            f"free, and this process held {self.held >> 20} of its {MOST >> 20} MiB; hint: "
            "see which processes nvidia-smi lists, or grade fewer at a time"
        )


def wait_for_room(seconds: float = _PATIENCE) -> None:
    """Waits until every GPU has enough free memory, or until the time is up."""
    nvml, handles = _nvml()
    end = time.monotonic() + seconds
    while handles and time.monotonic() < end:
        with contextlib.suppress(nvml.NVMLError):
            if all(nvml.nvmlDeviceGetMemoryInfo(each).free >= _ENOUGH for each in handles):
                return
        cancel.go_on()
        time.sleep(0.5)
