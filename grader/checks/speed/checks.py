"""Checks of speed: a kernel's, relative to the reference's, timed in turn on the same GPU.

A row of a rubric may give points, from `zero_ratio` of the reference's speed up to `full_ratio`.
Without these, or without points, the speed is only shown. A time that can't be true makes the check
an error: the points stay open until an instructor has looked.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import ROUND, Array, Failure, sum_bound
from grader.checks.harness.context import Session
from grader.checks.harness.outcomes import Flag, NotHere
from grader.checks.harness.traits import Traits, declared
from grader.checks.speed import gpu
from grader.checks.speed.batches import Sheet, TimedCall, TimedChild
from grader.checks.speed.clock import Lap, Race, figures, race, reference_alone, require_plausible
from grader.student.remote import ChildError

#: The backends on which the clock means something.
BACKENDS = ("cuda",)
#: Seconds to wait for another grader that times on the same GPU; its own, beside the check's.
TURN = 600.0
#: The buffer that is written before a batch where the size of the L2 cache is not known.
UNKNOWN_L2 = 256 << 20

Random = np.random.Generator


def check(case: Callable[[ChildContext], TimedCall]) -> Callable[[ChildContext], None]:
    """Decorator that makes a check of a function that gives a `TimedCall`."""

    @functools.wraps(case)
    def timed(ctx: ChildContext) -> None:
        if ctx.backend not in BACKENDS:
            raise NotHere("speed is measured on a real GPU only")
        ctx.require_harmless()  # code that reaches into its process could do the work late
        time_beside(ctx, case(ctx))

    timed.traits = Traits(timed=frozenset(("cuda", "emulated")))  # type: ignore[attr-defined]
    return timed


def rows_of(ctx: ChildContext, on_gpu: int, emulated: int) -> int:
    """A random number of rows, up to one in sixteen fewer; few on the emulated GPU."""
    most = on_gpu if ctx.backend == "cuda" else emulated
    return most - int(ctx.random.integers(most // 16 + 1))


def columns_of(ctx: ChildContext, on_gpu: int) -> int:
    """A number of columns; few on the emulated GPU."""
    return on_gpu if ctx.backend == "cuda" else 72


def block_of(ctx: ChildContext, on_gpu: int) -> int:
    """The rows of a block of 16 MiB. More would take long through the pipe."""
    return on_gpu if ctx.backend == "cuda" else 7


@check
def speed_matrix_multiply(ctx: ChildContext) -> TimedCall:
    """matrix_multiply is timed beside the reference, on matrices of about 2,048 x 2,048"""
    m, k, n = rows_of(ctx, 2048, 48), columns_of(ctx, 2048), columns_of(ctx, 2048)
    # 16 MiB each. As many calls as there are pairs: no two matrices meet twice.
    return TimedCall(
        "matrix_multiply", "DLGpuMatrixMultiply", ((m, k), (k, n)), (m, n),
        lambda inputs, out: [inputs[0], False, inputs[1], False, out], product,
        traffic=4.0 * (m * k + k * n + m * n), operations=2.0 * m * k * n,
        pool=10 if ctx.backend == "cuda" else 4, most=10 if ctx.backend == "cuda" else 4,
    )  # fmt: skip


def product(sheets: list[Sheet], start: int, stop: int) -> tuple[Array, Any]:
    """Some rows of a product, and the bound of their errors."""
    a, b = sheets[0].rows(start, stop).astype(np.float64), sheets[1].wide()
    return a @ b, sum_bound(len(b), np.abs(a) @ np.abs(b))


@check
def speed_softmax(ctx: ChildContext) -> TimedCall:
    """softmax is timed beside the reference, on about 65,536 rows of 1,024"""
    rows, columns = rows_of(ctx, 65536, 48), columns_of(ctx, 1024)
    return TimedCall(
        "softmax", "DLGpuSoftmax", ((rows, columns),), (rows, columns),
        lambda inputs, out: [inputs[0], out], softmax,
        traffic=8.0 * rows * columns, operations=0, pool=2, block=block_of(ctx, 4096),
        most=most_of(ctx),
    )  # fmt: skip


def softmax(sheets: list[Sheet], start: int, stop: int) -> tuple[Array, Any]:
    """Softmax of some rows, and the bound of its errors."""
    x = sheets[0].rows(start, stop).astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    # The fast __expf is allowed: with arguments of up to 2 it errs by about 5 roundings of
    # float32, twice for the sum and the value.
    return expected, sum_bound(x.shape[1], expected) + 20 * ROUND * expected


def most_of(ctx: ChildContext) -> int:
    """The most calls of a batch."""
    return 64 if ctx.backend == "cuda" else 6


@check
def speed_matrix_elementwise_add(ctx: ChildContext) -> TimedCall:
    """matrix_elementwise_add is timed beside the reference, on about 16,384 x 4,096 elements"""
    shape = rows_of(ctx, 16384, 48), columns_of(ctx, 4096)
    return TimedCall(
        "matrix_elementwise_add", "DLGpuMatrixElementwiseAdd", (shape, shape), shape,
        lambda inputs, out: [*inputs, out], _sum,
        traffic=12.0 * shape[0] * shape[1], operations=1.0 * shape[0] * shape[1], pool=2,
        block=block_of(ctx, 1024), most=most_of(ctx),
    )  # fmt: skip


def _sum(sheets: list[Sheet], start: int, stop: int) -> tuple[Array, Any]:
    expected = np.add(*[sheet.rows(start, stop) for sheet in sheets])
    return expected, 2 * ROUND * np.abs(expected)


@check
def speed_reduce_sum_axis_zero(ctx: ChildContext) -> TimedCall:
    """reduce_sum_axis_zero is timed beside the reference, on about 16,384 x 4,096 elements"""
    rows, columns = rows_of(ctx, 16384, 48), columns_of(ctx, 4096)
    return TimedCall(
        "reduce_sum_axis_zero", "DLGpuReduceSumAxisZero", ((rows, columns),), (1, columns),
        lambda inputs, out: [inputs[0], out], _column_sums,
        traffic=4.0 * rows * columns, operations=1.0 * rows * columns, pool=3,
        block=block_of(ctx, 1024), most=most_of(ctx), whole=True,
    )  # fmt: skip


def _column_sums(sheets: list[Sheet], start: int, stop: int) -> tuple[Array, Any]:
    magnitude = sheets[0].column_sums(np.abs)
    return sheets[0].column_sums(), sum_bound(sheets[0].count, magnitude)


# What is timed, and what is made of it.


def time_beside(ctx: ChildContext, case: TimedCall) -> None:
    """Times a call; writes the figures to the facts, and sets the share of the points."""
    device = gpu.find() if ctx.backend == "cuda" else gpu.Gpu()
    facts: dict[str, Any] = {"case": case.text, "notes": list(device.notes)}
    ctx.facts["speed"] = facts
    flush = 2 * (device.properties.l2 or UNKNOWN_L2) if ctx.backend == "cuda" else 4096
    _require_memory(2 * (case.memory + flush), device.properties.memory)
    with _turn(device.uuid) as waited:
        facts["waited_seconds"] = round(waited, 3)
        facts["gpu"] = {"uuid": device.uuid, **dataclasses.asdict(device.properties)}
        facts["gpu"]["before"] = device.state()
        found = _race(ctx, case, flush)
        facts["gpu"]["after"] = device.state()
    floor = device.properties.floor(case.traffic, case.operations)
    facts |= {**figures(found), "floor_us": 1e6 * floor}
    facts["notes"] += _notes(facts)
    limit = "the memory" if case.operations < case.traffic * 2 else "the arithmetic"
    require_plausible(found, floor, limit)
    facts["reached"] = _reached(case, facts["student_us"]["median"] / 1e6)
    facts["summary"] = summary(case, facts)
    score(ctx, found.ratio)


def _require_memory(wanted: int, there_is: int) -> None:
    if 0 < there_is < 1.25 * wanted:
        raise NotHere(
            f"speed is measured where a GPU has {1.25 * wanted / 2**30:.1f} GiB of memory; "
            f"this one has {there_is / 2**30:.1f}"
        )


@contextmanager
def _turn(uuid: str) -> Iterator[float]:
    """Waits for this process's turn on the GPU. If it does not come, nobody is to blame."""
    with ExitStack() as stack:
        try:
            waited = stack.enter_context(gpu.turn(uuid, TURN))
        except gpu.GpuBusy as busy:
            raise Flag(str(busy)) from busy
        yield waited


class _Reference:
    """The reference's timed child. Its failures are not the submission's."""

    def __init__(self, session: Session, case: TimedCall, random: Random, flush: int) -> None:
        with self._ours():
            self._timed = TimedChild(session, case, random, flush, verified=False)

    def batch(self, calls: int) -> Lap:
        with self._ours():
            return self._timed.batch(calls)

    @contextmanager
    def _ours(self) -> Iterator[None]:
        try:
            yield
        except (Failure, ChildError) as error:
            raise Flag(f"the reference failed: {error}") from error


def _race(ctx: ChildContext, case: TimedCall, flush: int) -> Race:
    with _reference(ctx) as other, other.session() as session:
        reference = _Reference(session, case, ctx.random, flush)
        alone = reference_alone(reference, case.most)
        with ctx.session() as own:
            student = TimedChild(own, case, ctx.random, flush)
            return race(student, reference, alone, case.most)


@contextmanager
def _reference(ctx: ChildContext) -> Iterator[ChildContext]:
    """A context like this one, over the reference's tree."""
    if ctx.reference is None:
        raise Flag("this run has no reference to time beside")
    with ctx.reference() as tree:
        yield dataclasses.replace(ctx, tree=tree)


def _notes(facts: dict[str, Any]) -> list[str]:
    """What makes the figures less certain."""
    notes = []
    slow = facts["gpu"]["after"].get("throttling")
    if slow:
        notes.append(f"the GPU throttled its clocks: {', '.join(slow)}")
    events = facts.get("student_events_us")
    if events and facts["student_us"]["median"] > 1.25 * events["median"]:
        notes.append("the CPU could not keep the GPU busy: a launch takes longer than the kernel")
    ratio = facts.get("ratio")
    if ratio and ratio["max"] > 1.2 * ratio["min"]:
        notes.append(f"the ratio varies from {ratio['min']:.2f} to {ratio['max']:.2f}")
    return notes


def _reached(case: TimedCall, seconds: float) -> dict[str, float]:
    """The memory bandwidth and the arithmetic rate of a call that takes so many seconds."""
    return {
        "gigabytes_per_second": case.traffic / seconds / 1e9,
        "gigaflops_per_second": case.operations / seconds / 1e9,
    }


def summary(case: TimedCall, facts: dict[str, Any]) -> str:
    """The figures in one line, for the report."""
    by_memory = case.operations < case.traffic * 2
    rate = facts["reached"]["gigabytes_per_second" if by_memory else "gigaflops_per_second"]
    ratio, own, other = facts["ratio"], facts["student_us"], facts["reference_us"]
    floor = f", floor {facts['floor_us']:,.1f} us" if facts["floor_us"] else ""
    notes = "".join(f"; {note}" for note in facts["notes"])
    return (
        f"{case.kernel}: {ratio['median']:.2f} times the reference's speed "
        f"({ratio['min']:.2f} to {ratio['max']:.2f}), {own['median']:,.1f} us against "
        f"{other['median']:,.1f} us{floor}, {rate:,.0f} {'GB/s' if by_memory else 'GFLOP/s'}{notes}"
    )


def score(
    ctx: ChildContext,
    ratio: float,
    hint: str = "how long would it take to move the bytes alone? see `cost` above the kernel",
) -> None:
    """The share of the points. A share of 0 is a failure."""
    row = next(row for row in ctx.rubric.rows if row.name == ctx.check)
    ctx.share = row.share(ratio)
    if ctx.share == 0:
        message = f"{ratio:.2f} of the reference's speed; points begin above {row.zero_ratio:g}"
        raise Failure(message, hint)


CHECKS = declared(globals())
