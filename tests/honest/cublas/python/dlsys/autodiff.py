"""Automatic differentiation of static graphs, and an executor that runs them.

A graph is made of nodes. A node is an operation (op) on other nodes:

    x = Variable(name="x")
    y = x * x + 3
    grad, = gradients(y, [x])
    Executor([y, grad]).run({x: np.ones(5)})

The file reads from top to bottom: nodes, ops, gradients, executor.
"""

import numpy as np

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
        # y = a + b, so dy/da = 1 and dy/db = 1
        grad_A = unbroadcast_op(output_grad, node.inputs[0])
        grad_B = unbroadcast_op(output_grad, node.inputs[1])
        return [grad_A, grad_B]

    def infer_shape(self, node, input_shapes):
        """Equal shapes give that shape; others broadcast: see broadcast_rule."""
        shape_A = input_shapes[0]
        shape_B = input_shapes[1]
        if shape_A == shape_B:
            return shape_A
        else:
            return broadcast_rule(shape_A, shape_B)


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
        assert len(input_shapes) == 1
        return input_shapes[0]


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
        # y = a * b, so dy/da = b and dy/db = a
        grad_A = unbroadcast_op(output_grad * node.inputs[1], node.inputs[0])
        grad_B = unbroadcast_op(output_grad * node.inputs[0], node.inputs[1])
        return [grad_A, grad_B]

    def infer_shape(self, node, input_shapes):
        shape_A = input_shapes[0]
        shape_B = input_shapes[1]
        if shape_A == shape_B:
            return shape_A
        elif shape_A == (1,):
            return shape_B
        elif shape_B == (1,):
            return shape_A
        else:
            return broadcast_rule(shape_A, shape_B)


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
        return [output_grad * node.const_attr]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 1
        return input_shapes[0]


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
        A = node.inputs[0]
        B = node.inputs[1]
        tA = node.matmul_attr_trans_A
        tB = node.matmul_attr_trans_B
        # Y = A B
        if tA == False and tB == False:
            dA = matmul_op(output_grad, B, trans_A=False, trans_B=True)
            dB = matmul_op(A, output_grad, trans_A=True, trans_B=False)
        # Y = A^T B
        elif tA == True and tB == False:
            dA = matmul_op(B, output_grad, trans_A=False, trans_B=True)
            dB = matmul_op(A, output_grad, trans_A=False, trans_B=False)
        # Y = A B^T
        elif tA == False and tB == True:
            dA = matmul_op(output_grad, B, trans_A=False, trans_B=False)
            dB = matmul_op(output_grad, A, trans_A=True, trans_B=False)
        # Y = A^T B^T
        else:
            dA = matmul_op(B, output_grad, trans_A=True, trans_B=True)
            dB = matmul_op(output_grad, A, trans_A=True, trans_B=True)
        return [dA, dB]

    def infer_shape(self, node, input_shapes):
        """(rows of op(A), columns of op(B)).

        Raises:
            ValueError: an input is not a matrix, or the inner sizes differ.
        """
        if len(input_shapes[0]) != 2:
            raise ValueError("A is not a matrix")
        if len(input_shapes[1]) != 2:
            raise ValueError("B is not a matrix")
        A_rows = input_shapes[0][0]
        A_cols = input_shapes[0][1]
        B_rows = input_shapes[1][0]
        B_cols = input_shapes[1][1]
        if node.matmul_attr_trans_A == True:
            A_rows = input_shapes[0][1]
            A_cols = input_shapes[0][0]
        if node.matmul_attr_trans_B == True:
            B_rows = input_shapes[1][1]
            B_cols = input_shapes[1][0]
        if A_cols != B_rows:
            raise ValueError("A has " + str(A_cols) + " columns but B has " + str(B_rows) + " rows")
        return (A_rows, B_cols)


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
        return input_shapes[0]


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
        return input_shapes[0]


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
        if len(input_shapes[0]) == 1:
            return (1,)
        new_shape = []
        for i in range(1, len(input_shapes[0])):
            new_shape.append(input_shapes[0][i])
        return tuple(new_shape)


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
        grad_A = unbroadcast_op(output_grad, node.inputs[0])
        grad_B = zeroslike_op(node.inputs[1])
        return [grad_A, grad_B]

    def infer_shape(self, node, input_shapes):
        return input_shapes[1]


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
        # (softmax(x) - y) / N
        prob = softmax_op(node.inputs[0])
        minus_labels = mul_byconst_op(node.inputs[1], -1)
        diff = add_op(prob, minus_labels)
        mean = dividebyrows_op(diff)
        grad_A = mul_op(mean, output_grad)
        grad_B = zeroslike_op(node.inputs[1])
        return [grad_A, grad_B]

    def infer_shape(self, node, input_shapes):
        """(1,).

        Raises:
            ValueError: logits and labels are not matrices of one shape.
        """
        if len(input_shapes[0]) != 2 or len(input_shapes[1]) != 2:
            raise ValueError("softmax cross entropy needs matrices")
        if input_shapes[0][0] != input_shapes[1][0] or input_shapes[0][1] != input_shapes[1][1]:
            raise ValueError("shapes are different")
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
        return input_shapes[0]


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
            output_val[...] = np.maximum(input_vals[0], 0)
        else:
            gpu_op.relu(input_vals[0], output_val)

    def gradient(self, node, output_grad):
        """See relu_gradient_op."""
        return [relu_gradient_op(node.inputs[0], output_grad)]

    def infer_shape(self, node, input_shapes):
        return input_shapes[0]


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
        assert input_shapes[0] == input_shapes[1]
        return input_shapes[0]


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
    # Two stacks: (node, False) means "not started", (node, True) means "inputs are done".
    stack = []
    stack.append((node, False))
    while len(stack) > 0:
        current, done = stack.pop()
        if done:
            topo_order.append(current)
        elif current not in visited:
            visited.add(current)
            stack.append((current, True))
            for i in range(len(current.inputs) - 1, -1, -1):
                stack.append((current.inputs[i], False))


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
    # node -> list of the contributions
    node_to_output_grads_list = {}
    node_to_output_grads_list[output_node] = [oneslike_op(output_node)]
    # node -> its whole gradient
    node_to_output_grad = {}
    reverse_topo_order = list(reversed(find_topo_sort([output_node])))
    for node in reverse_topo_order:
        grad = sum_node_list(node_to_output_grads_list[node])
        node_to_output_grad[node] = grad
        if node.op is placeholder_op:
            continue
        input_grads = node.op.gradient(node, grad)
        for i in range(len(node.inputs)):
            if node.inputs[i] not in node_to_output_grads_list:
                node_to_output_grads_list[node.inputs[i]] = []
            node_to_output_grads_list[node.inputs[i]].append(input_grads[i])
    grad_node_list = [node_to_output_grad[node] for node in node_list]
    return grad_node_list


def is_read_later(node, topo_order, position):
    """Whether a node after this position in the order reads the node."""
    for i in range(position + 1, len(topo_order)):
        if node in topo_order[i].inputs:
            return True
    return False


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
        self.node_to_shape_map = {}
        for node in feed_shapes:
            self.node_to_shape_map[node] = feed_shapes[node]
        for node in self.topo_order:
            if node not in self.node_to_shape_map:
                input_shapes = []
                for input_node in node.inputs:
                    input_shapes.append(self.node_to_shape_map[input_node])
                self.node_to_shape_map[node] = node.op.infer_shape(node, input_shapes)

    def memory_plan(self, feed_shapes):
        """Fills self.node_to_arr_map with an NDArray for every node that is not fed.

        Called when the feed shapes change, after infer_shape; run() itself never allocates.
        Memory is scarce on a GPU, and most values are read once: a node may take the memory
        of nodes that nobody reads any more. ndarray.view(base, shape) gives memory another
        shape. The nodes of eval_node_list are handed to the caller: each owns its memory.

        Args:
            feed_shapes: fed node -> shape.
        """
        self.node_to_arr_map = {}
        free_arrays = []
        for position in range(len(self.topo_order)):
            node = self.topo_order[position]
            if node in feed_shapes:
                continue
            shape = self.node_to_shape_map[node]
            found = None
            if node not in self.eval_node_list:
                for array in free_arrays:
                    if array.shape == shape:
                        found = array
                        break
            if found is None:
                found = ndarray.empty(shape, ctx=self.ctx)
            else:
                free_arrays.remove(found)
            self.node_to_arr_map[node] = found
            # Which inputs does nobody need any more?
            done = []
            for input_node in node.inputs:
                if input_node in feed_shapes or input_node in self.eval_node_list:
                    continue
                if input_node in done:
                    continue
                if not is_read_later(input_node, self.topo_order, position):
                    free_arrays.append(self.node_to_arr_map[input_node])
                    done.append(input_node)

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
