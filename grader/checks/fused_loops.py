"""Part 3: which instructions become one kernel.

The child tells what each kernel of the fused program reads, computes and writes, and this process
carries that out on its own numbers: see harness/loop_programs.py. How few kernels there can be is
known, since each program is made so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grader.checks.harness.answers import SMALL
from grader.checks.harness.compare import Array, Failure
from grader.checks.harness.context import Context, Session
from grader.checks.harness.loop_programs import (
    Elements,
    FusedLoop,
    Loop,
    LoopProgram,
    Memory,
    run_all,
    told,
)
from grader.checks.harness.traits import check, declared

_MOST_OPERANDS = 20
_MOST_TOLD = 128
#: Products of products between two that belong together: 2 to the power of so many ways.
_DOUBLINGS = 30
_SOON = 10.0  # seconds for what takes none
_TURNS = 3


Maker = Callable[..., LoopProgram]


def _tree(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "element-wise instructions of one shape")
    others = [made.feed(m, n), made.feed(n), made.feed(m, 1), made.feed(m, n)]
    return made.keep(made.grow(made.feed(m, n), made.some() + 3, *others))


def _read_anyhow(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "what was fed is read in several ways")
    x = made.feed(n, n)
    value = made.loop("x0 + x1", x, x.transposed)
    return made.keep(made.grow(value, made.some(), x.flipped, x))


def _turned(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    how = str(random.choice(["transposed", "flipped"]))
    made = LoopProgram(random, f"a value is read {how}", 2)
    first = made.grow(made.feed(n, n), made.some())
    second = made.loop("x0 + x1", getattr(first, how), made.feed(n, n))
    return made.keep(made.grow(second, made.some()))


def _read_both_ways(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "a value is read as it was written, and transposed, too", 2)
    first = made.grow(made.feed(n, n), made.some())
    return made.keep(made.loop("x0 * x1", first, first.transposed))


def _in_part(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "a part of a value is read", 2)
    first = made.grow(made.feed(m, n), made.some())
    return made.keep(made.grow(first.rows_but_one, made.some(), made.feed(m - 1, n)))


def _repeated(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "a value is repeated in the rows of another", 2)
    first = made.grow(made.feed(n), made.some())
    return made.keep(made.loop("x0 * x1", made.feed(m, n), first))


def _overwritten(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "what is read is overwritten, element by element")
    w = made.feed(n, n)
    value = made.grow(made.loop("x0 + x1", w, made.feed(n, n)), made.some())
    made.overwrite(w, "x0 - x1", w, value)
    return made.keep(w, value)


def _overwritten_elsewhere(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "what is read transposed is overwritten", 2)
    w = made.feed(n, n)
    value = made.grow(made.loop("x0 + x1", w.transposed, made.feed(n, n)), made.some())
    made.overwrite(w, "x0 - x1", w, value)
    return made.keep(w, value)


def _many_operands(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, f"a kernel has {_MOST_OPERANDS} operands at most", 2)
    value = made.feed(m, n)
    for _ in range(int(random.integers(_MOST_OPERANDS, 30))):
        value = made.loop("x0 + x1", value, made.feed(m, n))
    return _only(made, value)


def _as_many_as_may_be(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, f"a kernel may have {_MOST_OPERANDS} operands")
    value = made.feed(m, n)
    for _ in range(_MOST_OPERANDS - 2):
        value = made.loop("x0 + x1", value, made.feed(m, n))
    return _only(made, value)


def _shifted(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "what is written is read one row further", 2)
    long = made.feed(m + 1, n)
    made.overwrite(long.rows_but_one, "x0 * p0", long.rows_but_one)
    last = long.rows_but_one._replace(offset=n)
    return made.keep(made.grow(made.loop("x0 + x1", last, made.feed(m, n)), made.some()))


def _both_ways_many(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "an array that is read in two ways is two operands", 2)
    value = made.feed(n, n)
    for _ in range(_MOST_OPERANDS // 2):
        other = made.feed(n, n)
        value = made.loop("x0 + x1", made.loop("x0 + x1", value, other), other.transposed)
    return _only(made, value)


def _overwritten_twice(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "a kernel writes a buffer once", 2)
    w = made.feed(m, n)
    made.overwrite(w, "x0 * p0", w)
    made.overwrite(w, "x0 + x1", w, made.feed(m, n))
    return made.keep(w)


def _rows(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "rows are reduced, and what comes of it is used in the row")
    x = made.grow(made.feed(m, n), made.some(), made.feed(n))
    most = made.loop("x0", x, way="max")
    away = made.loop("x0 - x1", x, _of_each_row(most))
    total = made.loop("x0 * x1", away, away, way="sum")
    return made.keep(made.loop("x0 * x1", away, _of_each_row(total)))


def _of_each_row(value: Elements) -> Elements:
    return value._replace(shape=(*value.shape, 1), strides=(*value.strides, 0))


def _only(made: LoopProgram, value: Elements) -> LoopProgram:
    made.kept = {value.buffer}
    return made


def _around(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "a product reads a value, and both are read", 3)
    first = made.grow(made.feed(n, n), made.some())
    product = made.product(first, made.feed(n, n))
    return made.keep(made.grow(made.loop("x0 + x1", first, product), made.some()))


def _far_around(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "a way leads through two products, and back", 5)
    first = made.grow(made.feed(n, n), made.some())
    between = made.grow(made.product(first, made.feed(n, n)), made.some())
    product = made.product(between, made.feed(n, n))
    return made.keep(made.grow(made.loop("x0 + x1", first, product), made.some()))


def _two_ways(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "two products read a value, and all are read", 4)
    first = made.grow(made.feed(n, n), made.some())
    one, two = (made.product(first, made.feed(n, n)) for _ in range(2))
    value = made.loop("x0 + x1", one, two)
    return made.keep(made.grow(value, made.some(), first))


def _between(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(
        random, "between two instructions of a kernel stands one that needs the first", 2
    )
    first = made.loop("x0 * p0", made.feed(n, n))
    aside = made.grow(first.transposed, made.some())
    return made.keep(aside, made.grow(first, made.some()))


def _before(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(
        random, "between two instructions of a kernel stands one that the second needs", 2
    )
    first = made.loop("x0 * p0", made.feed(n, n))
    aside = made.product(made.feed(n, n), made.feed(n, n))
    return made.keep(made.grow(made.loop("x0 + x1", first, aside), made.some()))


def _many_ways(random: np.random.Generator, m: int, n: int) -> LoopProgram:
    made = LoopProgram(random, "many ways lead on, and none back", 1 + 3 * _DOUBLINGS)
    value = first = made.loop("x0 * p0", made.feed(n, n))
    for _ in range(_DOUBLINGS):
        one, two = (made.product(value, made.feed(n, n)) for _ in range(2))
        value = made.product(one, two)
    return _only(made, made.loop("x0 + x1", first, made.feed(n, n)))


_OF_ELEMENTS: tuple[Maker, ...] = (
    _tree, _read_anyhow, _turned, _read_both_ways, _in_part, _repeated, _overwritten,
    _overwritten_elsewhere, _shifted, _overwritten_twice, _many_operands,
    _both_ways_many, _as_many_as_may_be, _rows,
)  # fmt: skip
_OF_ORDER: tuple[Maker, ...] = (_around, _far_around, _two_ways, _between, _before, _many_ways)


@check(device=False)
def fused_elements(ctx: Context) -> None:
    """fuse makes one kernel of instructions on the same elements, and of no others"""
    _check_all(ctx, _OF_ELEMENTS)


@check(device=False)
def fused_order(ctx: Context) -> None:
    """fuse leaves apart what a way through another instruction connects, and keeps the order"""
    _check_all(ctx, _OF_ORDER)


def _check_all(ctx: Context, makers: tuple[Maker, ...]) -> None:
    with ctx.session() as session:
        for make in makers:
            for _ in range(_TURNS):
                m, n = (int(each) for each in ctx.random.choice(np.arange(3, 9), 2, False))
                _check(session, make(ctx.random, m, n))


def _check(session: Session, program: LoopProgram) -> None:
    what = f"fuse, where {program.about}: {program.words()}"
    wanted, got = program.memory(), program.memory()
    run_all(program.loops, wanted)
    try:
        with session.remote.doing(what), session.remote.deadline(_SOON):
            kernels = list(_fused(session, program))
        run_all(kernels, got)
        _compare(program, got, wanted)
    except Failure as failure:
        raise Failure(f"{what}: {failure.message}", failure.hint) from failure
    if len(kernels) != program.kernels:
        raise Failure(
            f"{what}: {len(kernels)} kernels, expected {program.kernels}", _advice(program)
        )


def _compare(program: LoopProgram, got: Memory, wanted: Memory) -> None:
    for buffer in sorted(program.kept):
        name = f"{'f' if buffer in program.fed else 'b'}{buffer}"
        if np.isnan(got[buffer]).any():
            raise Failure(
                f"{name} is computed from what nobody has written yet",
                "either a kernel runs too early, or a value is not written that others read",
            )
        if not np.array_equal(got[buffer], wanted[buffer]):
            raise Failure(
                f"{name} has wrong values: {_first(got[buffer], wanted[buffer])}",
                "a kernel may read of its own values the very elements alone that it works on",
            )


def _first(got: Array, wanted: Array) -> str:
    place = int(np.argmax(got != wanted))
    return f"element {place} is {got[place]:.7g}, expected {wanted[place]:.7g}"


def _advice(program: LoopProgram) -> str:
    if program.kernels == 1:
        return "all of them work on the same elements, so one kernel can do it"
    return "join what may be joined; what reads other elements, or runs between, stays apart"


def _fused(session: Session, program: LoopProgram) -> Iterator[Loop | FusedLoop]:
    """The kernels of the fused program, as the child tells them."""
    identity = session.remote.builtin("id")
    buffers = _buffers(session, program)
    made = _instructions(session, program, buffers)
    kept = tuple(buffers[number] for number in sorted(program.kept))
    found = session.module("dlsys.backend.fusion").fuse(made, kept)
    count = session.sequence(found, "what fuse returns", "instruction")
    if count > _MOST_TOLD:
        raise Failure(f"fuse returns {count} instructions for {len(made)}")
    own = dict(zip(session.integers([identity(each) for each in made]), program.loops, strict=True))
    numbers = {place: n for n, place in enumerate(session.integers([identity(b) for b in buffers]))}
    for place, each in zip(
        session.integers([identity(found[i]) for i in range(count)]),
        [found[i] for i in range(count)],
        strict=True,
    ):
        yield own[place] if place in own else _told(session, each, numbers)


def _buffers(session: Session, program: LoopProgram) -> list[Any]:
    view = session.module("dlsys.backend.view")
    return [
        view.Buffer(8 * values.size, session.variable(f"f{n}") if n in program.fed else None)
        for n, values in program.memory().items()
    ]


def _instructions(session: Session, program: LoopProgram, buffers: list[Any]) -> list[Any]:
    """The program in the child."""
    kinds, view = session.module("dlsys.backend.instructions"), session.module("dlsys.backend.view")
    double = session.module("dlsys.dtypes").FLOAT64

    def seen(each: Elements) -> Any:
        return view.View(buffers[each.buffer], double, each.shape, each.strides, each.offset)

    made = []
    for loop in program.loops:
        inputs = tuple(map(seen, loop.inputs))
        if not loop.code:
            one = kinds.MatrixProduct(seen(loop.output), inputs)
        elif loop.way:
            shape = loop.inputs[0].shape
            last = (len(shape) - 1,)
            one = kinds.Reduce(seen(loop.output), inputs, loop.way, loop.code, double, shape, last)
        else:
            one = kinds.Elementwise(seen(loop.output), inputs, double, loop.code, loop.numbers)
        one.node = session.variable(loop.name)
        made.append(one)
    return made


def _told(session: Session, kernel: Any, numbers: dict[int, int]) -> FusedLoop:
    """A kernel that is none of the program's instructions."""
    remote, identity = session.remote, session.remote.builtin("id")
    views = [each for part in (kernel.outputs, kernel.inputs) for each in part]
    outputs = remote.len(kernel.outputs)
    if len(views) > _MOST_OPERANDS:
        raise Failure(f"a kernel has {len(views)} operands, of {_MOST_OPERANDS} at most")
    places = remote.fetch([[identity(view.buffer), view.offset] for view in views], most=SMALL)
    said = remote.fetch([[s.code, s.way] for s in kernel.statements], most=SMALL)
    rest = remote.fetch([kernel.space.shape, kernel.lies, kernel.stores, kernel.given], most=SMALL)
    try:
        operands = [[numbers[place], offset] for place, offset in places]
        shape, lies, stores, given = rest
    except (KeyError, TypeError, ValueError) as error:
        raise Failure("a kernel has an operand that is no part of the program") from error
    raw = (shape, operands[:outputs], operands[outputs:], lies, said, stores, given)
    return told(raw)


CHECKS = declared(globals())
