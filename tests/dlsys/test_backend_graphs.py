"""Random graphs of the full set, with their gradients: a back end beside numpy, in float64.

BACKEND_GRAPHS=2000 pytest tests/dlsys/test_backend_graphs.py
"""

import os
import random

import numpy as np
import pytest

from dlsys import autodiff, ndarray, ops
from dlsys.backend import cpu, kernels
from dlsys.backend.lowering import Lowering
from dlsys.gradcheck import evaluate

COUNT = int(os.environ.get("BACKEND_GRAPHS", "40"))
AT_ONCE = 20

SMOOTH = [
    ops.tanh, ops.sigmoid, ops.silu, ops.softplus, ops.gelu, ops.erf, ops.square, ops.negate,
    ops.abs, ops.relu, lambda x: ops.exp(ops.tanh(x)), lambda x: ops.log1p(ops.square(x)),
    lambda x: ops.sqrt(ops.square(x) + 1.0), lambda x: ops.clip(x, -0.5, None),
    lambda x: 2.0 - x * 3, lambda x: ops.leaky_relu(x, 0.2), lambda x: x * x,
]  # fmt: skip
PAIRS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, ops.maximum, ops.minimum,
    lambda a, b: a / (ops.square(b) + 1.0), lambda a, b: ops.where(a < b, a, b),
]  # fmt: skip
REDUCTIONS = [ops.sum, ops.mean, ops.max, ops.min, ops.variance, ops.logsumexp]


def broadcastable(draw, shape):
    """A shape that broadcasts with `shape`."""
    kept = shape[draw.randrange(len(shape) + 1) :]
    return tuple(1 if draw.random() < 0.3 else extent for extent in kept)


def unary(draw, node, shape):
    """A node made of one, and its shape is whatever numpy says."""
    rank = len(shape)
    ways = ["smooth", "smooth", "reduce", "softmax", "flatten", "expand"]
    if rank:
        ways += ["transpose", "slice", "flip", "pad", "concatenate"]
    if rank >= 2:
        ways += ["matmul", "reduce", "swap"]
    way = draw.choice(ways)
    axis = draw.randrange(rank) if rank else None
    if way == "reduce":
        axes = tuple(draw.sample(range(rank), draw.randrange(1, rank + 1))) if rank else None
        return draw.choice(REDUCTIONS)(node, axes, draw.random() < 0.5)
    if way == "softmax" and rank:
        return draw.choice((ops.softmax, ops.log_softmax))(node, axis)
    if way == "flatten":
        return ops.reshape(node, (-1,))
    if way == "expand":
        return ops.expand_dims(node, draw.randrange(rank + 1)) if rank < 4 else node
    if way == "transpose":
        return ops.transpose(node, draw.sample(range(rank), rank))
    if way == "swap":
        return ops.transpose(node, (*range(rank - 2), rank - 1, rank - 2))
    if way == "slice":
        start, step = draw.randrange(max(1, shape[axis])), draw.choice((1, 1, 2, -1))
        part = slice(start, None, step)
        return node[(*[slice(None)] * axis, part)]
    if way == "flip":
        return ops.flip(node, axis)
    if way == "pad":
        return ops.pad(node, [(draw.randrange(2), draw.randrange(3)) for _ in shape], 0.5)
    if way == "concatenate":
        return ops.concatenate(node, ops.tanh(node), node, axis=axis)
    if way == "matmul":
        return node @ ops.transpose(node, (*range(rank - 2), rank - 1, rank - 2))
    return draw.choice(SMOOTH)(node)


def graph(seed):
    """Nodes and feeds of a random graph; its outputs are values and gradients."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    shapes = [tuple(draw.choice((1, 2, 3, 5)) for _ in range(draw.randrange(4)))]
    shapes += [broadcastable(draw, shapes[0]) for _ in range(2)]
    variables = [ops.variable(f"x{i}", shape) for i, shape in enumerate(shapes)]
    feeds = {
        v: numbers.uniform(-1.5, 1.5, shape) for v, shape in zip(variables, shapes, strict=True)
    }
    nodes = list(variables)
    for _ in range(draw.randrange(3, 14)):
        a, b = draw.choice(nodes), draw.choice(nodes)
        try:
            np.broadcast_shapes(a.shape, b.shape)
            fits = draw.random() < 0.5
        except ValueError:
            fits = False
        made = draw.choice(PAIRS)(a, b) if fits else unary(draw, a, a.shape)
        if np.prod(made.shape) <= 4000:
            nodes.append(made)
    value = nodes[-1]
    total = ops.sum(value * value)
    used = set(autodiff.find_topo_sort([total]))
    wrt = [v for v in variables if v in used]
    outputs = [value, *autodiff.gradients(total, wrt), *draw.sample(nodes, min(2, len(nodes)))]
    needed = set(autodiff.find_topo_sort(outputs))
    return outputs, {v: values for v, values in feeds.items() if v in needed}


def compile_at_once(graphs):
    keys = {}
    for outputs, feeds in graphs:
        lowering = Lowering({v: (x.shape, x.dtype) for v, x in feeds.items()}, np.dtype(float))
        for node in autodiff.find_topo_sort(outputs):
            if node not in feeds:
                lowering.lower(node)
        keys.update(dict.fromkeys(each.key for each in lowering.instructions))
    kernels.kernels(cpu, list(keys))


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_random_graphs_are_what_numpy_makes_of_them(first):
    seeds = range(first, min(first + AT_ONCE, COUNT))
    graphs = [graph(seed) for seed in seeds]
    compile_at_once(graphs)
    for seed, (outputs, feeds) in zip(seeds, graphs, strict=True):
        fed = {v: ndarray.array(x, dtype=np.float64) for v, x in feeds.items()}
        got = autodiff.Executor(outputs, ctx=ndarray.cpu(0)).run(fed, True)
        wanted = evaluate(outputs, feeds)
        for node, found, expected in zip(outputs, got, wanted, strict=True):
            expected = np.asarray(expected)
            assert found.shape == expected.shape, (seed, node)
            bound = 1e-9 * (1 + np.abs(expected).max(initial=0))
            np.testing.assert_allclose(found, expected, rtol=0, atol=bound, err_msg=f"seed {seed}")
