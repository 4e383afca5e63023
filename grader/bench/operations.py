"""The operations that are timed, on arrays of n x n float32, as each library's users write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlsys import ops

#: Of a module and arrays: numpy also gets `out`, an array for the result, or None at first.
Written = Callable[..., Any]


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        inputs: how many arrays of n x n it reads.
        ours, numpy, torch, jax: on nodes, and on arrays of each library.
        gradients: in numpy, of (g, y, *inputs): those of the inputs, from that of the result y.
        shape: of the result: n x n, or n.
        flops, floats: additions and multiplications, and numbers read and written, by n.
        power: the time grows as n to this power.
    """

    name: str
    inputs: int
    ours: Written
    numpy: Written
    torch: Written
    jax: Written
    gradients: Callable[..., list[Any]]
    flops: Callable[[int], float]
    floats: Callable[[int], float]
    rank: int = 2
    power: int = 2

    def shape(self, n: int) -> tuple[int, ...]:
        """Of the result."""
        return (n,) * self.rank


def _softmax(numpy: Any, a: Any, out: Any = None) -> Any:
    y = numpy.exp(a - a.max(1, keepdims=True), out=out)
    y /= y.sum(1, keepdims=True)
    return y


def _transposed(numpy: Any, a: Any, out: Any = None) -> Any:
    out = numpy.empty_like(a.T, order="C") if out is None else out
    numpy.copyto(out, a.T)
    return out


def _softmax_gradient(g: Any, y: Any, a: Any) -> list[Any]:
    return [y * (g - (g * y).sum(1, keepdims=True))]


OPERATIONS = (
    Operation(
        "matmul", 2, lambda a, b: a @ b,
        lambda numpy, a, b, out=None: numpy.matmul(a, b, out=out),
        lambda torch, a, b: a @ b, lambda jax, a, b: a @ b,
        lambda g, y, a, b: [g @ b.T, a.T @ g],
        lambda n: 2.0 * n**3, lambda n: 3.0 * n**2, power=3,
    ),
    Operation(
        "multiply", 2, lambda a, b: a * b,
        lambda numpy, a, b, out=None: numpy.multiply(a, b, out=out),
        lambda torch, a, b: a * b, lambda jax, a, b: a * b,
        lambda g, y, a, b: [g * b, g * a],
        lambda n: 1.0 * n**2, lambda n: 3.0 * n**2,
    ),
    Operation(
        "exp", 1, ops.exp,
        lambda numpy, a, out=None: numpy.exp(a, out=out),
        lambda torch, a: torch.exp(a), lambda jax, a: jax.numpy.exp(a),
        lambda g, y, a: [g * y],
        lambda n: 1.0 * n**2, lambda n: 2.0 * n**2,
    ),
    Operation(
        "relu", 1, ops.relu,
        lambda numpy, a, out=None: numpy.maximum(a, 0, out=out),
        lambda torch, a: torch.relu(a), lambda jax, a: jax.nn.relu(a),
        lambda g, y, a: [g * (a > 0)],
        lambda n: 1.0 * n**2, lambda n: 2.0 * n**2,
    ),
    Operation(
        "sum over rows", 1, lambda a: ops.sum(a, 1),
        lambda numpy, a, out=None: numpy.sum(a, 1, out=out),
        lambda torch, a: a.sum(1), lambda jax, a: a.sum(1),
        lambda g, y, a: [np.broadcast_to(g[:, None], a.shape).copy()],
        lambda n: 1.0 * n**2, lambda n: 1.0 * n**2 + n, rank=1,
    ),
    Operation(
        "sum over columns", 1, lambda a: ops.sum(a, 0),
        lambda numpy, a, out=None: numpy.sum(a, 0, out=out),
        lambda torch, a: a.sum(0), lambda jax, a: a.sum(0),
        lambda g, y, a: [np.broadcast_to(g, a.shape).copy()],
        lambda n: 1.0 * n**2, lambda n: 1.0 * n**2 + n, rank=1,
    ),
    Operation(
        "softmax", 1, lambda a: ops.softmax(a, -1), _softmax,
        lambda torch, a: torch.softmax(a, -1), lambda jax, a: jax.nn.softmax(a, -1),
        _softmax_gradient,
        lambda n: 5.0 * n**2, lambda n: 2.0 * n**2,
    ),
    Operation(
        "transpose", 1, ops.transpose, _transposed,
        lambda torch, a: a.T.contiguous(), lambda jax, a: a.T + 0,
        lambda g, y, a: [np.ascontiguousarray(g.T)],
        lambda n: 0.0, lambda n: 2.0 * n**2,
    ),
)  # fmt: skip

BY_NAME = {each.name: each for each in OPERATIONS}
