"""Device functions, at file scope, that expressions call: written when first needed."""

from .conversions import fit
from .number_types import COMMON, KINDS, READ, STORED
from .tree import Node, Value


def simple_type(g, v):
    """A type that a value may be handed over as, and the value made to fit."""

    type_name = g.type(without=("char", "signed char"))
    return type_name, fit(g, v, type_name)


def function(g, key, make):
    """The name of a function of this kernel, made at its first use."""
    if key not in g.functions:
        g.functions[key] = make()
    return g.functions[key]


def qualifiers(g):
    """The words before a device function."""
    return g.pick(
        [
            "__device__",
            "__device__ inline",
            "static __device__",
            "__device__ __forceinline__",
            "__host__ __device__ inline",
            "inline __device__",
            "__device__\n",
        ]
    )


def by_value(g, t):
    """T f(T x)."""

    def make():
        name = g.unique("twist")
        body = g.pick(
            [
                "x = x / 2; return x;",
                "return x > 3 ? x : ({t})0;",
                "{t} y = x; y /= 3; return y;",
                "if (x > 5) return ({t})5; return x;",
                "return ({t})(x - x / 2);",
            ]
        )
        g.add_top(f"{qualifiers(g)} {t} {name}({t} x) {{ {body.replace('{t}', t)} }}")
        return name

    return function(g, ("by_value", t), make) + "({})"


def by_reference(g, t):
    """T f(const T& x)."""

    def make():
        name = g.unique("look")
        where = g.pick([f"const {t}& x", f"{t} const& x"])
        g.add_top(f"{qualifiers(g)} {t} {name}({where}) {{ return x / 2; }}")
        return name

    return function(g, ("by_reference", t), make) + "({})"


def by_template(g, t):
    """template <typename T> T f(T x), with a value parameter or without."""

    def make():
        name = g.unique("shape")
        if g.chance(0.5):
            g.add_top(
                f"template <typename T, int N>\n{qualifiers(g)} T {name}(T x) {{ return x / N; }}"
            )
            return name + g.pick([f"<{t}, 3>", f"<{t}, (4 > 2 ? 2 : 1)>"])
        g.add_top(f"template <typename T> {qualifiers(g)} T {name}(T x) {{ return x / 2; }}")
        return name + g.pick(["", f"<{t}>"])

    name = function(g, ("by_template", t), make)
    return name + "({})" if "<" in name else name + f"(({t})" + "({}))"


def by_macro(g, t):
    """A macro that is a value."""

    def make():
        form = g.pick(
            [
                ("(x)", "((x) / 2)"),
                ("(x)", "(((x) > 3) ? (x) : 0)"),
                ("(...)", "((__VA_ARGS__) / 3)"),
            ]
        )
        return g.macro("HALF", *form)

    return function(g, "by_macro", make) + f"(({t})" + "({}))"


def overloaded(g, t):
    """A function with overloads for other types, of which some know their thread."""

    def make():
        name = g.unique("which")
        others = g.random.sample([each for each in COMMON if each != t], g.integer(1, 2))
        for each in g.random.sample([t, *others], 1 + len(others)):
            body = g.pick(["x / 2", "threadIdx.x % 2 ? x : x / 3", "blockIdx.x > 0 ? x / 2 : x"])
            g.add_top(f"__device__ {each} {name}({each} x) {{ return {body}; }}")
        return name

    return function(g, ("overloaded", t), make) + f"(({t})" + "({}))"


def recursive(g, t):
    """A function that calls itself."""

    def make():
        name = g.unique("down")
        again = f"{name}(({t})(x / 2), k - 1)"
        g.add_top(f"__device__ {t} {name}({t} x, int k = 2) {{ return k == 0 ? x : {again}; }}")
        return name

    return function(g, ("recursive", t), make) + "({})"


def of_pack(g, t):
    """A function of any number of arguments."""

    def make():
        name = g.unique("all_of")
        g.add_top(
            f"template <typename... T> {qualifiers(g)} int "
            f"{name}(T... x) {{ return (0 + ... + (int)((x) != 0)); }}"
        )
        return name

    return function(g, "of_pack", make) + "({}, 1, 2u)"


def of_lambda(g, t):
    """A lambda that is called at once."""
    return g.pick(
        # Behind a comma: g++ takes `int(([](auto x) ...` for a declaration.
        [
            "([](" + t + " x) { return x / 2; }({}))",
            "((void)0, [](auto x) { return x / 2; }((" + t + ")({})))",
            "([=](" + t + " x) -> " + t + " { return x / 3; }({}))",
        ]
    )


def in_namespace(g, t):
    """A function of a namespace."""

    def make():
        space, name = g.unique("space"), g.pick(["f", "eval", "half"])
        g.add_top(f"namespace {space} {{ {qualifiers(g)} {t} {name}({t} x) {{ return x / 2; }} }}")
        return f"{space}::{name}"

    return function(g, ("in_namespace", t), make) + "({})"


def static_member(g, t):
    """A static function of a struct, or its operator()."""

    def make():
        name = g.unique("Op")
        g.add_top(
            f"struct {name} {{ static __device__ {t} of({t} x) {{ return x / 2; }}"
            f" __device__ {t} operator()({t} x) const {{ return x / 3; }} }};"
        )
        return name

    return function(g, ("static_member", t), make) + g.pick(["::of({})", "{ }({})"])


CALLS = {
    "by value": (by_value, 4),
    "by const reference": (by_reference, 3),
    "template": (by_template, 4),
    "overloaded": (overloaded, 1.5),
    "macro": (by_macro, 3),
    "recursive": (recursive, 0.5),
    "pack": (of_pack, 0.7),
    "lambda at once": (of_lambda, 1.5),
    "namespace": (in_namespace, 1.5),
    "static member": (static_member, 2),
}


def call(g, v, depth):
    """A call of a function, a macro or a lambda with a value; it only makes the value smaller."""
    name = g.weighted({k: w for k, (_, w) in CALLS.items()})
    if (name == "lambda at once" and g.in_lambda) or (name == "overloaded" and g.only_uniform):
        name = "by value"
    g.note("call " + name)
    t, v = simple_type(g, v)
    before, after = CALLS[name][0](g, t).split("{}")
    if name == "pack":
        return Value(Node(before, v.node, after), "int", 0, 3)
    kind = KINDS[t]
    low, high = kind.range
    if not kind.wraps:
        low, high = -STORED, STORED
    result = Value(
        Node(before, v.node, after),
        "int" if kind.bits < 32 and name in ("macro", "lambda at once") else t,
        low,
        high,
    )
    assert high <= max(READ, kind.range[1])
    result.node.simpler.append(Node(f"({result.type})({g.pick([0, 1])})"))
    return result
