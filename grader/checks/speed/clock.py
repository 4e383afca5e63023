"""Times the submission and the reference in turn, and judges the times. Uses no device itself.

The time of a reference's call is a slope: (long batch - short batch) / (more calls). This removes
what each batch costs in any case, the way to the child and back, the wait, the copies that are
verified later; and that cost is then known. The submission's time is that of a long batch, minus
this cost, divided by the number of calls. The cost is never measured in the submission's process,
which could slow down short batches to flatten the slope.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from grader.checks.harness.outcomes import Flag

#: Calls of the short batch, and how many more the long one has at least.
SHORT, LEAST_MORE = 2, 4
#: Seconds that the further calls of a long batch should take: a hundred times what the clock errs
#: by, which is the way through a pipe and a wake-up.
WINDOW = 0.01
#: Rounds in which both are timed, and those of the reference before the submission is started.
ROUNDS, ALONE = 5, 3
#: Seconds after which no further round is begun, once there are LEAST_ROUNDS.
BUDGET, LEAST_ROUNDS = 12.0, 2
#: The reference may be this much slower beside the submission than alone.
DISTURBED = 1.3
#: By what the events may exceed the wall clock: the error of either.
EVENT_SLACK = 1.02


@dataclass(frozen=True)
class Lap:
    """Seconds of a batch or of a call: by the grader's clock, and by the device's events. The child
    reads the events and may have invented them; None if there are none."""

    wall: float
    device: float | None = None


class Timed(Protocol):
    """Something that makes batches of calls."""

    def batch(self, calls: int) -> Lap:
        """Makes so many calls, times them, and verifies some.

        Raises:
            Failure: an output is wrong.
        """


@dataclass(frozen=True)
class Pace:
    """The times that follow from a short and a long batch of the reference.

    Attributes:
        call: seconds a call.
        cost: seconds a batch beside its calls.
    """

    call: Lap
    cost: float


def measure(timed: Timed, more: int) -> Pace:
    """The pace, from a short batch and one with `more` calls.

    Raises:
        Flag: see `long_batch`.
    """
    short, long = timed.batch(SHORT), long_batch(timed, more)
    wall = (long.wall - short.wall) / more
    return Pace(Lap(wall, _each(long, more)), short.wall - SHORT * wall)


def _each(batch: Lap, more: int) -> float | None:
    """Seconds a call, by the events around a long batch."""
    return None if batch.device is None else batch.device / (SHORT + more)


def long_batch(timed: Timed, more: int) -> Lap:
    """Times a long batch.

    Raises:
        Flag: the events report more time than the clock.
    """
    lap = timed.batch(SHORT + more)
    if lap.device is not None and lap.device > lap.wall * EVENT_SLACK:
        raise Flag(
            f"the device's events say {lap.device * 1e3:.3f} ms for what took "
            f"{lap.wall * 1e3:.3f} ms by the grader's clock"
        )
    return lap


def warm_up(timed: Timed, most: int) -> int:
    """Runs first batches; returns how many more calls the long batches need.

    Args:
        most: the largest answer.
    """
    timed.batch(SHORT)  # loads the module
    seconds = measure(timed, min(LEAST_MORE, most)).call.wall
    wanted = math.ceil(WINDOW / seconds) if seconds > 0 else most
    return max(min(LEAST_MORE, most), min(wanted, most))


@dataclass
class Race:
    """The times of reference and submission.

    Attributes:
        alone: paces of the reference, before the submission started.
        reference: paces of the reference, one a round.
        batches: long batches of the submission, in turn with those.
        more: how many calls more long batches have than short ones: (student, reference).
    """

    alone: list[Pace]
    reference: list[Pace]
    batches: list[Lap]
    more: tuple[int, int]

    @property
    def cost(self) -> float:
        """Seconds a batch beside its calls."""
        return max(0.0, statistics.median(pace.cost for pace in self.alone + self.reference))

    @property
    def student(self) -> list[Lap]:
        """Seconds a call of the submission, one a round."""
        more = self.more[0]
        return [
            Lap((batch.wall - self.cost) / (SHORT + more), _each(batch, more))
            for batch in self.batches
        ]

    @property
    def ratio(self) -> float:
        """The reference's time over the submission's: 2 is twice as fast."""
        return _median(_calls(self.reference)) / _median(self.student)


def _calls(paces: list[Pace]) -> list[Lap]:
    return [pace.call for pace in paces]


def reference_alone(reference: Timed, most: int) -> tuple[int, list[Pace]]:
    """Times the reference while no process of the submission runs.

    Returns:
        (the number that `warm_up` returns, the paces measured).
    """
    more = warm_up(reference, most)
    return more, [measure(reference, more) for _ in range(ALONE)]


def race(
    student: Timed,
    reference: Timed,
    alone: tuple[int, list[Pace]],
    most: int,
    clock: Callable[[], float] = time.monotonic,
) -> Race:
    """Times both in turn, so that clock rates, temperatures and other load are the same for
    both."""
    mine, started = warm_up(student, most), clock()
    found = Race(alone[1], [], [], (mine, alone[0]))
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and clock() - started > BUDGET:
            break
        found.batches.append(long_batch(student, mine))
        found.reference.append(measure(reference, alone[0]))
    return found


def require_plausible(found: Race, floor: float, what: str) -> None:
    """Raises Flag if the times can't be true, or can't be compared.

    Args:
        floor: seconds that no kernel can beat; 0 if unknown.
        what: what sets the floor, for the message.
    """
    wall = _median(found.student)
    if wall <= 0 or _median(_calls(found.reference)) <= 0:
        raise Flag("more calls took no more time: nothing was measured")
    events = [lap.device for lap in found.student if lap.device is not None]
    device = statistics.median(events) if events else wall
    for seconds, whose in ((wall, "a call"), (device, "by the device's events, a call")):
        if seconds < floor:
            raise Flag(
                f"{whose} takes {seconds * 1e6:.1f} us; {what} of this GPU needs "
                f"{floor * 1e6:.1f} us at least"
            )
    slower = _median(_calls(found.reference)) / _median(_calls(found.alone))
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
    """The times for a report, in microseconds, with their spread over the rounds. The ratio counts
    by the quotient of the medians, which the report shows as its median."""
    laps = {
        "student": found.student,
        "reference": _calls(found.reference),
        "alone": _calls(found.alone),
    }
    facts: dict[str, Any] = {
        f"{name}_us": _spread([1e6 * lap.wall for lap in those]) for name, those in laps.items()
    }
    for name in ("student", "reference"):
        events = [1e6 * lap.device for lap in laps[name] if lap.device is not None]
        if events:
            facts[f"{name}_events_us"] = _spread(events)
    pairs = zip(laps["reference"], laps["student"], strict=True)
    ratios = [r.wall / s.wall for r, s in pairs if s.wall > 0]
    if ratios and _median(found.student) > 0:
        facts["ratio"] = _spread(ratios) | {"median": found.ratio}
    facts["rounds"] = len(found.batches)
    facts["batch_cost_us"] = 1e6 * found.cost
    facts["calls"] = {"short": SHORT, "student_more": found.more[0],
                      "reference_more": found.more[1]}  # fmt: skip
    return facts
