"""Convolutions of images: values, and gradients of any order.

    y[n, f, oh, ow] = sum(w[f, c, i, j] * x[n, c, oh * stride - padding + i * dilation, ...])

That is linear in x and in w, so that each gradient is again a convolution of this kind.
"""

import functools
import numbers

import numpy as np

from dlsys.autodiff import zeroslike_op
from dlsys.backend.windows import Windows

from . import fourier, winograd
from .base import TensorOp
from .movement import reshape_op, transpose_op

#: "im2col": windows are copied to columns of one matrix for the whole batch, and multiplied.
#: "image": the same of a part of an image at a time, and "shifted": without columns, both on a CPU.
#: "implicit": without columns on a GPU, and "cudnn": by NVIDIA's library, where it is installed;
#: both in float32 or TF32. "wgmma": the same on a Hopper GPU.
#: "direct": loops. "winograd2", "winograd4": kernels of 3 x 3 in tiles, with less work and fewer
#: digits; the gradient of weights is im2col's. "fft": spectra of tiles, for large kernels; in
#: float32 or float64. "auto": the back end's choice. On numpy all are one.
METHODS = (
    "auto", "im2col", "image", "shifted", "implicit", "wgmma", "cudnn", "direct", "fft",
    *winograd.TILES,
)  # fmt: skip


def pair(value, name, least):
    """A number for height and width, or one for each.

    Raises:
        ValueError: it is neither, or below `least`.
    """
    found = (value, value) if isinstance(value, numbers.Integral) else tuple(value)
    if len(found) != 2 or not all(isinstance(v, numbers.Integral) and v >= least for v in found):
        raise ValueError("%s is %r; hint: a whole number from %d on, or two" % (name, value, least))
    return tuple(int(v) for v in found)


_IN_GROUPS = {"stride": (2, 1), "padding": (1, 0), "groups": 2}
_APART = {"stride": 2, "padding": 2, "dilation": (3, 1), "method": "direct"}


class ConvolutionOp(TensorOp):
    """Filters w (F, C / groups, KH, KW) on images x (N, C, H, W): (N, F, OH, OW)."""

    label, name = "Convolution({},{})", "convolution"
    samples = (
        ((2, 3, 5, 4), (2, 3, 3, 3), {"padding": 1}),
        ((2, 4, 6, 5), (6, 2, 3, 2), _IN_GROUPS),
        ((1, 2, 7, 6), (3, 2, 2, 3), {**_APART, "method": "auto"}),
        ((2, 3, 4, 4), (3, 1, 3, 3), {"groups": 3, "padding": 1, "method": "direct"}),
        ((2, 4, 5, 5), (2, 4, 3, 3), {"stride": 3, "padding": 1, "method": "direct"}),
        ((2, 4, 5, 4), (3, 4, 1, 1), {"method": "im2col"}),
        ((2, 2, 5, 4), (3, 2, 3, 3), {"method": "winograd2", "padding": 1}),
    )

    def __call__(self, x, w, stride=1, padding=0, dilation=1, groups=1, method="auto"):
        if method not in METHODS:
            raise ValueError("method is %r, not one of %s" % (method, ", ".join(METHODS)))
        return TensorOp.__call__(
            self, x, w, stride=pair(stride, "stride", 1), padding=pair(padding, "padding", 0),
            dilation=pair(dilation, "dilation", 1), groups=groups, method=method,
        )  # fmt: skip

    def forward(self, node, x, w):
        layout = _Layout(node, x.shape, w.shape)
        # BEGIN SOLUTION 4.3
        return np.matmul(_filters(layout, w), _columns(layout, x)).reshape(layout.out)
        # END SOLUTION

    def lower(self, node, build, x, w):
        layout = _Layout(node, x.shape, w.shape)
        method = layout.method(node, build, x, w)
        if method in winograd.TILES:
            padding = node.attributes["padding"]
            return winograd.convolved(build, x, w, padding, winograd.TILES[method])
        if method == "fft":
            return fourier.Spectra(build, layout.windows, x, w).value(x, w)
        if method != "im2col":
            return layout.convolved(build, "value", method, layout.out, x, w)
        filters = layout.lowered_filters(build, w)
        if layout.is_product:
            found = build.product(filters, layout.lowered_planes(build, x))
            return build.reshape(found, layout.out)
        found = build.product(filters, layout.lowered_columns(build, x))
        return layout.lowered_images(build, found)

    def shape(self, node, x, w):
        return _Layout(node, x, w).out

    def gradient(self, node, grad):
        x, w = node.inputs
        return [convolution_gradient_op(x, w, grad, of=of, **node.attributes) for of in (0, 1)]


class ConvolutionGradientOp(TensorOp):
    """The gradient of sum(g * convolution(x, w)) for x (of = 0) or w (of = 1), in its shape."""

    label = "ConvolutionGradient({},{},{})"
    samples = tuple(
        (x, w, g, {**attributes, "of": of})
        for of in (0, 1)
        for x, w, g, attributes in (
            ((2, 3, 4, 4), (2, 3, 3, 3), (2, 2, 4, 4), {"padding": 1}),
            ((2, 4, 6, 5), (6, 2, 3, 2), (2, 6, 3, 4), _IN_GROUPS),
            ((1, 2, 6, 7), (2, 2, 2, 3), (1, 2, 4, 5), _APART),
            ((2, 2, 3, 4), (3, 2, 1, 1), (2, 3, 3, 4), {"method": "im2col"}),
        )
    )

    def __call__(self, x, w, g, of, **attributes):
        # The attributes in the order in which the convolution states them.
        model = convolution_op(x, w, **attributes).attributes
        return TensorOp.__call__(self, x, w, g, **model, of=of)

    def forward(self, node, x, w, g):
        of = _of_data if node.attributes["of"] == 0 else _of_weights
        return of(_Layout(node, x.shape, w.shape), x, w, g)

    def lower(self, node, build, x, w, g):
        layout = _Layout(node, x.shape, w.shape)
        of, method = node.attributes["of"], layout.method(node, build, x, w, g)
        if method in winograd.TILES and of == 0:
            padding = node.attributes["padding"]
            return winograd.gradient_of_data(build, w, g, padding, winograd.TILES[method])
        if method == "fft":
            spectra = fourier.Spectra(build, layout.windows, x, w, g)
            return spectra.gradient_of_weights(x, g) if of else spectra.gradient_of_data(w, g)
        if method not in ("im2col", *winograd.TILES):
            if of == 0:
                return layout.convolved(build, "data", method, x.shape, w, g)
            return layout.convolved(build, "weights", method, w.shape, x, g)
        if of == 1:
            grads, columns = layout.lowered_grads(build, g), layout.lowered_columns(build, x)
            return build.reshape(build.product(grads, _turned(build, columns)), w.shape)
        filters = layout.lowered_filters(build, w)
        if layout.is_product:
            found = build.product(_turned(build, filters), layout.lowered_planes(build, g))
            return build.reshape(found, x.shape)
        grads = layout.lowered_grads(build, g)
        return layout.lowered_fold(build, build.product(_turned(build, filters), grads))

    def shape(self, node, x, w, g):
        wanted = _Layout(node, x, w).out
        if g != wanted:
            raise ValueError("the gradient has shape %s, not %s" % (g, wanted))
        return w if node.attributes["of"] else x

    def gradient(self, node, grad):
        x, w, g = node.inputs
        attributes = dict(node.attributes)
        of = attributes.pop("of")
        if of == 0:
            of_w = convolution_gradient_op(grad, w, g, of=1, **attributes)
            return [zeroslike_op(x), of_w, convolution_op(grad, w, **attributes)]
        of_x = convolution_gradient_op(x, grad, g, of=0, **attributes)
        return [of_x, zeroslike_op(w), convolution_op(x, grad, **attributes)]


def _of_data(layout, x, w, g):
    """The gradient of sum(g * convolution(x, w)) for the images, (N, C, H, W), on numpy."""
    # BEGIN SOLUTION 4.4
    columns = np.matmul(np.swapaxes(_filters(layout, w), -1, -2), _grads(layout, g))
    return layout.windows.folded(columns.reshape(layout.as_windows))
    # END SOLUTION


def _of_weights(layout, x, w, g):
    """The gradient of sum(g * convolution(x, w)) for the filters, in their shape, on numpy."""
    # BEGIN SOLUTION 4.5
    found = np.matmul(_grads(layout, g), np.swapaxes(_columns(layout, x), -1, -2))
    return found.sum(0).reshape(w.shape)
    # END SOLUTION


# BEGIN SOLUTION 4.3
# A matrix for each image and group: filters (G, F/G, K) @ columns (N, G, K, P).


def _columns(layout, x):
    seen = layout.windows.seen(layout.windows.bordered(x))
    return _apart(layout, seen, x.shape[1] * int(np.prod(layout.windows.kernel)))


def _filters(layout, w):
    return w.reshape(layout.groups, len(w) // layout.groups, int(np.prod(w.shape[1:])))


def _grads(layout, g):
    return _apart(layout, g, g.shape[1])


def _apart(layout, images, rows):
    size = len(images), layout.groups, rows // layout.groups, int(np.prod(layout.windows.out))
    return images.reshape(size)


# END SOLUTION


class _Layout:
    """The shapes of a convolution, and how its operands become matrices on a back end.

    Attributes:
        groups: how many there are.
        windows: the Windows of the images.
        channels: the numbers of images, of channels and of filters.
        out: the shape of the result, (N, F, OH, OW).
        as_windows: that of the windows, (N, C, KH, KW, OH, OW).

    A back end has a product for each group, whose columns are (G, K, N * P), so that the sum over
    N is in the product.
    """

    def __init__(self, node, x, w):
        attributes = node.attributes
        self.groups = groups = attributes["groups"]
        _check_shapes(x, w, groups)
        self._method = attributes["method"]
        self.windows = Windows(
            x[2:], w[2:], attributes["stride"], attributes["padding"], attributes["dilation"]
        )
        if self._method in winograd.TILES:
            winograd.check(self.windows, groups)
        if self._method == "fft":
            fourier.check(self.windows, groups)
        self.channels = (x[0], x[1], w[0])
        self.out = (x[0], w[0], *self.windows.out)
        self.as_windows = (*x[:2], *w[2:], *self.windows.out)
        self._filter, self._positions = int(np.prod(w[1:])), int(np.prod(self.windows.out))

    def method(self, node, build, *inputs):
        if self._method != "auto":
            return self._method
        # Where each channel is a group of its own, products have a side of 1.
        is_by_channel = self.groups > 1 and self.groups == self.channels[1]
        return "direct" if is_by_channel else build.choose(node, inputs)

    @property
    def is_product(self):
        """Whether each window is one element, so that images are their own columns."""
        windows = self.windows
        return windows.kernel == (1, 1) == windows.stride and windows.padding == (0, 0)

    def lowered_planes(self, build, images):
        """Images as matrices, (N, G, C / G, P)."""
        count, channels = images.shape[:2]
        shape = (count, self.groups, channels // self.groups, self._positions)
        return build.reshape(images, shape)

    def convolved(self, build, kind, method, shape, *inputs):
        said = (kind, method, shape, self.windows, self.channels, self.groups)
        return build.convolve(*said, *inputs)

    def lowered_columns(self, build, x):
        moved = build.view(_batch_behind_kernel, build.windows(x, self.windows))
        return build.reshape(moved, (self.groups, self._filter, self._wide))

    def lowered_filters(self, build, w):
        return build.reshape(w, (self.groups, self.channels[2] // self.groups, self._filter))

    def lowered_grads(self, build, g):
        moved = build.view(_first_two_exchanged, g)
        return build.reshape(moved, (self.groups, self.channels[2] // self.groups, self._wide))

    def lowered_images(self, build, found):
        images, _, filters = self.channels
        by_filter = build.reshape(found, (filters, images, *self.windows.out))
        return build.view(_first_two_exchanged, by_filter)

    def lowered_fold(self, build, columns):
        images, channels, *rest = self.as_windows
        kernel, out = rest[:2], rest[2:]
        apart = build.reshape(columns, (channels, *kernel, images, *out))
        return build.fold(build.view(_batch_first, apart), self.windows)

    @functools.cached_property
    def _wide(self):
        return self.channels[0] * self._positions


def _batch_behind_kernel(windows):
    return np.transpose(windows, (1, 2, 3, 0, 4, 5))


def _batch_first(windows):
    return np.transpose(windows, (3, 0, 1, 2, 4, 5))


def _first_two_exchanged(array):
    return np.swapaxes(array, 0, 1)


def _turned(build, matrices):
    return build.view(lambda array: np.swapaxes(array, -1, -2), matrices)


def _check_shapes(x, w, groups):
    """Raises a ValueError unless filters of this shape fit images of that one."""
    if len(x) != 4 or len(w) != 4:
        raise ValueError("images are %s, filters are %s; hint: both have four axes" % (x, w))
    if groups < 1 or x[1] % groups or w[0] % groups:
        raise ValueError("%d channels and %d filters have no %s groups" % (x[1], w[0], groups))
    if x[1] // groups != w[1]:
        raise ValueError(
            "filters take %d channels, the images have %d in each of %d groups"
            % (w[1], x[1] // groups, groups)
        )


def conv2d_op(
    x, w, bias=None, stride=1, padding=0, dilation=1, groups=1, method="auto", layout="NCHW"
):
    """The convolution of images with filters, as deep learning has it: nothing is mirrored.

    Args:
        x: images, (N, C, H, W), or (N, H, W, C) where layout is "NHWC".
        w: filters, (F, C / groups, KH, KW).
        bias: (F,), added to each element of a filter's result.
        stride, padding, dilation: a number, or one for height and one for width.
        groups: each part of the filters sees a part of the channels alone.
        method: one of METHODS; all give the same values, but for rounding.
        layout: of x and of the result, "NCHW" or "NHWC".

    Raises:
        ValueError: an argument is none of these.
        ShapeError: the shapes are known, and don't fit.
    """
    if layout not in ("NCHW", "NHWC"):
        raise ValueError('layout is %r; hint: "NCHW" or "NHWC"' % (layout,))
    by_channel = layout == "NHWC"
    x = transpose_op(x, (0, 3, 1, 2)) if by_channel else x
    found = convolution_op(x, w, stride, padding, dilation, groups, method)
    if bias is not None:
        found = found + reshape_op(bias, (1, -1, 1, 1))
    return transpose_op(found, (0, 2, 3, 1)) if by_channel else found


convolution_op = ConvolutionOp()
convolution_gradient_op = ConvolutionGradientOp()
