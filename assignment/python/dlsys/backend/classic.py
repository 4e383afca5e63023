"""How the ops of the classic set are lowered: those of autodiff.py, which know nothing of it.

Each rule is that of one class, and takes what `TensorOp.lower` takes.
"""

from dlsys import autodiff

from .view import Literal, broadcast


def _expression(code):
    return lambda op, node, build, *inputs: build.elementwise(code, *inputs)


def _with_number(code):
    def rule(op, node, build, x):
        return build.elementwise(code, x, numbers=(node.const_attr,))

    return rule


def _filled(value):
    return lambda op, node, build, x: Literal(value, build.default, x.shape)


def _matmul(op, node, build, a, b):
    a, b = (build.in_memory(each) for each in (a, b))
    a = a.seen(lambda array: array.T) if node.matmul_attr_trans_A is True else a
    b = b.seen(lambda array: array.T) if node.matmul_attr_trans_B is True else b
    return build.product(a, b)


def _sum_of_rows(op, node, build, x):
    return build.reduce("sum", (x,), (0,), keepdims=len(x.shape) == 1)


def _broadcast_to(op, node, build, x, like):
    return broadcast(x, like.shape)


def unbroadcast(op, node, build, grad, like):
    """The sum over the axes that broadcasting added or stretched."""
    added = len(grad.shape) - len(like.shape)
    stretched = [
        added + axis
        for axis, extent in enumerate(like.shape)
        if extent == 1 and grad.shape[added + axis] != 1
    ]
    axes = (*range(added), *stretched)
    if not axes:
        return grad
    return build.reshape(build.reduce("sum", (grad,), axes), like.shape)


def _divide_by_rows(op, node, build, x):
    return build.elementwise("a * p0", x, numbers=(1.0 / max(x.shape[0], 1),))


def _softmax_cross_entropy(op, node, build, logits, labels):
    rows = build.rows("cross_entropy", logits, labels, is_reduction=True)
    total = build.reduce("sum", (rows,), (0,), keepdims=True)
    return build.elementwise("a * p0", total, numbers=(1.0 / max(logits.shape[0], 1),))


def _softmax(op, node, build, x):
    return build.rows("softmax", x)


CLASSIC = {
    autodiff.AddOp: _expression("a + b"),
    autodiff.AddByConstOp: _with_number("a + p0"),
    autodiff.MulOp: _expression("a * b"),
    autodiff.MulByConstOp: _with_number("a * p0"),
    autodiff.MatMulOp: _matmul,
    autodiff.ZerosLikeOp: _filled(0.0),
    autodiff.OnesLikeOp: _filled(1.0),
    autodiff.ReduceSumAxisZeroOp: _sum_of_rows,
    autodiff.BroadcastToOp: _broadcast_to,
    autodiff.UnbroadcastOp: unbroadcast,
    autodiff.DivideByRowsOp: _divide_by_rows,
    autodiff.SoftmaxCrossEntropyOp: _softmax_cross_entropy,
    autodiff.SoftmaxOp: _softmax,
    autodiff.ReluOp: _expression("maximum(a, T(0))"),
    autodiff.ReluGradientOp: _expression("a > 0 ? b : T(0)"),
}
