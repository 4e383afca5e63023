"""Reads tables as spreadsheets write them: CSV with commas, semicolons or tabs, and a header
line."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.printable import from_csv_cell, printable

MAX_SHEET = 16 << 20  # bytes

Row = tuple[int, list[str]]


class SheetError(UsageError):
    """A table can't be used; the message names the file and, if there is one, the line."""


def read_sheet(
    path: Path, columns: Mapping[str, tuple[str, ...]], needed: Collection[str]
) -> list[tuple[int, dict[str, str]]]:
    """The rows that are not empty, as (line, column -> cell). A missing column reads as "".

    Args:
        columns: column -> the header cells that name it, in lower case.
        needed: columns that must be there.

    Raises:
        SheetError: the file can't be read, or a needed column is missing.
    """
    known = frozenset(name for names in columns.values() for name in names)
    rows = sheet_rows(path, known)
    line, head = next((row for row in rows if any(row[1])), (1, []))
    places = find_columns(path, (line, head), columns)
    for name in needed:
        if name not in places:
            found = ", ".join(filter(None, head)) or "nothing"
            raise SheetError(
                f"{path}:{line}: no column {columns[name][0]!r}; it has: {printable(found)[:200]}; "
                f"hint: the first line names the columns: {', '.join(columns)}"
            )
    table = []
    for line, row in rows:
        if any(row):
            refuse_long(path, (line, row), head)
            cells = dict.fromkeys(columns, "")
            cells |= {name: row[at] for name, at in places.items() if at < len(row)}
            table.append((line, cells))
    return table


def sheet_rows(path: Path, known: Collection[str]) -> Iterator[Row]:
    """All rows, as (first line, cells), with spaces around cells removed. `known` holds names of
    columns in lower case; they tell which delimiter the file uses.

    Raises:
        SheetError: the file can't be read, or is no CSV file in UTF-8 or UTF-16.
    """
    text = _text(path)
    delimiter, skipped = _delimiter(text, known)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begun = 1
    try:
        for row in reader:
            if begun > skipped:
                yield begun, [" ".join(printable(from_csv_cell(c)).split()) for c in row]
            begun = reader.line_num + 1
    except csv.Error as error:
        raise SheetError(
            f"{path}:{begun}: {error}; hint: quote a cell that holds quotes, and double "
            "those inside"
        ) from error


def find_columns(path: Path, head: Row, columns: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Column -> its position in the header. If a header has several names of a column, the first in
    the list counts.

    Raises:
        SheetError: the header has that name twice.
    """
    line, cells = head
    names = [name.casefold() for name in cells]
    for name in sorted({each for known in columns.values() for each in known}.intersection(names)):
        if names.count(name) > 1:
            raise SheetError(f"{path}:{line}: two columns are called {name!r}")
    firsts = {key: next((n for n in known if n in names), "") for key, known in columns.items()}
    return {key: names.index(first) for key, first in firsts.items() if first}


def refuse_long(path: Path, row: Row, head: list[str]) -> None:
    """Raises SheetError if a row has more cells than the header."""
    line, cells = row
    if any(cells[len(head) :]):
        raise SheetError(
            f"{path}:{line}: {len(cells)} cells under {len(head)} columns; hint: quote a "
            "cell that holds a comma"
        )


def _text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark, or in UTF-16 with one, which
    Excel calls "Unicode text"."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_SHEET + 1)
    except OSError as error:
        raise SheetError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_SHEET:
        raise SheetError(f"{path} is larger than {MAX_SHEET >> 20} MiB; hint: is it a CSV file?")
    wide = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise SheetError(
            f"{path}:{line}: byte 0x{raw[error.start]:02x} is not UTF-8 text; "
            'hint: save it as "CSV UTF-8"'
        ) from error


def _delimiter(text: str, known: Collection[str]) -> tuple[str, int]:
    """(the delimiter, number of lines before the header): the delimiter that finds most columns."""
    first = text.partition("\n")[0]
    if first.strip().lower().startswith("sep=") and len(first.strip()) == 5:
        return first.strip()[4], 1  # a line that Excel reads and writes
    if first.strip("\r") == "sep=\t":
        return "\t", 1

    def count(delimiter: str) -> int:
        return sum(cell.strip(' "\r').lower() in known for cell in first.split(delimiter))

    return max(",;\t", key=count), 0
