"""Declarations of local names, in all forms."""

import re

from . import expressions as e
from .context import Name
from .conversions import cast, fit
from .number_types import KINDS
from .structs import initial, literal_of, new_struct, some_struct
from .tree import Node, joined, statement


def qualified(g, t):
    """A spelling of a type, const or volatile at times: (text, writable)."""
    if g.chance(0.2):
        g.note("const variable")
        return g.pick([f"const {g.spelled(t)}", f"{g.spelled(t)} const"]), False
    return g.spelled(t), True


def named(g, text):
    """A name for a variable whose first value is `text`; at times one that hides another."""
    visible = [n for n in g.names() if not n.counter and not n.uniform and n.form == "scalar"]
    visible = [n for n in visible if n.name.isidentifier() and n.name not in g.macros]
    # What says which elements are the thread's own keeps its meaning.
    indices = " ".join([g.own_index, g.tid, g.size, *(str(place) for place, _ in g.own)])
    visible = [n for n in visible if n.name not in re.findall(r"\w+", indices)]
    if len(g.scopes) > 2 and visible and g.chance(0.25):
        name = g.pick(visible).name
        if (
            name not in [n.name for n in g.scopes[-1]]
            and name not in text.replace("(", " ").split()
            and name not in text
        ):
            g.note("shadowed name")
            return name
    return g.fresh()


def scalar(g):
    t = g.type()
    v = e.stored(g, t)
    words, writable = qualified(g, t)
    if g.chance(0.1) and writable:
        words = g.pick(["auto"]) if v.type == t else words
    name = named(g, str(v))
    form = g.pick([" = {};", " = {};", " = {};", "(({}));", " = ({});"])
    before, after = form.split("{}")
    g.declare(Name(name, t, writable=writable))
    return statement(f"{words} {name}{before}", v.node, after)


def several(g):
    """int a = 1, b, *c = &a;"""
    t = g.type()
    parts, names = [], []
    for _ in range(g.integer(2, 3)):
        name, v = g.fresh(), e.stored(g, t, 1)
        parts.append(Node(name, " = ", v.node))
        names.append(Name(name, t))
        if g.chance(0.2):
            pointer = g.fresh()
            parts.append(Node(f"*{pointer} = &{name}"))
            names.append(Name(pointer, t, "pointer"))
        elif g.chance(0.2):
            array = g.fresh()
            parts.append(Node(f"{array}[2] = {{}}"))
            names.append(Name(array, t, "array", 2))
        elif g.chance(0.2):
            other = g.fresh()
            parts.append(Node(f"&{other} = {name}"))
            names.append(Name(other, t))
    for name in names:
        g.declare(name)
    return statement(g.spelled(t), " ", joined(parts, g.pick([", ", ",\n    "])), ";")


def later(g):
    """Declared without a value, which comes in the next statement or in both branches."""
    t, name = g.type(), g.fresh()
    a, b, test = e.stored(g, t, 1), e.stored(g, t, 1), e.condition(g)
    g.declare(Name(name, t))
    if g.chance(0.5):
        return statement(f"{t} {name}; {name} = ", a.node, ";")
    return statement(
        f"{t} {name}; if (", test.node, f") {name} = ", a.node, f"; else {name} = ", b.node, ";"
    )


def array(g):
    t, length = g.type(), g.pick([2, 3, 4, 4, 5])
    name = g.fresh()
    form = g.pick(["values", "zeros", "short", "loop", "unsized", "typedef", "char*2"])
    declared = f"{g.spelled(t)} {name}[{length}]"
    writable = True
    if form == "values" or form == "unsized":
        values = [Node(cast(g, t, e.stored(g, t, 1).node)) for _ in range(length)]
        if form == "unsized":
            declared = f"{t} {name}[]"
        if g.chance(0.2):
            declared, writable = "const " + declared, False
        node = statement(declared, g.pick([" = {", "{"]), joined(values, ", "), "};")
    elif form == "short":
        node = statement(declared, " = {", cast(g, t, e.stored(g, t, 1).node), "};")
    elif form == "loop":
        node = statement(
            declared,
            f"; for (int k_ = 0; k_ < {length}; ++k_) {name}[k_] = ",
            e.stored(g, t, 1).node,
            ";",
        )
    elif form == "typedef":
        alias = g.unique("Array")
        node = statement(
            g.pick([f"typedef {t} {alias}[{length}]; ", f"using {alias} = {t}[{length}]; "]),
            f"{alias} {name} = {{}};",
        )
    else:
        node = statement(declared, g.pick([" = {};", " = {0};", "{};"]))
    g.note("array " + form)
    g.declare(Name(name, t, "array", length, writable, real=True))
    return node


def table(g):
    """An array of two dimensions, of which a row is used."""
    t, name, row = g.type(), g.fresh(), g.fresh()
    rows, length = g.integer(2, 3), g.pick([2, 4])
    g.declare(Name(row, t, "array", length))
    return statement(
        f"{t} {name}[{rows}][{length}] = {{}}; ",
        g.pick(
            [
                f"{t}* {row} = {name}[1];",
                f"auto& {row} = {name}[{rows - 1}];",
                f"{t} (&{row})[{length}] = {name}[0];",
            ]
        ),
    )


def struct(g):
    local = g.chance(0.2)
    if local:
        kind, text = new_struct(g, local=True)
        g.note("local struct")
        lead = Node(text, "\n")
    else:
        kind, lead = some_struct(g), Node()
    name = g.fresh()

    def member(t):
        return Node(cast(g, t, e.stored(g, t, 1).node)) if g.chance(0.5) else literal_of(g, t)

    form = g.pick(["values", "values", "braces", "zero", "auto"])
    if form == "zero":
        node = statement(lead, f"{kind.name} {name}", g.pick([" = {};", "{};"]))
    else:
        values = initial(g, kind, member)
        head = {
            "values": f"{kind.name} {name} = ",
            "braces": f"{kind.name} {name}",
            "auto": f"auto {name} = {kind.name}",
        }[form]
        node = statement(lead, head, values, ";")
    g.note("struct " + form)
    g.declare(Name(name, "", "struct", struct=kind))
    return node


def reference(g):
    names = [
        n
        for n in g.names()
        if n.form == "scalar" and not n.counter and not n.uniform and n.writable and not g.in_lambda
    ]
    if not names:
        return scalar(g)
    of, name = g.pick(names), g.fresh()
    const = g.chance(0.25)
    word = g.pick(["const " * const + of.type, "const " * const + "auto"])
    g.note("reference to const" if const else "reference")
    g.declare(Name(name, of.type, writable=not const))
    return statement(f"{word}& {name} = {of.name};")


def pointer(g):
    names = [
        n
        for n in g.names()
        if n.form in ("scalar", "array", "struct")
        and not n.counter
        and not n.uniform
        and n.writable
    ]
    if not names:
        return scalar(g)
    of, name = g.pick(names), g.fresh()
    g.note("pointer to " + of.form)
    if of.form == "array":
        g.declare(Name(name, of.type, "array", of.length))
        return statement(
            g.pick(
                [
                    f"{of.type}* {name} = {of.name};",
                    f"auto* {name} = &{of.name}[0];",
                    f"auto {name} = {of.name} + 0;",
                ]
            )
        )
    arrays = [m for m in of.struct.members if m.length] if of.form == "struct" else []
    if arrays and g.chance(0.5):
        member = g.pick(arrays)
        g.note("pointer to an array of a struct")
        g.declare(Name(name, member.type, "array", member.length))
        return statement(f"{member.type}* {name} = {of.name}.{member.name};")
    kind = of.struct.name if of.form == "struct" else of.type
    g.declare(Name(name, of.type, "pointer", struct=of.struct))
    return statement(
        g.pick(
            [
                f"{kind}* {name} = &{of.name};",
                f"{kind}* {name} = &({of.name});",
                f"auto {name} = &{of.name};",
                f"{kind} *const {name}(&{of.name});",
                f"{kind}* {name} = ({kind}*)(unsigned long long)&({of.name});",
            ]
        )
    )


def holder(g):
    """An object that keeps a reference to a variable, or its address."""
    names = [n for n in g.names() if n.form == "scalar" and n.writable and not n.counter]
    names = [n for n in names if not n.uniform]
    if not names or g.in_lambda:
        return scalar(g)
    of, name, kind = g.pick(names), g.fresh(), g.unique("Holder")
    form = g.pick(["reference", "reference", "pointer"])
    g.note("object with a " + form)
    member = f"{of.type}& at" if form == "reference" else f"{of.type}* at"
    g.add_top(f"struct {kind} {{ {member}; }};")
    first = g.pick([of.name, f"({of.name})"])
    first = first if form == "reference" else "&" + first
    style = g.pick([f"{kind} {name}{{{first}}};", f"{kind} {name} = {{{first}}};",
                    f"auto {name} = {kind}{{{first}}};"])  # fmt: skip
    text = f"{name}.at" if form == "reference" else f"(*{name}.at)"
    g.declare(Name(text, of.type, binding=True))
    return statement(style)


def guard(g):
    """An object that changes the thread's element when it ends."""
    own = [(text, t) for text, t in g.own if t in KINDS]
    if not own or g.in_lambda:
        return scalar(g)
    (text, t), name, kind = g.pick(own), g.fresh(), g.unique("Guard")
    value = g.integer(0, 99)
    g.note("object with a destructor")
    g.add_top(f"struct {kind} {{ {t}* at; __device__ ~{kind}() {{ *at = {value}; }} }};")
    return statement(f"{kind} {name}{{&({text})}}; (void){name};")


def constant(g):
    value, name = g.integer(0, 50), g.fresh()
    form = g.weighted(
        {
            "constexpr int": 2,
            "const int": 3,
            "enum": 1,
            "static constexpr int": 1,
            "constexpr auto": 1,
        }
    )
    g.note("constant " + form)
    g.declare(Name(name, "int", writable=False, uniform=True, low=value, high=value))
    if form == "enum":
        return statement(
            g.pick(
                [
                    f"enum {{ {name} = {value} }};",
                    f"enum : int {{ other_{name}, {name} = {value} }};",
                ]
            )
        )
    return statement(f"{form} {name} = {value};")


def macro(g):
    """A macro that declares a variable."""
    t, v = g.type(), e.stored(g, g.type(), 1)
    v = fit(g, v, t)
    name = g.fresh()
    form = g.pick(["DECL", "VAR", "LET", "BOTH"])
    g.note("macro that declares " + form)
    if form == "DECL":
        # A comma of a template's arguments parts the value in two.
        word = g.macro("DECL", "(type, name, ...)", "type name = __VA_ARGS__")
        node = statement(f"{word}({t}, {name}, ", v.node, ");")
    elif form == "VAR":
        word = g.macro("VAR", "(name)", f"{t} name")
        node = statement(f"{word}({name}) = ", v.node, ";")
    elif form == "LET":
        word = g.macro("LET", "(n, ...)", "auto n##_let = __VA_ARGS__")
        node = statement(f"{word}({name}, ", cast(g, t, v.node), ");")
        name += "_let"
    else:
        word = g.macro("BOTH", "(a, b)", f"{t} a = 1, b = 2")
        node = statement(f"{word}({name}, {name}_2);")
        g.declare(Name(name + "_2", t))
    g.declare(Name(name, t))
    return node


def binding(g):
    """auto [a, b] = struct; by value or by reference."""
    structs = [
        n
        for n in g.names()
        if n.form == "struct" and not any(m.struct or m.length for m in n.struct.members)
    ]
    arrays = [n for n in g.names() if n.form == "array" and n.real and n.length <= 3 and n.writable]
    if not structs + arrays:
        return scalar(g)
    of = g.pick(structs + arrays)
    types = [m.type for m in of.struct.members] if of.form == "struct" else [of.type] * of.length
    names = [g.fresh() for _ in types]
    word = g.pick(["auto", "auto&", "const auto&", "auto&&"])
    g.note(f"structured binding {word} of {of.form}")
    writable = word != "const auto&" and (of.writable or word == "auto")
    for name, t in zip(names, types, strict=True):
        g.declare(Name(name, t, writable=writable, binding=True))
    return statement(f"{word} [{', '.join(names)}] = {of.name};")


def lambda_value(g):
    """A lambda that is called later, by value or by reference."""
    t = g.type()
    name = g.fresh()
    places = [
        n
        for n in g.names()
        if n.form == "scalar"
        and n.writable
        and not n.counter
        and not n.uniform
        and not n.binding
        and n.type == t
    ]
    if places and g.chance(0.6):
        of = g.pick(places)
        g.note("lambda that changes a variable")
        g.declare(Name(name, t, "lambda"))
        return statement(
            f"auto {name} = [{g.pick(['&', '&' + of.name])}]({t} k_) {{ {of.name} += k_; }};"
        )
    g.note("lambda by value")
    return statement(f"auto {name} = [=]({t} k_) {{ return k_ / 2; }}; (void){name};")


def alias(g):
    """A type's name, then a variable of it."""
    t, name, kind = g.type(), g.fresh(), g.unique("Kind")
    v = e.stored(g, t, 1)
    g.note("local typedef")
    g.declare(Name(name, t))
    head = g.pick(
        [f"typedef {t} {kind};", f"using {kind} = {t};", f"using {kind} = decltype(({t})0);"]
    )
    return statement(f"{head} {kind} {name} = ", v.node, ";")


def unlike(g):
    """A variable whose declaration may be taken for an expression."""
    t, kind = g.type(), g.unique("Kind")
    v = e.stored(g, t, 1)
    name = named(g, str(v))
    g.add_top(f"typedef {t} {kind};")
    words = g.pick([f"::{kind}", f"::{kind} const", f"std::enable_if_t<1 == 1, {kind}>"])
    g.note("declaration like an expression")
    g.declare(Name(name, t, writable="const" not in words))
    return statement(f"{words} {name} = ", v.node, ";")


FORMS = {
    "scalar": (scalar, 8),
    "several": (several, 3),
    "later": (later, 2),
    "array": (array, 4),
    "table": (table, 1),
    "struct": (struct, 4),
    "reference": (reference, 2),
    "pointer": (pointer, 2),
    "holder": (holder, 1),
    "guard": (guard, 0.5),
    "constant": (constant, 1.5),
    "macro": (macro, 2),
    "binding": (binding, 1.5),
    "lambda": (lambda_value, 1),
    "alias": (alias, 1),
    "unlike": (unlike, 1),
}


def declaration(g):
    """A declaration of something."""
    form = g.weighted({name: weight for name, (_, weight) in FORMS.items()})
    g.note("declaration " + form)
    return FORMS[form][0](g)
