"""Points and comments that people give by hand, beside what the checks give.

They lie in RESULTS/adjustments.csv, a line each: student, on (a check, "part 2", or nothing for
the whole), points (added; less than 0 takes away), comment, by. Reports never hold them, so that
they stay when a class is graded again; they are laid over what people see.
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
    """Points can't be given as it was asked; the message says why."""


@dataclass(frozen=True)
class Adjustment:
    """What somebody gave by hand.

    Attributes:
        student: the id.
        on: name of a check, "part 2", or "" for the whole.
        points: that are added.
        comment: why. by: who gave them.
    """

    student: str
    on: str
    points: float
    comment: str
    by: str

    @property
    def place(self) -> tuple[str, str]:
        """There is one for each student and place."""
        return self.student, self.on


def adjustments_path(book: Classbook) -> Path:
    """Where those of a class lie, or would lie."""
    return book.path / "adjustments.csv"


def read_adjustments(book: Classbook) -> list[Adjustment]:
    """What was given by hand in a class, also to who has left it: see of_nobody.

    Raises:
        SheetError: a line of the file is wrong.
    """
    path = adjustments_path(book)
    return parse_adjustments(path, book, leavers=True) if path.is_file() else []


def of_nobody(book: Classbook) -> str:
    """A sentence on what was given by hand to who is not in the class, or ""; raises as
    read_adjustments. It counts for nobody, and stays in the file: they may come back."""
    known = {entry.student for entry in book.entries}
    names = sorted({each.student for each in read_adjustments(book)} - known)
    where = f"warning: {adjustments_path(book)} gives something to who is not in the class"
    return f"{where}, which counts for nobody: {', '.join(names)}" if names else ""


def of_students(book: Classbook) -> dict[str, list[Adjustment]]:
    """Student -> what was given by hand; raises as read_adjustments."""
    found: dict[str, list[Adjustment]] = {}
    for each in read_adjustments(book):
        found.setdefault(each.student, []).append(each)
    return found


def parse_adjustments(
    path: Path, book: Classbook, by: str = "", leavers: bool = False
) -> list[Adjustment]:
    """What a CSV gives the students of a class. A student goes by id, login or e-mail address; the
    name of a group gives it to each member.

    Args:
        by: who gives it, where the line does not say.
        leavers: whether a line may be for who is not in the class, as it is written there.

    Raises:
        SheetError: it can't be read, or a line of it is wrong.
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
    """What one line gives: to one student, or to each member of a group.

    Args:
        cells: column -> text. names: of grader.classroom.store.called. places: of known_places.

    Raises:
        AdjustmentError: it is wrong.
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
        raise AdjustmentError("there is no comment; hint: say why, students will read it")
    by = cells["by"] or by
    if not by:
        raise AdjustmentError("nobody says who gives it; hint: a column `by`, or --by NAME")
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
    """The parts and the checks of a class, as the first whole report has them; none without."""
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
    """Adds to what lies there; returns what had been given before in the same places, which it
    takes the place of."""
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
    """The report with what was given by hand: as much of it as has an effect.

    A check or a part never has more points than it is worth, nor less than 0; nor has the whole
    less than 0. More than it is worth it may have: that is a bonus.
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
    """Whether points on `other` count in `on`."""
    if not on or on == other:
        return True
    return any(r.check == other and _is_on(on, r.check, r.task) for r in report.results)
