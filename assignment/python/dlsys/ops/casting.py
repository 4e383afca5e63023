"""Values in another dtype: what is kept of them, and what is computed in it."""

import numpy as np

from dlsys.autodiff import zeroslike_op
from dlsys.dtypes import FLOATS, checked

from .base import TensorOp
from .elementwise import FunctionOp


class CastOp(FunctionOp):
    """x, rounded to a dtype with a fraction."""

    label = "Cast({})"
    samples = (((3, 4), {"dtype": "float64"}), ((300,), {"dtype": "float64"}))

    def __call__(self, x, dtype):
        """A node whose value is kept in `dtype` on devices: "float32", "bfloat16", ...; numpy
        rounds, and keeps it as it was.

        Raises:
            TypeError: it is none with a fraction.
        """
        found = checked(dtype)
        if found not in FLOATS:
            names = ", ".join(sorted(each.name for each in FLOATS))
            raise TypeError("a node is cast to %s, not to %s" % (names, found))
        return TensorOp.__call__(self, x, dtype=found.name)

    def forward(self, node, x):
        return x.astype(checked(node.attributes["dtype"])).astype(np.result_type(x, np.float32))

    def lower(self, node, build, x):
        return build.as_dtype(x, checked(node.attributes["dtype"]))

    def gradient(self, node, grad):
        return [cast_like_op(grad, node.inputs[0])]


class CastLikeOp(TensorOp):
    """g in the dtype of x, on devices: the gradient of what only changes a dtype."""

    label = "CastLike({},{})"
    samples = (((3, 4), (3, 4)), ((300,), (2,)))

    def __call__(self, g, x):
        return TensorOp.__call__(self, g, x)

    def forward(self, node, g, x):
        return np.asarray(g)

    def lower(self, node, build, g, x):
        return build.as_dtype(g, x.dtype) if x.dtype in FLOATS else g

    def gradient(self, node, grad):
        g, x = node.inputs
        return [cast_like_op(grad, g), zeroslike_op(x)]


cast_op = CastOp()
cast_like_op = CastLikeOp()
