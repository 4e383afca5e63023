"""Convolutions as products on a GPU whose columns are never written: implicit.cuh has the kernel.

An element of a column is that of a tap (a channel, a row and a column of the kernel) at a spot (a
window; for the gradient of images, an element). Two tables say where it lies, and whether.
"""

import dataclasses
import functools

import numpy as np

from dlsys.dtypes import FLOAT32, INT32
from dlsys.ndarray import size_of

from .expressions import signature
from .instructions import Instruction
from .view import new_view
from .windows import Windows

#: Bits of a spot: a row of the kernel each, then a column. One more stays 0 in all of them.
_MOST_BITS = 31
#: Tables of taps are filled up to a multiple of this, which every side of a tile divides.
_WHOLE = 256
#: Multiprocessors that are kept busy; of K, the least that is worth a part.
_PROCESSORS, _LEAST_DEPTH = 132, 256
#: Tiles, as gemm.py has them, and how much of a multiprocessor's rate each reaches.
_TILES = {
    False: (
        ((128, 256, 16, 8, 16, 2, 1, "kTurned"), 1.0),
        ((128, 64, 16, 8, 4, 4, 2), 0.97),
        ((64, 128, 16, 8, 4, 4, 2), 0.95),
        ((64, 128, 16, 8, 8, 3, 3, "kTurned"), 0.9),
        ((64, 64, 16, 4, 4, 4, 3), 0.85),
        ((64, 32, 16, 4, 4, 4, 4), 0.75),
        ((32, 64, 16, 4, 4, 4, 4), 0.7),
    ),
    True: (
        ((128, 128, 32, 8, 8, 3, 1, "kTf32"), 1.0),
        ((128, 64, 32, 8, 4, 3, 2, "kTf32"), 0.95),
        ((64, 128, 32, 8, 4, 3, 2, "kTf32"), 0.85),
        ((64, 64, 32, 8, 4, 4, 2, "kTf32"), 0.75),
        ((64, 32, 32, 4, 4, 4, 4, "kTf32"), 0.55),
        ((32, 64, 32, 4, 4, 4, 4, "kTf32"), 0.55),
    ),
}


def refusal(windows, channels, dtype):
    """Why the method can't compute such a convolution, in words; "" if it can."""
    if dtype != FLOAT32:
        return "computes in float32, not in %s" % dtype
    if sum(windows.kernel) > _MOST_BITS:
        return "takes kernels whose height and width are at most %d together" % _MOST_BITS
    images, *others = channels
    largest = max(size_of(windows.size), size_of(windows.out)) * max(images, *others)
    if min(channels) < 1 or max(largest, max(others) * size_of(windows.kernel)) >= 1 << 30:
        return "takes images and filters of 1 to 2**30 elements a channel"
    return ""


class Tabled(Instruction):
    """One whose kernel also reads `_tables` and has room in `scratch`, both views."""

    @property
    def sources(self):
        """The inputs and the tables."""
        return (*self.inputs, *self._tables)

    @property
    def written(self):
        """The output, and room."""
        return (self.output, *self.scratch)

    @property
    def operands(self):
        """Output, inputs, tables, room."""
        return (self.output, *self.sources, *self.scratch)


@dataclasses.dataclass(eq=False)
class ImplicitConvolution(Tabled):
    """A convolution: its "value" of w and x, or the gradient of x ("data") or w ("weights").

    "data" reads w, (groups, C / groups, F / groups, KH, KW), and g; "weights" reads g and x. All
    lie dense.
    """

    kind: str
    windows: Windows
    channels: tuple
    groups: int
    #: Whether tensor cores multiply, as TF32.
    tf32: bool = False

    def __post_init__(self):
        images, depth, height = self.channels[0], *self._in_group
        kernel, size, out = map(size_of, self._axes)
        of_data = self.kind == "data"
        self.m, self.n, self.k = {
            "value": (height, images * out, depth * kernel),
            "data": (depth, images * size, height * kernel),
            "weights": (height, depth * kernel, images * out),
        }[self.kind]
        tables = (
            _spots(self.windows, of_data),
            _taps(self.windows, height if of_data else depth, of_data),
        )
        self._tables = tuple(new_view(each.shape, INT32, values=each) for each in tables)
        self._cut()

    @property
    def _axes(self):
        return self.windows.kernel, self.windows.size, self.windows.out

    @property
    def _in_group(self):
        """Channels and filters of a group."""
        return tuple(count // self.groups for count in self.channels[1:])

    def use_tf32(self):
        """Has tensor cores multiply."""
        self.tf32 = True
        self._cut()

    @property
    def question(self):
        """What its best tile depends on."""
        return ("tile", self.kind, self.windows.numbers(), self.channels, self.groups, self.tf32)

    def likely(self, most):
        """Tiles and parts of K that may be the best, the likeliest first."""
        return choices(self.tf32, self.m, self.n, self.k, self.groups)[:most]

    def _cut(self):
        self.cut(*self.likely(1)[0])

    def cut(self, tile, parts):
        """Has a tile, and parts of K; makes room for these."""
        self.tile = tile
        tiles = self.groups * -(-self.m // tile[0]) * -(-self.n // tile[1])
        slices = -(-self.k // tile[2])
        self.of_part = -(-slices // parts)
        self.parts = -(-slices // self.of_part)
        self.scratch = ()
        if self.parts > 1:
            zeros = np.zeros(tiles, INT32)
            room = new_view((self.parts * tiles * tile[0] * tile[1],), FLOAT32)
            self.scratch = (room, new_view(zeros.shape, INT32, values=zeros))

    @property
    def key(self):
        """Tile, whether it is of weights, and whether lines of the first input lie in packs."""
        line = size_of(self.windows.out) if self.kind == "weights" else self.k
        return ("implicit", self.tile, self.kind == "weights", line % 4 == 0)

    @property
    def sizes(self):
        """m, n, k, parts, slices of a part, spots, floats from image to image and from group to
        group of what implicit.cuh names; groups."""
        _, size, out = map(size_of, self._axes)
        # Of x and of y: floats from image to image, and from group to group.
        x, y = (
            (whole * plane, part * plane)
            for whole, part, plane in zip(self.channels[1:], self._in_group, (size, out))
        )
        if self.kind == "weights":
            images, groups = (x[0], 0, y[0]), (x[1], self.m * self.n, y[1])
        else:
            read, made = (y, x) if self.kind == "data" else (x, y)
            images, groups = (read[0], made[0], 0), (read[1], made[1], self.m * self.k)
        spots = size if self.kind == "data" else out
        return (
            self.m, self.n, self.k, self.parts, self.of_part, spots, *images, *groups, self.groups
        )  # fmt: skip


def operands(build, kind, groups, *inputs):
    """What ImplicitConvolution reads, from x and w, w and g, or x and g."""
    first, second = inputs
    if kind == "data":
        apart = (groups, first.shape[0] // groups, *first.shape[1:])
        filters = build.reshape(first, apart)
        return build.view(lambda array: np.swapaxes(array, 1, 2), filters), second
    return second, first


def choices(tf32, m, n, k, groups):
    """Tiles and parts of K, in the order of the time that waves of their blocks may take."""
    found = []
    for tile, rate in _TILES[tf32]:
        blocks = groups * -(-m // tile[0]) * -(-n // tile[1])
        slots, most = _PROCESSORS * tile[6], max(1, k // _LEAST_DEPTH)
        for parts in sorted({1, *(max(1, min(slots * w // blocks, most)) for w in (1, 2, 3))}):
            waves = -(-blocks * parts // slots)
            work = tile[0] * tile[1] * tile[6] / rate
            # A part more is written and read: as long as some 32 of K for each of the tile.
            time = waves * work * (-(-k // parts) + tile[2] + 32 * (parts > 1))
            found.append((time, parts, tile))
    found.sort(key=lambda each: each[:2])
    return [(tile, parts) for _, parts, tile in found]


def keys(tf32):
    """Of all kernels that there are."""
    of_both = (False, True)
    return [
        ("implicit", tile, of_weights, packs)
        for tile, _ in _TILES[tf32] for of_weights in of_both for packs in of_both
    ]  # fmt: skip


@functools.lru_cache(1000)
def _spots(windows, of_data):
    """(spots, 2): where each lies, and a bit for each row and column of the kernel that it meets.

    Element (i, j) of the kernel is at oh * stride - padding + i * dilation of the image; so it
    meets the element h in window (h + padding - i * dilation) / stride, if that is a whole one.
    """
    places, bits, first = [], [], 0
    for size, kernel, out, stride, padding, dilation in _sides(windows):
        taps = np.arange(kernel) * dilation
        if of_data:
            moved = np.arange(size)[:, None] + padding - taps
            meets = (moved % stride == 0) & (moved >= 0) & (moved < out * stride)
            places.append((np.arange(size) + padding) // stride)
        else:
            moved = np.arange(out)[:, None] * stride - padding + taps
            meets = (moved >= 0) & (moved < size)
            places.append(np.arange(out) * stride - padding)
        bits.append(meets @ (1 << np.arange(first, first + kernel)))
        first += kernel
    wide = (windows.out if of_data else windows.size)[1]
    places = np.add.outer(places[0] * wide, places[1])
    return np.stack([places, np.add.outer(*bits)], -1).reshape(-1, 2).astype(INT32)


def _sides(windows):
    """(size, kernel, windows, stride, padding, dilation) of height and width."""
    fields = windows.size, windows.kernel, windows.out, windows.stride, windows.padding
    return zip(*fields, windows.dilation)


@functools.lru_cache(1000)
def _taps(windows, depth, of_data):
    """(taps, 2): what each adds to a spot, and its bits; then some that no spot meets."""
    steps, bits, first = [], [], 0
    for _, kernel, _, stride, _, dilation in _sides(windows):
        moved = np.arange(kernel) * dilation
        steps.append(-(moved // stride) if of_data else moved)
        bits.append(1 << np.arange(first, first + kernel))
        first += kernel
    plane = windows.out if of_data else windows.size
    steps = np.add.outer(steps[0] * plane[1], steps[1]).reshape(-1)
    steps = np.add.outer(np.arange(depth) * size_of(plane), steps).reshape(-1)
    count = len(steps)
    found = np.full((-(-count // _WHOLE) * _WHOLE, 2), (0, -1), INT32)
    found[:count, 0] = steps
    found[:count, 1] = np.tile(np.add.outer(*bits).reshape(-1), depth)
    return found


def source(name, tile, of_weights, packs):
    """The launcher, from the key of an instruction."""
    block = "Block<%s>" % ", ".join(map(str, tile))
    call = "implicit<%s, %s, %%s>(data, n, on);" % (block, "true" if of_weights else "false")
    lines = ["return " + call % "false"]
    if packs:
        lines.insert(0, "if (is_aligned(data[1])) return " + call % "true")
    body = "".join("  %s\n" % line for line in lines)
    return "%s {\n%s}\n" % (signature(name, "cudaStream_t on"), body)
