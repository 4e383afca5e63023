"""Every way to change a variable: operators, references, macros, functions, members."""

from . import expressions as e
from .captures import (
    by_lambda,
    lambda_by_reference_argument,
    member_reference,
    mutable_lambda,
    pointers_in_braces,
    range_of_pointer,
)
from .functions import function, qualifiers
from .macros import by_macro
from .number_types import KINDS
from .places import stepped
from .tree import Node

# Operators


def operation(g, t):
    """(operator, value) that may be applied to a variable of a type any number of times."""
    kind = KINDS[t]
    if kind.real:
        return g.pick(["+=", "-="]), e.step(g, t).node
    small = str(g.integer(2, 9))
    if not kind.signed and kind.bits >= 32:
        op = g.pick(["+=", "-=", "*=", "^=", "|=", "&=", "<<=", ">>=", "/=", "%="])
    else:
        op = g.pick(["+=", "-=", "+=", "-=", "^=", "|=", "&=", ">>=", "/=", "%="])
    g.note("operator " + op)
    if op in ("/=", "%="):
        return op, Node(small)
    if op in ("<<=", ">>="):
        return op, Node(g.pick("123"))
    if op in ("^=", "|=") and not kind.wraps:
        return op, Node(str(g.integer(0, 255)))
    if op == "&=":
        return op, Node(g.pick(["255", "0x7ff", "127"]))
    return op, e.step(g, t).node


def plain(g, place, t):
    op, v = operation(g, t)
    return Node(place, f" {op} ", v, ";")


def set_to(g, place, t):
    return Node(place, " = ", e.stored(g, t).node, ";")


def in_parentheses(g, place, t):
    op, v = operation(g, t)
    return Node("(" * (n := g.integer(1, 2)), place, ")" * n, f" {op} ", v, ";")


def increment(g, place, t):
    forms = ["{}++;", "++{};", "{}--;", "--{};", "({})++;", "++({});", "(({}))--;", "--({});"]
    return stepped(place, t, g.pick(forms).format(place))


def spelled_out(g, place, t):
    return Node(f"({place}) = ({place}) ", g.pick("+-"), " (", e.step(g, t).node, ");")


def comma(g, place, t):
    op, v = operation(g, t)
    return Node(g.pick(["(void)0, ", "1, "]), place, f" {op} ", v, ";")


def conditional_place(g, place, t):
    op, v = operation(g, t)
    other = other_place(g, place, t)
    return Node("(", e.condition(g).node, f" ? {place} : {other}) {op} ", v, ";")


def conditional_statement(g, place, t):
    return Node(
        e.condition(g).node,
        f" ? (void)({place} += ",
        e.step(g, t).node,
        f") : (void)({place} -= 1);",
    )


def short_circuit(g, place, t):
    op = g.pick(["&&", "||"])
    return Node("(void)(", e.condition(g).node, f" {op} (({place} += 1) > 3));")


def static_cast(g, place, t):
    op, v = operation(g, t)
    return Node(
        g.pick(
            [
                f"static_cast<{t}&>({place})",
                f"({t}&)({place})",
                f"*&{place}",
                f"(&({place}))[0]",
                f"const_cast<{t}&>({place})",
                f"reinterpret_cast<{t}&>({place})",
            ]
        ),
        f" {op} ",
        v,
        ";",
    )


def nested(g, place, t):
    return Node(
        g.pick([f"({place} += ", f"({place} -= "]),
        e.step(g, t).node,
        f") {g.pick(['+=', '-='])} 1;",
    )


def chained(g, place, t):
    other = other_place(g, place, t)
    return Node(f"{place} = {other} = ", e.stored(g, t).node, ";")


# References and pointers


def local_reference(g, place, t):
    name = g.fresh()
    op, v = operation(g, t)
    head = g.pick(
        [
            f"{t}& {name} = {place};",
            f"auto& {name} = {place};",
            f"auto&& {name} = {place};",
            f"decltype(({place})) {name} = {place};",
            f"{t} &{name}({place});",
            f"{t}& {name}{{{place}}};",
            f"decltype(auto) {name} = ({place});",
        ]
    )
    return Node("{ ", head, f" {name} {op} ", v, "; }")


def reference_of_typedef(g, place, t):
    name, alias = g.fresh(), g.unique("Ref")
    op, v = operation(g, t)
    head = g.pick([f"typedef {t}& {alias};", f"using {alias} = {t}&;"])
    if g.chance(0.5):
        g.add_top(head)
        head = ""
    return Node(f"{{ {head} {alias} {name} = {place}; {name} {op} ", v, "; }")


def local_pointer(g, place, t):
    name = g.fresh()
    op, v = operation(g, t)
    head = g.pick(
        [
            f"{t}* {name} = &{place};",
            f"auto {name} = &{place};",
            f"auto* {name} = &({place});",
            f"{t} *const {name} = &{place};",
            f"{t} *{name}; {name} = &({place});",
        ]
    )
    change = g.pick([f"*{name}", f"{name}[0]", f"(*{name})", f"*(&{name}[0])"])
    return Node("{ ", head, f" {change} {op} ", v, "; }")


def pointer_to_pointer(g, place, t):
    a, b = g.fresh(), g.fresh()
    return Node(f"{{ {t}* {a} = &{place}; {t}** {b} = &{a}; **{b} += ", e.step(g, t).node, "; }")


# Functions


def reference_function(g, t):
    def make():
        name, ref = g.unique("bump"), f"{t}& x"
        if g.chance(0.4):
            alias = g.unique("Ref")
            g.add_top(g.pick([f"typedef {t}& {alias};", f"using {alias} = {t}&;"]))
            ref = f"{alias} x"
            g.note("parameter of a typedef'd reference")
        body = g.pick(
            [
                "x += v;",
                f"x -= v; {stepped('x', t, '++x;')}",
                "if (v > 1) x += v; else { x -= 1; }",
                f"{t}& y = x; y += v;",
            ]
        )
        g.add_top(f"{qualifiers(g)} void {name}({ref}, {t} v) {{ {body} }}")
        return name

    return function(g, ("reference", t), make)


def by_reference(g, place, t):
    return Node(f"{reference_function(g, t)}({place}, ", e.step(g, t).node, ");")


def by_pointer(g, place, t):
    def make():
        name = g.unique("poke")
        g.add_top(
            f"{qualifiers(g)} void {name}({t}* x, {t} v) {{ "
            f"{g.pick(['*x += v;', 'x[0] += v;', str(stepped('*x', t, '(*x)++;'))])} }}"
        )
        return name

    return Node(f"{function(g, ('pointer', t), make)}(&{place}, ", e.step(g, t).node, ");")


def by_forwarding(g, place, t):
    def make():
        name = g.unique("push")
        kind = g.pick(["typename", "class"])
        ref = g.pick(["T&& x", "T& x", "auto"])
        if ref == "auto":
            g.add_top(
                f"template <{kind} T, {kind} U = int> {qualifiers(g)} "
                f"auto {name}(T&& x) -> decltype(x) {{ x += 1; return x; }}"
            )
        else:
            g.add_top(f"template <{kind} T> {qualifiers(g)} void {name}({ref}) {{ x += 1; }}")
        return name

    return Node(f"{function(g, 'forwarding', make)}({place});")


def by_value_template(g, place, t):
    def make():
        name = g.unique("add_n")
        g.add_top(
            f"template <int N, typename T = {t}> {qualifiers(g)} void {name}(T& x) {{ x += N; }}"
        )
        return name

    name = function(g, ("value template", t), make)
    return Node(f"{name}<{g.pick(['3', '(5 > 2)', '1 + 1', '7 & 3'])}>({place});")


def overloaded(g, place, t):
    """f(int&) changes, f(const int&) does not."""

    def make():
        name = g.unique("over")
        g.add_top(f"__device__ inline {t} {name}({t}& x) {{ x += 1; return x; }}")
        g.add_top(f"__device__ inline {t} {name}(const {t}& x) {{ return ({t})(x / 2); }}")
        return name

    name = function(g, ("overloaded", t), make)
    return Node(
        g.pick(
            [
                f"{name}({place});",
                f"(void){name}({place});",
                f"{name}(({place}));",
                f"{place} = {name}(static_cast<const {t}&>({place}));",
            ]
        )
    )


def returned_reference(g, place, t):
    def make():
        name = g.unique("which")
        g.add_top(
            f"{qualifiers(g)} {t}& {name}({t}& a, {t}& b, bool first) {{ return first ? a : b; }}"
        )
        return name

    name, other = function(g, ("returned", t), make), other_place(g, place, t)
    op, v = operation(g, t)
    return Node(f"{name}({place}, {other}, ", e.condition(g).node, f") {op} ", v, ";")


def exchange(g, place, t):
    def make():
        name = g.unique("swap")
        g.add_top(
            f"template <typename T> {qualifiers(g)} void "
            f"{name}(T& a, T& b) {{ T t = a; a = b; b = t; }}"
        )
        return name

    return Node(f"{function(g, 'exchange', make)}({place}, {other_place(g, place, t)});")


def in_a_call(g, place, t):
    def make():
        name = g.unique("same")
        g.add_top(f"__device__ inline int {name}(int x, int y = 0) {{ return x + y; }}")
        return name

    form = g.pick(["{0}++", "++{0}", "({0})++", "({0} += 1)", "--{0}"]).format(place)
    return stepped(place, t, f"(void){function(g, 'same', make)}((int){form}, 2);")


def in_a_declaration(g, place, t):
    name = g.fresh()
    form = g.pick(["{0}++", "++({0})", "({0} += 2)", "({0})--", "({0} -= 1)"]).format(place)
    use = f"{place} += ({t})({name} / 2 - {name} / 2);"
    return stepped(place, t, f"{{ {t} {name} = {form}; {use} }}")


def in_a_condition(g, place, t):
    body = increment(g, place, t)
    return stepped(
        place,
        t,
        g.pick(
            [
                f"if ((({place}) += 1) > 3) ",
                f"if (++{place} > 2) ",
                f"if ({t} k_ = ({place} += 1); k_ > 2) ",
                f"if (auto k_ = {place}++) ",
                f"switch ((int)({place})++ & 1) case 0: ",
            ]
        ),
        "{ ",
        body,
        " }",
    )


def in_an_index(g, place, t):
    if KINDS[t].real:
        return increment(g, place, t)
    name = g.fresh()
    return stepped(
        place,
        t,
        f"{{ int {name}[4] = {{1, 2, 3, 4}}; int {name}_ = {name}[",
        g.pick([f"(unsigned)({place})++ & 3", f"++{place} & 3u", f"({place} += 1) & 3"]),
        f"]; {place} += ({t}){name}_; }}",
    )


def atomic_like(g, place, t):
    def make():
        name = g.unique("taken")
        g.add_top(f"{qualifiers(g)} {t} {name}({t}& x) {{ {t} old = x; x += 1; return old; }}")
        return name

    name = function(g, ("taken", t), make)
    return Node(f"(void){name}({place});")


def jump(g, place, t):
    if g.in_lambda:
        return plain(g, place, t)
    label = g.unique("again")
    name = g.fresh()
    return Node(f"{{ int {name} = 0; {label}: {place} += 1; if (++{name} < 3) goto {label}; }}")


def other_place(g, place, t):
    """Another variable of the same type, or the same one."""
    return g.pick(places(g, t) or [place])


def places(g, t):
    """The scalars of a type that may be changed here."""
    return [
        n.name
        for n in g.names()
        if n.form == "scalar" and n.type == t and n.writable and not n.counter and may_change(g, n)
    ]


def may_change(g, name):
    """Whether the name may be changed at all."""
    return name.writable and not name.uniform and not name.counter


WAYS = {
    "plain": (plain, 8),
    "set": (set_to, 6),
    "in parentheses": (in_parentheses, 3),
    "increment": (increment, 4),
    "spelled out": (spelled_out, 2),
    "comma": (comma, 1),
    "conditional place": (conditional_place, 2),
    "conditional statement": (conditional_statement, 1),
    "short circuit": (short_circuit, 1),
    "cast to reference": (static_cast, 2),
    "nested": (nested, 1),
    "chained": (chained, 1),
    "local reference": (local_reference, 3),
    "typedef'd reference": (reference_of_typedef, 1.5),
    "local pointer": (local_pointer, 2.5),
    "pointer to pointer": (pointer_to_pointer, 0.5),
    "function by reference": (by_reference, 3),
    "function by pointer": (by_pointer, 2),
    "forwarding reference": (by_forwarding, 2),
    "value template": (by_value_template, 1.5),
    "overloads by constness": (overloaded, 2),
    "returned reference": (returned_reference, 1.5),
    "exchange": (exchange, 1),
    "in a call": (in_a_call, 1),
    "in a declaration": (in_a_declaration, 1),
    "in a condition": (in_a_condition, 1.5),
    "in an index": (in_an_index, 1),
    "macro": (by_macro, 7),
    "lambda": (by_lambda, 2.5),
    "mutable lambda": (mutable_lambda, 0.5),
    "lambda of a reference": (lambda_by_reference_argument, 1),
    "pointers in an array": (pointers_in_braces, 0.5),
    "reference in a struct": (member_reference, 1.5),
    "range of values": (range_of_pointer, 1),
    "result thrown away": (atomic_like, 0.7),
    "goto": (jump, 0.3),
}


def change(g, place, t):
    """A statement that changes a place of a type."""
    lambdas = ("lambda", "goto") if g.in_lambda else ()
    way = g.weighted({name: weight for name, (_, weight) in WAYS.items() if name not in lambdas})
    g.note("change " + way)
    assert KINDS[t].bits > 1
    return Node(WAYS[way][0](g, place, t), "\n", drop=True)
