"""Part 2: shape inference, and the memory plan on the GPU."""

import ctypes

import numpy as np

from dlsys import autodiff as ad
from dlsys import ndarray
from dlsys._base import _LIB, check_call

CTX = ndarray.gpu(0)


def uniform(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def shape_of(node, **shapes):
    """The shape that an executor infers for node; shapes by the names of the placeholders."""
    executor = ad.Executor([node])
    feeds = [n for n in executor.topo_order if n.op is ad.placeholder_op]
    executor.infer_shape({n: shapes[n.name] for n in feeds})
    return executor.node_to_shape_map[node]


def allocations():
    """How many arrays were allocated on the GPU so far."""
    arrays, raw = ctypes.c_int64(), ctypes.c_int64()
    check_call(_LIB.DLGetAllocationCounts(ctypes.byref(arrays), ctypes.byref(raw)))
    return arrays.value


def address(arr):
    return arr.handle.contents.data


def assert_raises(error, function, *args):
    try:
        function(*args)
    except error:
        return
    raise AssertionError("%s was expected" % error.__name__)


X, Y = ad.Variable(name="x"), ad.Variable(name="y")

# 2.1 shapes ------------------------------------------------------------------------------------


def test_shapes_of_elementwise_ops():
    assert shape_of(X + Y, x=(3, 4), y=(3, 4)) == (3, 4)
    assert shape_of(X * 2 + 1, x=(2, 3, 4)) == (2, 3, 4)
    assert shape_of(ad.relu_op(X), x=(5,)) == (5,)
    assert shape_of(ad.relu_gradient_op(X, Y), x=(5,), y=(5,)) == (5,)
    assert shape_of(ad.zeroslike_op(X), x=(3, 4)) == (3, 4)
    assert shape_of(ad.oneslike_op(X), x=(3, 4)) == (3, 4)
    assert shape_of(ad.softmax_op(X), x=(3, 4)) == (3, 4)


def test_shapes_broadcast_as_in_numpy():
    assert shape_of(X + Y, x=(3, 4), y=(1,)) == (3, 4)
    assert shape_of(X + Y, x=(1,), y=(3, 4)) == (3, 4)
    assert shape_of(X * Y, x=(4,), y=(3, 4)) == (3, 4)
    assert shape_of(X * Y, x=(3, 1), y=(1, 4)) == (3, 4)


def test_shapes_of_matmul_for_all_four_transposes():
    assert shape_of(ad.matmul_op(X, Y), x=(2, 3), y=(3, 5)) == (2, 5)
    assert shape_of(ad.matmul_op(X, Y, True, False), x=(3, 2), y=(3, 5)) == (2, 5)
    assert shape_of(ad.matmul_op(X, Y, False, True), x=(2, 3), y=(5, 3)) == (2, 5)
    assert shape_of(ad.matmul_op(X, Y, True, True), x=(3, 2), y=(5, 3)) == (2, 5)


def test_shapes_of_reductions_and_broadcasts():
    assert shape_of(ad.reducesumaxiszero_op(X), x=(2, 3, 4)) == (3, 4)
    assert shape_of(ad.reducesumaxiszero_op(X), x=(5,)) == (1,)
    assert shape_of(ad.broadcastto_op(X, Y), x=(4,), y=(3, 4)) == (3, 4)
    assert shape_of(ad.softmaxcrossentropy_op(X, Y), x=(3, 4), y=(3, 4)) == (1,)


def test_wrong_shapes_are_refused():
    assert_raises(ValueError, lambda: shape_of(ad.matmul_op(X, Y), x=(2, 3), y=(4, 5)))
    assert_raises(ValueError, lambda: shape_of(ad.matmul_op(X, Y), x=(2, 3), y=(3,)))
    assert_raises(ValueError, lambda: shape_of(X + Y, x=(2, 3), y=(4,)))


def test_every_node_gets_a_shape_the_fed_ones_too():
    node = ad.matmul_op(X, Y) + 1
    executor = ad.Executor([node])
    executor.infer_shape({X: (2, 3), Y: (3, 5)})
    assert set(executor.node_to_shape_map) == set(executor.topo_order)


def test_the_numpy_executor_takes_new_shapes():
    node = ad.reducesumaxiszero_op(X * 2)
    executor = ad.Executor([node])
    for shape in ((3, 4), (5, 2), (3, 4)):
        (value,) = executor.run({X: np.ones(shape)})
        np.testing.assert_array_equal(value, np.full(shape[1:], 2.0 * shape[0]))


def test_a_value_that_is_not_fed_is_named():
    assert_raises(AssertionError, lambda: ad.Executor([X + Y]).run({X: np.ones(3)}))


# 2.2 the memory plan ---------------------------------------------------------------------------


def two_layers():
    """A loss of two layers and its gradients; placeholders x, w, v, y_."""
    x, w, v, y_ = (ad.Variable(name=name) for name in ("x", "w", "v", "y_"))
    hidden = ad.relu_op(ad.matmul_op(x, w))
    loss = ad.softmaxcrossentropy_op(ad.matmul_op(hidden, v), y_)
    return [x, w, v, y_], [loss, *ad.gradients(loss, [w, v])]


def feeds(rows):
    labels = np.eye(3, dtype=np.float32)[np.arange(rows) % 3]
    return [uniform(0, rows, 6), uniform(1, 6, 5), uniform(2, 5, 3), labels]


def test_the_gpu_computes_what_numpy_computes():
    variables, nodes = two_layers()
    expected = ad.Executor(nodes).run(dict(zip(variables, feeds(7))))
    executor = ad.Executor(nodes, ctx=CTX)
    for _ in range(2):
        got = executor.run(dict(zip(variables, feeds(7))), convert_to_numpy_ret_vals=True)
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_second_run_with_the_same_shapes_allocates_nothing():
    variables, nodes = two_layers()
    executor = ad.Executor(nodes, ctx=CTX)
    fed = {n: ndarray.array(value, ctx=CTX) for n, value in zip(variables, feeds(7))}
    executor.run(fed)
    before = allocations()
    executor.run(fed)
    assert allocations() == before


def test_new_shapes_make_a_new_plan():
    variables, nodes = two_layers()
    executor = ad.Executor(nodes, ctx=CTX)
    for rows in (7, 40, 7):
        got = executor.run(dict(zip(variables, feeds(rows))), convert_to_numpy_ret_vals=True)
        expected = ad.Executor(nodes).run(dict(zip(variables, feeds(rows))))
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_values_that_nobody_reads_any_more_lend_their_memory():
    node = X
    for _ in range(20):
        node = ad.relu_op(ad.softmax_op(node))
    executor = ad.Executor([node], ctx=CTX)
    executor.run({X: uniform(3, 4, 5)})
    buffers = {address(executor.node_to_arr_map[n]) for n in executor.topo_order if n is not X}
    assert len(buffers) <= 4, "40 nodes in a line take %d buffers; 2 or 3 do" % len(buffers)


def test_evaluated_nodes_own_their_memory():
    nodes = [X]
    for _ in range(6):
        nodes.append(ad.softmax_op(nodes[-1]))
    evaluated = nodes[2::2]
    executor = ad.Executor(evaluated, ctx=CTX)
    results = executor.run({X: uniform(4, 4, 5)})
    others = [executor.node_to_arr_map[n] for n in nodes[1:] if n not in evaluated]
    owned = {address(arr) for arr in results}
    assert len(owned) == len(evaluated)
    assert not owned & {address(arr) for arr in others}


def test_a_result_may_be_overwritten_by_its_receiver():
    total = X + Y
    executor = ad.Executor([total, total * 3], ctx=CTX)
    x, y = uniform(5, 8), uniform(6, 8)
    for _ in range(2):
        results = executor.run({X: x, Y: y})
        np.testing.assert_allclose(results[1].asnumpy(), (x + y) * 3, rtol=1e-6)
        results[0][:] = np.zeros(8)
