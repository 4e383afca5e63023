"""Checks of indices come first, and nothing is written where one fails."""

import dataclasses

import numpy as np
import pytest

import dlsys
from dlsys import autodiff, dtypes, ndarray, ops
from dlsys.backend import checks
from dlsys.backend.lowering import Lowering
from dlsys.backend.view import new_view

GPU = ndarray.gpu(0)


def net():
    """(loss, updates, x, y) of a linear classifier."""
    x, y = ops.variable("x", (4, 3), np.float32), ops.variable("y", (4,), np.int64)
    weights = dlsys.parameter("w", np.ones((3, 5), np.float32))
    loss = ops.cross_entropy(x @ weights, y)
    return loss, {weights: weights - autodiff.gradients(loss, [weights])[0]}, x, y


def lowered():
    """Instructions of a net of which a check of labels is one of the last."""
    loss, updates, x, y = net()
    (weights,) = updates
    fed = {x: ((4, 3), dtypes.FLOAT32), y: ((4,), dtypes.INT64)}
    fed[weights] = ((3, 5), dtypes.FLOAT32)
    order = [node for node in autodiff.find_topo_sort([loss]) if node not in fed]
    return Lowering(fed).with_nodes(order).instructions


def test_a_check_and_what_it_needs_come_first():
    before = lowered()
    (place,) = (i for i, each in enumerate(before) if checks.is_check(each))
    after, count = checks.first(before)
    assert 0 < count <= place + 1 and checks.is_check(after[count - 1])
    assert sorted(map(id, after)) == sorted(map(id, before))
    rest = [each for each in before if each in after[count:]]
    assert after[count:] == rest
    made = {view.buffer for each in after[:count] for view in each.written}
    needed = {view.buffer for each in after[:count] for view in each.sources}
    assert all(b in made or b.fed is not None or b.values is not None for b in needed)


def test_where_order_counts_nothing_moves():
    """Somebody reads what the check's own input overwrites; or there are no checks."""
    before = lowered()
    (place,) = (i for i, each in enumerate(before) if checks.is_check(each))
    (maker,) = (e for e in before if e.output.buffer is before[place].inputs[0].buffer)
    other = new_view(maker.output.shape, maker.output.dtype)
    reader = dataclasses.replace(maker, output=other, inputs=(maker.output,))
    assert checks.first([reader, *before]) == ([reader, *before], 0)
    without = [each for each in before if not checks.is_check(each)]
    assert checks.first(without) == (without, 0)


def test_labels_of_short_rows_are_checked_first_too():
    """What a check reads of them is not made in the kernel of the rows, which comes late."""
    loss, updates, x, y = net()
    step = dlsys.compile(loss, updates, GPU)
    step({x: np.ones((4, 3), np.float32), y: np.array([0, 1, 2, 3])})
    program = step.run_of().program
    firsts = program.instructions[: program._first]
    assert any(map(checks.is_check, firsts)) and len(firsts) < len(program.instructions) // 2


def test_what_needs_much_stays_where_it_is(monkeypatch):
    monkeypatch.setattr(checks, "_MOST", 1)
    before = lowered()
    assert checks.first(before) == (before, 0)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_label_out_of_range_changes_no_parameter(monkeypatch, is_first):
    """Whether or not the check comes first, in the first run and in recorded ones."""
    if not is_first:
        monkeypatch.setattr(checks, "_MOST", 0)
    loss, updates, x, y = net()
    (weights,) = updates
    step = dlsys.compile(loss, updates, GPU)
    images = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    for labels in ([0, 1, 2, 3], [4, 4, 0, 1], [1, 1, 1, 2]):
        before = step.get(weights)
        with pytest.raises(IndexError, match="an index is out of range"):
            step({x: images, y: np.array([0, 5, 1, -1])})
        np.testing.assert_array_equal(step.get(weights), before)
        step({x: images, y: np.array(labels)})
        assert (step.get(weights) != before).any()


def test_a_memory_limit_holds_where_indices_are_computed(monkeypatch):
    """To check them first, what they are made of would lie there from the beginning."""
    x, table = ops.variable("x", (64, 64), np.float32), ops.variable("t", (64, 3), np.float32)
    made = x @ ops.tanh(x)
    chosen = ops.embedding(table, ops.argmax(made, axis=1))
    outputs = [ops.sum(x @ x @ x), ops.sum(made @ chosen)]
    feeds = {x: np.ones((64, 64), np.float32), table: np.ones((64, 3), np.float32)}

    def peak(limit):
        step = dlsys.compile(outputs, ctx=GPU, memory_limit=limit)
        step(feeds)
        return step.run_of().program.peak

    monkeypatch.setattr(checks, "_MOST", 0)
    limit = peak(1 << 20)
    monkeypatch.undo()
    assert peak(limit) <= limit
