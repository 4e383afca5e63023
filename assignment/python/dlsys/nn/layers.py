"""Layers: linear, convolutions, pooling, dropout, activations."""

import math

from dlsys import ops
from dlsys.ops.convolution import pair

from . import init
from .module import Module, made
from .precision import in_half


class Linear(Module):
    """x @ weight.T + bias: weight is (outputs, inputs), as PyTorch has it."""

    def __init__(self, inputs, outputs, bias=init.zeros, weight=None):
        """
        Args:
            inputs, outputs: how many numbers a row has before and after.
            weight, bias: initialisers; a bias of None is none at all. Weights are Kaiming's.
        """
        self.weight = made(weight or init.kaiming_normal(), (outputs, inputs))
        self.bias = made(bias, (outputs,)) if bias else None

    def forward(self, x, train):
        """(N, inputs) -> (N, outputs)."""
        found = ops.matmul(x, self.weight, trans_b=True)
        return found if self.bias is None else found + self.bias

    def multiply_adds(self):
        """Of one call, whose shapes are known."""
        return math.prod(self.shapes[1]) * self.weight.known[0][1]


class Conv2d(Module):
    """A convolution of images (N, C, H, W)."""

    def __init__(
        self, channels, filters, kernel, stride=1, padding=0, dilation=1, groups=1,
        bias=init.zeros, weight=None, method="auto",
    ):  # fmt: skip
        """
        Args:
            channels, filters: of the images before and after.
            kernel, stride, padding, dilation, groups, method: see ops.conv2d.
            weight, bias: as those of Linear.

        Raises:
            ValueError: channels and filters have no such groups.
        """
        if groups < 1 or channels % groups or filters % groups:
            raise ValueError(
                "%s channels and %s filters have no %s equal groups" % (channels, filters, groups)
            )
        shape = (filters, channels // groups, *pair(kernel, "kernel", 1))
        self.weight = made(weight or init.kaiming_normal(), shape)
        self.bias = made(bias, (filters,)) if bias else None
        self._how = {
            "stride": stride, "padding": padding, "dilation": dilation, "groups": groups,
            "method": method,
        }  # fmt: skip

    def forward(self, x, train):
        """(N, channels, H, W) -> (N, filters, OH, OW)."""
        bias = None if self.bias is None else in_half(self.bias)
        return ops.conv2d(in_half(x), in_half(self.weight), bias, **self._how)

    def multiply_adds(self):
        """Of one call, whose shapes are known."""
        return math.prod(self.shapes[1]) * math.prod(self.weight.known[0][1:])


class MaxPool2d(Module):
    """The largest element of each window; see ops.max_pool."""

    def __init__(self, kernel, stride=None, padding=0, ceil=False):
        self._how = {"kernel": kernel, "stride": stride, "padding": padding, "ceil": ceil}

    def forward(self, x, train):
        """(N, C, H, W) -> (N, C, OH, OW)."""
        return ops.max_pool(x, **self._how)


class AveragePool2d(MaxPool2d):
    """The mean of each window; see ops.average_pool."""

    def forward(self, x, train):
        """(N, C, H, W) -> (N, C, OH, OW)."""
        return ops.average_pool(x, **self._how)


class GlobalAveragePool2d(Module):
    """The mean of each plane."""

    def forward(self, x, train):
        """(N, C, H, W) -> (N, C)."""
        return ops.global_average_pool(x)


class Flatten(Module):
    """All axes but the first as one."""

    def forward(self, x, train):
        """(N, ...) -> (N, elements)."""
        return ops.flatten(x, start=1)


class Dropout(Module):
    """Drops elements with a probability while it trains; each call has random numbers of its own.

    Raises:
        ValueError: the rate is not from 0 up to, but not, 1.
    """

    def __init__(self, rate=0.5):
        if not 0 <= rate < 1:
            raise ValueError("dropout: the rate is %s; hint: 0 up to, but not, 1" % rate)
        self.rate = rate

    def forward(self, x, train):
        """x, or what is left of it."""
        return ops.dropout(x, self.rate, init.fresh_seed()) if train and self.rate else x


class _Activation(Module):
    """A function of each element."""

    function = None

    def forward(self, x, train):
        """The function of each element."""
        return type(self).function(x)


class ReLU(_Activation):
    """max(x, 0)."""

    function = staticmethod(ops.relu)


class Gelu(_Activation):
    """x times the normal distribution of x."""

    function = staticmethod(ops.gelu)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x))."""

    function = staticmethod(ops.sigmoid)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    function = staticmethod(ops.tanh)
