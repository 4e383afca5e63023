"""Nodes that compute the same of the same become one."""

import numpy as np

from dlsys.ops.flow import StopGradientOp

from ..graph import Report


def merge_equal(graph):
    """Merges nodes of one op, equal attributes and the same inputs.

        before                              after
        a = tanh(x)                         a = tanh(x)
        b = tanh(x)                         c = a * a
        c = a * b

    0.0 and -0.0 differ, and so do 1, 1.0 and True. Random draws stay apart: each has its own
    numbers. Stop points (stop_gradient, checkpoint) stay, since the user put them there. a + b and
    b + a stay apart too: of two NaN a sum keeps the first one's bits.
    """
    report = Report("equal nodes merged")
    seen = []
    places = {}

    def rule(node):
        if node.op.is_fed or getattr(node.op, "draws", False):
            return node
        if isinstance(node.op, StopGradientOp) or "inner" in getattr(node, "attributes", {}):
            report.leave("stop points", node.name)
            return node
        for place in places.get(type(node.op), []):
            if same(seen[place], node):
                report.changed.append(node.name)
                return seen[place]
        places.setdefault(type(node.op), []).append(len(seen))
        seen.append(node)
        return node

    graph.rewrite(rule)
    return report


UNIMPORTANT = {"inputs", "op", "name", "made_at", "origin", "known", "is_true", "runs", "initial"}


def same(one, other):
    if len(one.inputs) != len(other.inputs):
        return False
    if any(a is not b for a, b in zip(one.inputs, other.inputs)):
        return False
    names = (set(vars(one)) | set(vars(other))) - UNIMPORTANT
    try:
        return all(
            _exactly(getattr(one, n, None)) == _exactly(getattr(other, n, None)) for n in names
        )
    except TypeError:
        return False



def _exactly(value):
    """A key that is equal for values of the same type and bits alone.

    Raises:
        TypeError: of this type nobody knows when two are equal.
    """
    if isinstance(value, dict):
        return ("dict", *((name, _exactly(v)) for name, v in sorted(value.items())))
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *map(_exactly, value))
    if isinstance(value, slice):
        return ("slice", *map(_exactly, (value.start, value.stop, value.step)))
    if isinstance(value, (np.ndarray, np.generic)):
        return ("array", value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str)):
        return (type(value).__name__, repr(value))
    if type(value).__module__.startswith("dlsys.ops"):  # the op of a part, as PlaceOp has it
        return ("op", type(value))
    raise TypeError(type(value))
