"""Points for the speed of part 3's kernels: by the clock on a GPU, else by what they move."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import ROUND, Array, sum_bound
from grader.checks.harness.traits import Traits, declared
from grader.checks.speed.batches import Sheet, TimedCall
from grader.checks.speed.checks import (
    BACKENDS,
    block_of,
    columns_of,
    most_of,
    product,
    rows_of,
    softmax,
    time_beside,
)
from grader.checks.speed.counted import CountedCall, compare

#: Every call that may be counted.
CALLS: list[CountedCall] = []


def check(
    counted: Callable[[int], CountedCall], most: int
) -> Callable[[Callable[[ChildContext], TimedCall]], Callable[[ChildContext], None]]:
    """Decorator that makes a check of a function that gives a `TimedCall`; on the emulated GPU
    that which `counted` gives for a number of rows is counted, `most` or a few less."""
    CALLS.extend(counted(most - fewer) for fewer in range(most // 16 + 1))

    def declare(case: Callable[[ChildContext], TimedCall]) -> Callable[[ChildContext], None]:
        @functools.wraps(case)
        def asked(ctx: ChildContext) -> None:
            if ctx.backend not in BACKENDS:
                return compare(ctx, counted(rows_of(ctx, 0, most)))
            ctx.require_harmless()
            time_beside(ctx, case(ctx))

        asked.traits = Traits(timed=frozenset(BACKENDS))  # type: ignore[attr-defined]
        return asked

    return declare


def _product_of(m: int) -> CountedCall:
    def judge(a: Array, b: Array) -> tuple[Array, Any]:
        return a.astype(np.float64) @ b, sum_bound(len(b), np.abs(a).astype(np.float64) @ np.abs(b))

    return CountedCall("fast_matrix_multiply", ((m, 128), (128, 256)), (m, 256), judge)


@check(_product_of, 256)
def speed_fast_matrix_multiply(ctx: ChildContext) -> TimedCall:
    """fast_matrix_multiply is as fast as the reference, by the clock or by what is counted"""
    m, k, n = rows_of(ctx, 2048, 48), columns_of(ctx, 2048), columns_of(ctx, 2048)
    return TimedCall(
        "fast_matrix_multiply", "DLGpuFastMatrixMultiply", ((m, k), (k, n)), (m, n),
        lambda inputs, out: [*inputs, out], product,
        traffic=4.0 * (m * k + k * n + m * n), operations=2.0 * m * k * n,
        pool=10 if ctx.backend == "cuda" else 4, most=10 if ctx.backend == "cuda" else 4,
    )  # fmt: skip


def _row_sums_of(rows: int) -> CountedCall:
    def judge(x: Array) -> tuple[Array, Any]:
        wide = x.astype(np.float64)
        return wide.sum(axis=1), sum_bound(x.shape[1], np.abs(wide).sum(axis=1))

    return CountedCall("fast_row_sum", ((rows, 1024),), (rows,), judge)


def _row_sums(sheets: list[Sheet], start: int, stop: int) -> tuple[Array, Any]:
    return sheets[0].row_sums(), sum_bound(sheets[0].shape[1], sheets[0].row_sums(np.abs))


@check(_row_sums_of, 128)
def speed_fast_row_sum(ctx: ChildContext) -> TimedCall:
    """fast_row_sum is as fast as the reference, by the clock or by what is counted"""
    rows, columns = rows_of(ctx, 16384, 48), columns_of(ctx, 4096)
    return TimedCall(
        "fast_row_sum", "DLGpuFastRowSum", ((rows, columns),), (1, rows),
        lambda inputs, out: [inputs[0], out], _row_sums,
        traffic=4.0 * rows * columns, operations=1.0 * rows * columns, pool=3,
        block=block_of(ctx, 1024), most=most_of(ctx), whole=True,
    )  # fmt: skip


def _softmax_of(rows: int) -> CountedCall:
    def judge(x: Array) -> tuple[Array, Any]:
        powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        expected = powers / powers.sum(axis=1, keepdims=True)
        return expected, sum_bound(x.shape[1], expected) + 20 * ROUND * expected

    return CountedCall("fast_softmax", ((rows, 1024),), (rows, 1024), judge)


@check(_softmax_of, 128)
def speed_fast_softmax(ctx: ChildContext) -> TimedCall:
    """fast_softmax is as fast as the reference, by the clock or by what is counted"""
    rows, columns = rows_of(ctx, 65536, 48), columns_of(ctx, 1024)
    return TimedCall(
        "fast_softmax", "DLGpuFastSoftmax", ((rows, columns),), (rows, columns),
        lambda inputs, out: [inputs[0], out], softmax,
        traffic=8.0 * rows * columns, operations=0, pool=2, block=block_of(ctx, 4096),
        most=most_of(ctx),
    )  # fmt: skip


CHECKS = declared(globals())
