"""Shape inference of the executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.checks.harness.answers import SMALL, shape_of, shown
from grader.checks.harness.compare import Failure
from grader.checks.harness.context import Context, Session, expect_error
from grader.checks.harness.traits import check, declared

Shape = tuple[int, ...]


@check(device=False)
def infer_shape(ctx: Context) -> None:
    """every op infers the shape of its result, and refuses shapes that do not fit"""
    # Three different sizes: with equal ones, a transposed shape would look right.
    m, n, k = (int(v) for v in ctx.random.choice(np.arange(2, 10), 3, replace=False))
    with ctx.session() as session:
        ad = session.autodiff()
        x, y = session.variable("x"), session.variable("y")
        one_input: list[tuple[str, Any, Shape, Shape]] = [
            ("x + 2", x + 2, (m, n), (m, n)),
            ("x * 2", x * 2, (m, n, k), (m, n, k)),
            ("relu_op(x)", ad.relu_op(x), (k,), (k,)),
            ("softmax_op(x)", ad.softmax_op(x), (m, n), (m, n)),
            ("zeroslike_op(x)", ad.zeroslike_op(x), (m, n), (m, n)),
            ("oneslike_op(x)", ad.oneslike_op(x), (m, n), (m, n)),
            ("reducesumaxiszero_op(x)", ad.reducesumaxiszero_op(x), (m, n, k), (n, k)),
            ("reducesumaxiszero_op(x)", ad.reducesumaxiszero_op(x), (k,), (1,)),
        ]
        for what, node, shape, expected in one_input:
            _check_shape(session, what, node, {x: shape}, expected)
        if ctx.thorough:
            _check_shape(session, "x + y", x + y, {x: (m, 1), y: (1, n)}, (m, n))
        _check_two_inputs(session, ad, x, y, (m, n, k))
        _check_other_shapes(session, x, ctx)
        refused = [
            ("matmul_op(x, y)", ad.matmul_op(x, y), [(m, n), (n + 1, k)]),
            ("x + y", x + y, [(m + 1, n), (m, n)]),
        ]
        if ctx.thorough:
            loss = ad.softmaxcrossentropy_op(x, y)
            refused.append(("softmaxcrossentropy_op(x, y)", loss, [(m, n), (m + 1, n)]))
        for what, node, shapes in refused:
            inferred = node.op.infer_shape(node, shapes)
            expect_error(session, inferred, f"{what} with {shapes}")


def _check_other_shapes(session: Session, x: Any, ctx: Context) -> None:
    """One executor infers shapes anew when others are fed."""
    node = (x + 1) * 2
    executor = session.autodiff().Executor([node])
    for shape in (ctx.sizes(9, 9), ctx.sizes(9), ctx.sizes(9, 9, 9)):
        executor.infer_shape({x: shape})
        got = session.remote.fetch(executor.node_to_shape_map[node], most=SMALL)
        if shape_of(got) != shape:
            raise Failure(f"one executor, run again with other shapes: (x + 1) * 2 has shape "
                          f"{shown(got)} for x of shape {shape}")  # fmt: skip


def _check_two_inputs(session: Session, ad: Any, x: Any, y: Any, sizes: Shape) -> None:
    m, n, k = sizes
    cases: list[tuple[str, Any, Shape, Shape, Shape]] = [
        ("x + y", x + y, (m, n), (m, n), (m, n)),
        ("x + y", x + y, (m, n), (1,), (m, n)),
        ("x * y", x * y, (1,), (m, n), (m, n)),
        ("x * y", x * y, (m, n), (n,), (m, n)),
        ("broadcastto_op(x, y)", ad.broadcastto_op(x, y), (n,), (m, n), (m, n)),
        ("softmaxcrossentropy_op(x, y)", ad.softmaxcrossentropy_op(x, y), (m, n), (m, n), (1,)),
        ("relu_gradient_op(x, y)", ad.relu_gradient_op(x, y), (m, n), (m, n), (m, n)),
    ]
    for trans_a in (False, True):
        for trans_b in (False, True):
            node = ad.matmul_op(x, y, trans_a, trans_b)
            shapes = ((n, m) if trans_a else (m, n)), ((k, n) if trans_b else (n, k))
            cases.append((f"matmul_op(x, y, {trans_a}, {trans_b})", node, *shapes, (m, k)))
    for what, node, shape_x, shape_y, expected in cases:
        _check_shape(session, what, node, {x: shape_x, y: shape_y}, expected)


def _check_shape(
    session: Session, what: str, node: Any, shapes: Mapping[Any, Shape], expected: Shape
) -> None:
    """The shape of one op by itself, then as an executor infers it for a graph."""
    where = f"the shape of {what} with {', '.join(map(str, shapes.values()))}"
    with session.remote.doing(where):
        inferred = node.op.infer_shape(node, list(shapes.values()))
        alone = session.remote.fetch(inferred, most=SMALL)
        executor = session.autodiff().Executor([node])
        executor.infer_shape(dict(shapes))
        mapped = session.remote.fetch_all(
            [executor.node_to_shape_map[n] for n in (node, *shapes)], most=SMALL
        )
    for got, right in zip([alone, *mapped], [expected, expected, *shapes.values()], strict=True):
        if shape_of(got) != right:
            raise Failure(f"{where} is {shown(got)}, expected {right}")


CHECKS = declared(globals())
