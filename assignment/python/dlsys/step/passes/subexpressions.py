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

    What a node is called (`name`), where it was made (`made_at`), which node it is a copy of
    (`origin`) and what is known of its shape (`known`) change no value.
    """
    # TODO (task 3.1): your code here
    raise NotImplementedError("task 3.1 is not written yet")


# TODO (task 3.1): your own functions here


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
