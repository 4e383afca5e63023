"""Arrays of different shapes: numpy's rule, and what the GPU does of it."""

from . import gpu_op, ndarray


def broadcast_rule(shape_a, shape_b, node=None):
    """The shape of a + b by numpy's rule: axes are matched from the last; 1 stretches.

    Args:
        node: what an error names, with its two inputs.

    Raises:
        ValueError: the shapes don't broadcast.
    """
    rank = max(len(shape_a), len(shape_b))
    padded_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    padded_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    for extent_a, extent_b in zip(padded_a, padded_b):
        if extent_a != extent_b and 1 not in (extent_a, extent_b):
            said = "shapes %s and %s don't broadcast" % (tuple(shape_a), tuple(shape_b))
            if node is not None:
                names = (node.name, *(each.name for each in node.inputs), said)
                said = "%s, of %s and %s: %s; hint: reshape one of them" % names
            raise ValueError(said)
    return tuple(b if a == 1 else a for a, b in zip(padded_a, padded_b))


def numpy_unbroadcast(grad, shape):
    """grad summed over the axes that broadcasting added to `shape` or stretched from 1."""
    added = grad.ndim - len(shape)
    axes = tuple(range(added)) + tuple(
        added + i for i, extent in enumerate(shape) if extent == 1 and grad.shape[added + i] != 1
    )
    return grad.sum(axis=axes).reshape(shape)


def gpu_unbroadcast(grad, out):
    """numpy_unbroadcast to out's shape where the axes to be summed are the leading ones, or all.

    Raises:
        ValueError: they are others.
    """
    size = ndarray.size_of(out.shape)
    if grad.shape == out.shape:
        if grad.handle.contents.data != out.handle.contents.data:
            grad.copyto(out)
    elif size == 1 or grad.shape[len(grad.shape) - len(out.shape) :] == out.shape:
        rows = ndarray.size_of(grad.shape) // max(size, 1)
        gpu_op.reduce_sum_axis_zero(ndarray.view(grad, (rows, size)), ndarray.view(out, (size,)))
    else:
        raise ValueError(
            "on the GPU, a gradient of shape %s can't be summed to %s; "
            "hint: broadcast along leading axes only" % (grad.shape, out.shape)
        )


def gpu_tile(small, out):
    """Repeats `small` along leading axes of `out`; one number fills any shape.

    Raises:
        ValueError: other axes would be stretched.
    """
    size = ndarray.size_of(small.shape)
    if size != 1 and out.shape[len(out.shape) - len(small.shape) :] != small.shape:
        raise ValueError(
            "on the GPU, shape %s does not broadcast to %s; hint: only leading axes are added"
            % (small.shape, out.shape)
        )
    copies = ndarray.size_of(out.shape) // max(size, 1)
    gpu_op.broadcast_to(ndarray.view(small, (size,)), ndarray.view(out, (copies, size)))


def gpu_broadcast(kernel, a, b, out):
    """kernel(a, b, out), a function of gpu_op, where a or b may lack leading axes of out.

    The smaller operand is first tiled into out, so out may not be the memory of the larger.

    Raises:
        ValueError: the shapes differ in other axes.
    """
    if a.shape == b.shape:
        kernel(a, b, out)
    elif a.shape == out.shape:
        gpu_tile(b, out)
        kernel(a, out, out)
    elif b.shape == out.shape:
        gpu_tile(a, out)
        kernel(out, b, out)
    else:
        raise ValueError(
            "on the GPU, shapes %s and %s don't combine; hint: only leading axes are added"
            % (a.shape, b.shape)
        )
