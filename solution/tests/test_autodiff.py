"""Part 1: gradients on numpy, against finite differences. Needs neither shapes nor a GPU."""

import numpy as np

from dlsys import autodiff as ad
from dlsys.gradcheck import check_gradients, check_op, evaluate


def uniform(seed, *shape):
    return np.random.RandomState(seed).uniform(-2, 2, shape)


def check(build, *values):
    """Compares the gradients of build(*variables) with finite differences."""
    variables = [ad.Variable(name="x%d" % i) for i in range(len(values))]
    check_gradients(ad.gradients, build(*variables), dict(zip(variables, values)))


def check_one(build, *values):
    """The same for the gradient method of the one op that `build` applies."""
    variables = [ad.Variable(name="x%d" % i) for i in range(len(values))]
    check_op(build(*variables), dict(zip(variables, values)))


# 1.1 topological order -----------------------------------------------------------------------


def test_the_order_is_depth_first_and_inputs_come_first():
    x, y = ad.Variable(name="x"), ad.Variable(name="y")
    product = x * y
    total = product + x
    assert ad.find_topo_sort([total]) == [x, y, product, total]


def test_a_node_used_twice_stands_in_the_order_once():
    x = ad.Variable(name="x")
    square = x * x
    fourth = square * square
    assert ad.find_topo_sort([fourth, square]) == [x, square, fourth]


def test_a_graph_may_be_deeper_than_pythons_stack():
    node = x = ad.Variable(name="x")
    for _ in range(20000):
        node = node + 1
    order = ad.find_topo_sort([node])
    assert len(order) == 20001
    assert order[0] is x and order[-1] is node


# 1.2 to 1.5 gradients of the ops ---------------------------------------------------------------


def test_gradient_of_add_and_multiply():
    check_one(lambda a, b: a + b, uniform(0, 3, 4), uniform(1, 3, 4))
    check_one(lambda a, b: a * b, uniform(2, 3, 4), uniform(3, 3, 4))


def test_gradient_of_constants():
    check_one(lambda a: a + 3, uniform(4, 5))
    check_one(lambda a: a * -2.5, uniform(5, 2, 3))


def test_gradient_of_a_broadcast_operand_has_the_operands_shape():
    for shape in ((4,), (1,), (1, 4), (3, 1)):
        check_one(lambda a, b: a + b, uniform(6, 3, 4), uniform(7, *shape))
        check_one(lambda a, b: a * b, uniform(8, *shape), uniform(9, 3, 4))


def test_gradient_of_matmul_for_all_four_transposes():
    for trans_a in (False, True):
        for trans_b in (False, True):
            check_one(
                lambda a, b: ad.matmul_op(a, b, trans_a, trans_b),
                uniform(10, *((4, 3) if trans_a else (3, 4))),
                uniform(11, *((5, 4) if trans_b else (4, 5))),
            )


def test_gradient_of_reduce_sum_and_broadcast():
    check_one(ad.reducesumaxiszero_op, uniform(12, 3, 4))
    check_one(ad.reducesumaxiszero_op, uniform(13, 5))
    check_one(ad.broadcastto_op, uniform(14, 4), uniform(15, 3, 4))


def test_gradient_of_relu():
    check_one(ad.relu_op, uniform(16, 4, 5))


def test_gradient_of_relu_is_zero_at_zero():
    x, g = ad.Variable(name="x"), ad.Variable(name="g")
    node = ad.relu_op(x)
    grads = node.op.gradient(node, g)
    (value,) = evaluate(grads, {x: np.array([-1.0, 0.0, 1.0]), g: np.ones(3)})
    np.testing.assert_array_equal(value, [0.0, 0.0, 1.0])


def test_gradient_of_softmax_cross_entropy_is_that_of_a_mean():
    logits, y_, g = (ad.Variable(name=name) for name in ("logits", "y_", "g"))
    node = ad.softmaxcrossentropy_op(logits, y_)
    grads = node.op.gradient(node, g)
    values, labels = uniform(18, 6, 4), ad.softmax_func(uniform(17, 6, 4))
    got = evaluate(grads[:1], {logits: values, y_: labels, g: np.array([3.0])})[0]
    np.testing.assert_allclose(got, 3 * (ad.softmax_func(values) - labels) / 6, atol=1e-12)


# 1.6 the reverse walk --------------------------------------------------------------------------


def test_gradients_of_values_used_twice_add_up():
    check(lambda a: a * a, uniform(19, 4))
    check(lambda a: a + a * a + 3 * a, uniform(20, 4))


def test_gradients_of_a_diamond():
    check(lambda a, b: (a * b) * (a + b), uniform(21, 3, 2), uniform(22, 3, 2))


def test_gradients_of_two_layers():
    check(
        lambda x, w, v: ad.matmul_op(ad.relu_op(ad.matmul_op(x, w)), v),
        uniform(23, 3, 4),
        uniform(24, 4, 5),
        uniform(25, 5, 2),
    )


def test_gradients_come_in_the_order_asked_for():
    a, b = ad.Variable(name="a"), ad.Variable(name="b")
    grads = ad.gradients(a * b, [b, a])
    values = evaluate(grads, {a: np.array([2.0]), b: np.array([3.0])})
    assert [float(value[0]) for value in values] == [2.0, 3.0]


def test_gradients_with_respect_to_a_stranger_raise_keyerror():
    a, stranger = ad.Variable(name="a"), ad.Variable(name="stranger")
    try:
        ad.gradients(a * 2, [stranger])
    except KeyError:
        return
    raise AssertionError("a KeyError was expected")


def test_gradients_of_a_deep_graph():
    node = x = ad.Variable(name="x")
    for _ in range(5000):
        node = node + 1
    (grad,) = ad.gradients(node, [x])
    (value,) = evaluate([grad], {x: np.array([2.0])})
    assert value == 1
