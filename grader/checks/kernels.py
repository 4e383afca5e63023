"""The twelve kernels, each against numpy in float64, on fresh random inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from grader.checks.compare import ROUND, Array, sum_bound, verify
from grader.checks.context import Context, Session

Shape = tuple[int, ...]

#: Around the ends of warps and blocks, several ranks. A telling one first: it is reported.
ODD_SHAPES: tuple[Shape, ...] = (
    (1025,), (257, 129), (33,), (32,), (31,), (127,), (128,), (129,), (3, 5, 7), (2, 3, 5, 7), (1,),
)  # fmt: skip
#: More rows than a block has threads, a single column, a single row, odd everything.
ODD_MATRICES: tuple[Shape, ...] = (
    (33, 31), (1025, 10), (127, 129), (1, 1025), (2049, 3), (3, 257), (40, 1), (1, 1),
)  # fmt: skip


def _shapes(ctx: Context, published: Shape, odd: Iterable[Shape]) -> list[Shape]:
    return [ctx.sized(shape) for shape in ([*odd, published] if ctx.thorough else [published])]


def array_set(ctx: Context) -> None:
    """array_set fills arrays of any size and rank"""
    with ctx.session() as session:
        for shape in _shapes(ctx, (500, 200), ODD_SHAPES):
            value = float(np.float32(ctx.random.uniform(-9, 9)))
            arr = session.upload(np.full(shape, np.nan))
            with session.remote.doing(f"gpu_op.array_set({shape}, {value:.4g})"):
                session.gpu_op.array_set(arr, value)
                got = session.remote.fetch(arr.asnumpy())
            verify(got, np.full(shape, value), 0, f"gpu_op.array_set({shape}, {value:.4g})")


def broadcast_to(ctx: Context) -> None:
    """broadcast_to tiles its input along a new first axis, for any size and rank"""
    odd: list[tuple[Shape, int]] = [((129, 3), 5), ((31,), 3), ((33,), 1), ((256,), 1000)]
    odd += [((3, 5, 7), 2), ((1025,), 2), ((1,), 33)]
    with ctx.session() as session:
        for shape, copies in [*(odd if ctx.thorough else []), ((200, 300), 130)]:
            out = ctx.sized((copies, *shape))
            x = ctx.uniform(out[1:])
            got, call = session.kernel("broadcast_to", x, out=out)
            verify(got, np.broadcast_to(x, out), 0, call)


def reduce_sum_axis_zero(ctx: Context) -> None:
    """reduce_sum_axis_zero sums every row, for odd sizes too; a vector sums to shape (1,)"""
    odd: tuple[Shape, ...] = (
        (33, 31), (1025,), (31,), (1, 5), (129, 1), (1025, 10), (3, 1025), (7, 2, 3, 5), (1,),
    )  # fmt: skip
    with ctx.session() as session:
        for shape in _shapes(ctx, (500, 200, 100), odd):
            x = ctx.uniform(shape, -20, 20)
            wide = x.astype(np.float64)
            expected = wide.sum(axis=0, keepdims=len(shape) == 1)
            magnitude = np.abs(wide).sum(axis=0, keepdims=len(shape) == 1)
            got, call = session.kernel("reduce_sum_axis_zero", x, out=expected.shape)
            verify(got, expected, sum_bound(shape[0], magnitude), call)


def _elementwise(
    ctx: Context,
    name: str,
    formula: Callable[..., Any],
    published: Shape,
    inputs: Callable[[Shape], list[Any]],
) -> None:
    """One element-wise kernel: exact up to one rounding, also over each of its inputs."""
    with ctx.session() as session:
        for shape in _shapes(ctx, published, ODD_SHAPES):
            args = inputs(shape)
            expected = np.asarray(formula(*args))
            bound = 2 * ROUND * np.abs(expected)
            got, call = session.kernel(name, *args, out=shape)
            verify(got, expected, bound, call)
        if ctx.thorough:
            _overwriting(session, name, formula, lambda shape: inputs(ctx.sized(shape)))


def _overwriting(
    session: Session,
    name: str,
    formula: Callable[..., Any],
    inputs: Callable[[Shape], list[Any]],
) -> None:
    for position, arg in enumerate(inputs((1,))):
        if isinstance(arg, np.ndarray):
            args = inputs((129, 9))
            expected = np.asarray(formula(*args))
            got, call = session.kernel(name, *args, overwrites=position)
            verify(got, expected, 2 * ROUND * np.abs(expected), call)


def matrix_elementwise_add(ctx: Context) -> None:
    """matrix_elementwise_add adds arrays of any shape, also in place"""
    _elementwise(
        ctx, "matrix_elementwise_add", lambda a, b: np.add(a, b, dtype=np.float32), (500, 200),
        lambda shape: [ctx.uniform(shape, -10, 10), ctx.uniform(shape, -10, 10)],
    )  # fmt: skip


def matrix_elementwise_multiply(ctx: Context) -> None:
    """matrix_elementwise_multiply multiplies arrays of any shape, also in place"""
    _elementwise(
        ctx, "matrix_elementwise_multiply", lambda a, b: np.multiply(a, b, dtype=np.float64),
        (500, 200), lambda shape: [ctx.uniform(shape, -10, 10), ctx.uniform(shape, -10, 10)],
    )  # fmt: skip


def _constant(ctx: Context) -> float:
    return float(np.float32(ctx.random.uniform(1, 5) * ctx.random.choice([-1, 1])))


def matrix_elementwise_add_by_const(ctx: Context) -> None:
    """matrix_elementwise_add_by_const adds a number to arrays of any shape, also in place"""
    _elementwise(
        ctx, "matrix_elementwise_add_by_const", lambda a, c: a + np.float32(c), (2000, 3000),
        lambda shape: [ctx.uniform(shape, 0, 10), _constant(ctx)],
    )  # fmt: skip


def matrix_elementwise_multiply_by_const(ctx: Context) -> None:
    """matrix_elementwise_multiply_by_const scales arrays of any shape, also in place"""
    _elementwise(
        ctx, "matrix_elementwise_multiply_by_const", lambda a, c: a.astype(np.float64) * c,
        (2000, 3000), lambda shape: [ctx.uniform(shape, 0, 10), _constant(ctx)],
    )  # fmt: skip


def matrix_multiply(ctx: Context) -> None:
    """matrix_multiply is right for every transpose, and for sizes that no tile divides"""
    published = [(500, 1000, 700, False, False), (1000, 2000, 500, False, True)]
    published += [(1000, 500, 500, True, False), (1000, 2000, 500, True, True)]
    cases = published
    if ctx.thorough:
        sizes = [(33, 65, 40), (31, 1, 129), (127, 10, 100), (128, 64, 96), (1, 33, 7), (1, 1, 1)]
        flags = [(False, False), (False, True), (True, False), (True, True)]
        cases = [(*size, *flag) for size in sizes for flag in flags]
        cases += published if ctx.backend == "cuda" else [(200, 256, 300, *flag) for flag in flags]
    with ctx.session() as session:
        for *size, trans_a, trans_b in cases:
            m, n, k = ctx.sized(tuple(size))
            a = ctx.uniform((k, m) if trans_a else (m, k), -10, 10)
            b = ctx.uniform((n, k) if trans_b else (k, n), -10, 10)
            got, call = session.kernel("matrix_multiply", a, trans_a, b, trans_b, out=(m, n))
            op_a = (a.T if trans_a else a).astype(np.float64)
            op_b = (b.T if trans_b else b).astype(np.float64)
            verify(got, op_a @ op_b, sum_bound(k, np.abs(op_a) @ np.abs(op_b)), call)


def relu(ctx: Context) -> None:
    """relu keeps what is positive and makes the rest 0, for any shape, also in place"""
    _elementwise(
        ctx, "relu", lambda a: np.maximum(a, 0), (2000, 2500), lambda shape: [ctx.uniform(shape)]
    )


def relu_gradient(ctx: Context) -> None:
    """relu_gradient passes the gradient where the input is positive; at 0 it is 0"""

    def inputs(shape: Shape) -> list[Any]:
        x = ctx.uniform(shape)
        if ctx.thorough:
            x.reshape(-1)[::3] = 0
        return [x, ctx.uniform(shape, -5, 5)]

    _elementwise(ctx, "relu_gradient", lambda x, g: np.where(x > 0, g, 0), (2000, 2500), inputs)


def _log_softmax(x: Array) -> Array:
    shifted = x.astype(np.float64) - x.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def softmax(ctx: Context) -> None:
    """softmax works on each row of a matrix, for any number of rows, without overflow"""
    with ctx.session() as session:
        for shape in _shapes(ctx, (400, 1000), ODD_MATRICES):
            _check_softmax(session, ctx.uniform(shape, -5, 5))
        if ctx.thorough:
            shape = ctx.sized((33, 65))
            large = (
                ctx.uniform(shape, -5, 5)
                + np.float32(200) * ctx.random.choice([-1, 1], shape[0])[:, None]
            )
            _check_softmax(session, large.astype(np.float32))


def _check_softmax(session: Session, x: Array) -> None:
    got, call = session.kernel("softmax", x, out=x.shape)
    expected = np.exp(_log_softmax(x))
    # The fast __expf, which is allowed, errs by 2 + 1.2 |x| units in the last place of float32;
    # an argument of up to 10 is 28 roundings, twice for the sum and the value.
    verify(got, expected, sum_bound(x.shape[1], expected) + 60 * ROUND * expected, call)


def softmax_cross_entropy(ctx: Context) -> None:
    """softmax_cross_entropy is the mean over rows, for any number of rows"""
    with ctx.session() as session:
        for shape in _shapes(ctx, (400, 1000), ODD_MATRICES):
            logits, labels = ctx.uniform(shape, -5, 5), ctx.uniform(shape, -5, 5)
            got, call = session.kernel("softmax_cross_entropy", logits, labels, out=(1,))
            terms = labels * _log_softmax(logits)
            expected = np.array([-terms.sum(axis=1).mean()])
            magnitude = (np.abs(terms) + 10 * np.abs(labels)).sum(axis=1).mean()
            verify(got, expected, sum_bound(sum(shape), magnitude), call)


CHECKS = {
    check.__name__: check
    for check in (
        array_set,
        broadcast_to,
        reduce_sum_axis_zero,
        matrix_elementwise_add,
        matrix_elementwise_add_by_const,
        matrix_elementwise_multiply,
        matrix_elementwise_multiply_by_const,
        matrix_multiply,
        relu,
        relu_gradient,
        softmax,
        softmax_cross_entropy,
    )
}
