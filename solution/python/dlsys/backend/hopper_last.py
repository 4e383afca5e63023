"""Convolutions on a Hopper GPU of images whose channels lie last: hopper_last.cuh has the kernels.

They round: to bfloat16, where all is of it, or float32 to TF32.
"""

import dataclasses

import numpy as np

from dlsys.dtypes import BFLOAT16, C_NAMES, FLOAT32, INT32
from dlsys.ndarray import size_of

from . import hopper
from .expressions import signature
from .view import channels_last_view, new_view

#: Bytes of a pack: channels of an image are whole ones.
_PACK = 16
#: Channels of bfloat16 in a line of shared memory; columns of a warpgroup at most.
_OF_LINE, _COLUMNS = hopper.LINE // 2, 256


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
    gradient of the data. Weights and their gradient are float32, and lie dense.

    Channels and filters of images are whole packs of 16 bytes.
    """

    #: Of images: BFLOAT16, or FLOAT32, which is rounded to TF32.
    dtype: object = BFLOAT16
    tf32: bool = True

    @property
    def images(self):
        """The inputs that the copy engine reads where they lie."""
        if self.kind != "weights":
            return self.inputs[1:]
        return self.inputs if self.dtype == BFLOAT16 else ()

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
        if self._lays_images:
            super().cut(shape, parts)
            return
        self._shape, self.parts = shape, parts
        images, channels, filters = self.channels
        laid = ()
        if self.kind == "weights":
            tables = (np.array(sorted(hopper.taps_of(self.windows).tolist()), INT32),)
        else:
            *tables, self._tiles = hopper.tables_of(self.kind, self.windows, images, shape)
            laid = (new_view((size_of(self.windows.kernel) * channels * filters,), self.dtype),)
        has_room = parts > 1 or self.kind == "weights"
        room = (new_view((parts * size_of(self.output.shape),), FLOAT32),) if has_room else ()
        self._tables = tuple(new_view(each.shape, INT32, values=each) for each in tables)
        self.scratch = (*laid, *room)

    @property
    def _lays_images(self):
        """Whether wgmma can't take images as they lie: where it adds over them, in TF32."""
        return self.kind == "weights" and self.dtype == FLOAT32

    @property
    def key(self):
        """What is compiled in: the shape of a tile."""
        return key_of(self.kind, self._shape, self.dtype)

    @property
    def sizes(self):
        """As HopperConvolution's; channels are last."""
        found = super().sizes
        return (*found[:-1], 1) if self.kind == "weights" else found


def key_of(kind, shape, dtype):
    """Of an instruction with such a tile."""
    if kind == "weights":
        return ("hopper" if dtype == FLOAT32 else "last", True, shape)
    return ("last", False, (*shape, C_NAMES[dtype]))


def convolved(build, kind, shape, windows, channels, dtype, *inputs):
    """The instructions of a convolution, or of a gradient; arguments as those of Lowering.convolve.

    Channels that are no whole packs get zeros besides.
    """
    _, *whole = padded = _in_packs(channels, dtype)
    of_x, of_y = ((channels[0], count) for count in whole)
    of_w = (whole[1], whole[0], *windows.kernel)
    if kind == "weights":
        x, g = inputs
        operands = _images(build, g, of_y[1], dtype), _images(build, x, of_x[1], dtype)
        output = new_view(of_w, FLOAT32)
    elif kind == "data":
        w, g = inputs
        operands = _weights(build, w, of_w), _images(build, g, of_y[1], dtype)
        output = channels_last_view((*of_x, *windows.size), dtype)
    else:
        x, w = inputs
        operands = _weights(build, w, of_w), _images(build, x, of_x[1], dtype)
        output = channels_last_view((*of_y, *windows.out), dtype)
    build.add(LastConvolution(output, operands, kind, windows, padded, dtype=dtype))
    found = output.seen(lambda array: array[tuple(slice(extent) for extent in shape)])
    return build.as_dtype(found, dtype)


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


def _with_zeros(build, x, into):
    build.elementwise("p0", shape=into.shape, numbers=(0,), into=into)
    inside = into.seen(lambda array: array[tuple(slice(extent) for extent in x.shape)])
    build.elementwise("a", x, into=inside)
    return into


def plans(kind, windows, channels, dtype):
    """(template arguments, parts of K) of all tiles, by the time that they may take."""
    if dtype == FLOAT32:
        return hopper.plans(kind, windows, channels, 1)
    ways = _of_taps if kind == "weights" else _of_pixels
    return hopper.ordered(ways, kind, windows, channels, 1)


def _of_pixels(kind, windows, channels):
    return hopper.of_pixels(kind, windows, channels, _OF_LINE)


def _of_taps(kind, windows, channels):
    """As hopper.of_pixels, of the gradient of weights: K are the pixels of boxes."""
    images, depth, lines = channels
    rows = 64 if lines <= 64 else 128
    (down, across), stride, apart = windows.kernel, windows.stride[0], windows.dilation[0]
    taps, of_tap = down * across, -(-depth // _OF_LINE)
    boxes_of_a, size = rows // _OF_LINE, lines * depth * taps
    height, width = windows.out
    for wide, high, deep in hopper.likely_boxes(width, height, images, stride):
        count = wide * high * deep
        whole = -(-count // 16) * 16
        slices = -(-width // wide) * -(-height // high) * -(-images // deep)
        ways = [(blocks, 1) for blocks in range(1, min(_COLUMNS // _OF_LINE, taps * of_tap) + 1)]
        is_group = 1 < down <= _COLUMNS // _OF_LINE and stride == 1 == deep
        if is_group and wide * apart % 8 == 0 and high + (down - 1) * apart <= 256:
            ways.append((1, down))
        for blocks, group in ways:
            boxes = blocks * hopper.boxes_of(rows)
            tall = high + (group - 1) * apart
            room = boxes_of_a * whole + boxes * (whole + (group - 1) * apart * wide)
            if 2 * room * hopper.LINE > hopper.SHARED:
                continue
            columns = _OF_LINE * blocks * group
            tiles = -(-(taps // group * of_tap) // boxes) * -(-lines // rows)
            lines_of_boxes = [count] * boxes_of_a + [wide * tall * deep] * boxes
            shape = (rows, wide, high, deep, blocks, group, apart)
            cycles = columns * whole // 16
            yield shape, columns, cycles, lines_of_boxes, size, tiles, slices


def source(name, of_weights, shape):
    """The launcher, from the key of an instruction, and the wgmma that it needs."""
    if of_weights:
        columns, call = _OF_LINE * shape[4] * shape[5], "taps_of_halves"
        own = _wgmma(columns, True)
    else:
        columns, call = -(-size_of(shape[1:4]) // 8) * 8, "pixels_last"
        is_half = shape[-1] == C_NAMES[BFLOAT16]
        own = _wgmma(columns, False) if is_half else hopper.wgmma_of_tf32(columns)
        shape = (*shape[:4], *shape[5:])
    return '#include "hopper_last.cuh"\n%s%s {\n  return hopper::%s<%s>(data, n, on);\n}\n' % (
        own, signature(name, "cudaStream_t on"), call, ", ".join(map(str, shape)),
    )  # fmt: skip


def _wgmma(columns, turned):
    name = "WgmmaOfHalves<%d, %s>" % (columns, "true" if turned else "false")
    said = "wgmma.mma_async.sync.aligned.m64n%dk16.f32.bf16.bf16" % columns
    return hopper.wgmma(name, columns, said, ", %d, %d" % (turned, turned))
