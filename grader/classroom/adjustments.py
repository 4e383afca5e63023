"""Points and comments that people give by hand, beside those of the checks.

RESULTS/adjustments.csv holds one a line: student, on (a check, "part 2", or nothing for the whole),
points (added; below 0 takes away), comment, by. Reports never hold them, so a class can be graded
again without losing them; people see both together.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.base.printable import csv_cell
from grader.base.sheets import SheetError, read_sheet
from grader.classroom.roster import IDS
from grader.classroom.store import Classbook, called, nobody
from grader.report.model import ByHand, Report
from grader.report.stored import StoredError

_PART = "part "
_COLUMNS = {
    "student": (*IDS, "login", "email", "email address"),
    "on": ("on", "check", "part", "part or check"),
    "points": ("points",),
    "comment": ("comment", "comments", "why"),
    "by": ("by", "grader", "who"),
}


class AdjustmentError(UsageError):
    """Points can't be given as asked; the message says why."""


@dataclass(frozen=True)
class Adjustment:
    """Points and a comment that somebody gave by hand.

    Attributes:
        student: the id.
        on: name of a check, "part 2", or "" for the whole.
        points: added to the automatic ones.
        comment: why.
        by: who gave them.
    """

    student: str
    on: str
    points: float
    comment: str
    by: str

    @property
    def place(self) -> tuple[str, str]:
        """(student, on): one adjustment at most has it."""
        return self.student, self.on


def adjustments_path(book: Classbook) -> Path:
    """The file of a class's adjustments, which need not exist."""
    return book.path / "adjustments.csv"


def read_adjustments(book: Classbook) -> list[Adjustment]:
    """All adjustments of a class, also of students who have left it: see of_nobody.

    Raises:
        SheetError: a line of the file is wrong.
    """
    path = adjustments_path(book)
    return parse_adjustments(path, book, leavers=True) if path.is_file() else []


def of_nobody(book: Classbook) -> str:
    """A sentence on adjustments for students who are not in the class, or "". They count for nobody
    and stay in the file, since these students may come back.

    Raises:
        SheetError: a line of the file is wrong.
    """
    known = {entry.student for entry in book.entries}
    names = sorted({each.student for each in read_adjustments(book)} - known)
    where = f"warning: {adjustments_path(book)} names people who are not in the class"
    return f"{where}, which counts for nobody: {', '.join(names)}" if names else ""


def of_students(book: Classbook) -> dict[str, list[Adjustment]]:
    """Student -> adjustments.

    Raises:
        SheetError: a line of the file is wrong.
    """
    found: dict[str, list[Adjustment]] = {}
    for each in read_adjustments(book):
        found.setdefault(each.student, []).append(each)
    return found


def parse_adjustments(
    path: Path, book: Classbook, by: str = "", leavers: bool = False
) -> list[Adjustment]:
    """The adjustments in a CSV file. A line names a student by id, login or e-mail address, or a
    group, whose members all get them.

    Args:
        by: who gives them, where the line does not say.
        leavers: whether a line may name a student who is not in the class.

    Raises:
        SheetError: the file can't be read, or a line is wrong.
    """
    names, places = called(book.entries), known_places(book)
    found: list[Adjustment] = []
    lines: dict[tuple[str, str], int] = {}
    for line, cells in read_sheet(path, _COLUMNS, ("student", "points", "comment")):
        if leavers and cells["student"]:
            names.setdefault(cells["student"].casefold(), (cells["student"],))
        try:
            given = adjustments(cells, names, places, by)
        except AdjustmentError as error:
            raise SheetError(f"{path}:{line}: {error}") from error
        for each in given:
            if each.place in lines:
                raise SheetError(
                    f"{path}:{line}: {each.student} has {each.on or 'the whole'} in line "
                    f"{lines[each.place]} already"
                )
            lines[each.place] = line
        found += given
    return found


def adjustments(
    cells: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
    places: Sequence[str],
    by: str = "",
) -> list[Adjustment]:
    """The adjustments of one line: for one student, or for each member of a group.

    Args:
        cells: column -> text.
        names: of grader.classroom.store.called.
        places: of known_places.

    Raises:
        AdjustmentError: the line is wrong.
    """
    students = names.get(cells["student"].casefold(), ())
    if not students:
        raise AdjustmentError(nobody(cells["student"], names))
    on = "" if cells["on"].casefold() in ("", "all", "total") else cells["on"]
    on = f"{_PART}{on}" if on.isdigit() else on
    if on and places and on not in places:
        raise AdjustmentError(
            f"{on!r} is neither a check nor a part; hint: one of {', '.join(places)}, or nothing"
        )
    points = _points(cells["points"])
    if not cells["comment"]:
        raise AdjustmentError("the comment is missing; hint: say why, students read it")
    by = cells["by"] or by
    if not by:
        raise AdjustmentError("the giver is missing; hint: a column `by`, or --by NAME")
    return [Adjustment(student, on, points, cells["comment"], by) for student in students]


def _points(text: str) -> float:
    try:
        points = float(text.replace(",", ".") or 0)
    except ValueError:
        points = math.nan
    if not math.isfinite(points):
        raise AdjustmentError(f"points are {text!r}; hint: a number, such as 1 or -0.5")
    return points


def known_places(book: Classbook) -> list[str]:
    """The parts and checks of a class, from its first whole report; none without one."""
    for entry in book.entries:
        try:
            report = book.report(entry)
        except (StoredError, OSError):
            continue
        if report and report.complete:
            parts = [f"{_PART}{number}" for number in report.parts]
            return [*parts, *(result.check for result in report.results)]
    return []


def write_adjustments(book: Classbook, given: Iterable[Adjustment]) -> list[Adjustment]:
    """Adds adjustments to the file; returns those in the same places, which they replace."""
    before = {each.place: each for each in read_adjustments(book)}
    new = {each.place: each for each in given}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for each in {**before, **new}.values():
        about = (each.comment, each.by)
        row = [csv_cell(each.student), csv_cell(each.on), f"{each.points:g}"]
        writer.writerow([*row, *map(csv_cell, about)])
    write_whole(adjustments_path(book), text.getvalue())
    return [each for place, each in before.items() if place in new and new[place] != each]


def by_hand(report: Report, given: Iterable[Adjustment]) -> Report:
    """The report with the adjustments, as far as they have an effect.

    A check or a part has at most the points that it is worth, and at least 0. The whole has at
    least 0, and may have more than it is worth, as a bonus.
    """
    changes: list[ByHand] = []
    # checks, parts, the whole: what was given on the one counts in the next
    for each in sorted(given, key=lambda each: (not each.on, each.on.startswith(_PART))):
        rows = [result for result in report.results if _is_on(each.on, result.check, result.task)]
        if each.on and not rows:
            changes.append(_change(each, 0.0))
            continue
        score = sum(result.score for result in rows)
        score += sum(c["points"] for c in changes if _covers(each.on, c["on"], report))
        most = sum(result.points for result in rows) if each.on else math.inf
        wanted = min(max(score + each.points, 0.0), max(most, score))
        changes.append(_change(each, round(wanted - score, 6)))
    return replace(report, by_hand=changes)


def _change(each: Adjustment, points: float) -> ByHand:
    return {
        "on": each.on,
        "comment": each.comment,
        "by": each.by,
        "points": points,
        "asked": each.points,
    }


def _is_on(on: str, check: str, task: str) -> bool:
    """Whether a check belongs to what was adjusted."""
    return not on or on in (check, f"{_PART}{task.partition('.')[0]}")


def _covers(on: str, other: str, report: Report) -> bool:
    """Whether points on `other` count towards `on`."""
    if not on or on == other:
        return True
    return any(r.check == other and _is_on(on, r.check, r.task) for r in report.results)
