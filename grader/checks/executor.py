"""Shape inference and the memory plan of the executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.checks.compare import ROUND, Array, Failure, verify
from grader.checks.context import Context, Session, expect_error

Shape = tuple[int, ...]


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
        _check_two_inputs(session, ad, x, y, (m, n, k))
        for what, node, shapes in (
            ("matmul_op(x, y)", ad.matmul_op(x, y), [(m, n), (n + 1, k)]),
            ("x + y", x + y, [(m + 1, n), (m, n)]),
        ):
            inferred = node.op.infer_shape(node, shapes)
            expect_error(session, inferred, f"{what} with {shapes}")


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
        alone = session.remote.fetch(node.op.infer_shape(node, list(shapes.values())))
        executor = session.autodiff().Executor([node])
        executor.infer_shape(dict(shapes))
        mapped = session.remote.fetch_all([executor.node_to_shape_map[n] for n in (node, *shapes)])
    for got, right in zip([alone, *mapped], [expected, expected, *shapes.values()], strict=True):
        is_shape = isinstance(got, (tuple, list)) and all(
            isinstance(n, (int, np.integer)) for n in got
        )
        if not is_shape or tuple(got) != right:
            raise Failure(f"{where} is {got}, expected {right}")


def memory_plan(ctx: Context) -> None:
    """the memory plan reuses memory, allocates only when shapes change, and returns own arrays"""
    with ctx.session() as session:
        _check_reuse(session, ctx)
        _check_replanning(session, ctx)
        _check_ownership(session, ctx)


def _address(arr: Any) -> Any:
    return arr.handle.contents.data


def _check_reuse(session: Session, ctx: Context) -> None:
    x = session.variable("x")
    nodes = []
    node = x
    for _ in range(20):
        node = (node + 1) * 0.5
        nodes.append(node)
    executor = session.autodiff().Executor([node], ctx=session.nd.gpu(0))
    values = ctx.uniform((65, 7))
    got = session.remote.fetch(executor.run({x: values}, convert_to_numpy_ret_vals=True)[0])
    expected = values.astype(np.float64)
    for _ in nodes:
        expected = (expected + 1) * 0.5
    verify(got, expected, 64 * ROUND * np.abs(expected), "40 element-wise nodes in a line")
    plan = executor.node_to_arr_map
    buffers = set(session.integers([_address(plan[n]) for n in nodes]))
    if len(buffers) > 4:
        raise Failure(
            f"every second node of a line of 40 takes {len(buffers)} buffers of device memory",
            "a value that nobody reads any more can lend its memory to a later node",
        )


def _graph(session: Session) -> tuple[Any, Any, list[Any]]:
    x, y = session.variable("x"), session.variable("y")
    total = session.autodiff().relu_op(x * 2 + y)
    return x, y, [total, total + x]


def _expected(x: Array, y: Array) -> list[Array]:
    total = np.maximum(x.astype(np.float64) * 2 + y, 0)
    return [total, total + x]


def _check_replanning(session: Session, ctx: Context) -> None:
    x, y, nodes = _graph(session)
    executor = session.autodiff().Executor(nodes, ctx=session.nd.gpu(0))
    for shape in ((33, 5), (129, 7), (3, 2), (33, 5)):
        a, b = ctx.uniform(shape), ctx.uniform(shape)
        feeds = {x: session.upload(a), y: session.upload(b)}
        for attempt in ("first", "second"):
            before = session.device.allocations()[0]
            with session.remote.doing(f"relu(x * 2 + y), {attempt} run with {shape}"):
                results = executor.run(feeds)
                got = session.remote.fetch_all([results[i].asnumpy() for i in range(2)])
            for values, want in zip(got, _expected(a, b), strict=True):
                verify(values, want, 16 * ROUND, f"relu(x * 2 + y), {attempt} run with {shape}")
            grown = session.device.allocations()[0] - before
            if attempt == "second" and grown:
                raise Failure(f"a second run with shapes {shape} allocates {grown} arrays")


def _check_ownership(session: Session, ctx: Context) -> None:
    x, y, nodes = _graph(session)
    executor = session.autodiff().Executor(nodes, ctx=session.nd.gpu(0))
    a, b = ctx.uniform((40, 3)), ctx.uniform((40, 3))
    for run in ("first", "second"):
        results = executor.run({x: a, y: b})
        addresses = session.integers([_address(results[i]) for i in range(2)])
        if len(set(addresses)) != 2:
            raise Failure("two evaluated nodes share their memory")
        got = session.remote.fetch(results[1].asnumpy())
        verify(got, _expected(a, b)[1], 16 * ROUND, f"relu(x * 2 + y) + x, {run} run")
        # The receiver may write into what it got, as the training loop does.
        results[0][:] = np.full((40, 3), 7, np.float32)
        again = session.remote.fetch(results[1].asnumpy())
        verify(again, got, 0, "the second result, after the first was overwritten,")


CHECKS = {check.__name__: check for check in (infer_shape, memory_plan)}
