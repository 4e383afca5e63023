"""Part 1: gradients on numpy. The child evaluates graphs; expected values are computed here."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from grader.checks.harness.answers import SMALL, shown
from grader.checks.harness.call_script import Call, comma
from grader.checks.harness.compare import ROUND64, Array, Failure, differing, sum_bound, verify
from grader.checks.harness.context import Context, Session
from grader.checks.harness.traits import check, declared

Shape = tuple[int, ...]
Draw = Callable[[], list[Array]]
Formula = Callable[..., list[Array]]

_LINEAR = (
    "this gradient does not depend on the value of this input: build it from the other "
    "input and the output's gradient"
)
_NO_OUTPUT_GRAD = "it is right only where the output's gradient is 1: multiply by output_grad"
_SLOPE = (
    "where the input is +inf, the gradient is the output's gradient, since only the sign of "
    "the input counts: build it with relu_gradient_op"
)
_CERTAIN = "softmax is 0 there, and so is the gradient: build it from softmax_op and the labels"


class _Gradient:
    """The gradient of one op, for given values of its inputs and of the output's gradient.

    Attributes:
        words: which gradient it is, for which shapes.
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
            count = session.sequence(grads, f"the gradient of {what}", "node")
        if count != len(shapes):
            raise Failure(f"the gradient of {what} has {count} nodes for {len(shapes)} inputs")
        self.grads = [grads[i] for i in range(count)]

    def check(self, values: list[Array], formula: Formula, terms: int) -> None:
        """Compares the gradients with `formula`.

        Args:
            values: of the inputs, and last of g, the output's gradient.
            formula: the right gradients, from g and the other values.
            terms: each gradient is a sum of so many products, which sets the bound.
        """
        expected = formula(values[-1], *values[:-1])
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
            try:
                verify(value, want, bound, what)
            except Failure as failure:
                plain = formula(np.ones_like(values[-1]), *values[:-1])[self.names.index(name)]
                if failure.output is not None and not differing(value, plain, bound).any():
                    failure.hint = _NO_OUTPUT_GRAD
                raise
        for name, value, want in zip([*self.names, "g"], after, values, strict=True):
            verify(value, want, 0, f"the value of {name} in the {self.words} must not change")

    def check_infinite(
        self, position: int, values: list[Array], expected: Array, terms: int, why: str
    ) -> None:
        """As `check`, for one input alone, where `values` hold infinity and the gradient is still
        finite. A gradient that is made of differences of the op's values, or of its values for
        complex numbers, is NaN then.

        Args:
            position: of the input.
            values: of all inputs, and of g.
            expected: the right gradient.
            terms: as in `check`.
            why: the hint.
        """
        name = self.names[position]
        what = f"gradient of {self.what} with respect to {name} ({self.shapes}; some of {name} inf)"
        largest = 1 + max(np.abs(v).max() for i, v in enumerate(values) if i != position)
        bound = sum_bound(terms, 16 * terms * largest**2, ROUND64)
        with self.session.remote.doing(what):
            fed = dict(zip(self.variables, values, strict=True))
            (got,) = self.session.evaluate([self.grads[position]], fed)
        try:
            verify(got, expected, bound, what)
        except Failure as failure:
            failure.hint = why
            raise

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
    linear: tuple[int, ...] = (),
) -> None:
    """Compares the gradients of build(*variables) with formula(g, *values), several times.

    Args:
        draw: gives fresh values; the last of them is g, the gradient of the output.
        linear: the inputs whose gradients do not depend on their own values.
    """
    values = draw()
    gradient = _Gradient(session, what, build, [v.shape for v in values[:-1]])
    for _ in range(int(ctx.random.integers(2, 4))):
        gradient.check(values, formula, terms)
        values = draw()
    # Every gradient is as large as the output's: what clips it, or takes it for 0, shows.
    for sign in (1, -1):
        scale = 10.0 ** (sign * ctx.random.uniform(5, 7))
        gradient.check([*values[:-1], scale * values[-1]], formula, terms)
        values = draw()
    for position in linear:
        expected = formula(values[-1], *values[:-1])[position]
        fed = [*values]
        fed[position] = _with_infinity(ctx, values[position])
        gradient.check_infinite(position, fed, expected, terms, _LINEAR)
        values = draw()


def _with_infinity(ctx: Context, values: Array) -> Array:
    """The values with at least one of them infinite."""
    infinite = np.asarray(ctx.random.random(values.shape) < 0.5)
    infinite.reshape(-1)[int(ctx.random.integers(infinite.size))] = True
    return np.where(infinite, np.copysign(np.inf, values), values)


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


def _distinct(ctx: Context) -> list[int]:
    """Three different random sizes: with equal ones, a transposed result looks right."""
    return [int(size) for size in ctx.random.choice(np.arange(2, 8), 3, replace=False)]


@check(device=False)
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
            _check(ctx, session, "a + b", lambda x, y: x + y, draw, _sum_gradient, terms, (0, 1))
            _check(
                ctx, session, "a * b", lambda x, y: x * y, draw, _product_gradient, terms, (0, 1)
            )
        draw = functools.partial(_values, ctx, (m, k), (m, k))
        c = round(float(ctx.random.uniform(-3, 3)), 3)
        _check(ctx, session, f"a + {c}", lambda x: x + c, draw, lambda g, a: [g], 1, (0,))
        _check(ctx, session, f"a * {c}", lambda x: x * c, draw, lambda g, a: [g * c], 1, (0,))


def _sum_gradient(g: Array, a: Array, b: Array) -> list[Array]:
    return [_sum_to(g, a.shape), _sum_to(g, b.shape)]


def _product_gradient(g: Array, a: Array, b: Array) -> list[Array]:
    return [_sum_to(g * b, a.shape), _sum_to(g * a, b.shape)]


@check(device=False)
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
                _check(ctx, session, what, build, draw, formula, 8, (0, 1))


@check(device=False)
def gradient_reduce_broadcast(ctx: Context) -> None:
    """the gradients of reduce_sum_axis_zero and broadcast_to undo each other's shapes"""
    m, n, k = _distinct(ctx)
    shapes: tuple[Shape, ...] = ((m, n), (k, m, n), (k,))
    with ctx.session() as session:
        ad = session.autodiff()
        for shape in shapes:
            draw = functools.partial(_values, ctx, shape, shape[1:] or (1,))
            _check(ctx, session, "reducesumaxiszero_op(a)", ad.reducesumaxiszero_op, draw,
                   lambda g, a: [np.broadcast_to(g, a.shape)], 1, (0,))  # fmt: skip
        draw = functools.partial(_values, ctx, (n,), (m, n), (m, n))
        _check(ctx, session, "broadcastto_op(a, b)", ad.broadcastto_op, draw,
               lambda g, a, b: [g.sum(axis=0), np.zeros(b.shape)], 8, (0,))  # fmt: skip


def _softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


@check(device=False)
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
        _check_slope(ctx, session, "relu_op(a)", ad.relu_op, with_zeros())
        for rows in (7, 1, *ctx.sizes(20)):
            draw = functools.partial(_logits_labels, ctx, rows)
            what, build = "softmaxcrossentropy_op(a, b)", ad.softmaxcrossentropy_op
            _check(ctx, session, what, build, draw, _cross_entropy_gradient, 4)
        _check_certain(ctx, session, what, build)


def _check_slope(
    ctx: Context, session: Session, what: str, build: Any, values: list[Array]
) -> None:
    """The gradient of relu where some of the input is infinite, of both signs."""
    a, g = values
    fed = _with_infinity(ctx, a)
    gradient = _Gradient(session, what, build, [a.shape])
    gradient.check_infinite(0, [fed, g], np.where(fed > 0, g, 0), 1, _SLOPE)


def _check_certain(ctx: Context, session: Session, what: str, build: Any) -> None:
    """Logits of minus infinity where the labels are 0."""
    logits, labels, g = _logits_labels(ctx, 5)
    rows = np.arange(5)
    logits[rows, rows % 4], labels[rows, rows % 4] = -np.inf, 0
    labels /= labels.sum(axis=1, keepdims=True)
    gradient = _Gradient(session, what, build, [logits.shape, labels.shape])
    expected = _cross_entropy_gradient(g, logits, labels)[0]
    gradient.check_infinite(0, [logits, labels, g], expected, 4, _CERTAIN)


def _logits_labels(ctx: Context, rows: int) -> list[Array]:
    logits, raw, g = _values(ctx, (rows, 4), (rows, 4), (1,))
    return [logits, _softmax(raw), g]


def _cross_entropy_gradient(g: Array, logits: Array, labels: Array) -> list[Array]:
    return [(_softmax(logits) - labels) * g / len(logits), np.zeros(labels.shape)]


CHECKS = declared(globals())
