"""The published interface of the package, on the solution as `make` built it."""

import ctypes
import types

import numpy as np
import pytest

from dlsys import _base, autodiff, gpu_op, ndarray

CTX = ndarray.gpu(0)


def on_gpu(values):
    return ndarray.array(np.asarray(values, np.float32), ctx=CTX)


# structs and contexts ----------------------------------------------------------------------------


def test_the_structs_have_the_published_layout():
    assert [ndarray.DLArray.data.offset, ndarray.DLArray.ctx.offset] == [0, 8]
    assert [ndarray.DLArray.ndim.offset, ndarray.DLArray.shape.offset] == [16, 24]
    assert ctypes.sizeof(ndarray.DLArray) == 32
    assert [name for name, _ in ndarray.DLContext._fields_] == ["device_id", "device_type"]


def test_contexts_print_as_their_device():
    assert repr(ndarray.gpu(0)) == "gpu(0)"
    assert repr(ndarray.cpu(3)) == "cpu(3)"
    with pytest.raises(KeyError):
        repr(ndarray.DLContext(0, 7))


def test_is_gpu_ctx_tells_the_gpu_from_the_cpu_and_from_none():
    assert ndarray.is_gpu_ctx(ndarray.gpu(0))
    assert not ndarray.is_gpu_ctx(ndarray.cpu(0))
    assert ndarray.is_gpu_ctx(None) is None


def test_c_array_holds_its_values():
    assert list(_base.c_array(ctypes.c_int64, (2, 3))) == [2, 3]


# arrays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (2, 3, 4, 5), (0, 3)])
@pytest.mark.parametrize("ctx", [ndarray.cpu(0), ndarray.gpu(0)], ids=repr)
def test_an_array_keeps_values_and_shape(shape, ctx):
    values = np.random.RandomState(0).uniform(size=shape).astype(np.float32)
    arr = ndarray.array(values, ctx=ctx)
    assert arr.shape == shape
    assert arr.ctx.device_type == ctx.device_type
    np.testing.assert_array_equal(arr.asnumpy(), values)


def test_arrays_are_float32_whatever_they_are_made_from():
    for source in (
        [[1, 2], [3, 4]],
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.arange(1, 5).reshape(2, 2),
    ):
        got = ndarray.array(source, ctx=CTX).asnumpy()
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, [[1, 2], [3, 4]])


def test_strided_values_are_copied_in_order():
    values = np.arange(12, dtype=np.float32).reshape(3, 4).T
    np.testing.assert_array_equal(on_gpu(values).asnumpy(), values)


def test_an_array_takes_no_other_attributes():
    with pytest.raises(AttributeError):
        on_gpu([1]).name = "x"


def test_setting_copies_from_numpy_and_from_other_devices():
    arr = ndarray.empty((2,), ctx=CTX)
    arr[:] = np.array([1.0, 2.0])
    np.testing.assert_array_equal(arr.asnumpy(), [1, 2])
    arr[:] = ndarray.array(np.array([3.0, 4.0]))
    np.testing.assert_array_equal(arr.asnumpy(), [3, 4])
    arr[:] = arr
    np.testing.assert_array_equal(arr.asnumpy(), [3, 4])


@pytest.mark.parametrize("key", [0, slice(0, None), slice(None, 2)])
def test_only_the_whole_array_can_be_set(key):
    with pytest.raises(ValueError, match="whole"):
        on_gpu([1, 2])[key] = np.zeros(2)


@pytest.mark.parametrize("value", [1.0, [1.0, 2.0], "text"])
def test_setting_from_other_types_is_a_type_error(value):
    with pytest.raises(TypeError):
        on_gpu([1, 2])[:] = value


def test_setting_another_shape_is_a_value_error():
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        on_gpu([1, 2])[:] = np.zeros(3)


def test_copyto_takes_a_context_or_an_array_and_returns_it():
    source = on_gpu([1, 2])
    copy = source.copyto(ndarray.cpu(0))
    np.testing.assert_array_equal(copy.asnumpy(), [1, 2])
    target = ndarray.empty((2,), ctx=CTX)
    assert copy.copyto(target) is target
    with pytest.raises(ValueError, match="copy"):
        source.copyto("gpu")
    with pytest.raises(AssertionError, match="sizes differ"):
        source.copyto(ndarray.empty((3,), ctx=CTX))


def test_a_view_shares_memory_and_keeps_it_alive():
    part = ndarray.view(on_gpu(np.arange(6)), (2, 2))
    np.testing.assert_array_equal(part.asnumpy(), [[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="does not fit"):
        ndarray.view(part, (5,))


# errors ------------------------------------------------------------------------------------------


def test_a_failing_call_is_an_assertion_error_that_says_what_failed():
    with pytest.raises(AssertionError, match=r"relu: shapes differ: .*\(2,\).*\(3,\)"):
        gpu_op.relu(on_gpu([1, 2]), ndarray.empty((3,), ctx=CTX))
    with pytest.raises(AssertionError, match="device type 5"):
        ndarray.empty((3,), ctx=ndarray.DLContext(0, 5))
    with pytest.raises(AssertionError, match="axis 1 has length -3"):
        ndarray.empty((2, -3), ctx=CTX)


def test_too_much_memory_is_refused_in_words():
    with pytest.raises(AssertionError, match="out of memory"):
        ndarray.empty((1 << 40,), ctx=CTX)
    np.testing.assert_array_equal(on_gpu([1]).asnumpy(), [1])


def test_a_missing_library_leaves_numpy_mode_and_a_hint(tmp_path):
    missing = _base._load_lib(str(tmp_path / "libc_runtime_api.so"))
    with pytest.raises(AssertionError, match="hint: run make"):
        missing.DLArrayAlloc()
    with pytest.raises(AssertionError, match="hint: run make"):
        missing["DLArrayAlloc"]


# graphs ------------------------------------------------------------------------------------------


def test_nodes_have_the_published_names():
    a, b = autodiff.Variable(name="a"), autodiff.Variable(name="b")
    named = {
        "(a+b)": a + b,
        "(a+3)": a + 3,
        "(a*b)": a * b,
        "(a*3)": 3 * a,
        "MatMul(a,b,False,True)": autodiff.matmul_op(a, b, False, True),
        "Zeroslike(a)": autodiff.zeroslike_op(a),
        "Oneslike(a)": autodiff.oneslike_op(a),
        "ReduceSumAxisZero(a)": autodiff.reducesumaxiszero_op(a),
        "BroadcastTo(a,b.shape)": autodiff.broadcastto_op(a, b),
        "SoftmaxXEntropy(a,b)": autodiff.softmaxcrossentropy_op(a, b),
        "Softmax(a)": autodiff.softmax_op(a),
        "Relu(a)": autodiff.relu_op(a),
        "ReluGradient(a)": autodiff.relu_gradient_op(a, b),
    }
    assert {str(node): name for name, node in named.items()} == {n: n for n in named}


#: Op -> the names of what it is called with, and its object.
OPS = {
    "AddOp": ("add_op", "node_A", "node_B"),
    "AddByConstOp": ("add_byconst_op", "node_A", "const_val"),
    "MulOp": ("mul_op", "node_A", "node_B"),
    "MulByConstOp": ("mul_byconst_op", "node_A", "const_val"),
    "MatMulOp": ("matmul_op", "node_A", "node_B", "trans_A", "trans_B"),
    "PlaceholderOp": ("placeholder_op",),
    "ZerosLikeOp": ("zeroslike_op", "node_A"),
    "OnesLikeOp": ("oneslike_op", "node_A"),
    "ReduceSumAxisZeroOp": ("reducesumaxiszero_op", "node_A"),
    "BroadcastToOp": ("broadcastto_op", "node_A", "node_B"),
    "SoftmaxCrossEntropyOp": ("softmaxcrossentropy_op", "node_A", "node_B"),
    "SoftmaxOp": ("softmax_op", "node_A"),
    "ReluOp": ("relu_op", "node_A"),
    "ReluGradientOp": ("relu_gradient_op", "node_A", "node_B"),
}


@pytest.mark.parametrize("name", OPS)
def test_an_op_is_called_as_published(name):
    op = getattr(autodiff, OPS[name][0])
    assert type(op) is getattr(autodiff, name)
    given = {argument: autodiff.Variable(name=argument) for argument in OPS[name][1:]}
    node = op(**given)
    assert isinstance(node, autodiff.Node) and node.op is op
    assert node.inputs == [given[n] for n in given if n.startswith("node_")]
    assert node.const_attr is given.get("const_val")
    for flag in ("A", "B") if name == "MatMulOp" else ():
        assert getattr(node, f"matmul_attr_trans_{flag}") is given[f"trans_{flag}"]


def test_an_op_of_the_students_own_makes_its_node_as_published():
    class TwiceOp(autodiff.Op):
        def __call__(self, node_A):
            node = autodiff.Op.__call__(self)
            node.inputs = [node_A]
            node.name = f"Twice({node_A.name})"
            return node

        def compute(self, node, input_vals, output_val, use_numpy=True):
            output_val[:] = 2 * input_vals[0]

        def infer_shape(self, node, input_shapes):
            return input_shapes[0]

    x = autodiff.Variable(name="x")
    node = TwiceOp()(x)
    assert str(node) == "Twice(x)"
    (value,) = autodiff.Executor([node + 1]).run({x: np.array([1.0, 2.0])})
    np.testing.assert_array_equal(value, [3, 5])


def test_functions_beside_the_ops_have_the_published_names():
    x = autodiff.Variable(name="x")
    assert autodiff.broadcast_rule((1,), (2, 3)) == (2, 3)
    assert autodiff.sum_node_list([x]) is x
    order = []
    autodiff.topo_sort_dfs(x, set(), order)
    assert order == autodiff.find_topo_sort([x]) == [x]
    np.testing.assert_allclose(autodiff.softmax_func(np.zeros((1, 2))), [[0.5, 0.5]])


@pytest.mark.parametrize("ctx", [None, ndarray.gpu(0)], ids=["numpy", "gpu"])
def test_a_line_of_100000_nodes_runs(ctx):
    x = node = autodiff.Variable(name="x")
    for i in range(100_000):
        node = node + 1 if i % 2 else node * 1.0
    executor = autodiff.Executor([node], ctx=ctx)
    (value,) = executor.run({x: np.zeros(3)}, convert_to_numpy_ret_vals=True)
    np.testing.assert_array_equal(value, [50_000] * 3)


@pytest.mark.parametrize(("left", "right"), [((3, 4), (4,)), ((1,), (3, 4)), ((2, 3, 4), (3, 4))])
def test_the_gpu_broadcasts_and_unbroadcasts_leading_axes(left, right):
    a, b = autodiff.Variable(name="a"), autodiff.Variable(name="b")
    product = a * b
    nodes = [product, *autodiff.gradients(product, [a, b])]
    random = np.random.RandomState(1)
    feeds = {a: random.uniform(size=left), b: random.uniform(size=right)}
    expected = autodiff.Executor(nodes).run(feeds)
    got = autodiff.Executor(nodes, ctx=CTX).run(feeds, convert_to_numpy_ret_vals=True)
    for x, y in zip(got, expected, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_the_gpu_refuses_other_broadcasts_in_words():
    a, b = autodiff.Variable(name="a"), autodiff.Variable(name="b")
    executor = autodiff.Executor([a + b], ctx=CTX)
    with pytest.raises(ValueError, match=r"\(3, 1\) and \(1, 4\) don't combine; hint:"):
        executor.run({a: np.ones((3, 1)), b: np.ones((1, 4))})


def test_an_array_of_another_device_is_refused():
    a = autodiff.Variable(name="a")
    with pytest.raises(AssertionError, match=r"lies on cpu\(0\)"):
        autodiff.Executor([a * 2], ctx=CTX).run({a: ndarray.array(np.ones(3))})


def test_the_gpu_refuses_to_broadcast_to_inner_axes():
    a, b = autodiff.Variable(name="a"), autodiff.Variable(name="b")
    executor = autodiff.Executor([autodiff.broadcastto_op(a, b)], ctx=CTX)
    with pytest.raises(ValueError, match=r"\(3, 1\) does not broadcast to \(3, 4\); hint:"):
        executor.run({a: np.ones((3, 1)), b: np.ones((3, 4))})


def test_a_launcher_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(gpu_op, "_LIB", types.SimpleNamespace())
    with pytest.raises(AssertionError, match=r"src/gpu_op.cu defines no DLGpuRelu"):
        gpu_op.relu(on_gpu([1]), on_gpu([1]))
