"""Every way to change a struct: its member functions and operators, free ones, copies."""

from . import declarations
from . import expressions as e
from .conversions import cast
from .functions import function
from .places import stepped
from .structs import initial, literal_of
from .tree import statement

METHODS = {
    "add": ["{s}.add({v});", "(&{s})->add({v});", "(({s})).add({v});"],
    "add this": ["{s}.add_this({v});"],
    "chain": ["{s}.chain({v}).chain(1);", "{s}.chain({v});"],
    "+=": ["{s} += {v};", "({s}) += {v};", "{s}.operator+=({v});"],
    "++": ["++{s};", "{s}++;", "({s})++;"],
    "()": ["{s}({v});"],
    "[]": ["{s}[0] += {v};", "++{s}[1];"],
    "at": ["{s}.at() += {v};", "{s}.at()++;"],
    "touch": ["{s}.touch();", "(void){s}.touch();"],
    "template": ["{s}.take({v});", "{s}.take(1);"],
    "lambda": ["{s}.through({v});"],
    "later": ["{s}.later({v});"],
    "friend": ["nudge_{S}({s}, {v});"],
    "conversion": ["(void)static_cast<{t}>({s});"],
    "static": ["{S}::of({s}, {v});"],
    "default argument": ["{s}.more();", "{s}.more({v});"],
    "get": ["(void){s}.get();"],
}


def free_operator(g, struct):
    """s << value, a function of its own."""

    def make():
        t, name = struct.main.type, struct.name
        g.add_top(
            f"__device__ inline {name}& operator<<({name}& s, "
            f"{t} k) {{ s.{struct.main.name} += k; return s; }}"
        )
        return True

    return function(g, ("free operator", struct.name), make)


def by_struct(g, struct, form):
    """A function of a struct by reference, or of its copy."""

    def make():
        t, name = struct.main.type, g.unique("of_struct")
        how = {"&": f"{struct.name}& s", "*": f"{struct.name}* s", "copy": f"{struct.name} s"}[form]
        dot = "->" if form == "*" else "."
        g.add_top(
            f"__device__ inline {t} {name}({how}, {t} k) {{ "
            f"s{dot}{struct.main.name} += k; return s{dot}{struct.main.name}; }}"
        )
        return name

    return function(g, ("struct", form, struct.name), make)


def struct_changed(g):
    """A member function or an operator of a struct."""
    names = [n for n in g.names() if n.form in ("struct", "pointer") and n.struct and n.writable]
    if not names:
        return declarations.struct(g)
    name = g.pick(names)
    kind = name.struct
    s = name.name if name.form == "struct" else f"(*{name.name})"
    v = str(cast(g, kind.main.type, e.step(g, kind.main.type).node))
    methods = [key for key in METHODS if key in kind.functions]
    local = kind not in g.structs
    form = g.weighted(
        {
            "method": 8 if methods else 0,
            "<<": 0 if local else 1,
            "function": 0 if local else 2,
            "copy": 1,
            "const": 1 if {"touch", "at", "[]"} & set(kind.functions) else 0,
            "assign": 1,
        }
    )
    g.note("struct change " + form)
    if form == "method":
        key = g.pick(methods)
        g.note("member function " + key)
        text = (
            g.pick(METHODS[key])
            .replace("{s}", s)
            .replace("{S}", kind.name)
            .replace("{t}", kind.main.type)
        )
        before, _, after = text.partition("{v}")
        if key in ("[]", "at"):  # they give the member itself
            place = f"{s}.{kind.main.name}"
            return statement(stepped(place, kind.main.type, before, v * ("{v}" in text), after))
        return statement(before, v if "{v}" in text else "", after)
    if form == "<<":
        free_operator(g, kind)
        return statement(f"{s} << ", v, g.pick([";", " << 1;"]))
    if form == "function":
        how = g.pick(["&", "*", "copy"])
        return statement(f"(void){by_struct(g, kind, how)}({'&' * (how == '*')}{s}, ", v, ");")
    copy = g.fresh()
    if form == "copy":
        change = f"{copy}.{kind.main.name} += 1; "
        return statement(
            f"{{ {g.pick([kind.name, 'auto'])} {copy} = {s}; {change}",
            g.pick(["", f"{s} = {copy};"]),
            " }",
        )
    if form == "const":
        key = g.pick(sorted({"touch", "at", "[]"} & set(kind.functions)))
        call = {"touch": ".touch()", "at": ".at()", "[]": "[0]"}[key]
        return statement(
            f"{{ const {kind.name}& {copy} = {s}; {s}.{kind.main.name} "
            f"= ({kind.main.type})({copy}{call} / 2); }}"
        )
    return statement(f"{s} = {kind.name}", initial(g, kind, lambda t: literal_of(g, t)), ";")
