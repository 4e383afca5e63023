"""Reads a report that was stored as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.typed import typed
from grader.report.model import SCHEMA, Report


class StoredError(UsageError):
    """The file holds no report that can be read; the message names the file and the place."""


def read_report(path: Path) -> Report:
    """The report in a JSON file. Fields that it has besides are passed over.

    Raises:
        StoredError: it is no JSON, of another schema, or a field is wrong.
        OSError: it can't be read.
    """
    try:
        raw = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise StoredError(f"{path} is not JSON: {error}") from error
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        raise StoredError(f"{path} has schema {schema!r}; this version reads {SCHEMA}")
    try:
        report = typed(raw, Report)
    except ValueError as error:
        raise StoredError(f"{path}: {error}") from error
    for finding in (finding for result in report.results for finding in result.findings):
        if "cure" in finding:  # its name in the first reports that were stored
            finding["hint"] = finding.pop("cure")
    return report


def unfinished(path: Path | None, like: Report) -> Report | None:
    """The report of an interrupted run in a file, if it is about the same: the submission, the
    rubric and the isolation are those of `like`.
    """
    try:
        report = read_report(path) if path and path.exists() else None
    except (StoredError, OSError):
        return None
    if report is None or report.complete:
        return None
    names = ("sha256", "rubric", "isolation", "audience")
    same = all(getattr(report, name) == getattr(like, name) for name in names)
    return report if same else None
