"""Pictures of graphs, before and after a step has compiled them, and of its memory."""

import collections.abc

from dlsys.autodiff import Node, find_topo_sort
from dlsys.backend.fused import Fused
from dlsys.backend.gemm import Gemm
from dlsys.ops.known import known
from dlsys.pictures import arena, graph
from dlsys.pictures.svg import shortened, size_said

from .graph import constant_of, op_name
from .measuring import kernel_name, node_names

#: Fills of the kernels of a step, by turns; parameters and feeds have others.
_OF_KERNELS = ("blue", "green", "violet", "rose", "teal")
_LONGEST_NAME = 200


def draw(what, title=""):
    """A picture of a graph, an Svg, which a notebook shows and `save` writes.

    Args:
        what: nodes, a list or one. What the first of them does not need, as its gradients, has a
            dashed border. Or a Step: then it is what its last call computed, after all passes.
            Nodes of one kernel have one colour and its number, which is that in `step.profile()`;
            those without a kernel need no computing.
        title: a line above it.

    Raises:
        TypeError: there is something else than nodes.
        ValueError: the step has not run yet.
    """
    if hasattr(what, "run_of"):
        return _draw_run(what.run_of(asked="profile"), title)
    is_one = isinstance(what, Node) or not isinstance(what, collections.abc.Iterable)
    nodes = [what] if is_one else list(what)
    if not all(isinstance(node, Node) for node in nodes):
        raise TypeError("a picture of %r; hint: a node, a list of nodes, or a step" % (what,))
    return draw_nodes(nodes, find_topo_sort(nodes[:1]), known, title)


def draw_nodes(nodes, forward, facts, title="", updates=None, kernels=None):
    """A picture of all that nodes need.

    Args:
        nodes: nodes.
        forward: those that have no dashed border.
        facts: node -> (shape, dtype, ...), or None where they are not known.
        updates: parameter -> the node of its new value.
        kernels: None, or node -> numbers of the kernels that compute it.
    """
    updates, forward = updates or {}, set(forward)
    kinds = {} if kernels is None else {"blue": "a kernel, by its number"}
    boxes = []
    for node in find_topo_sort(nodes):
        box = _box(node, facts(node), node in updates)
        if kernels is not None and not (node.op.is_fed or constant_of(node) is not None):
            box.colour = _mark(box, kernels.get(node, ()))
        elif box.colour in _SAID:
            kinds[box.colour] = _SAID[box.colour]
        box.is_dashed = node not in forward and not node.op.is_fed
        if box.is_dashed:
            kinds["plain dashed"] = "of gradients and updates alone"
        boxes.append(box)
    for parameter, new in updates.items():
        boxes.append(
            graph.Box(("new", parameter), [new], parameter.name, "new value", colour="amber",
                      is_round=True)
        )  # fmt: skip
    # Where all that is told apart are fed arrays, that needs no words.
    return graph.graph(title, boxes, list(kinds.items()) if len(kinds) > 1 else ())


#: Colour of a box -> what the legend says of it.
_SAID = {"grey": "fed", "amber": "parameter"}


def _box(node, facts, is_parameter):
    shape, dtype = facts[:2] if facts else (None, None)
    below = "" if facts is None else "%s %s" % (dtype, _shape_said(shape))
    hint = shortened(node.name, _LONGEST_NAME) + "\n" + below
    made_at = getattr(node, "made_at", "")
    hint += "\nmade at %s" % made_at if made_at else ""
    if node.op.is_fed:
        is_state = is_parameter or hasattr(node, "initial") or hasattr(node, "initial_like")
        return graph.Box(
            node, [], node.name, below, hint, "amber" if is_state else "grey", is_round=True
        )
    value = constant_of(node)
    if value is not None:
        words = op_name(node) if value.ndim else node.name
        return graph.Box(node, [], words, below, hint, is_round=True)
    words, number = op_name(node), node.const_attr
    words += " %.4g" % number if isinstance(number, (int, float)) else ""
    flags = [name for name, is_on in getattr(node, "attributes", {}).items() if is_on is True]
    return graph.Box(node, node.inputs, " ".join([words, *flags]), below, hint, "blue")


def _shape_said(shape):
    return "×".join(map(str, shape)) if len(shape) else "scalar"


def _mark(box, numbers):
    """Says on a box which kernels compute it; the colour for that."""
    if not numbers:
        return "plain"
    said = "kernel%s %s" % ("s" if len(numbers) > 1 else "", ", ".join(map(str, numbers)))
    box.hint += "\n" + said
    box.words = "%s · %s" % (",".join(map(str, numbers)), box.words)
    return _OF_KERNELS[numbers[-1] % len(_OF_KERNELS)]


def _draw_run(run, title):
    made = run.graph
    kernels = None
    if hasattr(run, "program"):
        kernels = {}
        for number, each in enumerate(run.program.instructions):
            for node in dict.fromkeys(getattr(each, "nodes", (each.node,))):
                kernels.setdefault(node, []).append(number)
    return draw_nodes(
        made.results, find_topo_sort(made.outputs), made.facts, title, made.updates, kernels
    )


def memory(run):
    """A picture of the arena of a DeviceRun."""
    program = run.program
    offsets, names = program.offsets, [_said(each) for each in program.instructions]
    lives, says = {}, {}
    for number, instruction in enumerate(program.instructions):
        for view in instruction.operands:
            if view.buffer in offsets:
                lives.setdefault(view.buffer, [number, number])[1] = number
        says.update((buffer, name) for buffer, name in _results(instruction) if buffer in offsets)
    boxes = []
    for buffer, (first, last) in lives.items():
        name = says.get(buffer, "room for parts of sums")
        hint = "%s\n%s at %d\nfrom %d: %s\nto %d: %s" % (
            shortened(name, _LONGEST_NAME), size_said(buffer.size), offsets[buffer],
            first, names[first], last, names[last],
        )  # fmt: skip
        boxes.append(
            arena.Box(
                "%s, %s" % (shortened(name, 40), size_said(buffer.size)), hint,
                first, last + 1, offsets[buffer], buffer.size,
            )
        )  # fmt: skip
    _hand_over(boxes)
    title = "%s hold %d intermediate values" % (size_said(program.peak), len(boxes))
    return arena.arena(title, boxes, names, program.peak, run.bound)


def _said(instruction):
    return "%s: %s" % (kernel_name(instruction), shortened(", ".join(node_names(instruction)), 80))


def _results(instruction):
    """[(buffer, the name of the node whose value it gets)]."""
    if isinstance(instruction, Fused):
        says = [instruction.statements[number].says for number in instruction.stores]
        return [(view.buffer, name) for view, name in zip(instruction.outputs, says)]
    if isinstance(instruction, Gemm):
        parts = (each for each in (instruction.epilogue, instruction.sums) if each)
        return [pair for each in parts for pair in _results(each)]
    return [(view.buffer, str(instruction.node)) for view in instruction.targets]


def _hand_over(boxes):
    """Where one takes over the place of another in one instruction, each has half of it."""
    ends = {}
    for box in boxes:
        ends.setdefault((box.offset, box.last), []).append(box)
    for box in boxes:
        for other in ends.get((box.offset, box.first + 1), ()):
            if other is not box:
                other.last -= 0.5
                box.first += 0.5
