"""Reductions over any axes: an integer, several, or None for all; kept as axes of 1 if wanted."""

import math
import numbers

import numpy as np

from dlsys.autodiff import zeroslike_op
from dlsys.backend.view import Literal, broadcast

from .base import TensorOp, axes_of, reduced
from .elementwise import divide_op, equal_op, exp_op, subtract_op, where_op


class ReductionOp(TensorOp):
    """One number for all elements along some axes."""

    samples = (
        ((3, 4),),
        ((2, 3, 5), {"axis": 1}),
        ((2, 3, 5), {"axis": (0, -1), "keepdims": True}),
        ((7,), {"axis": 0, "keepdims": True}),
    )

    def __call__(self, x, axis=None, keepdims=False, **more):
        if axis is not None and not isinstance(axis, numbers.Integral):
            if not isinstance(axis, (tuple, list)):
                said = "%s: axis is %r; hint: an integer, several, or None"
                raise TypeError(said % (self.name, axis))
            axis = tuple(axis)
        return TensorOp.__call__(self, x, axis=axis, keepdims=keepdims, **more)

    def shape(self, node, shape):
        return reduced(shape, node.attributes["axis"], node.attributes["keepdims"])

    def options(self, node, x):
        """Which axes and whether to keep them, as numpy's keyword arguments."""
        axes = axes_of(node.attributes["axis"], x.ndim)
        return {"axis": axes, "keepdims": node.attributes["keepdims"]}

    def reduce(self, node, build, kind, *inputs, code="a"):
        """The reduction of a back end over the node's axes."""
        axes = axes_of(node.attributes["axis"], len(inputs[0].shape))
        return build.reduce(kind, inputs, axes, node.attributes["keepdims"], code)

    def reduce_rows(self, node, build, kind, x):
        """A reduction of rows.h over the node's axes, which are moved behind all others."""
        axes = axes_of(node.attributes["axis"], len(x.shape))
        rows = build.rows(kind, as_rows(build, x, axes), is_reduction=True)
        return build.reshape(rows, self.shape(node, x.shape))

    def spread(self, node, value):
        """A node of the result's shape, repeated in the shape of the input."""
        (x,), attributes = node.inputs, node.attributes
        return spread_op(value, x, attributes["axis"], attributes["keepdims"])


class SpreadOp(TensorOp):
    """The gradient of a sum: g, repeated in the shape of x along the axes that were summed."""

    label = "Spread({},{}.shape)"
    samples = (
        ((), (3, 4)),
        ((2, 5), (2, 3, 5), {"axis": 1}),
        ((1, 3, 1), (2, 3, 5), {"axis": (0, 2), "keepdims": True}),
    )

    def __call__(self, g, x, axis=None, keepdims=False):
        return TensorOp.__call__(self, g, x, axis=axis, keepdims=keepdims)

    def forward(self, node, g, x):
        kept = reduced(x.shape, node.attributes["axis"], True)
        return np.broadcast_to(np.reshape(g, kept), x.shape)

    def lower(self, node, build, g, x):
        kept = reduced(x.shape, node.attributes["axis"], True)
        return broadcast(build.reshape(g, kept), x.shape)

    def shape(self, node, g, x):
        wanted = reduced(x, node.attributes["axis"], node.attributes["keepdims"])
        if g != wanted:
            raise ValueError("the gradient has shape %s, not %s" % (g, wanted))
        return x

    def gradient(self, node, grad):
        attributes = node.attributes
        return [
            sum_op(grad, attributes["axis"], attributes["keepdims"]), zeroslike_op(node.inputs[1])
        ]  # fmt: skip

    def infer_dtype(self, node, dtypes):
        return dtypes[0]


class _TotalOp(ReductionOp):
    """A sum or a product: of integers and truth values, an int64."""

    def infer_dtype(self, node, dtypes):
        return np.dtype(np.float64 if np.issubdtype(dtypes[0], np.floating) else np.int64)


def _count(shape, node):
    """How many elements of an array of this shape the node's axes have together."""
    return math.prod(shape[a] for a in axes_of(node.attributes["axis"], len(shape)))


def as_rows(build, x, axes):
    """x on a back end with some axes as one, behind all others."""
    kept = [a for a in range(len(x.shape)) if a not in axes]
    moved = build.view(lambda array: np.transpose(array, (*kept, *axes)), x)
    last = math.prod(x.shape[a] for a in axes)
    return build.reshape(moved, (*(x.shape[a] for a in kept), last))


class SumOp(_TotalOp):
    """The sum."""

    label = "Sum({},{},{})"

    def forward(self, node, x):
        return np.sum(x, **self.options(node, x))

    def lower(self, node, build, x):
        return self.reduce(node, build, "sum", x)

    def gradient(self, node, grad):
        return [self.spread(node, grad)]


class MeanOp(ReductionOp):
    """The mean."""

    label = "Mean({},{},{})"

    def forward(self, node, x):
        return np.mean(x, **self.options(node, x))

    def lower(self, node, build, x):
        total = self.reduce(node, build, "sum", x)
        return build.elementwise("a / p0", total, numbers=(_count(x.shape, node),))

    def gradient(self, node, grad):
        (x,), axis = node.inputs, node.attributes["axis"]
        return [divide_by_count_op(self.spread(node, grad), x, axis)]


class DivideByCountOp(TensorOp):
    """y / the number of elements of x along some axes, less `less`: the end of a mean."""

    label = "DivideByCount({},{})"
    elementwise = True
    samples = (((3, 4), (3, 4)), ((5,), (2, 3), {"axis": 0}), ((5,), (2, 3), {"less": 1}))

    def __call__(self, y, x, axis=None, less=0):
        return TensorOp.__call__(self, y, x, axis=axis, less=less)

    def forward(self, node, y, x):
        axes = axes_of(node.attributes["axis"], x.ndim)
        count = int(np.prod([x.shape[a] for a in axes])) - node.attributes["less"]
        return y / count

    def lower(self, node, build, y, x):
        count = _count(x.shape, node) - node.attributes["less"]
        if isinstance(y, Literal) and count != 0:  # as of the gradient of a mean
            return build.number(y.value / count, y.shape)
        return build.elementwise("a / p0", y, numbers=(count,))

    def gradient(self, node, grad):
        x, attributes = node.inputs[1], node.attributes
        counted = divide_by_count_op(grad, x, attributes["axis"], attributes["less"])
        return [counted, zeroslike_op(x)]


class VarianceOp(ReductionOp):
    """The mean of the squared distances from the mean; divided by the number less `ddof`."""

    label = "Variance({},{},{},{})"
    samples = (*ReductionOp.samples[:3], ((2, 3, 5), {"axis": 2, "ddof": 1}))

    def __call__(self, x, axis=None, keepdims=False, ddof=0):
        return ReductionOp.__call__(self, x, axis, keepdims, ddof=ddof)

    def forward(self, node, x):
        return np.var(x, ddof=node.attributes["ddof"], **self.options(node, x))

    def lower(self, node, build, x):
        axes = axes_of(node.attributes["axis"], len(x.shape))
        squares = build.squared_distances(x, axes, node.attributes["keepdims"])
        less = _count(x.shape, node) - node.attributes["ddof"]
        return build.elementwise("a / p0", squares, numbers=(less,))

    def gradient(self, node, grad):
        (x,), axis, ddof = node.inputs, node.attributes["axis"], node.attributes["ddof"]
        distance = subtract_op(x, mean_op(x, axis, True))
        return [divide_by_count_op(self.spread(node, grad) * distance * 2, x, axis, ddof)]


def _check_some(shape, axis, result):
    """Of no elements none is the largest.

    Raises:
        ValueError: an element of the result would be one.
    """
    if math.prod(shape) == 0 < math.prod(result):
        raise ValueError("shape %s has no elements along axis %s" % (shape, axis))


class _ExtremumOp(ReductionOp):
    """The largest or smallest element. Equal ones share the gradient."""

    keeps_dtype = True

    def shape(self, node, shape):
        result = ReductionOp.shape(self, node, shape)
        _check_some(shape, node.attributes["axis"], result)
        return result

    def gradient(self, node, grad):
        (x,), axis = node.inputs, node.attributes["axis"]
        is_extreme = equal_op(x, self.spread(node, node))
        count = sum_op(where_op(is_extreme, 1.0, 0.0), axis, True)
        return [where_op(is_extreme, divide_op(self.spread(node, grad), count), 0.0)]


class MaxOp(_ExtremumOp):
    """The largest element; NaN if there is one."""

    label = "Max({},{},{})"

    def forward(self, node, x):
        return np.max(x, **self.options(node, x))

    def lower(self, node, build, x):
        return self.reduce(node, build, "max", x)


class MinOp(_ExtremumOp):
    """The smallest element; NaN if there is one."""

    label = "Min({},{},{})"

    def forward(self, node, x):
        return np.min(x, **self.options(node, x))

    def lower(self, node, build, x):
        return self.reduce(node, build, "min", x)


class ProdOp(_TotalOp):
    """The product."""

    label = "Prod({},{},{})"

    def forward(self, node, x):
        return np.prod(x, **self.options(node, x))

    def lower(self, node, build, x):
        return self.reduce(node, build, "prod", x)

    def gradient(self, node, grad):
        (x,), axis = node.inputs, node.attributes["axis"]
        return [self.spread(node, grad) * product_of_others_op(x, axis)]


class ProductOfOthersOp(TensorOp):
    """For each element, the product of the others along some axes: right where some are 0."""

    label = "ProductOfOthers({},{})"
    samples = (((3, 4),), ((2, 3, 5), {"axis": (0, 2)}), ((5,), {"axis": 0}))
    domain = (0.5, 2.0)

    def __call__(self, x, axis=None):
        return TensorOp.__call__(self, x, axis=axis)

    def forward(self, node, x):
        axes = axes_of(node.attributes["axis"], x.ndim)
        kept = [a for a in range(x.ndim) if a not in axes]
        moved = np.transpose(x, (*kept, *axes))
        rows = moved.reshape(*(x.shape[a] for a in kept), -1)
        before, after = np.ones_like(rows), np.ones_like(rows)
        before[..., 1:] = np.cumprod(rows[..., :-1], axis=-1)
        after[..., :-1] = np.cumprod(rows[..., :0:-1], axis=-1)[..., ::-1]
        return np.transpose((before * after).reshape(moved.shape), np.argsort((*kept, *axes)))

    def lower(self, node, build, x):
        axes = axes_of(node.attributes["axis"], len(x.shape))
        kept = [a for a in range(len(x.shape)) if a not in axes]
        found = build.rows("product_of_others", as_rows(build, x, axes))
        moved = build.reshape(found, tuple(x.shape[a] for a in (*kept, *axes)))
        return build.view(lambda array: np.transpose(array, np.argsort((*kept, *axes))), moved)

    def gradient(self, node, grad):
        """The weighted sum of prod(x) / (x_i x_j) over all other i; not finite where x_j is 0."""
        (x,), axis = node.inputs, node.attributes["axis"]
        weighted = grad * node
        total = spread_op(sum_op(weighted, axis), x, axis)
        return [divide_op(subtract_op(total, weighted), x)]


class LogSumExpOp(ReductionOp):
    """log(sum(exp(x))), right for large x too."""

    label, name = "LogSumExp({},{},{})", "logsumexp"

    def forward(self, node, x):
        options = self.options(node, x)
        highest = np.max(x, axis=options["axis"], keepdims=True)
        highest = np.where(np.isfinite(highest), highest, 0)
        total = np.log(np.sum(np.exp(x - highest), axis=options["axis"], keepdims=True)) + highest
        return total.reshape(self.shape(node, x.shape))

    def lower(self, node, build, x):
        return self.reduce_rows(node, build, "logsumexp", x)

    def gradient(self, node, grad):
        (x,) = node.inputs
        return [self.spread(node, grad) * exp_op(subtract_op(x, self.spread(node, node)))]


class _ArgOp(TensorOp):
    """Where the largest or smallest element stands along one axis, the first of equal ones."""

    samples = (((3, 4), {"axis": 1}), ((7,), {"axis": 0, "keepdims": True}), ((2, 3, 4), {}))
    dtype = np.int64

    def __call__(self, x, axis=None, keepdims=False):
        return TensorOp.__call__(self, x, axis=axis, keepdims=keepdims)

    def shape(self, node, shape):
        result = reduced(shape, node.attributes["axis"], node.attributes["keepdims"])
        _check_some(shape, node.attributes["axis"], result)
        return result

    def lower(self, node, build, x):
        axes = axes_of(node.attributes["axis"], len(x.shape))
        rows = build.rows(self.name, as_rows(build, x, axes), is_reduction=True)
        return build.reshape(rows, self.shape(node, x.shape))

    def gradient(self, node, grad):
        return self.no_gradient(node)


class ArgMaxOp(_ArgOp):
    """Where the largest element stands; in the flattened array if axis is None."""

    label, name = "ArgMax({},{})", "argmax"

    def forward(self, node, x):
        return np.argmax(x, **node.attributes)


class ArgMinOp(_ArgOp):
    """Where the smallest element stands; in the flattened array if axis is None."""

    label, name = "ArgMin({},{})", "argmin"

    def forward(self, node, x):
        return np.argmin(x, **node.attributes)


spread_op = SpreadOp()
sum_op = SumOp()
mean_op = MeanOp()
divide_by_count_op = DivideByCountOp()
variance_op = VarianceOp()
max_op = MaxOp()
min_op = MinOp()
prod_op = ProdOp()
product_of_others_op = ProductOfOthersOp()
logsumexp_op = LogSumExpOp()
argmax_op = ArgMaxOp()
argmin_op = ArgMinOp()
