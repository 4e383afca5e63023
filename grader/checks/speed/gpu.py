"""The GPU of this machine, as the grader's own process sees it: its limits, its state, and a lock
on it for timing.

Properties come from pycuda, clock rates and throttling from nvidia-ml-py. Both are optional;
without them the values are unknown, and a note says so. Neither makes a context on the device.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.sandbox import cancel

#: CUDA cores (float32 units) of a multiprocessor, by compute capability. An unlisted GPU gets the
#: most that any has: a floor that is too low accuses nobody.
_CORES = {(6, 0): 64, (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
_MOST_CORES = 128

#: Bits of NVML's clock event reasons that make a GPU slower than it could be.
_THROTTLING = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "heat",
    0x40: "heat, by the hardware",
    0x80: "power brake",
}


class GpuBusy(Exception):
    """Another process kept timing on the GPU for too long."""


@dataclass(frozen=True)
class Properties:
    """The limits of a GPU; 0 and "" are unknown.

    Attributes:
        name, bus: its name, and its address on the PCI bus.
        multiprocessors, cores: their number, and the CUDA cores of each.
        clock, memory_clock: the largest, in Hz.
        bus_bits: width of the memory bus.
        l2, memory: bytes.
    """

    name: str = ""
    bus: str = ""
    multiprocessors: int = 0
    cores: int = 0
    clock: float = 0
    memory_clock: float = 0
    bus_bits: int = 0
    l2: int = 0
    memory: int = 0

    @property
    def bandwidth(self) -> float:
        """Bytes a second over the memory's pins, at two transfers a clock."""
        return 2 * self.memory_clock * self.bus_bits / 8

    @property
    def rate(self) -> float:
        """Float32 operations a second of the CUDA cores; a multiply-add counts as two."""
        return 2 * self.clock * self.multiprocessors * self.cores

    def floor(self, traffic: float, operations: float) -> float:
        """Seconds that no float32 kernel can beat; 0 if unknown.

        Args:
            traffic: bytes that must be read and written. The L2 cache may hold some of them from
                before, or write them later, so its size does not count.
            operations: additions and multiplications. Tensor cores do more of them a second, in
                formats whose rounding the tolerance rejects. Three such products make up one of
                float32, so a kernel that does this can be below the floor honestly: an instructor
                must read its code.
        """
        seconds = [0.0]
        if self.bandwidth:
            seconds.append(max(0.0, traffic - self.l2) / self.bandwidth)
        if self.rate:
            seconds.append(operations / self.rate)
        return max(seconds)


@dataclass
class Gpu:
    """The GPU that a child calls gpu(0).

    Attributes:
        uuid: names its lock; "" if unknown.
        properties: its limits.
        notes: what is unknown, and what would tell it.
    """

    uuid: str = ""
    properties: Properties = field(default_factory=Properties)
    notes: list[str] = field(default_factory=list)
    _nvml: Any = None
    _handle: Any = None

    def state(self) -> dict[str, Any]:
        """Clock rates in MHz, temperature in degrees Celsius, power in W, what slows it down, and
        the number of processes on it; without what the driver does not tell."""
        if self._nvml is None:
            return {}
        ask: dict[str, Callable[[Any, Any], Any]] = {
            "clock_mhz": lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
            "memory_clock_mhz": lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM),
            "temperature": lambda n, h: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
            "power": lambda n, h: n.nvmlDeviceGetPowerUsage(h) / 1000,
            "throttling": lambda n, h: throttling(_reasons(n, h)),
            "processes": lambda n, h: len(n.nvmlDeviceGetComputeRunningProcesses(h)),
        }
        found = {}
        for name, question in ask.items():
            # Virtual machines and older drivers do not answer all of them.
            with contextlib.suppress(self._nvml.NVMLError, AttributeError):
                found[name] = question(self._nvml, self._handle)
        return found


def _reasons(nvml: Any, handle: Any) -> int:
    """The bits of what limits the clock rate now. NVML has renamed the call."""
    ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    return int((ask or nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle))


def throttling(bits: int) -> list[str]:
    """The words for those of NVML's bits that make a GPU slow."""
    return [words for bit, words in _THROTTLING.items() if bits & bit]


def find() -> Gpu:
    """The first GPU that CUDA shows to this process, with all that can be found out about it."""
    gpu = Gpu()
    try:
        gpu.properties = _properties(importlib.import_module("pycuda.driver"))
    except Exception as error:  # not installed, no driver, no device: each is its own exception
        why = "is not installed" if isinstance(error, ImportError) else f"fails: {error}"
        gpu.notes.append(f"pycuda {why}: no floor for times, no size of the L2 cache")
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        handle = _handle(nvml, gpu.properties.bus)
        gpu.uuid = _text(nvml.nvmlDeviceGetUUID(handle))
        gpu._nvml, gpu._handle = nvml, handle
    except Exception as error:
        why = "is not installed" if isinstance(error, ImportError) else f"fails: {error}"
        gpu.notes.append(f"nvidia-ml-py {why}: no clocks, and one timing at a time on all GPUs")
    return gpu


def _properties(driver: Any) -> Properties:
    """The properties from pycuda, which gives clock rates in kHz."""
    driver.init()
    device = driver.Device(0)
    names = driver.device_attribute
    capability = tuple(device.compute_capability())

    def ask(name: str) -> int:
        return int(device.get_attribute(getattr(names, name)))

    return Properties(
        name=device.name(),
        bus=device.pci_bus_id(),
        multiprocessors=ask("MULTIPROCESSOR_COUNT"),
        cores=_CORES.get(capability, _MOST_CORES),
        clock=1e3 * ask("CLOCK_RATE"),
        memory_clock=1e3 * ask("MEMORY_CLOCK_RATE"),
        bus_bits=ask("GLOBAL_MEMORY_BUS_WIDTH"),
        l2=ask("L2_CACHE_SIZE"),
        memory=device.total_memory(),
    )


def _handle(nvml: Any, bus: str) -> Any:
    """NVML's handle of the GPU at that address; without an address, of the first that CUDA
    shows."""
    if bus:
        return nvml.nvmlDeviceGetHandleByPciBusId(bus.encode())
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    if first.startswith("GPU-"):
        return nvml.nvmlDeviceGetHandleByUUID(first.encode())
    return nvml.nvmlDeviceGetHandleByIndex(int(first) if first.isdigit() else 0)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def is_shared() -> bool:
    """Whether several processes may use the GPUs at the same time, by nvidia-smi."""
    ask = ["nvidia-smi", "--query-gpu=compute_mode", "--format=csv,noheader"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    modes = done.stdout.split()
    return done.returncode == 0 and bool(modes) and set(modes) == {"Default"}


@contextlib.contextmanager
def turn(
    uuid: str, seconds: float, say: Callable[[str], None] = _say, folder: Path | None = None
) -> Iterator[float]:
    """Holds a lock for timing on a GPU, which also ends with the process.

    The lock is on a file in /tmp, which all users of the machine share, named by the UUID. GPUs
    without a known UUID share one lock.

    Yields:
        Seconds that this waited.

    Raises:
        GpuBusy: the lock was not free within `seconds`.
    """
    name = re.sub(r"[^\w-]", "_", uuid) or "unknown"
    path = (folder or Path("/tmp")) / f"dlsys-gpu-{name}.lock"
    file = _open(path)
    try:
        yield _wait(file, path, seconds, say)
    finally:
        os.close(file)  # which gives the lock back


def _open(path: Path) -> int:
    """Opens a file for a lock. Read access is enough, and works on another user's file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # somebody else was faster
            os.close(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644))
        return os.open(path, flags)


def _wait(file: int, path: Path, seconds: float, say: Callable[[str], None]) -> float:
    started, told = time.monotonic(), False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return time.monotonic() - started
        except BlockingIOError:
            waited = time.monotonic() - started
        if waited >= seconds:
            raise GpuBusy(f"the GPU was not free for timing within {seconds:g} s; see {path}")
        if not told:
            say(f"waiting for the GPU: somebody else is timing on it, {path} is locked")
            told = True
        cancel.go_on()
        time.sleep(0.05)
