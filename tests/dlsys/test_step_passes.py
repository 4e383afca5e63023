"""The passes of a step: what each does, and that none changes a bit.

STEP_GRAPHS=2000 pytest tests/dlsys/test_step_passes.py
"""

import os
import random

import numpy as np
import pytest
import step_graphs
from test_ops import OPS

import dlsys
from dlsys import ndarray, ops
from dlsys.autodiff import find_topo_sort, gradients
from dlsys.backend.lowering import Lowering
from dlsys.dtypes import checked
from dlsys.step import passes
from dlsys.step.graph import Graph
from dlsys.step.passes import dead

COUNT = int(os.environ.get("STEP_GRAPHS", "36"))
AT_ONCE = 12
CPU, GPU = ndarray.cpu(0), ndarray.gpu(0)
KINDS = [
    passes.simplify, passes.into_products, passes.fold_constants, passes.merge_equal,
    passes.mask_by_results, passes.drop_dead,
]  # fmt: skip


def orders(seed):
    """Each pass alone, all together, and all in two random orders, twice each."""
    draw = random.Random(seed)
    twice = [draw.sample(KINDS * 2, 2 * len(KINDS)) for _ in range(2)]
    return [(), *((each,) for each in KINDS), passes.PASSES, *twice]


def check_bits(seeds, ctx, special):
    made = {seed: step_graphs.training(seed, special) for seed in seeds}
    if ctx is not None:
        cases = [(*made[seed], order) for seed in seeds for order in orders(seed)]
        step_graphs.compile_at_once(cases, ctx)
    for seed in seeds:
        outputs, updates, feeds = made[seed]
        first, *others = orders(seed)
        wanted = step_graphs.bits(
            dlsys.compile(outputs, updates, ctx, passes=first, fuse=False), feeds
        )
        for order in others:
            step = dlsys.compile(outputs, updates, ctx, passes=order, fuse=False)
            names = [each.__name__ for each in order]
            assert step_graphs.bits(step, feeds) == wanted, (seed, special, names)


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
def test_no_pass_changes_a_bit_on_the_cpu(first, special):
    check_bits(range(first, min(first + AT_ONCE, COUNT)), CPU, special)


@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
def test_no_pass_changes_a_bit_on_numpy(special):
    check_bits(range(1000, 1000 + 2 * COUNT), None, special)


def test_no_pass_changes_a_bit_on_the_gpu():
    check_bits(range(2000, 2004), GPU, True)


def after(apply, outputs, kinds, ctx=CPU, updates=None):
    """(names of the ops that are left, inputs first; what the pass said)."""
    graph = Graph(outputs, updates or {}, kinds, ctx)
    report = apply(graph)
    return [type(node.op).__name__ for node in graph.nodes], str(report)


FLOAT = np.dtype(np.float32)
X = ops.variable("x")
MATRIX = {X: ((2, 3), FLOAT)}


@pytest.mark.parametrize(
    "make, left",
    [
        (lambda x: x * 1 / 1.0 - 0.0, []),
        (lambda x: ops.negate(-x), []),
        (lambda x: ops.negate(ops.negate(-x)), ["NegateOp"]),
        (lambda x: ops.square(x) + 0, ["SquareOp"]),
        (lambda x: x + -0.0, []),
        (lambda x: x * ops.ones_like(x), []),
        (lambda x: ops.transpose(ops.transpose(x)), []),
        (lambda x: ops.transpose(ops.transpose(ops.transpose(x))), ["TransposeOp"]),
        (lambda x: ops.reshape(ops.flatten(ops.expand_dims(x, 0)), (3, 2)), ["ReshapeOp"]),
        (lambda x: ops.reshape(ops.flatten(x), (2, 3)), []),
        (lambda x: ops.broadcast_to(x, (2, 3)), []),
        # What must stay.
        (lambda x: x + 0, ["AddByConstOp"]),
        (lambda x: x + ops.zeros_like(x), ["ZerosLikeOp", "AddOp"]),
        (lambda x: x * 0, ["MulByConstOp"]),
        (lambda x: ops.log(ops.exp(x)), ["ExpOp", "LogOp"]),
        (lambda x: ops.exp(ops.log(x)), ["LogOp", "ExpOp"]),
        (lambda x: x * np.ones((2, 2, 3)), ["ConstantOp", "MulOp"]),
        (lambda x: x - x, ["SubtractOp"]),
        (lambda x: ops.stop_gradient(x), ["StopGradientOp"]),
    ],
)
@pytest.mark.parametrize("ctx", [CPU, None], ids=["cpu", "numpy"])
def test_algebra_keeps_bits_and_removes_the_rest(make, left, ctx):
    kinds = MATRIX if ctx else {X: ((2, 3), np.dtype(np.float64))}
    found, _ = after(passes.simplify, [make(X)], kinds, ctx)
    assert found == ["PlaceholderOp", *left]


def test_a_factor_of_one_that_makes_another_dtype_stays():
    found, said = after(passes.simplify, [X * 1], {X: ((3,), np.dtype(np.int64))})
    assert found == ["PlaceholderOp", "MulByConstOp"]
    assert "left 1, it changes shape, dtype or place: (x*1)" in said


def test_equal_nodes_merge_unless_their_attributes_differ():
    pairs = [
        (ops.tanh(X), ops.tanh(X), 1),
        (ops.sum(X, 0), ops.sum(X, 1), 2),
        (ops.sum(X, 0), ops.sum(X, 0), 1),
        (X[0:1], X[0:1], 1),
        (X[0:1], X[1:2], 2),
        (X * 0.0, X * -0.0, 2),
        (X * 1, X * 1.0, 2),
        (X * float("nan"), X * float("nan"), 1),
        (X + np.ones(3), X + np.ones(3), 2),  # the constant and the sum
        (X + np.ones(3), X + np.ones(3, np.int64), 4),
        (ops.matmul(X, X, trans_b=True), ops.matmul(X, X, trans_a=True), 2),
        (ops.uniform((2, 3), seed=1) + X, ops.uniform((2, 3), seed=1) + X, 4),
        (ops.stop_gradient(X), ops.stop_gradient(X), 2),
        (ops.checkpoint(ops.tanh(X)), ops.checkpoint(ops.tanh(X)), 2),
        (X + X * 2, X * 2 + X, 3),
    ]
    for one, other, count in pairs:
        found, _ = after(passes.merge_equal, [one, other], MATRIX)
        assert len(found) - 1 == count, (one.name, other.name)


def test_constants_are_computed_before_the_run_by_the_same_kernels():
    a = ops.as_node(np.arange(4.0) - 1.5)
    y = X + ops.exp(ops.tanh(a)) * ops.ones_like(a)
    found, said = after(passes.fold_constants, [y], {X: ((4,), FLOAT)})
    assert found == ["PlaceholderOp", "KnownOp", "AddOp"]
    assert said.startswith("constants folded: 1: ")
    large = ops.tanh(ops.as_node(np.zeros(1 << 19)))
    found, said = after(passes.fold_constants, [X + large], {X: ((), FLOAT)})
    assert "KnownOp" not in found and "left 1, larger than 1048576 bytes" in said
    drawn = ops.bernoulli(ops.as_node(np.ones(3)), 0.5, seed=1)
    found, said = after(passes.fold_constants, [X + drawn], {X: ((), FLOAT)})
    assert "KnownOp" not in found and "left 1, random draws and stop points" in said


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_folded_number_is_as_strong_as_the_one_that_was_computed(dtype):
    """exp(2) is a float32 in memory, which widens a half; 2 would not."""
    x = ops.variable("x")
    y = x * ops.exp(ops.as_node(2.0))
    feeds = {x: ndarray.array(np.ones(3), CPU, checked(dtype))}
    found = [dlsys.compile(y, {}, CPU, passes=p, fuse=False)(feeds) for p in ((), passes.PASSES)]
    assert found[0].dtype == found[1].dtype == np.float32
    assert found[0].asnumpy().tobytes() == found[1].asnumpy().tobytes()


def test_what_lends_its_shape_alone_is_not_computed():
    w = ops.variable("w")
    kinds = {**MATRIX, w: ((3,), FLOAT)}
    y = ops.tanh(ops.exp(w)) * X
    (grad,) = gradients(ops.sum(ops.reshape(y, (6,))), [w])
    before, _ = after(lambda graph: None, [grad], kinds)
    found, said = after(passes.drop_dead, [grad], kinds)
    assert before.count("MulOp") > found.count("MulOp") and "LikeOp" in found
    assert "dead nodes dropped" in said
    both, said = after(passes.drop_dead, [grad, y], kinds)
    assert both.count("MulOp") == before.count("MulOp")
    assert "read by others, not for their shape alone" in said


def test_shapes_are_all_that_those_inputs_lend():
    """What the pass believes of each op: NaN in those inputs reaches no value."""
    seen = set()
    for op in {type(op): op for op in OPS.values()}.values():
        for sample in getattr(op, "samples", ()):
            attributes = sample[-1] if isinstance(sample[-1], dict) else {}
            shapes = sample[: len(sample) - bool(attributes)]
            if not all(isinstance(each, tuple) for each in shapes) or not shapes:
                continue
            nodes = [ops.variable(f"v{i}", shape) for i, shape in enumerate(shapes)]
            made = op(*nodes, **attributes)
            lending = list(dead._lending(made))
            if lending:
                seen.add(type(op))
                step = dlsys.compile(made, {}, None, passes=())
                feeds = {
                    n: np.full(n.shape, float(1 - (i in lending))) for i, n in enumerate(nodes)
                }
                plain = step(feeds)
                with_nan = {n: v + np.nan if i in lending else v
                            for i, (n, v) in enumerate(feeds.items())}  # fmt: skip
                assert step(with_nan).tobytes() == plain.tobytes(), op
                lowering = Lowering({n: (n.shape, FLOAT) for n in nodes}, FLOAT)
                lowering.lower(made)
                read = {view.buffer for each in lowering.instructions for view in each.inputs}
                assert not read & {lowering.values[nodes[i]].buffer for i in lending}, op
    assert seen >= {each for each in dead._SHAPES if each.__module__ != "dlsys.ops.random"} - {
        type(None)
    }


def test_products_read_what_was_transposed():
    w = ops.variable("w")
    kinds = {**MATRIX, w: ((4, 3), FLOAT)}
    found, _ = after(passes.into_products, [X @ w.T], kinds)
    assert found == ["PlaceholderOp", "PlaceholderOp", "ProductOp"]
    found, said = after(passes.into_products, [X @ w.T], kinds, None)
    assert "TransposeOp" in found and "left 1, on numpy other bits may come of it" in said
    y = ops.transpose(X, (1, 0)) @ X
    grads = gradients(ops.sum(y * y), [X])
    found, _ = after(passes.into_products, grads, MATRIX)
    assert found.count("TransposeOp") == 2  # that of the gradient, and one that lends its shape


def test_the_nodes_of_the_user_stay_as_they_are():
    outputs, updates, feeds = step_graphs.training(7)
    nodes = find_topo_sort([*outputs, *updates.values()])
    before = [(node.op, list(map(id, node.inputs)), node.name, repr(getattr(node, "attributes", 0)))
              for node in nodes]  # fmt: skip
    dlsys.compile(outputs, updates, None)(feeds)
    again = find_topo_sort([*outputs, *updates.values()])
    assert list(map(id, nodes)) == list(map(id, again))
    assert before == [(node.op, list(map(id, node.inputs)), node.name,
                       repr(getattr(node, "attributes", 0))) for node in again]  # fmt: skip


def test_explain_says_what_was_done_and_why_not_more(capsys):
    x, w = ops.variable("x"), dlsys.parameter("w", np.ones((3, 2)))
    h = ops.tanh(x @ w) * 1 + ops.tanh(x @ w) + ops.dropout(x, 0.5, seed=1) @ w + 0
    loss = ops.sum(h)
    step = dlsys.compile([loss], {w: w - gradients(loss, [w])[0] * 0.1}, CPU)
    with pytest.raises(ValueError, match=r"nothing has run yet; hint: step.explain\(feeds\)"):
        step.explain()
    step.explain({x: np.ones((4, 3))})
    said = capsys.readouterr().out
    assert "algebra: " in said and "left 1, x + 0, where x may be -0.0: " in said
    assert "equal nodes merged: " in said and "random draws: Bernoulli(" in said
    step({x: np.ones((4, 3))})
    step.explain()
    assert capsys.readouterr().out == said


def masked(loss_of):
    """(how many gradients of relu read a result of relu, what the pass said), of x * w."""
    x, w = ops.variable("x"), ops.variable("w")
    outputs = loss_of(x * w)
    outputs = [*outputs, *gradients(outputs[0], [w])]
    graph = Graph(outputs, {}, {x: ((2, 3), FLOAT), w: ((2, 3), FLOAT)}, CPU)
    report = str(passes.mask_by_results(graph))
    gradient_nodes = [n for n in graph.nodes if type(n.op).__name__ == "ReluGradientOp"]
    assert gradient_nodes
    return sum(type(n.inputs[0].op).__name__ == "ReluOp" for n in gradient_nodes), report


def test_a_gradient_of_relu_is_masked_by_the_result_where_only_relu_reads_the_rest():
    assert masked(lambda a: [ops.sum(ops.square(ops.relu(a)))])[0] == 1
    assert masked(lambda a: [ops.sum(ops.relu(ops.relu(a)))])[0] == 2
    result = masked(lambda a: [ops.sum(ops.relu(a)), a])
    other_reader = masked(lambda a: [ops.sum(ops.relu(a) * ops.exp(a))])
    for count, said in (result, other_reader):
        assert count == 0 and "others read what relu reads" in said
