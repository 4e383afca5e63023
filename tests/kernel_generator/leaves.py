"""Expressions without operations: numbers, names, elements of arrays, indices."""

from . import expressions
from .conversions import integral, made, number
from .number_types import KINDS, promoted
from .tree import Node, Value


def literal(g):
    """A number."""
    kind = g.weighted({"int": 6, "unsigned": 3, "float": 3, "long long": 1, "char": 1, "bool": 1})
    g.note("literal " + kind)
    if kind == "bool":
        return made("bool", 0, 1, g.pick(["true", "false"]))
    if kind == "char":
        letter = g.pick('aZ09+;{("')
        return made("char", 0, 127, f"'{letter}'")
    if kind == "float":
        text = g.pick(["0.5f", "2.f", ".25f", "3.0f", "1e1f", "1.5F", "7.f"])
        return made("float", float(text[:-1]), float(text[:-1]), text)
    value = g.integer(0, 99)
    form = g.pick(["%d", "%d", "0x%x", "0%o", "0b" + f"{value:b}"])
    if value == 0 and form == "0%o":
        form = "%d"
    text = form % value if "%" in form else form
    if g.chance(0.08):
        value, text = 1234, "1'234"
        g.note("literal with a separator")
    suffix = {"int": "", "unsigned": g.pick("uU"), "long long": g.pick(["ll", "LL"])}[kind]
    return Value(
        Node(text + suffix, simpler=[number(1, kind).node] if value else []), kind, value, value
    )


def special(g):
    """An index of the thread or of its block."""
    words = {
        "blockIdx.x": 15,
        "blockIdx.y": 3,
        "blockDim.x": 256,
        "blockDim.y": 64,
        "gridDim.x": 16,
    }
    if not g.only_uniform:
        words.update({"threadIdx.x": 255, "threadIdx.y": 63, "threadIdx.z": 15})
    word = g.pick(words)
    g.note("index " + word)
    return made("unsigned", 0, words[word], word)


def scalar_names(g):
    """Names that an expression may read."""
    return [n for n in g.names() if n.form != "lambda" and (n.uniform or not g.only_uniform)]


def member_path(g, struct, want=None):
    """(path, type) of an arithmetic member of a struct, or None."""
    member = g.pick(struct.members)
    if member.struct:
        path, kind = member_path(g, member.struct)
        return f".{member.name}{path}", kind
    index = f"[{g.integer(0, member.length - 1)}]" if member.length else ""
    return f".{member.name}{index}", member.type


def index_below(g, length, depth=1):
    """An expression from 0 to length - 1."""
    if depth <= 0 or g.chance(0.3):
        return Node(str(g.integer(0, length - 1)))
    counters = [n for n in scalar_names(g) if n.counter and n.high is not None and n.high < length]
    if counters and g.chance(0.6):
        return Node(g.pick(counters).name, simpler=[Node("0")])
    inner = integral(g, expressions.value(g, depth - 1))
    if length & (length - 1) == 0:
        text = (inner.node, f" & {length - 1}")
        if g.chance(0.5):
            return Node("(", *text, ")", simpler=[Node("0")])
        return Node("((unsigned)(", inner.node, f")) % {length}", simpler=[Node("0")])
    return Node("(unsigned)(", inner.node, f") % {length}", simpler=[Node("0")])


def read(g, name, depth=0):
    """The value of a name, or of something in it."""
    g.note(f"read of {'const ' if not name.writable else ''}{name.form}")
    kind, text = name.type, Node(name.name)
    if name.form == "array":
        index = index_below(g, name.length, depth)
        spelling = g.pick([0, 0, 0, 1, 2])
        if spelling == 1:
            text = Node("*(", name.name, " + ", "(", index, "))")
        elif spelling == 2:
            text = Node("(", name.name, ")[", index, "]")
        else:
            text = Node(name.name, "[", index, "]")
    elif name.form == "pointer":
        if name.struct:
            path, kind = member_path(g, name.struct)
            text = Node(g.pick([f"{name.name}->{path[1:]}", f"(*{name.name}){path}"]))
        else:
            text = Node(g.pick([f"*{name.name}", f"{name.name}[0]", f"(*{name.name})"]))
    elif name.form == "struct":
        path, kind = member_path(g, name.struct)
        text = Node(name.name + path)
    low, high = KINDS[kind].range
    if name.low is not None:
        low, high = name.low, name.high
    return made(kind, low, high, text)


def of_input(g, depth):
    """An element of an array that nobody writes."""
    array = g.pick(g.inputs)
    g.note("read of " + array.form)
    index = index_below(g, array.length, depth)
    low, high = array.low, array.high
    if array.form == "pointer to const" and g.chance(0.1):
        g.note("read by __ldg")
        return made(array.type, low, high, f"__ldg(&{array.name}[", index, "])")
    return made(array.type, low, high, array.name, "[", index, "]")


def of_element(g):
    """An element of an array that nobody writes, near the thread's own."""
    arrays = [a for a in g.inputs if a.form == "pointer to const"]
    if not arrays:
        return literal(g)
    array, i, c = g.pick(arrays), g.own_index, g.integer(1, 9)
    form = g.weighted({"own": 5, "ahead": 2, "before": 2, "guarded": 2, "strided": 1, "wrapped": 1})
    g.note("element " + form)
    zero = g.pick(["0", f"({array.type})0", f"{array.name}[0]"])
    text = {
        "own": f"{array.name}[{i}]",
        "ahead": f"{array.name}[{i} + {c}]",
        "before": f"({i} >= {c} ? {array.name}[{i} - {c}] : {zero})",
        "guarded": f"({i} + {c} < n ? {array.name}[{i} + {c}] : {zero})",
        "strided": f"{array.name}[{i} * 2 + {g.integer(0, 1)}]",
        "wrapped": f"{array.name}[({i} + {c}) % n]",
    }[form]
    kind = promoted(array.type) if zero == "0" and form in ("before", "guarded") else array.type
    return made(kind, min(array.low, 0), array.high, text)


def leaf(g, depth=0):
    """An expression that is no operation."""
    names = scalar_names(g)
    kind = g.weighted(
        {
            "name": 8 if names else 0,
            "literal": 4,
            "special": 2,
            "input": 3 if g.inputs else 0,
            "element": 5 if g.own_index and g.inputs and not g.only_uniform else 0,
        }
    )
    if kind == "name":
        return read(g, g.pick(names), depth)
    if kind == "literal":
        return literal(g)
    if kind == "element":
        return of_element(g)
    return special(g) if kind == "special" else of_input(g, depth)
