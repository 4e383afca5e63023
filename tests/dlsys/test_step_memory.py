"""A step's memory: the order of instructions, places in the arena, in place, and limits.

MEMORY_GRAPHS=2000 pytest tests/dlsys/test_step_memory.py
"""

import os
import random

import numpy as np
import pytest
import step_graphs

import dlsys
from dlsys import autodiff, dtypes, ndarray, ops, optim
from dlsys.backend import memory, rematerialise, schedule
from dlsys.backend.instructions import Elementwise, Reduce
from dlsys.backend.lives import Life, lives, most_alive
from dlsys.backend.lowering import Lowering
from dlsys.backend.placing import place
from dlsys.backend.program import Program
from dlsys.backend.view import new_view
from dlsys.step import runs
from dlsys.step.graph import Graph, Report
from dlsys.step.passes import PASSES, mask_by_results
from dlsys.step.passes.in_place import update_in_place

COUNT = int(os.environ.get("MEMORY_GRAPHS", "30"))
CPU, GPU = ndarray.cpu(0), ndarray.gpu(0)
FLOAT = dtypes.FLOAT32
BLOCK = 64


def check_memory(instructions, offsets, size):
    """Runs the program on tags instead of numbers: what is read is what was last written there.

    Knows nothing of lives: it finds whoever overwrites what somebody still reads.
    """
    owner = np.full(-(-size // BLOCK), -1)
    tags = {buffer: number for number, buffer in enumerate(offsets)}

    def blocks(buffer):
        start = offsets[buffer]
        assert start % BLOCK == 0 and start + buffer.size <= size
        return owner[start // BLOCK : -(-(start + buffer.size) // BLOCK)]

    written = set()
    for each in instructions:
        reads = {view.buffer for view in each.inputs}
        reads |= {each.output.buffer} if getattr(each, "adds", False) else set()
        for buffer in reads & tags.keys():
            assert buffer in written, "read before it is written"
            assert (blocks(buffer) == tags[buffer]).all(), "overwritten before it is read"
        scratch = getattr(each, "scratch", None)
        if scratch is not None:
            blocks(scratch.buffer)[:] = tags[scratch.buffer]
            for buffer in reads & tags.keys():
                assert (blocks(buffer) == tags[buffer]).all(), "scratch lies on an input"
        output = each.output.buffer
        if output in tags:
            if output in written:  # the other parts of it are there still
                assert (blocks(output) == tags[output]).all(), "a part was overwritten"
            blocks(output)[:] = tags[output]
            written.add(output)


def lowered(seed, ctx=CPU):
    """(instructions, kept buffers) of a random step, and what the passes would get."""
    outputs, updates, feeds = step_graphs.training(seed)
    kinds = {v: (a.shape, FLOAT) for v, a in feeds.items()}
    kinds.update({w: (w.shape, FLOAT) for w in updates})
    graph = Graph(outputs, updates, kinds, ctx)
    lowering = Lowering(kinds, FLOAT, 1024 if ctx is GPU else 0)
    for node in graph.nodes:
        if node not in kinds:
            lowering.lower(node)
    kept = {getattr(lowering.values[node], "buffer", None) for node in graph.outputs}
    return lowering.instructions, kept - {None}


@pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])
def test_every_order_and_every_place_is_right(ctx):
    for seed in range(4 * COUNT):
        instructions, kept = lowered(seed, ctx)
        for figure, name, ordered in schedule.orders(instructions, kept):
            assert sorted(map(id, ordered)) == sorted(map(id, instructions)), (seed, name)
            found = lives(ordered, kept)
            offsets, size = place(found)
            check_memory(ordered, offsets, size)
            bound, _ = most_alive(found)
            assert figure == bound <= size
            apart = lives(ordered, kept, shares=False)
            assert most_alive(apart)[0] >= bound


def test_the_best_order_is_never_worse_than_the_one_as_written():
    better = 0
    for seed in range(4 * COUNT):
        instructions, kept = lowered(seed)
        figures = {name: figure for figure, name, _ in schedule.orders(instructions, kept)}
        assert min(figures.values()) <= figures["as written"]
        better += min(figures.values()) < figures["as written"]
    assert better >= COUNT // 10


def test_values_computed_again_need_no_more_than_the_limit():
    reached = 0
    for seed in range(2 * COUNT):
        instructions, kept = lowered(seed)
        _, size = place(lives(instructions, kept))
        for part in (0.9, 0.7, 0.5):
            limit = int(size * part)
            try:
                found, names = rematerialise.fit(instructions, kept, limit)
            except rematerialise.MemoryLimitError as error:
                assert limit < error.least <= size
                continue
            offsets, needed = place(lives(found, kept))
            check_memory(found, offsets, needed)
            assert needed <= limit and len(found) == len(instructions) + len(names)
            reached += bool(names)
    assert reached >= COUNT // 10


class Apart:
    """A planner that changes no order and gives every buffer memory of its own."""

    def __init__(self, limit=None, spreads=False):
        pass

    def order(self, instructions, kept):
        return instructions

    def place(self, instructions, apart):
        offsets, end = {}, 0
        for life in lives(instructions, apart, shares=False):
            offsets[life.buffers[0]] = end
            end += life.size
        return offsets, end


@pytest.mark.parametrize("ctx, count", [(CPU, COUNT), (GPU, 4)], ids=["cpu", "gpu"])
def test_results_are_the_same_bits_as_with_memory_of_its_own_for_every_buffer(
    ctx, count, monkeypatch
):
    seeds = range(3000, 3000 + count)
    made = {seed: step_graphs.training(seed) for seed in seeds}
    step_graphs.compile_at_once([(*case, ()) for case in made.values()], ctx)
    fitted = 0
    for outputs, updates, feeds in made.values():
        with monkeypatch.context() as changed:
            changed.setattr(runs, "Planner", Apart)
            changed.setattr(runs, "update_in_place", lambda found, kept, report: found)
            step = dlsys.compile(outputs, updates, ctx, passes=(), fuse=False)
            wanted = step_graphs.bits(step, feeds)
        step = dlsys.compile(outputs, updates, ctx, passes=(), fuse=False)
        assert step_graphs.bits(step, feeds) == wanted
        (run,) = step._runs.values()
        limit = run.program.peak * 3 // 4
        try:
            limited = dlsys.compile(
                outputs, updates, ctx, passes=(), memory_limit=limit, fuse=False
            )
            assert step_graphs.bits(limited, feeds) == wanted
            (run,) = limited._runs.values()
            assert run.program.peak <= limit
            fitted += 1
        except rematerialise.MemoryLimitError as error:
            assert error.least > limit
    # On a GPU the room for parts of sums, which no order makes less, is most of it.
    assert fitted or ndarray.is_gpu_ctx(ctx)


def mlp(layers, rows=32, width=16, **options):
    """A network of many layers under SGD, and its feeds."""
    x, labels = ops.variable("x", (rows, width)), ops.variable("labels", (rows,))
    draw = np.random.default_rng(0)
    weights, h = [], x
    for i in range(layers):
        w = dlsys.parameter(f"w{i}", draw.normal(size=(width, width)) * (2 / width) ** 0.5)
        weights += [w, dlsys.parameter(f"b{i}", np.zeros(width))]
        h = ops.relu(h @ w + weights[-1])
    loss = ops.cross_entropy(h, labels)
    updates = optim.sgd(weights, autodiff.gradients(loss, weights), 0.01)
    feeds = {x: draw.normal(size=(rows, width)), labels: draw.integers(0, width, rows)}
    return dlsys.compile([loss], updates, CPU, fuse=False, **options), feeds


def run_once(made):
    step, feeds = made
    return step(feeds)


def test_fifty_layers_train_in_half_of_the_memory_to_the_same_bits():
    """A layer keeps x @ w + b and its relu, of 2 KiB each, where no pass saves one of them."""
    others = [each for each in PASSES if each is not mask_by_results]
    step, feeds = mlp(50, passes=others)
    wanted = step_graphs.bits(step, feeds)
    (run,) = step._runs.values()
    layer = 2 * 32 * 16 * 4
    assert run.program.peak == run._planner.bound
    assert 50 * layer < run.program.peak < 52 * layer
    limit = 28 * layer
    small, feeds = mlp(50, passes=others, memory_limit=limit)
    assert step_graphs.bits(small, feeds) == wanted
    (run,) = small._runs.values()
    assert run.program.peak <= limit and 40 <= len(run._planner.again) <= 50
    masked, feeds = mlp(50)
    assert step_graphs.bits(masked, feeds) == wanted
    (run,) = masked._runs.values()
    assert 50 * layer < 2 * run.program.peak < 54 * layer


def test_a_limit_that_is_too_low_is_told_with_the_least_that_can_be_reached():
    with pytest.raises(ValueError, match=r"limit is 1000 bytes; the least that was") as caught:
        run_once(mlp(12, memory_limit=1000))
    least = caught.value.least
    step, feeds = mlp(12)
    fitting, same_feeds = mlp(12, memory_limit=least)
    assert step_graphs.bits(fitting, same_feeds) == step_graphs.bits(step, feeds)
    with pytest.raises(rematerialise.MemoryLimitError):
        run_once(mlp(12, memory_limit=least - 1))


def test_a_ladder_of_diamonds_needs_two_values():
    x = ops.variable("x")
    y = x * 2
    for _ in range(50):
        y = ops.tanh(y) * ops.exp(y)
    step = dlsys.compile(ops.sum(y), {}, CPU, fuse=False)
    step({x: np.zeros(1024)})
    (run,) = step._runs.values()
    assert run.program.peak == run._planner.bound == 2 * 4096
    assert run._planner._fast == 3 * 4096


def test_a_sum_that_is_nested_to_the_right_is_computed_from_its_end():
    x = ops.variable("x")
    total = ops.tanh(x * 50)
    for i in range(49):
        total = ops.tanh(x * i) + total
    step = dlsys.compile(ops.sum(total), {}, CPU, fuse=False)
    step({x: np.zeros(1024)})
    (run,) = step._runs.values()
    assert run._planner._figures["as written"] == 50 * 4096
    assert run.program.peak == 2 * 4096


def test_places_fill_gaps_that_the_fast_plan_leaves():
    """Two small lives around a large one: the fast plan grows the arena for it."""
    views = {name: new_view((count,), FLOAT) for name, count in
             {"a": 256, "b": 16, "c": 272, "end": 1}.items()}  # fmt: skip
    a, b, c, end = views.values()
    code = "p0"
    steps = [
        Elementwise(a, (), FLOAT, code, (1.0,)), Elementwise(b, (), FLOAT, code, (1.0,)),
        Reduce(end, (a,), "sum", "x0", FLOAT, (256,), (0,)),
        Elementwise(c, (), FLOAT, code, (1.0,)),
        Reduce(end, (c,), "sum", "x0", FLOAT, (272,), (0,)),
        Reduce(end, (b,), "sum", "x0", FLOAT, (16,), (0,)),
    ]  # fmt: skip
    kept = {end.buffer}
    found = lives(steps, kept)
    offsets, size = place(found)
    check_memory(steps, offsets, size)
    assert size == most_alive(found)[0] == 1088 + 64
    assert memory.plan(steps, kept)[1] > size


def test_lives_are_placed_without_overlap_whatever_they_are():
    draw = random.Random(4)
    for _ in range(60):
        found = []
        for _ in range(draw.randrange(1, 60)):
            first = draw.randrange(40)
            view = new_view((draw.choice((1, 16, 100, 1000, 5000)),), FLOAT)
            last = first + draw.randrange(10)
            found.append(Life([view.buffer], memory.rounded(view.buffer.size), first, last))
        offsets, size = place(found)
        bound, _ = most_alive(found)
        assert bound <= size <= sum(life.size for life in found)
        for i, one in enumerate(found):
            for other in found[:i]:
                if one.first <= other.last and other.first <= one.last:
                    a, b = offsets[one.buffers[0]], offsets[other.buffers[0]]
                    assert a + one.size <= b or b + other.size <= a


def in_place(updates, outputs=(), kinds=None):
    """The report of the pass, for parameters of shape (3, 3)."""
    kinds = {v: ((3, 3), FLOAT) for v in {**dict.fromkeys(updates), **(kinds or {})}}
    found, report = [], Report("in place")
    nodes = [*outputs, *updates.values()]

    def watched(instructions, kept):
        found.append(len(instructions))
        instructions = update_in_place(instructions, kept, report)
        found.append(len(instructions))
        return instructions

    Program(autodiff.find_topo_sort(nodes), list(outputs), kinds, CPU, updates, [watched])
    assert found[0] - found[1] == len(report.changed)
    return report


def test_updates_go_in_place_where_it_is_safe():
    w, v, x = ops.variable("w"), ops.variable("v"), ops.variable("x")
    feeds = {x: None}
    assert in_place({w: w * 2}).changed == ["w"]
    assert in_place({w: w * 2 + x}, [ops.sum(w * x)], feeds).changed == ["w"]
    moved = v * 0.9 + x
    assert in_place({v: moved, w: w + moved}, (), feeds).changed == ["v", "w"]
    assert in_place({w: w @ x}, (), feeds).changed == []  # elements need others than their own
    assert in_place({w: (w @ x) * 2}, (), feeds).changed == ["w"]
    assert in_place({w: w + ops.transpose(w)}).changed == []
    assert in_place({w: w}).changed == []
    for updates, outputs, reason in [
        ({w: w @ x}, (), "needs others of the old elements"),
        ({w: x}, (), "is a constant, was fed"),
        ({w: w * 2 + x}, [w * 2 + x], None),
        ({w: ops.where(x > 0, 1, 0) > x}, (), "another dtype"),
    ]:
        found = in_place(updates, outputs, feeds)
        assert reason is None or reason in " ".join(found.left), found.left
    new = w * 2 + x
    assert "is an output too" in " ".join(in_place({w: new}, [new], feeds).left)
    late = in_place({w: new}, [ops.sum(new * w)], feeds)
    assert "the old value is read when the new one is there" in late.left
    both = in_place({w: new, v: new}, (), feeds)
    assert both.changed == ["w"] and len(both.left) == 1


def test_explain_says_how_memory_was_planned(capsys):
    step, feeds = mlp(4, memory_limit=14000)
    step.explain(feeds)
    said = capsys.readouterr().out
    (run,) = step._runs.values()
    assert f"memory: {run.program.peak} bytes; lower bound for this order: " in said
    assert "most bytes alive at once: " in said and "greedy with look-ahead " in said
    assert "parameters updated in place: 8: w0, b0" in said
    assert "memory limit: 14000 bytes; computed again: " in said


def test_a_limit_holds_where_kernels_are_fused():
    x = ops.variable("x")
    total = ops.tanh(x * 50)
    for i in range(49):
        total = ops.tanh(x * i) + total
    values = np.linspace(-1, 1, 1024)
    wanted = dlsys.compile(ops.sum(total), {}, CPU)({x: values}, as_numpy=True)
    step = dlsys.compile(ops.sum(total), {}, CPU, memory_limit=2 * 4096)
    np.testing.assert_allclose(step({x: values}, as_numpy=True), wanted, rtol=1e-5)
    (run,) = step._runs.values()
    assert run.program.peak <= 2 * 4096
