"""Reads a report that was stored as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from grader.base.errors import UsageError
from grader.course.rubric import VISIBILITIES
from grader.report.model import ERROR, FAIL, PASS, SCHEMA, SKIPPED, Report, Result

_STATUSES = (PASS, FAIL, SKIPPED, ERROR)
# Types of the fields, by the annotations of Report and Result.
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
}


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
        entries = _field(raw, "results", "list")
        values = _fields(Report, {**raw, "results": []})
        for each in values.get("by_hand", []):
            _check_by_hand(each)
        return Report(**{**values, "results": [_result(entry) for entry in entries]})
    except ValueError as error:
        raise StoredError(f"{path}: {error}") from error


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


def _result(entry: Any) -> Result:
    if not isinstance(entry, dict):
        raise ValueError(f"results holds {str(entry)[:40]!r}, which is not an object")
    result = Result(**_fields(Result, entry))
    where = f"check {result.check!r}"
    if result.status not in _STATUSES:
        raise ValueError(f"{where}: status is {result.status!r}; it is {' or '.join(_STATUSES)}")
    if result.visibility not in VISIBILITIES:
        raise ValueError(f"{where}: visibility is {result.visibility!r}")
    if not all(isinstance(line, str) for line in result.details):
        raise ValueError(f"{where}: details are not strings")
    if not all(isinstance(finding, dict) for finding in result.findings):
        raise ValueError(f"{where}: findings are not objects")
    return result


def _check_by_hand(each: Any) -> None:
    if not isinstance(each, dict):
        raise ValueError(f"by_hand holds {str(each)[:40]!r}, which is not an object")
    for name, kind in (("on", "str"), ("points", "float"), ("comment", "str"), ("by", "str")):
        _field(each, name, kind)


def _fields(kind: type[Report] | type[Result], raw: dict[str, Any]) -> dict[str, Any]:
    """What `raw` has of a class's fields; those without a default must be there."""
    found = {}
    for field in fields(kind):
        needed = field.default is MISSING and field.default_factory is MISSING
        if field.name in raw or needed:
            found[field.name] = _field(raw, field.name, str(field.type).partition("[")[0])
    return found


def _field(raw: dict[str, Any], name: str, kind: str) -> Any:
    if name not in raw:
        raise ValueError(f"{name} is missing")
    value, kinds = raw[name], _KINDS.get(kind)
    wrong = kinds is not None and not isinstance(value, kinds)
    if wrong or (kind == "float" and (isinstance(value, bool) or not math.isfinite(value))):
        raise ValueError(f"{name} is {str(value)[:40]!r}, expected {kind}")
    return value
