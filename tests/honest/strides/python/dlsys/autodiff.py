"""Automatic differentiation of static graphs, and an executor that runs them.

A graph is made of nodes. A node is an operation (op) on other nodes:

    x = Variable(name="x")
    y = x * x + 3
    grad, = gradients(y, [x])
    Executor([y, grad]).run({x: np.ones(5)})

The file reads from top to bottom: nodes, ops, gradients, executor.
"""

import sys
from collections import defaultdict
from functools import reduce

import numpy as np

# find_topo_sort is recursive.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 100000))

from . import gpu_op, ndarray

#: A name made of longer ones would grow with the depth of the graph.
_LONGEST_OPERAND = 60


class Node:
    """A node of the graph: one value, computed by `op` from the values of `inputs`."""

    def __init__(self):
        #: The nodes whose values this one is computed from.
        self.inputs = []
        #: The Op that computes it.
        self.op = None
        #: The number in `node + 3` and `node * 3`.
        self.const_attr = None
        self.name = ""

    def __add__(self, other):
        return add_op(self, other) if isinstance(other, Node) else add_byconst_op(self, other)

    def __mul__(self, other):
        return mul_op(self, other) if isinstance(other, Node) else mul_byconst_op(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __str__(self):
        return self.name

    __repr__ = __str__


def Variable(name):
    """A node whose value is given when the graph runs."""
    node = placeholder_op()
    node.name = name
    return node


def _short(node):
    """The node's name as a part of another name."""
    return node.name if len(node.name) <= _LONGEST_OPERAND else "..."


class Op:
    """What a node does. There is one object of each class; nodes hold the operands."""

    #: Whether element i of the result depends on element i of the inputs alone, so that
    #: the result may take the memory of an input of its shape.
    elementwise = False

    def __call__(self):
        """A new node that applies this op."""
        node = Node()
        node.op = self
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        """Computes the node's value into output_val.

        Args:
            node: the node.
            input_vals: values of node.inputs; numpy arrays, or NDArrays if not use_numpy.
            output_val: array of the node's shape, to be overwritten.
            use_numpy: whether to compute with numpy, or with gpu_op.
        """
        raise NotImplementedError

    def gradient(self, node, output_grad):
        """Nodes of the gradients with respect to each input, given that of the output."""
        raise NotImplementedError

    def infer_shape(self, node, input_shapes):
        """The shape of the node's value, a tuple, from the tuples of its inputs."""
        raise NotImplementedError


def _gpu_tile(small, out):
    """Repeats `small` along leading axes of `out`; one number fills any shape."""
    size = ndarray.size_of(small.shape)
    if size != 1 and out.shape[len(out.shape) - len(small.shape) :] != small.shape:
        raise ValueError(
            "on the GPU, shape %s does not broadcast to %s; hint: only leading axes are added"
            % (small.shape, out.shape)
        )
    copies = ndarray.size_of(out.shape) // max(size, 1)
    gpu_op.broadcast_to(ndarray.view(small, (size,)), ndarray.view(out, (copies, size)))


def _gpu_broadcast(kernel, a, b, out):
    """kernel(a, b, out) where a, b or neither lacks leading axes of out, or is one number.

    The smaller operand is first tiled into out, so out may not be the memory of the larger.
    """
    if a.shape == b.shape:
        kernel(a, b, out)
        return
    large, small = (a, b) if a.shape == out.shape else (b, a)
    if large.shape != out.shape:
        raise ValueError(
            "on the GPU, shapes %s and %s don't combine; hint: only leading axes are added"
            % (a.shape, b.shape)
        )
    _gpu_tile(small, out)
    kernel(large, out, out)


class AddOp(Op):
    """a + b, with numpy's broadcasting."""

    elementwise = True

    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "(%s+%s)" % (_short(node_A), _short(node_B))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        a, b = input_vals
        if use_numpy:
            output_val[...] = a + b
        else:
            _gpu_broadcast(gpu_op.matrix_elementwise_add, a, b, output_val)

    def gradient(self, node, output_grad):
        """Where an input was broadcast, its gradient is summed back: see unbroadcast_op."""
        return list(map(lambda x: unbroadcast_op(output_grad, x), node.inputs))

    def infer_shape(self, node, input_shapes):
        """Equal shapes give that shape; others broadcast: see broadcast_rule."""
        return reduce(broadcast_rule, input_shapes)


class AddByConstOp(Op):
    """a + c, where c is a number."""

    elementwise = True

    def __call__(self, node_A, const_val):
        node = Op.__call__(self)
        node.const_attr = const_val
        node.inputs = [node_A]
        node.name = "(%s+%s)" % (_short(node_A), str(const_val))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        if use_numpy:
            output_val[...] = input_vals[0] + node.const_attr
        else:
            gpu_op.matrix_elementwise_add_by_const(input_vals[0], node.const_attr, output_val)

    def gradient(self, node, output_grad):
        return [output_grad]

    def infer_shape(self, node, input_shapes):
        return same_shape(input_shapes)


class MulOp(Op):
    """a * b, element by element, with numpy's broadcasting."""

    elementwise = True

    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "(%s*%s)" % (_short(node_A), _short(node_B))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        a, b = input_vals
        if use_numpy:
            output_val[...] = a * b
        else:
            _gpu_broadcast(gpu_op.matrix_elementwise_multiply, a, b, output_val)

    def gradient(self, node, output_grad):
        """Where an input was broadcast, its gradient is summed back: see unbroadcast_op."""
        x, y = node.inputs
        return [unbroadcast_op(y * output_grad, x), unbroadcast_op(x * output_grad, y)]

    def infer_shape(self, node, input_shapes):
        return reduce(broadcast_rule, input_shapes)


class MulByConstOp(Op):
    """c * a, where c is a number."""

    elementwise = True

    def __call__(self, node_A, const_val):
        node = Op.__call__(self)
        node.const_attr = const_val
        node.inputs = [node_A]
        node.name = "(%s*%s)" % (_short(node_A), str(const_val))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        if use_numpy:
            output_val[...] = input_vals[0] * node.const_attr
        else:
            gpu_op.matrix_elementwise_multiply_by_const(input_vals[0], node.const_attr, output_val)

    def gradient(self, node, output_grad):
        return [node.const_attr * output_grad]

    def infer_shape(self, node, input_shapes):
        return same_shape(input_shapes)


class MatMulOp(Op):
    """op(A) @ op(B) of two matrices; op transposes where its flag is True."""

    def __call__(self, node_A, node_B, trans_A=False, trans_B=False):
        node = Op.__call__(self)
        node.matmul_attr_trans_A = trans_A
        node.matmul_attr_trans_B = trans_B
        node.inputs = [node_A, node_B]
        node.name = "MatMul(%s,%s,%s,%s)" % (_short(node_A), _short(node_B), trans_A, trans_B)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        a, b = input_vals
        trans_a = node.matmul_attr_trans_A is True
        trans_b = node.matmul_attr_trans_B is True
        if use_numpy:
            output_val[...] = np.matmul(a.T if trans_a else a, b.T if trans_b else b)
        else:
            gpu_op.matrix_multiply(a, trans_a, b, trans_b, output_val)

    def gradient(self, node, output_grad):
        """One pair of products for each of the four cases of the flags.

        For Y = A B: dA = dY B^T, dB = A^T dY. No case needs a transpose of its own: the
        flags of matmul_op do it.
        """
        a, b = node.inputs
        cases = {
            (False, False): lambda g: [matmul_op(g, b, trans_B=True), matmul_op(a, g, trans_A=True)],
            (False, True): lambda g: [matmul_op(g, b), matmul_op(g, a, trans_A=True)],
            (True, False): lambda g: [matmul_op(b, g, trans_B=True), matmul_op(a, g)],
            (True, True): lambda g: [matmul_op(b, g, True, True), matmul_op(g, a, True, True)],
        }
        return cases[node.matmul_attr_trans_A, node.matmul_attr_trans_B](output_grad)

    def infer_shape(self, node, input_shapes):
        """(rows of op(A), columns of op(B)).

        Raises:
            ValueError: an input is not a matrix, or the inner sizes differ.
        """
        try:
            # numpy knows the rule: a product of arrays that take no memory.
            a, b = (np.broadcast_to(np.float32(0), shape) for shape in input_shapes)
            a = a.T if node.matmul_attr_trans_A else a
            b = b.T if node.matmul_attr_trans_B else b
            assert a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
        except AssertionError:
            raise ValueError("can't multiply %s and %s" % tuple(input_shapes)) from None
        return a.shape[0], b.shape[1]


class PlaceholderOp(Op):
    """A value that feed_dict provides."""

    def compute(self, node, input_vals, output_val, use_numpy=True):
        raise AssertionError("the value of placeholder %s is provided by feed_dict" % node.name)

    def gradient(self, node, output_grad):
        return None

    def infer_shape(self, node, input_shapes):
        raise AssertionError("the shape of placeholder %s is provided by feed_dict" % node.name)


class ZerosLikeOp(Op):
    """Zeros in the shape of a."""

    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "Zeroslike(%s)" % _short(node_A)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        if use_numpy:
            output_val[...] = np.zeros(input_vals[0].shape)
        else:
            gpu_op.array_set(output_val, 0)

    def gradient(self, node, output_grad):
        return [zeroslike_op(node.inputs[0])]

    def infer_shape(self, node, input_shapes):
        return same_shape(input_shapes)


class OnesLikeOp(Op):
    """Ones in the shape of a."""

    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "Oneslike(%s)" % _short(node_A)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        if use_numpy:
            output_val[...] = np.ones(input_vals[0].shape)
        else:
            gpu_op.array_set(output_val, 1)

    def gradient(self, node, output_grad):
        return [zeroslike_op(node.inputs[0])]

    def infer_shape(self, node, input_shapes):
        return same_shape(input_shapes)


class ReduceSumAxisZeroOp(Op):
    """The sum over axis 0. The sum of a vector has shape (1,)."""

    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "ReduceSumAxisZero(%s)" % _short(node_A)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        (a,) = input_vals
        if use_numpy:
            output_val[...] = np.sum(a, axis=0, keepdims=a.ndim == 1)
        else:
            gpu_op.reduce_sum_axis_zero(a, output_val)

    def gradient(self, node, output_grad):
        """Every element of the input counts once in the sum."""
        return [broadcastto_op(output_grad, node.inputs[0])]

    def infer_shape(self, node, input_shapes):
        """The shape without its first axis; (1,) for a vector."""
        _, *rest = input_shapes[0]
        return tuple(rest) if rest else (1,)


class BroadcastToOp(Op):
    """a, repeated along leading axes until it has the shape of b."""

    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "BroadcastTo(%s,%s.shape)" % (_short(node_A), _short(node_B))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        a, b = input_vals
        if use_numpy:
            output_val[...] = np.broadcast_to(a, b.shape)
        else:
            _gpu_tile(a, output_val)

    def gradient(self, node, output_grad):
        """b lends its shape alone: its gradient is zero."""
        # The sum over the new axis, whatever its length: what unbroadcast_op does.
        return [unbroadcast_op(output_grad, node.inputs[0]), zeroslike_op(node.inputs[1])]

    def infer_shape(self, node, input_shapes):
        _, target = input_shapes
        return target


class UnbroadcastOp(Op):
    """The gradient g of a broadcast value, summed back to the shape of a.

    Broadcasting repeats a; each repetition contributes to the gradient of a, so they are
    summed. Shapes are known only when the graph runs: if g has the shape of a, this copies.
    """

    elementwise = True

    def __call__(self, node_grad, node_A):
        node = Op.__call__(self)
        node.inputs = [node_grad, node_A]
        node.name = "Unbroadcast(%s,%s.shape)" % (_short(node_grad), _short(node_A))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        grad, a = input_vals
        if use_numpy:
            output_val[...] = _numpy_unbroadcast(grad, a.shape)
        else:
            _gpu_unbroadcast(grad, output_val)

    def gradient(self, node, output_grad):
        grad, a = node.inputs
        return [broadcastto_op(output_grad, grad), zeroslike_op(a)]

    def infer_shape(self, node, input_shapes):
        return input_shapes[1]


def _numpy_unbroadcast(grad, shape):
    """grad summed over the axes that broadcasting added to `shape` or stretched from 1."""
    added = grad.ndim - len(shape)
    axes = tuple(range(added)) + tuple(
        added + i for i, extent in enumerate(shape) if extent == 1 and grad.shape[added + i] != 1
    )
    return grad.sum(axis=axes).reshape(shape)


def _gpu_unbroadcast(grad, out):
    """_numpy_unbroadcast where the axes to be summed are the leading ones, or all."""
    size = ndarray.size_of(out.shape)
    if grad.shape == out.shape:
        if grad.handle.contents.data != out.handle.contents.data:
            grad.copyto(out)
    elif size == 1 or grad.shape[len(grad.shape) - len(out.shape) :] == out.shape:
        rows = ndarray.size_of(grad.shape) // max(size, 1)
        gpu_op.reduce_sum_axis_zero(ndarray.view(grad, (rows, size)), ndarray.view(out, (size,)))
    else:
        raise ValueError(
            "on the GPU, a gradient of shape %s can't be summed to %s; "
            "hint: broadcast along leading axes only" % (grad.shape, out.shape)
        )


class DivideByRowsOp(Op):
    """a / N, where N is the length of axis 0 of a: what a mean over rows leaves in a gradient."""

    elementwise = True

    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "DivideByRows(%s)" % _short(node_A)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        (a,) = input_vals
        scale = 1.0 / max(a.shape[0], 1)
        if use_numpy:
            output_val[...] = a * scale
        else:
            gpu_op.matrix_elementwise_multiply_by_const(a, scale, output_val)

    def gradient(self, node, output_grad):
        return [dividebyrows_op(output_grad)]

    def infer_shape(self, node, input_shapes):
        return input_shapes[0]


def softmax_func(y):
    """Softmax of every row of a 2-D numpy array, stable for large values."""
    b = y - np.max(y, axis=1, keepdims=True)
    expb = np.exp(b)
    return expb / np.sum(expb, axis=1, keepdims=True)


class SoftmaxCrossEntropyOp(Op):
    """The mean over rows of -sum(labels * log(softmax(logits))), of shape (1,).

    The rows of labels are probabilities: they sum to 1.
    """

    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "SoftmaxXEntropy(%s,%s)" % (_short(node_A), _short(node_B))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        logits, labels = input_vals
        if use_numpy:
            shifted = logits - np.max(logits, axis=1, keepdims=True)
            log_softmax = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
            output_val[...] = np.mean(-np.sum(labels * log_softmax, axis=1), keepdims=True)
        else:
            gpu_op.softmax_cross_entropy(logits, labels, output_val)

    def gradient(self, node, output_grad):
        """With respect to the logits; labels are data, their gradient is taken as zero.

        The loss is a mean over N rows, so 1/N belongs into it: see dividebyrows_op.
        """
        logits, labels = node.inputs
        scaled = broadcastto_op(output_grad, logits) * (softmax_op(logits) + labels * -1.0)
        return [dividebyrows_op(scaled), zeroslike_op(labels)]

    def infer_shape(self, node, input_shapes):
        """(1,).

        Raises:
            ValueError: logits and labels are not matrices of one shape.
        """
        if len(set(input_shapes)) > 1 or len(input_shapes[0]) != 2:
            raise ValueError("softmax_cross_entropy of %s" % (input_shapes,))
        return (1,)


class SoftmaxOp(Op):
    """Softmax of every row of a matrix."""

    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "Softmax(%s)" % _short(node_A)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        if use_numpy:
            output_val[...] = softmax_func(input_vals[0])
        else:
            gpu_op.softmax(input_vals[0], output_val)

    def gradient(self, node, output_grad):
        # Training goes through SoftmaxCrossEntropyOp, which is stable where this is not.
        raise NotImplementedError("softmax has no gradient here; use softmaxcrossentropy_op")

    def infer_shape(self, node, input_shapes):
        return same_shape(input_shapes)


class ReluOp(Op):
    """max(x, 0)."""

    elementwise = True

    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "Relu(%s)" % _short(node_A)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        if use_numpy:
            output_val[...] = input_vals[0] * (input_vals[0] > 0)
        else:
            gpu_op.relu(input_vals[0], output_val)

    def gradient(self, node, output_grad):
        """See relu_gradient_op."""
        return [relu_gradient_op(*node.inputs, output_grad)]

    def infer_shape(self, node, input_shapes):
        return same_shape(input_shapes)


class ReluGradientOp(Op):
    """grad where x > 0, else 0. At x == 0 it is 0, on numpy and on the GPU."""

    elementwise = True

    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "ReluGradient(%s)" % _short(node_A)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        x, grad = input_vals
        if use_numpy:
            output_val[...] = np.where(x > 0, grad, 0)
        else:
            gpu_op.relu_gradient(x, grad, output_val)

    def gradient(self, node, output_grad):
        raise NotImplementedError("relu_gradient has no gradient here")

    def infer_shape(self, node, input_shapes):
        return same_shape(input_shapes)


add_op = AddOp()
mul_op = MulOp()
add_byconst_op = AddByConstOp()
mul_byconst_op = MulByConstOp()
matmul_op = MatMulOp()
placeholder_op = PlaceholderOp()
oneslike_op = OnesLikeOp()
zeroslike_op = ZerosLikeOp()
reducesumaxiszero_op = ReduceSumAxisZeroOp()
broadcastto_op = BroadcastToOp()
unbroadcast_op = UnbroadcastOp()
dividebyrows_op = DivideByRowsOp()
softmaxcrossentropy_op = SoftmaxCrossEntropyOp()
softmax_op = SoftmaxOp()
relu_op = ReluOp()
relu_gradient_op = ReluGradientOp()


def broadcast_rule(shape_a, shape_b):
    """The shape of a + b by numpy's rule: axes are matched from the last; 1 stretches.

    Raises:
        ValueError: the shapes don't broadcast.
    """
    rank = max(len(shape_a), len(shape_b))
    padded_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    padded_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    for extent_a, extent_b in zip(padded_a, padded_b):
        if extent_a != extent_b and 1 not in (extent_a, extent_b):
            raise ValueError("shapes %s and %s don't broadcast" % (shape_a, shape_b))
    return tuple(b if a == 1 else a for a, b in zip(padded_a, padded_b))


def find_topo_sort(node_list):
    """All nodes that node_list depends on, each after its inputs.

    The order is that of a depth-first search in post-order: node_list from left to right,
    inputs from left to right, each node once.
    """
    visited = set()
    topo_order = []
    for node in node_list:
        topo_sort_dfs(node, visited, topo_order)
    return topo_order


def topo_sort_dfs(node, visited, topo_order):
    """Appends `node` and what it depends on to topo_order, inputs first.

    A stack of its own instead of recursion: a graph may be deeper than Python's stack.

    Args:
        node: where to start.
        visited: set of the nodes that were already seen; updated.
        topo_order: list to append to.
    """
    if node not in visited:
        visited.add(node)
        for child in node.inputs:
            topo_sort_dfs(child, visited, topo_order)
        topo_order.append(node)


def sum_node_list(node_list):
    """One node for the sum of the nodes; a single node is returned as it is."""
    total = node_list[0]
    for node in node_list[1:]:
        total = total + node
    return total


def gradients(output_node, node_list):
    """Nodes of the gradients of output_node with respect to each node of node_list.

    Reverse-mode differentiation: walk the graph from the output to its inputs. The gradient
    of a node is the sum of what each of its uses contributes (sum_node_list), and it is
    complete once all its uses have been visited. That of the output itself is ones.

    Args:
        output_node: the node to be differentiated; the sum of its elements, if it has many.
        node_list: nodes it depends on.

    Returns:
        A list of nodes, in the order of node_list.

    Raises:
        KeyError: output_node does not depend on a node of node_list.
    """
    grads = defaultdict(list, {output_node: [oneslike_op(output_node)]})
    for node in reversed(find_topo_sort([output_node])):
        grads[node] = [sum_node_list(grads[node])]
        for child, grad in zip(node.inputs, node.op.gradient(node, grads[node][0]) or []):
            grads[child].append(grad)
    missing = [node for node in node_list if node not in grads]
    if missing:
        raise KeyError("%s does not depend on %s" % (output_node, missing))
    return [grads[node][0] for node in node_list]


def same_shape(shapes):
    """The one shape of element-wise ops."""
    return reduce(lambda first, other: first, shapes)


def lifetimes(order, wanted):
    """node -> (its position, the position of its last reader)."""
    ends = {node: position for position, node in enumerate(order)}
    for position, node in enumerate(order):
        ends.update((child, position) for child in node.inputs)
    ends.update((node, len(order)) for node in wanted)
    return {node: (position, ends[node]) for position, node in enumerate(order)}


class Executor:
    """Computes the values of nodes for given values of the placeholders.

    Attributes:
        eval_node_list: the nodes to be evaluated.
        ctx: the device; None is numpy.
        topo_order: every node needed, inputs first.
        node_to_shape_map: node -> shape, for the feed shapes of the last run.
        node_to_arr_map: node -> NDArray, on the GPU, for every node that is not fed.
        feed_shapes: node -> shape of what the last run fed.
    """

    def __init__(self, eval_node_list, ctx=None):
        self.eval_node_list = eval_node_list
        self.ctx = ctx
        self.topo_order = find_topo_sort(self.eval_node_list)
        self.node_to_shape_map = None
        self.node_to_arr_map = None
        self.feed_shapes = None

    def infer_shape(self, feed_shapes):
        """Fills self.node_to_shape_map for every node, the fed ones included.

        Args:
            feed_shapes: fed node -> shape.
        """
        def shape(node, known):
            if node in feed_shapes:
                return feed_shapes[node]
            return node.op.infer_shape(node, [known[i] for i in node.inputs])

        self.node_to_shape_map = reduce(
            lambda known, node: known.update({node: shape(node, known)}) or known, self.topo_order, {}
        )

    def memory_plan(self, feed_shapes):
        """Fills self.node_to_arr_map with an NDArray for every node that is not fed.

        Called when the feed shapes change, after infer_shape; run() itself never allocates.
        Memory is scarce on a GPU, and most values are read once: a node may take the memory
        of nodes that nobody reads any more. ndarray.view(base, shape) gives memory another
        shape. The nodes of eval_node_list are handed to the caller: each owns its memory.

        Args:
            feed_shapes: fed node -> shape.
        """
        # Colours an interval graph: a buffer may be taken once the last reader of its value has run.
        span = lifetimes(self.topo_order, self.eval_node_list)
        buffers = []  # [array, position until which it is read]
        self.node_to_arr_map = {}
        for node in filter(lambda n: n not in feed_shapes, self.topo_order):
            begin, end = span[node]
            shape = self.node_to_shape_map[node]
            size = ndarray.size_of(shape)
            fits = [b for b in buffers if b[1] < begin and ndarray.size_of(b[0].shape) >= size]
            if fits and node not in self.eval_node_list:
                best = min(fits, key=lambda b: ndarray.size_of(b[0].shape))
                best[1] = end
                self.node_to_arr_map[node] = ndarray.view(best[0], shape)
            else:
                buffers.append([ndarray.empty(shape, self.ctx), end])
                self.node_to_arr_map[node] = buffers[-1][0]

    def run(self, feed_dict, convert_to_numpy_ret_vals=False):
        """Computes the values of eval_node_list.

        Args:
            feed_dict: node -> value. On numpy, numpy arrays; on the GPU, NDArrays, used as
                they are, or numpy arrays, uploaded on every run.
            convert_to_numpy_ret_vals: whether to return numpy arrays on the GPU too.

        Returns:
            A list of values in the order of eval_node_list. NDArrays belong to the executor:
            the next run overwrites them.
        """
        values = self._feed(feed_dict)
        feed_shapes = {node: tuple(value.shape) for node, value in values.items()}
        self._check_all_fed(values)
        if feed_shapes != self.feed_shapes:
            self.feed_shapes = None
            self.infer_shape(feed_shapes)
            if ndarray.is_gpu_ctx(self.ctx):
                self.memory_plan(feed_shapes)
            self.feed_shapes = feed_shapes
        results = self._run_gpu(values) if ndarray.is_gpu_ctx(self.ctx) else self._run_numpy(values)
        if ndarray.is_gpu_ctx(self.ctx) and convert_to_numpy_ret_vals:
            return [value.asnumpy() for value in results]
        return results

    def _feed(self, feed_dict):
        """The fed values, numpy arrays uploaded if this executor is on a GPU."""
        on_gpu = ndarray.is_gpu_ctx(self.ctx)
        values = {}
        for node, value in feed_dict.items():
            if on_gpu and isinstance(value, np.ndarray):
                value = ndarray.array(value, ctx=self.ctx)
            wanted = ndarray.NDArray if on_gpu else np.ndarray
            assert isinstance(value, wanted), "feed_dict[%s] is a %s; this executor takes %s" % (
                node,
                type(value).__name__,
                wanted.__name__,
            )
            assert not on_gpu or value.ctx.device_type == self.ctx.device_type, (
                "feed_dict[%s] lies on %r, this executor runs on %r" % (node, value.ctx, self.ctx)
            )
            values[node] = value
        return values

    def _check_all_fed(self, values):
        for node in self.topo_order:
            assert node in values or node.op is not placeholder_op, (
                "feed_dict has no value for %s" % node
            )

    def _run_gpu(self, values):
        for node in self.topo_order:
            if node not in values:
                output = self.node_to_arr_map[node]
                inputs = [values[i] for i in node.inputs]
                node.op.compute(node, inputs, output, use_numpy=False)
                values[node] = output
        return [values[node] for node in self.eval_node_list]

    def _run_numpy(self, values):
        """As _run_gpu, on new arrays; each is dropped once its last reader has run."""
        readers = {}
        for node in self.topo_order:
            for input_node in node.inputs:
                readers[input_node] = readers.get(input_node, 0) + 1
        evaluated = set(self.eval_node_list)
        for node in self.topo_order:
            if node in values:
                continue
            output = np.empty(self.node_to_shape_map[node])
            node.op.compute(node, [values[i] for i in node.inputs], output, use_numpy=True)
            values[node] = output
            for input_node in node.inputs:
                readers[input_node] -= 1
                if readers[input_node] == 0 and input_node not in evaluated:
                    del values[input_node]
        return [values[node] for node in self.eval_node_list]
