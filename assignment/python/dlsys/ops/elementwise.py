"""Arithmetic and functions of one or two numbers, element by element, with numpy's broadcasting."""

import math
import numbers

import numpy as np

from dlsys.autodiff import unbroadcast_op, zeroslike_op
from dlsys.broadcasting import broadcast_rule

from .base import TensorOp


class ElementwiseOp(TensorOp):
    """Element i of the result depends on element i of the inputs alone, once they are broadcast."""

    elementwise = True

    def shape(self, node, *shapes):
        result = shapes[0]
        for shape in shapes[1:]:
            result = broadcast_rule(result, shape)
        return result

    def summed_back(self, node, *grads):
        """Gradients in the shapes of the inputs, which may have been broadcast."""
        return [
            unbroadcast_op(grad, operand) for grad, operand in zip(grads, node.inputs, strict=True)
        ]


class FunctionOp(ElementwiseOp):
    """A function of one number."""

    samples = (((3, 4),), ((300,),), ((),))

    def __call__(self, x):
        return ElementwiseOp.__call__(self, x)


class PairOp(ElementwiseOp):
    """A function of two numbers."""

    samples = (((3, 4), (3, 4)), ((3, 1), (4,)), ((2, 3, 4), ()), ((1, 3), (5, 1, 3)))

    def __call__(self, a, b):
        return ElementwiseOp.__call__(self, a, b)


class SubtractOp(PairOp):
    """a - b."""

    keeps_dtype = True
    label = "({}-{})"
    code = "a - b"
    needs_numbers = True

    def forward(self, node, a, b):
        return a - b

    def gradient(self, node, grad):
        return self.summed_back(node, grad, negate_op(grad))


class DivideOp(PairOp):
    """a / b."""

    label = "({}/{})"
    code = "a / b"
    domain = (0.5, 2.0)

    def forward(self, node, a, b):
        return np.true_divide(a, b)

    def gradient(self, node, grad):
        b = node.inputs[1]
        return self.summed_back(node, divide_op(grad, b), negate_op(divide_op(grad * node, b)))


class PowerOp(PairOp):
    """a ** b. The gradient of b is zero where a is 0, and NaN where a is below."""

    label = "({}**{})"
    code = "power(a, b)"
    domain = (0.5, 2.0)

    def forward(self, node, a, b):
        return np.power(a, b, dtype=np.result_type(a, b, np.float32))

    def gradient(self, node, grad):
        a, b = node.inputs
        slope = b * power_op(a, subtract_op(b, 1.0))
        is_zero = equal_op(a, 0.0)
        log = where_op(is_zero, 0.0, log_op(where_op(is_zero, 1.0, a)))
        return self.summed_back(node, grad * slope, grad * node * log)


class PowerByConstOp(FunctionOp):
    """x ** c, where c is a number."""

    label = "({}**{})"
    samples = (((3, 4), {"exponent": 3}), ((300,), {"exponent": 2.5}), ((), {"exponent": -1}))
    domain = (0.5, 2.0)

    def __call__(self, x, exponent):
        return ElementwiseOp.__call__(self, x, exponent=exponent)

    def forward(self, node, x):
        return np.power(x, node.attributes["exponent"], dtype=np.result_type(x, np.float32))

    def lower(self, node, build, x):
        exponent = node.attributes["exponent"]
        code = {1: "a", 2: "a * a", 3: "a * a * a", -1: "1 / a", 0.5: "sqrt(a)"}.get(exponent)
        if code:
            return build.elementwise(code, x)
        return build.elementwise("power(a, p0)", x, numbers=(exponent,))

    def gradient(self, node, grad):
        (x,), exponent = node.inputs, node.attributes["exponent"]
        if exponent == 0:
            return [zeroslike_op(x)]
        return [grad * (power_byconst_op(x, exponent - 1) * exponent)]


class NegateOp(FunctionOp):
    """-x."""

    keeps_dtype = True
    label = "-{}"
    code = "-a"
    needs_numbers = True

    def forward(self, node, x):
        return np.negative(x)

    def gradient(self, node, grad):
        return [negate_op(grad)]


class SquareOp(FunctionOp):
    """x ** 2."""

    keeps_dtype = True
    label = "Square({})"
    code = "a * a"

    def forward(self, node, x):
        return x * x

    def gradient(self, node, grad):
        return [grad * (node.inputs[0] * 2)]


class SqrtOp(FunctionOp):
    """The square root."""

    label = "Sqrt({})"
    code = "sqrt(a)"
    domain = (0.5, 2.0)

    def forward(self, node, x):
        return np.sqrt(x)

    def gradient(self, node, grad):
        return [divide_op(grad * 0.5, node)]


class RsqrtOp(FunctionOp):
    """1 / sqrt(x)."""

    label = "Rsqrt({})"
    code = "1 / sqrt(a)"
    domain = (0.5, 2.0)

    def forward(self, node, x):
        return 1 / np.sqrt(x)

    def gradient(self, node, grad):
        return [grad * (power_byconst_op(node, 3) * -0.5)]


class ExpOp(FunctionOp):
    """e ** x."""

    label = "Exp({})"
    code = "exp(a)"

    def forward(self, node, x):
        return np.exp(x)

    def gradient(self, node, grad):
        return [grad * node]


class LogOp(FunctionOp):
    """The natural logarithm."""

    label = "Log({})"
    code = "log(a)"
    domain = (0.5, 2.0)

    def forward(self, node, x):
        return np.log(x)

    def gradient(self, node, grad):
        return [divide_op(grad, node.inputs[0])]


class Log1pOp(FunctionOp):
    """log(1 + x), right for small x too."""

    label = "Log1p({})"
    code = "log1p(a)"
    domain = (-0.5, 2.0)

    def forward(self, node, x):
        return np.log1p(x)

    def gradient(self, node, grad):
        return [divide_op(grad, node.inputs[0] + 1)]


class TanhOp(FunctionOp):
    """The hyperbolic tangent."""

    label = "Tanh({})"
    code = "tanh(a)"

    def forward(self, node, x):
        return np.tanh(x)

    def gradient(self, node, grad):
        return [grad * subtract_op(1.0, square_op(node))]


class AbsOp(FunctionOp):
    """The absolute value. The gradient at 0 is 0."""

    keeps_dtype = True
    label = "Abs({})"
    code = "absolute(a)"

    def forward(self, node, x):
        return np.abs(x)

    def gradient(self, node, grad):
        return [grad * sign_op(node.inputs[0])]


class SignOp(FunctionOp):
    """-1, 0 or 1."""

    keeps_dtype = True
    label = "Sign({})"
    code = "sign(a)"
    needs_numbers = True

    def forward(self, node, x):
        return np.sign(x)

    def gradient(self, node, grad):
        return self.no_gradient(node)


class ClipOp(FunctionOp):
    """x between low and high; None is no limit. The gradient at a limit is that inside."""

    label = "Clip({},{},{})"
    code = "minimum(maximum(a, p0), p1)"
    samples = (((3, 4), {"low": -1.0, "high": 0.5}), ((300,), {"low": None, "high": 0.0}))

    def __call__(self, x, low=None, high=None):
        for limit in (low, high):
            if not (limit is None or isinstance(limit, (numbers.Real, np.number))):
                raise TypeError("clip: a limit is %r; hint: a number, or None" % (limit,))
        return ElementwiseOp.__call__(self, x, low=low, high=high)

    def forward(self, node, x):
        return np.clip(x, node.attributes["low"], node.attributes["high"])

    def numbers(self, node):
        low, high = node.attributes["low"], node.attributes["high"]
        return (-math.inf if low is None else low, math.inf if high is None else high)

    def gradient(self, node, grad):
        (x,), low, high = node.inputs, node.attributes["low"], node.attributes["high"]
        if low is not None:
            grad = where_op(greater_equal_op(x, low), grad, 0.0)
        if high is not None:
            grad = where_op(less_equal_op(x, high), grad, 0.0)
        return [grad]


class _ExtremeOp(PairOp):
    """The larger or the smaller of two. Where they are equal, each gets half of the gradient."""

    keeps_dtype = True

    def gradient(self, node, grad):
        a, b = node.inputs
        half = equal_op(a, b) * 0.5
        first, second = self.wins(a, b) + half, self.wins(b, a) + half
        return self.summed_back(node, grad * first, grad * second)


class MaximumOp(_ExtremeOp):
    """The larger of two numbers; NaN if one is NaN."""

    label = "Maximum({},{})"
    code = "maximum(a, b)"

    def forward(self, node, a, b):
        return np.maximum(a, b)

    def wins(self, a, b):
        """Where the result is a, and not b."""
        return greater_op(a, b)


class MinimumOp(_ExtremeOp):
    """The smaller of two numbers; NaN if one is NaN."""

    label = "Minimum({},{})"
    code = "minimum(a, b)"

    def forward(self, node, a, b):
        return np.minimum(a, b)

    def wins(self, a, b):
        """Where the result is a, and not b."""
        return less_op(a, b)


class ComparisonOp(PairOp):
    """A truth value for each pair."""

    dtype = np.bool_

    def forward(self, node, a, b):
        return self.compare(a, b)

    def gradient(self, node, grad):
        return self.no_gradient(node)


class LessOp(ComparisonOp):
    """a < b."""

    label, compare = "({}<{})", np.less
    code = "a < b"


class LessEqualOp(ComparisonOp):
    """a <= b."""

    label, compare = "({}<={})", np.less_equal
    code = "a <= b"


class GreaterOp(ComparisonOp):
    """a > b."""

    label, compare = "({}>{})", np.greater
    code = "a > b"


class GreaterEqualOp(ComparisonOp):
    """a >= b."""

    label, compare = "({}>={})", np.greater_equal
    code = "a >= b"


class EqualOp(ComparisonOp):
    """a == b."""

    label, compare = "({}=={})", np.equal
    code = "a == b"


class NotEqualOp(ComparisonOp):
    """a != b."""

    label, compare = "({}!={})", np.not_equal
    code = "a != b"


class LogicalAndOp(ComparisonOp):
    """Whether neither is 0."""

    label, compare = "({}&{})", np.logical_and
    code = "a != 0 && b != 0"


class LogicalOrOp(ComparisonOp):
    """Whether one is not 0."""

    label, compare = "({}|{})", np.logical_or
    code = "a != 0 || b != 0"


class LogicalXorOp(ComparisonOp):
    """Whether one is 0 and the other is not."""

    label, compare = "({}^{})", np.logical_xor
    code = "(a != 0) != (b != 0)"


class LogicalNotOp(FunctionOp):
    """Whether it is 0."""

    label = "~{}"
    code = "!a"
    dtype = np.bool_

    def forward(self, node, x):
        return np.logical_not(x)

    def gradient(self, node, grad):
        return self.no_gradient(node)


class WhereOp(ElementwiseOp):
    """a where the condition is not 0, else b."""

    keeps_dtype = True
    label = "Where({},{},{})"
    code = "a != 0 ? b : c"
    samples = (((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), ()), ((4,), (2, 3, 4), (3, 1)))

    def __call__(self, condition, a, b):
        return ElementwiseOp.__call__(self, condition, a, b)

    def forward(self, node, condition, a, b):
        return np.where(condition != 0, a, b)

    def gradient(self, node, grad):
        condition, a, b = node.inputs
        first, second = where_op(condition, grad, 0.0), where_op(condition, 0.0, grad)
        return [zeroslike_op(condition), unbroadcast_op(first, a), unbroadcast_op(second, b)]

    def infer_dtype(self, node, dtypes):
        return super().infer_dtype(node, dtypes[1:])


subtract_op = SubtractOp()
divide_op = DivideOp()
power_op = PowerOp()
power_byconst_op = PowerByConstOp()
negate_op = NegateOp()
square_op = SquareOp()
sqrt_op = SqrtOp()
rsqrt_op = RsqrtOp()
exp_op = ExpOp()
log_op = LogOp()
log1p_op = Log1pOp()
tanh_op = TanhOp()
abs_op = AbsOp()
sign_op = SignOp()
clip_op = ClipOp()
maximum_op = MaximumOp()
minimum_op = MinimumOp()
less_op = LessOp()
less_equal_op = LessEqualOp()
greater_op = GreaterOp()
greater_equal_op = GreaterEqualOp()
equal_op = EqualOp()
not_equal_op = NotEqualOp()
logical_and_op = LogicalAndOp()
logical_or_op = LogicalOrOp()
logical_xor_op = LogicalXorOp()
logical_not_op = LogicalNotOp()
where_op = WhereOp()
