"""Checks that an executor gives right values for new shapes. grader.checks.memory_plan checks its
memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from grader.checks.harness import unwritten
from grader.checks.harness.answers import SMALL
from grader.checks.harness.call_script import Call
from grader.checks.harness.compare import ROUND, Array, Failure, sum_bound, verify
from grader.checks.harness.context import Context, GpuWork, Session
from grader.checks.harness.traits import check, declared

Shape = tuple[int, ...]

_NODES = 5  # of the larger graph
_HINT = (
    "when the shapes of feeds change, infer all shapes and plan the memory again: a plan "
    "fits its shapes alone"
)
_FIRST = (
    "no shape has changed yet: do the checks of the ops and of the kernels pass? Then look "
    "at the plan: memory is free after its last reader, and that of a result never"
)
_SCRIPT = """\
from dlsys import autodiff as ad, ndarray
nodes = {name: ad.Variable(name=name) for name in %r}
%s
executor = ad.Executor([%s], ctx=%s)
for run in range(%d):
    values = executor.run({node: data[f"{name}_{run}"] for name, node in nodes.items()}, True)
got = {f"result_{i}": values[i] for i in range(len(values))}"""


class _Executor:
    """One executor that is fed several times.

    Attributes:
        words: what it computes.
        made: the shapes that it was fed so far, in words.
    """

    def __init__(self, session: Session, names: str, words: str, lines: str, on_gpu: bool) -> None:
        self.session, self.words, self.lines, self.on_gpu = session, words, lines, on_gpu
        self.nodes = {name: session.variable(name) for name in names}
        self.made: list[str] = []
        self.kept: dict[str, Array] = {}
        self.asked: list[Any] = []
        self.executor: Any = None

    def build(self, asked: list[Any]) -> None:
        """Makes the executor for these nodes."""
        gpu = self.session.nd.gpu(0) if self.on_gpu else None
        self.asked, self.executor = asked, self.session.autodiff().Executor(asked, ctx=gpu)

    def check(self, values: dict[str, Array], right: list[tuple[Array, Any]]) -> None:
        """One run.

        Args:
            values: name -> what is fed.
            right: (expected, bound) of each result.

        Raises:
            Failure: a result is wrong.
        """
        device = "the GPU" if self.on_gpu else "numpy"
        now = ", ".join(f"{name} of shape {v.shape}" for name, v in values.items())
        after = f", after {self.made[-1]}" if self.made else ""
        words = f"{self.words} on {device} with {now}{after}"
        self._note(words, values, right)
        fed = {node: values[name] for name, node in self.nodes.items()}
        self.session.feed(*values.values())
        with self.session.remote.doing(words):
            results = self.executor.run(fed, convert_to_numpy_ret_vals=True)
            sent = [results[i] for i in range(len(right))]
            got = self.session.remote.fetch_all(sent, most=SMALL)
        try:
            for value, (expected, bound) in zip(got, right, strict=True):
                verify(value, expected, bound, words)
        except Failure as failure:
            failure.hint = failure.hint or (_HINT if self.made else _FIRST)
            if not self.on_gpu:
                raise unwritten.blame(self.session, self.asked, fed, failure) from None
            raise
        if self.on_gpu:
            self.session.require_made(got, GpuWork(words, list(values.values()), _NODES))
        self.made.append(now)

    def _note(self, words: str, values: dict[str, Array], right: list[tuple[Array, Any]]) -> None:
        run = len(self.made)
        self.kept |= {f"{name}_{run}": v for name, v in values.items()}
        kept, graph, _, nodes = dict(self.kept), *self.lines.rpartition("\n")
        gpu = "ndarray.gpu(0)" if self.on_gpu else "None"
        body = (_SCRIPT % ("".join(values), graph, nodes, gpu, run + 1)).splitlines()
        expected = {
            f"result_{i}": (want, np.broadcast_to(bound, want.shape))
            for i, (want, bound) in enumerate(right)
        }
        self.session.note(lambda: Call(words, body, kept, expected))


_ELEMENTWISE = """\
total = ad.relu_op(nodes["x"] * 2 + nodes["y"])
total, total + nodes["x"]"""


def _elementwise(session: Session, on_gpu: bool) -> _Executor:
    words = "relu(x * 2 + y), and that plus x,"
    made = _Executor(session, "xy", words, _ELEMENTWISE, on_gpu)
    x, y = made.nodes.values()
    total = session.autodiff().relu_op(x * 2 + y)
    made.build([total, total + x])
    return made


def _feed_elementwise(ctx: Context, made: _Executor, shape: Shape) -> None:
    x, y = ctx.uniform(shape), ctx.uniform(shape)
    total = np.maximum(x.astype(np.float64) * 2 + y, 0)
    made.check({"x": x, "y": y}, [(total, 16 * ROUND), (total + x, 16 * ROUND)])


_LAYER = """\
product = ad.matmul_op(nodes["x"], nodes["w"])
layer = product + ad.broadcastto_op(nodes["b"], product)
layer, ad.reducesumaxiszero_op(ad.relu_op(layer))"""


def _layer(session: Session, on_gpu: bool) -> _Executor:
    ad, words = session.autodiff(), "x @ w + b, and the sum of its relu over the rows,"
    made = _Executor(session, "xwb", words, _LAYER, on_gpu)
    x, w, b = made.nodes.values()
    product = ad.matmul_op(x, w)
    layer = product + ad.broadcastto_op(b, product)
    made.build([layer, ad.reducesumaxiszero_op(ad.relu_op(layer))])
    return made


def _feed_layer(ctx: Context, made: _Executor, rows: int, inner: int, columns: int) -> None:
    x, w, b = (ctx.uniform(shape) for shape in ((rows, inner), (inner, columns), (columns,)))
    exact = [values.astype(np.float64) for values in (x, w, b)]
    layer = exact[0] @ exact[1] + exact[2]
    near = sum_bound(inner, np.abs(exact[0]) @ np.abs(exact[1]) + np.abs(exact[2]))
    total = np.maximum(layer, 0).sum(axis=0)
    summed = near.sum(axis=0) + sum_bound(rows, np.abs(layer).sum(axis=0))
    made.check({"x": x, "w": w, "b": b}, [(layer, near), (total, summed)])


@check(explained=True)
def feed_shapes(ctx: Context) -> None:
    """one executor gives the right values when shapes change, on numpy and on the GPU"""
    ctx.on_device(lambda session: _check_shapes(session, ctx))
    ctx.require_harmless()


def _check_shapes(session: Session, ctx: Context) -> None:
    rows, columns = ctx.sizes(60, 9)
    wide, narrow = columns + 9, columns
    session.device.finish("loading the library")
    for on_gpu in (False, True):
        _check_matrices(ctx, session, on_gpu, (rows, wide, narrow))
    for on_gpu in (False, True):  # vectors last: they are asked for least
        made = _elementwise(session, on_gpu)
        for shape in ((rows, wide), (wide,), (rows + 70,), (wide, rows)):
            _feed_elementwise(ctx, made, shape)
    session.device.finish("running the executor")


def _check_matrices(
    ctx: Context, session: Session, on_gpu: bool, sizes: tuple[int, int, int]
) -> None:
    rows, wide, narrow = sizes
    made = _elementwise(session, on_gpu)
    shapes = [(33, 5), (rows, wide), (wide, rows), (rows + 40, narrow), (3, 2), (33, 5)]
    for shape in shapes:
        _feed_elementwise(ctx, made, shape)
    made = _layer(session, on_gpu)
    # Batches of other sizes, as in training and validation; then other layers.
    for count in (rows, rows + 30, max(2, rows // 2), rows):
        _feed_layer(ctx, made, count, wide, narrow)
    for inner, columns in ((narrow, wide), (wide, narrow)):
        _feed_layer(ctx, made, rows, inner, columns)


CHECKS = declared(globals())
