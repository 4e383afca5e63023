"""Part 1: gradients on numpy. The child evaluates graphs; expected values are computed here."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from grader.checks.answers import SMALL, shown
from grader.checks.calls import Call, comma
from grader.checks.compare import ROUND64, Array, Failure, sum_bound, verify
from grader.checks.context import Context, Session, expect_error

Shape = tuple[int, ...]
Draw = Callable[[], list[Array]]
Formula = Callable[..., list[Array]]


class _Gradient:
    """The gradient of one op, evaluated with values of its inputs and of the output's gradient.

    Attributes:
        words: what is asked for, and with which shapes.
        names: of the inputs.
    """

    def __init__(self, session: Session, what: str, build: Any, shapes: list[Shape]) -> None:
        self.session, self.what, self.names = session, what, "abc"[: len(shapes)]
        pairs = [f"{name} of shape {shape}" for name, shape in zip(self.names, shapes, strict=True)]
        self.words = f"gradient of {what} with {comma(pairs)}"
        self.shapes = comma(pairs)
        with session.remote.doing(self.words):
            variables = [session.variable(name) for name in self.names]
            node = build(*variables)
            self.variables = [*variables, session.variable("g")]
            grads = node.op.gradient(node, self.variables[-1])
            count = session.sequence(grads, "the gradient", "node")
        if count != len(shapes):
            raise Failure(f"the gradient has {count} nodes for {len(shapes)} inputs")
        self.grads = [grads[i] for i in range(count)]

    def check(self, values: list[Array], expected: list[Array], terms: int) -> None:
        """Compares the gradients for `values`, the output's gradient last, with `expected`.

        The bound is that of sums of `terms` products of the values at hand.
        """
        largest = 1 + max(np.abs(v).max() for v in values)
        bound = sum_bound(terms, 16 * terms * largest**2, ROUND64)
        self.session.note(lambda: self._recorded(values, expected, bound))
        with self.session.remote.doing(self.words):
            sent: list[Any] = [self.session.remote.put(v) for v in values]
            feeds = dict(zip(self.variables, sent, strict=True))
            got = self.session.evaluate(self.grads, feeds, most=SMALL)
            after = self.session.remote.fetch_all(sent, most=SMALL)
        for name, value, want in zip(self.names, got, expected, strict=True):
            what = f"gradient of {self.what} with respect to {name} ({self.shapes})"
            if isinstance(value, np.ndarray) and value.ndim > want.ndim:
                raise Failure(
                    f"{what} has shape {shown(value.shape)}, expected {want.shape}",
                    f"{name} was broadcast: sum its gradient back to the shape of {name}",
                )
            verify(value, want, bound, what)
        for name, value, want in zip([*self.names, "g"], after, values, strict=True):
            verify(value, want, 0, f"the value of {name} in the {self.words} must not change")

    def _recorded(self, values: list[Array], expected: list[Array], bound: float) -> Call:
        names = [*self.names, "g"]
        code = re.sub(r"(\w+_op)\(", r"ad.\1(", self.what)
        lines = [
            "from dlsys import autodiff as ad, gradcheck",
            f"{comma(names)} = (ad.Variable(name=name) for name in {''.join(names)!r})",
            f"node = {code}",
            "grads = node.op.gradient(node, g)",
            f"feeds = {{node: data[node.name] for node in ({comma(names)})}}",
            "values = gradcheck.evaluate(grads, feeds)",
            f"got = dict(zip({self.names!r}, values))",
        ]
        right = {
            name: (want, np.full(want.shape, bound))
            for name, want in zip(self.names, expected, strict=True)
        }
        return Call(self.words, lines, dict(zip(names, values, strict=True)), right)


def _check(
    ctx: Context,
    session: Session,
    what: str,
    build: Any,
    draw: Draw,
    formula: Formula,
    terms: int = 1,
) -> None:
    """Compares the gradients of build(*variables) with formula(g, *values), several times.

    `draw` gives fresh values, the last of them for g, the gradient of the output.
    """
    values = draw()
    gradient = _Gradient(session, what, build, [v.shape for v in values[:-1]])
    for _ in range(int(ctx.random.integers(2, 4))):
        gradient.check(values, formula(values[-1], *values[:-1]), terms)
        values = draw()


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
        _check_order(ctx, session, [square], wanted, "square of x * y + x")
        _check_order(ctx, session, [product, square], wanted, "[x * y, (x * y + x) squared]")
        node = x
        for _ in range(3000):
            node = node + 1
        with session.remote.doing("find_topo_sort of a line of 3001 nodes"):
            count = session.remote.len(ad.find_topo_sort([node]))
        if count != 3001:
            raise Failure("find_topo_sort of a line of 3001 nodes does not return 3001 nodes")


def _check_order(
    ctx: Context, session: Session, nodes: list[Any], wanted: list[Any], what: str
) -> None:
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
        names = session.remote.fetch_all([order[i].name for i in range(count)], most=SMALL)
        right = session.remote.fetch_all([node.name for node in wanted], most=SMALL)
        said, right = ([shown(name) for name in some] for some in (names, right))
        raise Failure(f"find_topo_sort of {what} is {said}, expected {right}")


def _distinct(ctx: Context) -> list[int]:
    """Three different sizes of this run: with equal ones, what is transposed looks right."""
    return [int(size) for size in ctx.random.choice(np.arange(2, 8), 3, replace=False)]


def gradient_add_multiply(ctx: Context) -> None:
    """the gradients of +, * and constants are right, also where an operand was broadcast"""
    m, n, k = _distinct(ctx)
    pairs: list[tuple[Shape, Shape]] = [((m, n), (m, n)), ((k,), (k,)), ((m, n), (n,))]
    pairs += [((1,), (m, n)), ((k, m, n), (m, 1))]
    with ctx.session() as session:
        for shape_a, shape_b in pairs:
            shape = np.broadcast_shapes(shape_a, shape_b)
            draw = functools.partial(_values, ctx, shape_a, shape_b, shape)
            terms = int(np.prod(shape))
            _check(ctx, session, "a + b", lambda x, y: x + y, draw, _sum_gradient, terms)
            _check(ctx, session, "a * b", lambda x, y: x * y, draw, _product_gradient, terms)
        draw = functools.partial(_values, ctx, (m, k), (m, k))
        c = round(float(ctx.random.uniform(-3, 3)), 3)
        _check(ctx, session, f"a + {c}", lambda x: x + c, draw, lambda g, a: [g])
        _check(ctx, session, f"a * {c}", lambda x: x * c, draw, lambda g, a: [g * c])


def _sum_gradient(g: Array, a: Array, b: Array) -> list[Array]:
    return [_sum_to(g, a.shape), _sum_to(g, b.shape)]


def _product_gradient(g: Array, a: Array, b: Array) -> list[Array]:
    return [_sum_to(g * b, a.shape), _sum_to(g * a, b.shape)]


def gradient_matmul(ctx: Context) -> None:
    """the gradient of matmul is right for all four combinations of transposed operands"""
    m, n, k = _distinct(ctx)
    with ctx.session() as session:
        ad = session.autodiff()
        for trans_a in (False, True):
            for trans_b in (False, True):
                shape_a, shape_b = (k, m) if trans_a else (m, k), (n, k) if trans_b else (k, n)

                def build(x: Any, y: Any, ta: bool = trans_a, tb: bool = trans_b) -> Any:
                    return ad.matmul_op(x, y, ta, tb)

                def formula(
                    g: Array, a: Array, b: Array, ta: bool = trans_a, tb: bool = trans_b
                ) -> list[Array]:
                    grad_a, grad_b = g @ (b if tb else b.T), (a if ta else a.T) @ g
                    return [grad_a.T if ta else grad_a, grad_b.T if tb else grad_b]

                draw = functools.partial(_values, ctx, shape_a, shape_b, (m, n))
                what = f"matmul_op(a, b, {trans_a}, {trans_b})"
                _check(ctx, session, what, build, draw, formula, 8)


def gradient_reduce_broadcast(ctx: Context) -> None:
    """the gradients of reduce_sum_axis_zero and broadcast_to undo each other's shapes"""
    m, n, k = _distinct(ctx)
    shapes: tuple[Shape, ...] = ((m, n), (k, m, n), (k,))
    with ctx.session() as session:
        ad = session.autodiff()
        for shape in shapes:
            draw = functools.partial(_values, ctx, shape, shape[1:] or (1,))
            _check(ctx, session, "reducesumaxiszero_op(a)", ad.reducesumaxiszero_op, draw,
                   lambda g, a: [np.broadcast_to(g, a.shape)])  # fmt: skip
        draw = functools.partial(_values, ctx, (n,), (m, n), (m, n))
        _check(ctx, session, "broadcastto_op(a, b)", ad.broadcastto_op, draw,
               lambda g, a, b: [g.sum(axis=0), np.zeros(b.shape)], 8)  # fmt: skip


def _softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def gradient_relu_cross_entropy(ctx: Context) -> None:
    """the gradients of relu (0 at 0) and of softmax cross-entropy (a mean, so 1/N) are right"""

    def with_zeros() -> list[Array]:
        a, g = _values(ctx, (6, 5), (6, 5))
        a[::2, ::2] = 0
        return [a, g]

    with ctx.session() as session:
        ad = session.autodiff()
        _check(ctx, session, "relu_op(a)", ad.relu_op, with_zeros,
               lambda g, a: [np.where(a > 0, g, 0)])  # fmt: skip
        for rows in (7, 1, *ctx.sizes(20)):
            draw = functools.partial(_logits_labels, ctx, rows)
            what, build = "softmaxcrossentropy_op(a, b)", ad.softmaxcrossentropy_op
            _check(ctx, session, what, build, draw, _cross_entropy_gradient, 4)


def _logits_labels(ctx: Context, rows: int) -> list[Array]:
    logits, raw, g = _values(ctx, (rows, 4), (rows, 4), (1,))
    return [logits, _softmax(raw), g]


def _cross_entropy_gradient(g: Array, logits: Array, labels: Array) -> list[Array]:
    return [(_softmax(logits) - labels) * g / len(logits), np.zeros(labels.shape)]


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
                a, b = _values(ctx, shape, shape)
                with session.remote.doing(f"gradients({what})"):
                    got = session.evaluate(nodes, {x: a, y: b}, most=SMALL)
                for position, want in enumerate(formula(a, b)):
                    bound = sum_bound(8, 2.0**8, ROUND64)
                    words = f"gradients({what})[{position}], x and y {shape}"
                    verify(got[position], want, bound, words)
        stranger = ad.gradients(x * 2, [session.variable("z")])
        expect_error(session, stranger, "gradients(x * 2, [z]), where z is not used,")
        _check_names(ctx, session)


def _check_names(ctx: Context, session: Session) -> None:
    """Nodes are told apart by what they are: names may repeat."""
    x, twin = session.variable("x"), session.variable("x")
    a, b = _values(ctx, (3, 4), (3, 4))
    what = "gradients(x * y), where y has the name x too"
    with session.remote.doing(what):
        grads = session.autodiff().gradients(x * twin, [twin, x])
        got = session.evaluate([grads[i] for i in range(2)], {x: a, twin: b}, most=SMALL)
    for position, want in enumerate([a, b]):
        verify(got[position], want, sum_bound(8, 2.0**8, ROUND64), f"{what}[{position}], (3, 4)")


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
