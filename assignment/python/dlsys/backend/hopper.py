"""Convolutions on a Hopper GPU, by its copy engine and wgmma: hopper.cuh has the kernels.

A tile of the result is so many channels by a box of pixels, or, for weights, by blocks of channels
that taps move. How large both are, and in how many parts K is cut, is a plan; a simple account of
time orders those that there are.
"""

import dataclasses
import functools
import itertools

import numpy as np

from dlsys.dtypes import FLOAT32, INT32
from dlsys.ndarray import is_emulated, size_of

from .expressions import signature
from .implicit import Tabled
from .kernels import capability
from .view import new_view
from .windows import Windows

#: The GPU that has wgmma of this kind, and its multiprocessors.
_CAPABILITY, _PROCESSORS = (9, 0), 132
#: Of K in a slice; columns of wgmma at most; rows of a tile; the longest step of the copy engine.
_DEPTH, _COLUMNS, _ROWS, _LONGEST = 32, 256, (64, 128), 8
#: Bytes of slices in the shared memory of a block, and of a line; see hopper_block.cuh.
SHARED, LINE = 207 << 10, 128
#: Taps of a kernel that the shared memory of a block has room for.
_TAPS = 384
#: Of the account, in cycles: a box takes so long, so long for each of its rows, and never less; a
#: unit takes so long besides. Floats that a multiprocessor writes in a cycle, parts of K at most.
_BOX, _ROW, _LEAST, _UNIT = 65, 4.2, 250, 2500
_FLOATS, _PARTS = 6, 72
#: Products of slices that a part of an exact gradient of weights adds, where so many parts may be:
#: tensor cores cut off what a sum's last bit does not hold, so the error grows with each product.
#: 800 had 6e-5 of the result.
_EXACT = 256
#: Bytes of room that parts may take; and images that are laid, if they are mostly padding.
_MOST_ROOM, _MOST_PADDED = 256 << 20, 1 << 30


def refusal(kind, windows, channels, groups, dtype):
    """Why the method can't compute such a convolution, in words; "" if it can."""
    if is_emulated() or capability() != _CAPABILITY:
        return "needs a GPU of compute capability 9.0"
    if dtype != FLOAT32:
        return "computes in float32, not in %s" % dtype
    if groups > 1:
        return "takes one group"
    if max(windows.stride) > _LONGEST:
        return "takes strides of at most %d" % _LONGEST
    images, *others = channels
    planes = size_of(windows.size), size_of(windows.out)
    largest = max(max(planes) * images * max(others), size_of(others) * size_of(windows.kernel))
    if size_of(windows.kernel) > _TAPS:
        return "takes kernels of at most %d elements" % _TAPS
    sides = *channels, *windows.size, *windows.kernel
    if min(sides) < 1 or largest >= 1 << 30 or max(channels) >= 1 << 16:
        return "takes 1 to 65535 images, channels and filters of 2**30 elements at most"
    whole = _whole(images)
    laid = 2 * 4 * whole * sum(plane * count for plane, count in zip(planes, others))  # and lows
    if kind == "weights" and whole > 2 * images and laid > _MOST_PADDED:
        return "would lay %d images as %d, in %.1f GB" % (images, whole, laid / 1e9)
    return ""


@dataclasses.dataclass(eq=False)
class HopperConvolution(Tabled):
    """A convolution: its "value" of w and x, or the gradient of x ("data") or w ("weights").

    "data" reads w and g, "weights" g and x; all lie dense.
    """

    kind: str
    windows: Windows
    channels: tuple
    groups: int = 1
    #: Whether it may round to TF32, and needs one product where there are three.
    tf32: bool = False

    def __post_init__(self):
        self.cut(*self.likely(1)[0])

    def use_tf32(self):
        """Rounds to TF32."""
        self.tf32 = True
        self.cut(*self.likely(1)[0])

    @property
    def question(self):
        """What its best plan depends on."""
        return ("hopper", self.kind, self.windows.numbers(), self.channels, self.tf32)

    def likely(self, most):
        """Shapes of tiles and parts of K that may be the best, the likeliest first."""
        return plans(self.kind, self.windows, self.channels, self._products)[:most]

    @property
    def _products(self):
        return 1 if self.tf32 else 3

    def cut(self, shape, parts):
        """Has such a tile, and parts of K; makes tables and room for these."""
        self._shape, self.parts = shape, parts
        images, channels, filters = self.channels
        size, taps = size_of(self.windows.size), size_of(self.windows.kernel)
        out = size_of(self.windows.out)
        if self.kind == "weights":
            tables = (taps_of(self.windows),)
            whole = _whole(images)
            laid = filters * out * whole, channels * size * whole
        else:
            *tables, self._tiles = tables_of(self.kind, self.windows, images, shape)
            depth, lines = self._depth_and_lines
            plane = size if self.kind == "value" else out
            laid = (taps * lines * _packs(depth), images * plane * _packs(depth))
        has_room = self.parts > 1 or self.kind == "weights"
        room = (self.parts * size_of(self.output.shape),) if has_room else ()
        self._tables = tuple(new_view(each.shape, INT32, values=each) for each in tables)
        laid = [count if self.tf32 else 2 * count for count in laid]
        self.scratch = tuple(new_view((count,), FLOAT32) for count in (*laid, *room))

    @property
    def _depth_and_lines(self):
        """Channels that are added over, and those of the result; not of weights."""
        _, channels, filters = self.channels
        return (channels, filters) if self.kind == "value" else (filters, channels)

    @property
    def key(self):
        """What is compiled in: the shape of a tile."""
        return ("hopper", self.kind == "weights", self._shape)

    @property
    def sizes(self):
        """See of_pixels and of_taps in hopper.cuh."""
        images, channels, filters = self.channels
        of_x, of_y = (channels, *self.windows.size), (filters, *self.windows.out)
        taps, stride = size_of(self.windows.kernel), self.windows.stride
        last = self.parts, self._products
        if self.kind == "weights":
            return (images, *of_x, *of_y, taps, *stride, *last)
        if self.kind == "value":
            return (images, *of_x, *of_y, taps, 0, *stride, 1, 1, self._tiles, *last)
        return (images, *of_y, *of_x, taps, 1, 1, 1, *stride, self._tiles, *last)


def _whole(count):
    """Rounded up to whole slices."""
    return -(-count // _DEPTH) * _DEPTH


def _packs(count):
    """Rounded up to whole packs of 16 bytes, as the copy engine wants lines."""
    return -(-count // 4) * 4


def taps_of(windows):
    """(taps, 4): column, row, the tap's number, and one that nobody reads."""
    (down, across), (dh, dw) = windows.kernel, windows.dilation
    top, left = windows.padding
    rows = [
        (j * dw - left, i * dh - top, i * across + j, 0) for i in range(down) for j in range(across)
    ]
    return np.array(rows, INT32)


@dataclasses.dataclass(frozen=True)
class _Phase:
    """Elements of the result whose taps lie alike: of the first, and how many; (column, row,
    matrix of the weights) of each tap."""

    row: int
    column: int
    height: int
    width: int
    taps: tuple

    def tiles(self, images, shape):
        """How many boxes there are across and down, and all tiles."""
        rows, wide, high, deep, _, group, _ = shape
        step, boxes = (high, boxes_of(rows)) if group == 1 else (high * boxes_of(rows), 1)
        across, down = -(-self.width // wide), -(-self.height // step)
        return across, down, -(-across * down * -(-images // deep) // boxes)


@functools.lru_cache(1000)
def _phases(kind, windows):
    _, across = windows.kernel
    if kind == "value":
        taps = [tuple(each[:3]) for each in taps_of(windows).tolist()]
        return (_Phase(0, 0, *windows.out, tuple(taps)),)
    found = []
    for first in itertools.product(*map(range, windows.stride)):
        height, width = (
            -(-(size - at) // step) for size, at, step in zip(windows.size, first, windows.stride)
        )
        said = windows.kernel, windows.padding, windows.dilation, windows.stride
        rows, columns = (_met(*side) for side in zip(first, *said))
        taps = tuple((x, y, i * across + j) for i, y in rows for j, x in columns)
        if height > 0 and width > 0:
            found.append(_Phase(*first, height, width, taps))
    return tuple(found)


def _met(first, kernel, padding, dilation, stride):
    """(i, window) of the elements i of a kernel that meet the element `first` of an image: it is at
    i in window (first + padding - i * dilation) / stride, if that is a whole one."""
    moved = [(i, first + padding - i * dilation) for i in range(kernel)]
    return [(i, at // stride) for i, at in moved if at % stride == 0]


def tables_of(kind, windows, images, shape):
    """Phases and taps as hopper.cuh has them, and how many tiles of pixels there are."""
    of_phases, of_taps, tiles = [], [], 0
    for each in _phases(kind, windows):
        across, down, own = each.tiles(images, shape)
        said = (tiles, len(of_taps), len(each.taps), each.row, each.column, each.height, each.width)
        of_phases.append((*said, across, down))
        of_taps += [(*tap, 0) for tap in sorted(each.taps)]  # columns, and their rows downwards
        tiles += own
    return np.array(of_phases, INT32), np.array(of_taps or [(0,) * 4], INT32), tiles


def boxes_of(rows):
    """Of a tile: two warpgroups share one, or each has one and all rows."""
    return 1 if rows == _ROWS[1] else 2


def plans(kind, windows, channels, products):
    """(template arguments, parts of K) of all tiles, by the time that they may take."""
    ways = of_pixels if kind != "weights" else _of_taps if products == 1 else _of_exact_taps
    return ordered(ways, kind, windows, channels, products)


@functools.lru_cache(1000)
def ordered(ways, kind, windows, channels, products):
    """The same of the tiles that `ways` finds, see of_pixels."""
    found, at_once = [], products if kind == "weights" else 1  # of a slice
    for shape, columns, cycles, boxes, size, tiles, slices in ways(kind, windows, channels):
        slices *= products // at_once
        slice_ = max(cycles, sum(max(_LEAST, _BOX + _ROW * lines) for lines in boxes))
        write = 2 * 64 * columns / _FLOATS
        most = max(1, min(_PARTS, int(slices) // 4, _MOST_ROOM // (4 * size)))
        least = max(1, min(most, -(-slices * at_once // _EXACT))) if at_once > 1 else 1
        for parts in range(least, most + 1):
            waves = -(-tiles * parts // _PROCESSORS)
            time = waves * (slices / parts * slice_ + write + _UNIT)
            if parts > 1:
                time += _UNIT + size * (2 * parts + 1) / (_PROCESSORS * _FLOATS)
            found.append((time, parts, shape))
    found.sort(key=lambda each: (*each[:2], [-side for side in each[2]]))
    best = {}
    for _, parts, shape in found:
        best.setdefault(shape, parts)
    return list(best.items())


def of_pixels(kind, windows, channels, depth_of_slice=_DEPTH, groups_images=False):
    """Tiles of the value, and of the gradient of the data.

    Args:
        groups_images: whether taps may be a group in boxes of several images.

    Yields:
        (template arguments, columns of a warpgroup, cycles in which a slice is multiplied, rows of
        each of its boxes, elements of the result, tiles, slices of a tile). Two warpgroups multiply
        64 rows each by 256 columns in 1,024 cycles.
    """
    images, *sides = channels
    depth, lines = sides if kind == "value" else reversed(sides)
    phases = _phases(kind, windows)
    steps = windows.stride if kind == "value" else (1, 1)
    _, wide = plane = windows.out if kind == "value" else windows.size
    rows = _ROWS[0] if lines <= _ROWS[0] else _ROWS[1]
    taps = sum(len(each.taps) for each in phases) / len(phases)
    chunks, heights = -(-depth // depth_of_slice), -(-lines // rows)
    down, apart = windows.kernel[0], windows.dilation[0]
    size = images * lines * size_of(plane)
    for box in likely_boxes(phases[0].width, phases[0].height, images, steps):
        columns = -(-size_of(box) // 8) * 8
        packs = int(box[0] % 4 == 0 == wide % 4 and (kind == "value" or windows.stride[1] == 1))
        shapes = [((rows, *box, packs, 1, 1), [rows, *[size_of(box)] * boxes_of(rows)])]
        tall = box[1] * boxes_of(rows) + (down - 1) * apart
        lines_of_box = box[0] * tall * box[2]
        fits = tall <= _COLUMNS and LINE * ((down + 1) * rows + 2 * lines_of_box) <= SHARED
        fits = fits and box[0] * box[2] % 8 == 0 and (box[2] == 1 or groups_images)
        if windows.stride == (1, 1) and down > 1 and fits:
            boxes = [rows] * down + [lines_of_box]
            shapes.append(((rows, *box, packs, down, apart), boxes))
        for shape, boxes in shapes:
            tiles, group = sum(each.tiles(images, shape)[2] for each in phases), shape[5]
            cycles = 4 * columns * group
            yield shape, columns, cycles, boxes, size, tiles * heights, taps / group * chunks


def likely_boxes(width, height, images, steps, largest=_COLUMNS):
    """Boxes of `largest` pixels at most (across, down, images) that waste little."""
    found = set()
    highest, widest = (_COLUMNS // step for step in steps)
    for columns in (each for each in (256, 224, 192, 160, 128, 96, 64) if each <= largest):
        cuts = [-(-width // cut) for cut in range(1, 9)]
        for wide in (*cuts, *(side for side in (8, 16, 32, 64) if side < width // 8)):
            across = min(wide, widest, columns)
            most_down = min(height, highest, columns // across)
            for down in {most_down, *(-(-height // k) for k in range(1, 33))}:
                if across * down > columns or down > highest:
                    continue
                whole = across == width and down == height
                deep = min(images, columns // (across * down)) if whole else 1
                found.add((across, down, deep))
    wasted = {box: _waste(box, width, height, images) for box in found}
    least = min(wasted.values())
    return sorted((box for box in found if wasted[box] <= 1.2 * least), key=size_of)[-24:]


def _waste(box, width, height, images):
    """Pixels that are computed for each that there is."""
    covered = size_of(-(-whole // part) * part for whole, part in zip((width, height, images), box))
    padded = -(-size_of(box) // 8) * 8 / size_of(box)
    return covered * padded / (width * height * images)


def _of_taps(kind, windows, channels, exact=0):
    """The same for the gradient of weights; if exact, a slice has highs and lows of both."""
    images, depth, lines = channels
    rows = _ROWS[0] if lines <= _ROWS[0] else _ROWS[1]
    taps, slices = size_of(windows.kernel), size_of(windows.out) * _whole(images) // _DEPTH
    for block in (8, 16, 32, 64, 128, 256):
        if block > 8 and block >= 2 * depth:
            continue
        of_all = taps * -(-depth // block)
        for blocks in range(1, min(_COLUMNS // block, of_all, 16) + 1):
            tiles = -(-of_all // (blocks * boxes_of(rows))) * -(-lines // rows)
            boxes, size = [rows, *[block] * (blocks * boxes_of(rows))], lines * depth * taps
            columns, cycles = block * blocks, 4 * block * blocks
            if exact:
                if 4 * LINE * (rows + columns * boxes_of(rows)) > SHARED:
                    continue  # there is no room for two slices
                boxes, cycles = 2 * boxes, 3 * cycles
            yield (rows, block, blocks, exact), columns, cycles, boxes, size, tiles, slices


_of_exact_taps = functools.partial(_of_taps, exact=1)


def source(name, of_weights, shape):
    """The launcher, from the key of an instruction, and the wgmma that it needs."""
    columns = size_of(shape[1:3]) if of_weights else -(-size_of(shape[1:4]) // 8) * 8
    call = "of_taps" if of_weights else "of_pixels"
    return '#include "hopper.cuh"\n%s%s {\n  return hopper::%s<%s>(data, n, on);\n}\n' % (
        wgmma_of_tf32(columns), signature(name, "cudaStream_t on"), call,
        ", ".join(map(str, shape)),
    )  # fmt: skip


def wgmma_of_tf32(columns):
    """Of operands that are TF32."""
    said = "wgmma.mma_async.sync.aligned.m64n%dk8.f32.tf32.tf32" % columns
    return wgmma("Wgmma<%d>" % columns, columns, said, "")


def wgmma(name, columns, said, more):
    """One instruction: 64 x columns; once in each file.

    Args:
        name: of the struct that has it.
        said: the instruction.
        more: operands at its end.
    """
    count = columns // 2
    sums = ", ".join("%%%d" % i for i in range(count))
    given = ", ".join('"+f"(d[%d])' % i for i in range(count))
    text = """#ifndef {6}
#define {6}
template <>
struct hopper::{0} {{
  static __device__ inline void multiply(float (&d)[{1}], uint64_t a, uint64_t b) {{
    asm volatile("{2} {{{3}}}, %{1}, %{4}, 1, 1, 1{7};" : {5} : "l"(a), "l"(b));
  }}
}};
#endif
"""
    guard = "".join(each if each.isalnum() else "_" for each in name).upper()
    return text.format(name, count, said, sums, count + 1, given, guard, more)
