"""step.scan: many steps of one call, to the same bits as so many calls.

SCAN_NETS=200 pytest tests/dlsys/test_step_scan.py
"""

import os

import numpy as np
import pytest
from test_gemm import random_step
from test_step import CONTEXTS, EVERYWHERE

import dlsys
from dlsys import autodiff, ndarray, ops
from dlsys.step import rounds

COUNT = int(os.environ.get("SCAN_NETS", "3"))
GPU = ndarray.gpu(0)
STEPS = 4


def made(seed, ctx, **options):
    """(step, stacked feeds) of a random net under SGD, which returns its loss and more."""
    outputs, values = random_step(seed)
    x, y, *params = values
    loss = outputs[0]
    weights = [dlsys.parameter(p.name, values[p]) for p in params]
    moved = dict(zip(params, weights, strict=True))
    loss = replaced(loss, moved)
    updates = {
        w: w - 0.1 * g for w, g in zip(weights, autodiff.gradients(loss, weights), strict=True)
    }
    step = dlsys.compile([loss, x * 3, x, updates[weights[0]]], updates, ctx, **options)
    random = np.random.default_rng(seed + 1)
    return step, {v: random.normal(size=(STEPS, *values[v].shape)) for v in (x, y)}


def replaced(node, moved):
    """A graph of other variables."""
    found = dict(moved)
    for each in autodiff.find_topo_sort([node]):
        if each not in found and any(i in found for i in each.inputs):
            found[each] = dlsys.step.graph.rewired(each, [found.get(i, i) for i in each.inputs])
    return found[node]


def by_calls(step, stacks, times):
    """What as many calls return, stacked."""
    found = []
    for _ in range(times):
        calls = [step({v: s[i] for v, s in stacks.items()}, as_numpy=True) for i in range(STEPS)]
        found += [[np.array(v) for v in call] for call in calls]
        found = [[v.copy() for v in call] for call in found]
    return [np.stack(each) for each in zip(*found, strict=True)]


def by_scans(step, stacks, times):
    """The same by scans."""
    found = [[np.array(v) for v in step.scan(stacks)] for _ in range(times)]
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def bits(step, values):
    return [v.tobytes() for v in values], [step.get(name).tobytes() for name in step.state]


@pytest.mark.parametrize("where", CONTEXTS)
def test_a_scan_has_the_bits_of_calls(where):
    ctx = CONTEXTS[where]
    for seed in range(COUNT):
        calls, stacks = made(seed, ctx)
        wanted = bits(calls, by_calls(calls, stacks, 3))
        step, stacks = made(seed, ctx)
        assert bits(step, by_scans(step, stacks, 3)) == wanted, seed
        if where == "gpu":
            (run,) = step._runs.values()
            assert run._rounds.count == STEPS, run._rounds.reason
            own = {v: ndarray.array(s, GPU) for v, s in stacks.items()}
            step, _ = made(seed, ctx)
            own = {v: own[w] for v, w in zip(step._fed, own, strict=True)}
            assert bits(step, by_scans(step, own, 3)) == wanted, seed


@pytest.mark.parametrize("options", [{"capture": False}, {"fuse": False}], ids=str)
def test_a_scan_on_a_gpu_has_the_bits_of_calls_in_other_ways(options):
    calls, stacks = made(1, GPU, **options)
    wanted = bits(calls, by_calls(calls, stacks, 2))
    step, stacks = made(1, GPU, **options)
    assert bits(step, by_scans(step, stacks, 2)) == wanted


def counting(ctx, **options):
    """A step that adds up what it is fed, and returns the sum of before and 5 times the feed."""
    w, x = dlsys.parameter("w", np.zeros(3)), ops.variable("x")
    return dlsys.compile([w * 1, x * 5], {w: w + x}, ctx, **options), x


def expected(before, stack):
    """What it returns."""
    sums = before + np.cumsum([np.zeros_like(stack[0]), *stack], 0)
    return sums[:-1], np.asarray(stack) * 5


@EVERYWHERE
def test_other_arrays_and_other_numbers_of_steps_come_and_go(ctx):
    step, x = counting(ctx)
    total, draw = np.zeros(3), np.random.default_rng(4)
    arrays = [draw.integers(0, 9, (n, 3)).astype(float) for n in (4, 4, 4, 4, 2, 4, 1, 1)]
    kept = {}
    for i, array in enumerate(arrays * 2):
        fed = array if ctx is None or i % 3 == 2 else ndarray.array(array, ctx)
        kept[i] = fed  # so that no address comes back
        sums, products = step.scan({x: fed}, as_numpy=True)
        wanted = expected(total, array)
        np.testing.assert_array_equal(sums, wanted[0])
        np.testing.assert_array_equal(products, wanted[1])
        total = total + array.sum(0)
        single = step({x: np.ones(3)}, as_numpy=True)[0]
        np.testing.assert_array_equal(single, total)
        total = total + 1
    for i, array in enumerate(arrays * 2):
        np.testing.assert_array_equal(np.asarray(kept[i]), array)  # nobody wrote to them


@EVERYWHERE
def test_batches_are_rows_of_what_lies_on_the_device(ctx):
    step, x = counting(ctx)
    images = np.arange(24.0).reshape(8, 3)
    own = images if ctx is None else ndarray.array(images, ctx)
    for time in range(3):
        sums, _ = step.scan({x: own.reshape(8, 3)}, as_numpy=True)
        np.testing.assert_array_equal(sums, expected(time * images.sum(0), images)[0])


@EVERYWHERE
def test_what_a_scan_returned_and_what_a_step_keeps_may_be_fed_to_it(ctx):
    w, x = dlsys.parameter("w", np.arange(6.0).reshape(2, 3)), ops.variable("x", (3,))
    step = dlsys.compile([x + 1], {w: w * 1 + x}, ctx)
    (found,) = step.scan({x: step.state["w"]})
    for i in range(4):
        np.testing.assert_array_equal(np.asarray(found), np.arange(6.0).reshape(2, 3) + 1 + i)
        (found,) = step.scan({x: found})
    before = step.get(w)
    step.scan({x: step.state["w"]})
    assert (step.get(w) != before).any()


@EVERYWHERE
def test_a_scan_without_feeds_is_told_how_many(ctx):
    count = dlsys.parameter("count", np.array(0))
    step = dlsys.compile(count, {count: ops.as_node(count) - np.array(-1)}, ctx)
    for begin in (0, 5, 10):
        found = np.asarray(step.scan(count=5))
        np.testing.assert_array_equal(found, begin + np.arange(5))
    x = ops.variable("x")
    other, x = counting(ctx)
    with pytest.raises(ValueError, match="not all feeds have as many rows: x 2, count 3"):
        other.scan({x: np.zeros((2, 3))}, 3)
    for bad in (np.zeros((0, 3)), np.zeros(())):
        with pytest.raises(ValueError, match=r"there is no step to make; hint: step.scan\(count"):
            other.scan({x: bad})
    with pytest.raises(ValueError, match="feeds have no value for x"):
        other.scan()


@EVERYWHERE
def test_a_scan_draws_what_calls_draw_and_stops_at_an_index_out_of_range(ctx, tmp_path):
    def one():
        table, rows = dlsys.parameter("table", np.ones((3, 2))), ops.variable("rows")
        loss = ops.sum(ops.embedding(table, rows) * ops.uniform((2, 2), seed=3))
        updates = {table: table - autodiff.gradients(loss, [table])[0]}
        return dlsys.compile(loss, updates, ctx), rows

    good = np.array([[0, 1], [2, 2], [1, 0]])
    wrong = np.array([[0, 1], [2, 3], [1, 0]])
    (calls, rows), (scans, stacked) = one(), one()
    wanted = [np.array(calls({rows: each})) for each in (*good, *wrong[:1])]
    found = np.array(scans.scan({stacked: good}))
    np.testing.assert_array_equal(found, wanted[:3])
    with pytest.raises(IndexError):
        scans.scan({stacked: wrong})
    for step, name in ((calls, "calls"), (scans, "scans")):
        step.save(tmp_path / name)
    assert (tmp_path / "calls").read_bytes() == (tmp_path / "scans").read_bytes()


def test_explain_says_how_many_steps_a_call_starts_or_why_it_does_not(monkeypatch):
    step, x = counting(GPU)
    for _ in range(2):
        step.scan({x: np.ones((7, 3))})
    (run,) = step._runs.values()
    assert "scan starts 7 steps by one call" in run._captured_in_words()
    monkeypatch.setattr(rounds, "_MOST_LAUNCHES", 20)
    step.scan({x: np.ones((50, 3))})
    assert "one step after the other, more than 20 launches" in run._captured_in_words()
    table, rows = dlsys.parameter("table", np.ones(2)), ops.variable("rows")
    step = dlsys.compile([table, ops.embedding(table, rows)], {table: table}, GPU)
    for _ in range(3):
        found = step.scan({rows: np.array([[0, 1], [1, 0]])}, as_numpy=True)
        np.testing.assert_array_equal(found, np.ones((2, 2, 2)))
    (run,) = step._runs.values()
    reason = "one step after the other, the host waits in each step for checks of indices: Embed"
    assert reason in run._captured_in_words()
