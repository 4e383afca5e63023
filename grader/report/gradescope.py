"""Writes a report as Gradescope's results.json.

Hidden checks are marked, so that the platform hides them. A score is written only if the grader did
its work on every check. Without a score the platform says that the autograder failed, which is
true, and records no loss of points that is not the student's.
"""

from __future__ import annotations

from typing import Any

from grader.base.printable import printable
from grader.course.rubric import AFTER_DUE_DATE, ALWAYS, NEVER
from grader.report.audience import standing, student_view
from grader.report.junit import full_text
from grader.report.model import ERROR, PASS, SKIPPED, Report, Result
from grader.report.terminal import number
from grader.sandbox.isolation import UNCONTAINED

_VISIBILITY = {ALWAYS: "visible", AFTER_DUE_DATE: "after_due_date", NEVER: "hidden"}

_ENDED = (
    "The grading did not finish, so there is no score yet. If a check below ran out of "
    "time, fix that first: checks that hang use up the time of the others. Instructors: the "
    "autograder's output says what ended it."
)
_FAILED = (
    "The autograder failed, which is not your mistake, so there is no score. Instructors: "
    "the autograder's output and extra_data give the reason; please fix it and run the "
    "autograder again."
)


def to_gradescope(report: Report) -> dict[str, Any]:
    """results.json for a whole report; the platform shows students their part of it."""
    scored = report.complete and not report.has_errors
    results: dict[str, Any] = {
        "output": _output(report, scored),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "execution_time": round(report.seconds, 3),
        "tests": [_test(result, scored) for result in report.results],
        "extra_data": _extra(report, scored),
    }
    if scored:
        results["score"] = report.score
    return results


def failed(reason: str) -> dict[str, Any]:
    """results.json of a grader that could not grade at all. Only instructors see the reason."""
    return {
        "output": _FAILED,
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {"grader_failed": True, "reason": printable(reason)},
    }


def _output(report: Report, scored: bool) -> str:
    """The text above the tests. Every student reads it, so it covers the public checks alone."""
    public = student_view(report)
    lines = [] if scored else [_FAILED if report.has_errors else _ENDED]
    lines += [report.problem] if report.problem else []
    said = standing(public)
    lines.append(f"{said[:1].upper()}{said[1:]}.")
    if public.withheld:
        lines.append(f"Public checks: {number(public.score)} of {number(public.points)} points.")
    return "\n".join(printable(line) for line in [*lines, *public.notes])


def _test(result: Result, scored: bool) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": printable(f"{result.task} {result.sentence}".strip()),
        "status": "passed" if result.status == PASS else "failed",
        "visibility": _VISIBILITY[result.visibility],
        "output": printable(_test_output(result)),
        "tags": [result.status],
        "extra_data": {"check": result.check, "seconds": result.seconds},
    }
    if result.task:
        test["number"] = result.task
    if result.status == ERROR or (result.status == SKIPPED and not result.points):
        del test["status"]  # neither: the grader could not tell, or this machine can't check it
    if scored and result.points:
        test |= {"score": result.score, "max_score": result.points}
    return test


def _test_output(result: Result) -> str:
    if result.status == ERROR:
        return "the grader failed here; this is not your mistake, and costs you nothing"
    text = full_text(result)
    return f"not run: {text}" if result.status == SKIPPED else text


def _extra(report: Report, scored: bool) -> dict[str, Any]:
    """extra_data for instructors, which students never see."""
    extra: dict[str, Any] = {
        "schema": report.to_dict()["schema"],
        "seed": report.seed,
        "sha256": report.sha256,
        "profile": report.profile,
        "device": report.device,
        "isolation": report.isolation,
        "grader_failed": not scored,
    }
    if UNCONTAINED in report.notes:
        extra["weak_containment"] = UNCONTAINED
    errors = {r.check: r.message for r in report.results if r.status == ERROR}
    if errors:
        extra["errors"] = {check: printable(message) for check, message in errors.items()}
    return extra
