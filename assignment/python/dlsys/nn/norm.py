"""Norms: of a batch, of a layer, of groups of channels. Each is a composition of ops."""

from dlsys import ops
from dlsys.ops.known import known
from dlsys.ops.movement import reshape_like_op
from dlsys.ops.reduction import divide_by_count_op

from . import init
from .module import Module, made
from .precision import in_float32


def _normalised(x, mean, variance, epsilon):
    return (x - mean) * ops.rsqrt(variance + epsilon)


def _by_channel(node):
    """(C,) as (1, C, 1, 1)."""
    return ops.reshape(node, (1, -1, 1, 1))


class _Norm(Module):
    """Computes in float32, whatever the network does."""

    def __call__(self, x, train=False):
        self.result = in_float32(lambda wide: super(_Norm, self).__call__(wide, train), x)
        return self.result


class BatchNorm2d(_Norm):
    """Each channel of a batch with mean 0 and deviation 1, times weight, plus bias.

    Training takes mean and variance of the batch, and moves the running ones towards them; else
    the running ones are taken.
    """

    buffers = ("running_mean", "running_var")

    def __init__(self, channels, momentum=0.1, epsilon=1e-5, weight=init.ones):
        """
        Args:
            channels: of the images.
            momentum: the part of a batch's figures in the new running ones.
            epsilon: added to the variance.
            weight: an initialiser; a residual branch may begin with zeros.
        """
        self.weight, self.bias = made(weight, (channels,)), made(init.zeros, (channels,))
        self.running_mean = made(init.zeros, (channels,))
        self.running_var = made(init.ones, (channels,))
        self._momentum, self._epsilon = momentum, epsilon

    def forward(self, x, train):
        """(N, C, H, W) -> (N, C, H, W)."""
        # TODO (task 4.6): your code here
        raise NotImplementedError("task 4.6 is not written yet")

    def _moved(self, x, mean, variance):
        """Buffer -> its new value; the running variance is that of the sample, as PyTorch's.

        Args:
            x: the batch.
            mean, variance: of each channel, (1, C, 1, 1); the variance is the mean of squares.
        """
        # TODO (task 4.7): your code here
        raise NotImplementedError("task 4.7 is not written yet")


class LayerNorm(_Norm):
    """The last axes together with mean 0 and deviation 1, times weight, plus bias."""

    def __init__(self, shape, epsilon=1e-5):
        """
        Args:
            shape: that of the last axes, or the extent of the last one.
            epsilon: added to the variance.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.weight, self.bias = made(init.ones, shape), made(init.zeros, shape)
        self._axes, self._epsilon = tuple(range(-len(shape), 0)), epsilon

    def forward(self, x, train):
        """The shape stays."""
        mean, variance = (each(x, self._axes, True) for each in (ops.mean, ops.variance))
        return _normalised(x, mean, variance, self._epsilon) * self.weight + self.bias


class GroupNorm(_Norm):
    """Each group of channels of an image with mean 0 and deviation 1, times weight, plus bias.

    Raises:
        ValueError: the channels have no such groups.
    """

    def __init__(self, groups, channels, epsilon=1e-5):
        if groups < 1 or channels % groups:
            raise ValueError("%d channels have no %d equal groups" % (channels, groups))
        self.weight, self.bias = made(init.ones, (channels,)), made(init.zeros, (channels,))
        self._groups, self._epsilon = groups, epsilon

    def forward(self, x, train):
        """(N, C, H, W) -> (N, C, H, W); the shape of x must be known."""
        if known(x) is None:
            raise ValueError("GroupNorm: the shape of x is not known; hint: variable(name, shape)")
        rows = ops.reshape(x, (known(x)[0][0], self._groups, -1))
        mean, variance = (each(rows, -1, True) for each in (ops.mean, ops.variance))
        found = reshape_like_op(_normalised(rows, mean, variance, self._epsilon), x)
        return found * _by_channel(self.weight) + _by_channel(self.bias)
