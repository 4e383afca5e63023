"""The scores of a class as tables: one row a student, or one row a student and check.

A student without a score has an empty cell, never a zero: one who handed in nothing, waits for
grading, or, unless provisional scores are asked for, met a failure of the grader.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from msgspec import structs

from grader.base.errors import UsageError
from grader.base.printable import csv_cell
from grader.classroom.adjustments import Adjustment, by_hand, of_students
from grader.classroom.lateness import Late, LatenessError, LatePolicy, apply, apply_mark
from grader.classroom.store import ERROR, GRADED, UNREADABLE, Classbook, Entry, Standing, called
from grader.report.model import ERROR as CHECK_ERROR
from grader.report.model import ByHand, Report, Result
from grader.report.stored import StoredError
from grader.report.terminal import by_hand_text

_SPENT = "late days spent"
_HEAD = ("student", "name", "email", "section", "group", "state", "score", "points possible")
_BY_HAND = ("by hand", "by hand note")
_LATE = ("submitted", "late", "days late", _SPENT, "score before late", "late note")
_LONG = ("student", "check", "score", "max", "status", "seed", "grader version")


class GradebookError(UsageError):
    """A gradebook can't be made, or read; the message says why."""


@dataclass(frozen=True)
class Lateness:
    """The late policy of an assignment.

    Attributes:
        due: for those without an extension.
        spent: student, as csv_cell writes it -> late days spent on earlier assignments.
    """

    policy: LatePolicy
    due: datetime
    spent: Mapping[str, int] = field(default_factory=dict)

    def for_class(self, entries: Collection[Entry]) -> Lateness:
        """The same policy, with its extensions by id: a course may write them for a login, an
        e-mail address or a group. An extension for nobody in the class stays as it is.

        Raises:
            GradebookError: a student has two different extensions.
        """
        names, found = called(entries), dict[str, datetime]()
        for name, moment in self.policy.extensions.items():
            for student in names.get(name.casefold(), (name,)):
                if found.setdefault(student, moment) != moment:
                    raise GradebookError(
                        f"student {student} has two extensions, to {found[student].isoformat()} "
                        f"and, as {name!r}, to {moment.isoformat()}"
                    )
        return replace(self, policy=structs.replace(self.policy, extensions=found))

    def of(self, entry: Entry, score: float, points: float) -> Late | None:
        """What lateness leaves of a score. None if the time of the work is unknown, unless it is
        marked late: then the policy's flat cost applies. For a student with an extension, the mark
        may mean either date, so it costs nothing.

        Raises:
            GradebookError: a date of the student is wrong.
        """
        if not entry.submitted:
            charged = entry.late and self.policy.percent_marked
            extended = entry.student in self.policy.extensions
            return apply_mark(self.policy, score, points) if charged and not extended else None
        left = max(0, self.policy.late_days - self.spent.get(csv_cell(entry.student), 0))
        try:
            submitted = datetime.fromisoformat(entry.submitted.replace("Z", "+00:00"))
            due = self.policy.due_for(entry.student, self.due)
            return apply(self.policy, due, submitted, score, points, left)
        except (ValueError, LatenessError) as error:
            raise GradebookError(f"student {entry.student}: {error}") from error


@dataclass(frozen=True)
class Mark:
    """How one check of one student counts. `score` is None if the grader failed."""

    check: str
    task: str
    score: float | None
    points: float
    status: str


@dataclass(frozen=True)
class StudentScore:
    """One student in a gradebook.

    Attributes:
        earned: points from checks and people, before lateness; None without a score.
        score: points that count; None without a score.
        points: points that can be reached.
        late: what the late policy says; None without a policy or a score.
        marks: one a check, in the order of the report.
        by_hand: of the report, see grader.classroom.adjustments.
        in_vain: checks or parts for which a student without a score got points by hand.
        parts: number of a part -> its name.
    """

    standing: Standing
    earned: float | None
    score: float | None
    points: float
    late: Late | None = None
    marks: list[Mark] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    grader_version: str = ""
    by_hand: list[ByHand] = field(default_factory=list)
    in_vain: list[str] = field(default_factory=list)

    @property
    def given(self) -> float:
        """Points by hand."""
        points: float = sum(each["points"] for each in self.by_hand)
        return points

    @property
    def entry(self) -> Entry:
        """The student."""
        return self.standing.entry

    def part(self, number: str, provisional: bool = False) -> float | None:
        """Points in one part; None if it was not graded, or the grader failed in it."""
        scores = [m.score for m in self.marks if m.task.partition(".")[0] == number]
        known = [score for score in scores if score is not None]
        whole = bool(scores) and (provisional or len(known) == len(scores))
        return sum(known) if whole else None


@dataclass(frozen=True)
class Gradebook:
    """The rows of a class, in the order of its entries.

    Attributes:
        provisional: whether checks in which the grader failed count as 0; otherwise they leave the
            student's score open.
    """

    rows: list[StudentScore]
    provisional: bool = False

    @property
    def points(self) -> float | None:
        """Points that can be reached; None if they differ among the students graded."""
        found = {row.points for row in self.rows if row.score is not None}
        found = found or {row.points for row in self.rows}
        return found.pop() if len(found) == 1 else None

    @property
    def states(self) -> Counter[str]:
        """State -> number of students in it."""
        return Counter(row.standing.state for row in self.rows)


def read_gradebook(
    book: Classbook, lateness: Lateness | None = None, provisional: bool = False
) -> Gradebook:
    """The gradebook of a class. It keeps a small part of each report.

    Raises:
        GradebookError: a date of a student is wrong.
        SheetError: a line of the adjustments is wrong.
    """
    given = of_students(book)
    return Gradebook(
        [
            _row(book, entry, lateness, provisional, given.get(entry.student, []))
            for entry in book.entries
        ],
        provisional,
    )


def _row(
    book: Classbook,
    entry: Entry,
    lateness: Lateness | None,
    provisional: bool,
    given: list[Adjustment],
) -> StudentScore:
    standing = book.standing(entry)
    report = _report(book, entry) if standing.outcomes or standing.points else None
    changes = by_hand(report, given).by_hand if report else []
    earned = earned_score(standing, provisional)
    if earned is not None:
        earned = round(earned + sum(each["points"] for each in changes), 6)
    points = standing.points if report else book.points
    late = lateness.of(entry, earned, points) if lateness and earned is not None else None
    return StudentScore(
        standing,
        earned,
        late.score if late else earned,
        points,
        late,
        [_mark(result) for result in report.results] if report else [],
        dict(report.parts) if report else {},
        report.grader_version if report else "",
        changes,
        [each.on for each in given] if earned is None else [],
    )


def earned_score(standing: Standing, provisional: bool = False) -> float | None:
    """The score before lateness; None if there is none to hand on.

    If the grader failed in a student's checks, the score is open; `provisional` gives the points
    that are certain. Work that can't be read was handed in, and earns 0.
    """
    if standing.state in (GRADED, UNREADABLE):
        return standing.score
    failed_in_checks = standing.state == ERROR and bool(standing.outcomes)
    return standing.score if failed_in_checks and provisional else None


def _report(book: Classbook, entry: Entry) -> Report | None:
    try:
        return book.report(entry)
    except (StoredError, OSError):
        return None


def _mark(result: Result) -> Mark:
    score = None if result.status == CHECK_ERROR else result.score
    return Mark(result.check, result.task, score, result.points, result.status)


def figure(value: float | None) -> str:
    """A number with at most four decimals and no trailing zeros; "" for None."""
    if value is None:
        return ""
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def to_csv(gradebook: Gradebook) -> str:
    """A row a student: who, state, score, lateness, and a column for each part and each check."""
    parts, checks = _columns(gradebook.rows)
    shown = [csv_cell(f"part {number}: {name}") for number, name in parts.items()]
    head = [*_HEAD, *_BY_HAND, *_LATE, "problem", *shown, *map(csv_cell, checks)]
    return _table([head, *(_line(gradebook, row, parts, checks) for row in gradebook.rows)])


def _columns(rows: Iterable[StudentScore]) -> tuple[dict[str, str], list[str]]:
    """(parts by number, checks in the order of the reports)."""
    parts: dict[str, str] = {}
    checks: dict[str, None] = {}
    for row in rows:
        graded = {mark.task.partition(".")[0] for mark in row.marks}
        parts |= {number: name for number, name in row.parts.items() if number in graded}
        checks |= dict.fromkeys(mark.check for mark in row.marks)
    ordered = sorted(parts, key=lambda number: (len(number), number))
    return {number: parts[number] for number in ordered}, list(checks)


def _line(
    gradebook: Gradebook, row: StudentScore, parts: Iterable[str], checks: Iterable[str]
) -> list[str]:
    entry, marks = row.entry, {mark.check: mark for mark in row.marks}
    who = map(csv_cell, (entry.student, entry.name, entry.email, entry.section, entry.group))
    return [
        *who,
        row.standing.state,
        figure(row.score),
        figure(row.points),
        figure(row.given) if row.by_hand else "",
        csv_cell("; ".join(map(by_hand_text, row.by_hand))),
        *_late_cells(row),
        csv_cell(row.standing.problem),
        *(figure(row.part(number, gradebook.provisional)) for number in parts),
        *(figure(marks[check].score) if check in marks else "" for check in checks),
    ]


def _late_cells(row: StudentScore) -> list[str]:
    entry, late = row.entry, row.late
    told = "" if entry.late is None else "yes" if entry.late else "no"
    if late is None:
        return [csv_cell(entry.submitted), told, "", "", "", ""]
    return [
        csv_cell(entry.submitted),
        "yes" if late.is_late else "no",
        "" if late.marked else figure(late.days),
        figure(late.spent),
        figure(row.earned),
        csv_cell(late.reason),
    ]


def read_spent(path: Path) -> dict[str, int]:
    """Student -> late days spent, from the gradebook of an earlier assignment as to_csv wrote it.

    Raises:
        GradebookError: the file is no such gradebook.
    """
    spent: dict[str, int] = {}
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = csv.DictReader(io.StringIO(text, newline=""))
        if not {"student", _SPENT} <= set(rows.fieldnames or ()):
            raise GradebookError(f"{path} has no columns student and {_SPENT}; hint: --csv")
        for row in rows:
            days = float(row[_SPENT] or 0)
            if not (math.isfinite(days) and days >= 0):
                raise ValueError(f"{days} late days")
            student = row["student"]
            spent[student] = spent.get(student, 0) + math.ceil(days)
    except (ValueError, TypeError, csv.Error) as error:
        raise GradebookError(f"{path} is not a gradebook of grader export: {error}") from error
    return spent


def to_long(gradebook: Gradebook) -> str:
    """A row a student and check: student, check, score, max, status, seed, grader version.

    A student without a report has one row without a check, whose status is the student's state.
    Adjustments have rows of their own with the status "by hand".
    """
    return _table([_LONG, *_long_lines(gradebook.rows)])


def _long_lines(rows: Iterable[StudentScore]) -> Iterator[list[str]]:
    for row in rows:
        student = csv_cell(row.entry.student)
        if not row.marks:
            yield [student, "", "", "", row.standing.state, "", ""]
        about = [csv_cell(row.standing.seed), csv_cell(row.grader_version)]
        for mark in row.marks:
            points = [figure(mark.score), figure(mark.points), mark.status]
            yield [student, csv_cell(mark.check), *points, *about]
        for each in row.by_hand:
            yield [student, csv_cell(each["on"]), figure(each["points"]), "", "by hand", *about]


def _table(lines: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
