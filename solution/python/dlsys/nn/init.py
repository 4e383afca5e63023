"""Initial values: functions of a shape. Random ones draw from one generator, each another stream.

nn.seed(7)
nn.Linear(784, 10, weight=init.xavier_uniform(), bias=init.constant(0.1))
"""

import math

import numpy as np

#: What keeps the deviation of relu's results as it is.
RELU_GAIN = math.sqrt(2)


class _Streams:
    """A seed, and how many streams have been taken of it."""

    def __init__(self, seed):
        self._root = np.random.SeedSequence(seed)

    def next(self):
        """A stream of random numbers that nobody had before."""
        return np.random.default_rng(self._root.spawn(1)[0])


_streams = _Streams(0)


def seed(value):
    """Starts the generator anew: layers made after it have the values that this seed gives."""
    global _streams
    _streams = _Streams(value)


def fresh_seed():
    """A seed for `ops.dropout` and the like, from a stream of its own."""
    return int(_streams.next().integers(0, 2**63))


def fans(shape):
    """(numbers that come into an element of a layer's result, that go out of one of its input).

    Args:
        shape: of a weight: (out, in) or (filters, channels of a group, height, width).

    Raises:
        ValueError: it has less than two axes.
    """
    if len(shape) < 2:
        raise ValueError("a weight of shape %s has no fan; hint: two axes or more" % (shape,))
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _fan(shape, mode):
    if mode not in ("in", "out"):
        raise ValueError('the fan is %r; hint: "in" or "out"' % (mode,))
    return fans(shape)[mode == "out"]


def normal(deviation=1.0, mean=0.0):
    """Normal numbers."""
    return lambda shape: _streams.next().normal(mean, deviation, shape)


def uniform(low=-1.0, high=1.0):
    """Uniform numbers from low up to high."""
    return lambda shape: _streams.next().uniform(low, high, shape)


def kaiming_normal(fan="in", gain=RELU_GAIN):
    """Normal numbers of deviation gain / sqrt(fan) (He et al., 2015); the gain is relu's."""
    return lambda shape: normal(gain / math.sqrt(_fan(shape, fan)))(shape)


def kaiming_uniform(fan="in", gain=RELU_GAIN):
    """Uniform numbers of the same deviation."""

    def values(shape):
        most = gain * math.sqrt(3 / _fan(shape, fan))
        return uniform(-most, most)(shape)

    return values


def xavier_normal(gain=1.0):
    """Normal numbers of deviation gain * sqrt(2 / (fan in + fan out)) (Glorot, Bengio, 2010)."""
    return lambda shape: normal(gain * math.sqrt(2 / sum(fans(shape))))(shape)


def xavier_uniform(gain=1.0):
    """Uniform numbers of the same deviation."""

    def values(shape):
        most = gain * math.sqrt(6 / sum(fans(shape)))
        return uniform(-most, most)(shape)

    return values


def constant(value):
    """One number everywhere."""
    return lambda shape: np.full(shape, float(value))


#: Zeros, and ones.
zeros, ones = constant(0), constant(1)


def linspace(first, last):
    """Numbers at equal distances, from the first element to the last."""
    return lambda shape: np.linspace(first, last, math.prod(shape)).reshape(shape)


def scaled(initial, factor):
    """Another initialiser's values, so many times."""
    return lambda shape: initial(shape) * factor
