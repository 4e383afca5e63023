"""Writes the results of a class as one HTML page that needs no other file.

The page is for the instructor: it names students and shows hidden checks. Its security policy
allows one script, by hash, that sorts and filters; without it the tables stay as they are.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.base.printable import printable
from grader.classroom.adjustments import Adjustment, by_hand, of_students
from grader.classroom.statistics import FEWEST, Figures, Item, analyse, checks_of
from grader.classroom.store import (
    ERROR,
    GRADED,
    MISSING,
    PENDING,
    STATES,
    UNREADABLE,
    CheckOutcome,
    Classbook,
    Entry,
    Standing,
)
from grader.report.charts import histogram_svg, strip_svg
from grader.report.html import environment, to_html
from grader.report.model import Result
from grader.report.stored import StoredError
from grader.report.terminal import number

_LETTERS = {"pass": "p", "fail": "f", "skipped": "s", "error": "e"}
_UNBEGUN = "u"
_SAID = (("f", "failed"), ("u", "not begun"), ("s", "not run"), ("e", "grader failed"))
_SIGNS = {GRADED: "✓", UNREADABLE: "✗", MISSING: "–", PENDING: "…", ERROR: "!"}
_STATES = {
    GRADED: "graded",
    UNREADABLE: "unreadable",
    MISSING: "missing",
    PENDING: "waiting",
    ERROR: "grader failed",
}
_FAILURES = 40  # of the commonest that the page shows
_EXAMPLES = 6  # students named with each
_ODD = 50  # notes that are shown


class ClassPageError(UsageError):
    """The figures can't be written as asked; the message says why."""


@dataclass(frozen=True)
class Check:
    """A check as reports describe it; "" and 0 if no report has it."""

    name: str
    task: str = ""
    points: float = 0.0
    sentence: str = ""


@dataclass(frozen=True)
class StudentLine:
    """One student in the table. `marks` has a letter a check, see charts.strip_svg."""

    entry: Entry
    link: str
    state: str
    score: str
    passed: str
    marks: str
    strip: Markup
    seconds: str
    late: str


@dataclass(frozen=True)
class ClassResults:
    """The data for a class's pages and files.

    Attributes:
        standings: one a student, with points by hand in the scores.
        figures: of the work handed in: a group counts once.
        given: student -> points and comments by hand.
    """

    book: Classbook
    standings: list[Standing]
    figures: Figures
    checks: list[Check]
    given: dict[str, list[Adjustment]]


def gather(book: Classbook, on_student: Callable[[], None] = lambda: None) -> ClassResults:
    """Reads all reports, one at a time. Calls `on_student` after each.

    Raises:
        OSError: a file can't be read.
        SheetError: a line of the adjustments is wrong.
    """
    standings, given = [], of_students(book)
    for standing in book.standings():
        standings.append(_with_points(book, standing, given.get(standing.entry.student, [])))
        on_student()
    checks = _described(book, standings)
    states = Counter(each.state for each in standings)
    figures = replace(
        analyse(list(_once_a_group(standings)), book.points),
        states={state: states[state] for state in STATES},
    )
    return ClassResults(book, standings, figures, checks, given)


def _with_points(book: Classbook, standing: Standing, given: list[Adjustment]) -> Standing:
    report = book.report(standing.entry) if given and standing.outcomes else None
    return replace(standing, score=by_hand(report, given).score) if report else standing


def _once_a_group(standings: Sequence[Standing]) -> Iterator[Standing]:
    """The standings with one for each group, under the group's name."""
    seen = set()
    for standing in standings:
        entry = standing.entry
        if not entry.group:
            yield standing
        elif (entry.group, entry.source) not in seen:
            seen.add((entry.group, entry.source))
            yield replace(standing, entry=replace(entry, name=f"group {entry.group}"))


def class_page(results: ClassResults, page: Path) -> str:
    """The page, to be written to the file `page`; its links lead from there to the students'
    pages."""
    script = Markup(environment().get_template("class.js.j2").render())
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    book, figures = results.book, results.figures
    template = environment().get_template("class.html.j2")
    return template.render(
        book=book,
        figures=figures,
        script=script,
        digest=digest,
        standing=standing_text(figures),
        histogram=_histogram(figures),
        lines=[_line(results, standing, page) for standing in results.standings],
        checks={check.name: check for check in results.checks},
        failures=figures.failures[:_FAILURES],
        examples=_EXAMPLES,
        odd=list(_notes(book).items())[:_ODD],
        few=FEWEST,
        signs=_SIGNS,
        states=_STATES,
        link=lambda entry: _link(book, entry, page),
        who=who,
        breaks=_breaks,
        fixed=fixed,
        percent=percent,
        flags=flags_text,
        key=lambda mark: strip_svg(mark * 2, ""),
        longest=max((spread.p90 for spread in figures.seconds.values()), default=0.0),
    )


def write_student_pages(
    results: ClassResults, on_student: Callable[[], None] = lambda: None
) -> int:
    """Writes each student's page beside the report, for the instructor; returns their number. A
    damaged report gets none: the class page says so.

    Raises:
        OSError: a file can't be written.
    """
    written = 0
    for entry in results.book.entries:
        try:
            report = results.book.report(entry)
        except StoredError:
            report = None
        if report is not None and report.complete:
            report = by_hand(report, results.given.get(entry.student, []))
            write_whole(student_page(results.book, entry), to_html(report))
            written += 1
        on_student()
    return written


def student_page(book: Classbook, entry: Entry) -> Path:
    """The file of a student's page, which need not exist."""
    return book.folder(entry) / "report.html"


def standing_text(figures: Figures) -> str:
    """The standing of the class in one sentence: "300 students: 298 graded, 2 missing"."""
    words = {**_STATES, ERROR: "left open"}
    counts = [f"{count} {words[state]}" for state, count in figures.states.items() if count]
    total = sum(figures.states.values())
    return f"{total} {'student' if total == 1 else 'students'}: {', '.join(counts) or 'none yet'}"


def who(entry: Entry) -> str:
    """A student's name; the id if there is none."""
    return entry.name or entry.student


def fixed(value: float | None, places: int = 2) -> str:
    """A figure with a fixed number of decimals; a dash for None; never "-0.00"."""
    if value is None:
        return "–"
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def percent(value: float | None) -> str:
    """A share as whole percents. Only all is 100 %, and only none is 0 %."""
    if value is None:
        return "–"
    shown = round(100 * value)
    shown = min(shown, 99) if value < 1 else shown
    return f"{max(shown, 1) if value > 0 else shown} %"


def score_of(standing: Standing) -> float | None:
    """The final score; None for a student without one, which is not a zero."""
    return standing.score if standing.state in (GRADED, UNREADABLE) else None


def late_text(entry: Entry) -> str:
    """Whether the work came late, in words; "" if the download does not tell."""
    return {True: "late", False: "on time", None: ""}[entry.late]


def _described(book: Classbook, standings: Sequence[Standing]) -> list[Check]:
    """The checks in the order of reports, as the first readable report describes each."""
    told: dict[str, Result] = {}
    first = next((each for each in standings if each.state == GRADED and each.outcomes), None)
    report = book.report(first.entry) if first else None
    for result in report.results if report else ():
        told[result.check] = result
    return [
        Check(name, told[name].task, told[name].points, told[name].sentence)
        if name in told
        else Check(name)
        for name in checks_of(standings)
    ]


def _line(results: ClassResults, standing: Standing, page: Path) -> StudentLine:
    entry, names = standing.entry, [check.name for check in results.checks]
    outcomes = standing.outcomes if standing.state in (GRADED, ERROR) else {}
    marks = "".join(_letter(outcomes.get(name)) for name in names)
    score = score_of(standing)
    return StudentLine(
        entry,
        link=_link(results.book, entry, page),
        state=standing.state,
        score=number(score) if score is not None else "open" if outcomes else "–",
        passed=str(marks.count("p")) if outcomes else "–",
        marks=marks,
        strip=strip_svg(marks, _strip_words(names, marks)) if outcomes else Markup(""),
        seconds=fixed(standing.seconds, 1) if standing.outcomes else "–",
        late=late_text(entry),
    )


def _letter(outcome: CheckOutcome | None) -> str:
    if outcome is None:
        return "."
    return _UNBEGUN if outcome.is_unbegun else _LETTERS[outcome.status]


def _notes(book: Classbook) -> dict[str, list[Entry]]:
    """What is odd about the submissions: each note, once -> the students it is about."""
    said: dict[str, list[Entry]] = {note: [] for note in book.notes}
    for entry in book.entries:
        for note in dict.fromkeys(entry.notes):
            said.setdefault(note, []).append(entry)
    return said


def _strip_words(names: Sequence[str], marks: str) -> str:
    """A strip in words: "20 of 27 passed; failed: relu, softmax; not run: memory_plan"."""
    parts = [f"{marks.count('p')} of {len(marks) - marks.count('.')} passed"]
    for letter, word in _SAID:
        found = [name for name, mark in zip(names, marks, strict=True) if mark == letter]
        if found:
            parts.append(f"{word}: {', '.join(found)}")
    return printable("; ".join(parts))


def _link(book: Classbook, entry: Entry, page: Path) -> str:
    """The address of a student's page, relative to the class page; "" if it was not written."""
    path = student_page(book, entry)
    if not path.is_file():
        return ""
    relative = PurePath(os.path.relpath(path.resolve(), page.parent.resolve())).as_posix()
    # "./" keeps a folder such as "a:b" from being read as the scheme of an address.
    return "./" + quote(relative, errors="surrogateescape")


def _histogram(figures: Figures) -> Markup:
    """The scores as bars; each label is the lowest score of its bar."""
    bars = [(number(each.low), each.count) for each in figures.bins]
    words = "; ".join(_bin_words(figures))
    return histogram_svg(bars, f"students by score: {words or 'none'}")


def _bin_words(figures: Figures) -> Iterator[str]:
    for each in figures.bins:
        if each.count:
            to = "" if each.low == each.high else f" to under {number(each.high)}"
            yield f"{number(each.low)}{to}: {each.count}"


def _breaks(name: str) -> Markup:
    """A name that may break into lines after its underscores."""
    return Markup("_<wbr>").join(printable(part) for part in name.split("_"))


def flags_text(item: Item) -> str:
    """What is odd about a check, in words."""
    said: dict[str, Any] = {"nobody": "nobody passes", "everybody": "everybody passes"}
    return ", ".join(said.get(flag, flag) for flag in item.flags)
