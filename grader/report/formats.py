"""Writes one report in all formats that were asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.report.audience import STUDENT, shown_to_students, student_view
from grader.report.gradescope import failed, to_gradescope
from grader.report.html import to_html
from grader.report.junit import to_junit
from grader.report.model import Report, Result


class ExportError(UsageError):
    """The report can't be written in a format; the message says why."""


@dataclass(frozen=True)
class Exports:
    """The files to write, and their reader.

    Attributes:
        html, junit: the report, as its reader may see it.
        gradescope: all of the report, with marks by which the platform hides checks.
        json: the report as its reader may see it; the runner itself writes all of it.
        student: whether the reader is a student.
        after_due_date: whether checks that open at the due date are visible.
    """

    html: Path | None = None
    junit: Path | None = None
    gradescope: Path | None = None
    json: Path | None = None
    student: bool = False
    after_due_date: bool = False

    def view(self, report: Report) -> Report:
        """The report as its reader may see it."""
        return student_view(report, self.after_due_date) if self.student else report

    def shows(self, result: Result) -> bool:
        """Whether the reader may see a result."""
        return not self.student or result.visibility in shown_to_students(self.after_due_date)

    def write(self, report: Report) -> None:
        """Writes all of the files, each whole.

        Raises:
            ExportError: results.json was asked of a report that lacks the hidden checks.
            OSError: a file can't be written.
        """
        view = self.view(report)
        if self.html:
            write_whole(self.html, to_html(view))
        if self.junit:
            write_whole(self.junit, to_junit(view))
        if self.json:
            view.write(self.json)
        if self.gradescope:
            if report.audience == STUDENT:
                raise ExportError("results.json needs the report with the hidden checks in it")
            _write_json(self.gradescope, to_gradescope(report))

    def write_failure(self, reason: str) -> None:
        """Writes what can be said without a report: Gradescope must be told."""
        if self.gradescope:
            _write_json(self.gradescope, failed(reason))


def _write_json(path: Path, value: object) -> None:
    write_whole(path, json.dumps(value, indent=1, allow_nan=False) + "\n")
