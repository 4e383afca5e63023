"""Writes a report as one HTML page that needs no other file.

The template engine makes all text printable and escapes it. A security policy in the page forbids
scripts and requests, so that even a mistake here could not load anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.base.printable import printable
from grader.course.rubric import AFTER_DUE_DATE, NEVER
from grader.report.audience import standing
from grader.report.charts import bar_svg, losses_svg, mismatch_svg, read_mismatch
from grader.report.model import ERROR, FAIL, NOT_BEGUN, PASS, SKIPPED, Report, Result
from grader.report.terminal import finding_text, number, other_details, signed, trainings

#: Each page lies beside what renders it.
_TEMPLATES = sorted(Path(__file__).parents[1].glob("*/templates"))

_WORDS = {PASS: "passed", FAIL: "failed", SKIPPED: "not run", ERROR: "grader failed",
          NOT_BEGUN: "not begun"}  # fmt: skip
_SIGNS = {PASS: "✓", FAIL: "✗", SKIPPED: "–", ERROR: "!", NOT_BEGUN: "○"}
_HIDDEN = {AFTER_DUE_DATE: "shown after the due date", NEVER: "never shown"}
_FINDINGS = 20
_MISTAKE = ("tool", "kind", "title", "kernel", "file", "line", "other_file", "other_line")


@dataclass(frozen=True)
class PartChecks:
    """The checks of one part, or those without one."""

    title: str
    results: list[Result]

    @property
    def is_right(self) -> bool:
        """Whether no check in it failed."""
        return not any(result.state in (FAIL, ERROR) for result in self.results)


@dataclass(frozen=True)
class Reference:
    """A finding that the page shows with another check."""

    tool: str
    title: str
    check: str


@dataclass(frozen=True)
class ShownFindings:
    """The findings shown with a check. `left` counts those left out."""

    own: list[dict[str, Any]]
    others: list[Reference]
    left: int


def templates(**filters: Callable[..., Any]) -> Environment:
    """The environment of the pages' templates, which makes all text printable and escapes it."""
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
    """The environment for students' pages and the class page."""
    return templates(number=number, bar=bar_svg, spark=losses_svg)


def to_html(report: Report) -> str:
    """The page."""
    groups = list(_groups(report))
    results = [result for group in groups for result in group.results]
    states = {result.check: result.state for result in results}
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            standing=standing(report),
            groups=groups,
            parts=list(_parts(report)),
            states=states,
            lists=list(_lists(states)),
            number_of={result.check: place for place, result in enumerate(report.results)},
            findings=dict(_findings(report.results)),
            trainings=list(trainings(report)),
            slowest=max((r.seconds for r in report.results), default=0.0),
            words=_WORDS,
            signs=_SIGNS,
            hidden=_HIDDEN,
            picture=_picture,
            finding_text=finding_text,
            other_details=other_details,
            signed=signed,
        )
    )


def _finalize(value: Any) -> Any:
    """Makes text printable before it is escaped. Pictures are ours and stay."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _groups(report: Report) -> Iterator[PartChecks]:
    """The checks without a task, then those of each part, in the order of tasks."""
    given = [result for result in report.results if not result.task]
    if given:
        yield PartChecks("Build and given code", given)
    ordered = sorted((r for r in report.results if r.task), key=lambda r: _task_key(r.task))
    for part, results in groupby(ordered, key=lambda r: r.task.partition(".")[0]):
        yield PartChecks(f"Part {part}: {report.parts.get(part, '')}", list(results))


def _lists(states: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """(what is to be done, the checks concerned), for each list that is not empty."""
    for words, wanted in (("To fix", (FAIL, ERROR)), ("Not begun", (NOT_BEGUN,))):
        if found := [check for check, state in states.items() if state in wanted]:
            yield words, found


def _findings(results: Sequence[Result]) -> Iterator[tuple[str, ShownFindings]]:
    """(check, what is shown with it). A finding is shown once, with the first check that had it, as
    kernels run before what uses them; other checks refer to that."""
    first: dict[tuple[str, ...], str] = {}
    for result in results:
        own, others, left = list[dict[str, Any]](), dict[tuple[str, ...], Reference](), 0
        for finding in result.findings:
            key = _identity(finding)
            check = first.get(key, result.check)
            if check != result.check:
                title = finding_text(finding).partition("\n")[0]
                others[key] = Reference(str(finding.get("tool", "")), title, check)
            elif len(own) < _FINDINGS:
                first[key] = check
                own.append(finding)
            else:
                left += 1
        yield result.check, ShownFindings(own, list(others.values()), left)


def _identity(finding: dict[str, Any]) -> tuple[str, ...]:
    """What findings of one mistake share; threads and values differ from call to call."""
    names = _MISTAKE if finding.get("file") else ("title", "text")
    return tuple(repr(finding.get(name)) for name in names)


def _task_key(task: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts 2.9 before 2.10, and accepts whatever else a stored report holds."""
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
