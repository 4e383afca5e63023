"""What a back end does beside the ops: dtypes, random numbers, threads, memory, bad input."""

import itertools
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from test_ops import OPS

import dlsys
from dlsys import autodiff, dtypes, ndarray, ops
from dlsys.autodiff import Executor
from dlsys.backend import cpu, gpu, kernels, memory, program
from dlsys.backend.view import collapsed, dense_strides, new_view
from dlsys.ops import base
from dlsys.ops import elementwise as base_ops

CPU, GPU = ndarray.cpu(0), ndarray.gpu(0)
DEVICES = pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])


@pytest.fixture
def threads():
    """Sets the number of threads, until the test ends."""
    before = program.default_threads()
    yield program.set_threads
    program.set_threads(before)


def value_of(node, feeds, ctx=CPU):
    return Executor([node], ctx=ctx).run(feeds, True)[0]


@pytest.mark.parametrize("dtype", sorted(each.name for each in dtypes.C_NAMES))
@DEVICES
def test_arrays_of_every_dtype_go_there_and_back(ctx, dtype):
    dtype = dtypes.checked(dtype)
    for shape in ((), (0,), (3,), (5, 7)):
        values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        array = ndarray.array(values, ctx, dtype)
        assert array.dtype == dtype
        for back in (array, array.copyto(CPU), array.copyto(GPU)):
            np.testing.assert_array_equal(back.asnumpy(), values)
            assert back.asnumpy().dtype == dtype


@pytest.mark.parametrize("pair", list(itertools.product(dtypes.C_NAMES, repeat=2)), ids=str)
def test_two_dtypes_make_what_numpy_makes_of_them(pair):
    found = dtypes.promoted(pair)
    like = {dtypes.BFLOAT16: dtypes.FLOAT16}
    if set(pair) == {dtypes.BFLOAT16, dtypes.FLOAT16}:
        assert found == dtypes.FLOAT32
    elif dtypes.BFLOAT16 in pair:
        numpys = np.result_type(*(like.get(each, each) for each in pair))
        assert found == (dtypes.BFLOAT16 if numpys == np.float16 else numpys)
    else:
        assert found == np.result_type(*pair)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@DEVICES
def test_halves_are_rounded_as_their_libraries_round(ctx, half):
    """All bit patterns go through a kernel, and numbers between them are rounded."""
    dtype = dtypes.checked(half)
    x = ops.variable("x")
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    same = value_of(x * 1, {x: ndarray.array(every, ctx, dtype)}, ctx)
    np.testing.assert_array_equal(same.astype(np.float32), every.astype(np.float32))
    between = np.random.default_rng(0).normal(0, 100, 5000).astype(np.float32)
    fed = ndarray.array(between, ctx)
    zero = ndarray.array(np.zeros(1), ctx, dtype)
    y = ops.variable("y")
    wide = value_of(x + y, {x: fed, y: zero}, ctx)  # a half and a float32 make a float32
    assert wide.dtype == np.float32
    halved = value_of(x * 1, {x: ndarray.array(between, ctx, dtype)}, ctx)
    np.testing.assert_array_equal(halved, between.astype(dtype))


@DEVICES
def test_whole_numbers_stay_whole(ctx):
    x, y = ops.variable("x"), ops.variable("y")
    a, b = np.array([[1, -2], [3, 4]]), np.array([[5, 6], [-7, 8]])
    feeds = {x: ndarray.array(a, ctx, np.int64), y: ndarray.array(b, ctx, np.int32)}
    nodes = [x - y, x @ y, ops.sum(x, 0), ops.max(y), x < y, -x, ops.maximum(x, y)]
    got = Executor(nodes, ctx=ctx).run(feeds, True)
    wanted = [a - b, a @ b, a.sum(0), b.max(), a < b, -a, np.maximum(a, b)]
    for found, expected in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype.kind in "ib"


@DEVICES
def test_one_seed_gives_the_same_numbers_on_every_back_end(ctx):
    like = ops.variable("like")
    made = {
        "uniform": lambda: ops.uniform((37, 11), seed=5, low=-1.0, high=3.0),
        "normal": lambda: ops.normal((1001,), seed=2**64 - 3, mean=1.0, deviation=2.0),
        "bernoulli": lambda: ops.bernoulli(like, 0.3, seed=9),
    }
    feeds = {like: np.zeros((17, 9), np.float32)}
    for make in made.values():
        here, there = make(), make()
        needed = {n: v for n, v in feeds.items() if n in autodiff.find_topo_sort([here])}
        on_numpy, on_device = Executor([here]), Executor([there], ctx=ctx)
        draws = []
        for _ in range(3):
            (wanted,), (got,) = on_numpy.run(needed), on_device.run(needed, True)
            np.testing.assert_allclose(got, wanted, atol=2e-5)
            draws.append(got)
        assert not np.array_equal(draws[0], draws[1])


def test_the_number_of_threads_changes_no_reduction(threads):
    x = ops.variable("x")
    values = np.random.default_rng(3).normal(size=(700, 333)).astype(np.float32)
    nodes = [ops.sum(x), ops.sum(x, 0), ops.sum(x, 1), ops.variance(x, 0), ops.softmax(x, 0)]
    executor, found = Executor(nodes, ctx=CPU), []
    for count in (1, 2, 3, 7):
        threads(count)
        found.append(executor.run({x: values}, True))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="0 threads; hint: 1 or more"):
        threads(0)


@DEVICES
def test_a_run_from_another_array_sees_it(ctx):
    x = ops.variable("x")
    executor = Executor([ops.exp(x), x], ctx=ctx)
    first, second = (ndarray.array(np.full(4, number), ctx) for number in (0.0, 1.0))
    assert executor.run({x: first}, True)[0][0] == 1
    assert executor.run({x: second}, True)[0][0] == pytest.approx(np.e)
    first[:] = np.full(4, 1.0, np.float32)
    assert executor.run({x: first}, True)[0][0] == pytest.approx(np.e)
    assert executor.run({x: np.zeros((2, 3))}, True)[0].shape == (2, 3)
    assert executor.run({x: first}, True)[1].shape == (4,)


def test_no_two_buffers_that_live_at_once_overlap():
    draw = random.Random(1)
    for _ in range(60):
        views, instructions = [], []
        for _ in range(draw.randrange(1, 40)):
            inputs = tuple(draw.sample(views, min(len(views), draw.randrange(3))))
            output = new_view((draw.choice((0, 1, 5, 64, 1000)),), dtypes.FLOAT32)
            views.append(output)
            instructions.append(_Instruction(output, inputs))
        apart = {view.buffer for view in draw.sample(views, len(views) // 4)}
        offsets, size = memory.plan(instructions, apart)
        lives = {}
        for position, each in enumerate(instructions):
            for view in each.operands:
                lives.setdefault(view.buffer, [position, position])[1] = position
        assert offsets.keys() == lives.keys() - apart
        for one, other in itertools.combinations(offsets, 2):
            together = lives[one][0] <= lives[other][1] and lives[other][0] <= lives[one][1]
            ends = offsets[one] + one.size, offsets[other] + other.size
            apart_in_memory = ends[0] <= offsets[other] or ends[1] <= offsets[one]
            assert not together or apart_in_memory
        assert all(offset + buffer.size <= size for buffer, offset in offsets.items())


class _Instruction:
    def __init__(self, output, inputs):
        self.output, self.inputs, self.operands = output, inputs, (output, *inputs)


def test_a_chain_needs_the_memory_of_two_values():
    x = ops.variable("x")
    y = x
    for _ in range(50):
        y = ops.tanh(y)
    executor = Executor([y], ctx=CPU)
    executor.run({x: np.zeros(1024, np.float32)})
    (made,) = executor._programs.values()
    assert made.peak == 2 * 4096


def test_loops_are_collapsed_where_all_operands_lie_alike():
    dense = dense_strides((2, 3, 4))
    assert collapsed((2, 3, 4), [dense, dense]) == ((24,), [(1,), (1,)])
    assert collapsed((2, 3, 4), [dense, (0, 4, 1)]) == ((2, 12), [(12, 1), (0, 1)])
    assert collapsed((1, 1), [(0, 0)]) == ((1,), [(0,)])


@DEVICES
def test_an_index_out_of_range_is_told_with_the_line(ctx):
    table, indices = ops.variable("table"), ops.variable("indices")
    rows = ops.embedding(table, indices)
    executor = Executor([rows], ctx=ctx)
    feeds = {table: np.ones((3, 2)), indices: np.array([0, 3])}
    with pytest.raises(IndexError, match=r"embedding: an index is out of range.*test_backend_runs"):
        executor.run(feeds)
    feeds[indices] = np.array([0, 2])
    assert executor.run(feeds, True)[0].shape == (2, 2)


@DEVICES
@pytest.mark.parametrize("shape, index", [((5,), 3), ((5,), -1), ((3, 4), (2, 1)), ((1,), 0)])
def test_one_element_of_an_array_is_read_and_its_gradient_written(ctx, shape, index):
    x = ops.variable("x", shape)
    part = x[index] * 2.0
    values = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    got, grad = Executor([part, *autodiff.gradients(part, [x])], ctx=ctx).run({x: values}, True)
    wanted = np.zeros(shape)
    wanted[index] = 2.0
    assert got == values[index] * 2
    np.testing.assert_array_equal(grad, wanted)


@DEVICES
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16"])
@pytest.mark.parametrize("shape", [(3, 5), (1500, 3), (2, 3000)], ids=str)
def test_whole_numbers_and_halves_are_reduced_along_every_axis(ctx, shape, dtype):
    x = ops.variable("x")
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    nodes = [
        reduction(x, axis)
        for axis in (None, 0, 1)
        for reduction in (ops.sum, ops.max, ops.min, ops.prod, ops.argmax)
    ]
    got = Executor(nodes, ctx=ctx).run({x: ndarray.array(values, ctx, values.dtype)}, True)
    for found, expected in zip(got, Executor(nodes).run({x: values}), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_bad_input_is_told_with_a_way_out():
    x = ops.variable("x")
    y = ops.exp(x)
    with pytest.raises(TypeError, match=r"arrays of complex128 are not for a device; hint: "):
        Executor([y], ctx=CPU).run({x: np.zeros(3, complex)})
    with pytest.raises(TypeError, match=r"lies on gpu\(0\), this executor runs on cpu\(0\); hint"):
        Executor([y], ctx=CPU).run({x: ndarray.empty((3,), GPU)})
    with pytest.raises(AssertionError, match="feed_dict has no value for x"):
        Executor([y], ctx=CPU).run({})
    a, b = ops.variable("a"), ops.variable("b")
    feeds = {a: np.zeros((2, 3)), b: np.zeros((2, 4))}
    with pytest.raises(base.ShapeError, match=r"maximum: shapes \(2, 3\) and \(2, 4\) don't"):
        Executor([ops.maximum(a, b)], ctx=CPU).run(feeds)
    with pytest.raises(TypeError, match=r"take float32, not NDArray.*hint: dlsys.ops"):
        autodiff.gpu_op.relu(ndarray.empty((3,), GPU, np.int32), ndarray.empty((3,), GPU))
    with pytest.raises(TypeError, match="can't copy int32 to an array of float32"):
        ndarray.empty((3,), CPU, np.int32).copyto(ndarray.empty((3,), CPU))


@pytest.mark.parametrize("shape", [(1, 150000), (3, 70001), (20000, 3), (7, 40, 900)], ids=str)
@DEVICES
def test_reductions_that_are_cut_in_parts_are_right(ctx, shape):
    values = np.random.default_rng(0).normal(1, 1, shape).astype(np.float32)
    x = ops.variable("x")
    axes = [None, 0, 1, *([(0, 2), 2] if len(shape) == 3 else [])]
    nodes = [reduction(x, a) for a in axes for reduction in (ops.sum, ops.max, ops.variance)]
    nodes += [ops.softmax(x), ops.logsumexp(x, 1), ops.argmax(x, 0)]
    got = Executor(nodes, ctx=ctx).run({x: values}, True)
    wanted = Executor(nodes).run({x: values.astype(np.float64)})
    for found, expected in zip(got, wanted, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@DEVICES
def test_what_is_not_finite_is_as_on_numpy(ctx):
    """NaN, infinities, both zeros and large numbers, through every op of one and of two numbers."""
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 80.0, -80.0], np.float32)
    x, y = ops.variable("x"), ops.variable("y")
    a, b = (each.reshape(-1) for each in np.meshgrid(special, special))
    nodes = []
    for op in dict.fromkeys(map(type, OPS.values())):
        is_pair, is_one = (issubclass(op, kind) for kind in (base_ops.PairOp, base_ops.FunctionOp))
        for sample in op.samples[:1] if is_pair or is_one else ():
            attributes = sample[-1] if isinstance(sample[-1], dict) else {}
            nodes.append(op()(*([x, y] if is_pair else [x]), **attributes))
    nodes += [ops.relu(x), ops.where(x < y, x, y), ops.max(ops.reshape(x, (9, 9)), 0)]
    assert len(nodes) > 30
    got = Executor(nodes, ctx=ctx).run({x: a, y: b}, True)
    with np.errstate(all="ignore"):
        wanted = Executor(nodes).run({x: a.astype(np.float64), y: b.astype(np.float64)})
        wanted = [each.astype(found.dtype) for each, found in zip(wanted, got, strict=True)]
    for node, found, expected in zip(nodes, got, wanted, strict=True):
        near = np.testing.assert_allclose
        near(found, expected, rtol=1e-5, atol=1e-30, err_msg=f"{node.name} of {a} and {b}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 1), (9, 96), (2, 1001), (2, 8192), (2, 33002)], ids=str)
def test_rows_of_any_length_are_right_on_a_gpu(shape, dtype):
    """In packs and not, of one warp and of several, kept in registers and too long for that."""
    random = np.random.default_rng(0)
    x, targets, classes = ops.variable("x"), ops.variable("targets"), ops.variable("classes")
    feeds = {
        x: random.normal(size=shape).astype(dtype),
        targets: random.uniform(size=shape).astype(dtype),
        classes: random.integers(0, shape[1], shape[0]),
    }
    nodes = [
        ops.softmax(x), ops.log_softmax(x), ops.logsumexp(x, 1), ops.argmax(x, 1), ops.argmin(x, 1),
        ops.cross_entropy(x, targets, reduction="none"),
        ops.cross_entropy(x, classes, smoothing=0.1, reduction="none"),
    ]  # fmt: skip
    fed = {node: ndarray.array(values, GPU, values.dtype) for node, values in feeds.items()}
    got = Executor(nodes, ctx=GPU).run(fed, True)
    for found, expected in zip(got, Executor(nodes).run(feeds), strict=True):
        bound = (2e-5 if dtype == "float32" else 1e-11) * (1 + np.abs(expected).max())
        np.testing.assert_allclose(found, expected, atol=bound)


@pytest.mark.parametrize("rows", [1, 6, 300])
@pytest.mark.parametrize("columns", [3, 256, 1028, 2051])
def test_parts_of_arrays_are_right_on_a_gpu(rows, columns):
    """Operands that start anywhere, whose rows are further apart than they are long."""
    values = np.random.default_rng(0).normal(size=(rows, columns + 5)).astype(np.float32)
    x, row = ops.variable("x"), ops.variable("row")
    parts = [x[:, begin : begin + columns] for begin in (0, 1, 4)]
    nodes = []
    for part in parts:
        nodes += [part + row, part * part, ops.where(part < row, part, row), part * part[:, :1]]
        nodes += [ops.sum(part, 0), ops.max(part, 1), ops.sum(part), ops.sum(part * row, 1)]
    feeds = {x: values, row: values[0, :columns]}
    got = Executor(nodes, ctx=GPU).run(feeds, True)
    wanted = Executor(nodes).run({n: v.astype(np.float64) for n, v in feeds.items()})
    for found, expected in zip(got, wanted, strict=True):
        bound = 1e-5 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(found, expected, atol=bound)


#: What is wrong -> (what is done with variables a and b on a device, words of the message).
BAD = {
    "shapes": (lambda a, b, run: run(a + b, np.ones((2, 3)), np.ones((2, 4))),
               r"\(a\+b\), of a and b: shapes \(2, 3\) and \(2, 4\) don't broadcast; hint"),
    "inner sizes": (lambda a, b, run: run(a @ b, np.ones((2, 3)), np.ones((2, 4))),
                    r"matmul: inner sizes differ"),
    "complex": (lambda a, b, run: run(a + b, np.ones(3, complex), np.ones(3)),
                r"feed_dict\[a\]: arrays of complex128 .*; hint: "),
    "objects": (lambda a, b, run: run(a + b, np.array([None]), np.ones(1)),
                r"feed_dict\[a\]: arrays of object .*; hint: "),
    "None": (lambda a, b, run: run(a + b, None, np.ones(3)), r"feed_dict\[a\] is .*; hint: "),
    "text": (lambda a, b, run: run(a + b, "text", np.ones(3)), r"feed_dict\[a\] is .*; hint: "),
    "largest of none": (lambda a, b, run: run(ops.max(a * b), np.ones(0), np.ones(0)),
                        r"max: shape \(0,\) has no elements along axis None; Max"),
    "place of the largest of none": (
        lambda a, b, run: run(ops.argmax(a * b, 0), np.ones((0, 3)), np.ones((0, 3))),
        r"argmax: shape \(0, 3\) has no elements along axis 0"),
    "axis": (lambda a, b, run: ops.sum(a, 1.5), r"sum: axis is 1.5; hint: "),
    "classes": (lambda a, b, run: ops.one_hot(a, -1), r"one_hot: -1 classes; hint: "),
    "limit": (lambda a, b, run: ops.clip(a, "x"), r"clip: a limit is 'x'; hint: "),
    "operand": (lambda a, b, run: autodiff.add_op(a, "x"), r"AddOp takes nodes, not 'x'.*; hint: "),
    "unrelated": (lambda a, b, run: autodiff.gradients(ops.sum(a), [b]),
                  r"gradients: Sum.* does not depend on b; hint: "),
    "no list": (lambda a, b, run: Executor(a), r"a is one node, not a list of nodes; hint: "),
    "no node": (lambda a, b, run: Executor([3]), r"takes nodes, not 3.*; hint: "),
}  # fmt: skip


@pytest.mark.parametrize("wrong", BAD)
@pytest.mark.parametrize("ctx", [None, CPU, GPU], ids=["numpy", "cpu", "gpu"])
def test_what_does_not_fit_is_told_by_name_with_the_way_out(ctx, wrong):
    a, b = ops.variable("a"), ops.variable("b")

    def run(node, *values):
        return Executor([node], ctx=ctx).run(dict(zip((a, b), values, strict=True)))

    act, words = BAD[wrong]
    with pytest.raises((TypeError, ValueError, KeyError, AssertionError), match=words):
        act(a, b, run)


@pytest.mark.parametrize("ctx", [None, CPU, GPU], ids=["numpy", "cpu", "gpu"])
def test_a_dict_that_does_not_fit_is_told(ctx):
    v = ops.variable("v", (2, 3))
    executor = Executor([v * 2], ctx=ctx)
    with pytest.raises(ValueError, match=r"feed_dict\[v\] has shape \(3, 3\).* \(2, 3\); hint: "):
        executor.run({v: np.ones((3, 3))})
    with pytest.raises(TypeError, match="feed_dict is None, not a dict; hint: "):
        executor.run(None)
    with pytest.raises(TypeError, match="feed_dict has the key 'v', which is no node; hint: "):
        executor.run({"v": np.ones((2, 3))})
    assert executor.run({v: np.ones((2, 3))}, True)[0].shape == (2, 3)


@pytest.mark.skipif(not ndarray.is_emulated(), reason="nvcc builds the kernels")
def test_a_kept_kernel_is_of_the_emulated_gpu_that_runs_it(tmp_path, monkeypatch):
    """With headers of another version it reads and writes structs of another size."""
    header, pass_ = tmp_path / "emulator/include/emulator/launch.h", tmp_path / "emulator/a_pass.py"
    header.parent.mkdir(parents=True)
    monkeypatch.setattr(kernels, "root", lambda: str(tmp_path))
    found = {gpu: [], cpu: []}
    for h, p in (("struct A {};", ""), ("struct A { int b; };", ""), ("struct A {};", "x = 1")):
        header.write_text(h)
        pass_.write_text(p)
        for backend, names in found.items():
            names.append(kernels.surroundings.__wrapped__(backend))
    assert len(set(found[gpu])) == 3 and len(set(found[cpu])) == 1


STARTED = """
import sys
import numpy as np
import dlsys
from dlsys import ndarray, ops
from dlsys.backend import kernels
if sys.argv[2:]:
    kernels._compile = None
x = ops.variable("x", (5,))
step = dlsys.compile(ops.tanh(x) * 0.7182 + 3.1415, ctx=getattr(ndarray, sys.argv[1])(0))
print(step({x: np.arange(5.0)}, as_numpy=True))
"""


@pytest.mark.parametrize("ctx", ["cpu", "gpu"])
def test_a_second_start_compiles_nothing(ctx, tmp_path):
    def start(folder, *more):
        env = {**os.environ, "DLSYS_KERNELS": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
        call = [sys.executable, "-c", STARTED, ctx, *more]
        return subprocess.run(call, capture_output=True, text=True, env=env)

    first, second = start(tmp_path), start(tmp_path, "without a compiler")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == second.stdout
    elsewhere = start(tmp_path / "new", "without a compiler")
    assert "'NoneType' object is not callable" in elsewhere.stderr


def test_programs_are_asked_for_their_kernels_and_none_is_compiled(monkeypatch):
    monkeypatch.setattr(kernels, "_compile", lambda *of: pytest.fail("compiled"))
    x = ops.variable("x")
    step = dlsys.compile(ops.tanh(x) * 0.7182 + 3.1415, ctx=CPU)
    ((kind, *_),) = kernels.asked_by(lambda: step.run_of({x: np.zeros(3, np.float32)}))
    assert kind == "fused"
    assert kernels.asked_by(lambda: None) == []


@pytest.mark.parametrize("divisor", [2.0**17, 0.25, -8.0, 3.0, 1e38, 2.0**-120, 2.0**126])
@DEVICES
def test_a_quotient_by_a_number_has_the_same_bits_whatever_the_number(divisor, ctx):
    values = np.random.default_rng(0).normal(size=999).astype(np.float32)
    values[:4] = 1e-40, 3e38, -np.inf, np.nan
    x = ops.variable("x")
    with np.errstate(all="ignore"):
        wanted = values / np.float32(divisor)
    np.testing.assert_array_equal(value_of(x / divisor, {x: values}, ctx), wanted)
