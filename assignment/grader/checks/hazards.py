"""Part 3: what waits for what in a captured step, and on which stream it runs.

The child returns numbers alone. Which orders they allow, and which are needed, is found out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from grader.checks.harness.answers import SMALL, plain, require_int, shown
from grader.checks.harness.compare import Failure
from grader.checks.harness.context import Context, Session
from grader.checks.harness.traits import check, declared

_PROGRAMS = 12
#: Bytes of a program's memory, and of a buffer at most: few, so that many overlap.
_MEMORY, _LARGEST = 64, 16
_MOST_STREAMS = 4

Waits = list[list[int]]


class Place(NamedTuple):
    """The bytes of a buffer: a memory, its first byte and that behind its last one."""

    memory: int
    first: int
    end: int

    def meets(self, other: Place) -> bool:
        """Whether both have a byte."""
        return self.memory == other.memory and self.first < other.end and other.first < self.end


class Access(NamedTuple):
    """What an instruction reads and writes, by numbers of buffers; `scratch` is written, too."""

    reads: tuple[int, ...]
    output: int
    scratch: int | None = None

    def writes(self) -> tuple[int, ...]:
        """What it writes."""
        return (self.output,) if self.scratch is None else (self.output, self.scratch)


class AccessProgram:
    """Instructions on buffers that overlap."""

    def __init__(self, places: Sequence[Place], accesses: Sequence[Access]) -> None:
        self.places, self.accesses = places, accesses

    def needed(self) -> Waits:
        """For each instruction all earlier ones that it has a conflict with."""
        return [
            [other for other in range(number) if self.why(number, other)]
            for number in range(len(self.accesses))
        ]

    def why(self, number: int, other: int) -> str:
        """The conflict of an instruction with an earlier one, in words; "" for none."""
        late, early = self.accesses[number], self.accesses[other]
        for before, then, words in (
            (early.writes(), late.reads, "reads what {} writes"),
            (early.reads, late.writes(), "overwrites what {} reads"),
            (early.writes(), late.writes(), "overwrites what {} writes"),
        ):
            for a in before:
                for b in then:
                    if self.places[a].meets(self.places[b]):
                        said = f"{self._said(a)} and {self._said(b)} overlap"
                        return f"{number} {words.format(other)}: {said}"
        return ""

    def _said(self, buffer: int) -> str:
        place = self.places[buffer]
        return f"bytes {place.first} to {place.end - 1} of memory {place.memory}"

    def words(self, *numbers: int) -> str:
        """Some of the instructions in words."""
        lines = []
        for number in sorted(set(numbers)):
            reads, writes = self.accesses[number].reads, self.accesses[number].writes()
            ways = [" and ".join(map(self._said, each)) for each in (reads, writes)]
            lines.append(f"{number} reads {ways[0]}, and writes {ways[1]}")
        return "; ".join(lines)

    def asked(self, session: Session) -> Waits:
        """What the submission says of it."""
        remote, streams = session.remote, session.module("dlsys.backend.streams")
        view, kinds = (
            session.module("dlsys.backend.view"),
            session.module("dlsys.backend.instructions"),
        )
        dtype = session.module("dlsys.dtypes").FLOAT32
        with remote.doing("needed(instructions, place_of)"):
            buffers = [view.Buffer(place.end - place.first) for place in self.places]
            seen = [view.View(buffer, dtype, (4,), (1,), 0) for buffer in buffers]
            made = []
            for reads, output, scratch in self.accesses:
                inputs = tuple(seen[b] for b in reads)
                if scratch is None:
                    made.append(kinds.Instruction(seen[output], inputs))
                    continue
                total = view.View(buffers[output], dtype, (), (), 0)
                made.append(
                    kinds.Reduce(total, inputs, "sum", "x0", dtype, (4,), (0,), seen[scratch])
                )
            where = dict(zip(buffers, map(tuple, self.places), strict=True))
            found = remote.fetch(streams.needed(made, remote.put(where).get), most=SMALL)
        return _waits(plain(found), len(made))


def _waits(found: Any, count: int) -> Waits:
    """Raises Failure unless an answer says for each instruction which earlier ones it waits for."""
    if not isinstance(found, list) or len(found) != count:
        raise Failure(f"needed of {count} instructions is {shown(found)}, expected {count} lists")
    for number, each in enumerate(found):
        if not isinstance(each, list):
            raise Failure(f"needed: instruction {number} waits for {shown(each)}, expected a list")
        for other in each:
            if not 0 <= require_int(other, f"needed: what instruction {number} waits for") < number:
                raise Failure(
                    f"needed: instruction {number} waits for {other}, which is not before it"
                )
    return found


def closed(waits: Waits) -> list[set[int]]:
    """For each all that must have ended before it begins."""
    behind: list[set[int]] = []
    for each in waits:
        behind.append(set(each).union(*(behind[other] for other in each)))
    return behind


def reduced(waits: Waits) -> Waits:
    """Without those that others, which are waited for as well, have waited for."""
    behind = closed(waits)
    return [[o for o in each if all(o not in behind[p] for p in each)] for each in waits]


def random_program(random: np.random.Generator) -> AccessProgram:
    """Some 20 instructions on two memories."""
    places = []
    for _ in range(int(random.integers(8, 20))):
        first = int(random.integers(_MEMORY))
        size = int(random.integers(1, _LARGEST))
        places.append(Place(int(random.integers(2)), first, first + size))
    accesses = []
    for _ in range(int(random.integers(12, 30))):
        inputs, output, scratch = (
            [int(b) for b in random.integers(len(places), size=n)]
            for n in (random.integers(1, 3), 1, 1)
        )
        is_reduced = random.random() < 0.25
        accesses.append(Access(tuple(inputs[:1] if is_reduced else inputs), output[0],
                               scratch[0] if is_reduced else None))  # fmt: skip
    return AccessProgram(places, accesses)


def _named(places: Sequence[tuple[int, int]], *accesses: Access) -> AccessProgram:
    return AccessProgram([Place(0, first, end) for first, end in places], accesses)


#: One conflict each, and none; buffers that touch have no byte in common.
_SMALL = (
    _named([(0, 4), (8, 12), (16, 20)], Access((0,), 1), Access((1,), 2)),
    _named([(0, 4), (8, 12), (16, 20)], Access((0,), 1), Access((2,), 0)),
    _named([(0, 4), (8, 12), (16, 20)], Access((0,), 1), Access((2,), 1)),
    _named([(0, 8), (8, 16), (16, 24), (24, 32)], Access((0,), 1), Access((2,), 3)),
    _named([(0, 8), (8, 16), (16, 24)], Access((0,), 1), Access((0,), 2)),
    _named([(0, 8), (8, 16), (4, 9), (20, 24)], Access((0,), 1), Access((2,), 3)),
    _named([(0, 4), (8, 12), (16, 20), (24, 28)], Access((0,), 1, 2), Access((0,), 3, 2)),
)


@check(device=False)
def hazards(ctx: Context) -> None:
    """needed keeps two launches apart exactly where one writes bytes that the other touches"""
    with ctx.session() as session:
        programs = [*_SMALL, *(random_program(ctx.random) for _ in range(_PROGRAMS))]
        for program in programs:
            got = closed(program.asked(session))
            for number, wanted in enumerate(closed(program.needed())):
                _compare(program, number, got[number], wanted)


def _compare(program: AccessProgram, number: int, got: set[int], wanted: set[int]) -> None:
    missing = [other for other in sorted(wanted - got, reverse=True) if program.why(number, other)]
    if missing:
        raise Failure(
            f"needed: instruction {number} does not wait for {missing[0]}, but "
            f"{program.why(number, missing[0])}",
            "a read after a write, a write after a read and a write after a write all count; "
            "`sources` and `written` say what an instruction reads and writes",
        )
    surplus = sorted(got - wanted)
    if surplus:
        raise Failure(
            f"needed: instruction {number} waits for {surplus[-1]}, directly or not, but they "
            f"share no byte that one of them writes: {program.words(number, surplus[-1])}",
            "two that only read the same bytes may run side by side, and so may two that touch "
            "different bytes of one memory",
        )


@check(device=False)
def hazards_once(ctx: Context) -> None:
    """needed leaves out what is waited for anyway, through others"""
    with ctx.session() as session:
        for program in [*_SMALL, *(random_program(ctx.random) for _ in range(_PROGRAMS))]:
            got, wanted = program.asked(session), reduced(program.needed())
            for number, (found, right) in enumerate(zip(got, wanted, strict=True)):
                _compare_lists(program, number, found, right)


def _compare_lists(program: AccessProgram, number: int, found: list[int], right: list[int]) -> None:
    if found == right:
        return
    what = f"needed: instruction {number} waits for {found}, expected {right}"
    surplus = sorted(set(found) - set(right))
    if not surplus:
        raise Failure(what, "numbers are in ascending order, each once")
    behind = closed(program.needed())
    through = next((each for each in right if surplus[0] in behind[each]), number)
    raise Failure(
        f"{what}: {through} has waited for {surplus[0]} already: "
        f"{program.words(number, through, surplus[0])}",
        "go back from the latest one, and skip all that those which are found have waited for",
    )


# --- streams ------------------------------------------------------------------------------------


@check(device=False)
def streams_of_launches(ctx: Context) -> None:
    """assigned puts what may overlap on several streams, and names each wait between two"""
    with ctx.session() as session:
        for _ in range(_PROGRAMS):
            most = int(ctx.random.integers(1, _MOST_STREAMS + 1))
            _check_streams(session, reduced(random_program(ctx.random).needed()), most)
            _check_streams(session, _chains(ctx.random, most), most)


def _chains(random: np.random.Generator, count: int) -> Waits:
    """Chains that wait for nothing of each other, in a random order."""
    last: dict[int, int] = {}
    waits: Waits = []
    for number in range(int(random.integers(10, 20))):
        chain = int(random.integers(count))
        waits.append([last[chain]] if chain in last else [])
        last[chain] = number
    return waits


def _check_streams(session: Session, waits: Waits, most: int) -> None:
    what = f"assigned({waits}, {most})"
    assigned = session.module("dlsys.backend.streams").assigned
    with session.remote.doing(what):
        found = session.remote.fetch(assigned(waits, most), most=SMALL)
    streams, pairs = _answer(plain(found), len(waits), what)
    last: list[int] = []
    for number, stream in enumerate(streams):
        _check_stream(what, waits[number], number, stream, last, most)
        last[stream : stream + 1] = [number]
    wanted = [(n, o) for n, others in enumerate(waits) for o in others if streams[n] != streams[o]]
    if sorted(pairs) != wanted:
        missing, surplus = set(wanted) - set(pairs), set(pairs) - set(wanted)
        if missing:
            n, o = min(missing)
            raise Failure(
                f"{what}: {n} waits for {o}, which is on stream {streams[o]} and not on "
                f"{streams[n]}, but the pair ({n}, {o}) is missing",
                "two streams know nothing of each other: only an event keeps their order",
            )
        n, o = min(surplus) if surplus else min(p for p in pairs if pairs.count(p) > 1)
        raise Failure(
            f"{what}: the pair ({n}, {o}) is not needed",
            "what runs on one stream is in order, and needs no event",
        )


def _answer(found: Any, count: int, what: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Raises Failure unless an answer is streams and pairs."""
    if not _is_list(found, 2) or not all(isinstance(each, list) for each in found):
        raise Failure(f"{what} is {shown(found)}, expected (streams, pairs), two lists")
    streams, pairs = found
    if len(streams) != count:
        raise Failure(f"{what} has {len(streams)} streams, expected {count}, one for each")
    for each in streams:
        require_int(each, f"{what}: a stream")
    for pair in pairs:
        if not _is_list(pair, 2):
            raise Failure(f"{what} has the pair {shown(pair)}, expected (instruction, other)")
        for each in pair:
            require_int(each, f"{what}: a number in a pair")
    return streams, [(number, other) for number, other in pairs]


def _is_list(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length


def _check_stream(
    what: str, waits: list[int], number: int, stream: int, last: list[int], most: int
) -> None:
    """Checks the stream of one instruction, where `last` are the last ones of each stream."""
    follows = [each for each, tail in enumerate(last) if tail in waits]
    if follows:
        if stream not in follows:
            raise Failure(
                f"{what}: instruction {number} is on stream {stream}; one that it waits for is the "
                f"last on stream {follows[0]}",
                "there it needs no event",
            )
    elif len(last) < most:
        if stream != len(last):
            raise Failure(
                f"{what}: instruction {number} is on stream {stream}, expected the new stream "
                f"{len(last)}",
                "what waits for the last of no stream may overlap with all of them",
            )
    elif stream != last.index(min(last)):
        raise Failure(
            f"{what}: instruction {number} is on stream {stream}, expected "
            f"{last.index(min(last))}, whose last instruction is the oldest",
        )


CHECKS = declared(globals())
