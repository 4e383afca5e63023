"""Statements: changes, conditions, loops, switches, blocks, early ends."""

from . import changes, declarations, meetings
from . import expressions as e
from .context import Name
from .conversions import cast, integral
from .functions import function
from .places import place
from .strided import strided
from .struct_changes import struct_changed
from .tree import Node, joined, statement

# What may be changed


def changed(g):
    found = place(g)
    if found is None:
        return declarations.declaration(g)
    text, kind, binding = found
    with g.setting(in_lambda=g.in_lambda or binding):
        if text.startswith("*"):
            text = f"({text})"
        return changes.change(g, text, kind)


# Conditions and loops


def uniformly(g):
    """Whether to do the next thing in the same way in all threads."""
    return g.barriers and g.uniform and g.chance(0.6)


def a_condition(g, uniform):
    with g.setting(only_uniform=uniform):
        return e.condition(g, 2).node


def body(g, count, **settings):
    with g.scope(), g.setting(**settings):
        return statements(g, count)


def braces(g, inner):
    """The body of a statement."""
    return Node(g.pick(["{\n", "{ ", "\n{\n"]), inner, g.pick(["}\n", "}\n", "}  // end\n"]))


def conditional(g):
    uniform = uniformly(g)
    g.note("if, uniform" if uniform else "if")
    test = a_condition(g, uniform)
    first = body(g, g.integer(1, 3), uniform=g.uniform and uniform)
    head = g.pick(["if (", "if (", "if(", "if (auto c_ = (", "if (int c_ = 0; "])
    end = ")) " if head == "if (auto c_ = (" else ") "
    parts = [head, test, end, braces(g, first)]
    if g.chance(0.4):
        second = body(g, g.integer(1, 2), uniform=g.uniform and uniform)
        g.note("else")
        parts += ["else ", braces(g, second)]
        if g.chance(0.2):
            parts.insert(
                -2,
                Node(
                    "else if (",
                    a_condition(g, uniform),
                    ") ",
                    braces(g, body(g, 1, uniform=g.uniform and uniform)),
                ),
            )
            g.note("else if")
    return Node(*parts, drop=True, simpler=[Node("{ ", first, "}\n")])


def without_braces(g):
    """if (c) change; else change; without braces."""
    found = place(g)
    if found is None or found[2]:
        return changed(g)
    text, kind, _ = found
    text = f"({text})" if text.startswith("*") else text
    g.note("if without braces")
    one, two = changes.plain(g, text, kind), changes.increment(g, text, kind)
    tail = Node(" else ", two) if g.chance(0.5) else ""
    word = g.weighted({"if": 3, "for": 1})
    if word == "for":
        return statement("for (int k_ = 0; k_ < 3; k_++) ", one)
    return statement("if (", e.condition(g, 1).node, g.pick([") ", ")\n    "]), one, tail)


def bound(g, uniform):
    """(text, largest value, whether it is a constant) of the number of turns."""
    if g.chance(0.5):
        n = g.integer(1, 4)
        return Node(str(n), simpler=[Node("1")]), n
    with g.setting(only_uniform=uniform):
        inner = integral(g, e.value(g, 1))
    mask = g.pick([1, 3])
    return Node("(int)((", inner.node, f") & {mask})", simpler=[Node("1")]), mask


HEADS = [
    "for (int {k} = 0; {k} < {n}; ++{k}) ",
    "for (int {k} = 0; {k} < {n}; {k}++) ",
    "for (unsigned {k} = 0; {k} < (unsigned)({n}); {k} += 1) ",
    "for (int {k} = ({n}) - 1; {k} >= 0; --{k}) ",
    "for (short {k} = 0, {k}_end = {n}; {k} != {k}_end; ++{k}) ",
    "for (auto {k} = 0; {k} < {n}; ({k})++) ",
    "for (int {k} = 0, {k}_end = {n}; {k} < {k}_end; {k} = {k} + 1) ",
    "for (size_t {k} = 0; {k} < (size_t)({n}); {k}++) ",
    "\n#pragma unroll\nfor (int {k} = 0; {k} < {n}; ++{k}) ",
    "\n#pragma unroll 2\nfor (int {k} = 0; {k} < {n}; {k}++) ",
    "{F}({k}, {n}) ",
    "int {k} = 0;\nfor (; {k} < {n}; ++{k}) ",
    "for (int {k} = 0; ; ++{k}) {{ if ({k} >= {n}) break;\n",
]


def of_head(g, k, n):
    """The head of a for loop as a node."""
    head = g.pick(HEADS)
    if "{F}" in head:
        word = function(g, "FOR", lambda: g.macro("FOR", "(k, n)", "for (int k = 0; k < (n); ++k)"))
        head = head.replace("{F}", word)
        g.note("for by a macro")
    parts = []
    for piece in head.replace("{{", "\0").replace("{k}", k).split("{n}"):
        parts += [n, piece.replace("\0", "{")] if parts else [piece.replace("\0", "{")]
    return Node(*parts), head.count("{{")


def loop(g):
    if g.trips > 20 or len(g.loops) > 2:
        return changed(g)
    uniform = uniformly(g)
    n, most = bound(g, uniform)
    k = g.pick(["i0", "j0", "k0", "k", "j", "m0", "it"])
    if k in [x.name for x in g.names()]:
        k = g.fresh()
    g.note("for, uniform" if uniform else "for")
    if len(g.loops):
        g.note("loop in a loop")
    head, open_braces = of_head(g, k, n)
    first = head.text().strip()
    kind = (
        "unsigned"
        if first.startswith("for (unsigned")
        else "size_t"
        if first.startswith("for (size_t")
        else "int"
    )
    with g.scope():
        g.declare(
            Name(
                k, kind, writable=False, uniform=uniform, counter=True, low=0, high=max(most - 1, 0)
            )
        )
        inner = body(
            g,
            g.integer(1, 3),
            uniform=g.uniform and uniform,
            trips=g.trips * most,
            loops=[*g.loops, "uniform" if uniform else "free"],
        )
    wrap = head.text().startswith("int ")
    parts = [
        "{ " if wrap else "",
        head,
        braces(g, inner) if not open_braces else inner,
        "}\n" * (open_braces + wrap),
    ]
    return Node(*parts, drop=True)


def while_loop(g):
    """while and do-while, with a counter of their own; the condition may change it."""
    if g.trips > 20 or len(g.loops) > 2:
        return changed(g)
    uniform = uniformly(g)
    n, most = bound(g, uniform)
    k = g.fresh()
    form = g.pick(["while", "while post", "do", "for ever", "while comma"])
    g.note(form + (" loop, uniform" if uniform else " loop"))
    with g.scope():
        g.declare(Name(k, "int", writable=False, uniform=uniform, counter=True, low=-1, high=most))
        inner = body(
            g,
            g.integer(1, 2),
            uniform=g.uniform and uniform,
            trips=g.trips * (most + 1),
            loops=[*g.loops, "uniform" if uniform else "free"],
        )
    start = Node(f"int {k} = ", n, ";\n")
    parts = {
        "while": [f"while ({k} > 0) {{ {k}--;\n", inner, "}\n"],
        "while post": [g.pick([f"while (({k})--) ", f"while ({k}-- > 0) "]), braces(g, inner)],
        "do": ["do {\n", inner, f"}} while (--{k} > 0);\n"],
        "for ever": [
            g.pick(["while (true) ", "for (;;) "]),
            f"{{ if ({k}-- <= 0) break;\n",
            inner,
            "}\n",
        ],
        "while comma": [f"while ({k} = {k} - 1, {k} >= 0) ", braces(g, inner)],
    }[form]
    return Node("{ ", start, *parts, "}\n", drop=True)


def leave(g):
    """break or continue."""
    if not g.loops or g.loops[-1] == "switch":
        return changed(g)
    word = g.pick(["break", "continue"])
    if g.loops[-1] == "uniform":
        if not g.uniform:
            return changed(g)
        g.note(word + ", uniform")
        return statement("if (", a_condition(g, True), f") {word};")
    g.note(word)
    test = e.condition(g, 1).node
    with g.scope():
        change = changed(g) if g.chance(0.3) else ""
    return statement("if (", test, g.pick([") {", ") { "]), change, f"{word}; }}")


def switch(g):
    uniform = uniformly(g)
    with g.setting(only_uniform=uniform):
        of = integral(g, e.value(g, 1))
    g.note("switch, uniform" if uniform else "switch")
    parts, last = [], g.integer(2, 3)
    for case in range(last + 1):
        label = f"case {case}:" if case < last else "default:"
        inner = body(g, 1, uniform=g.uniform and uniform, loops=[*g.loops, "switch"])
        through = g.chance(0.3)
        if through:
            g.note("switch that falls through")
        parts += [label, " {\n", inner, "}\n", "" if through else "break;\n"]
    return Node("switch ((", of.node, ") & 3) {\n", *parts, "}\n", drop=True)


def block(g):
    g.note("block")
    inner = body(g, g.integer(2, 3))
    return Node("{\n", inner, "}\n", drop=True, simpler=[inner])


def ranged(g):
    """A loop over an array, by value or by reference."""
    arrays = [n for n in g.names() if n.form == "array" and n.real]
    if not arrays or g.trips > 20:
        return declarations.array(g)
    array, name = g.pick(arrays), g.fresh()
    word = g.pick(
        ["auto", array.type, "const auto", "auto&", array.type + "&", "const auto&", "auto&&"]
    )
    writable = "const" not in word and (array.writable or "&" not in word)
    word = word if array.writable or "&" not in word else "const auto&"
    g.note("range-for " + word.replace(array.type, "T"))
    with g.scope():
        g.declare(Name(name, array.type, writable=writable))
        with g.setting(trips=g.trips * array.length, loops=[*g.loops, "free"], uniform=False):
            first = changes.change(g, name, array.type) if writable and g.chance(0.6) else Node()
            inner = statements(g, 1)
    return Node(f"for ({word} {name} : {array.name}) {{\n", first, inner, "}\n", drop=True)


def leave_kernel(g):
    """An early return."""
    if g.no_return or g.in_lambda:
        return changed(g)
    if g.barriers:
        if not g.uniform:
            return changed(g)
        g.note("return of whole blocks")
        return statement("if (", a_condition(g, True), ") return;")
    g.note("early return")
    test = e.condition(g, 1).node
    with g.scope():
        write = changed(g) if g.chance(0.4) else ""
    return statement("if (", test, ") { ", write, "return; }")


def product(g):
    """A sum of products along a row and a column."""
    arrays = [a for a in g.inputs if a.form == "pointer to const"]
    t = g.pick(["float", "float", "unsigned", "double"])
    arrays = [a for a in arrays if a.type == t]
    if not arrays or not g.own_index or g.trips > 4:
        return changed(g)
    a, b, k, total, i = g.pick(arrays).name, g.pick(arrays).name, g.fresh(), g.fresh(), g.own_index
    g.note("sum of products")
    row, column = g.pick(
        [
            (f"({i} / 16 % 8)", f"{i} % 16"),
            (f"({i} % 8)", f"({i} / 8 % 16)"),
            ("(blockIdx.x & 7)", "(threadIdx.x & 15)"),
        ]
    )
    terms = (f"{a}[{row} * 16 + {k}]", f"{b}[{k} * 16 + {column}]")
    change = g.pick(
        [
            "{s} += {x} * {y};",
            "{s} = {s} + {x} * {y};",
            "{s} += {y} * {x};",
            "{s} -= {x};",
            "{s} += {x} - {y};",
        ]
    )
    change = change.replace("{s}", total).replace("{x}", terms[0]).replace("{y}", terms[1])
    line = Node(
        f"{t} {total} = 0;\nfor (int {k} = 0; {k} < 16; {g.pick(['++' + k, k + '++'])}) ",
        g.pick(["", "{ "]),
    )
    g.declare(Name(total, t, writable=False))
    return statement(line, change, "}" if line.text().endswith("{ ") else "")


# Others


def preprocessed(g):
    """Lines of the preprocessor among statements."""
    form = g.pick(["if", "else", "ifdef", "defined", "define"])
    g.note("preprocessor " + form)
    if form == "define":
        found = place(g)
        if found is None:
            return changed(g)
        name = g.unique("LOCAL")
        g.macros.append(name)
        text = f"({found[0]})" if found[0].startswith("*") else found[0]
        return Node(f"\n#define {name} {text}\n{name} += 1;\n", drop=True)
    with g.part_of_a_block():
        one = changed(g)
    with g.part_of_a_block():
        two = changed(g)
    head = {
        "if": "#if 1",
        "else": "#if 0",
        "ifdef": "#ifndef NOT_DEFINED_ANYWHERE",
        "defined": "#if defined(NOT_DEFINED) && NOT_DEFINED > 2",
    }[form]
    return Node(f"\n{head}\n", one, "#else\n", two, "#endif\n", drop=True)


def lambda_called(g):
    lambdas = [n for n in g.names() if n.form == "lambda"]
    if not lambdas:
        return declarations.lambda_value(g)
    name = g.pick(lambdas)
    g.note("lambda called later")
    return statement(f"{name.name}(", cast(g, name.type, e.step(g, name.type).node), ");")


def nothing(g):
    """Statements that do nothing."""
    g.note("statement that does nothing")
    return statement(
        g.pick(
            [
                ";",
                "(void)0;",
                'static_assert(sizeof(int) == 4, "int; { has 4 bytes");',
                "{}",
                "if (false) {}",
                "(void)sizeof(int);",
                "while (false);",
                "do {} while (0);",
            ]
        )
    )


STATEMENTS = {
    "declaration": (declarations.declaration, 9),
    "change": (changed, 14),
    "struct": (struct_changed, 4),
    "if": (conditional, 4),
    "no braces": (without_braces, 2),
    "for": (loop, 4),
    "while": (while_loop, 2),
    "product": (product, 1.5),
    "strided": (lambda g: strided(g) or changed(g), 1.5),
    "leave": (leave, 3),
    "switch": (switch, 1.5),
    "block": (block, 1),
    "range": (ranged, 2),
    "return": (leave_kernel, 0.7),
    "preprocessor": (preprocessed, 1),
    "lambda": (lambda_called, 0.7),
    "nothing": (nothing, 0.4),
    "exchange": (meetings.exchange, 7),
    "atomic": (meetings.atomic, 1),
}

COMPOUND = ("if", "for", "while", "switch", "block", "range")


def one(g):
    """A statement."""
    g.budget -= 1
    without = COMPOUND if g.budget < 0 or len(g.scopes) > 5 else ()
    if not (g.barriers and g.uniform) or g.in_lambda:
        without += ("exchange",)
    kind = g.weighted(
        {name: weight for name, (_, weight) in STATEMENTS.items() if name not in without}
    )
    return STATEMENTS[kind][0](g)


def statements(g, count):
    """Some statements, one after another."""
    return joined([one(g) for _ in range(count)])
