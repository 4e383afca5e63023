"""Part 4: windows of images, convolution and its gradients, against their definition.

The parent has each value by loops over pairs of elements, on images whose sizes are drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grader.checks.harness import convolution_reference as reference
from grader.checks.harness.answers import SMALL, shape_of, shown
from grader.checks.harness.compare import (
    ROUND64,
    Array,
    Failure,
    Mistakes,
    sum_bound,
    verify_told,
)
from grader.checks.harness.context import Context, Session, expect_error
from grader.checks.harness.convolution_reference import Geometry
from grader.checks.harness.traits import check, declared

Sides = tuple[tuple[int, int], ...]

_RANDOM = 12  # geometries of a check, beside those that are the same each time
_COUNTS = 60
_MOST_SIDE = 24
#: size, kernel, stride, padding, dilation: each thing by itself, in images with room for mistakes.
_SIDES = (
    ((9, 12), (3, 2), (1, 1), (0, 0), (1, 1)),
    ((9, 12), (3, 3), (1, 1), (2, 1), (1, 1)),
    ((9, 12), (3, 3), (2, 3), (0, 0), (1, 1)),
    ((9, 12), (3, 3), (1, 1), (0, 0), (2, 3)),
    ((9, 14), (3, 2), (2, 1), (1, 2), (1, 3)),
)
#: The usual one, then each thing by itself, then what often goes wrong at the edge.
_PLAIN = (
    Geometry(1, 1, 1, (4, 4), (3, 3)),
    Geometry(2, 3, 2, (5, 5), (3, 3), padding=(1, 1)),
    Geometry(2, 2, 3, (4, 7), (3, 3), padding=(1, 1)),
    Geometry(2, 2, 3, (6, 6), (2, 2)),
    Geometry(1, 2, 2, (5, 6), (1, 3), padding=(0, 1)),
    Geometry(2, 3, 4, (4, 5), (1, 1)),
    Geometry(2, 1, 2, (7, 7), (3, 3), stride=(2, 2), padding=(1, 1)),
    Geometry(2, 2, 1, (8, 7), (3, 2), stride=(1, 2)),
    Geometry(1, 2, 2, (7, 7), (3, 3), dilation=(2, 2)),
    Geometry(1, 2, 2, (8, 9), (2, 3), stride=(2, 1), dilation=(1, 3), padding=(2, 0)),
    Geometry(3, 1, 1, (3, 4), (3, 4)),
)
_GROUPED = (
    Geometry(2, 4, 6, (5, 4), (3, 3), padding=(1, 1), groups=2),
    Geometry(2, 3, 3, (4, 5), (3, 3), padding=(1, 1), groups=3),
    Geometry(1, 2, 6, (6, 5), (2, 3), stride=(2, 1), groups=2),
    Geometry(2, 6, 3, (4, 4), (1, 1), groups=3),
)
_FLIPPED = (
    "the kernel is mirrored: w[f, c, i, j] meets the element at (i, j) of the window, counted from "
    "its upper left corner"
)
_TURNED = "height and width of the kernel are exchanged: w is (F, C / groups, KH, KW)"


def _geometries(random: np.random.Generator, grouped: bool) -> Iterator[Geometry]:
    """Those of a check, simple ones first; each stands there twice, for other values."""
    for each in _GROUPED if grouped else _PLAIN:
        yield from (each, each)
    found = 0
    while found < _RANDOM:
        each = reference.random_geometry(random)
        if (each.groups > 1) == grouped:
            found += 1
            yield from (each, each)


def _windows(session: Session, g: Geometry) -> Any:
    """The Windows of a geometry in the child."""
    module = session.module("dlsys.backend.windows")
    return module.Windows(g.size, g.kernel, g.stride, g.padding, g.dilation)


def _at(g: Geometry) -> str:
    return f"images {g.x}, kernel {g.kernel}, {g.words()}"


# --- windows ------------------------------------------------------------------------------------


@check(device=False)
def window_counts(ctx: Context) -> None:
    """Windows.out says how many windows fit, for any stride, padding and dilation"""
    with ctx.session() as session:
        module = session.module("dlsys.backend.windows")
        for number in range(_COUNTS):
            said = _SIDES[number] if number < len(_SIDES) else _random_sides(ctx.random)
            # As pooling has it, whose padding is at most half of the kernel.
            may = all(2 * pad <= kernel for kernel, pad in zip(said[1], said[3], strict=True))
            ceil = may and bool(ctx.random.integers(2))
            what = "Windows(size {}, kernel {}, stride {}, padding {}, dilation {}{})".format(
                *said, ", ceil" if ceil else ""
            )
            right = tuple(_count(side, ceil) for side in zip(*said, strict=True))
            with session.remote.doing(what):
                found = module.Windows(*said, ceil=ceil)
                if min(right) < 1:
                    expect_error(session, found.out, f"{what}, of which not one fits,")
                    continue
                got = session.remote.fetch(found.out, most=SMALL)
            if shape_of(got) != right:
                raise Failure(f"{what}: out is {shown(got)}, expected {right}", _why(said, got))


def _random_sides(random: np.random.Generator) -> Sides:
    """Sizes that nobody has thought of; of some not one window fits."""
    least, most = (1, 1, 1, 0, 1), (_MOST_SIDE, 5, 4, 3, 3)
    found = [random.integers(low, high + 1, 2) for low, high in zip(least, most, strict=True)]
    return tuple((int(down), int(across)) for down, across in found)


def _count(side: tuple[int, ...], ceil: bool) -> int:
    """How many windows there are along a side, by trying each place."""
    size, kernel, stride, padding, dilation = side
    end, extent, found = size + 2 * padding, (kernel - 1) * dilation + 1, 0
    while found * stride + extent <= end:
        found += 1
    # One more that reaches beyond the border, if it starts in front of it and the last did not end
    # there; where none fits, there is none.
    last = (found - 1) * stride + extent
    if ceil and found and last < end and found * stride < size + padding:
        found += 1
    return found


def _why(said: Sides, got: Any) -> str:
    """A hint for a number of windows."""
    shape = shape_of(got)
    if shape is None or len(shape) != 2:
        return "two whole numbers: down and across"
    size, kernel, stride, padding, dilation = said
    ways = {
        "the border is on both sides: 2 * padding": (
            size, kernel, stride, _half(padding), dilation,
        ),
        "the padding is passed over": (size, kernel, stride, (0, 0), dilation),
        "the dilation is passed over: a window reaches over (kernel - 1) * dilation + 1": (
            size, kernel, stride, padding, (1, 1),
        ),
        "a window reaches over (kernel - 1) * dilation + 1, not kernel * dilation": (
            size, _reach(kernel, dilation), stride, padding, (1, 1),
        ),
        "stride and dilation are exchanged": (size, kernel, dilation, padding, stride),
    }  # fmt: skip
    each = tuple(zip(*said, strict=True))
    if shape in (tuple(_count(side, True) for side in each), tuple(_up(*side) for side in each)):
        return "a last window that reaches beyond the border counts with `ceil` alone"
    for words, sides in ways.items():
        if shape == tuple(max(0, _floor(*side)) for side in zip(*sides, strict=True)):
            return words
    return "count by hand for a small image: where is the last place at which a whole window lies?"


def _floor(size: int, kernel: int, stride: int, padding: float, dilation: int) -> int:
    return int((size + 2 * padding - (kernel - 1) * dilation - 1) // stride) + 1


def _up(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return 1 - ((kernel - 1) * dilation + 1 - size - 2 * padding) // stride


def _half(padding: tuple[int, int]) -> tuple[float, float]:
    return padding[0] / 2, padding[1] / 2


def _reach(kernel: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    return kernel[0] * dilation[0], kernel[1] * dilation[1]


@check(device=False)
def im2col(ctx: Context) -> None:
    """Windows.seen shows each window of the images, (N, C, KH, KW, OH, OW), without a copy"""
    with ctx.session() as session:
        for g in (*_geometries(ctx.random, False), *_geometries(ctx.random, True)):
            x, what = ctx.random.uniform(-1, 1, g.x), f"the windows of {_at(g)}"
            with session.remote.doing(what):
                windows = _windows(session, g)
                got = session.remote.fetch(windows.seen(windows.bordered(x)), SMALL)
            right = reference.im2col(g, x)
            verify_told(got, right, 0.0, what, _of_columns(g, x))
        _check_view(session, ctx.random, g)


def _of_columns(g: Geometry, x: Array) -> Mistakes:
    right = reference.im2col(g, x)
    if g.kernel[0] == g.kernel[1]:
        yield np.swapaxes(right, 2, 3), "KH and KW are exchanged: the order is N, C, KH, KW, OH, OW"
    if g.out[0] == g.out[1]:
        yield np.swapaxes(right, 4, 5), "OH and OW are exchanged: the order is N, C, KH, KW, OH, OW"
    yield (
        right[:, :, ::-1, ::-1],
        "each window is mirrored: element (0, 0) is its upper left corner",
    )
    order = (0, 1, 4, 5, 2, 3)
    yield (
        right.transpose(order).reshape(right.shape),
        "the elements of a window come first: the axes are N, C, KH, KW, OH, OW",
    )
    for other, words in reference.mistaken(g):
        yield reference.im2col(other, x), words


def _check_view(session: Session, random: np.random.Generator, g: Geometry) -> None:
    """Windows see what is written into the images after they were made, however these lie."""
    x, later = random.uniform(-1, 1, g.x), random.uniform(-1, 1, g.x)
    what = f"the windows of {_at(g)}, after other values were written into the images"
    old, right = reference.im2col(g, x), reference.im2col(g, later)
    copied = (
        "the windows are a copy: a back end asks for a view, made by strides, by slices or by "
        "np.lib.stride_tricks"
    )
    for is_turned in (False, True):
        said = f"{what}, which lie in memory as (W, H, C, N)" if is_turned else what
        with session.remote.doing(said):
            windows = _windows(session, g)
            bordered = session.remote.put(windows.bordered(x))
            if is_turned:
                bordered = bordered.T.copy().T
            seen = windows.seen(bordered)
            bordered[...] = windows.bordered(later)
            got = session.remote.fetch(seen, SMALL)
        try:
            verify_told(got, right, 0.0, said, [(old, copied)])
        except Failure as failure:
            lies = "how far apart the images' elements lie is in bordered.strides, not in the shape"
            failure.hint = failure.hint or lies * is_turned
            raise


@check(device=False)
def col2im(ctx: Context) -> None:
    """Windows.folded adds up, for each element of the images, what all windows have of it"""
    with ctx.session() as session:
        for g in (*_geometries(ctx.random, False), *_geometries(ctx.random, True)):
            columns, what = ctx.random.uniform(-1, 1, g.columns), f"folded windows of {_at(g)}"
            with session.remote.doing(what):
                got = session.remote.fetch(_windows(session, g).folded(columns), SMALL)
            bound = sum_bound(int(np.prod(g.kernel)), reference.col2im(g, abs(columns)), ROUND64)
            right = reference.col2im(g, columns)
            verify_told(got, right, bound, what, _of_fold(g, columns))


def _of_fold(g: Geometry, columns: Array) -> Mistakes:
    last = np.zeros(g.x)
    for (oh, ow), (i, j), (row, column) in sorted(g.taps(), key=lambda tap: tap[1]):
        last[:, :, row, column] = columns[:, :, i, j, oh, ow]
    yield last, "windows overlap: what they have of an element is added up; = keeps the last alone"
    counts = np.maximum(reference.col2im(g, np.ones(g.columns)), 1)
    yield reference.col2im(g, columns) / counts, "it is a sum over the windows, not their mean"
    yield reference.col2im(g, columns[:, :, ::-1, ::-1]), "the windows are mirrored"
    for other, words in reference.mistaken(g):
        yield reference.col2im(other, columns), words


# --- convolution --------------------------------------------------------------------------------


def _check_values(ctx: Context, grouped: bool) -> None:
    with ctx.session() as session:
        ops = session.module("dlsys.ops")
        for g in _geometries(ctx.random, grouped):
            x, w = (ctx.random.uniform(-1, 1, shape) for shape in (g.x, g.w))
            what = f"convolution of x {g.x} with w {g.w}, {g.words()}"
            with session.remote.doing(what):
                fed = [ops.variable(name) for name in "xw"]
                node = ops.convolution(*fed, **g.attributes())
                got = session.evaluate([node], dict(zip(fed, (x, w), strict=True)), SMALL)[0]
            right = reference.convolution(g, x, w)
            bound = _bound(g, reference.convolution(g, abs(x), abs(w)))
            verify_told(got, right, bound, what, _of_values(g, x, w))


def _bound(g: Geometry, magnitude: Array) -> Any:
    """What the sums may be off; no sum has more terms."""
    terms = g.images * g.channels * g.filters * int(np.prod(g.kernel)) * int(np.prod(g.out))
    return sum_bound(terms, magnitude, ROUND64)


def _of_values(g: Geometry, x: Array, w: Array) -> Mistakes:
    right = reference.convolution(g, x, w)
    for kernel, words in _kernels(w):
        yield reference.convolution(g, x, kernel), words
    yield reference.convolution(g, x[:, ::-1], w), "the channels are in the wrong order"
    yield reference.convolution(g, x, w[::-1]), "the filters are in the wrong order"
    if g.images > 1:
        mixed = np.swapaxes(right, 0, 1).reshape(right.shape)
        yield mixed, "images and filters are mixed up: transpose first, then reshape"
        yield right[::-1], "the images are in the wrong order"
    if g.groups > 1:
        first = np.concatenate([x[:, : g.channels // g.groups]] * g.groups, 1)
        yield reference.convolution(g, first, w), "every group sees the channels of the first one"
        for order, words in _orders(g):
            yield reference.convolution(g, x[:, order(g.channels)], w), f"channels: {words}"
            yield right[:, order(g.filters)], f"filters: {words}"
    for other, words in reference.mistaken(g):
        yield reference.convolution(other, x, w), words


def _kernels(w: Array) -> Mistakes:
    """Filters that are taken for w by mistake."""
    yield w[:, :, ::-1, ::-1], _FLIPPED
    if w.shape[2] == w.shape[3]:
        yield np.swapaxes(w, 2, 3), _TURNED
    if w.shape[0] == w.shape[1]:
        yield (
            np.swapaxes(w, 0, 1),
            "filters and channels are exchanged: w is (F, C / groups, KH, KW)",
        )


def _orders(g: Geometry) -> Iterator[tuple[Callable[[int], Array], str]]:
    """Orders in which members of groups are found by mistake."""
    words = "group k has those that lie side by side, from k * size to (k + 1) * size"
    yield lambda count: np.arange(count).reshape(g.groups, -1).T.reshape(-1), words
    yield lambda count: np.arange(count).reshape(-1, g.groups).T.reshape(-1), words


@check(device=False)
def convolution(ctx: Context) -> None:
    """the op convolution is right on numpy, for any size, kernel, stride, padding and dilation"""
    _check_values(ctx, grouped=False)


@check(device=False)
def convolution_in_groups(ctx: Context) -> None:
    """in a convolution with groups each part of the filters sees its part of the channels alone"""
    _check_values(ctx, grouped=True)


# --- gradients ----------------------------------------------------------------------------------


def _check_gradient(ctx: Context, of: int) -> None:
    """Of the images (0) or of the filters (1)."""
    name = ("images", "filters")[of]
    with ctx.session() as session:
        op = session.module("dlsys.ops.convolution").convolution_gradient_op
        ops = session.module("dlsys.ops")
        for g in (*_geometries(ctx.random, False), *_geometries(ctx.random, True)):
            x, w, grad = arrays = [ctx.random.uniform(-1, 1, shape) for shape in (g.x, g.w, g.y)]
            what = f"gradient of the {name}, x {g.x}, w {g.w}, {g.words()}, gradient {g.y}"
            with session.remote.doing(what):
                fed = [ops.variable(each) for each in ("x", "w", "grad")]
                node = op(*fed, of=of, **g.attributes())
                got = session.evaluate([node], dict(zip(fed, arrays, strict=True)), SMALL)[0]
            right, size = _gradient(g, of, x, w, grad), map(abs, (x, w, grad))
            bound = _bound(g, _gradient(g, of, *size))
            ways = _of_data if of == 0 else _of_weights
            verify_told(got, right, bound, what, ways(g, x, w, grad))


def _gradient(g: Geometry, of: int, x: Array, w: Array, grad: Array) -> Array:
    if of == 0:
        return reference.gradient_of_images(g, w, grad)
    return reference.gradient_of_filters(g, x, grad)


def _of_data(g: Geometry, x: Array, w: Array, grad: Array) -> Mistakes:
    yield from ((reference.gradient_of_images(g, k, grad), words) for k, words in _kernels(w))
    for image in (0, -1):
        alone = np.zeros_like(grad)
        alone[image] = grad[image]
        yield reference.gradient_of_images(g, w, alone), "one image alone has a gradient"
    for other, words in reference.mistaken(g):
        yield reference.gradient_of_images(other, w, grad), words


def _of_weights(g: Geometry, x: Array, w: Array, grad: Array) -> Mistakes:
    right = reference.gradient_of_filters(g, x, grad)
    yield from _kernels(right)
    for image in (0, -1):
        alone = np.zeros_like(grad)
        alone[image] = grad[image]
        yield (
            reference.gradient_of_filters(g, x, alone),
            "a filter is used on every image: its gradient is the sum over the batch, not that of "
            "one image",
        )
    yield right / g.images, "the gradient is the sum over the batch; a mean is the loss's business"
    if g.images > 1:
        turned = reference.gradient_of_filters(g, x[::-1], grad)
        yield turned, "the gradient of an image meets the windows of another one"
    for other, words in reference.mistaken(g):
        yield reference.gradient_of_filters(other, x, grad), words


@check(device=False)
def gradient_of_images(ctx: Context) -> None:
    """the gradient of a convolution for its images is that of its definition"""
    _check_gradient(ctx, 0)


@check(device=False)
def gradient_of_filters(ctx: Context) -> None:
    """the gradient of a convolution for its filters is that of its definition"""
    _check_gradient(ctx, 1)


CHECKS = declared(globals())
