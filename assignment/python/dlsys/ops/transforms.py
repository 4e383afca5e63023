"""Functions of functions: gradients, Jacobians, products with Hessians; and checkpoints."""

import functools

import numpy as np

from dlsys.autodiff import Executor, Variable, find_topo_sort, gradients, mul_op
from dlsys.executor import dtype_of

from .base import TensorOp, as_node
from .reduction import sum_op


def value_and_grad(function):
    """A function of arrays that returns function's value and its gradients, computed by numpy.

    `function` takes nodes and returns a node; it is called anew each time, so that it may decide by
    Python, though not by values. Of a value of many elements the gradients are those of its sum.

        value, (dx, dy) = value_and_grad(lambda x, y: (x * y).sum())(a, b)
    """

    @functools.wraps(function)
    def call(*arrays):
        variables, feeds = _fed(arrays)
        node = as_node(function(*variables))
        value, *grads = _run([node, *_of_all(node, variables)], feeds)
        return value, tuple(grads)

    return call


def jacobian(function):
    """A function of one array x that returns the Jacobian: of shape y.shape + x.shape.

    It runs the graph of the gradient once for each element of y = function(x).
    """

    @functools.wraps(function)
    def call(array):
        (x,), feeds = _fed([array])
        y, weights = as_node(function(x)), Variable(name="weights")
        (value,) = _run([y], feeds)
        executor = Executor(_of_all(sum_op(mul_op(y, weights)), [x]))
        rows = np.zeros((value.size, *np.shape(array)))
        for i in range(value.size):
            chosen = np.zeros(value.size)
            chosen[i] = 1
            (rows[i],) = executor.run({**feeds, weights: chosen.reshape(value.shape)})
        return rows.reshape(value.shape + np.shape(array))

    return call


def hessian_vector_product(function):
    """A function of arrays x and v of one shape: the Hessian of sum(function(x)), times v.

    It is the gradient of the product of the gradient with v: the Hessian is never made.
    """

    @functools.wraps(function)
    def call(array, vector):
        (x, v), feeds = _fed([array, vector])
        (grad,) = _of_all(as_node(function(x)), [x])
        return _run(_of_all(sum_op(mul_op(grad, v)), [x]), feeds)[0]

    return call


def _fed(arrays):
    variables = [Variable(name="x%d" % i) for i in range(len(arrays))]
    values = [np.asarray(array, dtype=np.float64) for array in arrays]
    return variables, dict(zip(variables, values))


def _of_all(node, variables):
    """The gradients, zero where the node does not depend on a variable."""
    known = set(find_topo_sort([node]))
    used = iter(gradients(node, [v for v in variables if v in known]))
    return [next(used) if v in known else v * 0 for v in variables]


def _run(nodes, feeds):
    used = set(find_topo_sort(nodes))
    return Executor(nodes).run({node: value for node, value in feeds.items() if node in used})


class CheckpointOp(TensorOp):
    """The value of a node. What it comes from is not kept, but computed again for gradients."""

    label = "Checkpoint({})"
    samples = (((3, 4),),)

    def __call__(self, node):
        """From the nearest checkpoints and fed values on, all is computed inside of one node."""
        inner, edge = _up_to_checkpoints(node)
        made = TensorOp.__call__(self, *edge, inner=inner, result=node)
        made.name = self.label.format(node.name)
        return made

    def forward(self, node, *values):
        known = dict(zip(node.inputs, values))
        for each in node.attributes["inner"]:
            known[each] = each.op.forward(each, *[known[i] for i in each.inputs])
        return known[node.attributes["result"]]

    def lower(self, node, build, *inputs):
        for each in node.attributes["inner"]:
            build.lower(each)
        return build.values[node.attributes["result"]]

    def shape(self, node, *shapes):
        known = dict(zip(node.inputs, shapes))
        for each in node.attributes["inner"]:
            known[each] = each.op.infer_shape(each, [known[i] for i in each.inputs])
        return known[node.attributes["result"]]

    def infer_dtype(self, node, dtypes):
        known = dict(zip(node.inputs, dtypes))
        for each in node.attributes["inner"]:
            known[each] = dtype_of(each, [known[i] for i in each.inputs])
        return known[node.attributes["result"]]

    def gradient(self, node, grad):
        """Gradients through a copy of what is inside, which nothing but they will read."""
        copies = {edge: Variable(name=edge.name) for edge in node.inputs}
        new_grad = Variable(name="output_grad")
        for each in node.attributes["inner"]:
            copies[each] = _copy(each, copies)
        wrt = [copies[edge] for edge in node.inputs]
        found = gradients(sum_op(mul_op(copies[node.attributes["result"]], new_grad)), wrt)
        real = {copies[edge]: edge for edge in node.inputs}
        real[new_grad] = grad
        for each in find_topo_sort(found):
            each.inputs = [real.get(i, i) for i in each.inputs]
        return [real.get(each, each) for each in found]


def _up_to_checkpoints(node):
    """(nodes that a checkpoint computes, inputs first; what these take from outside)."""
    edge, inner = [], []
    known = set()

    def is_edge(each):
        # What was drawn is kept: drawn again, it would be another value.
        is_kept = isinstance(each.op, CheckpointOp) or getattr(each.op, "draws", False)
        return each.op.is_fed or (is_kept and each is not node)

    stack = [(node, False)]
    while stack:
        each, is_done = stack.pop()
        if is_done:
            inner.append(each)
        elif each not in known:
            known.add(each)
            if is_edge(each):
                edge.append(each)
            else:
                stack.append((each, True))
                stack.extend((i, False) for i in reversed(each.inputs))
    return inner, edge


def _copy(node, copies):
    """A node as this one, of copies of its inputs."""
    made = object.__new__(type(node))
    made.__dict__.update(node.__dict__)
    made.inputs = [copies[i] for i in node.inputs]
    return made


checkpoint_op = CheckpointOp()
