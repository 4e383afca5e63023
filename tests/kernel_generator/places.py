"""What a thread may change: variables, elements, members, its own part of the outputs."""

from .leaves import index_below, member_path
from .number_types import KINDS
from .tree import Node


def place(g):
    """(text, type, binding) of something that this thread may change, or None."""
    names = [
        n
        for n in g.names()
        if n.writable and not n.uniform and not n.counter and n.form != "lambda"
    ]
    if g.own and (not names or g.chance(0.25)):
        g.note("change of the thread's element")
        return (*g.pick(g.own), False)
    if not names:
        return None
    name = g.pick(names)
    g.note("change of " + name.form)
    if name.form == "array":
        return f"{name.name}[{index_below(g, name.length, 1)}]", name.type, False
    if name.form == "struct":
        path, kind = member_path(g, name.struct)
        return name.name + path, kind, False
    if name.form == "pointer":
        if name.struct:
            path, kind = member_path(g, name.struct)
            return f"{name.name}->{path[1:]}", kind, False
        return g.pick([f"*{name.name}", f"{name.name}[0]", f"(*{name.name})"]), name.type, False
    return name.name, name.type, name.binding


def stepped(place, t, *parts):
    """A statement with a `++` or a `--` of a place, which is kept from wrapping around there if
    nvcc believes that it does not."""
    return Node(f"{{ {place} &= 63; ", *parts, " }") if KINDS[t].narrow else Node(*parts)
