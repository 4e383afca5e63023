"""Convolutions on a Hopper GPU of images whose channels lie last: hopper_last.cuh has the kernels.

They round: to bfloat16, where all is of it, or float32 to TF32.
"""

import copy
import dataclasses
import functools
import itertools

import numpy as np

from dlsys.dtypes import BFLOAT16, C_NAMES, FLOAT32, INT32
from dlsys.ndarray import size_of

from . import hopper
from .expressions import signature
from .instructions import Elementwise, WithOutputs
from .view import channels_last_view, new_view
from .windows import Windows

#: Bytes of a pack: channels of an image are whole ones.
_PACK = 16
#: Parts that readers of a result may add as they read it.
_ADDED = 4
#: Columns of a warpgroup at most; of each and of a pixel, what it multiplies in a cycle.
_COLUMNS, _RATE = 256, {BFLOAT16: 16, FLOAT32: 5}


def refusal(kind, windows, channels, groups, dtype):
    """Why the method can't compute such a convolution, in words; "" if it can."""
    return hopper.refusal(kind, windows, _in_packs(channels, dtype), groups, FLOAT32)


def _in_packs(channels, dtype):
    """Numbers of images, channels and filters, where these are whole packs."""
    pack = _PACK // dtype.itemsize
    return (channels[0], *(-(-count // pack) * pack for count in channels[1:]))


@dataclasses.dataclass(eq=False)
class LastConvolution(hopper.HopperConvolution):
    """As HopperConvolution; x and g have their channels last, and so have the value and the
    gradient of the data. Weights lie as LayWeights lays them; their gradient lies dense.

    Channels and filters of images are whole packs of 16 bytes.
    """

    #: Of images: BFLOAT16, or FLOAT32, which is rounded to TF32.
    dtype: object = BFLOAT16
    tf32: bool = True
    #: Elements from pixel to pixel of the second input, row to row, image to image, if not dense.
    apart: tuple = ()
    #: Whether the output is what is in the end added, and not the parts one behind the other.
    adds: bool = True
    #: Whether it writes moments of the value's channels, too.
    gathers: bool = False

    @property
    def images(self):
        """The inputs that the copy engine reads where they lie."""
        return self.inputs if self.kind == "weights" else self.inputs[1:]

    def use_tf32(self):
        """Does nothing: it rounds so much, or more."""

    @property
    def question(self):
        """What its best plan depends on."""
        return ("last", self.dtype.name, self.kind, self.windows.numbers(), self.channels)

    def likely(self, most):
        """As HopperConvolution's."""
        return plans(self.kind, self.windows, self.channels, self.dtype)[:most]

    def cut(self, shape, parts):
        """As HopperConvolution's."""
        self._shape, self.parts = shape, parts
        if self.kind == "weights":
            tables = (np.array(sorted(hopper.taps_of(self.windows).tolist()), INT32),)
        else:
            images = self.channels[0]
            *tables, self._tiles = hopper.tables_of(self.kind, self.windows, images, shape)
        has_room = parts > 1 or self.kind == "weights"
        room = (new_view((parts * size_of(self.output.shape),), FLOAT32),) if has_room else ()
        self._tables = tuple(new_view(each.shape, INT32, values=each) for each in tables)
        self.scratch = room

    def and_sum(self):
        """This, and what adds its parts: an instruction that may be fused with readers."""
        if self.kind == "weights" or not 1 < self.parts <= _ADDED:
            return [self]
        count, *image = self.output.shape
        room = channels_last_view((self.parts * count, *image), FLOAT32)
        parts = [
            room.seen(lambda array, i=i: array[i * count : (i + 1) * count])
            for i in range(self.parts)
        ]
        code = " + ".join("x%d" % i for i in range(self.parts))
        total = Elementwise(self.output, tuple(parts), FLOAT32, code)
        total.node = self.node
        made = copy.copy(self)
        made.output, made.scratch, made.adds = room, (room,), False
        return [made, total]

    def with_moments(self):
        """The same that writes moments of the value's channels to `scratch`, too: how many pixels
        of a tile, their mean, the sum of squared distances from it. float32 (F, tiles, 3)."""
        made, count = copy.copy(self), self._tiles * hopper.boxes_of(self._shape[0])
        made.gathers = True
        made.scratch = (new_view((self.output.shape[1], count, 3), FLOAT32),)
        return made

    @property
    def sizes(self):
        """See pixels_last and taps_last in hopper_last.cuh."""
        windows, depth = self.windows, self.channels[2 if self.kind == "data" else 1]
        height, width = windows.out if self.kind == "data" else windows.size
        dense = depth, width * depth, height * width * depth
        return (*super().sizes, *(self.apart or dense), int(self.adds))

    @property
    def key(self):
        """What is compiled in: the shape of a tile."""
        return key_of(self.kind, self._shape, self.dtype, self.gathers)


@dataclasses.dataclass(eq=False)
class LayWeights(WithOutputs):
    """Writes weights of convolutions, (filters, channels, height, width), as (taps, filters,
    channels), or, turned, as (taps, channels, filters). Inputs are dense, of float32."""

    outputs: tuple
    turned: tuple

    @property
    def key(self):
        """The dtype of what is laid."""
        return ("lay_weights", self.output.dtype)

    @property
    def sizes(self):
        """How many; of each filters, channels, taps, whether they are turned."""
        found = [len(self.outputs)]
        for w, is_turned in zip(self.inputs, self.turned):
            filters, channels, *kernel = w.shape
            found += (filters, channels, size_of(kernel), int(is_turned))
        return tuple(found)


def lay_together(instructions, kept):
    """The same program, where weights that are there at the start are all laid by one launch.

    Args:
        instructions: in an order in which they may run.
        kept: buffers that are read after the run.
    """
    places, found, written = {}, [], set()
    for each in instructions:
        if isinstance(each, LayWeights) and not written & {v.buffer for v in each.inputs}:
            place = places.setdefault(each.key, len(found))
            if place < len(found):
                found[place] = _both(found[place], each)
                continue
        written.update(view.buffer for view in each.written)
        found.append(each)
    return found


def _both(one, other):
    """One instruction for two; what lays the same weights in two ways stands side by side."""
    made, inputs = copy.copy(one), one.inputs + other.inputs
    order = sorted(range(len(inputs)), key=lambda i: inputs.index(inputs[i]))
    for name in ("inputs", "outputs", "turned"):
        found = getattr(one, name) + getattr(other, name)
        setattr(made, name, tuple(found[i] for i in order))
    return made


def key_of(kind, shape, dtype, gathers=False):
    """Of an instruction with such a tile."""
    return ("last", kind == "weights", (*shape, C_NAMES[dtype]), gathers)


def convolved(build, kind, shape, windows, channels, dtype, *inputs):
    """The instructions of a convolution, or of a gradient; arguments as those of Lowering.convolve.

    Channels that are no whole packs get zeros besides.
    """
    images, depth, filters = padded = _in_packs(channels, dtype)
    of_w = (filters, depth, *windows.kernel)
    said = {"dtype": dtype}
    if kind == "data":
        w, g = inputs
        w = _laid(build, _weights(build, w, of_w), dtype, is_turned=True)
        operands = w, _images(build, g, filters, dtype)
        output = channels_last_view((images, depth, *windows.size), dtype)
    else:
        if _has_rows_in_lines(windows, depth, dtype):
            x, windows, said["apart"] = _laid_by_rows(build, inputs[0], depth, windows, dtype)
            padded = images, depth * of_w[-1], filters
        else:
            x = _images(build, inputs[0], depth, dtype)
        if kind == "weights":
            operands = _images(build, inputs[1], filters, dtype), x
            output = new_view((filters, padded[1], *windows.kernel), dtype)
        else:
            w = _weights(build, inputs[1], of_w)
            w = _by_rows(build, w) if "apart" in said else w
            operands = _laid(build, w, dtype), x
            output = channels_last_view((images, filters, *windows.out), dtype)
    build.add(LastConvolution(output, operands, kind, windows, padded, **said))
    if kind == "weights" and "apart" in said:
        by_columns = output.reshaped((filters, of_w[-1], depth, of_w[-2]))
        output = by_columns.seen(lambda array: array.transpose(0, 2, 3, 1))
    return output.seen(_first_of(shape))


def _laid(build, w, dtype, is_turned=False):
    """Weights as the copy engine reads them; once for all that read them so."""
    laid = build.laid.get((w, dtype, is_turned))
    if laid is None:
        filters, channels, *kernel = w.shape
        sides = (channels, filters) if is_turned else (filters, channels)
        laid = build.laid[w, dtype, is_turned] = new_view((size_of(kernel), *sides), dtype)
        build.add(LayWeights(laid, (w,), (laid,), (is_turned,)))
    return laid


def _first_of(shape):
    """A function that sees such a part of an array."""
    part = tuple(map(slice, shape))
    return lambda array: array[part]


def _images(build, x, channels, dtype):
    if x.shape[1] == channels:
        return build.channels_last(x, dtype)
    laid = build.laid.get((x, channels, dtype))  # as for the value, so for a gradient of weights
    if laid is None:
        laid = channels_last_view((x.shape[0], channels, *x.shape[2:]), dtype)
        build.laid[x, channels, dtype] = _with_zeros(build, x, laid)
    return laid


def _weights(build, w, shape):
    """As float32: what was rounded to bfloat16 for this convolution is rounded as it is laid."""
    w = build.before_cast(w, FLOAT32)
    return w if w.shape == shape else _with_zeros(build, w, new_view(shape, FLOAT32))


def _with_zeros(build, x, into, at=(0, 0)):
    """Writes x, at such a row and column, and zeros elsewhere."""
    build.elementwise("p0", shape=into.shape, numbers=(0,), into=into)
    room = into.seen(lambda array: array[:, :, at[0] :, at[1] :])
    part = tuple(map(min, room.shape, x.shape))
    build.elementwise("a", build.view(_first_of(part), x), into=room.seen(_first_of(part)))
    return into


def _has_rows_in_lines(windows, channels, dtype):
    """Whether a line of shared memory, most of which a pixel would leave empty, has room for a row
    of a window."""
    across, size = windows.kernel[1], channels * dtype.itemsize
    return size == _PACK and 1 < across <= hopper.LINE // size and windows.dilation[1] == 1


def _laid_by_rows(build, x, depth, windows, dtype):
    """All columns of a window's row are channels of one pixel, and pixels overlap.

    Returns:
        (images with borders, windows in these, how far pixels, rows and images lie apart).
    """
    (down, across), (apart, _) = windows.kernel, windows.dilation
    (step_down, step), (height, width) = windows.stride, windows.out
    rows = (height - 1) * step_down + (down - 1) * apart + 1
    columns = -(-((width - 1) * step + across) // step) * step
    laid = build.laid.get((x, windows, dtype))
    if laid is None:
        laid = channels_last_view((x.shape[0], depth, rows, columns), dtype)
        build.laid[x, windows, dtype] = _with_zeros(build, x, laid, windows.padding)
    seen = Windows((rows, width), (down, 1), (step_down, 1), (0, 0), (apart, 1))
    return laid, seen, (step * depth, columns * depth, rows * columns * depth)


def _by_rows(build, w):
    """Weights (filters, channels, down, across) as (filters, across * channels, down, 1)."""
    by_columns = build.dense(w.seen(lambda array: array.transpose(0, 3, 1, 2)), FLOAT32)
    return by_columns.reshaped((w.shape[0], w.shape[1] * w.shape[3], w.shape[2], 1))


def plans(kind, windows, channels, dtype):
    """(template arguments, parts of K) of all tiles, by the time that they may take."""
    return hopper.ordered(_WAYS[kind == "weights", dtype], kind, windows, channels, 1)


def _of_pixels(dtype, kind, windows, channels):
    return hopper.of_pixels(kind, windows, channels, hopper.LINE // dtype.itemsize, True)


def _of_taps(dtype, kind, windows, channels):
    """As hopper.of_pixels, of the gradient of weights: K are the pixels of boxes."""
    images, depth, lines = channels
    of_line, packs = hopper.LINE // dtype.itemsize, 32 // dtype.itemsize
    rows = 64 if lines <= 64 else 128
    (down, across), apart = windows.kernel, windows.dilation[0]
    taps, of_tap = down * across, -(-depth // of_line)
    boxes_of_a, size = rows // of_line, lines * depth * taps
    height, width = windows.out
    # Two slices have room, of one block of channels.
    largest = hopper.SHARED // (2 * hopper.LINE * (boxes_of_a + hopper.boxes_of(rows)))
    for wide, high, deep in hopper.likely_boxes(width, height, images, windows.stride, largest):
        count = wide * high * deep
        whole = -(-count // packs) * packs
        slices = -(-width // wide) * -(-height // high) * -(-images // deep)
        most = min(_COLUMNS // of_line, taps * of_tap)
        ways = [(blocks, 1) for blocks in range(1, most + 1)]
        if 1 < down and windows.stride[0] == 1 and high + (down - 1) * apart <= 256:
            most = min(_COLUMNS // of_line // down, across * of_tap)
            if dtype == BFLOAT16:  # wgmma knows one distance
                most = min(most, 1) if wide * deep * apart % 8 == 0 else 0
            ways += [(blocks, down) for blocks in range(1, most + 1)]
        for blocks, group in ways:
            boxes = blocks * hopper.boxes_of(rows)
            tall = high + (group - 1) * apart
            of_box = -(-(whole + (group - 1) * apart * wide * deep) // 8) * 8
            if 2 * (boxes_of_a * whole + boxes * of_box) * hopper.LINE > hopper.SHARED:
                continue
            columns = of_line * blocks * group
            tiles = -(-(taps // group * of_tap) // boxes) * -(-lines // rows)
            lines_of_boxes = [count] * boxes_of_a + [wide * tall * deep] * boxes
            shape = (rows, wide, high, deep, blocks, group, apart)
            cycles = columns * whole // _RATE[dtype]
            yield shape, columns, cycles, lines_of_boxes, size, tiles, slices


#: (whether of weights, dtype) -> the tiles that there are.
_WAYS = {
    (of_weights, dtype): functools.partial(_of_taps if of_weights else _of_pixels, dtype)
    for of_weights, dtype in itertools.product((False, True), (BFLOAT16, FLOAT32))
}


def source(name, of_weights, shape, gathers):
    """The launcher, from the key of an instruction, and the wgmma that it needs."""
    is_half = shape[-1] == C_NAMES[BFLOAT16]
    if of_weights:
        call, columns = "taps_last", hopper.LINE // 2 * shape[4] * shape[5]
        own = _wgmma(columns, True) if is_half else ""
    else:
        call, columns = "pixels_last", -(-size_of(shape[1:4]) // 8) * 8
        own = _wgmma(columns, False) if is_half else hopper.wgmma_of_tf32(columns)
        shape = (*shape[:4], *shape[5:], "true" if gathers else "false")
    return '#include "hopper_last.cuh"\n%s%s {\n  return hopper::%s<%s>(data, n, on);\n}\n' % (
        own, signature(name, "cudaStream_t on"), call, ", ".join(map(str, shape)),
    )  # fmt: skip


def source_of_laying(name, dtype):
    """The launcher of a LayWeights."""
    call = "hopper::lay_weights<%s>(data, n, on)" % C_NAMES[dtype]
    said = signature(name, "cudaStream_t on"), call
    return '#include "hopper_lays.cuh"\n%s {\n  return %s;\n}\n' % said


def _wgmma(columns, turned):
    name = "WgmmaOfHalves<%d, %s>" % (columns, "true" if turned else "false")
    said = "wgmma.mma_async.sync.aligned.m64n%dk16.f32.bf16.bf16" % columns
    return hopper.wgmma(name, columns, said, ", %d, %d" % (turned, turned))
