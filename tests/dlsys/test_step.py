"""dlsys.compile: values and updates in one program, its state, and what files keep of it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dlsys
from dlsys import autodiff, dtypes, ndarray, ops, optim
from dlsys.autodiff import gradients
from dlsys.ops.base import ShapeError
from dlsys.step import files

CONTEXTS = {"numpy": None, "cpu": ndarray.cpu(0), "gpu": ndarray.gpu(0)}
EVERYWHERE = pytest.mark.parametrize("ctx", CONTEXTS.values(), ids=CONTEXTS)
HERE = Path(__file__).resolve()


def training(ctx, name="w"):
    """A network with dropout under Adam, which has every kind of state, and its feeds."""
    x, labels = ops.variable("x"), ops.variable("labels")
    draw = np.random.default_rng(5)
    weights = [
        dlsys.parameter(name + str(i), draw.normal(size=shape) * 0.3)
        for i, shape in enumerate([(7, 9), (9,), (9, 4)])
    ]
    hidden = ops.dropout(ops.relu(x @ weights[0] + weights[1]), 0.3, seed=11)
    loss = ops.cross_entropy(hidden @ weights[2], labels)
    rate = optim.warm_up(optim.cosine(0.05, 30), 4)
    updates = optim.adam(weights, gradients(loss, weights), rate)
    numbers = np.random.default_rng(6)
    feeds = {x: numbers.normal(size=(12, 7)), labels: numbers.integers(0, 4, 12)}
    return dlsys.compile([loss], updates, ctx), feeds


@EVERYWHERE
def test_new_values_come_from_old_ones_and_take_effect_together(ctx):
    a, b, c = (dlsys.parameter(n, np.arange(3.0) + i) for i, n in enumerate("abc"))
    updates = {a: b, b: ops.transpose(a), c: c + a}  # a and b change places
    step = dlsys.compile([a, c, a + b, updates[c]], updates, ctx)
    old = [step.get(each) for each in (a, b, c)]
    values = step({}, as_numpy=True)
    wanted = [old[0], old[2], old[0] + old[1], old[2] + old[0]]
    for found, expected in zip(values, wanted, strict=True):
        np.testing.assert_array_equal(found, expected)
    for node, expected in zip((a, b, c), (old[1], old[0], wanted[3]), strict=True):
        np.testing.assert_array_equal(step.get(node), expected)


@EVERYWHERE
def test_a_new_value_is_read_by_what_is_computed_from_it_and_the_old_by_the_rest(ctx):
    w, x = dlsys.parameter("w", np.full((2, 2), 3.0)), ops.variable("x")
    new = w * 2 - x
    step = dlsys.compile([new * w, w * 5, new], {w: new}, ctx)
    for _ in range(3):
        old = step.get(w)
        found = step({x: np.ones((2, 2))}, as_numpy=True)
        expected = [(old * 2 - 1) * old, old * 5, old * 2 - 1]
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(step.get(w), expected[2])


@EVERYWHERE
def test_parameters_live_on_the_device_and_can_be_read_and_set(ctx):
    w, frozen = dlsys.parameter("w", [[1.0, 2.0]]), ops.variable("frozen")
    step = dlsys.compile(w * frozen, {w: w + 1.0, frozen: frozen}, ctx)
    with pytest.raises(ValueError, match=r"frozen has no value; hint: step.set\(frozen, array\)"):
        step()
    step.set("frozen", np.array([[3.0, 4.0]]))
    step.set(w, np.array([[5.0, 6.0]]))
    np.testing.assert_array_equal(step(as_numpy=True), [[15, 24]])
    assert list(step.state) == ["w", "frozen"]
    if ctx is not None:
        assert step.state["w"].ctx.device_type == ctx.device_type
    np.testing.assert_array_equal(step.get("w"), [[6, 7]])
    step.get("w")[:] = 0  # a copy
    np.testing.assert_array_equal(step.get(w), [[6, 7]])


@EVERYWHERE
def test_what_a_step_keeps_or_returned_may_be_fed_to_it(ctx):
    """The run overwrites both, but not before it has read them."""
    w, x = dlsys.parameter("w", np.arange(6.0).reshape(2, 3)), ops.variable("x")
    step = dlsys.compile([x * 2 + w, ops.flip(x, 1) + w], {w: w + x}, ctx)
    first = step({x: step.state["w"]})
    values = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(first[0]), values * 3)
    np.testing.assert_array_equal(step.get(w), values * 2)
    for _ in range(2):
        x_now, w_now = np.array(first[1]), step.get(w)
        first = step({x: first[1]})
        np.testing.assert_array_equal(np.asarray(first[0]), x_now * 2 + w_now)
        np.testing.assert_array_equal(np.asarray(first[1]), x_now[:, ::-1] + w_now)
        np.testing.assert_array_equal(step.get(w), w_now + x_now)
    w_now = step.get(w)
    for _ in range(2):
        step({x: step.state["w"]})
    np.testing.assert_array_equal(step.get(w), w_now * 4)


@EVERYWHERE
def test_whole_numbers_count_exactly(ctx):
    count = dlsys.parameter("count", np.array(2**40))
    step = dlsys.compile([count], {count: ops.as_node(count) - np.array(-1)}, ctx)
    for i in range(3):
        assert step(as_numpy=True)[0] == 2**40 + i
    assert step.get(count).dtype == np.int64


@pytest.mark.parametrize("ctx", [ndarray.cpu(0), ndarray.gpu(0)], ids=["cpu", "gpu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_parameters_of_other_dtypes_keep_them(ctx, dtype, tmp_path):
    dtype = dtypes.checked(dtype)
    w, x = ops.variable("w"), ops.variable("x")
    loss = ops.sum(ops.square(w * x))
    updates = optim.adamw([w], gradients(loss, [w]), 0.01)
    step, other = (dlsys.compile(loss, updates, ctx) for _ in range(2))
    step.set(w, ndarray.array(np.linspace(-1, 1, 5), ctx, dtype))
    feeds = {x: ndarray.array(np.ones(5), ctx, dtype)}
    step(feeds)
    step.save(tmp_path / "state")
    other.load(tmp_path / "state")
    for each in (step, other):
        each(feeds)
        assert each.get(w).dtype == dtype
        assert each.get("adamw.w.mean").dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_array_equal(step.get(w), other.get(w))


@EVERYWHERE
def test_feeds_of_other_shapes_share_the_parameters(ctx):
    w, x = dlsys.parameter("w", np.zeros(3)), ops.variable("x")
    step = dlsys.compile(w, {w: w + ops.sum(x, 0)}, ctx)
    for rows in (1, 4, 2, 4):
        step({x: np.ones((rows, 3))})
    np.testing.assert_array_equal(step.get(w), np.full(3, 11.0))


GO_ON = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy, test_step
step, feeds = test_step.training(test_step.CONTEXTS[sys.argv[2]])
step.load(sys.argv[3])
for _ in range(5):
    step(feeds)
numpy.savez(sys.argv[4], **{n: step.get(n) for n in step.state})
"""


@pytest.mark.parametrize("where", CONTEXTS)
def test_training_goes_on_to_the_same_bits_in_another_process(where, tmp_path):
    step, feeds = training(CONTEXTS[where])
    for _ in range(5):
        step(feeds)
    step.save(tmp_path / "state.safetensors")
    for _ in range(5):
        step(feeds)
    arguments = [HERE.parent, where, tmp_path / "state.safetensors", tmp_path / "there.npz"]
    paths = {"PYTHONPATH": str(HERE.parents[2] / "solution/python")}
    environment = {**os.environ, **paths}
    command = [sys.executable, "-c", GO_ON, *map(str, arguments)]
    subprocess.run(command, check=True, env=environment)
    there = np.load(tmp_path / "there.npz")
    assert set(there) == set(step.state) and len(there) == 10
    for name in there:
        np.testing.assert_array_equal(step.get(name), there[name], err_msg=name)


def test_a_step_goes_on_as_one_that_was_never_saved_draws_new_numbers(tmp_path):
    """The numbers of the draws are part of the state: without them, the run would draw run 0's."""
    x = ops.variable("x")
    step = dlsys.compile(ops.bernoulli(x, 0.5, seed=1) * 1.0, {}, None)
    values = [step({x: np.zeros(64)}).copy() for _ in range(2)]
    step.save(tmp_path / "a")
    third = step({x: np.zeros(64)}).copy()
    step.load(tmp_path / "a")
    np.testing.assert_array_equal(step({x: np.zeros(64)}), third)
    assert not any(np.array_equal(third, each) for each in values)


def test_two_steps_of_one_graph_draw_apart_from_each_other():
    x = ops.variable("x")
    drawn = ops.uniform((9,), seed=4) + x
    first, second = (dlsys.compile(drawn, {}, None) for _ in range(2))
    feeds = {x: np.zeros(9)}
    one = [first(feeds).copy() for _ in range(3)]
    np.testing.assert_array_equal(one, [second(feeds).copy() for _ in range(3)])


@EVERYWHERE
def test_after_an_index_out_of_range_no_parameter_has_changed(ctx, tmp_path):
    table, count = dlsys.parameter("table", np.ones((3, 2))), dlsys.parameter("count", np.array(0))
    indices = ops.variable("indices")
    loss = ops.sum(ops.embedding(table, indices) + ops.uniform((2, 2), seed=3))
    updates = optim.sgd([table], gradients(loss, [table]), 0.5)
    step = dlsys.compile(loss, {count: ops.as_node(count) - np.array(-1), **updates}, ctx)
    step({indices: np.array([0, 1])})
    step.save(tmp_path / "before")
    with pytest.raises(IndexError):
        step({indices: np.array([0, 3])})
    step.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    step({indices: np.array([2, 2])})
    np.testing.assert_array_equal(step.get(table), [[0.5] * 2, [0.5] * 2, [0] * 2])


def test_what_can_not_be_compiled_is_told():
    x, w = ops.variable("x"), dlsys.parameter("w", np.zeros(3))
    with pytest.raises(TypeError, match=r"is no variable; hint: updates are \{variable: new"):
        dlsys.compile([x], {w * 2: w})
    with pytest.raises(TypeError, match="outputs and new values are nodes, not 3"):
        dlsys.compile([x], {w: 3})
    with pytest.raises(ValueError, match="two parameters are called w; hint"):
        dlsys.compile([x], {w: w, dlsys.parameter("w", np.zeros(2)): w})
    for ctx in CONTEXTS.values():
        step = dlsys.compile([x], {w: ops.reshape(w, (3, 1))}, ctx)
        with pytest.raises(ValueError, match=r"update of w has shape \(3, 1\), not \(3,\)"):
            step({x: np.zeros(2)})


@EVERYWHERE
def test_what_does_not_fit_is_told(ctx):
    x, w = ops.variable("x", (2, 3)), dlsys.parameter("w", np.zeros(3))
    n = dlsys.parameter("n", np.zeros(3, np.int64))
    step = dlsys.compile(x * w, {w: w, n: n}, ctx)
    with pytest.raises(ValueError, match="feeds have no value for x"):
        step({})
    with pytest.raises(ValueError, match=r"does not read w; hint: parameters are set by step\.set"):
        step({x: np.zeros((2, 3)), w: np.zeros(3)})
    with pytest.raises(ShapeError, match=r"x has shape \(2, 3\), the feed has \(3, 3\)"):
        step({x: np.zeros((3, 3))})
    with pytest.raises(ShapeError, match=r"w has shape \(3,\), the value has \(4,\)"):
        step.set(w, np.zeros(4))
    with pytest.raises(TypeError, match="n is of int64, the value of float64"):
        step.set(n, np.zeros(3))
    for unknown in (x, "v", ops.variable("w")):
        with pytest.raises(KeyError, match="is no parameter of this step; hint: w, n"):
            step.set(unknown, np.zeros(3))
    other = ndarray.cpu(0) if ctx is None or ctx.device_type == 2 else ndarray.gpu(0)
    with pytest.raises(TypeError, match="the feed of x"):
        step({x: ndarray.empty((2, 3), other)})


@EVERYWHERE
def test_what_is_no_array_of_numbers_is_told_with_a_way_out(ctx):
    x = ops.variable("x")
    step, w = dlsys.compile(ops.exp(x), {}, ctx), dlsys.parameter("w", np.zeros(2))
    wrong = [
        [1, None], np.array([1, 2], object), ["a"], "abc", None, {}, [[1], [2, 3]], [1j],
        np.array([1], "datetime64[s]"), np.array([(1, 2)], "i4,i4"),
    ]  # fmt: skip
    for value in wrong:
        for call in (step, step.scan):
            with pytest.raises(TypeError, match=r"feed of x is no array of numbers: .*; hint: num"):
                call({x: value})
    for value in wrong:
        with pytest.raises(TypeError, match=r"(first )?value of w is no array of numbers"):
            dlsys.parameter("w", value)
        with pytest.raises(TypeError, match="the value of w is no array of numbers"):
            dlsys.compile(x, {w: w}, ctx).set(w, value)
    with pytest.raises(TypeError, match="feeds are a list; hint: a dictionary"):
        step([1, 2])
    with pytest.raises(ValueError, match="no value for x; hint: the keys are variables"):
        step({"x": 1})


@EVERYWHERE
@pytest.mark.parametrize("kind", [">f8", ">f4", ">f2", ">i8", ">i4", "<f4", "<i8"])
def test_numbers_in_any_order_of_bytes_are_the_same_numbers(ctx, kind):
    values = np.array([[1, 2, 3]], kind)
    x, w = ops.variable("x"), dlsys.parameter("w", values[0])
    total = ops.sum(x + w)
    step = dlsys.compile(total, {w: w + w}, ctx)
    assert step({x: values[0]}, as_numpy=True) == 12
    assert step.scan({x: values}, as_numpy=True) == [18]
    step.set(w, values[0])
    np.testing.assert_array_equal(step.get(w), [1, 2, 3])
    assert step.get(w).dtype.isnative
    got = autodiff.Executor([x + x], ctx=ctx).run({x: values}, convert_to_numpy_ret_vals=True)
    np.testing.assert_array_equal(got[0], [[2, 4, 6]])


@EVERYWHERE
@pytest.mark.parametrize("limit", ["a", [1], np.ones(2), -1, float("nan")])
def test_a_limit_of_memory_that_is_none_is_told(ctx, limit):
    with pytest.raises((TypeError, ValueError), match=r"memory_limit is .*; hint: "):
        dlsys.compile(ops.variable("x"), {}, ctx, memory_limit=limit)


@pytest.mark.parametrize("ctx", ["cpu", 0, "gpu(0)"])
def test_a_device_that_is_none_is_told(ctx):
    with pytest.raises(TypeError, match=r"ctx is .*; hint: None, ndarray\.cpu\(0\) or"):
        dlsys.compile(ops.variable("x"), {}, ctx)


@EVERYWHERE
def test_a_file_that_is_damaged_or_of_another_step_changes_nothing(ctx, tmp_path):
    step, feeds = training(ctx)
    step(feeds)
    path, bad = tmp_path / "good", tmp_path / "bad"
    step.save(path)
    step(feeds)
    before = {name: step.get(name) for name in step.state}
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-9] ^= 1
    for content in (b"", whole[:20], whole[:-5], bytes(flipped), b"x" * 100):
        bad.write_bytes(content)
        with pytest.raises(files.FileError, match="is damaged"):
            step.load(bad)
    other, _ = training(ctx, "v")
    other.save(bad)
    with pytest.raises(files.FileError, match=r"of another step: it lacks adam\.w0\.mean"):
        step.load(bad)
    with pytest.raises(FileNotFoundError):
        step.load(tmp_path / "none")
    w = dlsys.parameter("w", np.zeros(3))
    dlsys.compile([w], {w: w}, ctx).save(bad)
    v = dlsys.parameter("w", np.zeros(4))
    with pytest.raises(files.FileError, match=r"of another step: w is float\d\d \(4,\), there it"):
        dlsys.compile([v], {v: v}, ctx).load(bad)
    for name, values in before.items():
        np.testing.assert_array_equal(step.get(name), values)


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
    step, feeds = training(None)
    path = tmp_path / "state"
    step.save(path)
    before = path.read_bytes()
    step(feeds)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        step.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_importing_the_package_imports_nothing_else():
    code = "import sys, dlsys; print([m for m in sys.modules if m[:5] in ('dlsys', 'numpy')])"
    paths = {"PYTHONPATH": str(HERE.parents[2] / "solution/python"), "PATH": ""}
    found = subprocess.run([sys.executable, "-c", code], env=paths, capture_output=True, text=True)
    assert found.stdout.strip() == "['dlsys']"
    assert {"compile", "parameter", "optim"} <= set(dir(dlsys))
    with pytest.raises(AttributeError, match="has no attribute 'compiled'"):
        dlsys.compiled  # noqa: B018
