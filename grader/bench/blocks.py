"""How the time of a kernel changes with its threads a block: launches blocks.cu."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlsys import ndarray
from dlsys._base import _LIB
from dlsys.backend.rows import address_of
from dlsys.occupancy import CAPABILITIES, Launch, occupancy
from dlsys.occupancy.compiled import gpu_capability

from .built import KIT, SOLUTION, BenchError
from .timing import Run, by_events, timed

#: In the order of blocks.cu: name -> n of the arrays on a GPU and on the emulated one.
KERNELS = {
    "add": (8192, 256),
    "sum over rows": (8192, 256),
    "softmax": (8192, 128),
    "matmul, naive": (1024, 64),
}
#: Those with a block a row, and four bytes of dynamic shared memory a thread.
BY_ROWS = (1, 2)
THREADS = (32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class BlockKernel:
    """One kernel, on arrays of n x n."""

    library: Any
    number: int
    n: int

    def call(self, threads: int, arrays: list[Any]) -> Run:
        """A launch; raises a BenchError where it is refused."""
        places = [ctypes.c_void_p(address_of(each)) for each in arrays]

        def launch() -> None:
            error = self.library.run_blocks(self.number, self.n, threads, *places)
            if error:
                raise BenchError(f"{threads} threads a block: CUDA error {error}")

        return launch

    def takes(self) -> dict[str, int]:
        """Registers of a thread, and bytes of static shared memory of a block."""
        registers, shared = ctypes.c_int(), ctypes.c_int()
        error = self.library.attributes_of_blocks(
            self.number, ctypes.byref(registers), ctypes.byref(shared)
        )
        if error:
            raise BenchError(f"the attributes of a kernel: CUDA error {error}")
        return {"registers": registers.value, "shared": shared.value}


def compiled(source: Path, name: str) -> Path:
    """The library of a .cu file, for the device of the solution; compiled where it is not there.

    Raises:
        BenchError: it does not compile.
    """
    kind = "emulated" if ndarray.is_emulated() else "cuda"
    target = KIT / "build" / "bench" / f"{name}-{kind}.so"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        built = target.with_suffix(f".{os.getpid()}")
        command = ["make", "-s", "--no-print-directory", "-C", str(SOLUTION), "kernels",
                   f"PYTHON={sys.executable}", f"SOURCE={source}", f"TARGET={built}"]  # fmt: skip
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode or not built.exists():
            raise BenchError(f"{source} does not compile:\n{(done.stdout + done.stderr)[-2000:]}")
        built.replace(target)
    return target


def occupied(number: int, threads: int, takes: dict[str, Any]) -> float | None:
    """The occupancy of a launch on this GPU, from 0 to 1; None where its rules are not known."""
    on = CAPABILITIES.get(gpu_capability() or "")
    dynamic = 4 * threads if number in BY_ROWS else 0
    if on is None:
        return None
    return float(
        occupancy(Launch(threads, takes["registers"], takes["shared"] + dynamic), on).share
    )


def points(budget: float, most_n: int | None = None) -> list[dict[str, Any]]:
    """A point for each kernel and number of threads; `most_n` bounds the arrays."""
    library = ctypes.CDLL(str(compiled(Path(__file__).with_name("blocks.cu"), "blocks")))
    is_emulated, found = ndarray.is_emulated(), []
    random = np.random.default_rng(3)
    for number, (name, sizes) in enumerate(KERNELS.items()):
        n = min(sizes[is_emulated], most_n or sizes[0])
        kernel = BlockKernel(library, number, n)
        values = random.random((n, n), np.float32)
        arrays = [ndarray.array(values, ndarray.gpu(0)) for _ in range(2)]
        arrays.append(ndarray.empty((n, n), ndarray.gpu(0)))
        takes: dict[str, Any] = {} if is_emulated else kernel.takes()
        for threads in THREADS:
            if takes:
                takes["occupancy"] = occupied(number, threads, takes)
            timing = timed(by_events(kernel.call(threads, arrays), _LIB), budget)
            found.append({
                "what": "blocks", "kernel": name, "n": n, "threads": threads, "us": timing.us,
                "samples": timing.samples, "clock": "events", **takes,
            })  # fmt: skip
    return found
