"""Times the submission and the reference in turn, and judges what the clock says. Runs nothing
of a device itself.

The time of a call is a slope: (long batch - short batch) / (more calls). What a batch costs in
any case, the way to the child and back, the waiting, the copies that are verified later, falls
out of it, and so nobody can gain by making it seem longer.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from grader.checks.outcomes import Flag

#: Calls of the short batch, and how many more the long one has at least.
SHORT, LEAST_MORE = 2, 4
#: Seconds that the further calls of a long batch should take: a hundred times what the clock errs
#: by, which is the way through a pipe and a wake-up.
WINDOW = 0.01
#: Rounds in which both are timed, and those of the reference before the submission is started.
ROUNDS, ALONE = 5, 2
#: Seconds after which no further round is begun, once there are LEAST_ROUNDS.
BUDGET, LEAST_ROUNDS = 12.0, 2
#: The reference may be this much slower beside the submission than alone.
DISTURBED = 1.3
#: By what the events may exceed the wall clock: the error of either.
EVENT_SLACK = 1.02


@dataclass(frozen=True)
class Lap:
    """Seconds of a batch, or of a call: by the grader's clock, and by the device's events, which
    the child reads and may have made up; None if there are none."""

    wall: float
    device: float | None = None


class Timed(Protocol):
    """Something that carries out batches of calls."""

    def batch(self, calls: int) -> Lap:
        """Carries out so many calls, times them, and verifies some.

        Raises:
            Failure: an output is wrong.
        """


def per_call(timed: Timed, more: int) -> Lap:
    """The time of a call, from a short batch and one that has `more` calls.

    Raises:
        Flag: the events of a batch took longer than the batch.
    """
    short, long = timed.batch(SHORT), timed.batch(SHORT + more)
    for lap in (short, long):
        if lap.device is not None and lap.device > lap.wall * EVENT_SLACK:
            raise Flag(
                f"the device's events say {lap.device * 1e3:.3f} ms for what took "
                f"{lap.wall * 1e3:.3f} ms by the grader's clock"
            )
    device = None
    if short.device is not None and long.device is not None:
        device = (long.device - short.device) / more
    return Lap((long.wall - short.wall) / more, device)


def warm_up(timed: Timed, most: int) -> int:
    """Runs first batches, and returns how many more calls the long batches are to have.

    Args:
        most: the largest answer.
    """
    timed.batch(SHORT)  # loads the module
    seconds = per_call(timed, min(LEAST_MORE, most)).wall
    wanted = math.ceil(WINDOW / seconds) if seconds > 0 else most
    return max(min(LEAST_MORE, most), min(wanted, most))


@dataclass
class Race:
    """The times of both, call by call.

    Attributes:
        alone: of the reference, before the submission was started.
        student, reference: a lap a round, in turn.
        more: by how many calls the batches differ: (student, reference).
    """

    alone: list[Lap]
    student: list[Lap]
    reference: list[Lap]
    more: tuple[int, int]

    @property
    def ratio(self) -> float:
        """The reference's time over the submission's: 2 is twice as fast."""
        return _median(self.reference) / _median(self.student)


def reference_alone(reference: Timed, most: int) -> tuple[int, list[Lap]]:
    """Times the reference while no process of the submission lives.

    Returns:
        (more, as `warm_up` returns it; the laps).
    """
    more = warm_up(reference, most)
    return more, [per_call(reference, more) for _ in range(ALONE)]


def race(
    student: Timed,
    reference: Timed,
    alone: tuple[int, list[Lap]],
    most: int,
    clock: Callable[[], float] = time.monotonic,
) -> Race:
    """Times both in turn, so that both meet the same clocks, temperatures and neighbours."""
    mine, started = warm_up(student, most), clock()
    found = Race(alone[1], [], [], (mine, alone[0]))
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and clock() - started > BUDGET:
            break
        found.student.append(per_call(student, mine))
        found.reference.append(per_call(reference, alone[0]))
    return found


def require_plausible(found: Race, floor: float, what: str) -> None:
    """Raises Flag if the times can't be true, or can't be compared.

    Args:
        floor: seconds that no kernel can beat; 0 if unknown.
        what: sets the floor, for the message.
    """
    wall = _median(found.student)
    if wall <= 0 or _median(found.reference) <= 0:
        raise Flag("more calls took no more time: nothing was measured")
    events = [lap.device for lap in found.student if lap.device is not None]
    device = statistics.median(events) if events else wall
    for seconds, whose in ((wall, "a call"), (device, "by the device's events, a call")):
        if seconds < floor:
            raise Flag(
                f"{whose} takes {seconds * 1e6:.1f} us; {what} of this GPU needs "
                f"{floor * 1e6:.1f} us at least"
            )
    slower = _median(found.reference) / _median(found.alone)
    if slower > DISTURBED:
        raise Flag(
            f"the reference takes {slower:.2f} times as long beside the submission as alone: "
            "something else works on the GPU"
        )


def _median(laps: list[Lap]) -> float:
    return statistics.median(lap.wall for lap in laps)


def _spread(values: list[float]) -> dict[str, float]:
    """Smallest, median and largest."""
    middle = statistics.median(values)
    return {"min": min(values), "median": middle, "max": max(values)}


def figures(found: Race) -> dict[str, Any]:
    """The times for a report, in microseconds, with their spread over the rounds; the ratio's
    median is that of the medians, which is what counts."""
    laps = {"student": found.student, "reference": found.reference, "alone": found.alone}
    facts: dict[str, Any] = {
        f"{name}_us": _spread([1e6 * lap.wall for lap in those]) for name, those in laps.items()
    }
    for name in ("student", "reference"):
        events = [1e6 * lap.device for lap in laps[name] if lap.device is not None]
        if events:
            facts[f"{name}_events_us"] = _spread(events)
    pairs = zip(found.reference, found.student, strict=True)
    ratios = [r.wall / s.wall for r, s in pairs if s.wall > 0]
    if ratios and _median(found.student) > 0:
        facts["ratio"] = _spread(ratios) | {"median": found.ratio}
    facts["rounds"] = len(found.student)
    facts["calls"] = {"short": SHORT, "student_more": found.more[0],
                      "reference_more": found.more[1]}  # fmt: skip
    return facts
