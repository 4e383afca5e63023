"""What a network has: layers, shapes, parameters, multiply-adds, memory."""

import math

from dlsys import ops

_LINE = "%-32s%-20s%12s%16s%12s"


def summary(module, shape):
    """A table of the innermost modules for one input, as text.

    Multiply-adds are those of linear layers and convolutions; memory is that of the results, as
    float32, which training keeps for the gradients.

    Args:
        module: the network.
        shape: of its input, the batch first.
    """
    module(ops.variable("x", shape))
    lines, sums = [_LINE % ("layer", "result", "parameters", "multiply-adds", "kB")], [0, 0, 0]
    for name, each in module.modules():
        if any(True for _ in each.children()) or not hasattr(each, "shapes"):
            continue
        learned = [n for key, n in each.own().items() if key not in each.buffers]
        figures = (
            sum(math.prod(node.known[0]) for node in learned),
            each.multiply_adds() if hasattr(each, "multiply_adds") else 0,
            math.prod(each.shapes[1]) * 4,
        )
        sums = [total + figure for total, figure in zip(sums, figures)]
        lines.append(_line("%s %s" % (name, type(each).__name__), each.shapes[1], figures))
    return "\n".join([*lines, _line("together", "", sums)])


def _line(what, shape, figures):
    parameters, adds, size = figures
    return _LINE % (
        what, " x ".join(map(str, shape)), f"{parameters:,}", f"{adds:,}", f"{size / 1000:,.0f}"
    )  # fmt: skip
