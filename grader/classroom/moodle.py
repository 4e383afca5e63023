"""Moodle's grading worksheet: a CSV file of an assignment that Moodle exports, and imports filled.

Only the cells of two columns change, see grader.classroom.canvas. A row's student is found by the
participant's number in the download's folder or the roster, else by the id, the e-mail address or
the name.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from grader.base.printable import printable
from grader.classroom.canvas import (
    Filled,
    Record,
    TemplateError,
    joined,
    number_in,
    read_lines,
    unquoted,
)
from grader.classroom.feedback import moodle_folder
from grader.classroom.gradebook import Gradebook, StudentScore, figure
from grader.classroom.match_names import Matcher
from grader.classroom.roster import PARTICIPANT, Person, participant
from grader.classroom.store import UNREADABLE, Entry
from grader.submission.archive import some

#: What a worksheet says of who a student is -> what its head calls it, in small letters.
WHO = {
    "participant": (PARTICIPANT,),
    "name": ("full name",),
    "id": ("id number",),
    "login": ("username",),
    "email": ("email address",),
}
_GRADE, _MOST, _OPEN, _COMMENT = (
    "grade",
    "maximum grade",
    "grade can be changed",
    "feedback comments",
)
_FOLDER = re.compile(r"_(\d+)_assignsubmission_file_\Z")
# A comment of ours, as it was or in the HTML that Moodle makes of it.
_OURS = re.compile(r"(<[^>]*>|\s)*[\d.-]+ of [\d.]+ points\.")


class Participants:
    """Finds the students of a class for rows of a worksheet."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        people = []
        self._numbers: dict[str, list[str]] = {}
        for entry in entries:
            people.append(Person(entry.student, entry.name, entry.email, entry.login))
            number = _FOLDER.search(moodle_folder(entry.source))
            if number and not entry.given_by:
                self._numbers.setdefault(number[1], []).append(entry.student)
        self._numbered = {student for students in self._numbers.values() for student in students}
        self._matcher = Matcher(people)

    def find(self, cells: Mapping[str, str]) -> str:
        """The id of the student of a row; "" if it means nobody, or is ambiguous. `cells` are by
        the keys of WHO."""
        number = participant(cells["participant"])
        handed = self._numbers.get(number, [])
        if len(handed) == 1:
            return handed[0]
        match = self._matcher.by_participant(number, cells["name"])
        if match.by_name:
            own_id = cells["id"] or cells["login"]
            match = self._matcher.by_account(own_id, cells["email"], cells["name"])
        if match.person is None or (match.by_name and match.person.student in self._numbered):
            return ""
        return match.person.student


def fill_worksheet(template: bytes, gradebook: Gradebook) -> Filled:
    """The worksheet with our scores as grades, and a line on each as a comment.

    Rows whose grade can't be changed stay, and so do comments that somebody wrote.

    Raises:
        TemplateError: the file is no grading worksheet of Moodle.
    """
    bom, lines = read_lines(template)
    titles = [unquoted(cell).strip().casefold() for cell in lines[0].cells] if lines else []
    if not {PARTICIPANT, _GRADE} <= set(titles):
        raise TemplateError(
            "the template is not a grading worksheet of Moodle: no columns Identifier and Grade; "
            "hint: the assignment's submissions, Download grading worksheet"
        )
    places = {title: at for at, title in reversed(list(enumerate(titles)))}
    filled = Filled(column="Grade")
    found = _students(lines[1:], places, gradebook, filled)
    times = Counter(student for _, student in found)
    rows = {row.entry.student: row for row in gradebook.rows}
    stay: dict[str, list[str]] = {}
    for line, student in found:
        row = rows[student]
        if times[student] > 1:
            why = "several rows belong to the same student"
        elif _text(line, places, _OPEN).casefold() == "no":
            why = "the grade can't be changed at Moodle"
        else:
            why = _fill_row(line, places, row, filled)
        if why:
            stay.setdefault(why, []).append(f"{student} {row.entry.name}".strip())
    filled.warnings += [f"{why}, which stays: {some(who)}" for why, who in stay.items()]
    filled.unscored = [row.entry for row in gradebook.rows if row.score is None]
    filled.absent = [
        row.entry
        for row in gradebook.rows
        if row.score is not None and not times[row.entry.student]
    ]
    filled.content = joined(bom, lines)
    return filled


def _students(
    lines: Iterable[Record], places: Mapping[str, int], gradebook: Gradebook, filled: Filled
) -> list[tuple[Record, str]]:
    """The rows with their students. Notes rows of nobody, and points that differ from ours."""
    known = Participants(row.entry for row in gradebook.rows)
    found, most = [], dict[str, None]()
    for line in lines:
        cells = {key: _text(line, places, title) for key, (title,) in WHO.items()}
        if not any(cells.values()):
            continue
        most[_text(line, places, _MOST)] = None
        if student := known.find(cells):
            found.append((line, student))
        else:
            filled.strangers.append(f"{cells['participant']} {cells['name']}".strip())
    points = gradebook.points
    if points is None:
        filled.warnings.append("the points possible differ between students; hint: see the CSV")
    elif others := [each for each in most if each and number_in(each) != points]:
        filled.warnings.append(
            f"maximum grade: {printable(others[0])} at Moodle, {figure(points)} here; scores "
            "are not scaled"
        )
    return found


def _text(line: Record, places: Mapping[str, int], title: str) -> str:
    return line.text(places[title]).strip() if title in places else ""


def _fill_row(line: Record, places: Mapping[str, int], row: StudentScore, filled: Filled) -> str:
    """Writes a student's score; returns which part of the row stays nevertheless, or ""."""
    now, before = figure(row.score), _text(line, places, _GRADE)
    if not now:
        return ""
    filled.filled += 1
    if number_in(before) != float(now):
        filled.changed += bool(before)
        line.put(places[_GRADE], now)
    comment = _text(line, places, _COMMENT)
    if comment and not _OURS.match(comment):
        return "somebody wrote a comment there"
    if _COMMENT in places:
        line.put(places[_COMMENT], _comment(row))
    return ""


def _comment(row: StudentScore) -> str:
    """The score, and why it is less than what was earned, as HTML."""
    said = f"{figure(row.score)} of {figure(row.points)} points."
    if row.standing.state == UNREADABLE:
        said += f" It can't be read: {row.standing.problem}."
    elif row.late and row.late.is_late:
        said += f" {row.late.reason}."
    return html.escape(" ".join(printable(said).split()), quote=False)
