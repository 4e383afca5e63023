"""What a measurement ran on: processor, GPU, versions, and the roofs of both."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from grader import __version__

from .built import gpu_name

#: Names of cudaDeviceGetAttribute.
_ATTRIBUTES = {"clock_khz": 13, "multiprocessors": 16, "l2_bytes": 38, "major": 75, "minor": 76}
#: Float32 lanes of a multiprocessor, by compute capability (CUDA C++ Programming Guide, "Arithmetic
#: Instructions"); others have 128.
_LANES = {"7.0": 64, "7.2": 64, "7.5": 64, "8.0": 64}


def cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def version_of(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def described(library: Any) -> dict[str, Any]:
    """Facts that a measurement is to keep: devices, versions, the day."""
    runtime, driver = ctypes.c_int(), ctypes.c_int()
    library.cudaRuntimeGetVersion(ctypes.byref(runtime))
    library.cudaDriverGetVersion(ctypes.byref(driver))
    is_emulated = gpu_name() == "emulated GPU"
    found: dict[str, Any] = {
        "backend": "emulated" if is_emulated else "cuda",
        "cuda_runtime": runtime.value,
        "cuda_driver": driver.value,
        "processor": processor(),
        "processors": cores(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": version_of("torch"),
        "jax": version_of("jax"),
        "kit": __version__,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
    }
    return {**found, **({"name": "Emulated GPU"} if is_emulated else _gpu_facts(library))}


def _gpu_facts(library: Any) -> dict[str, Any]:
    found = {name: _attribute(library, number) for name, number in _ATTRIBUTES.items()}
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    library.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    name, driver = _said_by_the_driver()
    return {
        "name": name,
        "driver": driver,
        "compute_capability": f"{found.pop('major')}.{found.pop('minor')}",
        "memory_bytes": total.value,
        **found,
    }


def _attribute(library: Any, number: int) -> int:
    value = ctypes.c_int()
    library.cudaDeviceGetAttribute(ctypes.byref(value), number, 0)
    return value.value


def _said_by_the_driver() -> tuple[str, str]:
    """(name of the first GPU, version of the driver); question marks where nothing is said."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    name, _, driver = (said.splitlines() or ["?, ?"])[0].partition(", ")
    return name, driver


def float32_peak(facts: dict[str, Any]) -> float | None:
    """Operations a second of a GPU's float32 lanes at its highest clock; None where unknown."""
    if not facts.get("clock_khz"):
        return None
    lanes = _LANES.get(facts["compute_capability"], 128)
    return float(2 * lanes * facts["multiprocessors"] * facts["clock_khz"] * 1000)
