"""Part 1: gradients on numpy. The child evaluates graphs; expected values are computed here."""

from __future__ import annotations

from typing import Any

import numpy as np

from grader.checks.compare import ROUND64, Array, Failure, sum_bound, verify
from grader.checks.context import Context, Session, expect_error


def _gradient_of(
    session: Session, node: Any, inputs: dict[str, tuple[Any, Array]], weights: Array
) -> list[Any]:
    """Values of node.op.gradient(node, g), where g has the value `weights`."""
    output_grad = session.variable("g")
    grads = node.op.gradient(node, output_grad)
    count = session.sequence(grads, "the gradient", "node")
    if count != len(inputs):
        raise Failure(f"the gradient has {count} nodes for {len(inputs)} inputs")
    feeds = {variable: value for variable, value in inputs.values()}
    feeds[output_grad] = weights
    return session.evaluate([grads[i] for i in range(count)], feeds)


def _check(
    ctx: Context,
    session: Session,
    what: str,
    build: Any,
    values: list[Array],
    weights: Array,
    expected: list[Array],
    terms: int = 1,
) -> None:
    """Compares the gradients of build(*variables) with `expected`.

    The bound is that of sums of `terms` products of the values at hand.
    """
    names = "abc"[: len(values)]
    shapes = ", ".join(f"{n} {v.shape}" for n, v in zip(names, values, strict=True))
    with session.remote.doing(f"gradient of {what} with {shapes}"):
        variables = [session.variable(name) for name in names]
        node = build(*variables)
        inputs = dict(zip(names, zip(variables, values, strict=True), strict=True))
        got = _gradient_of(session, node, inputs, weights)
    largest = 1 + max(np.abs(v).max() for v in [*values, weights])
    bound = sum_bound(terms, 16 * terms * largest**2, ROUND64)
    for name, value, want in zip(names, got, expected, strict=True):
        verify(value, want, bound, f"gradient of {what} with respect to {name}, {shapes}")


def _sum_to(grad: Array, shape: tuple[int, ...]) -> Array:
    """grad, summed over the axes along which an operand of `shape` was broadcast."""
    while grad.ndim > len(shape):
        grad = grad.sum(axis=0)
    for axis, extent in enumerate(shape):
        if extent == 1:
            grad = grad.sum(axis=axis, keepdims=True)
    return grad


def _values(ctx: Context, *shapes: tuple[int, ...]) -> list[Array]:
    return [ctx.random.uniform(-2, 2, shape) for shape in shapes]


def topological_order(ctx: Context) -> None:
    """find_topo_sort visits depth first, inputs before what uses them, each node once"""
    with ctx.session() as session:
        ad = session.autodiff()
        x, y = session.variable("x"), session.variable("y")
        product = x * y
        total = product + x
        square = total * total
        wanted = [x, y, product, total, square]
        _check_order(session, ad, [square], wanted, "square of x * y + x")
        _check_order(session, ad, [product, square], wanted, "[x * y, (x * y + x) squared]")
        node = x
        for _ in range(3000):
            node = node + 1
        with session.remote.doing("find_topo_sort of a line of 3001 nodes"):
            count = session.remote.len(ad.find_topo_sort([node]))
        if count != 3001:
            raise Failure("find_topo_sort of a line of 3001 nodes does not return 3001 nodes")


def _check_order(session: Session, ad: Any, nodes: list[Any], wanted: list[Any], what: str) -> None:
    identity = session.remote.builtin("id")
    order = ad.find_topo_sort(nodes)
    count = session.remote.len(order)
    if count != len(wanted):
        raise Failure(f"find_topo_sort of {what} has {count} nodes, expected {len(wanted)}")
    got = session.remote.fetch_all([identity(order[i]) for i in range(count)])
    expected = session.remote.fetch_all([identity(node) for node in wanted])
    if got != expected:
        names = session.remote.fetch_all([order[i].name for i in range(count)])
        right = session.remote.fetch_all([node.name for node in wanted])
        raise Failure(f"find_topo_sort of {what} is {names}, expected {right}")


def gradient_add_multiply(ctx: Context) -> None:
    """the gradients of +, * and constants are right, also where an operand was broadcast"""
    with ctx.session() as session:
        for shape_a, shape_b in (
            ((3, 4), (3, 4)),
            ((5,), (5,)),
            ((3, 4), (4,)),
            ((1,), (3, 4)),
            ((2, 3, 4), (3, 1)),
        ):
            a, b = _values(ctx, shape_a, shape_b)
            (g,) = _values(ctx, (a + b).shape)
            sums = [_sum_to(g, a.shape), _sum_to(g, b.shape)]
            _check(ctx, session, "a + b", lambda x, y: x + y, [a, b], g, sums, g.size)
            products = [_sum_to(g * b, a.shape), _sum_to(g * a, b.shape)]
            _check(ctx, session, "a * b", lambda x, y: x * y, [a, b], g, products, g.size)
        a, g = _values(ctx, (3, 5), (3, 5))
        c = float(ctx.random.uniform(-3, 3))
        _check(ctx, session, f"a + {c:.3f}", lambda x: x + c, [a], g, [g])
        _check(ctx, session, f"a * {c:.3f}", lambda x: x * c, [a], g, [g * c])


def gradient_matmul(ctx: Context) -> None:
    """the gradient of matmul is right for all four combinations of transposed operands"""
    with ctx.session() as session:
        ad = session.autodiff()
        for trans_a in (False, True):
            for trans_b in (False, True):
                a, b, g = _values(ctx, (4, 3), (3, 5), (4, 5))
                grad_a, grad_b = g @ b.T, a.T @ g
                stored = [a.T if trans_a else a, b.T if trans_b else b]
                expected = [grad_a.T if trans_a else grad_a, grad_b.T if trans_b else grad_b]
                what = f"matmul_op(a, b, {trans_a}, {trans_b})"

                def build(x: Any, y: Any, ta: bool = trans_a, tb: bool = trans_b) -> Any:
                    return ad.matmul_op(x, y, ta, tb)

                _check(ctx, session, what, build, stored, g, expected, 5)


def gradient_reduce_broadcast(ctx: Context) -> None:
    """the gradients of reduce_sum_axis_zero and broadcast_to undo each other's shapes"""
    with ctx.session() as session:
        ad = session.autodiff()
        for shape in ((3, 4), (2, 3, 4), (6,)):
            (a,) = _values(ctx, shape)
            (g,) = _values(ctx, shape[1:] or (1,))
            expected = np.broadcast_to(g, shape)
            _check(
                ctx, session, "reducesumaxiszero_op(a)", ad.reducesumaxiszero_op, [a], g, [expected]
            )
        a, b, g = _values(ctx, (4,), (3, 4), (3, 4))
        expected_pair = [g.sum(axis=0), np.zeros(b.shape)]
        _check(ctx, session, "broadcastto_op(a, b)", ad.broadcastto_op, [a, b], g, expected_pair, 3)


def _softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def gradient_relu_cross_entropy(ctx: Context) -> None:
    """the gradients of relu (0 at 0) and of softmax cross-entropy (a mean, so 1/N) are right"""
    with ctx.session() as session:
        ad = session.autodiff()
        a, g = _values(ctx, (6, 5), (6, 5))
        a[::2, ::2] = 0
        _check(ctx, session, "relu_op(a)", ad.relu_op, [a], g, [np.where(a > 0, g, 0)])
        for rows in (7, 1):
            logits, raw = _values(ctx, (rows, 4), (rows, 4))
            labels = _softmax(raw)
            (g,) = _values(ctx, (1,))
            expected = [(_softmax(logits) - labels) * g / rows, np.zeros(labels.shape)]
            what, build = "softmaxcrossentropy_op(a, b)", ad.softmaxcrossentropy_op
            _check(ctx, session, what, build, [logits, labels], g, expected, 4)


def reverse_walk(ctx: Context) -> None:
    """gradients adds up the contributions of every use of a value"""
    with ctx.session() as session:
        ad = session.autodiff()
        x, y = session.variable("x"), session.variable("y")
        a, b = _values(ctx, (3, 4), (3, 4))
        product = x * y
        cases = (
            ("x * x", x * x, [x], [2 * a]),
            ("x + x * x + 3 * x", x + x * x + 3 * x, [x], [4 + 2 * a]),
            ("(x * y) * (x * y + x)", product * (product + x), [y, x],
             [2 * a * a * b + a * a, 2 * a * b * b + 2 * a * b]),
            ("x * y, asked for x * y", product, [product], [np.ones_like(a)]),
        )  # fmt: skip
        for what, node, wrt, expected in cases:
            with session.remote.doing(f"gradients({what})"):
                grads = ad.gradients(node, wrt)
                got = session.evaluate([grads[i] for i in range(len(wrt))], {x: a, y: b})
            for position, want in enumerate(expected):
                bound = sum_bound(8, 2.0**8, ROUND64)
                verify(got[position], want, bound, f"gradients({what})[{position}], x and y (3, 4)")
        stranger = ad.gradients(x * 2, [session.variable("z")])
        expect_error(session, stranger, "gradients(x * 2, [z]), where z is not used,")


CHECKS = {
    check.__name__: check
    for check in (
        topological_order,
        gradient_add_multiply,
        gradient_matmul,
        gradient_reduce_broadcast,
        gradient_relu_cross_entropy,
        reverse_walk,
    )
}
