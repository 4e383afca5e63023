"""Values of a type and range, and conversions that keep them defined."""

from .number_types import KINDS, STORED, promoted
from .tree import Node, Value

SUFFIX = {
    "unsigned": "u",
    "long long": "ll",
    "size_t": "ul",
    "unsigned long long": "ull",
    "float": "f",
}


def number(value, type_name):
    """A literal of a type and value."""
    if KINDS[type_name].real:
        text = f"{float(value)!r}" + SUFFIX.get(type_name, "")
    else:
        text = f"{int(value)}" + SUFFIX.get(type_name, "")
    text = f"({text})" if value < 0 else text
    if promoted(type_name) != type_name:
        text = f"({type_name}){text}"
    return Value(Node(text), type_name, value, value)


def made(type_name, low, high, *parts, of=()):
    """A value, with what may stand in its place: operands and numbers that lie in its range."""
    value = Value(Node(*parts), type_name, low, high)
    for small in (0, 1):
        if low <= small <= high:
            value.node.simpler.append(number(small, type_name).node)
            break
    value.node.simpler += [v.node for v in of if v.within(value)]
    return value


def cast(g, type_name, node):
    """Text of a conversion; its operand's range must fit."""
    form = g.pick(["c", "static", "function"])
    if form == "static":
        return Node(f"static_cast<{type_name}>(", node, ")")
    if form == "function" and " " not in type_name:
        return Node(f"{type_name}(", node, ")")
    return Node(f"({type_name})(", node, ")")


def integral(g, v):
    """An integer made of any value."""
    if not KINDS[v.type].real:
        return v
    if max(-v.low, v.high) < 2**30:
        return made("int", int(v.low) - 1, int(v.high) + 1, cast(g, "int", v.node))
    return made("int", 0, 1, "(", v.node, g.pick([" > 1.0f", " < 3", " >= 0.5f"]), " ? 1 : 0)")


def bounded(g, v, limit):
    """The value, changed so that it is at most `limit` away from 0."""
    if -limit <= v.low and v.high <= limit:
        return v
    if KINDS[v.type].real:
        factor = 2.0**-20
        while max(-v.low, v.high) * factor > limit:
            factor /= 2**10
        suffix = SUFFIX.get(v.type, "")
        return made(v.type, -limit, limit, "(", v.node, f") * {factor!r}{suffix}")
    divisor = g.pick([d for d in (7, 31, 97, 100, 997, 1000) if d <= limit] or [1])
    suffix = SUFFIX.get(promoted(v.type), "")
    low = 0 if v.low >= 0 else 1 - divisor
    return made(promoted(v.type), low, divisor - 1, "(", v.node, f") % {divisor}{suffix}")


def fit(g, v, type_name, limit=STORED):
    """A value that may be stored in a type: implicitly, or by a cast."""
    kind = KINDS[type_name]
    if kind.wraps:
        v = integral(g, v)
    elif not kind.real:
        v = bounded(g, integral(g, v), limit)
    else:
        v = bounded(g, v, limit)
    if v.type != type_name and g.chance(0.4):
        g.note("cast to " + type_name)
        return Value(Node(cast(g, type_name, v.node)), type_name, v.low, v.high)
    return v
