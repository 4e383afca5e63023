"""Part 4: a convolution of large images takes products of whole matrices.

Small ones are checked to the last element elsewhere. Here a part of the values is enough: what
counts is that they come in time.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from grader.checks.harness import convolution_reference as reference
from grader.checks.harness.compare import (
    ROUND64,
    Array,
    Failure,
    require_array,
    sum_bound,
    verify_told,
)
from grader.checks.harness.context import Context
from grader.checks.harness.convolution_reference import Geometry
from grader.checks.harness.traits import check, declared

#: Three million pairs of places: a loop over them takes tens of seconds, the product a fraction of
#: one.
_LARGE = Geometry(2, 1, 2, (256, 250), (7, 7), padding=(3, 3))
_SOON = 5.0  # seconds
_PLACES = 40


@check(device=False)
def large_images(ctx: Context) -> None:
    """convolution and its gradients work on whole matrices, so that large images take no time"""
    g = _LARGE
    x, w, grad = arrays = [ctx.random.uniform(-1, 1, shape) for shape in (g.x, g.w, g.y)]
    with ctx.session() as session:
        ops = session.module("dlsys.ops")
        gradient = session.module("dlsys.ops.convolution").convolution_gradient_op
        fed = [ops.variable(name) for name in ("x", "w", "grad")]
        feeds = dict(zip(fed, arrays, strict=True))
        found: list[tuple[str, Any]] = []
        for name in ("convolution", "gradient of the images", "gradient of the filters"):
            what = f"{name} of large images (a matter of matrix products), x {g.x}, w {g.w}"
            with session.remote.doing(what), session.remote.deadline(_SOON):
                if name == "convolution":
                    node = ops.convolution(*fed[:2], **g.attributes())
                else:
                    node = gradient(*fed, of=len(found) - 1, **g.attributes())
                found.append((what, session.evaluate([node], feeds)[0]))
    (said, y), (said_x, of_x), (said_w, of_w) = found
    _compare(ctx.random, said, y, g.y, lambda place: _value_at(x, w, place), w)
    _compare(ctx.random, said_x, of_x, g.x, lambda place: _gradient_at(w, grad, place), w)
    right, size = _of_filters(x, grad), _of_filters(abs(x), abs(grad))
    verify_told(of_w, right, sum_bound(grad[:, 0].size, size, ROUND64), said_w, ())


def _compare(
    random: np.random.Generator, what: str, got: Any, shape: tuple[int, ...], right: Any, w: Array
) -> None:
    """Compares some places of an array, corners among them."""
    values = require_array(got, shape, what)
    down, across = shape[2] - 1, shape[3] - 1
    places = [(0, 0), (0, across), (down, 0), (down, across)]
    places += [(int(random.integers(shape[2])), int(random.integers(shape[3])))
               for _ in range(_PLACES)]  # fmt: skip
    bound = sum_bound(w.size, float(abs(w).sum()), ROUND64)
    for place in places:
        wanted = right(place)
        if not np.all(np.abs(values[:, :, place[0], place[1]] - wanted) <= bound):
            seen = values[0, 0, place[0], place[1]]
            raise Failure(
                f"{what}: at {place} it is {seen:.7g}, expected {wanted[0, 0]:.7g}",
                "small images are right: what depends on their size?",
            )


def _value_at(x: Array, w: Array, place: tuple[int, int]) -> Array:
    """What all filters give at a place of all images, from the window there."""
    (row, column), (kh, kw) = place, _LARGE.kernel
    window = _bordered(x)[:, :, row : row + kh, column : column + kw]
    small = dataclasses.replace(_LARGE, size=_LARGE.kernel, padding=(0, 0))
    return reference.convolution(small, window, w)[:, :, 0, 0]


def _gradient_at(w: Array, grad: Array, place: tuple[int, int]) -> Array:
    """The gradient at a place of all images, from those of the windows that see it."""
    (row, column), (kh, kw), (ph, pw) = place, _LARGE.kernel, _LARGE.padding
    around = np.pad(grad, ((0, 0), (0, 0), (kh, kh), (kw, kw)))
    top, left = row + ph + 1, column + pw + 1
    seen_by = around[:, :, top : top + kh, left : left + kw]
    small = dataclasses.replace(_LARGE, size=(2 * kh - 1, 2 * kw - 1), padding=(0, 0))
    return reference.gradient_of_images(small, w, seen_by)[:, :, kh - 1, kw - 1]


def _of_filters(x: Array, grad: Array) -> Array:
    """The gradient of the filters: each element of the kernel meets a part of the images."""
    found, bordered, (down, across) = np.zeros(_LARGE.w), _bordered(x), _LARGE.out
    for i, j in np.ndindex(*_LARGE.kernel):
        part = bordered[:, :, i : i + down, j : j + across]
        found[:, :, i, j] = np.tensordot(grad, part, ((0, 2, 3), (0, 2, 3)))
    return found


def _bordered(x: Array) -> Array:
    ph, pw = _LARGE.padding
    return np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))


CHECKS = declared(globals())
