"""Losses: one number for each row of logits, and the mean or the sum of them."""

import numpy as np

from dlsys.autodiff import zeroslike_op

from .activation import log_softmax, softmax_along_op
from .base import TensorOp
from .elementwise import negate_op, square_op, subtract_op
from .indexing import gather_op, lowered_one_hot, one_hot_rows
from .movement import expand_dims_op, squeeze_op
from .reduction import mean_op, spread_op, sum_op

_REDUCTIONS = {"mean": mean_op, "sum": sum_op, "none": lambda losses: losses}


class TargetsOp(TensorOp):
    """Labels as probabilities in the shape of the logits, smoothed.

    Labels of that shape are probabilities; of the shape without its last axis, class indices.
    """

    label = "Targets({},{}.shape,{})"
    samples = (((5,), (5, 3)), ((2, 3), (2, 3)), ((5,), (5, 3), {"smoothing": 0.1}))
    labels = (0,)

    def __call__(self, labels, logits, smoothing=0.0):
        return TensorOp.__call__(self, labels, logits, smoothing=smoothing)

    def forward(self, node, labels, logits):
        classes, smoothing = logits.shape[-1], node.attributes["smoothing"]
        if labels.ndim < logits.ndim:
            labels = one_hot_rows(node, labels, classes)
        return labels * (1 - smoothing) + smoothing / classes

    def lower(self, node, build, labels, logits):
        classes, smoothing = logits.shape[-1], node.attributes["smoothing"]
        numbers = (1 - smoothing, smoothing / classes)
        if len(labels.shape) < len(logits.shape):
            return lowered_one_hot(build, labels, classes, "(a == b) * p0 + p1", numbers)
        if smoothing == 0 and labels.dtype == logits.dtype:
            return labels  # nothing is written twice
        return build.elementwise("a * p0 + p1", labels, numbers=numbers)

    def shape(self, node, labels, logits):
        if not logits or labels not in (logits, logits[:-1]):
            raise ValueError(
                "labels of shape %s are neither probabilities nor class indices for logits of %s; "
                "hint: %s or %s" % (labels, logits, logits, logits[:-1])
            )
        return logits

    def gradient(self, node, grad):
        return self.no_gradient(node)


class CrossEntropyOp(TensorOp):
    """-sum(targets * log_softmax(logits)) along the last axis, with the targets of TargetsOp."""

    label = "CrossEntropy({},{},{})"
    samples = (
        ((3, 4), (3, 4)),
        ((5, 3), (5,), {"smoothing": 0.1}),
        ((5, 3), (5, 3), {"smoothing": 0.2}),
    )
    labels = (1,)

    def __call__(self, logits, labels, smoothing=0.0):
        return TensorOp.__call__(self, logits, labels, smoothing=smoothing)

    def forward(self, node, logits, labels):
        targets = targets_op.forward(node, labels, logits)
        return -np.sum(targets * log_softmax(logits, -1), axis=-1)

    def lower(self, node, build, logits, labels):
        """Of class indices without the matrix of the targets."""
        if len(labels.shape) < len(logits.shape):
            classes, smoothing = logits.shape[-1], node.attributes["smoothing"]
            indices = build.checked_indices(labels, classes)
            numbers = (1 - smoothing, smoothing / classes)
            return build.rows("class_entropy", logits, indices=indices, numbers=numbers)
        targets = targets_op.lower(node, build, labels, logits)
        return build.rows("cross_entropy", logits, targets, is_reduction=True)

    def shape(self, node, logits, labels):
        return targets_op.shape(node, labels, logits)[:-1]

    def gradient(self, node, grad):
        logits, labels = node.inputs
        targets = targets_op(labels, logits, node.attributes["smoothing"])
        total = sum_op(targets, -1, True)
        difference = subtract_op(softmax_along_op(logits) * total, targets)
        return [spread_op(grad, logits, -1) * difference, zeroslike_op(labels)]


def cross_entropy_op(logits, labels, smoothing=0.0, reduction="mean"):
    """The cross entropy of softmax(logits) along the last axis.

    Args:
        logits: node of shape (..., C).
        labels: class indices of shape (...), or probabilities of shape (..., C); they are data.
        smoothing: what part of each label is spread evenly over the C classes, 0 to 1.
        reduction: "mean", "sum", or "none" for one number a row.
    """
    return _reduce(cross_entropy_rows_op(logits, labels, smoothing), reduction)


def nll_op(log_probabilities, labels, reduction="mean"):
    """The negative logarithm of the probability of each row's class.

    Args:
        log_probabilities: node of shape (..., C), as log_softmax gives it.
        labels: class indices of shape (...).
        reduction: "mean", "sum", or "none" for one number a row.
    """
    of_class = gather_op(log_probabilities, expand_dims_op(labels, -1), -1)
    return _reduce(negate_op(squeeze_op(of_class, -1)), reduction)


def mse_op(prediction, target, reduction="mean"):
    """The square of the difference; `reduction` is "mean", "sum" or "none"."""
    return _reduce(square_op(subtract_op(prediction, target)), reduction)


def _reduce(losses, reduction):
    if reduction not in _REDUCTIONS:
        raise ValueError("reduction is %r, not one of %s" % (reduction, ", ".join(_REDUCTIONS)))
    return _REDUCTIONS[reduction](losses)


targets_op = TargetsOp()
cross_entropy_rows_op = CrossEntropyOp()
