"""Counted cost: what a kernel moves on the emulated GPU, beside what the reference's moves.

The emulated GPU's times say nothing of a real one's. Its checked build counts what does: sectors,
turns at the banks of shared memory, shuffles, barriers and launches, and a cost of them all (see
emulator/src/checked/traffic.h). A speed here is the quotient of two costs, so it is the same
whenever it is measured, and wherever the compiler is the same.

What a submission could gain by, and what stands against it:

- Its own numbers: they lie on a page that only the runtime writes to, and kernels that call what
  could open it are not counted. Fewer sectors than inputs and outputs have can't be true.
- Work that nobody sees: by code that asks to be left out of the build's checks, by other
  instructions, or by a library's kernels. A source that has a word for it is not counted.
- Work on the host: it can't reach device memory, and what is copied there is known.
- Results that are kept: the outputs of the calls that are counted are verified, and inputs are new.
- Arrays of a thread's own, which count as registers: more than fits is not counted.
- One block that does it all, one warp after another, or a few warps: then most of a GPU idles,
  which costs as much.
- Copies within device memory, which could turn a matrix: their sectors count, and each is a launch.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader.checks.harness.answers import SMALL
from grader.checks.harness.child import ChildContext, ChildSession
from grader.checks.harness.compare import Array, Failure, verify
from grader.checks.harness.device import require_use
from grader.checks.harness.outcomes import Flag
from grader.checks.speed.checks import score
from grader.student.remote import ChildError

#: Calls that are counted; the one that costs most is taken.
CALLS = 2
#: Blocks and warps of a launch below which a part of a GPU idles.
LEAST_BLOCKS, LEAST_WARPS = 4, 16
#: The reference's numbers, by tools/reference_costs.py.
KEPT = Path(__file__).with_name("reference_costs.json")
#: Bytes that a thread may have of its own: registers hold 1,020, and calls take as much here.
MOST_OWN = 4096
_SECTOR = 32
_MOST_NUMBERS = 64
_MOST_TO_HOST = 4096
_COUNTING = {"DLSYS_CHECKED": "1", "EMULATOR_TRAFFIC": "/dev/null"}
#: What a kernel could hide its work by, in a source without comments: words, macros that make
#: words, lines that say they are another file's, and what this does not read.
_HIDES = re.compile(
    r"\w*(?:sanitize|instrument|tsan|emulator|ia32)\w*|\b_mm\w*|\b(?:__)?asm(?:__)?\b"
    r"|##|%:%:|\?\?[=/]|cublas\w*|\b_Pragma\b|\bthread_local\b|\b__thread\b|\b__CONCAT\w*|\b__has_include\w*"
    r"|\0|^[^\S\n]*(?:#|%:)[^\S\n]*(?:line\b|\d)[^\n]*",
    re.I | re.M,
)
#: Stands for a raw string.
_RAW = "\0"
#: A backslash at the end of a line; g++ lets white space stand between.
_SPLICE = re.compile(r"\\[ \t\f\v\r]*\n")
#: A comment, or what may hold the signs of one. A quote without another ends with its line.
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<raw>(?:u8|[uUL])?R\")"
    r"|\.?\d(?:[eEpP][+-]|'?[\w.])*|[A-Za-z_]\w*"
    r"|\"(?:\\[^\n]|[^\"\\\n])*\"?|'(?:\\[^\n]|[^'\\\n])*'?",
    re.S,
)
_INCLUDES = re.compile(r"^[^\S\n]*(?:#|%:)[^\S\n]*(?:include|import)\w*([^\n]*)", re.M)
#: C++'s own headers, CUDA's and the kit's. Others may have macros that make words.
_OF_C = (
    "assert|ctype|errno|fenv|float|inttypes|limits|math|stddef|stdint|stdio|stdlib|string|time"
    "|unistd|sys/time"
)
_OF_CUDA = r"mma|math_\w+|vector_types|device_\w+|(?:cuda|curand|cooperative_groups)\w*"
_OF_KIT = r"c_runtime_api|cuda_check|runtime_base|dlarray|(?:cpu_|cuda_)?device_api"
_HEADER = re.compile(
    rf"\s*(?:<(?:\w+|bits/stdc\+\+\.h|(?:{_OF_C}|{_OF_CUDA})\.h|cooperative_groups/\w+\.h"
    rf'|cuda/\w+|(?:cub|thrust)/[\w/]+\.c?u?h)>|"(?:\./)?(?:{_OF_C}|{_OF_CUDA}|{_OF_KIT})\.h")\s*'
)
_WORDS = {
    "load_sectors": "sectors read",
    "store_sectors": "sectors written",
    "atomic_sectors": "sectors of atomics",
    "shared_turns": "turns at the banks of shared memory",
    "shuffles": "shuffles",
    "barriers": "waits of warps at barriers",
    "launches": "launches",
}
_TRY = {
    "load_sectors": "let neighbouring lanes read neighbouring words, and read what several threads "
    "or several steps need once, into shared memory or registers",
    "store_sectors": "let neighbouring lanes write neighbouring words, each element once",
    "atomic_sectors": "lanes that add to one address wait for each other: sum up in registers and "
    "by shuffles, and let one lane add",
    "shared_turns": "take each value from shared memory once into a register, and use it "
    "several times: more elements a thread, and four in a row as a float4",
    "shuffles": "let each lane sum up all of its own elements before the lanes exchange any",
    "barriers": "a warp of 32 lanes needs no barrier: let shuffles do the last steps, or all",
    "launches": "do in one kernel what several do",
}
_CONFLICTS = (
    "lanes of a warp want different words of one bank: pad the rows of the tile by a few words, or "
    "let neighbouring lanes read neighbouring words"
)
_IDLE = (
    "cut the work into more blocks, of several warps: a GPU has more than a hundred "
    "multiprocessors, and each waits for memory unless it has warps to go on with"
)

Numbers = dict[str, int]


@dataclass(frozen=True)
class CountedCall:
    """A call whose cost is counted.

    Attributes:
        kernel: in gpu_op.
        inputs, out: shapes.
        judge: the output and its bound, from the inputs.
    """

    kernel: str
    inputs: tuple[tuple[int, ...], ...]
    out: tuple[int, ...]
    judge: Callable[..., tuple[Array, Any]]

    @property
    def text(self) -> str:
        """The call in words."""
        return f"{self.kernel}({', '.join(map(str, self.inputs))})"


def compare(ctx: ChildContext, case: CountedCall) -> None:
    """Counts a call; writes the figures to the facts, and sets the share of the points.

    Raises:
        Failure: an output is wrong, the source hides work, or there are no points for the cost.
        Flag: a number can't be true, or the reference can't be counted.
    """
    ctx.require_harmless()
    if ctx.checked is None:
        raise Flag("this run has no checked builds to count in")
    with ctx.checked() as (own, other):
        theirs, costs = _of_reference(ctx, other, case)
        mine, _ = _counted(dataclasses.replace(ctx, tree=own), case)
    require_possible(mine, case)
    require_registers(mine, case)
    ratio = theirs["cost"] / (mine["cost"] * idle(mine))
    hint = "; ".join(advice(mine, theirs, costs))
    ctx.facts["speed"] = {
        "case": case.text,
        "ratio": ratio,
        "counted": {"student": mine, "reference": theirs},
        "summary": summary(case, ratio, mine, theirs) + (f"; hint: {hint}" if hint else ""),
    }
    score(ctx, ratio, hint)


def _of_reference(
    ctx: ChildContext, tree: Path | None, case: CountedCall
) -> tuple[Numbers, Numbers]:
    """The reference's numbers, and what each is worth: as its build counts them, or where there is
    no solution, as on Gradescope, as they were counted before."""
    if tree is None:
        kept = json.loads(KEPT.read_text())
        return kept["calls"][case.text], kept["costs"]
    try:
        return _counted(dataclasses.replace(ctx, tree=tree, reaches=()), case)
    except (Failure, ChildError) as error:
        raise Flag(f"the reference failed: {error}") from error


def require_open(sources: Mapping[str, bytes]) -> None:
    """Raises Failure if a source has words by which it could keep work from being counted."""
    for name, content in sources.items():
        if not name.endswith(".cu"):
            continue
        code = _without_comments(content.decode("utf-8", "replace"))
        included = (found[1] for found in _INCLUDES.finditer(code))
        headers = (f"#include {each.strip()}" for each in included if not _HEADER.fullmatch(each))
        found = _HIDES.search(code)
        if said := found[0].strip() if found else next(headers, ""):
            said = "a raw string" if said == _RAW else f"{said[:60]!r}"
            raise Failure(
                f"{name} has {said}, by which work could be kept from being counted",
                "plain CUDA C++ does: kernels of your own, without a library and without assembly",
            )


def _without_comments(text: str) -> str:
    """The text of a source, with a space for each comment, and _RAW where a raw string begins."""

    def plain(found: re.Match[str]) -> str:
        return " " if found["comment"] else _RAW if found["raw"] else found[0]

    return _TOKEN.sub(plain, _SPLICE.sub("", text))


def _counted(ctx: ChildContext, case: CountedCall) -> tuple[Numbers, Numbers]:
    """The numbers of the most costly of some calls, whose outputs are right; what each is worth."""
    ctx = dataclasses.replace(ctx, env={**ctx.env, **_COUNTING})
    with ctx.session() as session:
        counter = _Counter(session)
        calls = [_one(ctx, session, counter, case) for _ in range(CALLS)]
    return max(calls, key=lambda numbers: numbers["cost"]), counter.costs


class _Counter:
    """Reads what the emulated GPU of a child has counted. Make it before any call."""

    def __init__(self, session: ChildSession) -> None:
        self._session = session
        ctypes = session.remote.import_("ctypes")
        library = session.remote.import_("dlsys._base")._LIB
        name, self._read = library["emulator_traffic_name"], library["emulator_traffic"]
        cost = library["emulator_traffic_cost"]
        name.restype, cost.restype, self._read.restype = ctypes.c_char_p, *[ctypes.c_int64] * 2
        names = session.remote.fetch_all([name(i) for i in range(_MOST_NUMBERS)], most=SMALL)
        self.names = [each.decode() for each in names if isinstance(each, bytes)]
        costs = session.integers([cost(i) for i in range(len(self.names))])
        self.costs = dict(zip(self.names, costs, strict=True))

    def read(self) -> list[Any]:
        """Proxies of all numbers as they are now."""
        return [self._read(i) for i in range(len(self.names))]


def _one(ctx: ChildContext, session: ChildSession, counter: _Counter, case: CountedCall) -> Numbers:
    """Makes a call on new inputs, verifies it, and returns what it counted."""
    device = session.device
    inputs = [ctx.uniform(shape, -1, 1) for shape in case.inputs]
    arrays = [session.upload(values) for values in inputs]
    out = session.upload(np.full(case.out, np.nan, np.float32))
    with session.remote.doing(case.text):
        before = [*counter.read(), *device.count_use()]
        getattr(session.gpu_op, case.kernel)(*arrays, out)
        code = device.synchronize()
        after = [*counter.read(), *device.count_use()]
        numbers = session.integers([*before, *after])
        got, code = session.remote.fetch_all([out.asnumpy(), code], most=SMALL + 4 * out_size(case))
    device.require_clean(code, case.text)
    verify(got, *case.judge(*inputs), case.text)
    counted = [now - then for then, now in zip(numbers[: len(before)], numbers[len(before) :],
                                               strict=True)]  # fmt: skip
    to_host, _ = require_use([0, 0, *counted[-2:]], case.text)
    if to_host > _MOST_TO_HOST:
        raise Failure(
            f"{case.text} copies {to_host:,} bytes to the host",
            "keep the values on the device, and compute in a kernel",
        )
    return dict(zip(counter.names, counted, strict=False))


def out_size(case: CountedCall) -> int:
    """Elements of the output."""
    return int(np.prod(case.out, dtype=np.int64))


def require_possible(mine: Numbers, case: CountedCall) -> None:
    """Raises Flag if a call moves fewer sectors than its inputs and its output have."""
    read = sum(4 * int(np.prod(shape)) for shape in case.inputs) // _SECTOR
    written = 4 * out_size(case) // _SECTOR
    stored = mine["store_sectors"] + mine["atomic_sectors"]
    if mine["load_sectors"] < read or stored < written or not mine["launches"]:
        raise Flag(
            f"{case.text} is right, but reads {mine['load_sectors']:,} sectors and writes "
            f"{stored:,}, where its inputs have {read:,} and its output {written:,}"
        )


def require_registers(mine: Numbers, case: CountedCall) -> None:
    """Raises Failure if a thread has more of its own than registers hold."""
    own = mine["own_bytes"] // max(1, mine["blocks"])
    if own > MOST_OWN:
        raise Failure(
            f"{case.text}: a thread has about {own:,} bytes of its own, where registers hold 1,020",
            "a GPU moves the rest through memory: give a thread smaller arrays",
        )


def idle(numbers: Numbers) -> float:
    """How many times as long a GPU takes since blocks or warps are too few to keep it busy."""
    launches = max(1, numbers["launches"])
    blocks, warps = (max(1.0, numbers[name] / launches) for name in ("blocks", "warps"))
    return max(1.0, LEAST_BLOCKS / blocks, LEAST_WARPS / warps)


def advice(mine: Numbers, theirs: Numbers, costs: Numbers) -> list[str]:
    """What to try: of the numbers that cost most beyond the reference's, the largest two."""
    found = [_IDLE] if idle(mine) > 1 else []
    beyond = {name: costs[name] * (mine[name] - theirs[name]) for name in _WORDS}
    least = theirs["cost"] / 10
    for name in sorted(beyond, key=lambda name: -beyond[name])[:2]:
        if beyond[name] > least:
            conflicts = name == "shared_turns" and 2 * mine["replays"] > beyond[name]
            found.append(
                f"{mine[name]:,} {_WORDS[name]}, where the reference has {theirs[name]:,}: "
                + (_CONFLICTS if conflicts else _TRY[name])
            )
    return found


def summary(case: CountedCall, ratio: float, mine: Numbers, theirs: Numbers) -> str:
    """The figures in one line, for the report."""
    return (
        f"{case.kernel}: {ratio:.2f} of the reference's speed by what is counted, a cost of "
        f"{mine['cost']:,} against {theirs['cost']:,}"
    )
