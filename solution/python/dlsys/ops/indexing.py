"""Ops whose operands say where to read or to add: indices are integers, and data."""

import math

import numpy as np

from dlsys.autodiff import zeroslike_op
from dlsys.backend.view import broadcast

from .base import TensorOp, axes_of


def as_indices(node, values, count):
    """Whole numbers as int64, also where they were kept as floats.

    Raises:
        IndexError: one is not among 0 .. count - 1.
    """
    found = np.rint(values).astype(np.int64)
    wrong = found[(found < 0) | (found >= count)]
    if wrong.size:
        raise IndexError(
            "%s: index %d is not among 0 .. %d; %s was made at %s"
            % (node.op.name, wrong[0], count - 1, node.name, node.made_at)
        )
    return found


def one_hot_rows(node, indices, classes):
    """1 at the index and 0 elsewhere, along a new last axis."""
    found = as_indices(node, indices, classes)
    return (found[..., np.newaxis] == np.arange(classes)) * 1.0


def lowered_one_hot(build, indices, classes, code="a == b", numbers=()):
    """one_hot_rows on a back end; `code` may make more of it."""
    checked = build.checked_indices(indices, classes)
    column = build.view(lambda array: array[..., np.newaxis], checked)
    return build.elementwise(code, column, build.constant(np.arange(classes)), numbers=numbers)


def _by_axis(node, build, x):
    """x with three axes: what is before the node's axis, that axis, and what is behind."""
    (axis,) = axes_of(node.attributes["axis"], len(x.shape))
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    return build.reshape(x, (math.prod(before), x.shape[axis], math.prod(behind)))


class GatherOp(TensorOp):
    """x at `indices` along an axis: an index for each element of the result.

    The shapes agree in all other axes.
    """

    label = "Gather({},{},{})"
    samples = (
        ((3, 4), (2, 4), {"axis": 0}),
        ((3, 4), (3, 2), {"axis": -1}),
        ((5,), (8,), {"axis": 0}),
    )
    indices = (1,)

    def __call__(self, x, indices, axis):
        return TensorOp.__call__(self, x, indices, axis=axis)

    def forward(self, node, x, indices):
        axis = node.attributes["axis"]
        return np.take_along_axis(x, as_indices(node, indices, x.shape[axis]), axis)

    def lower(self, node, build, x, indices):
        checked = build.checked_indices(indices, x.shape[node.attributes["axis"]])
        found = build.gather(_by_axis(node, build, x), _by_axis(node, build, checked))
        return build.reshape(found, indices.shape)

    def shape(self, node, x, indices):
        _check_along(x, indices, node.attributes["axis"])
        return indices

    def gradient(self, node, grad):
        x, indices = node.inputs
        found = scatter_add_op(zeroslike_op(x), indices, grad, node.attributes["axis"])
        return [found, zeroslike_op(indices)]

    def infer_dtype(self, node, dtypes):
        return dtypes[0]


class ScatterAddOp(TensorOp):
    """x, with the elements of y added at `indices` along an axis; several may go to one place."""

    label = "ScatterAdd({},{},{},{})"
    samples = (((3, 4), (2, 4), (2, 4), {"axis": 0}), ((5,), (8,), (8,), {"axis": 0}))
    indices = (1,)

    def __call__(self, x, indices, y, axis):
        return TensorOp.__call__(self, x, indices, y, axis=axis)

    def forward(self, node, x, indices, y):
        axis = node.attributes["axis"] % x.ndim
        places = list(np.indices(indices.shape, sparse=True))
        places[axis] = as_indices(node, indices, x.shape[axis])
        found = np.array(x, dtype=np.result_type(x, y))
        np.add.at(found, tuple(places), y)
        return found

    def lower(self, node, build, x, indices, y):
        checked = build.checked_indices(indices, x.shape[node.attributes["axis"]])
        by_axis = [_by_axis(node, build, each) for each in (x, checked, y)]
        return build.reshape(build.scatter_add(*by_axis), x.shape)

    def shape(self, node, x, indices, y):
        _check_along(x, indices, node.attributes["axis"])
        if indices != y:
            raise ValueError("the indices have shape %s, what is added has %s" % (indices, y))
        return x

    def gradient(self, node, grad):
        _, indices, _ = node.inputs
        return [grad, zeroslike_op(indices), gather_op(grad, indices, node.attributes["axis"])]

    def infer_dtype(self, node, dtypes):
        return np.result_type(dtypes[0], dtypes[2])


class OneHotOp(TensorOp):
    """A new last axis of `classes` numbers: 1 at the index, else 0."""

    label = "OneHot({},{})"
    samples = (((5,), {"classes": 4}), ((2, 3), {"classes": 3}))
    indices = (0,)

    def __call__(self, indices, classes):
        if classes < 0:
            raise ValueError("one_hot: %s classes; hint: 0 or more" % (classes,))
        return TensorOp.__call__(self, indices, classes=classes)

    def forward(self, node, indices):
        return one_hot_rows(node, indices, node.attributes["classes"])

    def lower(self, node, build, indices):
        return lowered_one_hot(build, indices, node.attributes["classes"])

    def shape(self, node, indices):
        return (*indices, node.attributes["classes"])

    def gradient(self, node, grad):
        return self.no_gradient(node)


class EmbeddingOp(TensorOp):
    """The rows of a table that indices name: of shape indices.shape + table.shape[1:]."""

    label = "Embedding({},{})"
    samples = (((3, 4), (5,)), ((3, 2, 2), (2, 4)))
    indices = (1,)

    def __call__(self, table, indices):
        return TensorOp.__call__(self, table, indices)

    def forward(self, node, table, indices):
        return table[as_indices(node, indices, len(table))]

    def lower(self, node, build, table, indices):
        checked = build.checked_indices(indices, table.shape[0])
        shape = (1, math.prod(indices.shape), math.prod(table.shape[1:]))
        spread = broadcast(build.reshape(checked, (1, shape[1], 1)), shape)
        found = build.gather(build.reshape(table, (1, table.shape[0], shape[2])), spread)
        return build.reshape(found, (*indices.shape, *table.shape[1:]))

    def shape(self, node, table, indices):
        if not table:
            raise ValueError("the table is a number; hint: it has a row for each index")
        return (*indices, *table[1:])

    def gradient(self, node, grad):
        table, indices = node.inputs
        return [embedding_gradient_op(grad, indices, table), zeroslike_op(indices)]

    def infer_dtype(self, node, dtypes):
        return dtypes[0]


class EmbeddingGradientOp(TensorOp):
    """The rows of g, added where their indices say, in the shape of the table."""

    label = "EmbeddingGradient({},{})"
    samples = (((5, 4), (5,), (3, 4)),)
    indices = (1,)

    def __call__(self, g, indices, table):
        return TensorOp.__call__(self, g, indices, table)

    def forward(self, node, g, indices, table):
        found = np.zeros(table.shape, g.dtype)
        np.add.at(found, as_indices(node, indices, len(table)), g)
        return found

    def lower(self, node, build, g, indices, table):
        checked = build.checked_indices(indices, table.shape[0])
        shape = (1, math.prod(indices.shape), math.prod(table.shape[1:]))
        spread = broadcast(build.reshape(checked, (1, shape[1], 1)), shape)
        zeros = build.constant(0.0)
        start = broadcast(zeros, (1, table.shape[0], shape[2]))
        found = build.scatter_add(start, spread, build.reshape(g, shape))
        return build.reshape(found, table.shape)

    def shape(self, node, g, indices, table):
        return table

    def gradient(self, node, grad):
        _, indices, table = node.inputs
        return [embedding_op(grad, indices), zeroslike_op(indices), zeroslike_op(table)]

    def infer_dtype(self, node, dtypes):
        return dtypes[0]


def _check_along(x, indices, axis):
    """Raises a ValueError unless two shapes agree in all axes but one."""
    (axis,) = axes_of(axis, len(x))
    if len(x) != len(indices) or any(
        a != b for i, (a, b) in enumerate(zip(x, indices, strict=True)) if i != axis
    ):
        raise ValueError("indices of shape %s don't fit %s in all axes but %d" % (indices, x, axis))


gather_op = GatherOp()
scatter_add_op = ScatterAddOp()
one_hot_op = OneHotOp()
embedding_op = EmbeddingOp()
embedding_gradient_op = EmbeddingGradientOp()
