"""Nodes that change no bit of their input, and pairs that undo each other."""

import numpy as np

from dlsys import autodiff
from dlsys.ops import activation, elementwise, movement, reduction

from ..graph import Report, number_of

_RESHAPES = (
    movement.ReshapeOp, movement.ReshapeLikeOp, movement.FlattenOp, movement.SqueezeOp,
    movement.ExpandDimsOp,
)  # fmt: skip
#: Where the shape stays, these give their first input as it is.
_SAME_SHAPE = (
    *_RESHAPES, movement.BroadcastShapeOp, autodiff.BroadcastToOp, autodiff.UnbroadcastOp,
    reduction.SpreadOp,
)  # fmt: skip
#: Their values are never -0.0.
_NEVER_MINUS_ZERO = (
    elementwise.ExpOp, elementwise.SquareOp, elementwise.AbsOp, elementwise.ComparisonOp,
    activation.SigmoidOp,
)  # fmt: skip


def simplify(graph):
    """Removes what keeps every bit: x * 1, x / 1, x - 0, -(-x), and moves that others take back.

        before                              after
        a = transpose(transpose(x))         c = reshape(x, (6,)) + 1
        b = reshape(a, (2, 3)) * 1
        c = reshape(b, (6,)) + 1

    x + 0 goes only where x is never -0.0, since -0.0 + 0 is 0.0; x - 0 is x always. x * 0 is not 0
    (x may be NaN or infinite), exp(log(x)) is not x, and (x + y) - y is not x: they stay. A node
    whose input has another shape, dtype or place in memory stays: a float32 times a double 1 is a
    double.
    """
    report = Report("algebra")

    def simpler(node):
        found = _undone(node, graph) or _unchanged(node, graph)
        if found is None:
            if _adds_zero(node) is not None:
                report.leave("x + 0, where x may be -0.0", node.name)
            return None
        if graph.ctx is None and isinstance(node.op, autodiff.UnbroadcastOp):
            report.leave("on numpy a sum over no axes makes 0.0 of -0.0", node.name)
            return None
        if not graph.fits(node, found):
            report.leave("it changes shape, dtype or place", node.name)
            return None
        report.changed.append(node.name)
        return found

    graph.rewrite(simpler)
    return report


def _unchanged(node, graph):
    """The input of which a node changes nothing, or None."""
    op = node.op
    if isinstance(op, autodiff.MulByConstOp) and node.const_attr == 1:
        return node.inputs[0]
    if isinstance(op, autodiff.MulOp):
        return _other(node, _is_one)
    if isinstance(op, elementwise.DivideOp) and _is_one(node.inputs[1]):
        return node.inputs[0]
    if isinstance(op, elementwise.SubtractOp) and _is_zero(node.inputs[1], minus=False):
        return node.inputs[0]
    if isinstance(op, elementwise.NegateOp) and isinstance(node.inputs[0].op, type(op)):
        return node.inputs[0].inputs[0]
    if isinstance(op, movement.TransposeOp) and _order(node, graph) == tuple(
        range(len(graph.facts(node)[0]))
    ):
        return node.inputs[0]
    if isinstance(op, _SAME_SHAPE) and graph.facts(node)[0] == graph.facts(node.inputs[0])[0]:
        return node.inputs[0]
    rest = _adds_zero(node)
    if rest is not None and (_adds_minus_zero(node) or _is_never_minus_zero(rest)):
        return rest
    return None


def _undone(node, graph):
    """One move instead of two, or None."""
    if not node.inputs:
        return None
    before = node.inputs[0]
    if isinstance(node.op, movement.TransposeOp) and isinstance(before.op, movement.TransposeOp):
        first, second = _order(before, graph), _order(node, graph)
        order = tuple(first[axis] for axis in second)
        source = before.inputs[0]
        is_same = order == tuple(range(len(order)))
        return source if is_same else movement.transpose_op(source, order)
    if isinstance(node.op, _RESHAPES) and isinstance(before.op, _RESHAPES):
        made = movement.reshape_op(before.inputs[0], graph.facts(node)[0])
        is_same = graph.fits(node, before.inputs[0])
        return before.inputs[0] if is_same else made
    return None


def _order(node, graph):
    return node.op.order(node, len(graph.facts(node)[0]))


def _other(node, is_neutral):
    """The operand of a pair whose other one is neutral, or None."""
    a, b = node.inputs
    return a if is_neutral(b) else b if is_neutral(a) else None


def _is_one(node):
    return isinstance(node.op, autodiff.OnesLikeOp) or number_of(node) == 1


def _is_zero(node, minus):
    """Whether all elements are 0.0, or -0.0 with `minus`."""
    if isinstance(node.op, autodiff.ZerosLikeOp):
        return not minus
    number = number_of(node)
    return number == 0 and bool(np.signbit(float(number))) == minus


def _adds_zero(node):
    """The operand to which a node adds 0.0 or -0.0, or None."""
    if isinstance(node.op, autodiff.AddByConstOp):
        return node.inputs[0] if node.const_attr == 0 else None
    if isinstance(node.op, autodiff.AddOp):
        return _other(node, lambda each: _is_zero(each, False) or _is_zero(each, True))
    return None


def _adds_minus_zero(node):
    if isinstance(node.op, autodiff.AddByConstOp):
        return bool(np.signbit(float(node.const_attr)))
    return any(_is_zero(each, minus=True) for each in node.inputs)


def _is_never_minus_zero(node):
    """Of a sum both operands would have to be -0.0."""
    if isinstance(node.op, autodiff.AddOp):
        return any(isinstance(i.op, _NEVER_MINUS_ZERO) for i in node.inputs)
    return isinstance(node.op, _NEVER_MINUS_ZERO)
