"""Compares two gradings of a class, and replaces old reports with new ones.

`compare` says who changes and why. `accept` replaces the reports of those students, one by one, and
keeps each old report beside the new one as report-before-TIME.json, where TIME says when the old
one was made.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.base.printable import csv_cell
from grader.classroom.store import (
    GRADED,
    UNREADABLE,
    Classbook,
    Entry,
    Standing,
    called,
    keep_former,
    nobody,
)
from grader.report.model import Report
from grader.report.stored import StoredError

#: What a change does to a student: the score goes up or down, stays although checks ended
#: otherwise, is there where none was, or is gone; "same" is no change.
KINDS = UP, DOWN, GAINED, LOST, EQUAL, SAME = ("up", "down", "gained", "lost", "equal", "same")
#: Schema of the JSON; a change that breaks readers makes it larger.
SCHEMA = "dlsys-grader-regrade/1"
_LEAST = 1e-9
_SUBMISSION, _RUBRIC, _VERSION = "submission", "rubric", "grader version"


class RegradeError(UsageError):
    """The results can't be compared or replaced; the message says why."""


@dataclass(frozen=True)
class CheckChange:
    """A check whose result changes. The status is "" and the score 0 on a side that did not run it.

    Attributes:
        message: what the new report says.
    """

    check: str
    status_before: str
    status_after: str
    score_before: float
    score_after: float
    message: str = ""


@dataclass(frozen=True)
class Change:
    """One student in two gradings.

    Attributes:
        kind: one of KINDS.
        state_before, state_after: as in grader.classroom.store; "" where the student is not in it.
        score_before, score_after: None where there is no final score.
        points_before, points_after: what could be reached; 0 without a report.
        checks: those that ended otherwise.
        differs: what may be the reason -> what it was and what it is: "submission", "rubric",
            "grader version", "device", "isolation", "seed", "problem", "submitted".
    """

    student: str
    name: str
    kind: str
    state_before: str
    state_after: str
    score_before: float | None
    score_after: float | None
    points_before: float = 0.0
    points_after: float = 0.0
    checks: list[CheckChange] = field(default_factory=list)
    differs: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def delta(self) -> float | None:
        """Change of the score; None unless there is one before and after."""
        if self.score_before is None or self.score_after is None:
            return None
        return self.score_after - self.score_before

    @property
    def is_renewed(self) -> bool:
        """Whether the student changes, or has the same result by another rubric or grader."""
        return self.kind != SAME or bool({_RUBRIC, _VERSION} & set(self.differs))


@dataclass(frozen=True)
class Totals:
    """The number of students by kind of change. `mean` is the mean change of those with a score
    before and after; None if there is nobody."""

    counts: dict[str, int]
    mean: float | None

    @property
    def changed(self) -> int:
        """The number of students whose grading differs in any way."""
        return sum(number for kind, number in self.counts.items() if kind != SAME)


def compare(old: Classbook, new: Classbook) -> list[Change]:
    """A change for each student of both gradings: those of `old` first, each in its order.

    Seeds, and the figures in messages, differ from run to run: neither counts as a change.
    """
    theirs = {entry.student: entry for entry in new.entries}
    mine = {entry.student for entry in old.entries}
    pairs = [(entry, theirs.get(entry.student)) for entry in old.entries]
    pairs_new = [(None, entry) for entry in new.entries if entry.student not in mine]
    return [_change(_side(old, a), _side(new, b)) for a, b in [*pairs, *pairs_new]]


def totals(changes: Iterable[Change]) -> Totals:
    """The totals of all changes."""
    given = list(changes)
    counts = {kind: sum(change.kind == kind for change in given) for kind in KINDS}
    deltas = [change.delta for change in given if change.delta is not None]
    return Totals(counts, fmean(deltas) if deltas else None)


@dataclass(frozen=True)
class _Side:
    """One student in one grading: the standing, and what the report is about."""

    entry: Entry | None
    standing: Standing | None
    about: dict[str, str]

    @property
    def state(self) -> str:
        return self.standing.state if self.standing else ""

    @property
    def points(self) -> float:
        return self.standing.points if self.standing else 0.0

    @property
    def score(self) -> float | None:
        final = self.standing is not None and self.standing.state in (GRADED, UNREADABLE)
        return self.standing.score if self.standing and final else None


def _side(book: Classbook, entry: Entry | None) -> _Side:
    if entry is None:
        return _Side(None, None, {})
    standing = book.standing(entry)
    report = whole_report(book, entry)
    about = {} if report is None else _about(report)
    about |= {"problem": standing.problem, "submitted": entry.submitted}
    return _Side(entry, standing, about)


def _about(report: Report) -> dict[str, str]:
    return {
        _SUBMISSION: report.sha256,
        _RUBRIC: f"{report.profile} {report.rubric}".strip(),
        _VERSION: report.grader_version,
        "device": report.device,
        "isolation": report.isolation,
        "seed": report.seed,
    }


def whole_report(book: Classbook, entry: Entry) -> Report | None:
    """The student's report; None if there is none, or it is not whole."""
    try:
        report = book.report(entry)
    except (StoredError, OSError):
        return None
    return report if report and report.complete else None


def _change(before: _Side, after: _Side) -> Change:
    entry = after.entry or before.entry
    assert entry is not None  # each pair has one of them
    checks = _check_changes(before, after)
    # Where one has no report, there is nothing that it was made with.
    shared = [name for name in before.about if name in after.about]
    both = {name: (before.about[name], after.about[name]) for name in shared}
    differs = {name: (old, new) for name, (old, new) in both.items() if old != new}
    return Change(
        entry.student, entry.name, _kind(before, after, checks, differs),
        before.state, after.state, before.score, after.score, before.points, after.points,
        checks, differs,
    )  # fmt: skip


def _kind(before: _Side, after: _Side, checks: list[CheckChange], differs: Collection[str]) -> str:
    if before.score is not None and after.score is not None:
        delta = after.score - before.score
        if abs(delta) > _LEAST:
            return UP if delta > 0 else DOWN
    elif before.score is not None:
        return LOST
    elif after.score is not None:
        return GAINED
    otherwise = before.state != after.state or abs(before.points - after.points) > _LEAST
    resubmitted = bool({_SUBMISSION, "submitted"} & set(differs))
    return EQUAL if otherwise or checks or resubmitted else SAME


def _check_changes(before: _Side, after: _Side) -> list[CheckChange]:
    """The checks whose status or score differs, in the new report's order."""
    if not (before.standing and after.standing):
        return []
    old, new = before.standing.outcomes, after.standing.outcomes
    changes = []
    for check in {**new, **old} if old and new else {}:
        was, now = old.get(check), new.get(check)
        change = CheckChange(
            check,
            was.status if was else "",
            now.status if now else "",
            was.score if was else 0.0,
            now.score if now else 0.0,
            now.message if now else "",
        )
        status = change.status_before != change.status_after
        if status or abs(change.score_after - change.score_before) > _LEAST:
            changes.append(change)
    return changes


_COLUMNS = (
    "student", "name", "change", "state before", "state after", "score before", "score after",
    "points before", "points after", "check", "status before", "status after",
    "check score before", "check score after", "message", "differs",
)  # fmt: skip


def to_csv(changes: Iterable[Change]) -> str:
    """A row for each student and check that changes; one row without a check if no check does."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for change in changes:
        if change.kind != SAME:
            writer.writerows(_lines(change))
    return text.getvalue()


def _lines(change: Change) -> Iterable[list[object]]:
    head = [
        csv_cell(change.student), csv_cell(change.name), change.kind,
        change.state_before, change.state_after, change.score_before, change.score_after,
        change.points_before, change.points_after,
    ]  # fmt: skip
    differs = csv_cell("; ".join(f"{n}: {a} -> {b}" for n, (a, b) in change.differs.items()))
    if not change.checks:
        yield [*head, "", "", "", "", "", "", differs]
    for each in change.checks:
        _, *rest, message = asdict(each).values()
        yield [*head, csv_cell(each.check), *rest, csv_cell(message), differs]


def to_json(changes: Iterable[Change]) -> str:
    """All changes, and the totals."""
    given = list(changes)
    found = totals(given)
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "counts": found.counts,
        "mean_change": found.mean,
        "changes": [{**asdict(each), "delta": each.delta} for each in given if each.kind != SAME],
    }
    return json.dumps(values, indent=1, allow_nan=False) + "\n"


@dataclass
class Accepted:
    """What `accept` did: the students whose report it replaced, and student -> why it did not."""

    replaced: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


def accept(
    old: Classbook,
    new: Classbook,
    changes: Iterable[Change],
    only: Collection[str] = (),
    step: Callable[[], None] = lambda: None,
) -> Accepted:
    """Replaces the reports of the students that change with those of `new`.

    It also replaces equal results that another rubric or grader made, so that one rubric grades the
    whole class. Each student is replaced whole or not at all; after an interruption, a second call
    goes on. A score never disappears: the old report stays if `new` has no score. The caller must
    hold the lock of the old results, see grader.batch.batch.

    Args:
        changes: of compare(old, new), as the reader has seen them.
        only: replaces these students alone, also if nothing changes; by id, login, e-mail or group.
        step: called after each student.

    Raises:
        RegradeError: `only` names somebody who is not in the results.
        OSError: a file can't be written.
    """
    given = {change.student: change for change in changes}
    names = called({e.student: e for e in (*old.entries, *new.entries)}.values())
    unknown = sorted(name for name in only if name.casefold() not in names)
    if unknown:
        raise RegradeError(nobody(unknown[0], names))
    asked = {student for name in only for student in names[name.casefold()]}
    done = Accepted()
    theirs = {entry.student: entry for entry in new.entries}
    places = {entry.student: at for at, entry in enumerate(old.entries)}
    wanted = [s for s, c in given.items() if (s in asked if only else c.is_renewed)]
    for student in wanted:
        why = _not_replaced(given[student], places)
        if why:
            done.kept[student] = why
        else:
            _replace(old, new, places[student], theirs[student])
            done.replaced.append(student)
        step()
    if done.replaced:
        _take_head(old, new)
    return done


def _not_replaced(change: Change, places: Collection[str]) -> str:
    """Why a student's report stays; "" if it does not."""
    if change.student not in places:
        return "not in the old results"
    if not change.state_after:
        return "not in the new results"
    if change.score_after is None:
        return f"{change.state_after} in the new results"
    return ""


def _replace(old: Classbook, new: Classbook, at: int, theirs: Entry) -> None:
    """Replaces one report. The entry comes first: after an interruption here, the student still
    shows as one that changes."""
    mine = old.entries[at]
    content = new.report_path(theirs).read_bytes()
    told = ("source", "submitted", "late", "attempt", "notes", "given_by")
    entry = replace(mine, **{name: getattr(theirs, name) for name in told})
    if entry != mine:
        old.entries[at] = entry
        old.write()
    keep_former(old.report_path(mine))
    write_whole(old.report_path(mine), content)
    old.error_path(mine).unlink(missing_ok=True)


def _take_head(old: Classbook, new: Classbook) -> None:
    """Writes the new rubric into class.json, once every report is by that rubric."""
    reports = (whole_report(old, entry) for entry in old.entries if entry.source)
    if all(report is None or report.rubric == new.rubric for report in reports):
        names = ("title", "profile", "rubric", "points", "device", "isolation", "grader_version")
        for name in names:
            setattr(old, name, getattr(new, name))
        old.write()
