"""Every op on its samples, as graphs that a back end and numpy run: value and gradients."""

import numpy as np
from test_ops import SAMPLES, applied, depends_on, differentiated

from dlsys import autodiff, ops


def graph_of(op, sample, order):
    """Nodes of an op on a sample, and feeds.

    Args:
        order: 0 for the value, 1 for the gradients too, 2 for those of the gradients too.
    """
    node, feeds = applied(op, sample)
    fixed = {*op.labels, *getattr(op, "indices", ())}
    nodes = [node]
    if order >= 1:
        seed = autodiff.Variable(name="output_grad")
        feeds[seed] = values_like(node, feeds, 7)
        grads = differentiated(op, node, seed)
        nodes += grads
    if order >= 2:
        for number, grad in enumerate(grads):
            if number not in fixed:
                nodes += second_gradients(op, grad, feeds, fixed)
    return nodes, feeds
