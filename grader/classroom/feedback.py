"""A folder, or a zip, of what each student of a class may see of their report, to hand back.

FOLDER/feedback.html and FOLDER/feedback.txt, where FOLDER is the student's in the results. What
came from Moodle goes back under the name of its download, `Full Name_PARTICIPANTID_
assignsubmission_file_`, by which Moodle is said to find the student; this was not tried there.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from rich.console import Console

from grader.base.errors import UsageError
from grader.classroom.adjustments import by_hand, of_students
from grader.classroom.gradebook import Gradebook, StudentScore, figure
from grader.classroom.store import Classbook, Entry
from grader.report.audience import student_view
from grader.report.html import to_html
from grader.report.model import Report
from grader.report.stored import StoredError
from grader.report.terminal import show_report, show_result

_WIDTH = 88
# The shortest that fits: what follows is the student's own file name.
_MOODLE = re.compile(r"(.+?_\d+_assignsubmission_file_)")
# Of files in the zip, so that the same feedback makes the same file.
_EPOCH = (1980, 1, 1, 0, 0, 0)


class FeedbackError(UsageError):
    """The feedback can't be written there; the message says why."""


@dataclass(frozen=True)
class Feedback:
    """What one student gets back, and its folder."""

    folder: str
    html: str
    text: str


def all_feedback(
    book: Classbook, gradebook: Gradebook, after_due_date: bool = False
) -> Iterator[Feedback]:
    """The feedback of each student with a whole report, one at a time."""
    taken: set[str] = set()
    given = of_students(book)
    for row in gradebook.rows:
        report = _report(book, row.entry)
        if report is None:
            continue
        folder = moodle_folder(row.entry.source)
        if not folder or folder.casefold() in taken:
            folder = row.entry.folder
        taken.add(folder.casefold())
        report = by_hand(report, given.get(row.entry.student, []))
        view = _with_lateness(student_view(report, after_due_date), row)
        yield Feedback(folder, to_html(view), to_text(view))


def _report(book: Classbook, entry: Entry) -> Report | None:
    """A student's report, if it is whole and about something handed in; else None."""
    try:
        report = book.report(entry) if entry.source else None
    except (StoredError, OSError):
        return None
    return report if report and report.complete else None


def moodle_folder(source: str) -> str:
    """The name of Moodle's folder in the path of a submission; "" if it has none. The outermost
    such folder counts: the student chose the names inside it."""
    for part in PurePath(source).parts:
        found = _MOODLE.match(part)
        if found and found[1].isprintable():
            return found[1]
    return ""


def _with_lateness(view: Report, row: StudentScore) -> Report:
    """The report with a note on lateness. The policy's figures stay out, as they would reveal the
    score of hidden checks."""
    if row.late is None or not row.late.is_late:
        return view
    said = f"{row.late.reason}; {figure(row.score)} of {figure(row.points)} points count"
    if view.withheld:
        said = "this was late; the late policy applies once all checks are shown"
    return replace(view, notes=[*view.notes, said])


def to_text(view: Report) -> str:
    """The report as plain text: a line a check, then what went wrong, then the points."""
    file = io.StringIO()
    console = Console(file=file, width=_WIDTH, no_color=True, force_terminal=False)
    for result in () if view.problem else view.results:  # then none was run
        show_result(console, result)
    show_report(console, view)
    return "".join(line.rstrip() + "\n" for line in file.getvalue().rstrip("\n").split("\n"))


def write_feedback(target: Path, given: Iterable[Feedback]) -> int:
    """Writes the folder, or a zip if the name ends in .zip: all of it, or nothing.

    Returns:
        The number of students with feedback in it.

    Raises:
        FeedbackError: the folder is not empty: feedback of another run could stay in it.
        OSError: it can't be written.
    """
    if target.suffix.lower() == ".zip":
        return _write_zip(target, given)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FeedbackError(f"{target} is not empty; hint: name a new folder, or a .zip")
    count = 0
    with _aside(target) as folder:
        for each in given:
            for name, text in _files(each):
                path = folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8", errors="replace")
            count += 1
        os.replace(folder, target)
    return count


def _write_zip(target: Path, given: Iterable[Feedback]) -> int:
    if target.is_dir():
        raise FeedbackError(f"{target} is a folder; hint: name a file")
    count = 0
    with _aside(target) as folder:
        with zipfile.ZipFile(folder / "zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for each in given:
                count += 1
                for name, text in _files(each):
                    about = zipfile.ZipInfo(name, _EPOCH)
                    about.external_attr = 0o644 << 16
                    data = text.encode("utf-8", "replace")
                    archive.writestr(about, data, zipfile.ZIP_DEFLATED)
        os.replace(folder / "zip", target)
    return count


def _files(each: Feedback) -> list[tuple[str, str]]:
    return [(f"{each.folder}/feedback.html", each.html), (f"{each.folder}/feedback.txt", each.text)]


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """A new folder beside the target, removed at the end in any case."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
