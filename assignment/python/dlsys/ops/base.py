"""What all ops of the full set have in common: operands, attributes, axes, and their errors."""

import numbers
import re
import sys

import numpy as np

from dlsys.autodiff import Node, Op, zeroslike_op

from .known import known

_PACKAGE = __name__.partition(".")[0]


class ShapeError(ValueError):
    """Shapes that an op can't take; the message names the line that made the node."""


class TensorOp(Op):
    """An op of the full set. Its nodes keep their keyword arguments in `node.attributes`.

    A class states label, forward and gradient, and `shape` where the result has not that of the
    first input. Inputs may be nodes, numbers or numpy arrays.
    """

    #: What errors call it; LeakyReluOp is leaky_relu, unless its class says otherwise.
    name = ""
    #: Which inputs are integers that index something, by number; their gradient is zero.
    indices = ()
    #: Between which numbers the op is smooth. Tests draw their inputs from there.
    domain = (-2.0, 2.0)
    #: The dtype of the result, where it is not that of the inputs.
    dtype = np.float64
    #: Whether it is that of the inputs, by numpy's rules, so that integers stay integers.
    keeps_dtype = False
    #: Whether it has no meaning for truth values alone; numpy refuses them, so all back ends do.
    needs_numbers = False
    #: Whether it draws random numbers, others at each run.
    draws = False
    #: The value in C, where it is one of the elements a, b, c of the inputs and of `numbers`. T is
    #: the type in which it is computed; math.h of the back ends has what C lacks.
    code = ""
    #: Whether forward only moves axes and takes parts, so that a back end needs no copy.
    is_view = False

    def __init_subclass__(cls):
        words = re.findall("[A-Z][a-z0-9]*", cls.__name__.removesuffix("Op"))
        cls.name = vars(cls).get("name", "_".join(words).lower())

    def __call__(self, *inputs, **attributes):
        """A new node that applies this op.

        Raises:
            ShapeError: the shapes of the inputs are known, and don't fit.
        """
        values = tuple(attributes.values())
        node = Op.__call__(self, *map(as_node, inputs), attributes=values)
        node.attributes = attributes
        node.made_at = _line_of_user()
        known(node)
        return node

    def launch(self, node, *arrays):
        """The same on the GPU.

        Raises:
            NotImplementedError: the op has no kernel.
        """
        if not self.kernel:
            raise NotImplementedError(
                "%s has no kernel; hint: Executor(nodes) computes on numpy" % self.name
            )
        Op.launch(self, node, *arrays)

    def numbers(self, node):
        """What `code` calls p0, p1, ..."""
        return ()

    def lower(self, node, build, *inputs):
        """The value on a back end, by the instructions that `build`, a Lowering, offers.

        Args:
            inputs: where the values of node.inputs lie.

        Returns:
            Where the value lies: a View or a Literal, of the inferred shape.

        Raises:
            NotImplementedError: the op says neither `code` nor `is_view`, and has no rule.
        """
        if self.code:
            return build.elementwise(self.code, *inputs, numbers=self.numbers(node))
        if self.is_view:
            return build.view(lambda array: self.forward(node, array), inputs[0])
        raise NotImplementedError(
            "%s runs on numpy alone; hint: Executor(nodes) computes on numpy" % self.name
        )

    def infer_shape(self, node, input_shapes):
        """The shape of the node's value.

        Raises:
            ShapeError: the op can't take these shapes.
        """
        try:
            return tuple(int(extent) for extent in self.shape(node, *input_shapes))
        except ValueError as error:
            said = "%s: %s; %s was made at %s" % (self.name, error, node.name, node.made_at)
            raise ShapeError(said) from None

    def shape(self, node, *shapes):
        """The shape of the value, from those of the inputs; a ValueError says what is wrong."""
        return shapes[0]

    def infer_dtype(self, node, dtypes):
        """The dtype of the value on numpy, where what is not whole is a float64.

        Raises:
            TypeError: all inputs are truth values, and the op needs numbers.
        """
        if self.needs_numbers and all(dtype == np.bool_ for dtype in dtypes):
            raise TypeError(
                "%s takes numbers, not truth values; hint: logical_not, logical_xor, or x * 1; "
                "%s was made at %s" % (self.name, node.name, node.made_at)
            )
        if not self.keeps_dtype:
            return np.dtype(self.dtype)
        common = np.result_type(*dtypes)
        return np.dtype(np.float64) if np.issubdtype(common, np.floating) else common

    def no_gradient(self, node):
        """What an op returns whose result is constant around almost every point."""
        return [zeroslike_op(operand) for operand in node.inputs]


class ConstantOp(TensorOp):
    """An array that was known when the graph was built."""

    label = "Constant"
    samples = (([[1.0, 2.0]],), (3.5,))

    def __call__(self, value):
        value = np.asarray(value)
        node = TensorOp.__call__(self, value=value)
        node.name = str(value) if value.ndim == 0 else "Constant%s" % (value.shape,)
        return node

    def forward(self, node):
        return node.attributes["value"]

    def lower(self, node, build):
        return build.constant(node.attributes["value"])

    def gradient(self, node, output_grad):
        return []

    def shape(self, node):
        return node.attributes["value"].shape

    def infer_dtype(self, node, dtypes):
        return node.attributes["value"].dtype


constant_op = ConstantOp()


def as_node(value):
    """A node as it is; a number or an array-like as a constant.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(value, Node):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError("an operand is a node, a number or an array, not %r" % (value,))
    return constant_op(array)


def axes_of(axis, rank):
    """The axes that `axis` names, rising, from 0; None names all.

    Raises:
        ValueError: there is no such axis, or one is named twice.
    """
    if axis is None:
        return tuple(range(rank))
    named = (axis,) if isinstance(axis, numbers.Integral) else tuple(axis)
    if not all(isinstance(each, numbers.Integral) for each in named):
        raise ValueError("axis is %r; hint: an integer, several, or None" % (axis,))
    wrong = [a for a in named if not -rank <= a < rank]
    if wrong:
        raise ValueError("there is no axis %d in %d dimensions" % (wrong[0], rank))
    found = tuple(sorted(a % rank for a in named))
    if len(set(found)) < len(found):
        raise ValueError("axis %s names one axis twice" % (axis,))
    return found


def reduced(shape, axis, keepdims):
    """The shape of a reduction over `axis`."""
    axes = axes_of(axis, len(shape))
    kept = [1 if i in axes else extent for i, extent in enumerate(shape)]
    return tuple(kept) if keepdims else tuple(e for i, e in enumerate(shape) if i not in axes)


def _line_of_user():
    """file:line of the nearest caller outside of this package."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame = frame.f_back
    return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)
