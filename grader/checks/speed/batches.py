"""A child that carries out batches of calls of one kernel, on arrays whose contents the parent
knows without keeping them.

What a submission could gain by, and what stands against it:

- Its own clock: the batch is timed here, from sending one word to the child until the device
  has been waited for. Everything else was sent before. What a batch costs beside its calls is
  measured in the reference's child alone. Events on the device are a second figure
  alone: they live in the child's process, which may say of them what it likes, and an event that
  is shared with another process carries no time.
- Not doing the work, now and then: of every batch some calls, drawn by lot and in no way
  different for the kernel, have a part of their output set aside behind them, in the device's
  own order. The parent verifies it when the clock has stopped.
- Results that are kept: before every call a few numbers of its input change, at a place drawn by
  lot, which a verified part always covers. To find the place is to read the input, which is the
  work of all kernels here but a matrix product; its matrices meet each other only once.
- What is left in the L2 cache: arrays take turns, and between two calls with the same one goes
  more traffic than the cache holds. So nothing has to be flushed between two calls, at a cost
  that would have to be measured in the child and subtracted. Before a batch a buffer larger than
  the cache is written, and the part of the cache that a process may reserve is given up.
- Sizes that are known: the number of rows is drawn by lot.

A library that replaces the runtime's own functions in its process, to do the work late and for
the verified parts alone, can't be told from here. Nothing that is timed in the student's process
is proof against that; what it must guess is which parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.checks.harness.answers import SMALL
from grader.checks.harness.compare import Array, Failure, verify
from grader.checks.harness.context import Session
from grader.checks.speed.clock import SHORT, Lap
from grader.student.proxy import Proxy

#: Numbers that change before every call: as many floats, in one row.
FRESH = 64
#: Calls of a batch that are verified: the same in a short and in a long one.
KEPT = 2
#: Outputs that take turns.
OUTPUTS = 2
#: Rows of the output that are set aside behind a verified call.
WINDOW_ROWS = 8
#: cudaMemcpyDeviceToDevice, cudaLimitPersistingL2CacheSize.
_DEVICE_TO_DEVICE, _PERSISTING = 3, 6

_LIBRARY = "dlsys._base"


class Sheet:
    """The contents of a matrix on the device: a block of rows, repeated from some row on, and the
    rows that have changed since."""

    def __init__(self, block: Array, first: int, rows: int) -> None:
        """Row i is row (first + i) of `block`, modulo its length."""
        self.block, self.first, self.count = block, first, rows
        self._changed: dict[int, Array] = {}
        self._wide: Array | None = None
        self._sums: dict[Callable[[Array], Array], Array] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.count, self.block.shape[1]

    def change(self, row: int, column: int, values: Array) -> None:
        """Writes `values` into a row, starting at a column."""
        changed = self.rows(row, row + 1)[0]
        changed[column : column + len(values)] = values
        self._changed[row] = changed
        self._wide = None

    def rows(self, start: int, stop: int) -> Array:
        """A copy of some rows."""
        found = self.block[(self.first + np.arange(start, stop)) % len(self.block)]
        for row in self._changed.keys() & range(start, stop):
            found[row - start] = self._changed[row]
        return np.asarray(found)

    def wide(self) -> Array:
        """The whole matrix in float64; read only."""
        if self._wide is None:
            self._wide = self.rows(0, self.count).astype(np.float64)
        return self._wide

    def row_sums(self, of: Callable[[Array], Array] = np.asarray) -> Array:
        """Sums over the columns, in float64, of `of(row)`."""
        places = (self.first + np.arange(self.count)) % len(self.block)
        sums = of(self.block.astype(np.float64)).sum(axis=1)[places]
        for row, changed in self._changed.items():
            sums[row] = of(changed.astype(np.float64)).sum()
        return np.asarray(sums)

    def column_sums(self, of: Callable[[Array], Array] = np.asarray) -> Array:
        """Sums over the rows, in float64, of `of(row)`."""
        if of not in self._sums:
            places = (self.first + np.arange(self.count)) % len(self.block)
            often = np.bincount(places, minlength=len(self.block)).astype(np.float64)
            self._sums[of] = often @ of(self.block.astype(np.float64))
        sums = self._sums[of]
        for row, changed in self._changed.items():
            before = self.block[(self.first + row) % len(self.block)]
            sums = sums + (of(changed.astype(np.float64)) - of(before.astype(np.float64)))
        return np.asarray(sums)


@dataclass(frozen=True)
class TimedCall:
    """A kernel, and the matrices that it is timed on.

    Attributes:
        kernel: its name in gpu_op.
        function: of the C interface.
        inputs: shape of each input; in the call they come first.
        out: shape of the output.
        arguments: what the C function takes, from the handles of the inputs and of the output.
        judge: gives rows start to stop of the output, and the bound of their error.
        traffic: bytes that must be read and written.
        operations: additions and multiplications.
        pool: how many arrays of each input take turns; of the outputs, two do.
        block: rows of the block that an input repeats; 0: each input has contents of its own.
        most: the long batch has at most so many calls more than the short one.
        whole: whether each number of the input affects all of the output, which is verified whole.
    """

    kernel: str
    function: str
    inputs: tuple[tuple[int, int], ...]
    out: tuple[int, int]
    arguments: Callable[[list[Any], Any], list[Any]]
    judge: Callable[[list[Sheet], int, int], tuple[Array, Any]]
    traffic: float
    operations: float
    pool: int
    block: int = 0
    most: int = 64
    whole: bool = False

    @property
    def memory(self) -> int:
        """Bytes on the device for the arrays of one child."""
        inputs = sum(rows * columns for rows, columns in self.inputs)
        return 4 * (self.pool * inputs + OUTPUTS * self.out[0] * self.out[1])

    @property
    def text(self) -> str:
        """The call in words."""
        return f"gpu_op.{self.kernel}({', '.join(map(str, self.inputs))}; out {self.out})"


def pairs(pool: int, inputs: int, number: int) -> list[int]:
    """The numbers of the arrays that call `number` takes for each input. The next call takes
    others, and with two inputs no pair repeats in the first pool**2 calls."""
    turn = number // pool
    return [(number + turn * position) % pool for position in range(inputs)]


@dataclass(frozen=True)
class _Placed:
    """An NDArray in the child, its handle, and its address on the device."""

    array: Any
    handle: Any
    at: int


@dataclass
class _Kept:
    """A part of an output to verify: of which call, and what it must hold."""

    call: int
    expected: Array
    bound: Any


class TimedChild:
    """One child with its arrays; see the module.

    Args:
        session: the child.
        case: what is called.
        random: draws the random choices.
        flush: bytes to write before a batch, more than the L2 cache holds.
        verified: whether outputs are verified; the reference's need not be.
        clock: gives seconds.
    """

    def __init__(
        self,
        session: Session,
        case: TimedCall,
        random: np.random.Generator,
        flush: int,
        verified: bool = True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.session, self.case, self.random = session, case, random
        self.verified, self.clock, self.flush = verified, clock, flush
        self.remote, self.device = session.remote, session.device
        self.number = 0  # of calls so far
        self._take_tools()
        with self.remote.doing("laying out arrays"):
            self._lay_out()

    # What the child needs, taken before any call of the submission.

    def _take_tools(self) -> None:
        remote, ctypes = self.remote, self.remote.import_("ctypes")
        library = remote.import_(_LIBRARY)._LIB
        functools, itertools = remote.import_("functools"), remote.import_("itertools")
        self._partial, self._starmap = functools.partial, itertools.starmap
        self._map = remote.import_("builtins").map
        self._last = remote.import_("collections").deque
        self._call = remote.import_("operator").methodcaller("__call__")
        self._list = remote.builtin("list")
        # Raw functions: Python's share of a call must stay far below the kernel's.
        self._copy, self._fill = library["cudaMemcpyAsync"], library["cudaMemset"]
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self._copy.argtypes = [pointer, pointer, size, number, pointer]
        self._fill.argtypes = [pointer, number, size]
        self._launch = library[self.case.function]
        self._limit = library["cudaDeviceSetLimit"]
        self._limit.argtypes = [number, size]
        self._forget = library["cudaGetLastError"]
        self._take_events(ctypes, library)

    def _take_events(self, ctypes: Any, library: Any) -> None:
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self._events:
            library["cudaEventCreate"](ctypes.byref(event))
        self._record, self._elapsed = library["cudaEventRecord"], library["cudaEventElapsedTime"]
        self._milliseconds = ctypes.c_float()
        self._milliseconds_at = ctypes.byref(self._milliseconds)

    def _lay_out(self) -> None:
        """Makes the arrays, and fills them by copies on the device, since a pipe is slow."""
        case, inputs = self.case, len(self.case.inputs)
        out = case.out[1:] if case.whole else case.out
        shapes: list[tuple[int, ...]] = [s for s in case.inputs for _ in range(case.pool)]
        shapes += [out] * OUTPUTS
        shapes.append((KEPT, self._window * case.out[1]))
        shapes += [(SHORT + case.most, FRESH), (self.flush // 4,)]
        placed = self._place(shapes)
        self._pools = [placed[i * case.pool : (i + 1) * case.pool] for i in range(inputs)]
        self._outs = placed[inputs * case.pool :][:OUTPUTS]
        self._aside, self._fresh, self._buffer = placed[-3:]
        self._sheets = [
            self._fill_pool(pool, *shape)
            for pool, shape in zip(self._pools, case.inputs, strict=True)
        ]

    def _place(self, shapes: list[tuple[int, ...]]) -> list[_Placed]:
        gpu = self.session.nd.gpu(0)
        arrays = [self.session.nd.empty(shape, ctx=gpu) for shape in shapes]
        return self._located(arrays)

    def _located(self, arrays: list[Any]) -> list[_Placed]:
        handles = [array.handle for array in arrays]
        places = self.session.integers([handle.contents.data for handle in handles])
        return [_Placed(*each) for each in zip(arrays, handles, places, strict=True)]

    @property
    def _window(self) -> int:
        return self.case.out[0] if self.case.whole else min(WINDOW_ROWS, self.case.out[0])

    def _fill_pool(self, pool: list[_Placed], rows: int, columns: int) -> list[Sheet]:
        """Fills the arrays of an input: all from one block, or each with contents of its own."""
        sheets: list[Sheet] = []
        uploaded: list[_Placed] = []
        for target in pool:
            if not sheets or not self.case.block:
                shape = (self.case.block or rows, columns)
                block = self.random.random(shape, np.float32) * 2 - 1
                uploaded = self._located([self.session.upload(block)])
            first = int(self.random.integers(len(block))) if self.case.block else 0
            sheets.append(Sheet(block, first, rows))
            self._tile(target.at, uploaded[0].at, sheets[-1])
        return sheets

    def _tile(self, target: int, source: int, sheet: Sheet) -> None:
        """Copies a block on the device as often as it fits, as the sheet describes."""
        row, plan, stride = 0, [], 4 * sheet.block.shape[1]
        while row < sheet.count:
            begin = (sheet.first + row) % len(sheet.block)
            count = min(len(sheet.block) - begin, sheet.count - row)
            to, at = target + row * stride, source + begin * stride
            plan.append([self._copy, to, at, count * stride, _DEVICE_TO_DEVICE, None])
            row += count
        self._run(self._planned(plan))
        self.device.finish("laying out arrays")  # before the block is freed

    def _planned(self, plan: list[list[Any]]) -> Proxy:
        """A list, in the child, of calls that are ready to be made."""
        return self._list(self._starmap(self._partial, plan))

    def _run(self, planned: Proxy) -> None:
        """Makes the planned calls by one instruction, so that their number adds no traffic on the
        pipe."""
        self._last(self._map(self._call, planned), 0)

    # A batch.

    def batch(self, calls: int) -> Lap:
        """Times a batch, and verifies some calls of it.

        Raises:
            Failure: an output is wrong, or the device has an error.
        """
        text = f"{calls} calls of {self.case.text} in a row"
        with self.remote.doing(f"preparing {text}"):
            plan, kept = self._compose(calls)
            planned = self._planned(plan)
            self._clear_cache()
            self.device.finish(f"preparing {text}")
        with self.remote.doing(text):
            self.remote.flush()
            started = self.clock()
            self._run(planned)
            code = self.remote.fetch(self.device.synchronize())
            wall = self.clock() - started
        self.device.require_clean(code, text)
        device = self._event_seconds()
        self._verify(kept)
        return Lap(wall, device)

    def _clear_cache(self) -> None:
        self._limit(_PERSISTING, 0)
        self._forget()  # a GPU whose cache can't be reserved refuses
        self._fill(self._buffer.at, 0xFF, self.flush)

    def _compose(self, calls: int) -> tuple[list[list[Any]], list[_Kept]]:
        """The calls of a batch with the changes before, and the copies behind some of them."""
        lots = set(self.random.choice(calls, min(KEPT, calls), replace=False).tolist())
        fresh = self.random.random((SHORT + self.case.most, FRESH), np.float32) * 2 - 1
        self._fresh.array[:] = fresh
        plan: list[list[Any]] = [[self._record, self._events[0], None]]
        kept: list[_Kept] = []
        for number in range(calls):
            chosen = pairs(self.case.pool, len(self.case.inputs), self.number)
            row = self._change(plan, chosen[0], number, fresh[number])
            out = self._outs[self.number % OUTPUTS]
            handles = [pool[i].handle for pool, i in zip(self._pools, chosen, strict=True)]
            arguments = self.case.arguments(handles, out.handle)
            plan.append([self._launch, *arguments])
            if number in lots:
                kept.append(self._set_aside(plan, len(kept), chosen, row, out))
            self.number += 1
        plan.append([self._record, self._events[1], None])
        return plan, kept

    def _change(self, plan: list[list[Any]], which: int, number: int, fresh: Array) -> int:
        """Changes some numbers of the first input; returns their row."""
        sheet, array = self._sheets[0][which], self._pools[0][which]
        rows, columns = sheet.shape
        row = int(self.random.integers(rows))
        values = fresh[: min(FRESH, columns)]
        column = int(self.random.integers(columns - len(values) + 1))
        sheet.change(row, column, values)
        to = array.at + 4 * (row * columns + column)
        source = self._fresh.at + 4 * FRESH * number
        plan.append([self._copy, to, source, 4 * len(values), _DEVICE_TO_DEVICE, None])
        return row

    def _set_aside(
        self, plan: list[list[Any]], place: int, chosen: list[int], row: int, out: _Placed
    ) -> _Kept:
        """Copies the rows around the changed one from the output to another place."""
        rows, columns = self.case.out
        low, high = max(0, row - self._window + 1), min(row, rows - self._window)
        start = 0 if self.case.whole else int(self.random.integers(low, high + 1))
        size = 4 * self._window * columns
        to, source = self._aside.at + place * size, out.at + 4 * start * columns
        plan.append([self._copy, to, source, size, _DEVICE_TO_DEVICE, None])
        sheets = [pool[i] for pool, i in zip(self._sheets, chosen, strict=True)]
        if not self.verified:
            return _Kept(self.number, np.empty(0), 0)
        expected, bound = self.case.judge(sheets, start, start + self._window)
        return _Kept(self.number, expected, bound)

    def _event_seconds(self) -> float | None:
        """Seconds between the events, as the child reports them."""
        self._elapsed(self._milliseconds_at, *self._events)
        said = self.remote.fetch(self._milliseconds.value)
        return said / 1e3 if type(said) is float and np.isfinite(said) else None

    def _verify(self, kept: list[_Kept]) -> None:
        if not self.verified:
            return
        text = f"a call of {self.case.text} among many in a row"
        size = self._window * self.case.out[1]
        got = self.remote.fetch(self._aside.array.asnumpy(), most=SMALL + 4 * KEPT * size)
        if not isinstance(got, np.ndarray) or got.shape != (KEPT, size):
            raise Failure(f"the process did not return the output of {text}")
        for place, each in enumerate(kept):
            found = got[place].reshape(each.expected.shape)
            try:
                verify(found, each.expected, each.bound, text)
            except Failure as failure:
                failure.hint = "; ".join(filter(None, (
                    failure.hint,
                    "do all of the work in every call: the input changes between calls, and "
                    "randomly chosen calls are verified",
                )))  # fmt: skip
                raise
