"""Writes the figures of a class as CSV: students, checks and failures, a file each.

Quoting is that of RFC 4180. The order is the class's and the reports', so that two files can be
compared line by line. What has no value is an empty cell, never a zero.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from grader.base.files import write_whole
from grader.base.printable import csv_cell
from grader.classroom.page import ClassResults, late_text, score_of
from grader.classroom.statistics import Item, Spread

Cell = str | int | float | None

_SPREAD = ("count", "lower", "median", "upper", "p90", "largest")
_STUDENT = (
    "student", "name", "section", "group", "state", "score", "points", "seconds", "late",
    "submitted", "attempt", "problem", "notes",
)  # fmt: skip
_ITEM = (
    "check", "task", "points", "passed", "failed", "not_begun", "not_run", "error", "share_passed",
    "correlation", "upper_lower", "flags",
)  # fmt: skip


def write_csv(results: ClassResults, folder: Path) -> list[Path]:
    """Writes students.csv, items.csv and failures.csv into a folder; returns where they are.

    Raises:
        OSError: a file can't be written.
    """
    made = {
        "students.csv": _students(results),
        "items.csv": _items(results),
        "failures.csv": _failures(results),
    }
    for name, rows in made.items():
        write_whole(folder / name, csv_text(rows))
    return [folder / name for name in made]


def csv_text(rows: Iterable[Sequence[Cell]]) -> str:
    """Rows as CSV. Text goes through csv_cell; numbers are written as they are."""
    text = io.StringIO()
    csv.writer(text).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        text = f"{value:.6f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    if isinstance(value, int):
        return str(value)
    return csv_cell(value)


def _students(results: ClassResults) -> Iterator[Sequence[Cell]]:
    """A row a student; how each check ended stands behind, a column a check."""
    names = [check.name for check in results.checks]
    yield [*_STUDENT, *names]
    for standing in results.standings:
        entry, outcomes = standing.entry, standing.outcomes
        yield [
            entry.student, entry.name, entry.section, entry.group, standing.state,
            score_of(standing), results.book.points, standing.seconds if outcomes else None,
            late_text(entry), entry.submitted, entry.attempt or None, standing.problem,
            "; ".join(entry.notes),
            *(outcomes[name].status if name in outcomes else None for name in names),
        ]  # fmt: skip


def _items(results: ClassResults) -> Iterator[Sequence[Cell]]:
    """A row a check: its analysis, then its seconds and its ratios of speed in short."""
    figures = results.figures
    seconds, ratios = ([f"{kind}_{name}" for name in _SPREAD] for kind in ("seconds", "speed"))
    yield [*_ITEM, *seconds, *ratios]
    for check, item in zip(results.checks, figures.items, strict=True):
        yield [
            *(check.name, check.task, check.points),
            *_analysis(item),
            *_spread(figures.seconds.get(check.name)),
            *_spread(figures.ratios.get(check.name)),
        ]


def _analysis(item: Item) -> list[Cell]:
    counts = [item.passed, item.failed, item.unbegun, item.skipped, item.error]
    return [*counts, item.share, item.correlation, item.upper_lower, "; ".join(item.flags)]


def _spread(spread: Spread | None) -> list[Cell]:
    return [getattr(spread, name) if spread else None for name in _SPREAD]


def _failures(results: ClassResults) -> Iterator[Sequence[Cell]]:
    """A row a way to fail, the commonest first; `check` is empty for the submission itself."""
    yield ["check", "students", "kind", "first_error", "who"]
    for failure in results.figures.failures:
        who = "; ".join(entry.student for entry in failure.students)
        yield [failure.check, failure.count, failure.kind, failure.message, who]
