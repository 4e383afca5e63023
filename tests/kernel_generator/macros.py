"""Macros that change a variable."""

from . import expressions as e
from .functions import function
from .places import stepped
from .tree import Node

MACROS = {
    "MAC": ("(a, x, y)", "((a) += (x) * (y))", "{n}({p}, {s}, 1);"),
    "BUMP": ("(x)", "((x) += 1)", "{n}({p});"),
    "BUMPS": ("(x)", "(x)++", "{n}({p});"),
    "SET": ("(x, v)", "x = (v)", "{n}({p}, {s});"),
    "ADD_DO": ("(x, v)", "do { (x) += (v); } while (0)", "{n}({p}, {s});"),
    "TWO_LINES": (
        "(x, v)",
        "do {\n  const auto v_ = (v);\n  (x) += v_;\n} while (0)",
        "{n}({p}, {s});",
    ),
    "APPLY": ("(op, x, v)", "(x) op (v)", "{n}(+=, {p}, {s});"),
    "VARIADIC": ("(x, ...)", "(x) += (__VA_ARGS__)", "{n}({p}, {s});"),
    "STATEMENT": ("(...)", "{{ __VA_ARGS__; }}", "{n}({p} += {s})"),
    "IFPOS": ("(c, x)", "if (c) { (x) += 1; } else (x) -= 1", "{n}({c}, {p});"),
    "LOOP": ("(x, n)", "for (int k_ = 0; k_ < (n); ++k_) (x) += k_", "{n}({p}, 3);"),
    "CALLER": ("(f, x)", "f(x)", "{n}({b}, {p});"),
    "OUTER": ("(x)", "{inner}(x); {inner}(x)", "{n}({p});"),
    "EMPTY_TAIL": ("", "+= 1", "{p} {n};"),
    "PLUS_EQ": ("", "+=", "{p} {n} {s};"),
    "PASTE": ("(a, b)", "a##b += 1", None),
    "NAMED": ("", "{p} += 1", "{n};"),
}


def by_macro(g, place, t):
    key = g.weighted({k: 1 for k in MACROS})
    parameters, body, use = MACROS[key]
    if key == "PASTE" and (len(place) < 2 or not place.isidentifier() or place[1:2].isdigit()):
        key, (parameters, body, use) = "MAC", MACROS["MAC"]
    g.note("macro " + key)
    inner = (
        function(g, "BUMP", lambda: g.macro("BUMP", *MACROS["BUMP"][:2]))
        if key in ("CALLER", "OUTER")
        else ""
    )
    own = key == "NAMED"
    body = (
        body.replace("{inner}", inner).replace("{p}", place).replace("{{", "{").replace("}}", "}")
    )
    name = (
        g.macro(key, parameters, body)
        if own
        else function(g, key, lambda: g.macro(key, parameters, body))
    )
    if key == "PASTE":
        return Node(f"{name}({place[:1]}, {place[1:]});")
    words = {"n": [name], "p": [f"({place})" if "," in place else place], "b": [inner]}
    start, *pieces = use.split("{")
    parts = [start]
    for piece in pieces:
        kind, rest = piece.split("}", 1)
        if kind == "s":
            words[kind] = argument(e.step(g, t, 1).node)
        elif kind == "c":
            words[kind] = argument(e.condition(g).node)
        parts += [*words[kind], rest]
    return stepped(place, t, *parts) if key == "BUMPS" else Node(*parts)


def argument(node):
    """What a macro is given: in brackets if it may have a comma of its own."""
    return ["(", node, ")"] if "," in node.text() else [node]
