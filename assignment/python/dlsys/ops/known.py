"""What is known of a node's value before the graph runs: its shape and dtype, or nothing."""

import numpy as np

from dlsys.autodiff import Variable
from dlsys.executor import dtype_of


def variable(name, shape=None, dtype=np.float64):
    """A node whose value is given when the graph runs, of this shape and dtype if there is one.

    Nodes that are computed from such alone know their shapes, and say at once where they don't fit.
    """
    node = Variable(name)
    if shape is not None:
        node.known = (tuple(shape), np.dtype(dtype))
    return node


def known(node):
    """(shape, dtype) of a node's value on numpy; None if that of a fed value decides it.

    Raises:
        ShapeError: the shapes of inputs don't fit.
    """
    stack = [node]
    while not hasattr(node, "known"):
        each = stack[-1]
        missing = [i for i in each.inputs if not hasattr(i, "known")]
        stack.extend(missing)
        if not missing:
            each.known = _from_inputs(each)
            stack.pop()
    return node.known


def described(node):
    """The node's name, with its shape and dtype where they are known."""
    found = known(node)
    return node.name if found is None else "%s: %s %s" % (node.name, found[1], found[0])


def _from_inputs(node):
    inputs = [each.known for each in node.inputs]
    if node.op.is_fed or None in inputs:
        return None
    shapes, dtypes = [shape for shape, _ in inputs], [dtype for _, dtype in inputs]
    return node.op.infer_shape(node, shapes), dtype_of(node, dtypes)
