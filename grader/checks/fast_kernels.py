"""The kernels of part 3: that they are right. How fast they are is asked in speed/."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.checks.harness.compare import Array, sum_bound
from grader.checks.harness.context import Context
from grader.checks.harness.kernel_case import Case, KernelCheck
from grader.checks.harness.traits import declared
from grader.checks.kernels import softmax_cases

#: m, n, k around the ends of tiles of 32, 64 and 128; one that no tile fits in.
_PRODUCTS = (
    (33, 65, 40), (31, 1, 129), (127, 10, 100), (128, 64, 96), (65, 129, 17), (1, 33, 7),
    (1, 1, 1), (200, 256, 300), (5, 2500, 3), (2500, 5, 4),
)  # fmt: skip
#: Around the ends of warps, blocks and vectors of four.
_SUMMED = (
    (33, 1025), (257, 129), (1, 33), (65, 32), (9, 31), (1025, 3), (5, 4096), (1, 1), (3, 100_003),
)  # fmt: skip


@KernelCheck
def fast_matrix_multiply(ctx: Context) -> Iterator[Case]:
    """fast_matrix_multiply is right for sizes that no tile divides"""

    def judge(a: Array, b: Array) -> tuple[Array, Any]:
        wide = a.astype(np.float64), b.astype(np.float64)
        return wide[0] @ wide[1], sum_bound(len(b), np.abs(wide[0]) @ np.abs(wide[1]))

    def draw(m: int, n: int, k: int) -> list[Any]:
        return [ctx.uniform((m, k), -10, 10), ctx.uniform((k, n), -10, 10)]

    for size in (*_PRODUCTS, ctx.sizes(150, 150, 150), ctx.sizes(300, 90, 20)):
        m, n, k = ctx.sized(tuple(size))
        yield Case("fast_matrix_multiply", functools.partial(draw, m, n, k), judge, (m, n))


@KernelCheck
def fast_row_sum(ctx: Context) -> Iterator[Case]:
    """fast_row_sum adds up each row of a matrix, for any number of rows and columns"""

    def judge(x: Array) -> tuple[Array, Any]:
        wide = x.astype(np.float64)
        return wide.sum(axis=1), sum_bound(x.shape[1], np.abs(wide).sum(axis=1))

    def draw(shape: tuple[int, ...]) -> list[Any]:
        return [ctx.uniform(shape, -1, 3)]

    for size in (*_SUMMED, ctx.sizes(5, 5000), ctx.sizes(300, 300)):
        shape = ctx.sized(size)
        yield Case("fast_row_sum", functools.partial(draw, shape), judge, shape[:1])


@KernelCheck
def fast_softmax(ctx: Context) -> Iterator[Case]:
    """fast_softmax works on each row, short or long, without overflow"""
    return softmax_cases(ctx, "fast_softmax")


CHECKS = declared(globals())
