"""Expressions: typed, without side effects, and with a range that rules out undefined behaviour."""

from .conversions import SUFFIX, fit, integral, made
from .leaves import leaf, literal, of_input
from .number_types import KINDS, READ, STEP, STORED, common_type, limits, promoted

# Operations


def safe_range(op, a, b):
    """The range of a op b in exact arithmetic."""
    if op == "+":
        return a.low + b.low, a.high + b.high
    if op == "-":
        return a.low - b.high, a.high - b.low
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(corners), max(corners)


def arithmetic(g, a, b):
    """a + b, a - b or a * b."""
    op = g.pick("+-*")
    type_name = common_type(a.type, b.type)
    low, high = safe_range(op, a, b)
    bottom, top = limits(type_name)
    parts = ["(", a.node, f" {op} ", b.node, ")"]
    if KINDS[type_name].real:
        if max(-low, high) > 1e30:
            return a
        low, high = float(low), float(high)
    elif not KINDS[type_name].signed:
        low, high = bottom, top
    elif low < bottom or high > top:
        unsigned = "unsigned" if type_name == "int" else "unsigned long long"
        g.note("unsigned arithmetic of signed")
        parts = [f"(({unsigned})", "(", a.node, f") {op} ", b.node, ")"]
        type_name = unsigned
        low, high = limits(unsigned)
    # A float of 24 bits rounds: the range grows by that.
    if KINDS[type_name].real:
        low, high = low - abs(low) * 1e-6, high + abs(high) * 1e-6
    g.note(f"operator {op}")
    return made(type_name, low, high, *parts, of=(a, b))


def division(g, a, b):
    """a / b or a % b by something that is not 0."""
    if KINDS[a.type].real:
        g.note("division of floats")
        return made(
            a.type,
            -abs(a.low) - abs(a.high),
            abs(a.low) + abs(a.high),
            "(",
            a.node,
            " / ",
            g.pick(["2", "4.0f", "3.f"]),
            ")",
        )
    op, type_name = g.pick("/%"), promoted(a.type)
    divisor = g.integer(2, 37)
    b = integral(g, b)
    if not KINDS[type_name].signed and not KINDS[promoted(b.type)].signed and g.chance(0.5):
        g.note("division by a variable")
        wide = common_type(type_name, b.type)
        return made(wide, *limits(wide), "(", a.node, f" {op} ((", b.node, ") | 1u))", of=(a,))
    g.note(f"operator {op}")
    low, high = (
        (-divisor + 1 if a.low < 0 else 0, divisor - 1)
        if op == "%"
        else (min(a.low, 0), max(a.high, 0))
    )
    suffix = SUFFIX.get(type_name, "")
    return made(type_name, low, high, "(", a.node, f" {op} {divisor}{suffix})", of=(a,))


def bitwise(g, a, b):
    """Bits of two integers, or shifts."""
    a, b = integral(g, a), integral(g, b)
    op = g.pick(["&", "|", "^", "<<", ">>", "~"])
    g.note(f"operator {op}")
    type_name = promoted(a.type)
    if op == ">>":
        return made(
            type_name,
            min(a.low, 0),
            max(a.high, 0),
            "(",
            a.node,
            f" >> {g.integer(0, 7)})",
            of=(a,),
        )
    if op == "<<":
        wide = "unsigned long long" if KINDS[type_name].bits == 64 else "unsigned"
        return made(wide, *limits(wide), f"(({wide})(", a.node, ") << (", b.node, " & 7))")
    if op == "~":
        return made(type_name, *limits(type_name), "(~", a.node, ")")
    wide = common_type(a.type, b.type)
    if op == "&" and g.chance(0.5):
        mask = g.pick([1, 3, 7, 15, 255])
        return made(type_name, 0, mask, "(", a.node, f" & {mask})")
    return made(wide, *limits(wide), "(", a.node, f" {op} ", b.node, ")")


def condition(g, depth=1):
    """An expression that is true or false."""
    form = g.weighted(
        {
            "compare": 8,
            "not in a word": 0.3,
            "and": 2,
            "or": 2,
            "not": 2,
            "bit": 3,
            "value": 1,
            "keyword": 1,
        }
    )
    if depth <= 0 and form in ("and", "or", "keyword", "not", "not in a word"):
        form = "compare"
    g.note("condition " + form)
    if form in ("and", "or"):
        op = {"and": " && ", "or": " || "}[form]
        a, b = condition(g, depth - 1), condition(g, depth - 1)
        return made("bool", 0, 1, "(", a.node, op, b.node, ")", of=(a, b))
    if form == "keyword":
        a, b = condition(g, depth - 1), condition(g, depth - 1)
        return made("bool", 0, 1, "(", a.node, g.pick([" and ", " or "]), b.node, ")", of=(a, b))
    if form in ("not", "not in a word"):
        a = condition(g, depth - 1)
        return made("bool", 0, 1, "!" if form == "not" else "not ", "(", a.node, ")", of=(a,))
    if form == "bit":
        a = integral(g, value(g, depth - 1))
        return made(
            "bool",
            0,
            1,
            "((",
            a.node,
            f" & {g.pick([1, 2, 3, 4])}) ",
            g.pick(["== 0", "!= 0", "== 1"]),
            ")",
        )
    a = value(g, depth - 1)
    if form == "value":
        return made("bool", 0, 1, "((", a.node, ") != 0)")
    b = value(g, depth - 1) if g.chance(0.4) else literal(g)
    return made(
        "bool",
        0,
        1,
        "(",
        a.node,
        g.pick([" < ", " > ", " <= ", " >= ", " == ", " != "]),
        b.node,
        ")",
    )


def choice(g, depth):
    """c ? a : b, where a or b may read memory."""
    c, a, b = condition(g, depth - 1), value(g, depth - 1), value(g, depth - 1)
    if g.inputs and g.chance(0.5):
        g.note("conditional read of memory")
        a = of_input(g, depth - 1)
    g.note("conditional expression")
    type_name = common_type(a.type, b.type) if a.type != b.type else a.type
    low, high = min(a.low, b.low), max(a.high, b.high)
    if not KINDS[type_name].real and not KINDS[type_name].signed and low < 0:
        low, high = limits(type_name)
    return made(type_name, low, high, "(", c.node, " ? ", a.node, " : ", b.node, ")", of=(a, b))


def smaller(g, a, b):
    """min or max of two values of a type."""
    if a.type != b.type or promoted(a.type) != a.type:
        a, b = fit(g, a, "int"), fit(g, b, "int")
        a, b = (made("int", *range_as_int(v), "(int)(", v.node, ")") for v in (a, b))
    g.note("min or max")
    return made(
        a.type,
        min(a.low, b.low),
        max(a.high, b.high),
        g.pick(["min(", "max("]),
        a.node,
        ", ",
        b.node,
        ")",
        of=(a, b),
    )


def range_as_int(v):
    """The range of a stored int."""
    return max(v.low, -READ), min(v.high, READ)


def negated(g, a):
    """-a or +a."""
    type_name = promoted(a.type)
    if KINDS[type_name].signed and not KINDS[type_name].real and a.low <= limits(type_name)[0]:
        return a
    low, high = -a.high, -a.low
    if not KINDS[type_name].signed:
        low, high = limits(type_name)
    g.note("unary minus")
    return made(type_name, low, high, "(-", a.node, ")")


def measured(g):
    """sizeof of something."""
    g.note("sizeof")
    word = g.pick(["int", "float", "char", "double"])
    return made("size_t", 1, 8, f"sizeof({word})")


def value(g, depth=2):
    """Any expression."""
    if depth <= 0 or g.chance(0.2):
        return leaf(g, depth)
    form = g.weighted(
        {
            "arithmetic": 10,
            "division": 3,
            "bitwise": 4,
            "choice": 3,
            "min": 2,
            "negated": 1,
            "condition": 1,
            "sizeof": 0.2,
            "comma": 0.4,
            "call": 2,
            "parentheses": 1,
        }
    )
    if form == "choice":
        return choice(g, depth)
    if form == "condition":
        return condition(g, depth - 1)
    if form == "sizeof":
        return measured(g)
    a = value(g, depth - 1)
    if form == "negated":
        return negated(g, a)
    if form == "parentheses":
        return made(a.type, a.low, a.high, "((", a.node, "))", of=(a,))
    if form == "call":
        from . import functions

        return functions.call(g, a, depth - 1)
    b = value(g, depth - 1)
    if form == "comma":
        g.note("comma expression")
        return made(a.type, a.low, a.high, "((void)(", b.node, "), ", a.node, ")", of=(a,))
    return {"arithmetic": arithmetic, "division": division, "bitwise": bitwise, "min": smaller}[
        form
    ](g, a, b)


def stored(g, type_name, depth=2, limit=STORED):
    """An expression whose value may be stored in a type."""
    return fit(g, value(g, depth), type_name, limit)


def step(g, type_name, depth=1):
    """An expression that may be added to a variable of a type."""
    return stored(g, type_name, depth, STEP)
