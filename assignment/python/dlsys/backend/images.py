"""Instructions on images: sums of what windows have, pools, convolutions."""

import dataclasses

from dlsys.ndarray import size_of

from .instructions import Instruction
from .view import View, new_view
from .windows import Windows

#: Windows of a part of a gradient of w, parts at most, and blocks that a GPU has use for.
_OF_PART, _MOST_PARTS, _BLOCKS = 2048, 8, 64


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
