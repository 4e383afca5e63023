"""Reads who is in the class: a CSV with a line a student, or a gradebook as Canvas exports it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.printable import printable

MAX_ROSTER = 16 << 20  # bytes

# What a column may be called, in lower case; of several in one file the first counts.
_HEADERS = {
    "student": ("student id", "student_id", "sis user id", "sid", "id number", "id", "student"),
    "name": ("name", "full name", "student name", "student"),
    "given": ("first name", "given name", "first_name"),
    "family": ("last name", "surname", "family name", "last_name"),
    "email": ("email", "e-mail", "email address"),
    "login": ("login", "sis login id", "username", "user name"),
    "section": ("section", "sections", "group"),
    "canvas_id": ("canvas id", "canvas_id"),
}
_KNOWN = frozenset(name for names in _HEADERS.values() for name in names)
_ID_NAMES = "student id, sis user id, id, student"


class RosterError(Exception):
    """The roster can't be used; the message names the file, and the line where there is one."""


@dataclass(frozen=True)
class Person:
    """One student of the class; "" is what the roster does not tell.

    Attributes:
        student: the id that names the student in all results; unique.
        canvas_id: Canvas's own number of the student, which its downloads carry.
    """

    student: str
    name: str = ""
    email: str = ""
    login: str = ""
    section: str = ""
    canvas_id: str = ""


def read_roster(path: Path) -> list[Person]:
    """The students of a CSV file, in its order.

    The first line names the columns, in any order and in capitals or not. Of a gradebook that
    Canvas exported, the rows are left out that are no students: points possible, the posting
    policy, Canvas's test student. There a student without a SIS id goes by the login or by
    Canvas's number.

    Raises:
        RosterError: it can't be read, a column is missing, an id is empty or stands there twice.
    """
    rows = _rows(path, _text(path))
    line, header = next(rows, (1, []))
    columns, canvas = _columns(path, line, header)
    people: list[Person] = []
    lines: dict[tuple[str, str], int] = {}
    for line, row in rows:
        if not any(row):
            continue
        _refuse_long(path, line, row, header)
        cells = {key: row[at] if at < len(row) else "" for key, at in columns.items()}
        if canvas and _no_student(cells):
            continue
        person = _person(path, line, cells, canvas)
        _refuse_twice(path, line, person, lines)
        people.append(person)
    if not people:
        raise RosterError(f"{path} names no students; hint: one line a student below the header")
    return people


def _text(path: Path) -> str:
    """UTF-8 with or without its mark, or UTF-16 with it, as Excel writes "Unicode text"."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_ROSTER + 1)
    except OSError as error:
        raise RosterError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_ROSTER:
        raise RosterError(f"{path} is larger than {MAX_ROSTER >> 20} MiB; hint: is it a roster?")
    wide = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise RosterError(
            f"{path}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8 text; "
            'hint: save it as "CSV UTF-8"'
        ) from error


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """(line where it begins, cells) of all rows, cells without spaces around them."""
    delimiter, skipped = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begun = 1
    try:
        for row in reader:
            if begun > skipped:
                yield begun, [" ".join(printable(cell).split()) for cell in row]
            begun = reader.line_num + 1
    except csv.Error as error:
        raise RosterError(
            f"{path}, line {begun}: {error}; hint: a cell with quotes in it stands in quotes, "
            "and they are doubled"
        ) from error


def _delimiter(text: str) -> tuple[str, int]:
    """(what separates the cells, lines before the header): the one that finds most columns."""
    first = text.partition("\n")[0]
    if first.strip().lower().startswith("sep=") and len(first.strip()) == 5:
        return first.strip()[4], 1  # a line that Excel reads and writes
    if first.strip("\r") == "sep=\t":
        return "\t", 1

    def known(delimiter: str) -> int:
        return sum(cell.strip(' "\r').lower() in _KNOWN for cell in first.split(delimiter))

    return max(",;\t", key=known), 0


def _columns(path: Path, line: int, header: list[str]) -> tuple[dict[str, int], bool]:
    """(what stands in which column, whether Canvas wrote the file)."""
    names = [name.lower() for name in header]
    for name in sorted(_KNOWN.intersection(names)):
        if names.count(name) > 1:
            raise RosterError(f"{path}, line {line}: two columns are called {name!r}")
    columns = {}
    for key, known in _HEADERS.items():
        there = [name for name in known if name in names]
        if there:
            columns[key] = names.index(there[0])
    sis = not {"sis user id", "sis login id"}.isdisjoint(names)
    canvas = names[:2] == ["student", "id"] or (sis and {"student", "id"} <= set(names))
    if canvas:
        columns["canvas_id"] = names.index("id")
        columns["name"] = names.index("student")
    if "student" not in columns:
        found = ", ".join(name for name in header if name) or "nothing"
        raise RosterError(
            f"{path}, line {line}: no column of ids; it has: {printable(found)[:200]}; "
            f"hint: the first line names the columns, one of them {_ID_NAMES}"
        )
    if columns.get("name") == columns["student"]:  # "student" alone: the id
        del columns["name"]
    return columns, canvas


def _refuse_long(path: Path, line: int, row: list[str], header: list[str]) -> None:
    if any(row[len(header) :]):
        raise RosterError(
            f"{path}, line {line}: {len(row)} cells under {len(header)} columns; "
            "hint: a cell with a comma in it stands in quotes"
        )


def _no_student(cells: dict[str, str]) -> bool:
    """Whether a row of Canvas's gradebook is about something else."""
    name = cells["name"].casefold()
    unnumbered = not cells["canvas_id"]
    test = name == "student, test" and (cells["student"] in ("", cells["canvas_id"]))
    return test or (unnumbered and (not name or name == "points possible"))


def _person(path: Path, line: int, cells: dict[str, str], canvas: bool) -> Person:
    name = cells.get("name", "")
    if not name and (cells.get("given") or cells.get("family")):
        name = f"{cells.get('given', '')} {cells.get('family', '')}".strip()
    student = cells["student"]
    if canvas:
        student = student or cells.get("login", "") or cells["canvas_id"]
    if not student:
        raise RosterError(f"{path}, line {line}: the id is empty{f' ({name})' if name else ''}")
    kept = {key: cells.get(key, "") for key in ("email", "login", "section", "canvas_id")}
    return Person(student, name, **kept)


def _refuse_twice(path: Path, line: int, person: Person, lines: dict[tuple[str, str], int]) -> None:
    """Raises RosterError where an id stands there again; notes the line where it stands first."""
    for what, text in (("id", person.student), ("Canvas id", person.canvas_id)):
        key = (what, text.casefold())
        if text and key in lines:
            raise RosterError(
                f"{path}, line {line}: the {what} {text!r} stands in line {lines[key]} already"
            )
        lines[key] = line
