"""Shape inference and the memory plan of the executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.checks.answers import SMALL, shape_of, shown
from grader.checks.calls import Call
from grader.checks.compare import ROUND, Array, Failure, verify
from grader.checks.context import Context, Session, expect_error

Shape = tuple[int, ...]

_GPU = 2  # the device type of a GPU, as in dlarray.h


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
        _check_other_shapes(session, x, ctx)
        for what, node, shapes in (
            ("matmul_op(x, y)", ad.matmul_op(x, y), [(m, n), (n + 1, k)]),
            ("x + y", x + y, [(m + 1, n), (m, n)]),
        ):
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
            raise Failure(f"one executor, fed with other shapes: (x + 1) * 2 has shape "
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


def memory_plan(ctx: Context) -> None:
    """the memory plan reuses memory, allocates only when shapes change, and returns own arrays"""
    with ctx.session() as session:
        session.device.settle("loading the library")
        _check_reuse(session, ctx)
        _check_replanning(session, ctx)
        _check_lending(session, ctx)
        _check_ownership(session, ctx)
        _check_two_executors(session, ctx)
        session.device.settle("running the executor")
    ctx.require_harmless()


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
    values = ctx.uniform(ctx.sizes(90, 20))
    before = session.device.allocations()[0]
    results = executor.run({x: values}, convert_to_numpy_ret_vals=True)
    got = session.remote.fetch(results[0], most=SMALL)
    expected = values.astype(np.float64)
    for _ in nodes:
        expected = (expected + 1) * 0.5
    verify(got, expected, 64 * ROUND * np.abs(expected), "40 element-wise nodes in a line")
    grown = session.device.allocations()[0] - before
    plan = executor.node_to_arr_map
    buffers = set(session.integers([_address(plan[n]) for n in nodes]))
    if len(buffers) > 4:
        raise Failure(
            f"every second node of a line of 40 takes {len(buffers)} buffers of device memory",
            "a value that nobody reads any more can lend its memory to a later node",
        )
    if grown > 8:  # whatever the plan says; the value that is fed counts too
        raise Failure(f"the first run of a line of 40 nodes allocates {grown} arrays")


class _Graph:
    """relu(x * 2 + y), and that plus x, on an executor of its own."""

    def __init__(self, session: Session, ctx: Context) -> None:
        self.session, self.ctx = session, ctx
        self.x, self.y = session.variable("x"), session.variable("y")
        total = session.autodiff().relu_op(self.x * 2 + self.y)
        self.executor = session.autodiff().Executor([total, total + self.x], session.nd.gpu(0))
        self.feeds: dict[Any, Any] = {}
        self.fed: list[Array] = []
        self.kept: dict[str, Array] = {}
        self.runs = 0

    def run(self, shape: Shape, words: str, fresh: bool = True) -> tuple[Any, list[Array]]:
        """A run with new values, in new arrays or in those that were fed last.

        Returns:
            (proxy of the results, what they should be).

        Raises:
            Failure: a result is wrong, or a fed array has changed.
        """
        self.fed = [self.ctx.uniform(shape), self.ctx.uniform(shape)]
        for node, values in zip((self.x, self.y), self.fed, strict=True):
            if fresh:
                self.feeds[node] = self.session.upload(values)
            else:
                self.feeds[node][:] = values
        a, b = self.fed
        total = np.maximum(a.astype(np.float64) * 2 + b, 0)
        expected = [total, total + a]
        self._keep(words, expected)
        with self.session.remote.doing(f"{words}, where asnumpy is switched off"):
            results = _run_on_device(self.session, self.executor, self.feeds)
        with self.session.remote.doing(words):
            self.verify(results, expected, words)
        return results, expected

    def verify(self, results: Any, expected: list[Array], words: str) -> None:
        """Raises Failure unless results are as expected and the fed arrays as they were."""
        arrays = [results[0], results[1], *self.feeds.values()]
        with self.session.remote.doing(words):
            fetched = [array.asnumpy() for array in arrays]
            *got, a, b = self.session.remote.fetch_all(fetched, most=SMALL)
        for values, want in zip(got, expected, strict=True):
            verify(values, want, 16 * ROUND, words)
        for name, values, sent in zip("xy", (a, b), self.fed, strict=True):
            verify(values, sent, 0, f"{name}, which was fed to {words}, must not change")

    def _keep(self, words: str, expected: list[Array]) -> None:
        for name, values in zip("xy", self.fed, strict=True):
            self.kept[f"{name}_{self.runs}"] = values
        self.runs += 1
        kept, runs = dict(self.kept), self.runs
        lines = [
            "from dlsys import autodiff as ad, ndarray",
            "gpu = ndarray.gpu(0)",
            'x, y = ad.Variable(name="x"), ad.Variable(name="y")',
            "total = ad.relu_op(x * 2 + y)",
            "executor = ad.Executor([total, total + x], ctx=gpu)",
            f"for run in range({runs}):",
            '    feeds = [ndarray.array(data[f"{name}_{run}"], gpu) for name in "xy"]',
            "    results = executor.run(dict(zip([x, y], feeds)))",
            'got = {f"result_{i}": results[i].asnumpy() for i in range(2)}',
        ]
        near = np.full(expected[0].shape, 16 * ROUND)
        right = {f"result_{i}": (values, near) for i, values in enumerate(expected)}
        self.session.note(lambda: Call(words, lines, kept, right))


def _check_replanning(session: Session, ctx: Context) -> None:
    """New shapes, among them such of as many elements; then the same arrays with new values."""
    graph = _Graph(session, ctx)
    rows, columns = ctx.sizes(120, 9)
    for shape in ((33, 5), (rows, columns + 9), (columns + 9, rows), (3, 2), (33, 5), (6,)):
        graph.run(shape, f"relu(x * 2 + y), first run with {shape}")
        for number in range(int(ctx.random.integers(1, 4))):
            before = session.device.allocations()[0]
            which = "second" if number == 0 else "later"
            graph.run(shape, f"relu(x * 2 + y), {which} run with {shape}", fresh=False)
            grown = session.device.allocations()[0] - before
            if grown:
                raise Failure(f"a second run with shapes {shape} allocates {grown} arrays")


def _run_on_device(session: Session, executor: Any, feeds: Mapping[Any, Any]) -> Any:
    """executor.run, while no array can be copied to the host. Its results lie on the GPU."""
    asnumpy, session.nd.NDArray.asnumpy = session.nd.NDArray.asnumpy, None
    results = executor.run(feeds)
    session.nd.NDArray.asnumpy = asnumpy
    devices = session.integers([results[i].ctx.device_type for i in range(2)])
    if devices != [_GPU, _GPU]:
        raise Failure("the executor was made for the GPU and returns an array on the CPU")
    return results


_LENDING = """\
from dlsys import autodiff as ad, ndarray
x, y = ad.Variable(name="x"), ad.Variable(name="y")
k = x * 2
executor = ad.Executor([ad.relu_op(k + 1) * 3 + k, ad.relu_op(y * 2) + 1], ctx=ndarray.gpu(0))
for run in range(%d):
    values = executor.run({x: data[f"x_{run}"], y: data[f"y_{run}"]}, True)
got = {f"result_{i}": values[i] for i in range(2)}"""


def _check_lending(session: Session, ctx: Context) -> None:
    """A value that is read again later, a larger one beside it, shapes of the same size."""
    ad, x, y = session.autodiff(), session.variable("x"), session.variable("y")
    k = x * 2
    nodes = [ad.relu_op(k + 1) * 3 + k, ad.relu_op(y * 2) + 1]
    executor = ad.Executor(nodes, ctx=session.nd.gpu(0))
    kept: dict[str, Array] = {}
    for run, shape in enumerate(((9, 14), (14, 9))):
        a, b = ctx.uniform(shape), ctx.uniform((40, 50))
        kept |= {f"x_{run}": a, f"y_{run}": b}
        words = [f"relu(k + 1) * 3 + k, where k = x * 2, with x {shape}", "relu(y * 2) + 1"]
        double = a.astype(np.float64) * 2
        expected = [np.maximum(double + 1, 0) * 3 + double, np.maximum(b.astype(float) * 2, 0) + 1]
        _note_lending(session, ", and ".join(words), dict(kept), expected)
        with session.remote.doing(", and ".join(words)):
            results = executor.run({x: a, y: b}, convert_to_numpy_ret_vals=True)
            got = session.remote.fetch_all([results[i] for i in range(2)], most=SMALL)
        for values, want, what in zip(got, expected, words, strict=True):
            verify(values, want, 64 * ROUND, what)


def _note_lending(
    session: Session, words: str, kept: dict[str, Array], expected: list[Array]
) -> None:
    right = {f"result_{i}": (v, np.full(v.shape, 64 * ROUND)) for i, v in enumerate(expected)}
    lines = (_LENDING % (len(kept) // 2)).splitlines()
    session.note(lambda: Call(words, lines, kept, right))


def _check_ownership(session: Session, ctx: Context) -> None:
    graph, shape = _Graph(session, ctx), ctx.sizes(60, 9)
    for run in ("first", "second"):
        results, expected = graph.run(shape, f"relu(x * 2 + y), {run} run")
        addresses = session.integers([_address(results[i]) for i in range(2)])
        if len(set(addresses)) != 2:
            raise Failure("two evaluated nodes share their memory")
        # The receiver may write into what it got, as the training loop does.
        results[0][:] = np.full(shape, 7, np.float32)
        words = "the second result, after the first was overwritten,"
        graph.verify(results, [np.full(shape, 7), expected[1]], words)


def _check_two_executors(session: Session, ctx: Context) -> None:
    """What one executor returned stands until its own next run."""
    shape = ctx.sizes(60, 9)
    first, second = _Graph(session, ctx), _Graph(session, ctx)
    results, expected = first.run(shape, "relu(x * 2 + y) on one executor")
    second.run(shape, "relu(x * 2 + y) on another executor")
    first.verify(results, expected, "relu(x * 2 + y), after another executor has run,")


CHECKS = {check.__name__: check for check in (infer_shape, memory_plan)}
