"""A thread's share of a row: each n-th element from its own one on, summed up."""

from .context import Name
from .tree import Node, statement

STARTS = [
    "threadIdx.x",
    "(threadIdx.x)",
    "threadIdx.x + 3",
    "1 + (int)threadIdx.x",
    "threadIdx.x - 5",
    "(int)threadIdx.x - 5",
    "threadIdx.x % 40",
    "threadIdx.x * 2",
    "threadIdx.x / 3",
]
LIMITS = ["256", "200u", "255 - threadIdx.y", "150.5f", "(int)blockDim.x * 2", "blockDim.x + 19"]
STEPS = ["blockDim.x", "32", "(int)blockDim.x", "37u", "blockDim.x * 2", "blockDim.x + 5", "64ll"]
# k counts, {s} is what is made of it and {x} what is read.
BODIES = [
    "{s} += {x};",
    "{s} = {s} * 3 + {x};",
    "const {t} x_ = {x}; {s} += x_ * x_;",
    "{s} = {x} > {s} ? {x} : {s};",
    "{t} x_ = {x}; x_ -= {s}; {s} = x_ + {k};",
    "{s} += {x}; if ({s} > 1000) break;",
    "if ({k} & 1) continue; {s} += {x};",
    "{s} += {k};",
]


def strided(g):
    """The loop, and what it sums up."""
    t = g.pick(["float", "float", "unsigned", "double"])
    arrays = [a for a in g.inputs if a.form == "pointer to const" and a.type == t]
    if not arrays or not g.own_index or g.trips > 4:
        return None
    g.note("strided loop")
    k, total = g.fresh(), g.fresh()
    kind = g.pick(
        ["int", "int", "int", "unsigned", "size_t", "short", "long long", "unsigned char"]
    )
    limit, step = g.pick(LIMITS), g.pick(STEPS)
    if kind == "unsigned char":  # other steps may come around for ever
        limit, step = "100", "64"
    x = f"{g.pick(arrays).name}[{g.pick([f'{k} & 255', f'({k}) & 255', f'{k} & 511'])}]"
    inner = g.pick(BODIES).format(s=total, x=x, t=t, k=k)
    g.declare(Name(total, t, writable=False))
    return statement(
        Node(
            f"{t} {total} = {g.pick(['0', '1', '2.5f' if t == 'float' else '3'])};\n"
            f"for ({kind} {k} = {g.pick(STARTS)}; {k} {g.pick(['<', '<', '<='])} {limit}; "
            f"{k} += {step}) {{ "
        ),
        inner,
        " }",
    )
