"""Windows that slide over images: where each lies, and the instructions that work on them.

    x = N C H W      windows of x = N C KH KW OH OW, a view of x with a border

Window (oh, ow) has at (i, j) the element (oh * stride - padding + i * dilation, ...) of the image.
"""

import dataclasses

import numpy as np

from dlsys.ndarray import size_of

from .instructions import Instruction
from .view import View, new_view

#: Windows of a part of a gradient of w, parts at most, and blocks that a GPU has use for.
_OF_PART, _MOST_PARTS, _BLOCKS = 2048, 8, 64


@dataclasses.dataclass(frozen=True)
class Windows:
    """The windows of images of one size; each field is a pair, of height and width.

    With `ceil`, a window may reach beyond the border behind, if it starts before that.
    """

    size: tuple
    kernel: tuple
    stride: tuple = (1, 1)
    padding: tuple = (0, 0)
    dilation: tuple = (1, 1)
    ceil: bool = False

    def __post_init__(self):
        if min(self.out) < 1:
            raise ValueError(
                "windows of %s, %s apart, don't fit into images of %s with a border of %s"
                % (self.kernel, self.dilation, self.size, self.padding)
            )

    @property
    def out(self):
        """How many windows there are down and across."""
        return tuple(map(self._count, *self._fields()))

    def _fields(self):
        return self.size, self.kernel, self.stride, self.padding, self.dilation

    def _count(self, size, kernel, stride, padding, dilation):
        """How many windows there are along one side; 0 if not even one fits.

        Args:
            size, kernel, stride, padding, dilation: along this side, numbers.
        """
        # BEGIN SOLUTION 4.1
        steps = size + 2 * padding - (kernel - 1) * dilation - 1
        if steps < 0:
            return 0
        count = (-(-steps // stride) if self.ceil else steps // stride) + 1
        # One that starts in the border behind has nothing of the image.
        return count - (self.ceil and (count - 1) * stride >= size + padding)
        # END SOLUTION

    @property
    def borders(self):
        """(before, after) of height and of width: what all windows together need."""
        found = []
        for size, kernel, stride, padding, dilation, out in zip(*self._fields(), self.out):
            end = (out - 1) * stride + (kernel - 1) * dilation + 1
            found.append((padding, max(0, end - size - padding)))
        return tuple(found)

    def seen(self, bordered):
        """The windows (N, C, KH, KW, OH, OW) of images with borders, a view.

        Args:
            bordered: images (N, C, H, W) with the borders that `borders` says. Back ends ask for
                the view alone, of an array of these strides that has no elements.
        """
        # BEGIN SOLUTION 4.1
        n, c, down, across = bordered.strides
        (sh, sw), (dh, dw) = self.stride, self.dilation
        strides = (n, c, down * dh, across * dw, down * sh, across * sw)
        shape = (*bordered.shape[:2], *self.kernel, *self.out)
        return np.lib.stride_tricks.as_strided(bordered, shape, strides)
        # END SOLUTION

    def bordered(self, x, value=0):
        """Images with borders of a value, a numpy array."""
        return np.pad(x, ((0, 0), (0, 0), *self.borders), constant_values=value)

    def folded(self, columns):
        """For each element of the images (N, C, H, W), the sum of what windows have of it.

        Args:
            columns: an element for each of the windows, (N, C, KH, KW, OH, OW).
        """
        # BEGIN SOLUTION 4.2
        (top, bottom), (left, right) = self.borders
        (h, w), (oh, ow) = self.size, self.out
        shape = (*columns.shape[:2], top + h + bottom, left + w + right)
        found = np.zeros(shape, columns.dtype)
        (sh, sw), (dh, dw) = self.stride, self.dilation
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                rows = slice(i * dh, i * dh + (oh - 1) * sh + 1, sh)
                found[:, :, rows, j * dw : j * dw + (ow - 1) * sw + 1 : sw] += columns[:, :, i, j]
        return found[:, :, top : top + h, left : left + w]
        # END SOLUTION

    def counts(self, with_border):
        """How many elements each window has, (OH, OW): of images with their padding, or without."""
        found = []
        for size, kernel, stride, padding, dilation, out in zip(*self._fields(), self.out):
            at = np.arange(out)[:, None] * stride + np.arange(kernel) * dilation - padding
            first, end = (-padding, size + padding) if with_border else (0, size)
            found.append(((at >= first) & (at < end)).sum(1))
        return np.multiply.outer(*found)

    def numbers(self):
        """All that a kernel is told, behind the numbers of images and channels."""
        return (
            *self.size, *self.kernel, *self.out, *self.stride, *self.padding, *self.dilation
        )  # fmt: skip


@dataclasses.dataclass(eq=False)
class Fold(Instruction):
    """The output's images, (N, C, H, W): for each element the sum of what windows have of it.

    The input is (N, C, KH, KW, OH, OW), and lies as it likes.
    """

    windows: Windows = None

    @property
    def key(self):
        """Dtypes alone."""
        return ("fold", self.dtypes)

    @property
    def sizes(self):
        """N, C, the windows, the strides of the input."""
        return (*self.output.shape[:2], *self.windows.numbers(), *self.inputs[0].strides)


@dataclasses.dataclass(eq=False)
class MaxPool(Instruction):
    """What the window's largest element is ("value"), or something of that element.

    "value" reads x, "taken" x and y: y where x is largest. "placed" reads x and g, and adds each
    window's g there, in the shape of x. All lie dense, or all with their channels last, which only
    a GPU takes: "placed" then reads g and the `taps` of what is largest, which "value" has written.
    """

    kind: str = "value"
    windows: Windows = None
    is_last: bool = False
    taps: object = None

    @property
    def operands(self):
        """The output, the inputs, the taps that it writes."""
        return (*super().operands, *self.targets[1:])

    @property
    def targets(self):
        """The output, and the taps that it writes."""
        return (self.output, *([self.taps] if self.taps else []))

    @property
    def key(self):
        """The kind, which says how all lie, and dtypes."""
        return ("max_pool", self.kind + ("_last" if self.is_last else ""), self.dtypes)

    @property
    def sizes(self):
        """N, C, the windows."""
        return (*self.inputs[0].shape[:2], *self.windows.numbers())


@dataclasses.dataclass(eq=False)
class Convolve(Instruction):
    """A convolution: its "value" of x and w, or the gradient of x ("data") or w ("weights").

    "data" reads w and g, "weights" x and g; all lie dense. `method` is "direct", or on
    a CPU "image" or "shifted".
    """

    kind: str = "value"
    method: str = "direct"
    windows: Windows = None
    channels: tuple = ()
    groups: int = 1
    #: Of the windows of a gradient of w, which a GPU adds in the end, and room for these.
    parts: int = 1

    def __post_init__(self):
        room = (self.parts * size_of(self.output.shape),) if self.parts > 1 else ()
        self.scratch = tuple(new_view((count,), self.output.dtype) for count in room)

    @property
    def operands(self):
        """The output, the inputs, room for parts."""
        return (*super().operands, *self.scratch)

    @property
    def written(self):
        """The output, and room."""
        return (self.output, *self.scratch)

    @property
    def dtypes(self):
        """Those of the output and the inputs."""
        return tuple(view.dtype for view in super().operands)

    @property
    def key(self):
        """Kind, method and dtypes."""
        return ("convolve", self.kind, self.method, self.dtypes)

    @property
    def sizes(self):
        """N, C, the windows, F, groups, parts."""
        images, channels, filters = self.channels
        return (images, channels, *self.windows.numbers(), filters, self.groups, self.parts)


def parts_of_windows(windows, channels, groups):
    """In how many parts a GPU adds up windows for a gradient of w: several, where filters times
    channels are too few for its multiprocessors, and windows are many."""
    images, depth, filters = channels
    count, pairs = images * size_of(windows.out), filters * (depth // groups)
    if pairs == 0 or count < 4 * _OF_PART:
        return 1
    return max(1, min(_MOST_PARTS, _BLOCKS // pairs, count // _OF_PART))


def bordered_view(build, x, windows, value=0.0):
    """Images on a back end with borders of a value; x itself where there are none."""
    if not any(map(any, windows.borders)) and isinstance(x, View):
        return x
    (top, bottom), (left, right) = windows.borders
    h, w = windows.size
    shape = (*x.shape[:2], top + h + bottom, left + w + right)
    found = build.elementwise("p0", shape=shape, numbers=(value,))
    inside = (slice(None), slice(None), slice(top, top + h), slice(left, left + w))
    build.elementwise("a", x, into=build.part(found, inside))
    return found
