"""What the lanes of a warp do together, in blocks of whole warps."""

from . import expressions as e
from .context import Name
from .conversions import cast
from .exchanges import element, received
from .number_types import STEP, STORED
from .tree import Node, statement


def shuffle(g, shared):
    """Values of other lanes, in blocks of whole warps."""
    t = g.pick(["int", "unsigned", "float", "long long", "unsigned long long", "double"])
    v = e.stored(g, t, 1)
    form = g.pick(["_xor_sync", "_down_sync", "_up_sync", "_sync"])
    lane = {"_sync": f"({g.tid} + {g.integer(1, 31)}) & 31"}.get(
        form, str(g.pick([1, 2, 4, 8, 16]))
    )
    width = g.pick(["", "", ", 32", ", 16"]) if form != "_sync" else ""
    g.note("__shfl" + form)
    mask = g.pick(["0xffffffff", "0xffffffffu", "~0u", "(unsigned)-1"])
    return received_alone(
        g, t, Node(f"__shfl{form}({mask}, ", cast(g, t, v.node), f", {lane}{width})"), STORED
    )


def received_alone(g, t, node, most):
    """A new variable for a value of the warp, then a use of it."""
    name = g.fresh()
    line = statement(f"{t} {name} = ", node, ";")
    use = received(g, t, name, most)
    if name not in [n.name for n in g.names()]:
        g.declare(Name(name, t))
    return Node(line, use, drop=True)


def warp_sum(g, shared):
    """A sum of a warp by shuffles in a loop."""
    t, s, v = g.pick(["int", "unsigned", "float"]), g.fresh(), g.fresh()
    form = g.pick(["_xor_sync", "_down_sync"])
    g.note("sum of a warp")
    return Node(
        f"{t} {v} = ",
        e.stored(g, t, 1, STEP).node,
        f";\nfor (int {s} = 16; {s} > 0; {s} >>= 1) ",
        g.pick(
            [
                f"{v} += __shfl{form}(0xffffffff, {v}, {s});",
                f"{{ {v} = {v} + __shfl{form}(0xffffffffu, {v}, {s}); }}",
            ]
        ),
        "\n",
        received(g, t, v, STEP * 32),
        drop=True,
    )


def vote(g, shared):
    """Votes of a warp."""
    word, t = g.pick([("__ballot_sync", "unsigned"), ("__any_sync", "int"), ("__all_sync", "int")])
    g.note(word)
    call = Node(f"{word}(0xffffffff, ", e.condition(g, 1).node, ")")
    if word == "__ballot_sync":
        return received_alone(g, t, call, STEP)
    return received_alone(g, "int", Node("(", call, " != 0)"), 1)


def in_warp(g, shared):
    """Shared memory between the lanes of a warp."""
    g.note("__syncwarp")
    mine = element(shared, g.tid)
    his = element(shared, f"({g.tid} & ~31) + (({g.tid} + {g.integer(1, 31)}) & 31)")
    word = g.pick(["__syncwarp();", "__syncwarp(0xffffffff);"])
    return Node(
        "__syncthreads();\n",
        f"{mine} = ",
        e.stored(g, shared.type).node,
        f";\n{word}\n",
        received(g, shared.type, his),
        f"{word}\n__syncthreads();\n",
        drop=True,
    )


WARPS = {
    "shuffle": (shuffle, 4),
    "sum of a warp": (warp_sum, 2),
    "vote": (vote, 2),
    "in a warp": (in_warp, 2),
}
