"""Nodes that feel like numpy, functions of functions, random numbers, and errors that teach."""

import numpy as np
import pytest

from dlsys import autodiff, ops
from dlsys.autodiff import Executor
from dlsys.ops.random import philox


@pytest.fixture
def x():
    return ops.variable("x")


VALUES = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


def value(node, feeds):
    return Executor([node]).run(feeds)[0]


EXPRESSIONS = {
    "x - 2": lambda x: x - 2,
    "2 - x": lambda x: 2 - x,
    "x / 4": lambda x: x / 4,
    "4 / x": lambda x: 4 / x,
    "x ** 2": lambda x: x**2,
    "2 ** x": lambda x: 2**x,
    "-x": lambda x: -x,
    "abs": abs,
    "array + x": lambda x: np.arange(3.0) + x,
    "array - x": lambda x: np.arange(3.0) - x,
    "array * x": lambda x: np.arange(3.0) * x,
    "array / x": lambda x: np.arange(3.0) / x,
    "array @ x": lambda x: np.ones((4, 2)) @ x,
    "x @ array": lambda x: x @ np.arange(3.0),
    "numpy's number * x": lambda x: np.float64(3) * x,
    "comparisons": lambda x: (x < 2) * 1 + (x <= 1) + (x > 3) + (x >= 3),
    "x == 1": lambda x: (x == 1) * 1,
    "x != 1": lambda x: (x != 1) * 1,
    "x.T": lambda x: x.T,
    "x[:, 1]": lambda x: x[:, 1],
    "x[..., None]": lambda x: x[..., None],
    "x.sum": lambda x: x.sum(axis=0, keepdims=True),
    "x.mean": lambda x: x.mean(),
    "x.max": lambda x: x.max(np.int64(1)),
    "x.reshape": lambda x: x.reshape(3, 2) + x.reshape((3, 2)),
    "x.transpose": lambda x: x.transpose(1, 0),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_means_what_it_means_in_numpy(x, name):
    got = value(EXPRESSIONS[name](x), {x: VALUES})
    wanted = EXPRESSIONS[name](VALUES)
    assert got.shape == np.shape(wanted)
    np.testing.assert_allclose(got, wanted)


def test_the_executor_gives_integers_and_truth_values(x):
    which, less = Executor([ops.argmax(x, 1), x < 2]).run({x: VALUES})
    assert which.dtype == np.int64 and which.tolist() == [2, 1]
    assert less.dtype == np.bool_ and less.tolist() == (VALUES < 2).tolist()


def test_nodes_are_found_in_lists_and_dictionaries(x):
    y = ops.variable("y")
    assert y in [x, y] and y not in [x] and [x, y].index(y) == 1
    assert {x: 1, y: 2}[y] == 2 and x and x == x
    assert x != None  # noqa: E711
    with pytest.raises(TypeError, match="has no value before it runs"):
        bool(x < y)
    with pytest.raises(TypeError):
        iter(x)


def test_a_node_prints_its_shape_and_dtype_where_they_are_known(x):
    w = ops.variable("w", (4, 3))
    assert repr(x @ w) == "(x@w)" and (x @ w).shape is None
    product = ops.exp(w * 2) @ np.ones((3, 5))
    assert product.shape == (4, 5) and repr(product) == f"{product}: float64 (4, 5)"
    assert repr(ops.argmax(w, 1)) == "ArgMax(w,1): int64 (4,)"
    assert repr([w < 0]) == "[(w<0): bool (4, 3)]"


def test_what_is_known_not_to_fit_is_told_at_once():
    w = ops.variable("w", (4, 3))
    with pytest.raises(ValueError, match="matmul: inner sizes differ: op\\(a\\) is \\(4, 3\\)"):
        w @ w


def test_an_error_of_a_shape_names_the_op_the_operands_and_the_line(x):
    y = ops.variable("y")
    node = x - y  # the line that is named
    with pytest.raises(ValueError) as caught:
        value(node, {x: np.ones((3, 4)), y: np.ones(5)})
    said = str(caught.value)
    assert "subtract: shapes (3, 4) and (5,) don't broadcast" in said
    line = (
        1 + test_an_error_of_a_shape_names_the_op_the_operands_and_the_line.__code__.co_firstlineno
    )
    assert f"(x-y) was made at {__file__}:{line + 1}" in said


BAD = {
    "matmul": (
        lambda x: x @ np.ones((4, 2)),
        "inner sizes differ: op(a) is (2, 3), op(b) is (4, 2)",
    ),
    "a number in matmul": (lambda x: x @ ops.constant(2.0), "hint: a * b"),
    "axis": (lambda x: x.sum(2), "there is no axis 2 in 2 dimensions"),
    "axis twice": (lambda x: x.sum((0, -2)), "names one axis twice"),
    "reshape": (lambda x: x.reshape(4, 2), "6 elements of shape (2, 3) don't fit into (4, 2)"),
    "reshape by -1": (lambda x: x.reshape(4, -1), "don't fit into (4, -1)"),
    "transpose": (lambda x: x.transpose(0, 1, 2), "of an array of 2 dimensions"),
    "squeeze": (lambda x: ops.squeeze(x, 0), "axis 0 of shape (2, 3) has not one element"),
    "index": (lambda x: x[0, 5], "out of bounds"),
    "split": (lambda x: ops.split(x, 2, 0, 1), "has not 2 equal parts"),
    "pad": (lambda x: ops.pad(x, ((1, 1),)), "1 pairs of widths for shape (2, 3)"),
    "concatenate": (lambda x: ops.concatenate(x, x.T), "differ in other axes than 0"),
    "broadcast_to": (lambda x: ops.broadcast_to(x, (4, 2)), "does not broadcast to (4, 2)"),
    "labels": (
        lambda x: ops.cross_entropy(x, np.ones(4)),
        "neither probabilities nor class indices",
    ),
    "gather": (lambda x: ops.gather(x, np.ones((3, 3)), 1), "in all axes but 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_shapes_are_told_before_anything_is_computed(x, name):
    make, words = BAD[name]
    with pytest.raises(ValueError) as caught:
        value(make(x), {x: VALUES})
    assert words in str(caught.value)
    assert f"made at {__file__}:" in str(caught.value)


def test_bad_arguments_are_told_where_they_stand(x):
    for combine in (ops.subtract, lambda a, b: a + b, lambda a, b: a**b, lambda a, b: b * a):
        with pytest.raises(TypeError, match="a node, a number or an array, not 'two'"):
            combine(x, "two")
    with pytest.raises(TypeError, match="hint: gather"):
        x[np.array([1, 2])]
    with pytest.raises(ValueError, match="none is below 0"):
        ops.pad(x, ((-1, 0),))
    with pytest.raises(ValueError, match="reduction is 'max', not one of mean, sum, none"):
        ops.mse(x, x, "max")
    with pytest.raises(ValueError, match="hint: 0 up to, but not, 1"):
        ops.dropout(x, 1.0, 7)


def test_value_and_grad_of_a_plain_function():
    value, (dx, dy) = ops.value_and_grad(lambda a, b: ops.sum(a * a * b))(VALUES, np.ones(3))
    assert value == np.sum(VALUES**2)
    np.testing.assert_allclose(dx, 2 * VALUES)
    np.testing.assert_allclose(dy, (VALUES**2).sum(0))


def test_the_gradient_is_zero_for_what_is_not_used():
    _, (_, unused) = ops.value_and_grad(lambda a, b: a.sum())(VALUES, np.ones(3))
    assert unused.tolist() == [0, 0, 0]


def test_the_jacobian_of_softmax():
    point = np.array([0.5, -1.0, 2.0])
    p = np.exp(point) / np.exp(point).sum()
    np.testing.assert_allclose(ops.jacobian(ops.softmax)(point), np.diag(p) - np.outer(p, p))


def test_a_product_with_the_hessian():
    product = ops.hessian_vector_product(lambda x: x**3)(VALUES, np.full((2, 3), 2.0))
    np.testing.assert_allclose(product, 6 * VALUES * 2)


def test_a_checkpoint_changes_neither_values_nor_gradients(x):
    w = ops.variable("w")

    def net(keep):
        first = keep(ops.tanh(x @ w))
        second = keep(ops.sigmoid(first @ w) * first)
        return ops.sum(second * second)

    feeds = {x: VALUES[:, :2], w: np.array([[0.3, -0.4], [0.5, 0.7]])}
    plain, saved = net(lambda node: node), net(ops.checkpoint)
    assert len(autodiff.find_topo_sort([saved])) < len(autodiff.find_topo_sort([plain]))
    results = []
    for loss in (plain, saved):
        grads = autodiff.gradients(loss, [x, w])
        second = autodiff.gradients(ops.sum(grads[1] * grads[1]), [w])
        results.append(Executor([loss, *grads, *second]).run(dict(feeds)))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_philox_gives_the_published_words():
    """Of a counter and a key of zeros; by arithmetic of Python's integers for others."""
    assert (
        " ".join(f"{word:08x}" for word in philox(4, 0, 0)) == "6627e8d5 e169c58d bc57ac4c 9b00dbd8"
    )
    for seed, draw, block in [(2**64 - 1, 2**64 - 1, 0), (0x0123456789ABCDEF, 5, 3), (1, 2**33, 9)]:
        assert philox(4 * block + 4, seed, draw)[-4:].tolist() == slow_philox(seed, draw, block)


def slow_philox(seed, draw, block):
    """The four words of one block."""
    mask = 2**32 - 1
    words = [block & mask, block >> 32, draw & mask, draw >> 32]
    keys = [seed & mask, seed >> 32]
    for _ in range(10):
        a, b = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [b >> 32 ^ words[1] ^ keys[0], b & mask, a >> 32 ^ words[3] ^ keys[1], a & mask]
        keys = [(keys[0] + 0x9E3779B9) & mask, (keys[1] + 0xBB67AE85) & mask]
    return words


def test_random_numbers_depend_on_the_seed_and_the_run(x):
    runs = [value(node, {}) for node in [ops.normal((1000,), seed=7)] for _ in range(2)]
    again = value(ops.normal((1000,), seed=7), {})
    assert np.array_equal(runs[0], again) and not np.array_equal(runs[0], runs[1])
    assert not np.array_equal(again, value(ops.normal((1000,), seed=8), {}))
    # A draw of more numbers begins with the same ones.
    assert np.array_equal(value(ops.uniform((10,), 3), {}), value(ops.uniform((99,), 3), {})[:10])


def test_random_numbers_are_distributed_as_they_say():
    size = 100_000
    uniform = value(ops.uniform((size,), 1, low=-1, high=3), {})
    assert uniform.min() >= -1 and uniform.max() < 3 and abs(uniform.mean() - 1) < 0.02
    normal = value(ops.normal((size,), 2, mean=5, deviation=2), {})
    assert abs(normal.mean() - 5) < 0.03 and abs(normal.std() - 2) < 0.02
    assert abs(np.mean(np.abs(normal - 5) < 2) - 0.6827) < 0.01


def test_dropout_uses_one_mask_for_the_value_and_the_gradient(x):
    node = ops.dropout(x, 0.25, seed=5)
    (grad,) = autodiff.gradients(node, [x])
    ones = np.ones((100, 100))
    got, slope = Executor([node, grad]).run({x: ones})
    assert np.array_equal(got, slope)
    assert set(np.unique(got)) == {0, 1 / 0.75} and abs(np.mean(got > 0) - 0.75) < 0.02


def test_a_checkpoint_keeps_the_mask_of_its_value(x):
    """Also where the value ran alone before, so that the mask is another one each time."""
    node = ops.checkpoint(ops.dropout(ops.exp(x), 0.5, seed=3) * 2)
    (grad,) = autodiff.gradients(ops.sum(node), [x])
    feeds = {x: np.zeros(64)}
    Executor([node]).run(dict(feeds))
    for _ in range(3):
        got, slope = Executor([node, grad]).run(dict(feeds))
        assert np.array_equal(got, slope) and 0 < np.count_nonzero(got) < 64


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda x: ops.cross_entropy(x, np.array([3, 0])),
            "cross_entropy: index 3 is not among 0 .. 2",
        ),
        (lambda x: ops.one_hot(np.array([-1]), 4), "one_hot: index -1 is not among 0 .. 3"),
        (lambda x: ops.gather(x, np.array([[2], [5]]), 1), "gather: index 5 is not among 0 .. 2"),
        (lambda x: ops.embedding(x, np.array([2])), "embedding: index 2 is not among 0 .. 1"),
    ],
)
def test_an_index_that_names_nothing_is_told(x, make, words):
    with pytest.raises(IndexError) as caught:
        value(make(x) + 0 * ops.sum(x), {x: VALUES})
    assert words in str(caught.value) and f"made at {__file__}:" in str(caught.value)


def test_no_gradient_flows_through_stop_gradient(x):
    (grad,) = autodiff.gradients(ops.sum(x * ops.stop_gradient(x)), [x])
    np.testing.assert_allclose(value(grad, {x: VALUES}), VALUES)
