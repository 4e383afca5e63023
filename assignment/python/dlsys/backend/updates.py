"""New values of what was fed, written where the old ones lie when all has been computed."""

from .view import Literal, View


def write_back(lowering, updates):
    """Adds the instructions that overwrite fed views; they come behind all others.

    Args:
        updates: fed node -> node of its new value.

    Raises:
        ValueError: a new value has another shape.
    """
    fed = {lowering.values[node].buffer for node in updates}
    copies = []
    for node, new in updates.items():
        target, value = lowering.values[node], lowering.values[new]
        check_shape(node, target.shape, new, value.shape)
        if value is target:
            continue
        if isinstance(value, View) and value.buffer in fed:
            # It lies where another new value will lie.
            value = _copy(lowering, new, value, lowering.empty(value.shape, value.dtype))
        copies.append((new, value, target))
    for new, value, target in copies:
        _copy(lowering, new, value, target)


def check_shape(node, shape, new, new_shape):
    """Raises a ValueError if the new value of a node has not its shape."""
    if new_shape != shape:
        raise ValueError(
            "the update of %s has shape %s, not %s; %s is its new value"
            % (node.name, new_shape, shape, new.name)
        )


def _copy(lowering, node, value, target):
    assert isinstance(value, (View, Literal))
    lowering.elementwise("a", value, into=target)
    lowering.instructions[-1].node = node
    return target
