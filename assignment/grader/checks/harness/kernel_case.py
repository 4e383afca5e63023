"""Tests a kernel: several calls on the same arrays, each with new values."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.checks.harness.answers import SMALL, room
from grader.checks.harness.call_script import Call, comma
from grader.checks.harness.compare import POISON, Array, Failure, differing, verify
from grader.checks.harness.context import Context, Session, shape_text
from grader.checks.harness.device import Guarded, require_use
from grader.checks.harness.traits import Traits
from grader.student.proxy import ChildError, Proxy

#: Arrays of at most so many floats are called with more often, and are read once more at the end.
_SMALL = 1 << 18
#: Changes of one element that are tried until one shows in the output.
_TRIES = 8
#: Bytes that a launcher may copy to the host in a call: some numbers, not an array.
_MOST_TO_HOST = 64
#: Handles of cuBLAS that the calls of a check may leave.
_MOST_HANDLES = 2
_LEFT = "the wrong values were in the output before the call: these elements were never written"
_LATE = (
    "these values become right only after the call returns: put all work on the default "
    "stream, and none into a thread"
)


@dataclass(frozen=True)
class Case:
    """A kernel, and the arrays that it is called with.

    Attributes:
        kernel: name in gpu_op.
        draw: gives fresh arguments: float32 arrays and plain values. If it gives an array twice,
            the call passes it twice.
        judge: (expected output, bound of the error) for such arguments.
        out: shape of the output, which follows the arguments.
        overwrites: index of the argument that is also the output, in place of `out`.
        in_place: whether the call passes that argument once, not once more as the output.
        explain: gives a hint for a wrong output, or "", from the output, the bound and the
            arguments.
    """

    kernel: str
    draw: Callable[[], list[Any]]
    judge: Callable[..., tuple[Any, Any]]
    out: tuple[int, ...] | None = None
    overwrites: int | None = None
    in_place: bool = False
    explain: Callable[..., str] | None = None


class KernelCheck:
    """Decorator that makes a check of a function that yields cases. The docstring is the student's
    sentence; `__wrapped__` is the function itself."""

    __name__: str
    __wrapped__: Callable[[Context], Iterator[Case]]
    traits = Traits(kernels=True, explained=True)

    def __init__(self, cases: Callable[[Context], Iterator[Case]]) -> None:
        functools.update_wrapper(self, cases)

    def __call__(self, ctx: Context) -> None:
        run(ctx, self.__wrapped__(ctx))


def run(ctx: Context, cases: Iterable[Case]) -> None:
    """Runs every case in one child. At the end, every output that was written must still be there.

    Raises:
        Failure: an output, an input, a guard zone or the error state is wrong.
    """
    with ctx.session() as session:
        if ctx.new_process:
            _require_nothing_shared(session)
        trials = []
        for case in cases:
            trial = _Trial(ctx, session, case)
            trial.run()
            if trial.is_small:
                trials.append(trial)
        time.sleep(0.03)
        session.device.finish("waiting for the device")
        memories = session.remote.fetch_all(
            [trial.output.memory.asnumpy() for trial in trials],
            most=SMALL + sum(trial.output.nbytes for trial in trials),
        )
        for trial, memory in zip(trials, memories, strict=True):
            session.note(trial.record)
            trial.require_unchanged(memory)
    ctx.require_harmless()


def _require_nothing_shared(session: Session) -> None:
    """Raises Failure if the library has variables that host and device share."""
    counts = session.remote.fetch_all(session.device.count_use())
    shared, _ = require_use([0, 0, *counts], "the library, when it was loaded,")
    if shared > _MOST_TO_HOST:
        raise Failure(
            f"src/gpu_op.cu keeps {shared:,} bytes of memory that the host shares with the device",
            "use memory from cudaMalloc alone; are there __managed__ variables?",
        )


class _Trial:
    """The arrays of one case in the child, and its calls so far. A letter stands for each array,
    the same letter for the same array."""

    def __init__(self, ctx: Context, session: Session, case: Case) -> None:
        self.ctx, self.session, self.case, self.random = ctx, session, case, ctx.random
        self.args = case.draw()
        letters: dict[int, str] = {}
        for arg in self.args:
            if isinstance(arg, np.ndarray):
                letters.setdefault(id(arg), "abc"[len(letters)])
        self.letters = [letters.get(id(arg), "") for arg in self.args]
        self._take(self.args)
        over = case.overwrites
        self.target = self.letters[over] if over is not None else "out"
        shape = case.out if over is None else self.args[over].shape
        assert shape is not None, f"{case.kernel} has no output"
        zones = not ctx.watched or (ctx.audited and ctx.now_and_then())
        self.output = Guarded(session.remote, shape, ctx.random, zones)
        # Nobody has written it: an audit sees who reads it before that.
        self.is_bare = ctx.audited and not zones and self.target not in self.values
        self.is_small = max([self.output.size, *[v.size for v in self.values.values()]]) <= _SMALL
        self.arrays: dict[str, Any] = {self.target: self.output.array}
        self.kept: dict[str, Array] = {}
        self.last: Array | None = None
        self.to_host = 0  # bytes that a call has copied there, at most
        self.text = ""
        self.record: Callable[[], Call]

    def _by_letter(self, args: list[Any]) -> dict[str, Array]:
        return {name: arg for name, arg in zip(self.letters, args, strict=True) if name}

    def run(self) -> None:
        """Makes the first call, then more calls on the same arrays with other values."""
        self._call(0)
        for number in range(1, self._calls_again() + 1):
            if self.random.random() >= 0.5 or not self._change_one():
                self._take(self.case.draw())
            self._call(number)
        self._require_frugal()  # last: that a result is wrong says more

    def _calls_again(self) -> int:
        """How many more calls. Where every byte costs time on its way, there is one now and then;
        but a real GPU gets its inputs late in those calls alone."""
        if not self.output.size:
            return 0
        if self.ctx.watched or not (self.is_small or self.ctx.backend == "cuda"):
            return int(self.ctx.now_and_then())
        return int(self.random.integers(1, 4)) if self.is_small else 1

    def _take(self, args: list[Any]) -> None:
        """Uses these arguments from now on."""
        self.args, self.values = args, self._by_letter(args)
        expected, bound = self.case.judge(*args)
        self.expected, self.bound = np.asarray(expected), bound

    def _change_one(self) -> bool:
        """Changes one element of one input, so that an output cached for a similar input is wrong.
        Returns False if none of several changes would change the output, as where relu stays 0."""
        args, expected, bound = self.args, self.expected, self.bound
        for _ in range(_TRIES):
            self._take(self._with_another(args))
            if not np.all(np.abs(self.expected - expected) <= self.bound + bound):
                return True
        return False

    def _with_another(self, args: list[Any]) -> list[Any]:
        """The arguments with a new value for one element of one of them."""
        values, fresh = self._by_letter(args), self._by_letter(self.case.draw())
        name = str(self.random.choice(list(fresh)))
        place = int(self.random.integers(fresh[name].size))
        values[name] = values[name].copy()
        values[name].reshape(-1)[place] = fresh[name].reshape(-1)[place]
        return [
            values[letter] if letter else arg
            for letter, arg in zip(self.letters, args, strict=True)
        ]

    def _describe(self, number: int) -> str:
        names = [shape_text(arg) for arg in self.args]
        over = self.case.overwrites
        target = f"; out {self.case.out}" if over is None else f"; over argument {over}"
        words = comma(names) + ("" if self.case.in_place else target)
        again = f", call {number + 1} with the same arrays" if number else ""
        return f"gpu_op.{self.case.kernel}({words}){again}"

    def _call(self, number: int) -> None:
        """Makes one call, reads its output, and judges it."""
        self.text = self._describe(number)
        expected, bound = self.expected, self.bound
        content = self._content(number)
        self.record = lambda: self._recorded(number + 1, expected, bound)
        self.session.note(self.record)
        with self.session.remote.doing(self.text):
            first, code, memory, *inputs = self._carry_out(number, content)
        got = self.output.inside(first, self.text)
        self.ctx.keep(self.text, got)
        try:
            verify(got, expected, bound, self.text)
        except Failure as failure:
            if self._comes_late(memory, expected, bound):
                failure.hint = _LATE
            elif self._was_left(got, content):
                failure.hint = _LEFT
            elif self.case.explain:
                failure.hint = self.case.explain(got, bound, *self.args) or failure.hint
            raise
        self.output.require_intact(first, content, self.text)
        self._require_inputs(inputs)
        self.session.device.require_clean(code, self.text)
        self.last = first
        self.require_unchanged(memory)

    def _content(self, number: int) -> Array:
        """What lies in and around the output before the call, unless the output is an input too. In
        the first call this is NaN, which best shows what was not written; in later calls ordinary
        numbers, so that no kernel can tell from them what to compute. Kept with all other inputs of
        the call."""
        if self.target in self.values:
            content = self.output.surround(self.values[self.target])
        elif number == 0:
            content = self.output.surround(np.full(self.output.shape, POISON, np.float32))
        else:
            content = self.output.surround(self.ctx.uniform(self.output.shape, -9, 9))
        self.kept[f"memory_{number}"] = content
        for name in self._inputs():
            self.kept[f"{name}_{number}"] = self.values[name]
        for arg in self.args:
            if isinstance(arg, float):
                self.kept[f"number_{number}"] = np.asarray(arg)
        return content

    def _carry_out(self, number: int, content: Array) -> list[Any]:
        """Fills the arrays, makes the call, and reads the output twice: at once, and after the
        device has finished."""
        device, output = self.session.device, self.output
        if number > 0 or not self.is_bare:
            output.memory[:] = self.session.upload(content)
        staged = self._fill(late=number > 0 and self.ctx.backend == "cuda")
        sent = [
            self.arrays[name] if name else arg
            for name, arg in zip(self.letters, self.args, strict=True)
        ]
        target = [] if self.case.in_place else [output.array]
        before = device.count_use()
        getattr(self.session.gpu_op, self.case.kernel)(*sent, *target)
        after = device.count_use()
        first, code = output.memory.asnumpy(), device.synchronize()
        # A large output is read once: every byte costs time on its way.
        later = [output.memory.asnumpy()] if self.is_small else []
        inputs = [self.arrays[name].asnumpy() for name in self._inputs()]
        counts = [*before, *after]
        most = room(self.values.values()) + (1 + len(later)) * output.nbytes
        fetched = self.session.remote.fetch_all([*counts, first, code, *later, *inputs], most)
        to_host, handles = require_use(fetched[:4], self.text)
        self.to_host = max(self.to_host, to_host)
        self.session.handles += handles
        first, code, *rest = fetched[4:]
        staged.clear()
        return [first, code, *(rest if self.is_small else [first, *rest])]

    def _inputs(self) -> list[str]:
        return [name for name in self.values if name != self.target]

    def _fill(self, late: bool) -> list[Proxy]:
        """Uploads the inputs. Late inputs are still on their way during the call, in the order of
        the default stream: work on another stream sees the values of the last call."""
        new = {name: self.values[name] for name in self._inputs()}
        if not late:
            for name, values in new.items():
                if name in self.arrays:
                    self.arrays[name][:] = values
                else:
                    self.arrays[name] = self.session.upload(values)
            return []
        staged = {name: self.session.upload(values) for name, values in new.items()}
        self.session.device.delay()
        for name, array in staged.items():
            array.copyto(self.arrays[name])
        return list(staged.values())

    def _require_inputs(self, after: list[Any]) -> None:
        for name, values in zip(self._inputs(), after, strict=True):
            index = self.letters.index(name)
            verify(values, self.values[name], 0, f"input {index} of {self.text} must not change")

    def _require_frugal(self) -> None:
        """Raises Failure if a call worked on the host, or left a cuBLAS handle."""
        if self.to_host > _MOST_TO_HOST:
            raise Failure(
                f"{self.text} is right, but copies or shares {self.to_host:,} bytes with the host",
                "keep the values on the device, in memory from cudaMalloc, and compute in a kernel",
            )
        if self.session.handles > _MOST_HANDLES:
            raise Failure(
                f"{self.text} is right, but every call creates a cuBLAS handle and never "
                "destroys it",
                "create one handle and keep it, or destroy it with cublasDestroy",
            )

    def _was_left(self, got: Array, content: Array) -> bool:
        """Whether the wrong elements of the output are numbers that it held before the call."""
        before = self.output.inside(content, self.text)
        if np.isnan(before).any() or self.target in self.values:
            return False
        left = got.view(np.uint32) == before.view(np.uint32)
        return bool(left[differing(got, self.expected, self.bound)].all())

    def _comes_late(self, memory: Array, expected: Array, bound: Any) -> bool:
        """Whether the output becomes right after it was read first."""
        for later in (lambda: memory, self._read_much_later):
            try:
                verify(self.output.inside(later(), self.text), expected, bound, self.text)
                return True
            except (Failure, ChildError):
                continue
        return False

    def _read_much_later(self) -> Any:
        time.sleep(0.2)
        most = SMALL + self.output.nbytes
        return self.session.remote.fetch(self.output.memory.asnumpy(), most)

    def require_unchanged(self, memory: Any) -> None:
        """Raises Failure if `memory`, read later, differs from what was read after the last
        call."""
        self.output.inside(memory, self.text)
        if self.last is None or not np.array_equal(
            memory.view(np.uint32), self.last.view(np.uint32)
        ):
            raise Failure(f"the output of {self.text} changes after the call returns", _LATE)

    def _recorded(self, calls: int, expected: Array, bound: Any) -> Call:
        """The calls of this case so far, as a script."""
        lines = self._lines(calls)
        start, size = self.output.front, self.output.size
        zones = np.delete(self.kept[f"memory_{calls - 1}"], np.s_[start : start + size])
        right = {name: self.values[name] for name in self._inputs()} | {"zones": zones}
        exact = {name: (values, np.zeros(values.shape)) for name, values in right.items()}
        near = np.broadcast_to(bound, expected.shape).astype(np.float64)
        return Call(self.text, lines, self.kept, {"output": (expected, near), **exact})

    def _lines(self, calls: int) -> list[str]:
        """The lines of the script. Numbers change from call to call, flags do not."""
        names = ["memory", *self._inputs()]
        front, size = self.output.front, self.output.size
        sent = [
            'float(data[f"number_{call}"])' if isinstance(arg, float) else name or repr(arg)
            for name, arg in zip(self.letters, self.args, strict=True)
        ]
        if not self.case.in_place:
            sent.append(self.target)
        made = comma(f'ndarray.array(data["{n}_0"], gpu)' for n in names)
        filled = comma(f'data[f"{n}_{{call}}"]' for n in names)
        read = comma(f'"{n}": {n}.asnumpy()' for n in self._inputs())
        return [
            "from dlsys import gpu_op, ndarray",
            "gpu = ndarray.gpu(0)",
            f"{comma(names)} = {made}",
            f"{self.target} = ndarray.view(memory, {self.output.shape})  # between two zones",
            f"{self.target}.handle.contents.data += 4 * {front}",
            f"for call in range({calls}):",
            f"    {comma(f'{n}[:]' for n in names)} = {filled}",
            f"    gpu_op.{self.case.kernel}({comma(sent)})",
            f"zones = np.delete(memory.asnumpy(), np.s_[{front}:{front + size}])",
            f'got = {{"output": {self.target}.asnumpy(), "zones": zones, {read}}}',
        ]
