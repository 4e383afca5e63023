"""What layers make of a batch: mean, deviation, and how many of their units are dead."""

import math

from dlsys import ops
from dlsys.ops.known import known


def statistics(module):
    """name -> node of three numbers, of each module's result in the last call of the network.

    They are the mean, the deviation, and the share of dead units, from 0 to 1. A unit is a feature
    or a channel, axis 1; it is dead if none of its numbers is above 0: behind a relu it then gives
    nothing, and learns nothing.

    Args:
        module: the network, after a call; shapes must be known. Of modules in a row whose result is
            one node, as a network and its last layer, the innermost is named.
    """
    found = {}
    for name, each in module.modules():
        result = vars(each).get("result")
        if result is not None and known(result) and len(known(result)[0]) > 1:
            found.pop(result, None)  # or a network stands where its last layer does
            found[result] = name
    return {name: _figures(result) for result, name in found.items()}


def _figures(result):
    shape = known(result)[0]
    others = tuple(axis for axis in range(len(shape)) if axis != 1)
    is_dead = ops.max(result, others) <= 0.0
    rows = (
        ops.mean(result), ops.sqrt(ops.variance(result)),
        ops.sum(is_dead * 1.0) / math.prod(shape[1:2]),
    )  # fmt: skip
    return ops.stack(*rows)
