"""The memory plan of the executor."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.checks.harness.answers import SMALL, room
from grader.checks.harness.call_script import Call
from grader.checks.harness.compare import ROUND, Array, Failure, verify
from grader.checks.harness.context import Context, GpuWork, Session
from grader.checks.harness.traits import check, declared
from grader.student.proxy import ChildError

Shape = tuple[int, ...]

_GPU = 2  # the device type of a GPU, as in dlarray.h
_MOST_ARRAYS = 8  # of a line of nodes
_REUSE = "a node can reuse the memory of a value that no later node reads"


@check(explained=True)
def memory_plan(ctx: Context) -> None:
    """the memory plan reuses memory, allocates only when shapes change, and returns own arrays"""
    ctx.on_device(lambda session: _check_plans(session, ctx))
    ctx.require_harmless()


def _check_plans(session: Session, ctx: Context) -> None:
    session.device.finish("loading the library")
    wasteful = [_check_reuse(session, ctx), _check_replanning(session, ctx)]
    _check_lending(session, ctx)
    _check_products(session, ctx)
    _check_evaluated(session, ctx)
    _check_ownership(session, ctx)
    _check_two_executors(session, ctx)
    for failure in filter(None, wasteful):  # last: that a value is wrong says more
        raise failure
    session.device.finish("running the executor")


def _address(arr: Any) -> Any:
    return arr.handle.contents.data


def _check_reuse(session: Session, ctx: Context) -> Failure | None:
    """Runs a line of nodes. Returns a failure if the values are right, but take much memory."""
    x = session.variable("x")
    nodes = []
    node = x
    for _ in range(20):
        node = (node + 1) * 0.5
        nodes.append(node)
    before = session.allocations()  # the executor may allocate as soon as it is made
    executor = session.autodiff().Executor([node], ctx=session.nd.gpu(0))
    values = ctx.uniform(ctx.sizes(90, 20))
    session.feed(values)
    results = executor.run({x: values}, convert_to_numpy_ret_vals=True)
    got = session.remote.fetch(results[0], most=SMALL)
    expected = values.astype(np.float64)
    for _ in nodes:
        expected = (expected + 1) * 0.5
    verify(got, expected, 64 * ROUND * np.abs(expected), "40 element-wise nodes in a line")
    session.require_made([got], GpuWork("40 element-wise nodes in a line", [values], 40))
    grown, places = session.allocations() - before, session.places(got)
    plan = executor.node_to_arr_map
    buffers = set(session.integers([_address(plan[n]) for n in nodes]))
    if len(buffers) > 4:
        return Failure(
            f"every second node of a line of 40 takes {len(buffers)} buffers of device memory",
            _REUSE,
        )
    # Whatever the plan says; the value that is fed counts too.
    if grown > _MOST_ARRAYS:
        return Failure(f"the first run of a line of 40 nodes allocates {grown} arrays", _REUSE)
    if places > _MOST_ARRAYS:
        return Failure(f"a line of 40 nodes takes {places} buffers of device memory", _REUSE)
    return None


class _Graph:
    """An executor of relu(x * 2 + y) and relu(x * 2 + y) + x."""

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
        """Runs with new values, in new arrays or in those fed last.

        Returns:
            (proxy of the results, expected results).

        Raises:
            Failure: a result is wrong, or a fed array has changed.
        """
        self.fed = [self.ctx.uniform(shape), self.ctx.uniform(shape)]
        self.session.feed(*self.fed)
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
            got = self.verify(results, expected, words)
        self.session.require_made(got, GpuWork(words, self.fed, 4, launches=3))
        return results, expected

    def verify(self, results: Any, expected: list[Array], words: str) -> list[Array]:
        """The fetched results. Raises Failure if one is wrong, or a fed array has changed."""
        arrays = [results[0], results[1], *self.feeds.values()]
        with self.session.remote.doing(words):
            fetched = [array.asnumpy() for array in arrays]
            *got, a, b = self.session.remote.fetch_all(fetched, most=SMALL)
        for values, want in zip(got, expected, strict=True):
            verify(values, want, 16 * ROUND, words)
        for name, values, sent in zip("xy", (a, b), self.fed, strict=True):
            verify(values, sent, 0, f"{words} must not change its feed {name}")
        return got

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


def _check_replanning(session: Session, ctx: Context) -> Failure | None:
    """Feeds new shapes, some with as many elements as before; then the same arrays with new
    values. Returns a failure if all values are right, but a run without new shapes allocates."""
    graph, wasteful = _Graph(session, ctx), None
    rows, columns = ctx.sizes(120, 9)
    for shape in ((33, 5), (rows, columns + 9), (columns + 9, rows), (3, 2), (33, 5), (6,)):
        graph.run(shape, f"relu(x * 2 + y), first run with {shape}")
        for number in range(int(ctx.random.integers(1, 4))):
            before = session.allocations()
            which = "second" if number == 0 else "later"
            graph.run(shape, f"relu(x * 2 + y), {which} run with {shape}", fresh=False)
            grown = session.allocations() - before
            if grown and wasteful is None:
                arrays = f"{grown} array{'s' * (grown != 1)}"
                wasteful = Failure(f"a second run with shapes {shape} allocates {arrays}")
    return wasteful


def _run_on_device(session: Session, executor: Any, feeds: Mapping[Any, Any]) -> Any:
    """executor.run while no array can be copied to the host; its results lie on the GPU."""
    asnumpy, session.nd.NDArray.asnumpy = session.nd.NDArray.asnumpy, None
    try:
        results = executor.run(feeds)
        session.remote.flush()
    finally:  # in a student's own process other checks follow
        session.nd.NDArray.asnumpy = asnumpy
        with contextlib.suppress(ChildError):
            session.remote.flush()
    devices = session.integers([results[i].ctx.device_type for i in range(2)])
    if devices != [_GPU, _GPU]:
        raise Failure("the executor was made for the GPU but returns an array on the CPU")
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
    """Checks values that are read again later, beside a larger value, with shapes of equal size."""
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
        session.feed(a, b)
        with session.remote.doing(", and ".join(words)):
            results = executor.run({x: a, y: b}, convert_to_numpy_ret_vals=True)
            got = session.remote.fetch_all([results[i] for i in range(2)], most=SMALL)
        for values, want, what, fed_to in zip(got, expected, words, (a, b), strict=True):
            verify(values, want, 64 * ROUND, what)
            session.require_made([values], GpuWork(what, [fed_to], 5, launches=3))


def _note_lending(
    session: Session, words: str, kept: dict[str, Array], expected: list[Array]
) -> None:
    right = {f"result_{i}": (v, np.full(v.shape, 64 * ROUND)) for i, v in enumerate(expected)}
    lines = (_LENDING % (len(kept) // 2)).splitlines()
    session.note(lambda: Call(words, lines, kept, right))


_NODES = 9  # of the longest
_CHAIN = """\
from dlsys import autodiff as ad, ndarray
x, y = ad.Variable(name="x"), ad.Variable(name="y")
%s
executor = ad.Executor([%s], ctx=ndarray.gpu(0))
values = executor.run({x: data["x"], y: data["y"]}, True)
got = {f"result_{i}": values[i] for i in range(len(values))}"""


def _check_chain(
    session: Session,
    words: str,
    code: str,
    asked: list[Any],
    fed: dict[Any, Array],
    right: list[tuple[Array, Any]],
) -> None:
    """Runs one graph.

    Args:
        code: lines that make the graph of `x` and `y`; the last line names the wanted nodes.
        fed: x and y.
        right: (expected, bound) of each result.
    """
    values = list(fed.values())
    body = (_CHAIN % tuple(code.rsplit("\n", 1))).splitlines()
    expected = {
        f"result_{i}": (want, np.broadcast_to(bound, want.shape))
        for i, (want, bound) in enumerate(right)
    }
    session.note(lambda: Call(words, body, dict(zip("xy", values, strict=True)), expected))
    session.feed(*values)
    executor = session.autodiff().Executor(asked, ctx=session.nd.gpu(0))
    with session.remote.doing(words):
        results = executor.run(fed, convert_to_numpy_ret_vals=True)
        most = room(want for want, _ in right)
        got = session.remote.fetch_all([results[i] for i in range(len(asked))], most=most)
    for number, (value, (want, bound)) in enumerate(zip(got, right, strict=True)):
        verify(value, want, bound, f"{words}: result {number + 1} of {len(asked)}")
    session.require_made(got, GpuWork(words, values, _NODES))


#: Rows of a product that a real GPU can't have in work all at once: what is overwritten too early
#: is read.
_ROWS_IN_WAVES = 2200


def _check_products(session: Session, ctx: Context) -> None:
    """Checks that no product of square matrices is written over its inputs. Each column of y holds
    one value, so that the right values of large products are known at once, and an overwritten
    column shows."""
    ad, x, y = session.autodiff(), session.variable("x"), session.variable("y")
    is_real = ctx.backend == "cuda" and not ctx.watched
    size = (_ROWS_IN_WAVES if is_real else 129) + ctx.sizes(9)[0]
    a, scales = ctx.uniform((size, size)), ctx.uniform((size,), 0.5, 1)
    order = np.argsort(ctx.uniform((size,)))
    b = np.zeros((size, size), np.float32)
    b[order, np.arange(size)] = scales
    product, want = x, a.astype(np.float64)
    for _ in range(3):
        product, want = ad.matmul_op(product, y), want[:, order] * scales
    near = 4 * ROUND * np.abs(want)
    code = "a = ad.matmul_op(x, y)\nb = ad.matmul_op(a, y)\nad.matmul_op(b, y)"
    words = f"x @ y @ y @ y with x and y of shape {(size, size)}"
    try:
        _check_chain(session, words, code, [product], {x: a, y: b}, [(want, near)])
    except Failure as failure:
        failure.hint = (
            "a node's memory is free only after the last node that reads it was computed, "
            "not for that node itself: a product must not overwrite its own input"
        )
        raise


def _check_evaluated(session: Session, ctx: Context) -> None:
    """Asks for every second node of a chain: other nodes may not be written over them."""
    x, y = session.variable("x"), session.variable("y")
    shape = ctx.sizes(60, 9)
    a, b = ctx.uniform(shape), ctx.uniform(shape)
    node, want, asked, right = x + y, a.astype(np.float64) + b, [], []
    for _ in range(4):
        node, want = (node + 1) * 0.5, (want + 1) * 0.5
        asked.append(node)
        right.append((want, 64 * ROUND))
    lines = ["n0 = x + y", *[f"n{i + 1} = (n{i} + 1) * 0.5" for i in range(4)], "n1, n2, n3, n4"]
    words = f"n1 to n4, where n0 = x + y and each next is (last + 1) * 0.5, with shape {shape}"
    try:
        _check_chain(session, words, "\n".join(lines), asked, {x: a, y: b}, right)
    except Failure as failure:
        failure.hint = (
            "an evaluated node keeps its memory to the end of the run: no other node may reuse it"
        )
        raise


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
    """Checks that the results of one executor stay until its own next run."""
    shape = ctx.sizes(60, 9)
    first, second = _Graph(session, ctx), _Graph(session, ctx)
    results, expected = first.run(shape, "relu(x * 2 + y) on one executor")
    second.run(shape, "relu(x * 2 + y) on another executor")
    first.verify(results, expected, "relu(x * 2 + y), after another executor has run,")


CHECKS = declared(globals())
