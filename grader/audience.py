"""What a student may see of a report, and one honest sentence on how it stands."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import PurePath

from grader.results import BROKE_OFF, ERROR, FAIL, PASS, SKIPPED, Report, Result
from grader.rubric import AFTER_DUE_DATE, ALWAYS, NEVER

STUDENT = "student"

_OURS = "this is not your fault, and it costs you nothing"


def shown_to_students(after_due_date: bool) -> set[str]:
    """The visibilities that are open to students."""
    return {ALWAYS, AFTER_DUE_DATE} if after_due_date else {ALWAYS}


def student_view(report: Report, after_due_date: bool = False) -> Report:
    """The report without hidden checks, the seed, and what the grader says of itself.

    What was left out is counted in `withheld`. The view of a view is that view: what was taken
    out before the due date can't be had back from it.
    """
    if report.audience == STUDENT:
        return report
    shown = shown_to_students(after_due_date)
    hidden = [result for result in report.results if result.visibility not in shown]
    return replace(
        report,
        submission=PurePath(report.submission).name,
        seed="",
        audience=STUDENT,
        results=[_for_student(r) for r in report.results if r.visibility in shown],
        withheld=dict(Counter(result.visibility for result in hidden)),
        withheld_points=sum(result.points for result in hidden),
    )


def _for_student(result: Result) -> Result:
    """The grader's own faults in words alone: a traceback tells how it works."""
    if BROKE_OFF in result.facts:
        return replace(result, details=[], facts={})
    if result.status != ERROR:
        return result
    return replace(result, message=_OURS, details=[], hint="", facts={}, findings=[])


def standing(report: Report) -> str:
    """How the report stands, in one sentence, with what is not shown in it."""
    parts = [_passed(report)]
    errors = sum(result.status == ERROR for result in report.results)
    if errors:
        parts.append(f"the grader itself failed in {errors}, whose points are open")
    parts += _withheld(report.withheld)
    if not report.complete:
        parts.append("the grading did not come to its end")
    return "; ".join(parts)


def _passed(report: Report) -> str:
    kind = "public checks" if report.withheld else "checks"
    passed = sum(result.status == PASS for result in report.results)
    if report.problem or not any(r.status in (PASS, FAIL, ERROR) for r in report.results):
        return "no check ran"
    # What this machine can't check counts for nobody; what needs a failed check counts.
    away = sum(
        r.status == SKIPPED and not r.points and not r.message.startswith("needs ")
        for r in report.results
    )
    if passed == len(report.results) - away:
        return f"all {kind} passed"
    return f"{passed} of {len(report.results) - away} {kind} passed"


def _withheld(counts: dict[str, int]) -> list[str]:
    after, never = counts.get(AFTER_DUE_DATE, 0), counts.get(NEVER, 0)
    said = []
    if after:
        be = "hidden one is" if after == 1 else "hidden ones are"
        said.append(f"{after} {be} graded after the due date")
    if never:
        be = "hidden one is" if never == 1 else "hidden ones are"
        said.append(f"{never} {be} never shown")
    return said
