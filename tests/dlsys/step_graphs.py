"""Random steps of training: graphs that have what the passes look for, gradients and updates."""

import random

import numpy as np
from test_backend_graphs import PAIRS, unary

import dlsys
from dlsys import ndarray, ops
from dlsys.autodiff import find_topo_sort, gradients
from dlsys.backend import cpu, gpu, kernels
from dlsys.step.graph import Graph

#: What keeps a value, or nearly.
NEUTRAL = [
    lambda x: x * 1, lambda x: x + 0, lambda x: x - 0.0, lambda x: x / 1.0,
    lambda x: ops.negate(-x),
    lambda x: ops.exp(x) + 0, lambda x: x * ops.ones_like(x), lambda x: x + ops.zeros_like(x),
    lambda x: ops.abs(x) + ops.zeros_like(ops.tanh(x)), lambda x: x * 0.0,
    lambda x: ops.log(ops.exp(x)), lambda x: ops.stop_gradient(x), lambda x: x * np.ones(1),
    lambda x: ops.broadcast_to(x, x.shape), lambda x: ops.squeeze(ops.expand_dims(x, 0), 0),
    lambda x: ops.reshape(ops.reshape(x, (-1,)), x.shape), lambda x: x * ops.as_node(-0.0) + x,
    lambda x: ops.transpose(ops.transpose(x)),
]  # fmt: skip
#: Numbers at which algebra errs.
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-310, 1e-40, -1e-40]


def more(draw, node):
    """A node made of one, in the ways that the passes care for."""
    way, rank = draw.randrange(8), len(node.shape)
    if way < 3:
        return draw.choice(NEUTRAL)(node)
    if way == 3 and rank:
        once = ops.transpose(node, draw.sample(range(rank), rank))
        return ops.transpose(once, draw.sample(range(rank), rank))
    if way == 4:
        same = draw.choice((ops.tanh, ops.square, ops.negate))
        return same(node) * same(node)
    if way == 5:
        constant = ops.as_node(np.linspace(-1, 1, int(np.prod(node.shape))).reshape(node.shape))
        return node + ops.tanh(constant * 2) * ops.exp(constant)
    if way == 6 and rank == 2:
        other = ops.transpose(ops.tanh(node))
        return draw.choice((ops.matmul(node, other), ops.matmul(other, node, trans_a=False)))
    if way == 7:
        return ops.dropout(node, 0.3, seed=draw.randrange(3))
    return unary(draw, node, node.shape)


def training(seed, special=False):
    """(outputs, updates, feeds) by a seed; with `special`, fed numbers have NaN, -0.0 and more."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    shapes = [tuple(draw.choice((1, 2, 3, 5)) for _ in range(draw.randrange(1, 4)))]
    shapes += [shapes[0], shapes[0][draw.randrange(len(shapes[0])) :]]
    values = [numbers.uniform(-1.5, 1.5, shape) for shape in shapes]
    x = ops.variable("x", shapes[0])
    feeds = {x: values[0]}
    if special:
        for array in values:
            chosen = numbers.random(array.shape) < 0.4
            array[chosen] = numbers.choice(SPECIAL, int(chosen.sum()))
    weights = [dlsys.parameter(f"w{i}", array) for i, array in enumerate(values[1:])]
    nodes = [x, *weights]
    for _ in range(draw.randrange(4, 16)):
        a, b = draw.choice(nodes), draw.choice(nodes)
        try:
            np.broadcast_shapes(a.shape, b.shape)
            fits = draw.random() < 0.4
        except ValueError:
            fits = False
        if fits:
            made = draw.choice(PAIRS)(a, b)
        else:
            made = more(draw, a) if draw.random() < 0.5 else unary(draw, a, a.shape)
        if np.prod(made.shape) <= 2000:
            nodes.append(made)
    loss = ops.sum(nodes[-1] * nodes[-1]) + ops.sum(nodes[-2])
    used = set(find_topo_sort([loss]))
    wrt = [w for w in weights if w in used]
    updates = {w: w for w in weights}
    for w, grad in zip(wrt, gradients(loss, wrt), strict=True):
        updates[w] = draw.choice((w - grad * 0.1, grad, grad * 1 + w))
    if draw.random() < 0.3:
        updates[weights[0]] = x + weights[0] if draw.random() < 0.5 else x
    outputs = [loss, *draw.sample(nodes, 2), *draw.sample(list(updates.values()), 1)]
    needed = set(find_topo_sort([*outputs, *updates.values()]))
    return outputs, updates, {v: array for v, array in feeds.items() if v in needed}


def compile_at_once(cases, ctx):
    """Compiles the kernels of many steps: cases are (outputs, updates, feeds, passes)."""
    keys = {}
    for outputs, updates, feeds, passes in cases:
        kinds = {v: (np.shape(a), np.dtype(np.float32)) for v, a in feeds.items()}
        kinds.update({w: (w.shape, np.dtype(np.float32)) for w in updates})
        graph = Graph(outputs, updates, kinds, ctx)
        for each in passes:
            each(graph)
        for node in graph.nodes:
            graph.facts(node)
        keys.update(dict.fromkeys(each.key for each in graph.lowered()))
    kernels.kernels(gpu if ndarray.is_gpu_ctx(ctx) else cpu, list(keys))


def bits(step, feeds, runs=2):
    """All that some runs return, and what they leave, as bytes."""
    found = []
    with np.errstate(all="ignore"):
        for _ in range(runs):
            found += [np.asarray(v) for v in step(feeds, as_numpy=True)]
    found += [step.get(name) for name in step.state]
    return [(array.shape, array.dtype, array.tobytes()) for array in found]
