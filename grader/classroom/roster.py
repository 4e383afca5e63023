"""Reads who is in the class: a CSV file with a line a student. Canvas and Moodle write such files
too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from grader.base.printable import printable
from grader.base.sheets import Row, SheetError, find_columns, refuse_long, sheet_rows

#: What the column of ids may be called, in lower case; of several in one file the first counts.
IDS = ("student id", "student_id", "sis user id", "sid", "id number", "user_id", "id", "student")
# The other columns.
_HEADERS = {
    "student": IDS,
    "name": ("name", "full name", "student name", "student"),
    "given": ("first name", "given name", "first_name"),
    "family": ("last name", "surname", "family name", "last_name"),
    "email": ("email", "e-mail", "email address"),
    "login": ("login", "sis login id", "login_id", "username", "user name"),
    "section": ("section", "sections", "group"),
    "canvas_id": ("canvas id", "canvas_id", "canvas_user_id"),
}
_KNOWN = frozenset(name for names in _HEADERS.values() for name in names)
# Of Moodle's grading worksheet: "Participant 5001".
PARTICIPANT = "identifier"
_PARTICIPANT = re.compile(r"Participant (?=\d+\Z)", re.IGNORECASE)
_ID_NAMES = "student id, sis user id, id, student"


@dataclass(frozen=True)
class Person:
    """A student of the class; "" for what the roster does not tell.

    Attributes:
        student: the id of the student in all results; unique.
        canvas_id: Canvas's own number of the student, which its downloads use.
    """

    student: str
    name: str = ""
    email: str = ""
    login: str = ""
    section: str = ""
    canvas_id: str = ""


def read_roster(path: Path) -> list[Person]:
    """The students of a CSV file, in its order.

    The header names the columns, in any order and case. In a gradebook exported by Canvas, rows of
    no student are left out: points possible, posting policy, Canvas's test student; a student
    without a SIS id goes by the login or by Canvas's number. In Moodle's grading worksheet a
    student goes by the participant's number.

    Raises:
        SheetError: the file can't be read, a column is missing, an id is empty or occurs twice.
    """
    rows = sheet_rows(path, _KNOWN)
    line, header = next(rows, (1, []))
    columns, canvas = _columns(path, (line, header))
    people: list[Person] = []
    lines: dict[tuple[str, str], int] = {}
    for line, row in rows:
        if not any(row):
            continue
        refuse_long(path, (line, row), header)
        cells = {key: row[at] if at < len(row) else "" for key, at in columns.items()}
        if canvas and _no_student(cells):
            continue
        person = _person(path, line, cells, canvas)
        _refuse_twice(path, line, person, lines)
        people.append(person)
    if not people:
        raise SheetError(f"{path} names no students; hint: one line a student below the header")
    return people


def _columns(path: Path, head: Row) -> tuple[dict[str, int], bool]:
    """(field -> column, whether Canvas wrote the file)."""
    line, header = head
    names = [name.lower() for name in header]
    columns = find_columns(path, head, _HEADERS)
    sis = not {"sis user id", "sis login id"}.isdisjoint(names)
    canvas = names[:2] == ["student", "id"] or (sis and {"student", "id"} <= set(names))
    if canvas:
        columns["canvas_id"] = names.index("id")
        columns["name"] = names.index("student")
    if {PARTICIPANT, "grade can be changed"} <= set(names):
        columns["student"] = names.index(PARTICIPANT)
    if "student" not in columns:
        found = ", ".join(name for name in header if name) or "nothing"
        raise SheetError(
            f"{path}:{line}: no column of ids; it has: {printable(found)[:200]}; "
            f"hint: the first line names the columns, one of them {_ID_NAMES}"
        )
    if columns.get("name") == columns["student"]:  # "student" alone: the id
        del columns["name"]
    return columns, canvas


def participant(cell: str) -> str:
    """An id without Moodle's "Participant " before the number."""
    return _PARTICIPANT.sub("", cell)


def _no_student(cells: dict[str, str]) -> bool:
    """Whether a row of Canvas's gradebook is about no student."""
    name = cells["name"].casefold()
    unnumbered = not cells["canvas_id"]
    test = name == "student, test" and (cells["student"] in ("", cells["canvas_id"]))
    return test or (unnumbered and (not name or name == "points possible"))


def _person(path: Path, line: int, cells: dict[str, str], canvas: bool) -> Person:
    name = cells.get("name", "")
    if not name and (cells.get("given") or cells.get("family")):
        name = f"{cells.get('given', '')} {cells.get('family', '')}".strip()
    student = participant(cells["student"])
    if canvas:
        student = student or cells.get("login", "") or cells["canvas_id"]
    if not student:
        raise SheetError(f"{path}:{line}: the id is empty{f' ({name})' if name else ''}")
    kept = {key: cells.get(key, "") for key in ("email", "login", "section", "canvas_id")}
    return Person(student, name, **kept)


def _refuse_twice(path: Path, line: int, person: Person, lines: dict[tuple[str, str], int]) -> None:
    """Raises SheetError if an id occurs again; remembers the line of its first occurrence."""
    for what, text in (("id", person.student), ("Canvas id", person.canvas_id)):
        key = (what, text.casefold())
        if text and key in lines:
            raise SheetError(f"{path}:{line}: the {what} {text!r} is in line {lines[key]} already")
        lines[key] = line
