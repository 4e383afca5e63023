"""Decides whether an array is right, and says in words what is wrong with it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

#: Rounding of one float32 operation, relative to its result.
ROUND = 2.0**-24
#: The same for float64.
ROUND64 = 2.0**-53

Array = np.ndarray[Any, Any]


class Failure(Exception):
    """A submission's result is wrong.

    Attributes:
        message: one sentence: what was called, and what is wrong.
        hint: what to look for, if the pattern is known.
        result: tells apart one wrong result from another, "" if there is none.
    """

    def __init__(self, message: str, hint: str = "", result: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.result = result


def sum_bound(terms: int, magnitude: Any, rounding: float = ROUND) -> Any:
    """Bound of the error of a float sum.

    A sum of n terms in any order errs by about sqrt(n) roundings of the sum of the absolute
    values. Inputs rounded to half precision err by 2**13 roundings of each term, which do not
    cancel to less than this for the sizes that are checked; a test shows it.

    Args:
        terms: number of terms.
        magnitude: sum of their absolute values; an array gives a bound for each element.
        rounding: ROUND or ROUND64.
    """
    return rounding * (8 + 2 * np.sqrt(terms)) * magnitude


def verify(got: Any, expected: Any, bound: Any, call: str) -> None:
    """Raises Failure unless got is an array within `bound` of expected, element by element.

    Args:
        got: what the child returned.
        expected: array of float64 or float32.
        bound: largest absolute difference, a number or an array like expected.
        call: what was called, for the message.
    """
    expected = np.asarray(expected)
    if not isinstance(got, np.ndarray):
        raise Failure(f"{call} returned no array but {type(got).__name__} {str(got)[:60]}")
    if got.shape != expected.shape:
        raise Failure(f"{call} has shape {got.shape}, expected {expected.shape}")
    if got.dtype.kind != "f":
        raise Failure(f"{call} has type {got.dtype}, expected float")
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(got.astype(np.float64) - expected) <= bound)
    if wrong.any():
        message, hint = _describe(got, expected, wrong, call), pattern(got, expected, wrong)
        raise Failure(message, hint, hashlib.sha256(got.tobytes()).hexdigest())


def _describe(got: Array, expected: Array, wrong: Array, call: str) -> str:
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{call}: {wrong.sum():,} of {wrong.size:,} elements differ, the first is "
        f"{list(first)}: got {got[first]:.7g}, expected {expected[first]:.7g}"
    )


def pattern(got: Array, expected: Array, wrong: Array) -> str:
    """A hint where the differences follow a known pattern, else ""."""
    for recognise in (_not_written, _same_everywhere, _transposed, _rows_repeat, _factor, _shift):
        hint = recognise(got, expected, wrong)
        if hint:
            return hint
    return ""


def _not_written(got: Array, expected: Array, wrong: Array) -> str:
    missing = np.isnan(got) & ~np.isnan(expected)
    if not missing.any():
        return ""
    flat = missing.reshape(-1)
    first = int(np.argmax(flat))
    if flat.all():
        return "no element was written; is the kernel launched, and did the launch succeed?"
    if first > 0 and flat[first:].all():
        return (
            f"elements from {first} on were never written; "
            "is the number of blocks rounded up, so that the last partial block runs?"
        )
    return "NaN was in the output before the call: some elements were never written"


def _same_everywhere(got: Array, expected: Array, wrong: Array) -> str:
    if got.size > 1 and np.all(got == got.reshape(-1)[0]) and np.ptp(expected) > 0:
        return f"every element is {got.reshape(-1)[0]:.7g}"
    return ""


def _near(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-4, atol=1e-6))


def _transposed(got: Array, expected: Array, wrong: Array) -> str:
    if (
        got.ndim == 2
        and min(got.shape) > 1
        and _near(got, expected.T.reshape(-1).reshape(got.shape))
    ):
        return "the result is transposed"
    return ""


def _rows_repeat(got: Array, expected: Array, wrong: Array) -> str:
    if got.ndim < 2 or len(got) < 2 or _near(expected, np.broadcast_to(expected[0], got.shape)):
        return ""
    if _near(got, np.broadcast_to(got[0], got.shape)):
        return "every row equals row 0; is the row part of the index?"
    if _near(got[0], expected[0]) and wrong[1:].all():
        return "only row 0 is right"
    return ""


def _factor(got: Array, expected: Array, wrong: Array) -> str:
    usable = np.abs(expected) > 1e-3 * np.abs(expected).max(initial=0)
    if usable.sum() < 2 or not np.isfinite(got).all():
        return ""
    ratios = got[usable] / expected[usable]
    ratio = float(np.median(ratios))
    if abs(ratio - 1) > 1e-3 and np.allclose(ratios, ratio, rtol=1e-3, atol=0):
        return f"every element is {ratio:.4g} times what it should be"
    return ""


def _shift(got: Array, expected: Array, wrong: Array) -> str:
    if got.size < 2 or not np.isfinite(got).all():
        return ""
    difference = got - expected
    scale = np.abs(expected).max(initial=0)
    offset = float(np.median(difference))
    if abs(offset) > 1e-3 * scale and np.allclose(difference, offset, atol=1e-3 * abs(offset)):
        return f"every element is too large by {offset:.4g}"
    return ""
