"""Evaluates graphs node by node on numpy, and checks gradients against finite differences.

It needs neither shapes nor an executor, so part 1 can be tested before part 2 is written.
"""

import numpy as np

from .autodiff import Variable

#: What is said of an op that leaves its output as it was.
_NOT_WRITTEN = (
    "%s.compute: the output was never written; hint: output_val[...] = values writes into it, "
    "output_val = values binds the name to another array"
)


class _Output:
    """Stands in for output_val: keeps what an op writes, whatever its shape."""

    value = None

    def __setitem__(self, index, value):
        self.value = np.array(value, dtype=np.float64)


def _post_order(nodes):
    """What `nodes` depend on, inputs first; independent of find_topo_sort."""
    order, seen = [], set()
    stack = [(node, False) for node in reversed(nodes)]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((i, False) for i in reversed(node.inputs))
    return order


def evaluate(nodes, feed_dict):
    """The float64 values of nodes.

    Args:
        nodes: a list of nodes.
        feed_dict: node -> numpy array, for every placeholder among what they depend on.

    Returns:
        A list of numpy arrays.

    Raises:
        ValueError: an op's compute writes nothing into output_val.
    """
    values = {node: np.asarray(value, dtype=np.float64) for node, value in feed_dict.items()}
    for node in _post_order(nodes):
        if node not in values:
            output = _Output()
            node.op.compute(node, [values[i] for i in node.inputs], output, use_numpy=True)
            if output.value is None:
                raise ValueError(_NOT_WRITTEN % type(node.op).__name__)
            values[node] = output.value
    return [values[node] for node in nodes]


def numeric_gradient(node, feed_dict, wrt, weights, step=1e-6):
    """Central differences of sum(weights * node) with respect to the fed node `wrt`.

    Args:
        node: the node to differentiate.
        feed_dict: node -> float64 array.
        wrt: a node of feed_dict.
        weights: array of the shape of the node's value.
        step: distance of the differences; the error is about step ** 2.

    Returns:
        Array of the shape of feed_dict[wrt].
    """
    point = np.array(feed_dict[wrt], dtype=np.float64)
    result = np.zeros(point.shape)
    for index in np.ndindex(point.shape):
        sides = []
        for sign in (1, -1):
            moved = point.copy()
            moved[index] += sign * step
            (value,) = evaluate([node], {**feed_dict, wrt: moved})
            sides.append(np.sum(weights * value))
        result[index] = (sides[0] - sides[1]) / (2 * step)
    return result


def check_op(node, feed_dict, seed=0, tolerance=1e-5):
    """Compares the gradient method of one op with finite differences.

    Args:
        node: the op applied to nodes of feed_dict alone.
        feed_dict: node -> float64 array, in the order of node.inputs.
        seed: of the random gradient of the output, which catches what is right only for ones.
        tolerance: largest difference, relative to 1 + the largest gradient.

    Raises:
        AssertionError: with the node and the first differing element.
    """
    (value,) = evaluate([node], feed_dict)
    weights = np.random.RandomState(seed).uniform(0.5, 1.5, value.shape)
    output_grad = Variable(name="output_grad")
    grads = node.op.gradient(node, output_grad)
    assert isinstance(grads, list), "the gradient of %s is a %s, not a list of nodes" % (
        node,
        type(grads).__name__,
    )
    got = evaluate(grads, {**feed_dict, output_grad: weights})
    _compare(node, feed_dict, got, weights, tolerance)


def check_gradients(gradients, node, feed_dict, seed=0, tolerance=1e-5):
    """Compares gradients(weights * node) with finite differences, for every fed node.

    Args:
        gradients: the function under test, `autodiff.gradients`.
        node: the node to differentiate. Every node of feed_dict must be an ancestor.
        feed_dict: node -> float64 array.
        seed: of the random weights, which catch gradients that are right only for ones.
        tolerance: largest difference, relative to 1 + the largest gradient.

    Raises:
        AssertionError: with the node and the first differing element.
    """
    (value,) = evaluate([node], feed_dict)
    weights = np.random.RandomState(seed).uniform(0.5, 1.5, value.shape)
    weights_node = Variable(name="weights")
    wrt = list(feed_dict)
    grads = gradients(node * weights_node, wrt)
    feeds = {**feed_dict, weights_node: weights}
    _compare(node, feed_dict, evaluate(grads, feeds), weights, tolerance)


def _compare(node, feed_dict, gradients, weights, tolerance):
    """Raises AssertionError unless gradients are those of sum(weights * node)."""
    for fed, got in zip(feed_dict, gradients):
        expected = numeric_gradient(node, feed_dict, fed, weights)
        assert got.shape == expected.shape, (
            "gradient of %s with respect to %s: shape %s, not %s"
            % (node, fed, got.shape, expected.shape)
        )
        wrong = np.abs(got - expected) > tolerance * (1 + np.abs(expected).max(initial=0))
        if wrong.any():
            first = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise AssertionError(
                "gradient of %s with respect to %s: %d of %d elements differ, first %s: "
                "got %g, expected %g"
                % (node, fed, wrong.sum(), wrong.size, first, got[first], expected[first])
            )
