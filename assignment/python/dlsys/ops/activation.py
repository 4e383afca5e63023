"""Activations: functions of one number, and softmax along an axis."""

import math

import numpy as np

from .base import TensorOp, axes_of
from .elementwise import (
    FunctionOp,
    exp_op,
    greater_op,
    square_op,
    subtract_op,
    tanh_op,
    where_op,
)
from .reduction import sum_op

#: How gelu's tanh form is scaled.
_GELU = math.sqrt(2 / math.pi)


class LeakyReluOp(FunctionOp):
    """x, and `slope` * x below 0. The gradient at 0 is the slope."""

    label = "LeakyRelu({},{})"
    code = "a > 0 ? a : p0 * a"
    samples = (((3, 4), {"slope": 0.1}), ((300,),))

    def __call__(self, x, slope=0.01):
        return TensorOp.__call__(self, x, slope=slope)

    def forward(self, node, x):
        return np.where(x > 0, x, node.attributes["slope"] * x)

    def numbers(self, node):
        return (node.attributes["slope"],)

    def gradient(self, node, grad):
        is_above = greater_op(node.inputs[0], 0.0)
        return [where_op(is_above, grad, grad * node.attributes["slope"])]


class SigmoidOp(FunctionOp):
    """1 / (1 + exp(-x)), without overflow."""

    label = "Sigmoid({})"
    code = "1 / (1 + exp(-a))"

    def forward(self, node, x):
        small = np.exp(-np.abs(x))
        return np.where(x >= 0, 1.0, small) / (1 + small)

    def gradient(self, node, grad):
        return [grad * (node * subtract_op(1.0, node))]


class ErfOp(FunctionOp):
    """The error function."""

    label = "Erf({})"
    code = "error_function(a)"

    def forward(self, node, x):
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=np.float64)

    def gradient(self, node, grad):
        return [grad * (exp_op(square_op(node.inputs[0]) * -1) * (2 / math.sqrt(math.pi)))]


class SiluOp(FunctionOp):
    """x * sigmoid(x)."""

    label = "Silu({})"
    code = "a / (1 + exp(-a))"

    def forward(self, node, x):
        return x * sigmoid_op.forward(node, x)

    def gradient(self, node, grad):
        s = sigmoid_op(node.inputs[0])
        return [grad * (s + node * subtract_op(1.0, s))]


class GeluOp(FunctionOp):
    """x * Phi(x), Phi that of the normal distribution; its tanh form if `tanh` is True.

    Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
    """

    label = "Gelu({},{})"
    samples = (((3, 4),), ((3, 4), {"tanh": True}))

    def __call__(self, x, tanh=False):
        return TensorOp.__call__(self, x, tanh=tanh)

    def forward(self, node, x):
        if node.attributes["tanh"]:
            return 0.5 * x * (1 + np.tanh(_GELU * (x + 0.044715 * x**3)))
        return 0.5 * x * (1 + erf_op.forward(node, x / math.sqrt(2)))

    def lower(self, node, build, x):
        if node.attributes["tanh"]:
            inner = "p0 * (a + T(0.044715) * a * a * a)"
            return build.elementwise("T(0.5) * a * (1 + tanh(%s))" % inner, x, numbers=(_GELU,))
        code = "T(0.5) * a * (1 + error_function(a * p0))"
        return build.elementwise(code, x, numbers=(math.sqrt(0.5),))

    def gradient(self, node, grad):
        (x,) = node.inputs
        if node.attributes["tanh"]:
            t = tanh_op((x + x * square_op(x) * 0.044715) * _GELU)
            inner = (square_op(x) * (3 * 0.044715) + 1) * _GELU
            slope = (t + 1) * 0.5 + x * subtract_op(1.0, square_op(t)) * inner * 0.5
        else:
            density = exp_op(square_op(x) * -0.5) * (1 / math.sqrt(2 * math.pi))
            slope = (erf_op(x * (1 / math.sqrt(2))) + 1) * 0.5 + x * density
        return [grad * slope]


class SoftplusOp(FunctionOp):
    """log(1 + exp(x)), without overflow."""

    label = "Softplus({})"
    code = "maximum(a, T(0)) + log1p(exp(-absolute(a)))"

    def forward(self, node, x):
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    def gradient(self, node, grad):
        return [grad * sigmoid_op(node.inputs[0])]


class _AlongAxisOp(TensorOp):
    """An op of all elements along one axis; the last unless another is named."""

    samples = (((3, 4),), ((2, 3, 5), {"axis": 1}), ((7,),))

    def __call__(self, x, axis=-1):
        return TensorOp.__call__(self, x, axis=axis)

    def shape(self, node, shape):
        axes_of(node.attributes["axis"], len(shape))
        return shape

    def lower(self, node, build, x):
        """A function of rows: the axis is moved behind all others, and back."""
        axis = node.attributes["axis"]
        moved = build.view(lambda array: np.moveaxis(array, axis, -1), x)
        return build.view(lambda array: np.moveaxis(array, -1, axis), build.rows(self.name, moved))


def shifted(x, axis):
    """The exponents of softmax, the largest of which is 0."""
    return x - np.max(x, axis=axis, keepdims=True)


def log_softmax(x, axis):
    """The logarithm of the softmax of a numpy array."""
    exponents = shifted(x, axis)
    return exponents - np.log(np.sum(np.exp(exponents), axis=axis, keepdims=True))


class SoftmaxAlongOp(_AlongAxisOp):
    """exp(x) divided by its sum along an axis."""

    label, name = "Softmax({},{})", "softmax"

    def forward(self, node, x):
        exponentials = np.exp(shifted(x, node.attributes["axis"]))
        return exponentials / np.sum(exponentials, axis=node.attributes["axis"], keepdims=True)

    def gradient(self, node, grad):
        weighted = grad * node
        total = sum_op(weighted, node.attributes["axis"], True)
        return [subtract_op(weighted, node * total)]


class LogSoftmaxOp(_AlongAxisOp):
    """The logarithm of softmax, right where that is 0."""

    label = "LogSoftmax({},{})"

    def forward(self, node, x):
        return log_softmax(x, node.attributes["axis"])

    def gradient(self, node, grad):
        total = sum_op(grad, node.attributes["axis"], True)
        return [subtract_op(grad, exp_op(node) * total)]


leaky_relu_op = LeakyReluOp()
sigmoid_op = SigmoidOp()
erf_op = ErfOp()
silu_op = SiluOp()
gelu_op = GeluOp()
softplus_op = SoftplusOp()
softmax_along_op = SoftmaxAlongOp()
log_softmax_op = LogSoftmaxOp()
