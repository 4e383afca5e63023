""" Computation graph with reverse-mode autodiff, runs on numpy or on the GPU."""
from __future__ import absolute_import
import numpy as np
from functools import reduce
from operator import add
from . import ndarray, gpu_op


class Node(object):
    """A node of the computation graph."""

    def __init__(self):
        """
        inputs: nodes this node is computed from
        op: the Op object that made this node
        const_attr: the constant, for x + c and x * c
        name: for printing only
        """
        self.inputs = []
        self.op = None
        self.const_attr = None
        self.name = ""

    def __add__(self, other):
        if isinstance(other, Node):
            return add_op(self, other)
        return add_byconst_op(self, other)

    def __mul__(self, other):
        if isinstance(other, Node):
            return mul_op(self, other)
        return mul_byconst_op(self, other)

    # c + x and c * x
    __radd__ = __add__
    __rmul__ = __mul__

    def __str__(self):
        return self.name

    __repr__ = __str__


def Variable(name):
    """A named input of the graph, its value comes from feed_dict."""
    node = placeholder_op()
    node.name = name
    return node


class Op(object):
    """Base class of all operations."""

    def __call__(self):
        node = Node()
        node.op = self
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        """Writes the result for input_vals into output_val.

        input_vals, output_val: np.ndarray if use_numpy else ndarray.NDArray
        """
        raise NotImplementedError

    def gradient(self, node, output_grad):
        """Returns one gradient node for each input of node."""
        raise NotImplementedError

    def infer_shape(self, node, input_shapes):
        """Returns the shape of node as a tuple."""
        raise NotImplementedError


class AddOp(Op):
    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "(%s+%s)" % (node_A.name, node_B.name)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 2
        a, b = input_vals
        if use_numpy:
            output_val[:] = a + b
        elif a.shape == b.shape:
            gpu_op.matrix_elementwise_add(a, b, output_val)
        elif b.shape == (1,):
            const_val = b.asnumpy()[0]
            gpu_op.matrix_elementwise_add_by_const(a, const_val, output_val)
        elif a.shape == (1,):
            const_val = a.asnumpy()[0]
            gpu_op.matrix_elementwise_add_by_const(b, const_val, output_val)
        else:
            pass  # other broadcasts are not needed on the GPU

    def gradient(self, node, output_grad):
        return [output_grad, output_grad]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 2
        return broadcast_rule(input_shapes[0], input_shapes[1])


class AddByConstOp(Op):
    def __call__(self, node_A, const_val):
        node = Op.__call__(self)
        node.const_attr = const_val
        node.inputs = [node_A]
        node.name = "(%s+%s)" % (node_A.name, str(const_val))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 1
        if use_numpy:
            output_val[:] = input_vals[0] + node.const_attr
        else:
            gpu_op.matrix_elementwise_add_by_const(
                input_vals[0], node.const_attr, output_val)

    def gradient(self, node, output_grad):
        return [output_grad]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 1
        return input_shapes[0]


class MulOp(Op):
    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "(%s*%s)" % (node_A.name, node_B.name)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 2
        a, b = input_vals
        if use_numpy:
            output_val[:] = a * b
        elif a.shape == b.shape:
            gpu_op.matrix_elementwise_multiply(a, b, output_val)
        elif b.shape == (1,):
            const_val = b.asnumpy()[0]
            gpu_op.matrix_elementwise_multiply_by_const(a, const_val, output_val)
        elif a.shape == (1,):
            const_val = a.asnumpy()[0]
            gpu_op.matrix_elementwise_multiply_by_const(b, const_val, output_val)
        else:
            pass  # same as in AddOp

    def gradient(self, node, output_grad):
        return [node.inputs[1] * output_grad, node.inputs[0] * output_grad]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 2
        return broadcast_rule(input_shapes[0], input_shapes[1])


class MulByConstOp(Op):
    def __call__(self, node_A, const_val):
        node = Op.__call__(self)
        node.const_attr = const_val
        node.inputs = [node_A]
        node.name = "(%s*%s)" % (node_A.name, str(const_val))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 1
        if use_numpy:
            output_val[:] = input_vals[0] * node.const_attr
        else:
            gpu_op.matrix_elementwise_multiply_by_const(
                input_vals[0], node.const_attr, output_val)

    def gradient(self, node, output_grad):
        return [node.const_attr * output_grad]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 1
        return input_shapes[0]


class MatMulOp(Op):
    def __call__(self, node_A, node_B, trans_A=False, trans_B=False):
        node = Op.__call__(self)
        node.matmul_attr_trans_A = trans_A
        node.matmul_attr_trans_B = trans_B
        node.inputs = [node_A, node_B]
        node.name = "MatMul(%s,%s,%s,%s)" % (
            node_A.name, node_B.name, str(trans_A), str(trans_B))
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 2
        a, b = input_vals
        if use_numpy:
            if node.matmul_attr_trans_A is True:
                a = a.T
            if node.matmul_attr_trans_B is True:
                b = b.T
            output_val[:] = np.matmul(a, b)
        else:
            gpu_op.matrix_multiply(
                a, node.matmul_attr_trans_A,
                b, node.matmul_attr_trans_B,
                output_val)

    def gradient(self, node, output_grad):
        # Y = A B  =>  dA = dY B^T, dB = A^T dY
        grad_A = matmul_op(output_grad, node.inputs[1], False, True)
        grad_B = matmul_op(node.inputs[0], output_grad, True, False)
        return [grad_A, grad_B]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 2
        (rows_A, cols_A), (rows_B, cols_B) = input_shapes
        if node.matmul_attr_trans_A is True:
            rows_A, cols_A = cols_A, rows_A
        if node.matmul_attr_trans_B is True:
            rows_B, cols_B = cols_B, rows_B
        assert cols_A == rows_B
        return (rows_A, cols_B)


class PlaceholderOp(Op):
    def __call__(self):
        return Op.__call__(self)

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert False, "value of a placeholder is provided by feed_dict"

    def gradient(self, node, output_grad):
        return None

    def infer_shape(self, node, input_shapes):
        assert False, "shape of a placeholder is provided by feed_dict"


class ZerosLikeOp(Op):
    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "Zeroslike(%s)" % node_A.name
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 1
        if use_numpy:
            output_val[:] = np.zeros(input_vals[0].shape)
        else:
            gpu_op.array_set(output_val, 0)

    def gradient(self, node, output_grad):
        return [zeroslike_op(node.inputs[0])]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 1
        return input_shapes[0]


class OnesLikeOp(Op):
    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "Oneslike(%s)" % node_A.name
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 1
        if use_numpy:
            output_val[:] = np.ones(input_vals[0].shape)
        else:
            gpu_op.array_set(output_val, 1)

    def gradient(self, node, output_grad):
        return [zeroslike_op(node.inputs[0])]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 1
        return input_shapes[0]


class ReduceSumAxisZeroOp(Op):
    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "ReduceSumAxisZero(%s)" % node_A.name
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 1
        if use_numpy:
            output_val[:] = np.sum(input_vals[0], axis=0)
        else:
            gpu_op.reduce_sum_axis_zero(input_vals[0], output_val)

    def gradient(self, node, output_grad):
        return [broadcastto_op(output_grad, node.inputs[0])]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 1
        # the sum of a vector is stored as (1,)
        if len(input_shapes[0]) == 1:
            return (1,)
        return tuple(input_shapes[0][1:])


class BroadcastToOp(Op):
    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "BroadcastTo(%s,%s.shape)" % (node_A.name, node_B.name)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 2
        if use_numpy:
            output_val[:] = np.broadcast_to(input_vals[0], input_vals[1].shape)
        else:
            gpu_op.broadcast_to(input_vals[0], output_val)

    def gradient(self, node, output_grad):
        grad_A = reducesumaxiszero_op(output_grad)
        grad_B = zeroslike_op(node.inputs[1])
        return [grad_A, grad_B]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 2
        return input_shapes[1]


def softmax_func(y):
    """Softmax of every row of a numpy array."""
    e = np.exp(y - np.max(y, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


class SoftmaxCrossEntropyOp(Op):
    def __call__(self, node_A, node_B):
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "SoftmaxXEntropy(%s,%s)" % (node_A.name, node_B.name)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 2
        y, y_ = input_vals
        if use_numpy:
            log_prob = np.log(softmax_func(y))
            row_loss = -np.sum(y_ * log_prob, axis=1)
            output_val[:] = np.mean(row_loss, keepdims=True)
        else:
            gpu_op.softmax_cross_entropy(y, y_, output_val)

    def gradient(self, node, output_grad):
        y, y_ = node.inputs
        grad_A = (softmax_op(y) + -1 * y_) * output_grad
        grad_B = zeroslike_op(y_)
        return [grad_A, grad_B]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 2
        return (1,)


class SoftmaxOp(Op):
    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "Softmax(%s)" % node_A.name
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 1
        if use_numpy:
            output_val[:] = softmax_func(input_vals[0])
        else:
            gpu_op.softmax(input_vals[0], output_val)

    def gradient(self, node, output_grad):
        # only the fused softmax_cross_entropy is trained through
        raise NotImplementedError

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 1
        return input_shapes[0]


class ReluOp(Op):
    def __call__(self, node_A):
        node = Op.__call__(self)
        node.inputs = [node_A]
        node.name = "Relu(%s)" % node_A.name
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 1
        if use_numpy:
            output_val[:] = np.maximum(input_vals[0], 0)
        else:
            gpu_op.relu(input_vals[0], output_val)

    def gradient(self, node, output_grad):
        return [relu_gradient_op(node.inputs[0], output_grad)]

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 1
        return input_shapes[0]


class ReluGradientOp(Op):
    def __call__(self, node_A, node_B):
        """node_A is the input of relu, node_B the gradient of its output."""
        node = Op.__call__(self)
        node.inputs = [node_A, node_B]
        node.name = "ReluGradient(%s)" % node_A.name
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        assert len(input_vals) == 2
        x, g = input_vals
        if use_numpy:
            # sign is -1 or 1, so this is 0 or 1
            output_val[:] = (np.sign(x) + 1) * 0.5 * g
        else:
            gpu_op.relu_gradient(x, g, output_val)

    def gradient(self, node, output_grad):
        raise NotImplementedError

    def infer_shape(self, node, input_shapes):
        assert len(input_shapes) == 2
        assert input_shapes[0] == input_shapes[1]
        return input_shapes[0]


# One object of every op
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
softmaxcrossentropy_op = SoftmaxCrossEntropyOp()
softmax_op = SoftmaxOp()
relu_op = ReluOp()
relu_gradient_op = ReluGradientOp()


class Executor(object):
    """Computes the values of a list of nodes."""

    def __init__(self, eval_node_list, ctx=None):
        """
        eval_node_list: nodes whose values run() returns
        ctx: ndarray.gpu(0) for the GPU, None for numpy
        """
        self.eval_node_list = eval_node_list
        self.ctx = ctx
        self.topo_order = find_topo_sort(self.eval_node_list)
        self.node_to_shape_map = None
        self.node_to_arr_map = None
        self.feed_shapes = None

    def infer_shape(self, feed_shapes):
        """Fills node_to_shape_map, for fed nodes too.

        feed_shapes: node -> shape of its fed value
        """
        self.node_to_shape_map = {}
        for node in self.topo_order:
            if node in feed_shapes:
                self.node_to_shape_map[node] = feed_shapes[node]
            else:
                input_shapes = [self.node_to_shape_map[n] for n in node.inputs]
                self.node_to_shape_map[node] = tuple(
                    node.op.infer_shape(node, input_shapes))

    def memory_plan(self, feed_shapes):
        """Fills node_to_arr_map with an NDArray for every node that is not fed.

        An array goes back to the pool after the last use of its node, and the next
        node of the same shape takes it from there. Evaluated nodes keep theirs, the
        caller may read or change them after run().
        """
        # how many inputs still wait for the value of a node
        num_uses = {}
        for node in self.topo_order:
            num_uses[node] = 0
            if node not in feed_shapes:
                for n in node.inputs:
                    num_uses[n] += 1

        eval_nodes = set(self.eval_node_list)
        pool = {}  # shape -> list of free NDArray
        self.node_to_arr_map = {}
        for node in self.topo_order:
            if node in feed_shapes:
                continue
            shape = self.node_to_shape_map[node]
            if node not in eval_nodes and len(pool.get(shape, [])) > 0:
                arr = pool[shape].pop()
            else:
                arr = ndarray.empty(shape, ctx=self.ctx)
            self.node_to_arr_map[node] = arr
            # inputs are given back only now: an output never lies on an input
            for n in node.inputs:
                num_uses[n] -= 1
                if num_uses[n] == 0 and n not in eval_nodes and n not in feed_shapes:
                    pool.setdefault(self.node_to_shape_map[n], []).append(
                        self.node_to_arr_map[n])

    def run(self, feed_dict, convert_to_numpy_ret_vals=False):
        """
        feed_dict: node -> np.ndarray (or NDArray, on the GPU)
        convert_to_numpy_ret_vals: return np.ndarray instead of NDArray
        Returns the values of eval_node_list, in the same order.
        """
        use_numpy = self.ctx is None
        node_to_val_map = {}
        for node, value in feed_dict.items():
            if use_numpy:
                assert isinstance(value, np.ndarray), "feed_dict value type not supported"
                node_to_val_map[node] = value
            elif isinstance(value, np.ndarray):
                node_to_val_map[node] = ndarray.array(value, ctx=self.ctx)
            elif isinstance(value, ndarray.NDArray):
                node_to_val_map[node] = value
            else:
                assert False, "feed_dict value type not supported"

        # plan again only when some fed shape is new
        feed_shapes = dict((node, val.shape) for node, val in node_to_val_map.items())
        if self.feed_shapes is None or set(feed_shapes.items()) != set(self.feed_shapes.items()):
            self.infer_shape(feed_shapes)
            self.feed_shapes = feed_shapes
            if not use_numpy:
                self.memory_plan(feed_shapes)

        for node in self.topo_order:
            if node in node_to_val_map:
                continue
            input_vals = list(map(lambda n: node_to_val_map[n], node.inputs))
            if use_numpy:
                node_val = np.empty(shape=self.node_to_shape_map[node])
            else:
                node_val = self.node_to_arr_map[node]
            node.op.compute(node, input_vals, node_val, use_numpy)
            node_to_val_map[node] = node_val

        results = [node_to_val_map[node] for node in self.eval_node_list]
        if not use_numpy and convert_to_numpy_ret_vals:
            results = [val.asnumpy() for val in results]
        return results


def gradients(output_node, node_list):
    """Returns the gradient nodes of output_node with respect to node_list."""
    node_to_grads = {output_node: [oneslike_op(output_node)]}
    node_to_grad = {}
    for node in reversed(find_topo_sort([output_node])):
        grad = sum_node_list(node_to_grads[node])
        node_to_grad[node] = grad
        input_grads = node.op.gradient(node, grad)
        for i in range(len(node.inputs)):
            node_to_grads.setdefault(node.inputs[i], []).append(input_grads[i])
    return [node_to_grad[node] for node in node_list]


##################
# Helper Methods #
##################


def find_topo_sort(node_list):
    """Post-order DFS from every node of node_list: inputs come before their users."""
    visited = set()
    topo_order = []
    for node in node_list:
        topo_sort_dfs(node, visited, topo_order)
    return topo_order


def topo_sort_dfs(node, visited, topo_order):
    """Appends node and all it depends on to topo_order."""
    if node in visited:
        return
    visited.add(node)
    for n in node.inputs:
        topo_sort_dfs(n, visited, topo_order)
    topo_order.append(node)


def sum_node_list(node_list):
    """Adds nodes without the extra node that sum() makes for its 0."""
    return reduce(add, node_list)


def broadcast_rule(shape_a, shape_b):
    """The shape of a + b by the rules of numpy."""
    assert isinstance(shape_a, tuple)
    assert isinstance(shape_b, tuple)
    if shape_a == shape_b:
        return shape_a
    ndim = max(len(shape_a), len(shape_b))
    # pad the shorter one with 1s on the left
    shape_a = (1,) * (ndim - len(shape_a)) + shape_a
    shape_b = (1,) * (ndim - len(shape_b)) + shape_b
    assert all(a == b or a == 1 or b == 1 for a, b in zip(shape_a, shape_b)), \
        "shapes can not be broadcast"
    return tuple(b if a == 1 else a for a, b in zip(shape_a, shape_b))
