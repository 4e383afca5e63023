"""Programs of loops over views of memory: as they were asked for, and as a child fused them.

The child tells what each kernel reads, computes and writes. That is carried out here, on this
process's own numbers, so a kernel that the child only claims to have is of no use to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from grader.checks.harness.answers import shape_of
from grader.checks.harness.compare import Array, Failure

#: Values and statements are called x0, p0, i0 and v0; -x0, x0 + x1.
_EXPRESSION = re.compile(r"(-?)([xpiv]\d+)(?: ([-+*/]) ([xpiv]\d+))?")
_OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_REDUCTIONS: Mapping[str, Any] = {"sum": np.sum, "max": np.max}

#: Element-wise expressions of two values and of one; more of the former than of the latter.
_PAIRS = ("x0 + x1", "x0 * x1", "x0 - x1")
_SINGLES = ("x0 * p0", "x0 + p0", "-x0")
#: Instructions of a program that a message shows.
_MOST_SHOWN = 40

Memory = dict[int, Array]


class Elements(NamedTuple):
    """Elements of a buffer: that of index i lies `offset` + sum(i * strides) elements behind."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def of(self, memory: Memory) -> Array:
        """The elements, as a view of the memory.

        Raises:
            Failure: they lie outside of the buffer.
        """
        flat = memory.get(self.buffer)
        if flat is None or len(self.shape) != len(self.strides):
            raise Failure("a kernel has an operand that is no part of the program")
        ways = [
            stride * (extent - 1) for extent, stride in zip(self.shape, self.strides, strict=True)
        ]
        first = self.offset + sum(min(0, way) for way in ways)
        last = self.offset + sum(max(0, way) for way in ways)
        if first < 0 or last >= flat.size:
            raise Failure(
                f"a kernel works on elements {first} to {last} of a buffer of {flat.size}"
            )
        steps = [stride * flat.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(flat[self.offset :], self.shape, steps)

    @property
    def transposed(self) -> Elements:
        """The same elements, with the axes the other way round."""
        return self._replace(shape=self.shape[::-1], strides=self.strides[::-1])

    @property
    def flipped(self) -> Elements:
        """The same elements, the last row first."""
        (rows, *_), (step, *others) = self.shape, self.strides
        offset = self.offset + (rows - 1) * step
        return self._replace(offset=offset, strides=(-step, *others))

    @property
    def rows_but_one(self) -> Elements:
        """All rows but the last."""
        return self._replace(shape=(self.shape[0] - 1, *self.shape[1:]))


def evaluated(code: str, values: Mapping[str, Any]) -> Array:
    """The value of an expression of named values.

    Raises:
        Failure: it is none that these programs are made of.
    """
    match = _EXPRESSION.fullmatch(code)
    if match is None or any(name not in values for name in match.group(2, 4) if name):
        raise Failure(f"a kernel computes {code[:80]!r}, which nobody asked for")
    sign, left, operator, right = match.groups()
    value = -values[left] if sign else values[left]
    return np.asarray(_OPERATORS[operator](value, values[right]) if operator else value)


@dataclass(frozen=True)
class Loop:
    """One instruction: an expression of elements, a reduction of rows, or a matrix product.

    Attributes:
        name: of its value, in messages.
        code: the expression of x0, x1 and p0; "" for a product.
        way: "sum" or "max" of each row of the expression; "" for its elements.
    """

    name: str
    code: str
    output: Elements
    inputs: tuple[Elements, ...]
    numbers: tuple[float, ...] = ()
    way: str = ""

    def run(self, memory: Memory) -> None:
        """Carries it out."""
        values = [each.of(memory) for each in self.inputs]
        target = self.output.of(memory)
        if not self.code:
            target[...] = values[0] @ values[1]
            return
        named: dict[str, Any] = {f"x{i}": value for i, value in enumerate(values)}
        named |= {f"p{i}": value for i, value in enumerate(self.numbers)}
        found = evaluated(self.code, named)
        target[...] = _REDUCTIONS[self.way](found, axis=-1) if self.way else found


class LoopProgram:
    """Instructions, what they are fed, and what is read after the run.

    Attributes:
        loops: the instructions, in an order in which they may run.
        fed: buffer -> what it holds at first.
        kept: buffers that are read after the run.
        kernels: how few kernels there can be.
        about: what it is about, in messages.
    """

    def __init__(self, random: np.random.Generator, about: str, kernels: int = 1) -> None:
        self.random, self.about, self.kernels = random, about, kernels
        self.loops: list[Loop] = []
        self.fed: Memory = {}
        self.kept: set[int] = set()
        self._sizes: list[int] = []

    def _buffer(self, shape: tuple[int, ...]) -> Elements:
        self._sizes.append(int(np.prod(shape)))
        strides = np.cumprod((1, *shape[:0:-1]))[::-1]
        return Elements(len(self._sizes) - 1, 0, shape, tuple(int(step) for step in strides))

    def feed(self, *shape: int) -> Elements:
        """A new buffer of random numbers."""
        made = self._buffer(shape)
        self.fed[made.buffer] = self.random.uniform(1, 2, self._sizes[-1])
        return made

    def loop(self, code: str, *inputs: Elements, way: str = "") -> Elements:
        """A new value: an expression of elements, or of each row a reduction of one."""
        shape = np.broadcast_shapes(*(each.shape for each in inputs))
        return self._add(code, self._buffer(shape[:-1] if way else shape), inputs, way)

    def product(self, a: Elements, b: Elements) -> Elements:
        """A new value: a matrix product."""
        return self._add("", self._buffer((a.shape[0], b.shape[1])), (a, b))

    def overwrite(self, target: Elements, code: str, *inputs: Elements) -> None:
        """A new value for what was fed."""
        self._add(code, target, inputs)

    def _add(
        self, code: str, output: Elements, inputs: tuple[Elements, ...], way: str = ""
    ) -> Elements:
        numbers = (round(float(self.random.uniform(0.5, 1.5)), 3),) if "p0" in code else ()
        name = f"v{len(self.loops)}"
        self.loops.append(Loop(name, code, output, inputs, numbers, way))
        return output

    def grow(self, value: Elements, count: int, *others: Elements) -> Elements:
        """Some element-wise instructions, each on the one before and on what came earlier."""
        known = [value, *others]
        for _ in range(count):
            if self.random.random() < 0.4:
                value = self.loop(str(self.random.choice(_SINGLES)), value)
            else:
                other = known[int(self.random.integers(len(known)))]
                codes = _PAIRS[: 2 if other == value else 3]  # x - x would hide all before
                value = self.loop(str(self.random.choice(codes)), value, other)
            known.append(value)
        return value

    def some(self) -> int:
        """A few."""
        return int(self.random.integers(1, 5))

    def keep(self, *values: Elements) -> LoopProgram:
        """Says what is read after the run; now and then something else, too."""
        self.kept |= {each.buffer for each in values}
        if self.random.random() < 0.5:
            self.kept.add(self.loops[int(self.random.integers(len(self.loops)))].output.buffer)
        return self

    def memory(self) -> Memory:
        """The buffers before a run: what nobody has written yet is NaN."""
        return {
            number: self.fed[number].copy() if number in self.fed else np.full(size, np.nan)
            for number, size in enumerate(self._sizes)
        }

    def words(self) -> str:
        """The instructions in words."""
        lines = list(map(self._line, self.loops[:_MOST_SHOWN]))
        return "; ".join([*lines, *["..."] * (len(self.loops) > _MOST_SHOWN)])

    def _line(self, loop: Loop) -> str:
        code = loop.code or "x0 @ x1"
        for number, each in enumerate(loop.inputs):
            code = code.replace(f"x{number}", self._name(each))
        code = code.replace("p0", f"{loop.numbers[0]:g}" if loop.numbers else "")
        code = f"{loop.way} of rows of {code}" if loop.way else code
        return f"{self._name(loop.output)} = {code}"

    def _name(self, view: Elements) -> str:
        name = f"{'f' if view.buffer in self.fed else 'b'}{view.buffer}"
        if view.strides and view.strides[0] < 0:
            return f"flipped({name})"
        is_turned = len(view.strides) == 2 and 1 < view.strides[1] > view.strides[0] > 0
        if is_turned:
            return f"transposed({name})"
        if int(np.prod(view.shape)) == self._sizes[view.buffer]:
            return name
        first = view.offset // max(1, view.strides[0])
        return f"{name}[{first}:{first + view.shape[0]}]"


class Statement(NamedTuple):
    """A value of a kernel; `way` says how it is reduced along rows."""

    code: str
    way: str


@dataclass(frozen=True)
class FusedLoop:
    """A kernel as the child tells it: all threads read, compute and write side by side."""

    outputs: tuple[Elements, ...]
    inputs: tuple[Elements, ...]
    statements: tuple[Statement, ...]
    stores: tuple[int, ...]
    numbers: tuple[float, ...]

    def run(self, memory: Memory) -> None:
        """Carries it out: first all is read, then all is written.

        Raises:
            Failure: a thread reads what another one overwrites, or no order is right.
        """
        self._require_apart()
        named: dict[str, Any] = {f"p{i}": number for i, number in enumerate(self.numbers)}
        named |= {f"i{i}": each.of(memory).copy() for i, each in enumerate(self.inputs)}
        for number, statement in enumerate(self.statements):
            value = evaluated(statement.code, named)
            if statement.way:
                value = np.broadcast_to(value, self.outputs[0].shape)
                value = _REDUCTIONS[statement.way](value, axis=-1, keepdims=True)
            named[f"v{number}"] = value
        for each, store in zip(self.outputs, self.stores, strict=True):
            each.of(memory)[...] = named[f"v{store}"]

    def _require_apart(self) -> None:
        written = {each.buffer: each for each in self.outputs}
        if len(written) < len(self.outputs):
            raise Failure("a kernel writes one buffer twice", "leave them in two kernels")
        for each in self.inputs:
            if each.buffer in written and each != written[each.buffer]:
                raise Failure(
                    "a kernel reads elements of a buffer that other threads of it overwrite",
                    "what is overwritten may be read in the same kernel by the same thread alone",
                )


def told(raw: Any) -> FusedLoop:
    """A kernel from what the child says of it.

    Raises:
        Failure: it is no kernel.
    """
    try:
        shape, of_outputs, of_inputs, lies, statements, stores, numbers = raw
        wide = _whole(shape)
        operands = [
            Elements(*_pair(place), wide, _whole(strides))
            for place, strides in zip([*of_outputs, *of_inputs], lies, strict=True)
        ]
        count = len(of_outputs)
        said = tuple(Statement(_plain(code), _way(way)) for code, way in statements)
        kept = _whole(stores)
        if not count or any(not 0 <= store < len(said) for store in kept) or len(kept) != count:
            raise ValueError
        given = tuple(float(number) for number in numbers)
    except (TypeError, ValueError) as error:
        raise Failure("an instruction of the fused program is neither given nor fused") from error
    return FusedLoop(tuple(operands[:count]), tuple(operands[count:]), said, kept, given)


def _whole(value: Any) -> tuple[int, ...]:
    found = shape_of(value)
    if found is None:
        raise ValueError
    return found


def _pair(value: Any) -> tuple[int, int]:
    first, second = _whole(value)
    return first, second


def _way(value: Any) -> str:
    if value not in ("", *_REDUCTIONS):
        raise ValueError
    return str(value)


def _plain(code: Any) -> str:
    """A statement's code without the marks of names and casts between equal types."""
    if not isinstance(code, str):
        raise ValueError
    return re.sub(r"double\((p\d+)\)", r"\1", code.replace("@", ""))


def run_all(loops: Sequence[Loop | FusedLoop], memory: Memory) -> None:
    """Carries them out, one after the other."""
    with np.errstate(all="ignore"):
        for each in loops:
            each.run(memory)
