"""Products of matrices, and of batches of them."""

import numpy as np

from dlsys.autodiff import zeroslike_op
from dlsys.backend.classic import unbroadcast
from dlsys.broadcasting import broadcast_rule, numpy_unbroadcast

from .base import TensorOp


class ProductOp(TensorOp):
    """a @ b as numpy has it: of vectors, matrices and batches, whose leading axes broadcast.

    The flags transpose the last two axes of an operand first.
    """

    keeps_dtype = True
    label, name = "({}@{})", "matmul"
    samples = (
        ((3, 4), (4, 5)),
        ((2, 4, 3), (4, 5), {"trans_a": True}),
        ((3, 4), (2, 1, 5, 4), {"trans_b": True}),
        ((2, 1, 4, 3), (3, 5, 4), {"trans_a": True, "trans_b": True}),
        ((4,), (4,)),
        ((4,), (2, 4, 3)),
        ((2, 3, 4), (4,)),
    )

    def __call__(self, a, b, trans_a=False, trans_b=False):
        return TensorOp.__call__(self, a, b, trans_a=trans_a, trans_b=trans_b)

    def forward(self, node, a, b):
        flags = node.attributes
        return np.matmul(_turned(a, flags["trans_a"]), _turned(b, flags["trans_b"]))

    def lower(self, node, build, a, b):
        op_a, op_b = _matrices(node, build, a, b)
        shape = self.shape(node, a.shape, b.shape)
        return build.reshape(build.product(op_a, op_b), shape)

    def shape(self, node, a, b):
        if not a or not b:
            raise ValueError(
                "an operand is a number: the shapes are %s and %s; hint: a * b" % (a, b)
            )
        flags = node.attributes
        op_a = _matrix_shape(a, flags["trans_a"], 0)
        op_b = _matrix_shape(b, flags["trans_b"], 1)
        if op_a[-1] != op_b[-2]:
            raise ValueError("inner sizes differ: op(a) is %s, op(b) is %s" % (op_a, op_b))
        batch = broadcast_rule(op_a[:-2], op_b[:-2])
        return (*batch, *op_a[-2:-1][len(a) == 1 :], *op_b[-1:][len(b) == 1 :])

    def gradient(self, node, grad):
        """The gradients of a and b: see ProductGradientOp."""
        return [product_gradient_op(*node.inputs, grad, of=i, **node.attributes) for i in (0, 1)]


class ProductGradientOp(TensorOp):
    """The gradient of sum(g * (a @ b)) for a (of = 0) or b (of = 1), in its shape.

    That sum is linear in each of the three, so that the gradients of this op are products of the
    same kind, and so are theirs.
    """

    label = "ProductGradient({},{},{})"
    samples = tuple(
        (a, b, g, {"of": of, "trans_a": ta, "trans_b": tb})
        for of in (0, 1)
        for a, b, g, ta, tb in (
            ((3, 4), (4, 5), (3, 5), False, False),
            ((2, 4, 3), (4, 5), (2, 3, 5), True, False),
            ((3, 4), (2, 5, 4), (2, 3, 5), False, True),
            ((4,), (4,), (), False, False),
            ((2, 3, 4), (4,), (2, 3), False, False),
        )
    )

    def __call__(self, a, b, g, of, trans_a=False, trans_b=False):
        return TensorOp.__call__(self, a, b, g, of=of, trans_a=trans_a, trans_b=trans_b)

    def forward(self, node, a, b, g):
        flags = node.attributes
        op_a = _turned(a, flags["trans_a"])
        op_a = op_a[np.newaxis] if a.ndim == 1 else op_a
        op_b = _turned(b, flags["trans_b"])
        op_b = op_b[:, np.newaxis] if b.ndim == 1 else op_b
        g = g[..., np.newaxis] if b.ndim == 1 else g
        g = np.expand_dims(g, -2) if a.ndim == 1 else g
        if flags["of"] == 0:
            found, like = np.matmul(g, np.swapaxes(op_b, -1, -2)), op_a
        else:
            found, like = np.matmul(np.swapaxes(op_a, -1, -2), g), op_b
        found = numpy_unbroadcast(found, like.shape)
        wanted, flag = (b, "trans_b") if flags["of"] else (a, "trans_a")
        return _turned(found, flags[flag]).reshape(wanted.shape)

    def lower(self, node, build, a, b, g):
        flags = node.attributes
        op_a, op_b = _matrices(node, build, a, b)
        if len(b.shape) == 1:
            g = build.view(lambda array: array[..., np.newaxis], g)
        if len(a.shape) == 1:
            g = build.view(lambda array: np.expand_dims(array, -2), g)
        if flags["of"] == 0:
            found, like = build.product(g, build.view(_exchanged, op_b)), op_a
        else:
            found, like = build.product(build.view(_exchanged, op_a), g), op_b
        found = unbroadcast(self, node, build, found, like)
        wanted, flag = (b, "trans_b") if flags["of"] else (a, "trans_a")
        turned = build.view(lambda array: _turned(array, flags[flag]), found)
        return build.reshape(turned, wanted.shape)

    def shape(self, node, a, b, g):
        return b if node.attributes["of"] else a

    def gradient(self, node, grad):
        a, b, g = node.inputs
        of = node.attributes["of"]
        flags = {name: node.attributes[name] for name in ("trans_a", "trans_b")}
        if of == 0:
            of_b = product_gradient_op(grad, b, g, of=1, **flags)
            return [zeroslike_op(a), of_b, product_op(grad, b, **flags)]
        of_a = product_gradient_op(a, grad, g, of=0, **flags)
        return [of_a, zeroslike_op(b), product_op(a, grad, **flags)]


def _turned(array, flag):
    """The array, its last two axes exchanged if the flag says so and there are two."""
    return np.swapaxes(array, -1, -2) if flag and array.ndim > 1 else array


def _exchanged(array):
    return np.swapaxes(array, -1, -2)


def _matrices(node, build, a, b):
    """The operands on a back end, transposed as the flags say, vectors as matrices."""
    flags = node.attributes
    op_a = build.view(lambda array: _turned(array, flags["trans_a"]), a)
    op_b = build.view(lambda array: _turned(array, flags["trans_b"]), b)
    if len(a.shape) == 1:
        op_a = build.view(lambda array: array[np.newaxis], op_a)
    if len(b.shape) == 1:
        op_b = build.view(lambda array: array[:, np.newaxis], op_b)
    return op_a, op_b


def _matrix_shape(shape, flag, side):
    """The shape as one of matrices: a vector is a row on the left and a column on the right."""
    if len(shape) == 1:
        return (*shape, 1) if side else (1, *shape)
    return (*shape[:-2], shape[-1], shape[-2]) if flag else shape


product_op = ProductOp()
product_gradient_op = ProductGradientOp()
