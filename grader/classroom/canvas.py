"""Fills one column of a gradebook that Canvas exported.

The course's own export is the template. Only the cells of one column change: byte order mark, line
ends, quotes, unusual rows and all other cells stay as they are. A file whose text is not UTF-8
keeps its bytes too.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.base.errors import UsageError
from grader.base.printable import printable
from grader.classroom.gradebook import Gradebook, StudentScore, figure
from grader.classroom.store import Entry

#: Columns that say who a student is; the first has the number that Canvas itself gave.
KEYS = ID, SIS_USER, SIS_LOGIN = ("ID", "SIS User ID", "SIS Login ID")
_WHO = ("Student", *KEYS, "Section", "Root Account", "Integration ID")
_BOM = "\ufeff"
# A cell, in quotes or not, and what ends it.
_CELL = re.compile(r'("(?:[^"]|"")*"|[^",\r\n][^,\r\n]*|)(,|\r\n|\n|\r|\Z)')
_BARE = re.compile(r"[\w.-]*")
_TITLE = re.compile(r"(.*?)\s*\((\d+)\)\s*\Z", re.DOTALL)
_SHOWN = 12


class TemplateError(UsageError):
    """The template can't be filled as asked; the message says why."""


@dataclass
class Record:
    """One record of a CSV file: its cells as written, with quotes, and its line end."""

    cells: list[str]
    end: str
    number: int

    def text(self, place: int) -> str:
        """The text of a cell; "" if the record is too short."""
        return unquoted(self.cells[place]) if place < len(self.cells) else ""

    def put(self, place: int, text: str) -> None:
        """Writes a cell; in quotes if it had them, or needs them."""
        self.cells += [""] * (place + 1 - len(self.cells))
        quoted = self.cells[place].startswith('"') or not _BARE.fullmatch(text)
        self.cells[place] = '"' + text.replace('"', '""') + '"' if quoted else text


@dataclass
class Filled:
    """A filled template, and what to tell about it.

    Attributes:
        content: the file.
        column: header of the filled column.
        filled: number of cells that now hold a score of ours.
        changed: number of those that held another score.
        unscored: our students without a score; their cells stay.
        absent: our students with a score, but without a row.
        strangers: rows of students that we don't know; they stay.
        warnings: sentences on what is odd.
    """

    content: bytes = b""
    column: str = ""
    filled: int = 0
    changed: int = 0
    unscored: list[Entry] = field(default_factory=list)
    absent: list[Entry] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def fill(template: bytes, column: str, gradebook: Gradebook, match: str = "") -> Filled:
    """The template with our scores in one column.

    Args:
        column: its whole header, its name, or its number in Canvas.
        match: one of KEYS to match rows by that key alone; "" for all keys.

    Raises:
        TemplateError: the file is no gradebook of Canvas, or the column is unknown or ambiguous.
    """
    bom, lines = read_lines(template)
    head = _head(lines)
    titles = [unquoted(cell).strip() for cell in head.cells]
    place = find_column(titles, column)
    filled = Filled(column=titles[place])
    keys = {key: titles.index(key) for key in KEYS if key in titles}
    if match and match not in keys:
        raise TemplateError(f"the template has no column {match!r}; hint: --match {_joined(keys)}")
    keys = {match: keys[match]} if match else keys
    sheet = _Sheet([line for line in lines if line is not head], titles, keys, place)
    _check_points(sheet, gradebook, filled)
    if not _TITLE.match(titles[place]):
        filled.warnings.append(
            f"the column {titles[place]!r} has no Canvas id, so an import makes a new assignment"
        )
    _fill_rows(sheet, gradebook, filled)
    filled.content = joined(bom, lines)
    return filled


def read_lines(template: bytes) -> tuple[str, list[Record]]:
    """(the byte order mark or "", the records) of a CSV file; `joined` is the reverse.

    Raises:
        TemplateError: the file is no text, or a quote is not closed.
    """
    if b"\0" in template:
        raise TemplateError("the template is not a CSV file in UTF-8; hint: export it again")
    text = template.decode("utf-8", "surrogateescape")
    bom = _BOM if text.startswith(_BOM) else ""
    lines, cells, at, number, begins = [], list[str](), len(bom), 1, 1
    while at < len(text) or cells:
        found = _CELL.match(text, at)
        if found is None:
            raise TemplateError(f"line {number} of the template: misplaced quote")
        cells.append(found[1])
        number += found[1].count("\n")
        at = found.end()
        if found[2] != ",":
            lines.append(Record(cells, found[2], begins))
            cells, number = [], number + 1
            begins = number
    return bom, lines


def joined(bom: str, lines: Iterable[Record]) -> bytes:
    """The file of a byte order mark and records, identical to what read_lines read."""
    text = bom + "".join(",".join(line.cells) + line.end for line in lines)
    return text.encode("utf-8", "surrogateescape")


def unquoted(cell: str) -> str:
    """The text of a cell, without quotes around it."""
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def find_column(titles: list[str], wanted: str) -> int:
    """The position of a column, by its whole header, else by its name, else by its number in
    Canvas.

    Raises:
        TemplateError: there is no such column, or more than one; the message lists the columns.
    """
    open_columns = {at: title for at, title in enumerate(titles) if title and title not in _WHO}
    for same in (_is_head, _is_name, _is_number):
        found = [at for at, title in open_columns.items() if same(title, wanted.strip())]
        if len(found) == 1:
            return found[0]
        if found:
            several = _joined(open_columns[at] for at in found)
            raise TemplateError(
                f"column {wanted!r} may be any of {several}; hint: give the whole name"
            )
    there = _joined(open_columns.values()) or "none besides who the students are"
    raise TemplateError(f"the template has no column {wanted!r}; hint: it has {there}")


def _is_head(title: str, wanted: str) -> bool:
    return title == wanted


def _is_name(title: str, wanted: str) -> bool:
    found = _TITLE.match(title)
    return found is not None and found[1] == wanted


def _is_number(title: str, wanted: str) -> bool:
    found = _TITLE.match(title)
    return found is not None and found[2] == wanted.strip("()")


def _joined(names: Iterable[str]) -> str:
    shown = [repr(printable(name)) for name in names]
    more = len(shown) - _SHOWN
    return ", ".join(shown[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _head(lines: list[Record]) -> Record:
    """The record with the names of the columns. Canvas may put other records above it."""
    for line in lines:
        titles = {unquoted(cell).strip() for cell in line.cells}
        if "Student" in titles and titles & set(KEYS):
            return line
    raise TemplateError(
        "the template is not a gradebook of Canvas: no line has Student and one of "
        f"{_joined(KEYS)}; hint: Grades, Export, with commas"
    )


@dataclass(frozen=True)
class _Sheet:
    """The records besides the head, the heads, where the keys are, and the column to fill."""

    body: list[Record]
    titles: list[str]
    keys: dict[str, int]
    place: int

    def name(self, line: Record) -> str:
        """The student's name as Canvas has it."""
        return line.text(self.titles.index("Student")).strip()

    def is_student(self, line: Record) -> bool:
        """Whether the record has any id; rows of points and of policies have none."""
        return any(line.text(place).strip() for place in self.keys.values())


def _check_points(sheet: _Sheet, gradebook: Gradebook, filled: Filled) -> None:
    """Warns if the points possible differ from ours; refuses a column that Canvas computes."""
    there = ""
    for line in sheet.body:
        if sheet.name(line).casefold() == "points possible":
            there = line.text(sheet.place).strip()
    if there.casefold() == "(read only)":
        raise TemplateError(
            f"Canvas computes the column {filled.column!r} itself; hint: another one"
        )
    if gradebook.points is None:
        filled.warnings.append("the points possible differ between students; hint: see the CSV")
    elif not there:
        filled.warnings.append("the template does not state the points possible of the column")
    elif number_in(there) != number_in(figure(gradebook.points)):
        filled.warnings.append(
            f"points possible: {printable(there)} at Canvas, {figure(gradebook.points)} "
            "here; scores are not scaled"
        )


def _fill_rows(sheet: _Sheet, gradebook: Gradebook, filled: Filled) -> None:
    found = _matches(sheet, gradebook.rows)
    times = Counter(at for places in found.values() for at in places)
    for index, places in found.items():
        line = sheet.body[index]
        if not places:
            if sheet.name(line) != "Student, Test":  # what Canvas gives each teacher
                filled.strangers.append(sheet.name(line))
        elif len(places) > 1 or times[places[0]] > 1:
            filled.warnings.append(
                f"line {line.number}, {printable(sheet.name(line))}: matches several "
                "students, or its student matches several lines; left as it is; hint: "
                "--match"
            )
        else:
            _fill_row(sheet, line, gradebook.rows[places[0]], filled)
    for at, row in enumerate(gradebook.rows):
        if row.score is None:
            filled.unscored.append(row.entry)
        elif not times[at]:
            filled.absent.append(row.entry)


def _matches(sheet: _Sheet, rows: list[StudentScore]) -> dict[int, list[int]]:
    """Position of a student's record -> positions of our rows that its keys name."""
    ids: dict[str, set[int]] = {}
    logins: dict[str, set[int]] = {}
    for at, row in enumerate(rows):
        entry = row.entry
        ids.setdefault(entry.student, set()).add(at)
        for name in {entry.student, entry.login, entry.email} - {""}:
            logins.setdefault(name.casefold(), set()).add(at)
    found = {}
    for index, line in enumerate(sheet.body):
        if sheet.is_student(line):
            places: set[int] = set()
            for key, place in sheet.keys.items():
                text = line.text(place).strip()
                is_login = key == SIS_LOGIN
                places |= logins.get(text.casefold(), set()) if is_login else ids.get(text, set())
            found[index] = sorted(places)
    return found


def _fill_row(sheet: _Sheet, line: Record, row: StudentScore, filled: Filled) -> None:
    before, now = line.text(sheet.place).strip(), figure(row.score)
    if not _alike(sheet.name(line), row.entry.name):
        filled.warnings.append(
            f"line {line.number}: {printable(sheet.name(line))} at Canvas has the id of "
            f"{printable(row.entry.name)} here; hint: look at both"
        )
    if not now:
        return
    if before.casefold() == "ex":
        filled.warnings.append(
            f"line {line.number}: {printable(sheet.name(line))} is excused at Canvas, left as it is"
        )
        return
    filled.filled += 1
    if number_in(before) == float(now):
        return
    filled.changed += bool(before)
    line.put(sheet.place, now)


def _alike(theirs: str, ours: str) -> bool:
    """Whether two names may be one person's: one is part of the other, accents aside."""
    whole = "".join(re.findall(r"\w+", _plain(ours)))
    parts = [p for p in re.findall(r"\w+", _plain(theirs)) if len(p) > 1 or not p.isascii()]
    return not parts or not whole or any(part in whole for part in parts)


def _plain(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def number_in(text: str) -> float | None:
    """The number in a cell, or None."""
    try:
        return float(text)
    except ValueError:
        return None
