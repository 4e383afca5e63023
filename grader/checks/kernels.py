"""The twelve kernels, each against numpy in float64, on fresh random inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from grader.checks.harness.compare import ROUND, Array, differing, sum_bound
from grader.checks.harness.context import Context
from grader.checks.harness.kernel_case import Case, KernelCheck
from grader.checks.harness.traits import declared

Shape = tuple[int, ...]

#: Around the ends of warps and blocks, several ranks. A telling one first: it is reported.
ODD_SHAPES: tuple[Shape, ...] = (
    (1025,), (257, 129), (33,), (32,), (31,), (127,), (128,), (129,), (3, 5, 7), (2, 3, 5, 7), (1,),
)  # fmt: skip
#: More rows than a block has threads, a single column, a single row, odd everything.
ODD_MATRICES: tuple[Shape, ...] = (
    (33, 31), (1025, 10), (127, 129), (1, 1025), (2049, 3), (3, 257), (40, 1), (1, 1),
)  # fmt: skip

#: Two axes on which a shape is no smaller, once, whatever was published: a million elements, so
#: that no grid of a round number of blocks is enough.
LARGE: Shape = (1300, 900)
#: The smallest normal float32.
SMALLEST = 2.0**-126


def _shapes(ctx: Context, published: Shape, odd: Iterable[Shape]) -> list[Shape]:
    """The published shapes, and random ones of this run.

    If the rubric asks for published sizes alone, the random shapes are no larger, so that a kernel
    written for those sizes meets no new limit. Otherwise one random shape is larger than all
    others, so that no fixed limit is large enough. Its arrays have nothing behind them: a tool that
    sees every access is given smaller ones.
    """
    largest = [min(size, 600 if axis < 2 else 4) for axis, size in enumerate(published)]
    fresh = [ctx.sizes(*largest), ctx.sizes(*largest)]
    if not ctx.thorough:
        return [ctx.sized(shape) for shape in [published, *fresh]]
    largest = list(published)
    if odd is ODD_SHAPES:
        fresh.append(ctx.sizes(5000))
        largest[:2] = [max(pair) for pair in zip(published, LARGE, strict=True)]
    else:
        fresh += [_beyond(ctx, (9000, 3)), _beyond(ctx, (3, 4000))]
    large = [_to_its_end(_beyond(ctx, tuple(largest)))]
    if not ctx.watched:  # there it would be made smaller, too
        large.append(_beyond(ctx, tuple(map(min, largest, LARGE))))
    return [ctx.sized(shape) for shape in [*odd, *large, *fresh]]


def _beyond(ctx: Context, sizes: Shape) -> Shape:
    """Random sizes, each a little larger than the one given."""
    return tuple(size + int(ctx.random.integers(1, 2 + size // 20)) for size in sizes)


def _to_its_end(sizes: Shape) -> Shape:
    """Sizes that are hardly larger, of an array that fills its memory: cudaMalloc gives 256 bytes
    and multiples of them, and the emulated GPU has a page behind that nobody may touch. Blocks of
    128 threads or more have some left over, which must not look behind it."""
    longest = sizes.index(max(sizes))
    odd = [size | 1 for size in sizes]
    odd[longest] = (-(-sizes[longest] // 64) | 1) * 64
    return tuple(odd)


@KernelCheck
def array_set(ctx: Context) -> Iterator[Case]:
    """array_set fills arrays of any size and rank, also of no elements"""
    shapes = _shapes(ctx, (500, 200), ODD_SHAPES)
    # Nothing to launch. Asked of one kernel alone: who forgets it forgets it everywhere.
    shapes += [(0,), (0, 5)] if ctx.thorough and not ctx.watched else []
    wanted: list[tuple[Shape, float | None]] = [(shape, None) for shape in shapes]
    if ctx.thorough:
        wanted.append((ctx.sized((129,)), 0.0))
    for shape, known in wanted:

        def draw(shape: Shape = shape, known: float | None = known) -> list[Any]:
            value = float(np.float32(ctx.random.uniform(-9, 9))) if known is None else known
            return [np.full(shape, np.nan, np.float32), value]

        def judge(arr: Array, value: float) -> tuple[Array, Any]:
            return np.full(arr.shape, value), 0

        yield Case("array_set", draw, judge, overwrites=0, in_place=True)


@KernelCheck
def broadcast_to(ctx: Context) -> Iterator[Case]:
    """broadcast_to tiles its input along a new first axis, for any size and rank"""
    odd: list[tuple[Shape, int]] = [((129, 3), 5), ((31,), 3), ((33,), 1), ((256,), 1000)]
    odd += [((3, 5, 7), 2), ((1025,), 2), ((1,), 33)]
    fresh = [(ctx.sizes(90, 90), ctx.sizes(20)[0]), (ctx.sizes(40, 9), ctx.sizes(70)[0])]
    cases = [((200, 300), 130), *fresh]
    if ctx.thorough:
        large = [(_to_its_end(_beyond(ctx, (200, 300))), 130), (_beyond(ctx, (3,)), 2000)]
        cases = [*odd, *large, *fresh]
    for shape, copies in cases:
        out = ctx.sized((copies, *shape))

        def judge(x: Array, out: Shape = out) -> tuple[Array, Any]:
            return np.broadcast_to(x, out), 0

        yield Case("broadcast_to", functools.partial(_draw, ctx, [out[1:]]), judge, out)


def _draw(ctx: Context, shapes: Iterable[Shape], largest: float = 1) -> list[Any]:
    return [ctx.uniform(shape, -largest, largest) for shape in shapes]


@KernelCheck
def reduce_sum_axis_zero(ctx: Context) -> Iterator[Case]:
    """reduce_sum_axis_zero sums every row, for odd sizes too; a vector sums to shape (1,)"""
    odd: tuple[Shape, ...] = (
        (33, 31), (1025,), (31,), (1, 5), (129, 1), (1025, 10), (3, 1025), (7, 2, 3, 5), (1,),
    )  # fmt: skip

    def judge(x: Array) -> tuple[Array, Any]:
        wide = x.astype(np.float64)
        magnitude = np.abs(wide).sum(axis=0, keepdims=x.ndim == 1)
        return wide.sum(axis=0, keepdims=x.ndim == 1), sum_bound(len(x), magnitude)

    shapes = _shapes(ctx, (500, 200, 100), odd)
    if ctx.thorough:
        # More sums than elsewhere, but no more than a grid may have blocks along any axis.
        shapes.append(ctx.sized(_beyond(ctx, (3, 36_000))))
    for shape in shapes:
        draw = functools.partial(_draw, ctx, [shape], 20)
        yield Case("reduce_sum_axis_zero", draw, judge, shape[1:] or (1,))


def elementwise(
    ctx: Context,
    name: str,
    formula: Callable[..., Any],
    published: Shape,
    inputs: Callable[[Shape], list[Any]],
    numbers: Iterable[float] = (),
) -> Iterator[Case]:
    """Cases of one element-wise kernel. It must be exact up to one rounding, also in place on each
    of its inputs, and with one array for all of them.

    Args:
        name: in gpu_op.
        formula: the output, from the arguments; numpy float32 arrays and plain values.
        published: the published shape; the random ones are no larger.
        inputs: gives fresh arguments for arrays of a shape.
        numbers: values of the last argument by which nothing seems left to do.
    """

    def judge(*args: Any) -> tuple[Array, Any]:
        expected = np.asarray(formula(*args))
        return expected, 2 * ROUND * np.abs(expected)

    def one_array() -> list[Any]:
        first, *others = inputs(ctx.sized((33, 9)))
        return [first, *[first if isinstance(arg, np.ndarray) else arg for arg in others]]

    for shape in _shapes(ctx, published, ODD_SHAPES):
        yield Case(name, functools.partial(inputs, shape), judge, shape)
    if not ctx.thorough:
        return
    arrays = [i for i, arg in enumerate(inputs((1,))) if isinstance(arg, np.ndarray)]
    for position in arrays:
        yield Case(name, functools.partial(inputs, ctx.sized((129, 9))), judge, None, position)
    for number in numbers:

        def with_number(number: float = number) -> list[Any]:
            return [*inputs(ctx.sized((33, 9)))[:-1], number]

        yield Case(name, with_number, judge, ctx.sized((33, 9)))
    if len(arrays) > 1:
        yield Case(name, one_array, judge, ctx.sized((33, 9)))
        yield Case(name, one_array, judge, None, 0)


@KernelCheck
def matrix_elementwise_add(ctx: Context) -> Iterator[Case]:
    """matrix_elementwise_add adds arrays of any shape, also in place"""
    return elementwise(
        ctx, "matrix_elementwise_add", lambda a, b: np.add(a, b, dtype=np.float32), (500, 200),
        lambda shape: [ctx.uniform(shape, -10, 10), ctx.uniform(shape, -10, 10)],
    )  # fmt: skip


@KernelCheck
def matrix_elementwise_multiply(ctx: Context) -> Iterator[Case]:
    """matrix_elementwise_multiply multiplies arrays of any shape, also in place"""
    return elementwise(
        ctx, "matrix_elementwise_multiply", lambda a, b: np.multiply(a, b, dtype=np.float64),
        (500, 200), lambda shape: [ctx.uniform(shape, -10, 10), ctx.uniform(shape, -10, 10)],
    )  # fmt: skip


def _of_all_sizes(ctx: Context, shape: Shape) -> Array:
    """Numbers of both signs, from a thousandth to thousands: they show clamps and `fabs`."""
    numbers = ctx.uniform(shape)
    # In float32 as it is made: some arrays have millions of elements.
    scales = np.float32(10) ** np.arange(-2, 4, dtype=np.float32)
    numbers *= scales[ctx.random.integers(len(scales), size=shape, dtype=np.uint8)]
    return numbers


def _constant(ctx: Context) -> float:
    return float(np.float32(ctx.random.uniform(1, 5) * ctx.random.choice([-1, 1])))


@KernelCheck
def matrix_elementwise_add_by_const(ctx: Context) -> Iterator[Case]:
    """matrix_elementwise_add_by_const adds a number to arrays of any shape, also in place"""
    return elementwise(
        ctx, "matrix_elementwise_add_by_const", lambda a, c: a + np.float32(c), (2000, 3000),
        lambda shape: [_of_all_sizes(ctx, shape), _constant(ctx)], (0.0,),
    )  # fmt: skip


@KernelCheck
def matrix_elementwise_multiply_by_const(ctx: Context) -> Iterator[Case]:
    """matrix_elementwise_multiply_by_const scales arrays of any shape, also in place"""
    return elementwise(
        ctx, "matrix_elementwise_multiply_by_const", lambda a, c: a.astype(np.float64) * c,
        (2000, 3000), lambda shape: [_of_all_sizes(ctx, shape), _constant(ctx)], (0.0, 1.0),
    )  # fmt: skip


@KernelCheck
def matrix_multiply(ctx: Context) -> Iterator[Case]:
    """matrix_multiply is right for every transpose, and for sizes that no tile divides"""
    published = [(500, 1000, 700, False, False), (1000, 2000, 500, False, True)]
    published += [(1000, 500, 500, True, False), (1000, 2000, 500, True, True)]
    flags = [(False, False), (False, True), (True, False), (True, True)]
    cases: list[Any] = published
    if ctx.thorough:
        sizes = [(33, 65, 40), (31, 1, 129), (127, 10, 100), (128, 64, 96), (1, 33, 7), (1, 1, 1)]
        every = slice(None)
        few = [slice(0, None, 3), slice(1, 3)]  # each size for two, each of them for three sizes
        cases = [
            (*size, *flag)
            for number, size in enumerate(sizes)
            for flag in flags[few[number % 2] if ctx.watched else every]
        ]
        cases += published if ctx.backend == "cuda" else _several_tiles(ctx, flags)
        # What is watched has been made smaller.
        cases += [] if ctx.watched else _larger_products(ctx, flags)
    cases = [*cases, *[(*ctx.sizes(150, 150, 150), *flag) for flag in flags]]
    for *size, trans_a, trans_b in cases:
        m, n, k = ctx.sized(tuple(size))
        draw = functools.partial(_matrices, ctx, (m, n, k), trans_a, trans_b)
        yield Case("matrix_multiply", draw, _product, (m, n), explain=_flag_ignored)


def _several_tiles(ctx: Context, flags: list[tuple[bool, bool]]) -> list[Any]:
    """Products of several of the largest tiles, with each flag off and on; and, where a block for
    each element takes less, with the other pairs of flags."""
    apart = int(ctx.random.integers(2))  # both flags are alike in the larger ones, or not
    return [
        (200, 256, 300, *flag) if (flag[0] != flag[1]) == bool(apart) else (130, 70, 300, *flag)
        for flag in flags
    ]


def _larger_products(ctx: Context, flags: list[tuple[bool, bool]]) -> Iterator[Any]:
    """Each size in turn is larger than any other; then the product is, with little to sum, so that
    a grid of too few blocks or tiles shows, and a block for each element is no work."""
    for axis, flag in enumerate(flags[:3]):
        mnk = [5, 3, 4]
        mnk[axis] = 2500
        sizes = _beyond(ctx, tuple(mnk))
        yield (*sizes, *flag)
        yield (*_filled(sizes), *flag)
    least = (1000, 2000) if ctx.backend == "cuda" else (520, 520)
    m, n = (size + int(ctx.random.integers(1, 1 + size // 5)) for size in least)
    k = int(ctx.random.integers(3, 10))
    yield (m, n, k, *flags[int(ctx.random.integers(4))])


def _filled(sizes: Shape) -> Shape:
    """Sizes of a product whose factors fill their memory, see `_to_its_end`."""
    return tuple(-(-size // 8) * 8 for size in sizes)


def _matrices(ctx: Context, sizes: Shape, trans_a: bool, trans_b: bool) -> list[Any]:
    m, n, k = sizes
    a, b = _draw(ctx, [(k, m) if trans_a else (m, k), (n, k) if trans_b else (k, n)], 10)
    return [a, trans_a, b, trans_b]


def _flag_ignored(got: Array, bound: Any, a: Array, trans_a: bool, b: Array, trans_b: bool) -> str:
    """A hint if a product is right for other flags than those passed."""
    flips = {"A": (True, False), "B": (False, True), "A and of B": (True, True)}
    for names, (flip_a, flip_b) in flips.items():
        # What lies in memory, taken for a matrix of the shape that the other flag asks for.
        other_a = a.reshape(a.shape[::-1]) if flip_a else a
        other_b = b.reshape(b.shape[::-1]) if flip_b else b
        product, _ = _product(other_a, trans_a ^ flip_a, other_b, trans_b ^ flip_b)
        if got.size > 1 and not differing(got, product, bound).any():
            return f"the result is right for the other value of the transpose flag of {names}"
    return ""


def _product(a: Array, trans_a: bool, b: Array, trans_b: bool) -> tuple[Array, Any]:
    op_a = (a.T if trans_a else a).astype(np.float64)
    op_b = (b.T if trans_b else b).astype(np.float64)
    return op_a @ op_b, sum_bound(len(op_b), np.abs(op_a) @ np.abs(op_b))


@KernelCheck
def relu(ctx: Context) -> Iterator[Case]:
    """relu keeps what is positive and makes the rest 0, for any shape, also in place"""

    def inputs(shape: Shape) -> list[Any]:
        x = _of_all_sizes(ctx, shape)
        x.reshape(-1)[-1] = abs(x.reshape(-1)[-1])  # an output of zeros alone is never right
        return [x]

    yield from elementwise(ctx, "relu", _relu, (2000, 2500), inputs)
    if not ctx.thorough:
        return

    def with_nan() -> list[Any]:
        (x,) = inputs(ctx.sized((33, 9)))
        x.reshape(-1)[1::3] = np.nan
        return [x]

    for overwrites in (None, 0):
        out = ctx.sized((33, 9)) if overwrites is None else None
        yield Case("relu", with_nan, lambda x: (_relu(x), 0), out, overwrites, explain=_nan_lost)


def _relu(x: Array) -> Array:
    return np.maximum(x, np.float32(0))


def _nan_lost(got: Array, bound: Any, x: Array) -> str:
    """A hint if every element is right except NaN."""
    if differing(got, np.where(np.isnan(x), got, _relu(x)), bound).any():
        return ""
    return (
        "relu of NaN is NaN, as in numpy: a comparison with NaN is false, and fmaxf takes the "
        "other number"
    )


@KernelCheck
def relu_gradient(ctx: Context) -> Iterator[Case]:
    """relu_gradient passes the gradient where the input is positive; at 0 it is 0"""

    def inputs(shape: Shape) -> list[Any]:
        x = _of_all_sizes(ctx, shape)
        if ctx.thorough:
            x.reshape(-1)[::3] = 0
        x.reshape(-1)[-1] = 1
        return [x, ctx.uniform(shape, -5, 5)]

    return elementwise(
        ctx, "relu_gradient", lambda x, g: np.where(x > 0, g, 0), (2000, 2500), inputs
    )


def _log_softmax(x: Array) -> Array:
    shifted = x.astype(np.float64) - x.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


@KernelCheck
def softmax(ctx: Context) -> Iterator[Case]:
    """softmax works on each row of a matrix, for any number of rows, without overflow"""
    return softmax_cases(ctx, "softmax")


def softmax_cases(ctx: Context, name: str) -> Iterator[Case]:
    """Cases of a kernel of that name that is softmax of every row."""

    def judge(x: Array) -> tuple[Array, Any]:
        expected = np.exp(_log_softmax(x))
        # The fast __expf, which is allowed, errs by 2 + 1.2 |x| units in the last place of
        # float32; an argument of up to 10 is 28 roundings, twice for the sum and the value.
        # The largest value plus the logarithm of the sum may be one number, rounded where it lies;
        # for exp2 it is first multiplied by log2(e), as is x: three roundings of |x|.
        bound = sum_bound(x.shape[1], expected) + 60 * ROUND * expected
        bound = bound + 3 * ROUND * np.abs(x).max(axis=1, keepdims=True) * expected
        return expected, bound + SMALLEST  # what is smaller may become 0

    for shape in _shapes(ctx, (400, 1000), ODD_MATRICES):
        yield Case(name, functools.partial(_draw, ctx, [shape], 5), judge, shape)
    if ctx.thorough:
        shape = ctx.sized((33, 65))
        yield Case(name, lambda: [_far_from_zero(ctx, shape)], judge, shape)
        yield Case(name, lambda: [_far_from_each_other(ctx, shape)], judge, shape)


def _far_from_each_other(ctx: Context, shape: tuple[int, ...]) -> Array:
    """A matrix whose rows begin or end 200 below their largest value. Subtracting anything but the
    maximum makes an exponential infinite."""
    x = ctx.uniform(shape, -5, 5)
    x[::2, 0] -= 100
    x[1::2, -1] -= 100
    x[:, shape[1] // 2] += 100
    return np.asarray(x)


def _far_from_zero(ctx: Context, shape: tuple[int, ...]) -> Array:
    """A matrix whose rows hold values near 200 or near -200: their exponentials overflow."""
    offset = np.float32(200) * ctx.random.choice([-1, 1], shape[0])[:, None]
    return (ctx.uniform(shape, -5, 5) + offset).astype(np.float32)


@KernelCheck
def softmax_cross_entropy(ctx: Context) -> Iterator[Case]:
    """softmax_cross_entropy is the mean over rows, for any number of rows"""

    def judge(logits: Array, labels: Array) -> tuple[Array, Any]:
        terms = labels * _log_softmax(logits)
        largest = max(10, np.abs(logits).max())  # a logit may be rounded before it is subtracted
        magnitude = (np.abs(terms) + largest * np.abs(labels)).sum(axis=1).mean()
        return np.array([-terms.sum(axis=1).mean()]), sum_bound(sum(logits.shape), magnitude)

    for number, shape in enumerate(_shapes(ctx, (400, 1000), ODD_MATRICES)):

        def draw(shape: Shape = shape, positive: bool = number % 2 == 0) -> list[Any]:
            labels = ctx.uniform(shape, -4, 6)  # of both signs, and their sum far from zero
            return [ctx.uniform(shape, -5, 5), _one_way(labels) if positive else labels]

        yield Case("softmax_cross_entropy", draw, judge, (1,))
    if ctx.thorough:
        both = functools.partial(_far_and_near, ctx)
        yield Case("softmax_cross_entropy", both, judge, (1,))


def _far_and_near(ctx: Context) -> list[Any]:
    shape = ctx.sized((33, 65))
    return [_far_from_zero(ctx, shape), ctx.uniform(shape, -5, 5)]


def _one_way(values: Array) -> Array:
    """Like `values`, but positive, and such that half precision rounds each one down: in a mean of
    many, errors of random signs would cancel."""
    bits = np.abs(values).view(np.uint32)
    return ((bits & np.uint32(0xFFFFE000)) | np.uint32(0x0F00)).view(np.float32)


CHECKS = declared(globals())
