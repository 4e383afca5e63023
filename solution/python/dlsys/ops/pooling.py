"""Pooling: the largest element or the mean of each window of an image."""

import numpy as np

from dlsys.autodiff import zeroslike_op
from dlsys.backend.windows import Windows

from .base import TensorOp
from .convolution import pair
from .reduction import mean_op


class _PoolingOp(TensorOp):
    """An op on the windows of images (N, C, H, W)."""

    def __call__(self, *inputs, kernel, stride=None, padding=0, ceil=False, **more):
        kernel = pair(kernel, "kernel", 1)
        stride = kernel if stride is None else pair(stride, "stride", 1)
        padding = pair(padding, "padding", 0)
        if any(2 * p > k for p, k in zip(padding, kernel)):
            raise ValueError(
                "%s: the padding %s is more than half of the kernel %s"
                % (self.name, padding, kernel)
            )
        return TensorOp.__call__(
            self, *inputs, kernel=kernel, stride=stride, padding=padding, ceil=bool(ceil), **more
        )

    def windows(self, node, shape):
        """The windows of images of this shape."""
        if len(shape) != 4:
            raise ValueError("images are %s; hint: (N, C, H, W)" % (shape,))
        if 0 in shape[2:]:
            raise ValueError("images of %d x %d have no elements to pool" % shape[2:])
        a = node.attributes
        return Windows(shape[2:], a["kernel"], a["stride"], a["padding"], ceil=a["ceil"])

    def pooled(self, node, shape):
        """The shape with an element for each window."""
        return (*shape[:2], *self.windows(node, shape).out)

    def check_pooled(self, node, shape, g):
        """Raises a ValueError unless g has an element for each window."""
        if g != self.pooled(node, shape):
            raise ValueError("windows have shape %s, not %s" % (self.pooled(node, shape), g))


_OVERLAPPING = {"kernel": 3, "stride": 2, "padding": 1}
_REACHING_OUT = {"kernel": (2, 3), "stride": (2, 2), "ceil": True}


class MaxPoolOp(_PoolingOp):
    """The largest element of each window; what is padded is smaller than all.

    Of several that are equal the first has the gradient.
    """

    label = "MaxPool({},{})"
    samples = (
        ((2, 3, 4, 6), {"kernel": 2}),
        ((2, 1, 5, 6), _OVERLAPPING),
        ((1, 2, 5, 6), _REACHING_OUT),
    )

    def __call__(self, x, kernel, stride=None, padding=0, ceil=False):
        """
        Args:
            x: images, (N, C, H, W).
            kernel, stride, padding: a number, or one for height and one for width; windows lie
                side by side where no stride is given.
            ceil: whether a last window may reach beyond the images.
        """
        said = {"kernel": kernel, "stride": stride, "padding": padding, "ceil": ceil}
        return _PoolingOp.__call__(self, x, **said)

    def forward(self, node, x):
        return _taken(self.windows(node, x.shape), x, x)

    def lower(self, node, build, x):
        windows = self.windows(node, x.shape)
        return build.max_pool("value", self.pooled(node, x.shape), windows, x)

    def shape(self, node, x):
        return self.pooled(node, x)

    def gradient(self, node, grad):
        return [placed_at_largest_op(node.inputs[0], grad, **node.attributes)]


class TakenAtLargestOp(_PoolingOp):
    """For each window of x the element of y that lies where x is largest."""

    label = "TakenAtLargest({},{})"
    samples = (
        ((2, 1, 4, 4), (2, 1, 4, 4), {"kernel": 2}),
        ((1, 2, 5, 6), (1, 2, 5, 6), _OVERLAPPING),
    )

    def forward(self, node, x, y):
        return _taken(self.windows(node, x.shape), x, y)

    def lower(self, node, build, x, y):
        windows = self.windows(node, x.shape)
        return build.max_pool("taken", self.pooled(node, x.shape), windows, x, y)

    def shape(self, node, x, y):
        if x != y:
            raise ValueError("the shapes are %s and %s; hint: they are the same" % (x, y))
        return self.pooled(node, x)

    def gradient(self, node, grad):
        x, _ = node.inputs
        return [zeroslike_op(x), placed_at_largest_op(x, grad, **node.attributes)]


class PlacedAtLargestOp(_PoolingOp):
    """Zeros in the shape of x, with each window's g added where x is largest in it."""

    label = "PlacedAtLargest({},{})"
    samples = (
        ((2, 1, 4, 4), (2, 1, 2, 2), {"kernel": 2}),
        ((1, 2, 5, 6), (1, 2, 3, 3), _OVERLAPPING),
        ((1, 1, 5, 6), (1, 1, 3, 3), _REACHING_OUT),
    )

    def forward(self, node, x, g):
        planes, places = _places(self.windows(node, x.shape), x)
        found = np.zeros(x.shape, g.dtype)
        np.add.at(found.reshape(len(planes), -1), (planes, places), g.reshape(places.shape))
        return found

    def lower(self, node, build, x, g):
        return build.max_pool("placed", x.shape, self.windows(node, x.shape), x, g)

    def shape(self, node, x, g):
        self.check_pooled(node, x, g)
        return x

    def gradient(self, node, grad):
        x, _ = node.inputs
        return [zeroslike_op(x), taken_at_largest_op(x, grad, **node.attributes)]


def _places(windows, x):
    """(numbers of the planes, a column; where in its plane each window is largest)."""
    planes = int(np.prod(x.shape[:2]))
    numbers = np.arange(int(np.prod(windows.size)), dtype=float).reshape(1, 1, *windows.size)
    inside = windows.seen(windows.bordered(np.ones((1, 1, *windows.size)))) > 0
    at = _as_rows(windows.seen(windows.bordered(numbers)), 1).astype(int)
    values = _as_rows(windows.seen(windows.bordered(x)), planes)
    inside = np.broadcast_to(_as_rows(inside, 1), values.shape)
    is_nan = np.isnan(values) & inside
    most = np.where(inside & ~is_nan, values, -np.inf).max(2, keepdims=True)
    is_most = (values == most) & inside
    last_nan = values.shape[2] - 1 - np.argmax(is_nan[:, :, ::-1], 2)
    chosen = np.where(is_nan.any(2), last_nan, np.argmax(is_most, 2))
    places = np.take_along_axis(np.broadcast_to(at, values.shape), chosen[..., None], 2)[..., 0]
    return np.arange(planes)[:, None], places


def _as_rows(windows, planes):
    """Windows (N, C, KH, KW, OH, OW) as (planes, OH * OW, KH * KW)."""
    kernel = windows.shape[2] * windows.shape[3]
    return np.swapaxes(windows.reshape(planes, kernel, -1), 1, 2)


def _taken(windows, x, y):
    planes, places = _places(windows, x)
    return y.reshape(len(planes), -1)[planes, places].reshape(*x.shape[:2], *windows.out)


class AveragePoolOp(_PoolingOp):
    """The mean of each window; `with_border` says whether padded zeros count as elements."""

    label = "AveragePool({},{})"
    samples = (
        ((2, 3, 4, 6), {"kernel": 2}),
        ((2, 1, 5, 6), _OVERLAPPING),
        ((2, 1, 5, 6), {**_OVERLAPPING, "with_border": False}),
        ((1, 2, 5, 6), _REACHING_OUT),
    )

    def __call__(self, x, kernel, stride=None, padding=0, ceil=False, with_border=True):
        said = {"kernel": kernel, "stride": stride, "padding": padding, "ceil": ceil}
        return _PoolingOp.__call__(self, x, **said, with_border=bool(with_border))

    def forward(self, node, x):
        windows = self.windows(node, x.shape)
        return windows.seen(windows.bordered(x)).sum((2, 3)) / self.counts(node, windows)

    def lower(self, node, build, x):
        windows = self.windows(node, x.shape)
        total = build.reduce("sum", (build.windows(x, windows),), (2, 3))
        return self.divided(node, build, windows, total)

    def divided(self, node, build, windows, values):
        """Values of each window, by the number of its elements."""
        counts = self.counts(node, windows)
        if counts.min() == counts.max():
            return build.elementwise("a / p0", values, numbers=(counts.flat[0],))
        return build.elementwise("a / b", values, build.constant(counts))

    def counts(self, node, windows):
        """How many elements each window has, (OH, OW)."""
        return windows.counts(node.attributes["with_border"]).astype(float)

    def shape(self, node, x):
        return self.pooled(node, x)

    def gradient(self, node, grad):
        return [average_pool_gradient_op(grad, node.inputs[0], **node.attributes)]


class AveragePoolGradientOp(_PoolingOp):
    """In the shape of x, what each window's g / count adds to its elements."""

    label = "AveragePoolGradient({},{})"
    samples = (
        ((2, 1, 2, 3), (2, 1, 4, 6), {"kernel": 2, "with_border": True}),
        ((1, 2, 3, 3), (1, 2, 5, 6), {**_OVERLAPPING, "with_border": False}),
    )

    def forward(self, node, g, x):
        windows = self.windows(node, x.shape)
        shares = g / average_pool_op.counts(node, windows)
        shape = (*x.shape[:2], *windows.kernel, *windows.out)
        return windows.folded(np.broadcast_to(shares[:, :, None, None], shape))

    def lower(self, node, build, g, x):
        windows = self.windows(node, x.shape)
        shares = build.in_memory(average_pool_op.divided(node, build, windows, g))
        shape = (*x.shape[:2], *windows.kernel, *windows.out)
        spread = build.view(lambda a: np.broadcast_to(a[:, :, None, None], shape), shares)
        return build.fold(spread, windows)

    def shape(self, node, g, x):
        self.check_pooled(node, x, g)
        return x

    def gradient(self, node, grad):
        return [average_pool_op(grad, **node.attributes), zeroslike_op(node.inputs[1])]


def global_average_pool_op(x):
    """The mean of each plane of images (N, C, H, W): (N, C)."""
    return mean_op(x, (2, 3))


max_pool_op = MaxPoolOp()
taken_at_largest_op = TakenAtLargestOp()
placed_at_largest_op = PlacedAtLargestOp()
average_pool_op = AveragePoolOp()
average_pool_gradient_op = AveragePoolGradientOp()
