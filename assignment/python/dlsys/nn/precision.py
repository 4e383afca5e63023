"""Networks whose convolutions compute in halves: bfloat16 has the range of float32, and 8 bits."""

import contextlib

from dlsys import ops

_used = [None]


@contextlib.contextmanager
def autocast(dtype):
    """While nodes are made within it, convolutions take images and filters in `dtype`.

        with nn.autocast("bfloat16"):
            logits = net(images, train=True)

    Parameters stay float32, and so do their gradients; norms compute in float32 and keep their
    results in the dtype of their input, and a linear layer has that of its weights.

    Args:
        dtype: "bfloat16", "float16" or "float32"; None changes nothing.
    """
    _used.append(dtype)
    try:
        yield
    finally:
        _used.pop()


def in_half(node):
    """A node as convolutions take it."""
    return ops.cast(node, _used[-1]) if _used[-1] else node


def in_float32(function, node):
    """What `function` makes of a node in float32, in the dtype of the node."""
    if not _used[-1]:
        return function(node)
    return ops.cast_like(function(ops.cast(node, "float32")), node)
