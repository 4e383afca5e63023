"""Random numbers by Philox, which counts: element i of a draw depends on seed, draw and i alone.

So every back end gives the same numbers, in any order and on any number of threads.
Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011.
"""

import math

import numpy as np

from .base import TensorOp

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)


def philox(size, seed, draw):
    """Uniform 32-bit integers, an array of `size`: four from each value of a 128-bit counter.

    Args:
        size: how many.
        seed: the key, 0 to 2**64 - 1.
        draw: the upper 64 bits of the counter.
    """
    blocks = -(-size // 4)
    count = np.arange(blocks, dtype=np.uint64)
    shift = np.uint64(32)
    words = [count & _LOW, count >> shift]
    words += [np.full(blocks, part, np.uint64) for part in (draw & 0xFFFFFFFF, draw >> 32)]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(_ROUNDS):
        first, second = (words[2 * i] * np.uint64(m) for i, m in enumerate(_MULTIPLIERS))
        words = [
            (second >> shift) ^ words[1] ^ np.uint64(keys[0]), second & _LOW,
            (first >> shift) ^ words[3] ^ np.uint64(keys[1]), first & _LOW,
        ]  # fmt: skip
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _WEYL, strict=True)]
    return np.stack(words, axis=1).reshape(-1)[:size].astype(np.uint32)


def uniform_numbers(size, seed, draw):
    """Numbers from 0 up to, but not, 1: multiples of 2 ** -24, which a float32 holds."""
    return (philox(size, seed, draw) >> np.uint32(8)).astype(np.float64) * 2.0**-24


class _RandomOp(TensorOp):
    """Numbers drawn anew at each run: those of run k depend on the seed and k."""

    draws = True

    def __call__(self, *inputs, seed, **attributes):
        if not 0 <= seed < 2**64:
            raise ValueError("%s: the seed is %d; hint: 0 to 2**64 - 1" % (self.name, seed))
        node = TensorOp.__call__(self, *inputs, **attributes, seed=seed)
        node.runs = 0
        return node

    def next_run(self, node):
        """(seed, number of this run)."""
        return node.attributes["seed"], self.next_number(node)

    def next_number(self, node):
        """The number of this run."""
        node.runs += 1
        return node.runs - 1

    def drawn_on(self, node, build, kind, shape, parameters):
        """The numbers of each run on a back end."""
        seed = node.attributes["seed"]
        return build.draw(kind, shape, seed, parameters, lambda: self.next_number(node))


class _DrawOp(_RandomOp):
    """An array of random numbers."""

    samples = (({"shape": (3, 5), "seed": 7},), ({"shape": (), "seed": 2**64 - 1},))

    def __call__(self, shape, seed, **parameters):
        return _RandomOp.__call__(self, shape=tuple(shape), seed=seed, **parameters)

    def forward(self, node):
        shape = node.attributes["shape"]
        names = [name for name in node.attributes if name not in ("shape", "seed")]
        parameters = {name: node.attributes[name] for name in names}
        return self.drawn(math.prod(shape), *self.next_run(node), **parameters).reshape(shape)

    def lower(self, node, build):
        shape = node.attributes["shape"]
        parameters = [
            node.attributes[name] for name in node.attributes if name not in ("shape", "seed")
        ]
        return self.drawn_on(node, build, self.name, shape, tuple(parameters))

    def shape(self, node):
        return node.attributes["shape"]

    def gradient(self, node, grad):
        return []


class UniformOp(_DrawOp):
    """Uniform numbers from low up to high."""

    label = "Uniform"

    def __call__(self, shape, seed, low=0.0, high=1.0):
        return _DrawOp.__call__(self, shape, seed, low=low, high=high)

    def drawn(self, size, seed, draw, low, high):
        """`size` numbers of run `draw`."""
        return low + (high - low) * uniform_numbers(size, seed, draw)


class NormalOp(_DrawOp):
    """Normal numbers, by the method of Box and Muller: two from two uniform ones."""

    label = "Normal"

    def __call__(self, shape, seed, mean=0.0, deviation=1.0):
        return _DrawOp.__call__(self, shape, seed, mean=mean, deviation=deviation)

    def drawn(self, size, seed, draw, mean, deviation):
        """`size` numbers of run `draw`."""
        pairs = uniform_numbers(size + size % 2, seed, draw).reshape(-1, 2)
        radius = np.sqrt(-2 * np.log(1 - pairs[:, 0]))  # 1 - u is never 0
        angle = 2 * math.pi * pairs[:, 1]
        found = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return mean + deviation * found.reshape(-1)[:size]


class BernoulliOp(_RandomOp):
    """1 with a probability, else 0, in the shape of x, drawn anew at each run."""

    label = "Bernoulli({}.shape,{},{})"
    samples = (((3, 5), 0.4, 7),)
    labels = (0,)

    def __call__(self, x, probability, seed):
        if not 0 <= probability <= 1:
            raise ValueError("bernoulli: the probability is %s; hint: 0 to 1" % probability)
        return _RandomOp.__call__(self, x, probability=probability, seed=seed)

    def forward(self, node, x):
        numbers = uniform_numbers(x.size, *self.next_run(node))
        return (numbers < node.attributes["probability"]).reshape(x.shape) * 1.0

    def lower(self, node, build, x):
        parameters = (node.attributes["probability"], 0.0)
        return self.drawn_on(node, build, "bernoulli", x.shape, parameters)

    def gradient(self, node, grad):
        return self.no_gradient(node)


def dropout_op(x, rate, seed):
    """x with each element 0 with probability `rate`, and the others divided by 1 - rate.

    A run draws its mask once, for the value and its gradient.
    """
    if not 0 <= rate < 1:
        raise ValueError("dropout: the rate is %s; hint: 0 up to, but not, 1" % rate)
    return x * bernoulli_op(x, 1 - rate, seed) * (1 / (1 - rate))


uniform_op = UniformOp()
normal_op = NormalOp()
bernoulli_op = BernoulliOp()
