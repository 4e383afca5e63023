"""What handing in late costs: a pure function of the course's policy and of two moments.

Moments have a time zone and are compared as points in time, so no clock that is put forward or
back changes a result. Fractions of a second do not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from grader.base.errors import UsageError
from grader.base.typed import Amount, typed

DAY = 86_400  # seconds
MINUTE = 60  # seconds

#: What a percentage is taken of: the points that were reached, or those that could be.
REACHED: Final = "reached"
POSSIBLE: Final = "possible"
BASES = (REACHED, POSSIBLE)

Percent = Annotated[float, Meta(ge=0, le=100)]
Moment = Annotated[
    datetime,
    Meta(
        tz=True,
        extra={"expected": "a date and time with UTC offset", "hint": "2026-10-09T23:59:00+02:00"},
    ),
]
Extensions = Annotated[dict[str, Moment], Meta(extra={"expected": "a table of due dates"})]


class LatenessError(UsageError):
    """A policy or a moment is wrong; the message is one sentence."""


class LatePolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """What a course takes off for lateness. As it stands, nothing.

    Attributes:
        grace_minutes: after the due date that cost nothing. Who needs more is late from the due
            date on, not from their end.
        percent_a_day: taken off for each begun 24 hours after the due date.
        percent_of: one of BASES.
        late_days: that a student may spend over the term; each makes one day late cost nothing.
        cutoff_days: after the due date until which work counts at all; None for no end.
        extensions: student -> a later due date.
        percent_marked: taken off once from work that bears no time and that the download marks as
            late.
    """

    grace_minutes: Amount = 0.0
    percent_a_day: Percent = 0.0
    percent_of: Literal["reached", "possible"] = REACHED
    late_days: Annotated[int, Meta(ge=0)] = 0
    cutoff_days: Amount | None = None
    extensions: Extensions = {}
    percent_marked: Percent = 0.0

    def due_for(self, student: str, due: datetime) -> datetime:
        """When a student's work is due.

        Raises:
            LatenessError: the extension ends before the due date, or has no time zone.
        """
        own = self.extensions.get(student, due)
        if _utc(own, f"the extension of {student}") < _utc(due, "the due date"):
            raise LatenessError(
                f"the extension of {student} ends {own.isoformat()}, before the due date, "
                f"{due.isoformat()}; hint: an extension is a later due date"
            )
        return own


@dataclass(frozen=True)
class Late:
    """What lateness did to a score.

    Attributes:
        days: begun days late, 0 in time or within the grace, or where nobody knows.
        spent: late days that were used up.
        penalty: points that were taken off.
        score: what is left.
        reason: why, in one sentence.
        marked: whether nothing but a mark of the download says that it is late.
    """

    days: int
    spent: int
    penalty: float
    score: float
    reason: str
    marked: bool = False

    @property
    def is_late(self) -> bool:
        """Whether it came after the grace."""
        return self.days > 0 or self.marked


def late_policy(table: Mapping[str, Any], where: str = "late") -> LatePolicy:
    """The policy in a table of a TOML file; its keys are the attributes of LatePolicy.

    `where` names the table in messages.

    Raises:
        LatenessError: a key is unknown, or a value is of another type or out of range.
    """
    try:
        policy = typed(table, LatePolicy, where)
    except ValueError as error:
        raise LatenessError(str(error)) from error
    if policy.cutoff_days is not None and policy.cutoff_days * DAY < policy.grace_minutes * MINUTE:
        raise LatenessError(
            f"[{where}] cutoff_days is {policy.cutoff_days:g}, which ends before the grace of "
            f"{policy.grace_minutes:g} minutes does"
        )
    return policy


def apply(
    policy: LatePolicy,
    due: datetime,
    submitted: datetime,
    score: float,
    points: float,
    days_left: int = 0,
) -> Late:
    """What is left of `score`, of `points` that could be reached.

    `due` is the student's own, see LatePolicy.due_for. `days_left` is what the student has left of
    the term's late days. As few are spent as leave the most points: none on what scores nothing,
    or after the cut-off.

    Raises:
        LatenessError: a moment has no time zone, or a number is negative.
    """
    for what, number in (("score", score), ("points", points), ("days_left", days_left)):
        if not 0 <= number < math.inf:
            raise LatenessError(f"{what} is {number}, expected a number from 0 on")
    elapsed = _utc(submitted, "the time of handing in") - _utc(due, "the due date")
    seconds = elapsed.days * DAY + elapsed.seconds
    if seconds <= policy.grace_minutes * MINUTE:
        within = f"{_long(seconds)} late, within the grace" if seconds > 0 else "in time"
        return Late(0, 0, 0.0, score, f"{within}: nothing is taken off")
    days = -(-seconds // DAY)
    if policy.cutoff_days is not None and seconds > policy.cutoff_days * DAY:
        why = f"{_long(seconds)} late, after the cut-off of {_days(policy.cutoff_days)}: no points"
        return Late(days, 0, score, 0.0, why)
    available = min(days_left, policy.late_days, days)
    left = [
        _left(policy.percent_of, policy.percent_a_day * (days - spent), score, points)
        for spent in range(available + 1)
    ]
    spent = left.index(max(left))
    why = _reason(policy, seconds, days, spent, score - left[spent])
    return Late(days, spent, round(score - left[spent], 6), left[spent], why)


def apply_mark(policy: LatePolicy, score: float, points: float) -> Late:
    """What is left of a score whose work the download marks as late, without saying how late."""
    left = _left(policy.percent_of, policy.percent_marked, score, points)
    taken = f"{policy.percent_marked:g} % of the {policy.percent_of} points taken off"
    penalty = round(score - left, 6)
    why = f"marked late, without a time, {taken} ({penalty:.6g})"
    return Late(0, 0, penalty, left, why, marked=True)


def _left(percent_of: str, percent: float, score: float, points: float) -> float:
    """Points that are left when so many percent are taken off."""
    base = points if percent_of == POSSIBLE else score
    # to a millionth, so that a percentage shows no digits of binary fractions
    return max(0.0, round(score - base * min(100.0, percent) / 100, 6))


def _reason(policy: LatePolicy, seconds: int, days: int, spent: int, penalty: float) -> str:
    parts = [f"{_long(seconds)} late, which begins day {days}"]
    if spent:
        parts.append(f"{_days(spent, 'late day')} spent")
    charged = min(100.0, policy.percent_a_day * (days - spent))
    if charged:
        taken = f"{charged:g} % of the {policy.percent_of} points taken off"
        parts.append(f"{taken} ({penalty:.6g})")
    else:
        parts.append("nothing is taken off")
    return ", ".join(parts)


def _days(number: float, what: str = "day") -> str:
    return f"{number:g} {what}{'' if number == 1 else 's'}"


def _long(seconds: int) -> str:
    days, rest = divmod(seconds, DAY)
    clock = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02} h"
    return f"{_days(days)} {clock}" if days else clock


def _utc(moment: datetime, what: str) -> datetime:
    """The moment in UTC. Python subtracts two moments of one zone by its wall clock, which summer
    time shifts."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise LatenessError(
            f"{what}, {moment.isoformat()}, has no time zone; "
            "hint: write it like 2026-10-09T23:59:00+02:00"
        )
    return moment.astimezone(timezone.utc)
