"""The kernels against numpy: the published shapes, then sizes that catch more.

Every bound is computed: float32 rounds each operation by at most 2**-24 of its result, so a
bound is that times the work that was summed. Half precision fails all of them.
"""

import os

import numpy as np

from dlsys import autodiff, gpu_op, ndarray

#: Half the distance between 1 and the next float32.
ROUND = 2.0**-24
#: Sizes around the ends of warps and blocks.
SIZES = (1, 31, 32, 33, 127, 128, 129, 1025)
CTX = ndarray.gpu(0)
NEVER_WRITTEN = (
    "; nan was in the output before the call, so these were never written; "
    "hint: is the number of blocks rounded up?"
)


def uniform(seed, low, high, *shape):
    """Seeded random float32 values."""
    return np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32)


def on_gpu(values):
    return ndarray.array(values, ctx=CTX)


def output(*shape):
    """An array on the GPU that holds NaN, so that what a kernel leaves out is seen."""
    return on_gpu(np.full(shape, np.nan, np.float32))


def assert_close(got, expected, bound=0.0):
    """Raises unless |got - expected| <= bound everywhere; says what differs first."""
    expected = np.asarray(expected)
    assert got.shape == expected.shape, "shape %s, not %s" % (got.shape, expected.shape)
    wrong = ~(np.abs(got.astype(np.float64) - expected) <= bound)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            "%d of %d elements differ, the first is %s: got %r, expected %r"
            % (wrong.sum(), wrong.size, first, float(got[first]), float(expected[first]))
            + NEVER_WRITTEN * bool(np.isnan(got[wrong]).any())
        )


def sum_bound(terms, magnitude):
    """Bound of a float32 sum of `terms` terms whose absolute values sum to `magnitude`."""
    return ROUND * (8 + 2 * np.sqrt(terms)) * magnitude


def sized(*sizes):
    """The published sizes; smaller odd ones in the checked build, where each access takes long."""
    checked = os.environ.get("DLSYS_CHECKED", "") not in ("", "0")
    return tuple(size // 13 | 1 for size in sizes) if checked else sizes


# The twelve published tests ------------------------------------------------------------------


def test_array_set():
    arr = output(*sized(500, 200))
    for value in (1.0, 0.0):
        gpu_op.array_set(arr, value)
        assert_close(arr.asnumpy(), np.full(sized(500, 200), value))


def test_broadcast_to():
    check_broadcast_to(sized(200, 300), *sized(130))


def test_reduce_sum_axis_zero():
    check_reduce_sum(sized(500, 200, 100))


def test_matrix_elementwise_add():
    check_elementwise(gpu_op.matrix_elementwise_add, np.add, sized(500, 200))


def test_matrix_elementwise_add_by_const():
    check_by_const(gpu_op.matrix_elementwise_add_by_const, np.add, sized(2000, 3000))


def test_matrix_elementwise_multiply():
    check_elementwise(gpu_op.matrix_elementwise_multiply, np.multiply, sized(500, 200))


def test_matrix_elementwise_multiply_by_const():
    check_by_const(gpu_op.matrix_elementwise_multiply_by_const, np.multiply, sized(2000, 3000))


def test_matrix_multiply():
    check_matmul(*sized(500, 1000, 700), False, False)
    check_matmul(*sized(1000, 2000, 500), False, True)
    check_matmul(*sized(1000, 500, 500), True, False)
    check_matmul(*sized(1000, 2000, 500), True, True)


def test_relu():
    check_relu(sized(2000, 2500))


def test_relu_gradient():
    check_relu_gradient(sized(2000, 2500))


def test_softmax():
    check_softmax(*sized(400, 1000))


def test_softmax_cross_entropy():
    check_softmax_cross_entropy(*sized(400, 1000))


# Sizes that don't divide a block, and ranks from 1 to 4 ----------------------------------------


def test_array_set_fills_every_size():
    for size in SIZES:
        arr = output(size)
        gpu_op.array_set(arr, -2.5)
        assert_close(arr.asnumpy(), np.full(size, -2.5))


def test_broadcast_to_tiles_every_size_and_rank():
    for size in SIZES:
        check_broadcast_to((size,), 3)
    check_broadcast_to((256,), 1000)
    check_broadcast_to((1,), 33)
    check_broadcast_to((3, 5, 7), 2)


def test_reduce_sum_axis_zero_sums_every_size():
    for size in SIZES:
        check_reduce_sum((size, 3))
        check_reduce_sum((3, size))
    check_reduce_sum((7, 2, 3, 5))


def test_reduce_sum_axis_zero_of_a_vector_has_shape_1():
    check_reduce_sum((1025,))
    check_reduce_sum((1,))


def test_elementwise_kernels_take_every_size():
    for size in SIZES:
        check_elementwise(gpu_op.matrix_elementwise_add, np.add, (size,))
        check_elementwise(gpu_op.matrix_elementwise_multiply, np.multiply, (3, size))
        check_by_const(gpu_op.matrix_elementwise_add_by_const, np.add, (size, 2))
        check_by_const(gpu_op.matrix_elementwise_multiply_by_const, np.multiply, (size,))
        check_relu((size,))
        check_relu_gradient((size, 3))


def test_elementwise_kernels_take_ranks_3_and_4():
    check_elementwise(gpu_op.matrix_elementwise_add, np.add, (3, 5, 7))
    check_elementwise(gpu_op.matrix_elementwise_multiply, np.multiply, (2, 3, 5, 7))
    check_relu((3, 5, 7, 2))


def test_matrix_multiply_takes_every_size():
    for size in (1, 31, 33, 129):
        for trans_a in (False, True):
            for trans_b in (False, True):
                check_matmul(size, 17, 40, trans_a, trans_b)
                check_matmul(3, size, size, trans_a, trans_b)
                check_matmul(20, 5, size, trans_a, trans_b)


def test_softmax_takes_every_size():
    for size in SIZES:
        check_softmax(size, 10)
        check_softmax(3, size)


def test_softmax_takes_more_rows_than_a_block_has_threads():
    check_softmax(3001, 10)


def test_softmax_survives_large_values():
    values = np.array([[1000, 1000, -1000], [-1e30, 0, 1e30]], np.float32)
    out = output(2, 3)
    gpu_op.softmax(on_gpu(values), out)
    assert_close(out.asnumpy(), np.array([[0.5, 0.5, 0], [0, 0, 1]]))


def test_softmax_cross_entropy_takes_every_size():
    for size in SIZES:
        check_softmax_cross_entropy(size, 10)
        check_softmax_cross_entropy(3, size)


def test_softmax_cross_entropy_takes_more_than_1024_rows():
    check_softmax_cross_entropy(3001, 10)


def test_relu_gradient_is_zero_at_zero():
    out = output(3)
    gpu_op.relu_gradient(on_gpu(np.array([-1.0, 0.0, 1.0])), on_gpu(np.ones(3)), out)
    assert_close(out.asnumpy(), np.array([0.0, 0.0, 1.0]))


# Aliasing: element-wise kernels may write over what they read ------------------------------------


def test_elementwise_kernels_may_overwrite_an_input():
    x, y = uniform(1, -5, 5, 129, 9), uniform(2, -5, 5, 129, 9)
    for op, expected in (
        (gpu_op.matrix_elementwise_add, x + y),
        (gpu_op.matrix_elementwise_multiply, x * y),
        (gpu_op.relu_gradient, np.where(x > 0, y, 0)),
    ):
        a, b = on_gpu(x), on_gpu(y)
        op(a, b, a)
        assert_close(a.asnumpy(), expected)
        a = on_gpu(x)
        op(a, b, b)
        assert_close(b.asnumpy(), expected)


def test_kernels_of_one_input_may_overwrite_it():
    x = uniform(3, -5, 5, 129, 9)
    a = on_gpu(x)
    gpu_op.matrix_elementwise_multiply_by_const(a, -2, a)
    gpu_op.matrix_elementwise_add_by_const(a, 1, a)
    gpu_op.relu(a, a)
    assert_close(a.asnumpy(), np.maximum(x * np.float32(-2) + np.float32(1), 0), ROUND * 16)


# The checks -----------------------------------------------------------------------------------


def check_broadcast_to(shape, copies):
    x = uniform(1, -1, 1, *shape)
    out = output(copies, *shape)
    gpu_op.broadcast_to(on_gpu(x), out)
    assert_close(out.asnumpy(), np.broadcast_to(x, (copies,) + shape))


def check_reduce_sum(shape):
    x = uniform(2, 0, 20, *shape)
    expected = np.sum(x, axis=0, dtype=np.float64, keepdims=len(shape) == 1)
    out = output(*expected.shape)
    gpu_op.reduce_sum_axis_zero(on_gpu(x), out)
    assert_close(out.asnumpy(), expected, sum_bound(shape[0], expected))


def check_elementwise(op, expected, shape):
    x, y = uniform(3, -10, 10, *shape), uniform(4, -10, 10, *shape)
    out = output(*shape)
    op(on_gpu(x), on_gpu(y), out)
    assert_close(out.asnumpy(), expected(x, y))


def check_by_const(op, expected, shape):
    x = uniform(5, 0, 10, *shape)
    value = float(uniform(6, -5, 5)[()])
    out = output(*shape)
    op(on_gpu(x), value, out)
    assert_close(out.asnumpy(), expected(x, np.float32(value)))


def check_matmul(m, n, k, trans_a, trans_b):
    """C (m, n) = op(A) (m, k) times op(B) (k, n)."""
    a = uniform(7, -10, 10, *((k, m) if trans_a else (m, k)))
    b = uniform(8, -10, 10, *((n, k) if trans_b else (k, n)))
    out = output(m, n)
    gpu_op.matrix_multiply(on_gpu(a), trans_a, on_gpu(b), trans_b, out)
    op_a = (a.T if trans_a else a).astype(np.float64)
    op_b = (b.T if trans_b else b).astype(np.float64)
    assert_close(out.asnumpy(), op_a @ op_b, sum_bound(k, np.abs(op_a) @ np.abs(op_b)))


def check_relu(shape):
    x = uniform(9, -1, 1, *shape)
    out = output(*shape)
    gpu_op.relu(on_gpu(x), out)
    assert_close(out.asnumpy(), np.maximum(x, 0))


def check_relu_gradient(shape):
    x, grad = uniform(10, -1, 1, *shape), uniform(11, -5, 5, *shape)
    out = output(*shape)
    gpu_op.relu_gradient(on_gpu(x), on_gpu(grad), out)
    assert_close(out.asnumpy(), np.where(x > 0, grad, 0))


def check_softmax(rows, columns):
    x = uniform(12, -5, 5, rows, columns)
    out = output(rows, columns)
    gpu_op.softmax(on_gpu(x), out)
    expected = autodiff.softmax_func(x.astype(np.float64))
    # exp rounds, and more so for large arguments where the fast __expf is used.
    assert_close(out.asnumpy(), expected, sum_bound(columns, expected) + ROUND * 40 * expected)


def check_softmax_cross_entropy(rows, columns):
    logits, labels = uniform(13, -5, 5, rows, columns), uniform(14, -5, 5, rows, columns)
    out = output(1)
    gpu_op.softmax_cross_entropy(on_gpu(logits), on_gpu(labels), out)
    log_softmax = np.log(autodiff.softmax_func(logits.astype(np.float64)))
    expected = np.array([-np.mean(np.sum(labels * log_softmax, axis=1))])
    magnitude = np.mean(np.sum(np.abs(labels) * (np.abs(log_softmax) + 5), axis=1))
    assert_close(out.asnumpy(), expected, sum_bound(columns + rows, magnitude))
