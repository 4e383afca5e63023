"""Checks a child's answers before anything is computed with them.

The student's Python runs in the child and may answer anything: other types, other counts, arrays
instead of numbers. That is a failure of the submission, never an error of the grader.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from grader.checks.harness.compare import Array, Failure

#: Bytes of an answer that holds small arrays or none: a wrong shape may well be larger than a right
#: one, and is to be told as such.
SMALL = 1 << 20
_MOST_DIMENSIONS = 64
_MOST_SHOWN, _MOST_READ = 80, 1000


def room(arrays: Iterable[Array]) -> int:
    """The bytes that an answer may take if it should hold arrays of these sizes."""
    return SMALL + sum(array.nbytes for array in arrays)


def shown(value: Any) -> str:
    """The start of an answer in one line, for a message."""
    text = " ".join(str(value)[:_MOST_READ].splitlines())
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


def shape_of(value: Any) -> tuple[int, ...] | None:
    """An answer as a shape, which is a list or tuple of ints; None if it is anything else."""
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_DIMENSIONS:
        return None
    if not all(isinstance(size, (int, np.integer)) for size in value):
        return None
    return tuple(int(size) for size in value)


def plain(value: Any) -> Any:
    """An answer with numpy's integers as ints, and its arrays, tuples and lists as lists."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype.kind in "iu" or not value.size else value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return int(value) if isinstance(value, np.integer) else value


def require_int(value: Any, what: str) -> int:
    """Raises Failure unless an answer is an int and no bool."""
    if type(value) is not int:
        raise Failure(f"{what} is {shown(value)}, expected an int")
    return value


def require_number(value: Any, what: str) -> float:
    """The number in a fetched array of one float.

    Raises:
        Failure: the answer is anything else.
    """
    if not isinstance(value, np.ndarray):
        raise Failure(f"{what} is not an array but {shown(value)}")
    if value.size != 1:
        raise Failure(f"{what} has shape {value.shape}, expected (1,)")
    if value.dtype.kind != "f":
        raise Failure(f"{what} has type {value.dtype}, expected float")
    return float(value.item())
