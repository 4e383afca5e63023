"""Decides whether an array is right, and says in words what is wrong with it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

#: Rounding of one float32 operation, relative to its result.
ROUND = 2.0**-24
#: The same for float64.
ROUND64 = 2.0**-53

#: What stands in an output before the call: a signalling NaN. What is computed from it is another
#: NaN: on x86 and ARM this one with its quiet bit set.
POISON = np.uint32(0x7FA00001).view(np.float32)
_COMPUTED_WITH = np.uint32(0x7FE00001)

#: Most cells of a mismatch's picture, along each side.
_PICTURE = 32
_AT_ONCE = 1 << 16  # elements

Array = np.ndarray[Any, Any]
#: (values, what leads to them).
Mistakes = Iterable[tuple[Array, str]]


class Failure(Exception):
    """The result of a submission is wrong.

    Attributes:
        message: one sentence: what was called, and what is wrong.
        hint: what to look for, if the pattern is known.
        result: tells wrong results apart from each other; "" if there is none.
        facts: more for the report: under "mismatch" where the output is wrong.
        call, output: the call and its wrong output.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        result: str = "",
        facts: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.result = result
        self.facts = facts or {}
        self.call = ""
        self.output: Array | None = None


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


def require_array(got: Any, shape: tuple[int, ...], call: str) -> Array:
    """Raises Failure unless a fetched value is an array of floats of that shape.

    Call it before any computation with the value: an array of another shape, broadcast against the
    right one, may take any amount of memory.
    """
    if not isinstance(got, np.ndarray):
        kind = getattr(got, "type_name", type(got).__name__)
        text = getattr(got, "text", str(got))[:60]
        what = "array of floats" if kind == "ndarray" else "array"
        raise Failure(f"{call} returned no {what} but {kind} {text}")
    if got.shape != shape:
        raise Failure(f"{call} has shape {str(got.shape)[:200]}, expected {shape}")
    if got.dtype.kind != "f":
        raise Failure(f"{call} has type {got.dtype}, expected float")
    return got


def differing(got: Array, expected: Array, bound: Any) -> Array:
    """A mask of the elements of `got` that are not within `bound` of `expected`, which has the same
    shape. Where NaN is expected, NaN is right.

    Works on a part of the arrays at a time, so that intermediate values stay in the processor's
    cache.
    """
    wrong = np.empty(got.size, bool)
    flat = [array.reshape(-1) for array in (got, expected)]
    bounds = np.broadcast_to(bound, got.shape).reshape(-1) if np.ndim(bound) else None
    for start in range(0, got.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        with np.errstate(invalid="ignore"):
            error = np.subtract(flat[0][part], flat[1][part], dtype=np.float64)
            within = np.abs(error, out=error) <= (bound if bounds is None else bounds[part])
        np.logical_not(within, out=wrong[part])
    if wrong.any():
        wrong &= ~(np.isnan(flat[0]) & np.isnan(flat[1]))
    return wrong.reshape(got.shape)


def verify(got: Any, expected: Any, bound: Any, call: str) -> None:
    """Raises Failure unless got is an array within `bound` of expected, element by element.

    Args:
        got: what the child returned.
        expected: array of float64 or float32.
        bound: largest absolute difference, a number or an array like expected.
        call: what was called, for the message.
    """
    expected = np.asarray(expected)
    got = require_array(got, expected.shape, call)
    wrong = differing(got, expected, bound)
    if wrong.any():
        message = _describe(got, expected, wrong, call)
        with np.errstate(all="ignore"):  # of whatever was computed
            hint = pattern(got, expected, wrong, call)
        facts = {"mismatch": mismatch(wrong)} if wrong.ndim else {}
        failure = Failure(message, hint, hashlib.sha256(got.tobytes()).hexdigest(), facts)
        failure.call, failure.output = call, got
        raise failure


_OF_NUMPY = (
    "NaN comes of 0/0, inf/inf or inf - inf, of the root of a negative number, or of an array from "
    "np.empty that was not filled"
)


def verify_told(got: Any, expected: Array, bound: Any, call: str, mistakes: Mistakes) -> None:
    """As `verify`; if most of what is wrong has the values of known mistakes, the words of the one
    that explains the most are the hint.

    Args:
        mistakes: gone through only where something is wrong, so best a generator.
    """
    try:
        verify(got, expected, bound, call)
    except Failure as failure:
        if failure.output is None:
            failure.hint = failure.hint or _order_of_axes(got, expected)
            raise
        if np.isnan(got).any():  # no kernel is asked, and no output there before
            failure.hint = _OF_NUMPY
        wrong, least = differing(got, expected, bound), 0.5
        with np.errstate(all="ignore"):  # of what a mistake leads to
            for values, words in mistakes:
                if values.shape != got.shape:
                    continue
                part = 1 - float(differing(got, values, bound)[wrong].mean())
                if part > least:
                    least, failure.hint = part, words
        raise


def _order_of_axes(got: Any, expected: Array) -> str:
    """A hint for an array of another shape, if it is the right one in another order."""
    if isinstance(got, np.ndarray) and sorted(got.shape) == sorted(expected.shape):
        return "the extents are right, but in another order: which axis comes first?"
    return ""


def _describe(got: Array, expected: Array, wrong: Array, call: str) -> str:
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    pair = float(got[first]), float(expected[first])
    values = [f"{value:.7g}" for value in pair]
    if values[0] == values[1]:  # they differ further on
        values = [f"{value:.17g}" for value in pair]
    return (
        f"{call}: {wrong.sum():,} of {wrong.size:,} elements differ, the first is "
        f"{list(first)}: got {values[0]}, expected {values[1]}"
    )


def mismatch(wrong: Array) -> dict[str, Any]:
    """A coarse picture of where an array of at least one dimension is wrong.

    Shows the array as a matrix: the last axis across, the others down. A vector is folded into
    lines.

    Returns:
        shape: of the array.
        rows, columns: of the matrix.
        cells: at most 32 rows of at most 32 cells, each the fraction of wrong elements there; None
            past a vector's end.
    """
    if wrong.ndim == 1:
        columns = _PICTURE * -(-wrong.size // _PICTURE**2) if wrong.size > _PICTURE else wrong.size
    else:
        columns = wrong.shape[-1]
    rows = -(-wrong.size // columns)
    padded = np.zeros(rows * columns, bool)
    padded[: wrong.size] = wrong.reshape(-1)
    sums = _binned(padded, rows, columns)
    counts = _binned(np.arange(rows * columns) < wrong.size, rows, columns)
    # rounded up, so that one wrong element of millions is seen
    with np.errstate(invalid="ignore"):
        fractions = np.ceil(1e4 * sums / counts) / 1e4
    cells = [[None if np.isnan(f) else float(f) for f in line] for line in fractions]
    return {"shape": list(wrong.shape), "rows": rows, "columns": columns, "cells": cells}


def _binned(flat: Array, rows: int, columns: int) -> Array:
    """The number of true elements in each cell of the picture."""
    lines = np.add.reduceat(flat.reshape(rows, columns), _starts(columns), 1, dtype=np.int64)
    return np.add.reduceat(lines, _starts(rows), 0)


def _starts(size: int) -> list[int]:
    """The index where each cell begins along an axis; at most 32 cells."""
    cells = min(size, _PICTURE)
    return [i * size // cells for i in range(cells)]


def pattern(got: Array, expected: Array, wrong: Array, call: str = "") -> str:
    """A hint if the differences follow a known pattern, else "".

    Args:
        got, expected, wrong: arrays of one shape; `wrong` is the mask of differences.
        call: the call in words; its sizes are looked for in the differences.
    """
    hint = _missing_mean(got, expected, call)
    for recognise in _PATTERNS:
        hint = hint or recognise(got, expected, wrong)
    return hint


def left_over(got: Array) -> Array:
    """A mask of the NaN that was in the output before the call. A processor that computes NaN makes
    another NaN of it, on x86 and on NVIDIA's GPUs."""
    if got.dtype not in (np.float32, np.float64):
        return np.isnan(got)
    bits = _bits(got)
    return np.asarray((bits == _bits(np.asarray(np.nan, got.dtype))) | (bits == _bits(POISON)))


def _bits(values: Any) -> Array:
    values = np.ascontiguousarray(values)
    return np.asarray(values.view(np.dtype(f"u{values.itemsize}")))


def _not_written(got: Array, expected: Array, wrong: Array) -> str:
    missing = left_over(got) & ~np.isnan(expected)
    if not missing.any():
        return ""
    flat = missing.reshape(-1)
    first = int(np.argmax(flat))
    if flat.all():
        return (
            "no element was written: the output still holds the NaN from before the call; "
            "is the kernel launched, and did the launch succeed?"
        )
    if got.ndim > 1 and len(got) > 2 and missing[1:].all() and not missing[0].any():
        return "only row 0 was written; do the blocks, or a loop, go over all rows?"
    if first > 0 and flat[first:].all():
        blocks = next((n for n in (1024, 512, 256, 128, 64, 32) if first % n == 0), 0)
        so_far = f" ({first // blocks} times {blocks})" if blocks and first > blocks else ""
        return (
            f"elements from {first}{so_far} on were never written; "
            "is the number of blocks rounded up, so that the last partial block runs?"
        )
    return "some elements were never written: they still hold the NaN from before the call"


def _not_a_number(got: Array, expected: Array, wrong: Array) -> str:
    if not (np.isnan(got) & ~np.isnan(expected)).any():
        return ""
    if got.dtype == np.float32 and (_bits(got) == _COMPUTED_WITH).any():
        return (
            "the NaN that the output held before the call went into the result: a sum must "
            "start at 0, and += reads the old value"
        )
    return (
        "the computation itself makes NaN, by 0/0, inf/inf or inf - inf: does exp overflow, "
        "does it read memory that nobody wrote, or does += add to an output that nobody set "
        "to 0?"
    )


def _same_everywhere(got: Array, expected: Array, wrong: Array) -> str:
    if got.size > 1 and np.all(got == got.reshape(-1)[0]) and np.ptp(expected) > 0:
        return f"every element is {got.reshape(-1)[0]:.7g}"
    return ""


def _near(a: Array, b: Array) -> bool:
    scale = np.abs(b).max(initial=0)  # small elements of a sum are no more exact than large ones
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-4, atol=1e-6 + 1e-5 * scale))


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
    if not wrong[0].any() and wrong[1:].all():
        return "only row 0 is right"
    return ""


def _edges(got: Array, expected: Array, wrong: Array) -> str:
    """A hint if only elements past the last whole tile are wrong."""
    if got.ndim != 2:
        return ""
    for tile in (32, 16):
        rows, columns = (size // tile * tile for size in got.shape)
        if rows and columns and not wrong[:rows, :columns].any():
            return (
                f"the {rows} x {columns} elements in whole tiles of {tile} are right, those past "
                "them are not: are the tile's edges guarded?"
            )
    return ""


def _one_off(got: Array, expected: Array, wrong: Array) -> str:
    flat, right = got.reshape(-1), expected.reshape(-1)
    if got.size < 4 or np.ptp(right) == 0:
        return ""
    if _near(flat[1:], right[:-1]):
        return "every element is one place too late; is the index one too large?"
    if _near(flat[:-1], right[1:]):
        return "every element is one place too early; is the index one too small?"
    return ""


def _ratio(got: Array, expected: Array) -> float | None:
    """The number by which every element must be divided to be right, if there is one."""
    usable = np.abs(expected) > 1e-3 * np.abs(expected).max(initial=0)
    if not usable.any() or not np.isfinite(got).all():
        return None
    ratios = got[usable] / expected[usable]
    ratio = float(np.median(ratios))
    same = abs(ratio - 1) > 1e-3 and np.allclose(ratios, ratio, rtol=1e-3, atol=0)
    return ratio if same else None


def _missing_mean(got: Array, expected: Array, call: str) -> str:
    """A hint if that factor is a size in the call, or 1 over it."""
    ratio = _ratio(got, expected)
    sizes = {int(word) for word in re.findall(r"\d{1,9}", call)} | set(got.shape)
    for size in sorted(sizes - {0, 1}):
        if ratio is not None and abs(ratio / size - 1) < 1e-4:
            what = "every element" if got.size > 1 else "the result"
            return f"{what} is {size} times what it should be: is the mean missing, 1/{size}?"
        if ratio is not None and abs(ratio * size - 1) < 1e-4:
            what = "every element" if got.size > 1 else "the result"
            return f"{what} is 1/{size} of what it should be: is it divided by {size} twice?"
    return ""


def _factor(got: Array, expected: Array, wrong: Array) -> str:
    ratio = _ratio(got, expected)
    if ratio is None or got.size < 2:
        return ""
    return f"every element is {ratio:.4g} times what it should be"


def _shift(got: Array, expected: Array, wrong: Array) -> str:
    if got.size < 2 or not np.isfinite(got).all():
        return ""
    difference = got - expected
    scale = np.abs(expected).max(initial=0)
    offset = float(np.median(difference))
    if abs(offset) > 1e-3 * scale and np.allclose(difference, offset, atol=1e-3 * abs(offset)):
        return f"every element is too large by {offset:.4g}"
    return ""


_PATTERNS = (
    _not_written, _not_a_number, _same_everywhere, _transposed, _rows_repeat, _one_off, _factor,
    _shift, _edges,
)  # fmt: skip
