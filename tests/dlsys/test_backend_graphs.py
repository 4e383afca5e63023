"""Random graphs of the full set, with their gradients: a back end beside numpy, in float64.

BACKEND_GRAPHS=2000 BACKEND_FIRST=0 pytest tests/dlsys/test_backend_graphs.py -k cpu-float64
"""

import os
import random

import numpy as np
import pytest

from dlsys import autodiff, ndarray, ops
from dlsys.backend import cpu, gpu, kernels
from dlsys.backend.lowering import Lowering

COUNT = int(os.environ.get("BACKEND_GRAPHS", "20"))
FIRST = int(os.environ.get("BACKEND_FIRST", "0"))
AT_ONCE = 20
DEVICES = {"cpu": (ndarray.cpu(0), cpu), "gpu": (ndarray.gpu(0), gpu)}
KINDS = [("cpu", "float64"), ("cpu", "float32"), ("gpu", "float64"), ("gpu", "float32")]
#: Share of a value by which rounding moves each number of a graph, beside the largest.
ROUNDING = {"float64": 1e-12, "float32": 4e-6}
#: Graphs whose values move by more than so many times a small change of what is fed are not
#: compared: rounding moves them too.
MOST_SENSITIVE = 1e4

SMOOTH = [
    ops.tanh, ops.sigmoid, ops.silu, ops.softplus, ops.gelu, ops.erf, ops.square, ops.negate,
    ops.abs, ops.relu, lambda x: ops.exp(ops.tanh(x)), lambda x: ops.log1p(ops.square(x)),
    lambda x: ops.sqrt(ops.square(x) + 1.0), lambda x: ops.clip(x, -0.5, None),
    lambda x: 2.0 - x * 3, lambda x: ops.leaky_relu(x, 0.2), lambda x: x * x,
    lambda x: ops.gelu(x, tanh=True), lambda x: ops.log(ops.square(x) + 0.5), lambda x: x + 0.5,
    lambda x: ops.rsqrt(ops.square(x) + 1.0), lambda x: ops.power(ops.square(x) + 0.5, 1.5),
    lambda x: ops.sign(x) * x, lambda x: ops.stop_gradient(x) * x, lambda x: x / 3,
    lambda x: ops.ones_like(x) - ops.zeros_like(x) * x,
]  # fmt: skip
PAIRS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, ops.maximum, ops.minimum,
    lambda a, b: a / (ops.square(b) + 1.0), lambda a, b: ops.where(a < b, a, b),
    lambda a, b: ops.where(ops.logical_and(a > 0, b <= 0.5), a, b * b),
    lambda a, b: ops.where(ops.logical_or(a >= b, ops.logical_not(b > 0)), a, 1.0) * b,
    lambda a, b: ops.where(ops.logical_xor(a > 0, b > 0), a + b, a - b),
    lambda a, b: ops.power(ops.square(a) + 0.5, ops.tanh(b)),
    lambda a, b: ops.equal(a, b) * a + ops.not_equal(a, b) * b, lambda a, b: ops.mse(a, b),
]  # fmt: skip
REDUCTIONS = [
    ops.sum, ops.mean, ops.max, ops.min, ops.variance, ops.logsumexp,
    lambda x, axes, keep: ops.prod(ops.tanh(x) + 1.5, axes, keep),
]  # fmt: skip


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
        ways += ["index", "split", "stack", "squeeze", "spread", "gather", "rows", "scatter"]
    if rank >= 2:
        ways += ["matmul", "reduce", "swap", "loss"]
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
    if way in ("index", "split", "stack", "squeeze", "spread"):
        return moved(draw, way, node, shape, axis)
    if way in ("gather", "rows", "scatter", "loss"):
        return indexed(draw, way, node, shape, axis)
    return draw.choice(SMOOTH)(node)


def moved(draw, way, node, shape, axis):
    """A node that holds elements of another at other places, or more than once."""
    if way == "index":
        index = [draw.choice((slice(None), draw.randrange(extent))) for extent in shape]
        return node[tuple(index)]
    if way == "split":
        return ops.split(node, shape[axis], draw.randrange(shape[axis]), axis)
    if way == "stack":
        return ops.stack(node, ops.square(node), axis=axis) if len(shape) < 4 else node
    if way == "squeeze":
        return ops.squeeze(ops.expand_dims(node, axis), axis) * 2.0
    extents = [draw.choice((2, 3)) if extent == 1 else extent for extent in shape]
    return ops.broadcast_to(node, tuple(extents))


def indexed(draw, way, node, shape, axis):
    """A node whose elements are chosen by indices, which are constants."""
    chosen = np.random.default_rng(draw.randrange(1 << 30))
    if way == "gather":
        return ops.gather(node, chosen.integers(0, shape[axis], shape), axis)
    if way == "scatter":
        return ops.scatter_add(node, chosen.integers(0, shape[axis], shape), ops.tanh(node), axis)
    if way == "rows":
        rows = ops.reshape(node, (shape[0], -1))
        return ops.embedding(rows, chosen.integers(0, shape[0], (2, 3)))
    reduction, smoothing = draw.choice(("mean", "sum", "none")), draw.choice((0.0, 0.1))
    classes = chosen.integers(0, shape[-1], shape[:-1])
    if draw.random() < 0.3:
        return ops.nll(ops.log_softmax(node), classes, reduction)
    if draw.random() < 0.4:
        classes = ops.softmax(ops.constant(chosen.normal(size=shape)))
    return ops.cross_entropy(node, classes, smoothing, reduction)


def graph(seed):
    """Nodes and feeds of a random graph; its outputs are values and gradients."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    sizes = draw.choice(((1, 2, 3, 5), (1, 2, 3, 5), (1, 4, 8), (1, 17, 33), (2, 130)))
    shapes = [tuple(draw.choice(sizes) for _ in range(draw.randrange(4)))]
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
        if np.prod(made.shape) <= 20000:
            nodes.append(made)
    value = nodes[-1]
    total = ops.sum(value * value)
    used = set(autodiff.find_topo_sort([total]))
    wrt = [v for v in variables if v in used]
    outputs = [value, *autodiff.gradients(total, wrt), *draw.sample(nodes, min(2, len(nodes)))]
    needed = set(autodiff.find_topo_sort(outputs))
    return outputs, {v: values for v, values in feeds.items() if v in needed}


def kinds_of(seed, feeds, dtype):
    """Of which dtypes the fed arrays are: some of a graph are halves or whole numbers."""
    draw = random.Random(-1 - seed)
    others = ["float16", "int32", "int64", "uint8", "bool"]
    mixed = draw.random() < 0.3
    chosen = [draw.choice([dtype, *others]) if mixed else dtype for _ in feeds]
    if dtype not in chosen:
        chosen[:1] = [dtype]
    return [np.dtype(each) for each in chosen]


def as_kind(values, kind):
    """Values as another dtype; whole numbers are 0, 1 or 2."""
    if kind.kind in "iub":
        return np.asarray(np.rint(np.abs(values))).astype(kind)
    return np.asarray(values).astype(kind)


def compile_at_once(backend, graphs, dtype):
    keys = {}
    for _, outputs, feeds in graphs:
        fed = {v: (x.shape, x.dtype) for v, x in feeds.items()}
        lowering = Lowering(fed, np.dtype(dtype), backend.MOST_PARTIAL)
        for node in autodiff.find_topo_sort(outputs):
            if node not in feeds:
                lowering.lower(node)
        keys.update(dict.fromkeys(each.key for each in lowering.instructions))
    kernels.kernels(backend, list(keys))


def numpys(outputs, feeds):
    """The values by numpy; whole numbers and truth values stay so."""
    return autodiff.Executor(outputs).run(feeds)


def wide(feeds):
    """What is fed, as numpy computes with it."""
    return {v: x.astype(np.float64) if x.dtype.kind == "f" else x for v, x in feeds.items()}


def sensitivity(outputs, feeds, wanted):
    """How much each output moves, beside its largest element, for a change of the feeds by 1e-7."""
    numbers, moved = np.random.default_rng(0), []
    for _ in range(2):
        nudged = {
            v: np.asarray(x * (1 + 1e-7 * numbers.choice((-1, 1), x.shape)))
            if x.dtype.kind == "f"
            else x
            for v, x in wide(feeds).items()
        }
        moved.append(numpys(outputs, nudged))
    found = []
    for each in zip(wanted, *moved, strict=True):
        exact, *near = (np.asarray(value, np.float64) for value in each)
        most = max(np.abs(value - exact).max(initial=0) for value in near)
        found.append(most / 1e-7 / (1 + np.abs(exact).max(initial=0)))
    return found


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, AT_ONCE))
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_random_graphs_are_what_numpy_makes_of_them(kind, first):
    (ctx, backend), dtype = DEVICES[kind[0]], kind[1]
    seeds, graphs = range(first, min(first + AT_ONCE, FIRST + COUNT)), []
    for seed in seeds:
        outputs, feeds = graph(seed)
        kinds = kinds_of(seed, feeds, dtype)
        fed = {v: as_kind(x, each) for (v, x), each in zip(feeds.items(), kinds, strict=True)}
        try:
            numpys(outputs, wide(fed))
        except TypeError:  # what numpy refuses, each back end does
            with pytest.raises(TypeError, match="takes numbers, not truth values; hint"):
                autodiff.Executor(outputs, ctx=ctx).run(
                    {v: ndarray.array(x, ctx, x.dtype) for v, x in fed.items()}
                )
            continue
        graphs.append((seed, outputs, fed))
    compile_at_once(backend, graphs, dtype)
    compared = 0
    for seed, outputs, feeds in graphs:
        fed = {v: ndarray.array(x, ctx, x.dtype) for v, x in feeds.items()}
        got = autodiff.Executor(outputs, ctx=ctx).run(fed, True)
        wanted = numpys(outputs, wide(feeds))
        moves = sensitivity(outputs, feeds, wanted)
        for node, found, expected, move in zip(outputs, got, wanted, moves, strict=True):
            expected = np.asarray(expected)
            assert found.shape == expected.shape, (seed, node)
            halves = any(x.dtype == np.float16 for x in feeds.values())
            if move > MOST_SENSITIVE or halves:
                continue
            bound = ROUNDING[dtype] * (10 + move) * (1 + np.abs(expected).max(initial=0))
            said = f"seed {seed} {node}"
            np.testing.assert_allclose(found, expected, rtol=0, atol=bound, err_msg=said)
            compared += 1
    assert compared > len(seeds)
