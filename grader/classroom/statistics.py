"""The figures of a class: scores, how each check did, the commonest failures, time and speed.

Functions of the standings alone. A student without a final score (nothing handed in, waiting, the
grader failed, or what was handed in can't be read) is counted by state, and never as a zero.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grader.classroom.store import ERROR as CLASS_ERROR
from grader.classroom.store import GRADED, STATES, UNREADABLE, CheckOutcome, Entry, Standing
from grader.report.model import ERROR, FAIL, PASS, SKIPPED

NOBODY, EVERYBODY, WRONG_WAY = "nobody", "everybody", "separates the wrong way"

#: Students below which no correlation, no groups and no alpha are computed.
FEWEST = 5
#: Share of the class in the upper and in the lower group: with it their difference is told from
#: chance best, for scores that are about normal (Kelley 1939, J. Educational Psychology 30).
GROUP = 0.27
_MOST_BINS = 25
_MOST_TEXT = 300  # characters of a message that is kept as an example


@dataclass(frozen=True)
class Spread:
    """A summary of values. Quantiles are interpolated: type 7 of Hyndman & Fan 1996."""

    count: int
    mean: float
    deviation: float
    smallest: float
    lower: float
    median: float
    upper: float
    p90: float
    largest: float


@dataclass(frozen=True)
class Bin:
    """Scores from `low` to under `high`; the last bin holds full points alone: low == high."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Item:
    """How a class did in one check.

    Attributes:
        passed, failed, unbegun, skipped, error: students by result; unbegun: a task that it needs
            is not written yet.
        away: of the skipped, those whom no earlier check held up: it can't run on that machine.
        share: of passed among those whom it counts for ("difficulty"); None if for nobody.
        correlation: of passing with the score in all other checks, from -1 to 1; None if it says
            nothing. The point-biserial correlation, corrected by leaving the check's own points
            out (Henrysson 1963, Psychometrika 28).
        upper_lower: share of passed in the upper 27 % by score, less that in the lower 27 %.
        flags: of NOBODY, EVERYBODY and WRONG_WAY those that hold.
    """

    check: str
    passed: int
    failed: int
    unbegun: int
    skipped: int
    error: int
    away: int
    share: float | None
    correlation: float | None
    upper_lower: float | None
    flags: tuple[str, ...]


@dataclass(frozen=True)
class CommonFailure:
    """Students who failed one check in the same way; `check` is "" for the submission itself.

    Attributes:
        kind: title of the first finding, else the message with its numbers made alike.
        message: first line of the first student's.
        students: all of them, in the order of the class.
    """

    check: str
    kind: str
    message: str
    students: tuple[Entry, ...]

    @property
    def count(self) -> int:
        """How many students."""
        return len(self.students)


@dataclass(frozen=True)
class Figures:
    """All figures of a class. `states` has every state; `scores` is None if nobody has one.

    Attributes:
        alpha: Cronbach's, None where it makes no sense.
        seconds, ratios: check -> wall times of those who ran it; speeds as ratios to the
            reference's, for checks that measure it.
        total_seconds: of whole gradings.
        faults: what failed of the grader's own, in the same way.
    """

    states: dict[str, int]
    scores: Spread | None
    bins: list[Bin]
    alpha: float | None
    items: list[Item]
    failures: list[CommonFailure]
    faults: list[CommonFailure]
    seconds: dict[str, Spread]
    ratios: dict[str, Spread]
    total_seconds: Spread | None


def analyse(standings: Sequence[Standing], points: float) -> Figures:
    """The figures of a class; `points` is what can be reached."""
    graded = [each for each in standings if each.state == GRADED]
    scores = [each.score for each in graded]
    checks = checks_of(standings)
    states = Counter(each.state for each in standings)
    return Figures(
        states={state: states[state] for state in STATES},
        scores=spread(scores),
        bins=distribution(scores, points),
        alpha=cronbach_alpha([each.outcomes for each in graded]),
        items=[item(check, standings) for check in checks],
        failures=failures(standings),
        faults=_alike_problems(standings, CLASS_ERROR),
        seconds=dict(_spreads(checks, standings, _seconds)),
        ratios=dict(_spreads(checks, standings, _ratio)),
        total_seconds=spread([each.seconds for each in graded]),
    )


def checks_of(standings: Iterable[Standing]) -> list[str]:
    """Names of all checks, in the order in which reports have them."""
    return list(dict.fromkeys(check for each in standings for check in each.outcomes))


# --- scores -------------------------------------------------------------------------------------


def spread(values: Sequence[float]) -> Spread | None:
    """The summary of values; None without values. The deviation is the sample's, 0 for one
    value."""
    if not values:
        return None
    ordered = np.sort(values)  # so that no order of the class changes a last digit
    quantiles = map(float, np.quantile(ordered, (0, 0.25, 0.5, 0.75, 0.9, 1)))
    deviation = float(ordered.std(ddof=1)) if len(ordered) > 1 else 0.0
    return Spread(len(ordered), float(ordered.mean()), deviation, *quantiles)


def distribution(scores: Iterable[float], points: float) -> list[Bin]:
    """Scores by bins of a round width, at most 25 of them, and one more for full points.

    No bin is narrower than a point where all scores are whole.
    """
    if points <= 0:
        return []
    scores = list(scores)
    whole = all(score == round(score) for score in scores)
    width = _bin_width(points, 1.0 if whole else 0.0)
    number = math.ceil(points / width - 1e-9)
    # Sums of points such as 0.1 may lie a rounding below the edge that they stand for.
    places = Counter(
        number if score >= points - 1e-9 else max(math.floor(score / width + 1e-9), 0)
        for score in scores
    )
    edges = [min(round(place * width, 9), points) for place in range(number)] + [points, points]
    return [Bin(edges[i], edges[i + 1], places[i]) for i in range(number + 1)]


def _bin_width(points: float, least: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that makes at most 25 bins."""
    power = math.floor(math.log10(points / _MOST_BINS))
    widths = (factor * 10.0**exponent for exponent in (power, power + 1) for factor in (1, 2, 5))
    fitting = next(width for width in widths if points / width <= _MOST_BINS + 1e-9)
    return max(fitting, least)


def cronbach_alpha(students: Sequence[dict[str, CheckOutcome]]) -> float | None:
    """How far the checks' points measure one thing (Cronbach 1951, Psychometrika 16): 1 at most.

    Over the checks that all students have and whose points differ between them. None for fewer
    than two such checks or FEWEST students. Checks that need each other raise it.
    """
    if len(students) < FEWEST:
        return None
    common = set(students[0]).intersection(*students)
    checks = [check for check in students[0] if check in common]
    scores = np.array([[each[check].score for check in checks] for each in students])
    scores = scores[:, np.ptp(scores, axis=0) > 0]
    number, total = scores.shape[1], float(scores.sum(axis=1).var())
    if number < 2 or total <= 1e-18:
        return None
    return float(number / (number - 1) * (1 - scores.var(axis=0).sum() / total))


# --- items --------------------------------------------------------------------------------------


def item(check: str, standings: Iterable[Standing]) -> Item:
    """How a class did in one check. Submissions that can't be read say nothing about a check."""
    seen = [s for s in standings if check in s.outcomes and s.state != UNREADABLE]
    counts = Counter(s.outcomes[check].status for s in seen)
    unbegun = sum(s.outcomes[check].is_unbegun for s in seen)
    away = sum(_is_away(s.outcomes[check]) for s in seen)
    tried = counts[PASS] + counts[FAIL] + counts[SKIPPED] - away
    if away and not counts[PASS]:
        tried = 0  # this machine can't run it: who failed before that is no sign of its difficulty
    rows = list(_rows(check, seen)) if tried else []
    correlation = _correlation([(float(has), score - own) for has, score, own in rows])
    return Item(
        check, counts[PASS], counts[FAIL] - unbegun, unbegun, counts[SKIPPED], counts[ERROR], away,
        share=counts[PASS] / tried if tried else None,
        correlation=correlation,
        upper_lower=upper_lower([(score, has) for has, score, _ in rows]),
        flags=tuple(_flags(counts[PASS], tried, correlation, len(rows))),
    )  # fmt: skip


def _rows(check: str, seen: Iterable[Standing]) -> Iterator[tuple[bool, float, float]]:
    """(passed, score, points of this check in it) of the students with a final score."""
    for standing in seen:
        outcome = standing.outcomes[check]
        if standing.state == GRADED and not _is_away(outcome):
            yield outcome.status == PASS, standing.score, outcome.score


def _is_away(outcome: CheckOutcome) -> bool:
    """Whether it was skipped for another reason than an earlier check that was not passed."""
    return outcome.status == SKIPPED and not outcome.message.startswith("needs ")


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's, which of 0 and 1 with a number is the point-biserial; None if one is constant."""
    if len(pairs) < FEWEST:
        return None
    if min(np.ptp(pairs, axis=0)) < 1e-9:
        return None
    return float(np.asarray(np.corrcoef(pairs, rowvar=False))[0, 1])


def upper_lower(rows: Sequence[tuple[float, bool]]) -> float | None:
    """Share of passed in the upper 27 % less that in the lower 27 %, from (score, passed).

    Students of equal score at a group's border share the places that are left, so that the order
    of the class does not matter. None for fewer than FEWEST students.
    """
    if len(rows) < FEWEST:
        return None
    size = max(1, round(GROUP * len(rows)))
    upper = _passed_in_first(sorted(rows, reverse=True), size)
    return (upper - _passed_in_first(sorted(rows), size)) / size


def _passed_in_first(rows: Sequence[tuple[float, bool]], size: int) -> float:
    """How many of the first `size` passed; those tied with the last of them count in part."""
    border = rows[size - 1][0]
    tied = [passed for score, passed in rows if score == border]
    inside = [passed for score, passed in rows[:size] if score != border]
    return sum(inside) + (size - len(inside)) * sum(tied) / len(tied)


def _flags(passed: int, tried: int, correlation: float | None, number: int) -> Iterator[str]:
    if tried and not passed:
        yield NOBODY
    if tried and passed == tried:
        yield EVERYBODY
    # Two standard errors of a correlation of none: what chance alone seldom makes.
    if correlation is not None and correlation < -2 / math.sqrt(number):
        yield WRONG_WAY


# --- failures -----------------------------------------------------------------------------------

_ALL = re.compile(r"\b(\d[\d,]*) of \1 (?=elements)")
_NUMBER = re.compile(
    r"(?<![A-Za-z_\d])[-+]?(?:0x[0-9a-fA-F]+|(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?)"
)
_LIST = re.compile(r"([(\[])N(?:, ?N)*,?([)\]])")


def alike(message: str) -> str:
    """The first line of a message with its numbers, shapes and indices written as N.

    That all elements differ is another mistake than that some do, so "7 of 7" stays apart; so do
    nan and inf, and numbers within names such as float32.
    """
    line = first_line(message)
    return _LIST.sub(r"\1N\2", _NUMBER.sub("N", _ALL.sub("all ", line)))


def first_line(message: str) -> str:
    """The first line of a message, cut where it is very long."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "")
    return line if len(line) <= _MOST_TEXT else f"{line[:_MOST_TEXT]}..."


def failures(standings: Sequence[Standing]) -> list[CommonFailure]:
    """What students failed alike, the commonest first; what can't be read at all among it. What is
    not written yet is no failure."""
    groups: dict[tuple[str, str], list[tuple[Entry, str]]] = {}
    for standing in standings:
        for check, outcome in standing.outcomes.items():
            if outcome.status == FAIL and not outcome.is_unbegun:
                kind = first_line(outcome.finding) or alike(outcome.message)
                group = groups.setdefault((check, kind), [])
                group.append((standing.entry, outcome.message))
    made = [_failure(check, kind, group) for (check, kind), group in groups.items()]
    return _commonest([*made, *_alike_problems(standings, UNREADABLE)])


def _alike_problems(standings: Iterable[Standing], state: str) -> list[CommonFailure]:
    """The problems of the students in a state, grouped."""
    groups: dict[str, list[tuple[Entry, str]]] = {}
    for standing in standings:
        if standing.state == state:
            group = groups.setdefault(alike(standing.problem), [])
            group.append((standing.entry, standing.problem))
    return _commonest([_failure("", kind, group) for kind, group in groups.items()])


def _failure(check: str, kind: str, group: Sequence[tuple[Entry, str]]) -> CommonFailure:
    return CommonFailure(check, kind, first_line(group[0][1]), tuple(entry for entry, _ in group))


def _commonest(failures: Iterable[CommonFailure]) -> list[CommonFailure]:
    return sorted(failures, key=lambda each: (-each.count, each.check, each.kind))


# --- time and speed -----------------------------------------------------------------------------


def _seconds(outcome: CheckOutcome) -> float | None:
    """Seconds of a check that ran; None where a task is not written, since that fails at once."""
    ran = outcome.status in (PASS, FAIL) and not outcome.is_unbegun
    return outcome.seconds if ran and outcome.seconds > 0 else None


def _ratio(outcome: CheckOutcome) -> float | None:
    """The measured ratio of speeds; None for a check without one."""
    return outcome.ratio if outcome.ratio > 0 and math.isfinite(outcome.ratio) else None


def _spreads(
    checks: Iterable[str],
    standings: Sequence[Standing],
    value: Callable[[CheckOutcome], float | None],
) -> Iterator[tuple[str, Spread]]:
    """(check, the summary of its values), for the checks that have any."""
    for check in checks:
        outcomes = (each.outcomes[check] for each in standings if check in each.outcomes)
        values = [found for found in map(value, outcomes) if found is not None]
        if found := spread(values):
            yield check, found
