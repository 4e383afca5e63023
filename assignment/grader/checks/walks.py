"""Part 1: the order of a graph, and the reverse walk. Expected values are computed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grader.checks.harness.answers import SMALL, shown
from grader.checks.harness.call_script import comma
from grader.checks.harness.compare import (
    ROUND64,
    Array,
    Failure,
    require_array,
    sum_bound,
    verify,
)
from grader.checks.harness.context import Context, Session, expect_error
from grader.checks.harness.randomgraph import RandomGraph
from grader.checks.harness.traits import check, declared

Formula = Callable[..., list[Array]]

#: Random graphs of a run, for the order and for the walk.
RANDOM_GRAPHS = 3
#: Squarings of a value: 2 to the power of so many ways lead through the graph.
_DOUBLINGS = 64
_SOON = 10.0  # seconds for what takes none


@check(device=False)
def topological_order(ctx: Context) -> None:
    """find_topo_sort visits depth first, inputs before what uses them, each node once"""
    with ctx.session() as session:
        ad = session.autodiff()
        x, y = session.variable("x"), session.variable("y")
        product = x * y
        total = product + x
        square = total * total
        wanted = [x, y, product, total, square]
        _check_order(ctx, session, [square], wanted, "square of x * y + x")
        _check_order(ctx, session, [product, square], wanted, "[x * y, (x * y + x) squared]")
        for _ in range(RANDOM_GRAPHS):
            _check_random_order(ctx, session)
        node = x
        for _ in range(3000):
            node = node + 1
        with session.remote.doing("find_topo_sort of a line of 3001 nodes"):
            count = session.remote.len(ad.find_topo_sort([node]))
        if count != 3001:
            raise Failure("find_topo_sort of a line of 3001 nodes does not return 3001 nodes")
        if ctx.thorough:
            _check_cost(session)


def _check_cost(session: Session) -> None:
    """Checks a graph of few nodes with more paths than any walk can follow one by one."""
    node = session.variable("x")
    for _ in range(_DOUBLINGS):
        node = node * node
    what = f"find_topo_sort of x, squared {_DOUBLINGS} times: each node is used twice,"
    with session.remote.doing(what), session.remote.deadline(_SOON):
        count = session.remote.len(session.autodiff().find_topo_sort([node]))
    if count != _DOUBLINGS + 1:
        raise Failure(f"{what} has {count} nodes, expected {_DOUBLINGS + 1}")


def _check_random_order(ctx: Context, session: Session) -> None:
    graph = RandomGraph(ctx.random, session)
    places = graph.asked(ctx.random)
    order = graph.order(places)
    names = [graph.name(place) for place in order]
    asked, wanted = ([graph.nodes[i] for i in part] for part in (places, order))
    what = f"[{comma(map(graph.name, places))}], where {graph.words(places)},"
    _check_order(ctx, session, asked, wanted, what, names)


def _check_order(
    ctx: Context,
    session: Session,
    nodes: list[Any],
    wanted: list[Any],
    what: str,
    names: list[str] | None = None,
) -> None:
    """Checks one order. `names` are those of the wanted nodes in the message, if not their own."""
    identity = session.remote.builtin("id")
    order = session.autodiff().find_topo_sort(nodes)
    count = session.remote.len(order)
    if count != len(wanted):
        raise Failure(f"find_topo_sort of {what} has {count} nodes, expected {len(wanted)}")
    # Asked for in a random order: what answers in the child can't know which are compared.
    both = [order[i] for i in range(count)] + wanted
    places = ctx.random.permutation(len(both))
    answers = session.integers([identity(both[place]) for place in places])
    ids = [answer for _, answer in sorted(zip(places, answers, strict=True), key=lambda p: p[0])]
    got, expected = ids[:count], ids[count:]
    if got != expected or len(set(expected)) != len(wanted):
        right = names or session.remote.fetch_all([node.name for node in wanted], most=SMALL)
        known = dict(zip(expected, map(shown, right), strict=True))
        found = [known.get(each, "another node") for each in got]
        raise Failure(
            f"find_topo_sort of {what} is [{comma(found)}], expected [{comma(map(shown, right))}]"
        )


@check(device=False)
def reverse_walk(ctx: Context) -> None:
    """gradients adds up the contributions of every use of a value"""
    shape = ctx.sizes(9, 9)
    with ctx.session() as session:
        ad = session.autodiff()
        x, y = session.variable("x"), session.variable("y")
        product = x * y
        cases: tuple[tuple[str, Any, list[Any], Formula], ...] = (
            ("x * x", x * x, [x], lambda a, b: [2 * a]),
            ("x + x * x + 3 * x", x + x * x + 3 * x, [x], lambda a, b: [4 + 2 * a]),
            ("(x * y) * (x * y + x)", product * (product + x), [y, x],
             lambda a, b: [2 * a * a * b + a * a, 2 * a * b * b + 2 * a * b]),
            ("x * y, asked for x * y", product, [product], lambda a, b: [np.ones_like(a)]),
        )  # fmt: skip
        for what, node, wrt, formula in cases:
            with session.remote.doing(f"gradients({what})"):
                grads = ad.gradients(node, wrt)
                nodes = [grads[i] for i in range(len(wrt))]
            for _ in range(2):  # the same graph, with other values
                a, b = ctx.random.uniform(-2, 2, (2, *shape))
                with session.remote.doing(f"gradients({what})"):
                    got = session.evaluate(nodes, {x: a, y: b}, most=SMALL)
                for position, want in enumerate(formula(a, b)):
                    bound = sum_bound(8, 2.0**8, ROUND64)
                    words = f"gradients({what})[{position}], x and y {shape}"
                    verify(got[position], want, bound, words)
        for _ in range(RANDOM_GRAPHS):
            _check_random(ctx, session)
        stranger = ad.gradients(x * 2, [session.variable("z")])
        expect_error(session, stranger, "gradients(x * 2, [z]), where z is not used,")
        _check_names(ctx, session)
        _check_infinite(ctx, session)
        _check_magnitudes(ctx, session)
        if ctx.thorough:
            _check_cost_of_gradients(session)


def _check_random(ctx: Context, session: Session) -> None:
    """Checks gradients of a random graph, whose nodes all have one name, for two sets of values."""
    graph = RandomGraph(ctx.random, session)
    output = graph.deepest()
    known = graph.order([output])
    wrt = [int(i) for i in ctx.random.permutation(known)[: max(3, len(known) // 2)]]
    what = f"gradients({graph.name(output)}), where {graph.words([output])}"
    with session.remote.doing(what):
        grads = session.autodiff().gradients(graph.nodes[output], [graph.nodes[i] for i in wrt])
        nodes = [grads[i] for i in range(len(wrt))]
    for _ in range(2):
        fed = [ctx.random.uniform(-1, 1, (2, 3)) for _ in range(graph.leaves)]
        with session.remote.doing(what):
            feeds = dict(zip(graph.nodes, fed, strict=False))
            got = session.evaluate(nodes, feeds, most=SMALL)
        right, bounds = graph.gradients(output, fed)
        for value, place in zip(got, wrt, strict=True):
            verify(
                value, right[place], bounds[place], f"{what}: with respect to {graph.name(place)}"
            )


def _check_names(ctx: Context, session: Session) -> None:
    """Checks that nodes are told apart by identity: names may repeat."""
    x, twin = session.variable("x"), session.variable("x")
    a, b = ctx.random.uniform(-2, 2, (2, 3, 4))
    what = "gradients(x * y), where y has the name x too"
    with session.remote.doing(what):
        grads = session.autodiff().gradients(x * twin, [twin, x])
        got = session.evaluate([grads[i] for i in range(2)], {x: a, twin: b}, most=SMALL)
    for position, want in enumerate([a, b]):
        verify(got[position], want, sum_bound(8, 2.0**8, ROUND64), f"{what}[{position}], (3, 4)")


def _check_infinite(ctx: Context, session: Session) -> None:
    """Checks the gradient of a product with respect to x where some of x are infinite: it does not
    depend on x, so a gradient computed from x itself is NaN there."""
    x, y = session.variable("x"), session.variable("y")
    a, b = ctx.random.uniform(-2, 2, (2, 3, 4))
    a[ctx.random.random(a.shape) < 0.5] = np.inf
    a[0, 0] = -np.inf
    what = "gradients(x * y + y) with respect to x, where some of x are inf"
    with session.remote.doing(what):
        grads = session.autodiff().gradients(x * y + y, [x])
        (got,) = session.evaluate([grads[0]], {x: a, y: b}, most=SMALL)
    try:
        verify(got, b, sum_bound(8, 2.0**8, ROUND64), what)
    except Failure as failure:
        failure.hint = "call each op's own node.op.gradient, from the output back to the inputs"
        raise


def _check_magnitudes(ctx: Context, session: Session) -> None:
    """Checks gradients that are very large, very small, infinite and NaN: nothing may clip or
    replace them."""
    for power in (ctx.random.uniform(5, 12), -ctx.random.uniform(5, 12)):
        c = float(f"{10**power:.3g}")
        x, y = session.variable("x"), session.variable("y")
        a, b = ctx.random.uniform(-2, 2, (2, 3, 4))
        b.reshape(-1)[ctx.random.permutation(b.size)[:3]] = np.inf, -np.inf, np.nan
        what = f"gradients(x * {c:g} * y) with respect to x, where some of y are inf and NaN"
        with session.remote.doing(what):
            grads = session.autodiff().gradients(x * c * y, [x])
            (got,) = session.evaluate([grads[0]], {x: a, y: b}, most=SMALL)
        _verify_magnitudes(got, c * b, what)


def _verify_magnitudes(got: Any, expected: Array, what: str) -> None:
    """As `verify`, by bounds relative to each element; where infinity is expected it is right."""
    got = require_array(got, expected.shape, what)
    same = np.isinf(expected) & (got == expected)
    bound = sum_bound(8, np.where(np.isfinite(expected), np.abs(expected), 0), ROUND64)
    verify(np.where(same, 0, got), np.where(same, 0, expected), bound, what)


def _check_cost_of_gradients(session: Session) -> None:
    """Checks gradients of a graph of few nodes with more paths than any walk can follow one by
    one."""
    x = node = session.variable("x")
    for _ in range(_DOUBLINGS):
        node = node * node
    what = f"gradients(x, squared {_DOUBLINGS} times): each node is used twice,"
    with session.remote.doing(what), session.remote.deadline(_SOON):
        grads = session.autodiff().gradients(node, [x])
        count = session.sequence(grads, what, "node")
    if count != 1:
        raise Failure(f"{what} has {count} nodes, expected 1")


CHECKS = declared(globals())
