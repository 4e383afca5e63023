"""Automatic differentiation of static graphs, and an executor that runs them.

A graph is made of nodes. A node is an operation (op) on other nodes:

    x = Variable(name="x")
    y = x * x + 3
    grad, = gradients(y, [x])
    Executor([y, grad]).run({x: np.ones(5)})

The file reads from top to bottom: nodes, their order, gradients; then the ops; then shapes and
memory of the executor. How it runs stands in executor.py, how shapes broadcast in broadcasting.py.
"""

import numpy as np

from . import gpu_op, ndarray
from .broadcasting import (
    broadcast_rule,
    gpu_broadcast,
    gpu_tile,
    gpu_unbroadcast,
    numpy_unbroadcast,
)
from .executor import GraphExecutor


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


def find_topo_sort(node_list):
    """All nodes that node_list depends on, each after its inputs.

    The order is that of a depth-first search in post-order: node_list from left to right,
    inputs from left to right, each node once.
    """
    if isinstance(node_list, Node):
        raise TypeError("%s is one node, not a list of nodes; hint: [node]" % node_list.name)
    visited = set()
    topo_order = []
    for node in node_list:
        _check_node("find_topo_sort", node)
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
    # BEGIN SOLUTION 1.1
    if node in visited:
        return
    visited.add(node)
    stack = [(node, iter(node.inputs))]
    while stack:
        current, remaining = stack[-1]
        for input_node in remaining:
            if input_node not in visited:
                visited.add(input_node)
                stack.append((input_node, iter(input_node.inputs)))
                break
        else:
            topo_order.append(current)
            stack.pop()
    # END SOLUTION


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
    # BEGIN SOLUTION 1.6
    contributions = {output_node: [oneslike_op(output_node)]}
    gradient_of = {}
    for node in reversed(find_topo_sort([output_node])):
        gradient_of[node] = sum_node_list(contributions[node])
        input_grads = node.op.gradient(node, gradient_of[node])
        for input_node, input_grad in zip(node.inputs, input_grads or []):
            contributions.setdefault(input_node, []).append(input_grad)
    for node in node_list:
        if node not in gradient_of:
            named = (output_node.name, getattr(node, "name", repr(node)))
            raise KeyError("gradients: %s does not depend on %s; hint: leave it out" % named)
    return [gradient_of[node] for node in node_list]
    # END SOLUTION


#: A name made of longer ones would grow with the depth of the graph.
_LONGEST_OPERAND = 60


def _check_node(what, value):
    if not isinstance(value, Node):
        said = "%s takes nodes, not %r, a %s; hint: Variable(name), or a number beside + and *"
        raise TypeError(said % (what, value, type(value).__name__))


def _short(node):
    """The node's name as a part of another name."""
    return node.name if len(node.name) <= _LONGEST_OPERAND else "..."


class Op:
    """What a node does. There is one object of each class; nodes hold the operands.

    An op states its `label` and its `kernel`, and has three methods: forward, gradient and
    infer_shape. Most are a UnaryOp or a BinaryOp.
    """

    #: The name of a node, made of those of its inputs.
    label = ""
    #: The function of gpu_op that computes it on the GPU.
    kernel = ""
    #: Whether element i of the result depends on element i of the inputs alone, so that
    #: the result may take the memory of an input of its shape.
    elementwise = False
    #: Whether feed_dict gives the value.
    is_fed = False
    #: The arguments with which tests call it, as tuples. A tuple in them is an input's shape.
    samples = ()
    #: Which inputs are labels, by number. Labels are data, whose gradient is taken as zero, and
    #: their rows are probabilities.
    labels = ()

    def __call__(self, *inputs, attributes=()):
        """A new node that applies this op to nodes. `attributes` go into its name."""
        for each in inputs:
            _check_node(type(self).__name__, each)
        node = Node()
        node.op = self
        node.inputs = list(inputs)
        node.name = self.label.format(*[_short(i) for i in inputs], *attributes)
        return node

    def compute(self, node, input_vals, output_val, use_numpy=True):
        """Computes the node's value into output_val.

        Args:
            node: the node.
            input_vals: values of node.inputs; numpy arrays, or NDArrays if not use_numpy.
            output_val: array of the node's shape, to be overwritten.
            use_numpy: whether to compute with numpy, or with gpu_op.
        """
        if use_numpy:
            output_val[...] = self.forward(node, *input_vals)
        else:
            self.launch(node, *input_vals, output_val)

    def forward(self, node, *values):
        """The node's value, from those of its inputs, by numpy."""
        raise NotImplementedError

    def launch(self, node, *arrays):
        """The same on the GPU: the last of the NDArrays is the output."""
        getattr(gpu_op, self.kernel)(*arrays)

    def gradient(self, node, output_grad):
        """Nodes of the gradients with respect to each input, given that of the output."""
        raise NotImplementedError

    def infer_shape(self, node, input_shapes):
        """The shape of the node's value, a tuple, from the tuples of its inputs."""
        raise NotImplementedError


class UnaryOp(Op):
    """An op of one input."""

    samples = (((3, 4),), ((2, 3, 5),), ((300,),))

    def __call__(self, node_A):
        return Op.__call__(self, node_A)

    def infer_shape(self, node, input_shapes):
        """That of the input, unless an op says otherwise."""
        # BEGIN SOLUTION 2.1
        return input_shapes[0]
        # END SOLUTION


class ConstOp(UnaryOp):
    """An op of one input and a number."""

    samples = (((3, 4), 2.5), ((300,), -1))

    def __call__(self, node_A, const_val):
        node = Op.__call__(self, node_A, attributes=(const_val,))
        node.const_attr = const_val
        return node

    def launch(self, node, a, out):
        getattr(gpu_op, self.kernel)(a, float(node.const_attr), out)


class BinaryOp(Op):
    """An op of two inputs."""

    samples = (((3, 4), (3, 4)), ((3, 4), (4,)), ((1,), (3, 4)), ((300,), (300,)))

    def __call__(self, node_A, node_B):
        return Op.__call__(self, node_A, node_B)

    def launch(self, node, a, b, out):
        gpu_broadcast(getattr(gpu_op, self.kernel), a, b, out)

    def infer_shape(self, node, input_shapes):
        """Equal shapes give that shape; others broadcast: see broadcast_rule."""
        # BEGIN SOLUTION 2.1
        return broadcast_rule(*input_shapes, node)
        # END SOLUTION


class PlaceholderOp(Op):
    """A value that feed_dict provides."""

    is_fed = True

    def compute(self, node, input_vals, output_val, use_numpy=True):
        raise AssertionError("the value of placeholder %s is provided by feed_dict" % node.name)

    def gradient(self, node, output_grad):
        return None

    def infer_shape(self, node, input_shapes):
        raise AssertionError("the shape of placeholder %s is provided by feed_dict" % node.name)


placeholder_op = PlaceholderOp()


class AddOp(BinaryOp):
    """a + b, with numpy's broadcasting."""

    label = "({}+{})"
    kernel = "matrix_elementwise_add"
    elementwise = True

    def forward(self, node, a, b):
        return a + b

    def gradient(self, node, output_grad):
        """Where an input was broadcast, its gradient is summed back: see unbroadcast_op."""
        # BEGIN SOLUTION 1.2
        return [unbroadcast_op(output_grad, operand) for operand in node.inputs]
        # END SOLUTION


add_op = AddOp()


class AddByConstOp(ConstOp):
    """a + c, where c is a number."""

    label = "({}+{})"
    kernel = "matrix_elementwise_add_by_const"
    elementwise = True

    def forward(self, node, a):
        return a + node.const_attr

    def gradient(self, node, output_grad):
        # BEGIN SOLUTION 1.2
        return [output_grad]
        # END SOLUTION


add_byconst_op = AddByConstOp()


class MulOp(BinaryOp):
    """a * b, element by element, with numpy's broadcasting."""

    label = "({}*{})"
    kernel = "matrix_elementwise_multiply"
    elementwise = True

    def forward(self, node, a, b):
        return a * b

    def gradient(self, node, output_grad):
        """Where an input was broadcast, its gradient is summed back: see unbroadcast_op."""
        # BEGIN SOLUTION 1.2
        a, b = node.inputs
        return [unbroadcast_op(b * output_grad, a), unbroadcast_op(a * output_grad, b)]
        # END SOLUTION


mul_op = MulOp()


class MulByConstOp(ConstOp):
    """c * a, where c is a number."""

    label = "({}*{})"
    kernel = "matrix_elementwise_multiply_by_const"
    elementwise = True

    def forward(self, node, a):
        return a * node.const_attr

    def gradient(self, node, output_grad):
        # BEGIN SOLUTION 1.2
        return [node.const_attr * output_grad]
        # END SOLUTION


mul_byconst_op = MulByConstOp()


class MatMulOp(Op):
    """op(A) @ op(B) of two matrices; op transposes where its flag is True."""

    label = "MatMul({},{},{},{})"
    samples = (
        ((3, 4), (4, 5)),
        ((4, 3), (4, 5), True),
        ((3, 4), (5, 4), False, True),
        ((4, 3), (5, 4), True, True),
    )

    def __call__(self, node_A, node_B, trans_A=False, trans_B=False):
        node = Op.__call__(self, node_A, node_B, attributes=(trans_A, trans_B))
        node.matmul_attr_trans_A = trans_A
        node.matmul_attr_trans_B = trans_B
        return node

    def forward(self, node, a, b):
        op_a = a.T if node.matmul_attr_trans_A is True else a
        op_b = b.T if node.matmul_attr_trans_B is True else b
        if op_a.shape[-1] != op_b.shape[0]:
            raise ValueError(
                "%s: inner sizes differ: A is %s, op(A) is %s, B is %s, op(B) is %s; "
                "are the flags right?" % (node, a.shape, op_a.shape, b.shape, op_b.shape)
            )
        return np.matmul(op_a, op_b)

    def launch(self, node, a, b, out):
        trans_a = node.matmul_attr_trans_A is True
        trans_b = node.matmul_attr_trans_B is True
        gpu_op.matrix_multiply(a, trans_a, b, trans_b, out)

    def gradient(self, node, output_grad):
        """One pair of products for each of the four cases of the flags.

        For Y = A B: dA = dY B^T, dB = A^T dY. No case needs a transpose of its own: the
        flags of matmul_op do it.
        """
        # BEGIN SOLUTION 1.3
        a, b = node.inputs
        trans_a = node.matmul_attr_trans_A is True
        trans_b = node.matmul_attr_trans_B is True
        if trans_a:
            grad_a = matmul_op(b, output_grad, trans_A=trans_b, trans_B=True)
        else:
            grad_a = matmul_op(output_grad, b, trans_A=False, trans_B=not trans_b)
        if trans_b:
            grad_b = matmul_op(output_grad, a, trans_A=True, trans_B=trans_a)
        else:
            grad_b = matmul_op(a, output_grad, trans_A=not trans_a, trans_B=False)
        return [grad_a, grad_b]
        # END SOLUTION

    def infer_shape(self, node, input_shapes):
        """(rows of op(A), columns of op(B)).

        Raises:
            ValueError: an input is not a matrix, or the inner sizes differ.
        """
        # BEGIN SOLUTION 2.1
        shape_a, shape_b = input_shapes
        if len(shape_a) != 2 or len(shape_b) != 2:
            raise ValueError("matmul: A is %s, B is %s; both must be 2-D" % (shape_a, shape_b))
        rows, inner_a = shape_a[::-1] if node.matmul_attr_trans_A is True else shape_a
        inner_b, columns = shape_b[::-1] if node.matmul_attr_trans_B is True else shape_b
        if inner_a != inner_b:
            raise ValueError(
                "matmul: inner sizes differ: op(A) is %s, op(B) is %s"
                % ((rows, inner_a), (inner_b, columns))
            )
        return (rows, columns)
        # END SOLUTION


matmul_op = MatMulOp()


class ZerosLikeOp(UnaryOp):
    """Zeros in the shape of a."""

    label = "Zeroslike({})"

    def forward(self, node, a):
        return np.zeros(a.shape)

    def launch(self, node, a, out):
        gpu_op.array_set(out, 0)

    def gradient(self, node, output_grad):
        return [zeroslike_op(node.inputs[0])]


zeroslike_op = ZerosLikeOp()


class OnesLikeOp(UnaryOp):
    """Ones in the shape of a."""

    label = "Oneslike({})"

    def forward(self, node, a):
        return np.ones(a.shape)

    def launch(self, node, a, out):
        gpu_op.array_set(out, 1)

    def gradient(self, node, output_grad):
        return [zeroslike_op(node.inputs[0])]


oneslike_op = OnesLikeOp()


class ReduceSumAxisZeroOp(UnaryOp):
    """The sum over axis 0. The sum of a vector has shape (1,)."""

    label = "ReduceSumAxisZero({})"
    kernel = "reduce_sum_axis_zero"

    def forward(self, node, a):
        return np.sum(a, axis=0, keepdims=a.ndim == 1)

    def gradient(self, node, output_grad):
        """Every element of the input counts once in the sum."""
        # BEGIN SOLUTION 1.4
        return [broadcastto_op(output_grad, node.inputs[0])]
        # END SOLUTION

    def infer_shape(self, node, input_shapes):
        """The shape without its first axis; (1,) for a vector."""
        # BEGIN SOLUTION 2.1
        return input_shapes[0][1:] or (1,)
        # END SOLUTION


reducesumaxiszero_op = ReduceSumAxisZeroOp()


class BroadcastToOp(BinaryOp):
    """a, repeated along leading axes until it has the shape of b."""

    label = "BroadcastTo({},{}.shape)"
    samples = (((4,), (3, 4)), ((1,), (3, 4)), ((3, 4), (2, 3, 4)))

    def forward(self, node, a, b):
        return np.broadcast_to(a, b.shape)

    def launch(self, node, a, b, out):
        gpu_tile(a, out)

    def gradient(self, node, output_grad):
        """b lends its shape alone: its gradient is zero."""
        # BEGIN SOLUTION 1.4
        a, b = node.inputs
        return [unbroadcast_op(output_grad, a), zeroslike_op(b)]
        # END SOLUTION

    def infer_shape(self, node, input_shapes):
        # BEGIN SOLUTION 2.1
        shape_a, shape_b = input_shapes
        if broadcast_rule(shape_a, shape_b) != shape_b:
            raise ValueError("broadcast_to: %s does not broadcast to %s" % (shape_a, shape_b))
        return shape_b
        # END SOLUTION


broadcastto_op = BroadcastToOp()


class UnbroadcastOp(BinaryOp):
    """The gradient g of a broadcast value, summed back to the shape of a.

    Broadcasting repeats a; each repetition contributes to the gradient of a, so they are
    summed. Shapes are known only when the graph runs: if g has the shape of a, this copies.
    """

    label = "Unbroadcast({},{}.shape)"
    elementwise = True
    samples = (((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 4), (1,)))

    def forward(self, node, grad, a):
        return numpy_unbroadcast(grad, a.shape)

    def launch(self, node, grad, a, out):
        gpu_unbroadcast(grad, out)

    def gradient(self, node, output_grad):
        grad, a = node.inputs
        return [broadcastto_op(output_grad, grad), zeroslike_op(a)]

    def infer_shape(self, node, input_shapes):
        return input_shapes[1]


unbroadcast_op = UnbroadcastOp()


class DivideByRowsOp(UnaryOp):
    """a / N, where N is the length of axis 0 of a: what a mean over rows leaves in a gradient."""

    label = "DivideByRows({})"
    elementwise = True

    def forward(self, node, a):
        return a * (1.0 / max(a.shape[0], 1))

    def launch(self, node, a, out):
        gpu_op.matrix_elementwise_multiply_by_const(a, 1.0 / max(a.shape[0], 1), out)

    def gradient(self, node, output_grad):
        return [dividebyrows_op(output_grad)]


dividebyrows_op = DivideByRowsOp()


def softmax_func(y):
    """Softmax of every row of a 2-D numpy array, stable for large values."""
    b = y - np.max(y, axis=1, keepdims=True)
    expb = np.exp(b)
    return expb / np.sum(expb, axis=1, keepdims=True)


class SoftmaxCrossEntropyOp(BinaryOp):
    """The mean over rows of -sum(labels * log(softmax(logits))), of shape (1,).

    The rows of labels are probabilities: they sum to 1.
    """

    label = "SoftmaxXEntropy({},{})"
    kernel = "softmax_cross_entropy"
    samples = (((3, 4), (3, 4)), ((300, 2), (300, 2)))
    labels = (1,)

    def forward(self, node, logits, labels):
        shifted = logits - np.max(logits, axis=1, keepdims=True)
        log_softmax = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
        return np.mean(-np.sum(labels * log_softmax, axis=1), keepdims=True)

    def gradient(self, node, output_grad):
        """With respect to the logits; labels are data, their gradient is taken as zero.

        The loss is a mean over N rows, so 1/N belongs into it: see dividebyrows_op.
        """
        # BEGIN SOLUTION 1.5
        logits, labels = node.inputs
        difference = softmax_op(logits) + -1 * labels
        return [dividebyrows_op(difference * output_grad), zeroslike_op(labels)]
        # END SOLUTION

    def infer_shape(self, node, input_shapes):
        """(1,).

        Raises:
            ValueError: logits and labels are not matrices of one shape.
        """
        # BEGIN SOLUTION 2.1
        logits, labels = input_shapes
        if logits != labels or len(logits) != 2:
            raise ValueError(
                "softmax_cross_entropy: logits are %s, labels are %s; "
                "both must have the same 2-D shape" % (logits, labels)
            )
        return (1,)
        # END SOLUTION


softmaxcrossentropy_op = SoftmaxCrossEntropyOp()


class SoftmaxOp(UnaryOp):
    """Softmax of every row of a matrix."""

    label = "Softmax({})"
    kernel = "softmax"
    samples = (((3, 4),), ((40, 65),))

    def forward(self, node, a):
        return softmax_func(a)

    def gradient(self, node, output_grad):
        # Training goes through SoftmaxCrossEntropyOp, which is stable where this is not.
        raise NotImplementedError("softmax has no gradient here; use softmaxcrossentropy_op")


softmax_op = SoftmaxOp()


class ReluOp(UnaryOp):
    """max(x, 0)."""

    label = "Relu({})"
    kernel = "relu"
    elementwise = True

    def forward(self, node, x):
        return np.maximum(x, 0)

    def gradient(self, node, output_grad):
        """See relu_gradient_op."""
        # BEGIN SOLUTION 1.5
        return [relu_gradient_op(node.inputs[0], output_grad)]
        # END SOLUTION


relu_op = ReluOp()


class ReluGradientOp(BinaryOp):
    """grad where x > 0, else 0. At x == 0 it is 0, on numpy and on the GPU."""

    label = "ReluGradient({})"
    kernel = "relu_gradient"
    elementwise = True
    samples = (((3, 4), (3, 4)), ((300,), (300,)))

    def forward(self, node, x, grad):
        return np.where(x > 0, grad, 0)

    def gradient(self, node, output_grad):
        return [zeroslike_op(node.inputs[0]), relu_gradient_op(node.inputs[0], output_grad)]


relu_gradient_op = ReluGradientOp()


# BEGIN SOLUTION 2.2
def _last_uses(topo_order):
    """For every node, the position in topo_order of the last node that reads it."""
    last_use = {}
    for position, node in enumerate(topo_order):
        last_use[node] = position
        for input_node in node.inputs:
            last_use[input_node] = position
    return last_use


def _takes_over(node, shapes, dying):
    """An input that dies here and whose memory the result may overwrite, or None."""
    if not node.op.elementwise or any(shapes[i] != shapes[node] for i in node.inputs):
        return None
    return next((i for i in node.inputs if i in dying), None)


def _best_fit(pool, size):
    """Removes and returns the smallest free buffer of at least `size` elements, or None."""
    fitting = [buffer for buffer in pool if buffer.shape[0] >= size]
    if not fitting:
        return None
    best = min(fitting, key=lambda buffer: buffer.shape[0])
    pool.remove(best)
    return best


# END SOLUTION


class Executor(GraphExecutor):
    """Computes the values of nodes for given values of the placeholders, by run({node: value}).

    Attributes:
        eval_node_list: the nodes to be evaluated.
        ctx: the device; None is numpy.
        topo_order: every node needed, inputs first.
        node_to_shape_map: node -> shape, for the feed shapes of the last run.
        node_to_arr_map: node -> NDArray, on the GPU, for every node that is not fed.
        feed_shapes: node -> shape of what the last run fed.
    """

    def __init__(self, eval_node_list, ctx=None):
        super().__init__(eval_node_list, find_topo_sort(eval_node_list), ctx)

    def infer_shape(self, feed_shapes):
        """Fills self.node_to_shape_map for every node, the fed ones included.

        Args:
            feed_shapes: fed node -> shape.
        """
        # BEGIN SOLUTION 2.1
        shapes = dict(feed_shapes)
        for node in self.topo_order:
            if node not in shapes:
                shapes[node] = node.op.infer_shape(node, [shapes[i] for i in node.inputs])
        self.node_to_shape_map = shapes
        # END SOLUTION

    def memory_plan(self, feed_shapes):
        """Fills self.node_to_arr_map with an NDArray for every node that is not fed.

        Called when the feed shapes change, after infer_shape; run() itself never allocates.
        Memory is scarce on a GPU, and most values are read once: a node may take the memory
        of nodes that nobody reads any more. ndarray.view(base, shape) gives memory another
        shape. The nodes of eval_node_list are handed to the caller: each owns its memory.

        Args:
            feed_shapes: fed node -> shape.
        """
        # BEGIN SOLUTION 2.2
        shapes = self.node_to_shape_map
        last_use = _last_uses(self.topo_order)
        evaluated = set(self.eval_node_list)
        buffers, pool = {}, []
        self.node_to_arr_map = {}
        for position, node in enumerate(self.topo_order):
            if node in feed_shapes:
                continue
            if node in evaluated:
                self.node_to_arr_map[node] = ndarray.empty(shapes[node], self.ctx)
            else:
                dying = {i for i in node.inputs if last_use[i] == position and i in buffers}
                size = ndarray.size_of(shapes[node])
                heir = _takes_over(node, shapes, dying)
                buffer = _best_fit(pool, size) if heir is None else buffers.pop(heir)
                buffers[node] = buffer or ndarray.empty((size,), self.ctx)
                self.node_to_arr_map[node] = ndarray.view(buffers[node], shapes[node])
            for dead in {i for i in (*node.inputs, node) if last_use[i] == position}:
                if dead in buffers:
                    pool.append(buffers.pop(dead))
        # END SOLUTION
