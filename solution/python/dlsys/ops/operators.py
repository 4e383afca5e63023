"""Gives nodes what numpy's arrays have: operators, methods, indexing."""

import numbers

import numpy as np

from dlsys.autodiff import Node, add_byconst_op, add_op, mul_byconst_op, mul_op

from . import elementwise as e
from . import linear, movement, reduction
from .base import as_node
from .known import described, known


def _is_number(value):
    return isinstance(value, (numbers.Real, np.bool_))


def _sum(a, b):
    """a + b; a number goes the way of the classic op."""
    return add_byconst_op(a, b) if _is_number(b) else add_op(a, as_node(b))


def _product(a, b):
    return mul_byconst_op(a, b) if _is_number(b) else mul_op(a, as_node(b))


def _power(a, b):
    return e.power_byconst_op(a, b) if _is_number(b) else e.power_op(a, b)


def _compared(op, is_same):
    """An operator that makes a comparison, whose truth value tells whether both are one node.

    So `node in nodes` and dictionaries of nodes go on finding what is the same node.
    """

    def compare(a, b):
        if not (isinstance(b, (Node, np.ndarray)) or _is_number(b)):
            return NotImplemented
        node = op(a, b)
        if isinstance(b, Node):
            node.is_true = (a is b) == is_same
        return node

    return compare


def _truth(node):
    """Raises a TypeError for a comparison, but for == and != of two nodes."""
    if isinstance(node.op, e.ComparisonOp) and not hasattr(node, "is_true"):
        raise TypeError("%s has no value before it runs; hint: Executor([node]).run(...)" % node)
    return getattr(node, "is_true", True)


_METHODS = {
    "__add__": _sum,
    "__radd__": _sum,
    "__mul__": _product,
    "__rmul__": _product,
    "__sub__": lambda a, b: add_byconst_op(a, -b) if _is_number(b) else e.subtract_op(a, b),
    "__rsub__": lambda a, b: e.subtract_op(b, a),
    "__truediv__": e.divide_op.__call__,
    "__rtruediv__": lambda a, b: e.divide_op(b, a),
    "__pow__": _power,
    "__rpow__": lambda a, b: e.power_op(b, a),
    "__neg__": e.negate_op.__call__,
    "__abs__": e.abs_op.__call__,
    "__matmul__": linear.product_op.__call__,
    "__rmatmul__": lambda a, b: linear.product_op(b, a),
    "__lt__": e.less_op.__call__,
    "__le__": e.less_equal_op.__call__,
    "__gt__": e.greater_op.__call__,
    "__ge__": e.greater_equal_op.__call__,
    "__getitem__": movement.index_op.__call__,
    "sum": reduction.sum_op.__call__,
    "mean": reduction.mean_op.__call__,
    "max": reduction.max_op.__call__,
    "min": reduction.min_op.__call__,
    "reshape": lambda x, *shape: movement.reshape_op(x, shape[0] if len(shape) == 1 else shape),
    "transpose": lambda x, *axes: movement.transpose_op(x, axes or None),
}


def _method(name, function):
    """The function as a method: a bound __call__ would not see the node."""

    def method(self, *args, **options):
        return function(self, *args, **options)

    method.__name__ = name
    return method


def install():
    """Gives them to Node, once."""
    for name, function in _METHODS.items():
        setattr(Node, name, _method(name, function))
    Node.__eq__ = _compared(e.equal_op, True)
    Node.__ne__ = _compared(e.not_equal_op, False)
    Node.__hash__ = object.__hash__
    Node.__bool__ = _truth
    Node.__iter__ = None  # else Python would ask for node[0], node[1], ... for ever
    Node.__array_ufunc__ = None  # so that numpy leaves array * node to the node
    Node.T = property(movement.transpose_op.__call__)
    Node.shape = property(lambda node: (known(node) or (None,))[0])
    Node.__repr__ = described
