"""Writes a report as one HTML page that needs nothing besides itself.

All text is made printable and escaped by the template's engine. A policy in the page forbids
scripts and requests, so that even a mistake here can't make it reach out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.audience import standing
from grader.picture import bar_svg, losses_svg, mismatch_svg, read_mismatch
from grader.printable import printable
from grader.report import finding_text, number, other_details, trainings
from grader.results import ERROR, FAIL, PASS, SKIPPED, Report, Result
from grader.rubric import AFTER_DUE_DATE, NEVER

_TEMPLATES = Path(__file__).parent / "templates"

_WORDS = {PASS: "passed", FAIL: "failed", SKIPPED: "not run", ERROR: "grader failed"}
_SIGNS = {PASS: "✓", FAIL: "✗", SKIPPED: "–", ERROR: "!"}
_HIDDEN = {AFTER_DUE_DATE: "shown after the due date", NEVER: "never shown"}
_FINDINGS = 20


@dataclass(frozen=True)
class Group:
    """The checks of one part, or those of none."""

    title: str
    results: list[Result]


def templates(**filters: Callable[..., Any]) -> Environment:
    """Where the pages' templates are, with every text made printable and escaped."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters.update(filters)
    return made


@cache
def environment() -> Environment:
    """The templates of students' pages and of the class page."""
    return templates(number=number, bar=bar_svg, spark=losses_svg)


def to_html(report: Report) -> str:
    """The page."""
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            standing=standing(report),
            groups=list(_groups(report)),
            parts=list(_parts(report)),
            wrong=[r for r in report.results if r.status in (FAIL, ERROR)],
            trainings=list(trainings(report)),
            slowest=max((r.seconds for r in report.results), default=0.0),
            words=_WORDS,
            signs=_SIGNS,
            hidden=_HIDDEN,
            most_findings=_FINDINGS,
            picture=_picture,
            finding_text=finding_text,
            other_details=other_details,
        )
    )


def _finalize(value: Any) -> Any:
    """Text becomes printable before it is escaped; pictures are ours and stay."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _groups(report: Report) -> Iterator[Group]:
    """What belongs to no task, then the parts, each in the order of its tasks."""
    given = [result for result in report.results if not result.task]
    if given:
        yield Group("The build, and what is given", given)
    ordered = sorted((r for r in report.results if r.task), key=lambda r: _task_key(r.task))
    for part, results in groupby(ordered, key=lambda r: r.task.partition(".")[0]):
        yield Group(f"Part {part}: {report.parts.get(part, '')}", list(results))


def _task_key(task: str) -> tuple[tuple[int, str], ...]:
    """Sorts 2.9 before 2.10, and whatever else a stored report has somewhere."""
    return tuple((int(p) if p.isdecimal() else 0, p) for p in task.split("."))


def _parts(report: Report) -> Iterator[tuple[str, float, float]]:
    """(name, score, points) of each part that was graded."""
    for part, name in report.parts.items():
        rows = [r for r in report.results if r.task.partition(".")[0] == part]
        if rows:
            yield f"Part {part}, {name}", sum(r.score for r in rows), sum(r.points for r in rows)


def _picture(result: Result) -> dict[str, Any] | None:
    """The picture of a mismatch with its caption, if the result has one."""
    mismatch = read_mismatch(result.facts)
    if mismatch is None:
        return None
    return {"svg": mismatch_svg(mismatch), "caption": mismatch.caption}
