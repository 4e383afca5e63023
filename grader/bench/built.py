"""The solution, as it is built."""

from __future__ import annotations

from pathlib import Path

from grader.base.errors import UsageError

KIT = Path(__file__).resolve().parents[2]
SOLUTION = KIT / "solution"
LIBRARY = "build/lib/libc_runtime_api.so"


class BenchError(UsageError):
    """The solution can't be measured; the message says what to do."""


def check_built() -> None:
    """Looks whether there is a library.

    Raises:
        BenchError: there is none.
    """
    if not (SOLUTION / LIBRARY).is_file():
        raise BenchError(f"{SOLUTION / LIBRARY} does not exist; hint: make -C {SOLUTION}")


def gpu_name() -> str:
    """What the device of the build is called: GPU, or emulated GPU."""
    from dlsys import ndarray

    return "emulated GPU" if ndarray.is_emulated() else "GPU"
