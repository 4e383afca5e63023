"""Convolutions and their gradients in float64, by definition: each pair of elements by itself.

No value is made by way of columns, so that no mistake of im2col can be made here too. `mistaken`
has what is often taken for what, by which a wrong result is told in words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from grader.checks.harness.compare import Array

Pair = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Geometry:
    """The sizes of a convolution; pairs are of height and width.

    Attributes:
        images, channels, filters: their numbers.
        groups: each part of the filters sees a part of the channels alone.
        places: how many windows there are down and across, where the other fields are a mistake's;
            None is as many as fit.
    """

    images: int
    channels: int
    filters: int
    size: Pair
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    places: Pair | None = None

    @property
    def x(self) -> tuple[int, ...]:
        """The shape of the images, (N, C, H, W)."""
        return (self.images, self.channels, *self.size)

    @property
    def w(self) -> tuple[int, ...]:
        """The shape of the filters, (F, C / groups, KH, KW)."""
        return (self.filters, self.channels // self.groups, *self.kernel)

    @property
    def out(self) -> Pair:
        """How many places a window has down and across: those where it lies in the padded image."""
        if self.places:
            return self.places
        down, across = (
            sum(1 for start in range(0, n + 2 * p, s) if start + (k - 1) * d < n + 2 * p)
            for n, k, s, p, d in zip(
                self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )
        return down, across

    @property
    def y(self) -> tuple[int, ...]:
        """The shape of the result, (N, F, OH, OW)."""
        return (self.images, self.filters, *self.out)

    @property
    def columns(self) -> tuple[int, ...]:
        """The shape of all windows, (N, C, KH, KW, OH, OW)."""
        return (self.images, self.channels, *self.kernel, *self.out)

    def attributes(self) -> dict[str, int | Pair]:
        """What the op is told beside its inputs."""
        pairs = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}
        return {**pairs, "groups": self.groups}

    def words(self) -> str:
        """What is not as it usually is: stride, padding, dilation, groups."""
        usual = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
        said = [f"{n} {v}" for n, v in self.attributes().items() if v != usual[n]]
        return ", ".join(said) or "stride 1, no padding"

    def taps(self) -> Iterator[tuple[Pair, Pair, Pair]]:
        """(place of the result, place in the kernel, place in the image) that meet."""
        (sh, sw), (ph, pw), (dh, dw) = self.stride, self.padding, self.dilation
        for oh, ow in np.ndindex(*self.out):
            for i, j in np.ndindex(*self.kernel):
                h, w = oh * sh - ph + i * dh, ow * sw - pw + j * dw
                if 0 <= h < self.size[0] and 0 <= w < self.size[1]:
                    yield (oh, ow), (i, j), (h, w)

    def of_groups(self) -> Iterator[tuple[slice, slice]]:
        """For each group its channels and its filters."""
        c, f = self.channels // self.groups, self.filters // self.groups
        for group in range(self.groups):
            yield slice(group * c, (group + 1) * c), slice(group * f, (group + 1) * f)


def convolution(g: Geometry, x: Array, w: Array) -> Array:
    """The result, (N, F, OH, OW)."""
    y = np.zeros(g.y)
    for (oh, ow), (i, j), (row, column) in g.taps():
        for channels, filters in g.of_groups():
            y[:, filters, oh, ow] += x[:, channels, row, column] @ w[filters, :, i, j].T
    return y


def gradient_of_images(g: Geometry, w: Array, grad: Array) -> Array:
    """The gradient of sum(grad * y) for the images."""
    found = np.zeros(g.x)
    for (oh, ow), (i, j), (row, column) in g.taps():
        for channels, filters in g.of_groups():
            found[:, channels, row, column] += grad[:, filters, oh, ow] @ w[filters, :, i, j]
    return found


def gradient_of_filters(g: Geometry, x: Array, grad: Array) -> Array:
    """The gradient of sum(grad * y) for the filters."""
    found = np.zeros(g.w)
    for (oh, ow), (i, j), (row, column) in g.taps():
        for channels, filters in g.of_groups():
            found[filters, :, i, j] += grad[:, filters, oh, ow].T @ x[:, channels, row, column]
    return found


def im2col(g: Geometry, x: Array) -> Array:
    """The windows of the images, (N, C, KH, KW, OH, OW); 0 where they lie in the border."""
    found = np.zeros(g.columns)
    for (oh, ow), (i, j), (row, column) in g.taps():
        found[:, :, i, j, oh, ow] = x[:, :, row, column]
    return found


def col2im(g: Geometry, columns: Array) -> Array:
    """For each element of the images the sum of what windows have of it."""
    found = np.zeros(g.x)
    for (oh, ow), (i, j), (row, column) in g.taps():
        found[:, :, row, column] += columns[:, :, i, j, oh, ow]
    return found


def random_geometry(random: np.random.Generator) -> Geometry:
    """One that nobody has thought of; at least one window fits."""
    while True:
        groups = int(random.integers(1, 4))
        pairs = [_pair(random, *of) for of in ((3, 9), (1, 4), (1, 3), (0, 3), (1, 3))]
        size, kernel, stride, padding, dilation = pairs
        found = Geometry(
            int(random.integers(1, 4)), groups * int(random.integers(1, 4)),
            groups * int(random.integers(1, 4)), size, kernel, stride, padding, dilation, groups,
        )  # fmt: skip
        if min(found.out) > 0:
            return found


def _pair(random: np.random.Generator, least: int, most: int) -> Pair:
    down, across = (int(each) for each in random.integers(least, most + 1, 2))
    return down, across


def mistaken(g: Geometry) -> Iterator[tuple[Geometry, str]]:
    """Geometries that are taken for this one by mistake, and what to look at. The shape of the
    result is the right one."""
    said = {"stride": g.stride, "padding": g.padding, "dilation": g.dilation}
    for name, (down, across) in said.items():
        if down != across:
            words = f"height and width are exchanged in the {name}: it is (down, across)"
            yield _changed(g, name, (across, down)), words
    for name, usual, words in (
        ("dilation", (1, 1), "the elements of a window lie `dilation` apart"),
        ("stride", (1, 1), "each window lies `stride` after the one before"),
        ("padding", (0, 0), "the first window starts `padding` before the image"),
    ):
        if said[name] != usual:
            yield _changed(g, name, usual), f"the {name} is passed over: {words}"
    if g.stride != g.dilation:
        turned = _changed(_changed(g, "stride", g.dilation), "dilation", g.stride)
        yield (
            turned,
            (
                "stride and dilation are exchanged: windows lie `stride` apart, the elements of "
                "one window `dilation`"
            ),
        )


def _changed(g: Geometry, name: str, value: Pair) -> Geometry:
    return dataclasses.replace(g, places=g.out, **{name: value})  # type: ignore[arg-type]
