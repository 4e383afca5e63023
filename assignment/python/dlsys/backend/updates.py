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
        if value.shape != target.shape:
            raise ValueError(
                "the update of %s has shape %s, not %s; %s is its new value"
                % (node.name, value.shape, target.shape, new.name)
            )
        if value is target:
            continue
        if isinstance(value, View) and value.buffer in fed:
            # It lies where another new value will lie.
            value = _copy(lowering, new, value, lowering.empty(value.shape, value.dtype))
        copies.append((new, value, target))
    for new, value, target in copies:
        _copy(lowering, new, value, target)


def _copy(lowering, node, value, target):
    assert isinstance(value, (View, Literal))
    lowering.elementwise("a", value, into=target)
    lowering.instructions[-1].node = node
    return target
