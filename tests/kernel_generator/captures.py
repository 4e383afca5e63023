"""Lambdas, ranges and structs that hold a variable and change it."""

from . import expressions as e
from .conversions import cast
from .functions import function
from .places import stepped
from .tree import Node


def by_lambda(g, place, t):
    name = g.fresh()
    capture = g.pick(["[&]", f"[&{place}]" if place.isidentifier() else "[&]"])
    with g.setting(in_lambda=True):
        form = g.pick(["void", "argument", "auto", "at once", "reference"])
        if form == "at once":
            return Node(f"{capture}() {{ {place} += 1; }}();")
        if form == "reference":
            return Node(
                f"{{ auto {name} = {capture}() -> {t}& {{ return {place}; }}; {name}() += 1; }}"
            )
        if form == "void":
            return Node(f"{{ auto {name} = {capture} {{ {place} += 1; }}; {name}(); {name}(); }}")
        kind = "auto" if form == "auto" else t
        return Node(
            f"{{ const auto {name} = {capture}({kind} k_) {{ {place} += k_; }}; {name}(",
            cast(g, t, e.step(g, t).node),
            "); }",
        )


def mutable_lambda(g, place, t):
    name, copy = g.fresh(), g.fresh()
    return Node(
        f"{{ auto {name} = [{copy} = {place}]() mutable {{ {copy} += 1; "
        f"return {copy}; }}; {name}(); {place} = ({t})({name}() - 2); }}"
    )


def lambda_by_reference_argument(g, place, t):
    name = g.fresh()
    return Node(
        f"{{ auto {name} = []({g.pick([t + '&', 'auto&', 'auto&&'])} "
        f"k_) {{ k_ += 1; }}; {name}({place}); }}"
    )


def pointers_in_braces(g, place, t):
    name = g.fresh()
    return Node(f"{{ {t}* {name}[2] = {{&{place}, &{place}}}; for (auto k_ : {name}) *k_ += 1; }}")


def member_reference(g, place, t):
    def make():
        name = g.unique("Holder")
        g.add_top(f"struct {name} {{ {t}& to; __device__ void add({t} k) {{ to += k; }} }};")
        return name

    name, held = function(g, ("holder", t), make), g.fresh()
    use = g.pick([f"{held}.add(1);", f"{held}.to += 1;", f"++{held}.to;"])
    return stepped(
        place,
        t,
        g.pick(
            [
                f"{{ {name} {held} = {{{place}}}; {use} }}",
                f"{{ {name} {held}{{{place}}}; {use} }}",
                f"{name}{{{place}}}.add(1);",
            ]
        ),
    )


def range_of_pointer(g, place, t):
    name, other = g.fresh(), g.fresh()
    return Node(
        f"{{ {t} {other}[3] = {{1, 2, 3}}; for ({g.pick([t, 'auto', 'const auto&', 'auto&'])} "
        f"{name} : {other}) {place} += {name}; }}"
    )
