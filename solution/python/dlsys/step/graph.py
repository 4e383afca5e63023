"""Copies of graphs: what the passes of a step change are never the nodes of the user."""

from dlsys.autodiff import find_topo_sort


def rewired(node, inputs):
    """A copy of a node, of other inputs; `origin` is the node of the user.

    What a checkpoint computes inside is copied with it.
    """
    made = object.__new__(type(node))
    made.__dict__.update(node.__dict__)
    made.inputs = list(inputs)
    made.origin = origin(node)
    attributes = getattr(node, "attributes", {})
    if "inner" in attributes:
        moved = dict(zip(node.inputs, inputs))
        for each in attributes["inner"]:
            moved[each] = rewired(each, [moved[i] for i in each.inputs])
        inner = [moved[each] for each in attributes["inner"]]
        made.attributes = {**attributes, "inner": inner, "result": moved[attributes["result"]]}
    return made


def origin(node):
    """The node of the user that a copy was made of; the node itself if it is none."""
    return getattr(node, "origin", node)


def copied(nodes):
    """Copies of nodes and of all that they need; what is fed is no copy.

    Returns:
        The copies, in the order of `nodes`.
    """
    copies = {}
    for node in find_topo_sort(nodes):
        copies[node] = node if node.op.is_fed else rewired(node, [copies[i] for i in node.inputs])
    return [copies[node] for node in nodes]


def random_nodes(nodes):
    """All nodes that draw random numbers, in the order of a walk; those inside checkpoints too."""
    found = []
    for node in find_topo_sort(nodes):
        inner = getattr(node, "attributes", {}).get("inner", ())
        found += [each for each in (*inner, node) if getattr(each.op, "draws", False)]
    return list(dict.fromkeys(found))
