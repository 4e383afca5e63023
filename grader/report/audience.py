"""What a student may see of a report, and one honest sentence on how it stands."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Final

from grader.building.tree import KIT, cache_folder
from grader.course.rubric import AFTER_DUE_DATE, ALWAYS, NEVER, Visible
from grader.report.model import (
    BROKE_OFF,
    ERROR,
    FAIL,
    FOR_INSTRUCTORS,
    PASS,
    SKIPPED,
    Report,
    Result,
)
from grader.sandbox.isolation import UNCONTAINED
from grader.sandbox.scratch import in_memory

STUDENT: Final = "student"

#: Folders of a submission's tree, which its paths are told from.
_TREE = ("python", "src", "emulator", "tests", "build")

_OURS = "this is not your mistake, and costs you nothing"


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
    hide = _hiding(_folders(report))
    hidden = [result for result in report.results if result.visibility not in shown]
    return replace(
        report,
        submission=PurePath(report.submission).name,
        seed="",
        audience=STUDENT,
        notes=hide([note for note in report.notes if not _is_for_instructors(note)]),
        problem=hide(report.problem),
        results=[_for_student(r, hide) for r in report.results if r.visibility in shown],
        withheld=dict(Counter(result.visibility for result in hidden)),
        withheld_points=sum(result.points for result in hidden),
        by_hand=[c for c in report.by_hand if c["on"] not in {r.check for r in hidden}],
    )


def _is_for_instructors(note: str) -> bool:
    return note == UNCONTAINED or note.startswith(FOR_INSTRUCTORS)


def _folders(report: Report) -> list[Path]:
    """Folders of the person who grades, which a student's report hides."""
    recipes = [result.facts.get("recipe") for result in report.results]
    found = [str(recipe.get("source", "")) for recipe in recipes if isinstance(recipe, dict)]
    sources = [Path(source) for source in found if os.path.isabs(source)]
    parents = [Path(report.submission).parent, Path.home(), Path(tempfile.gettempdir())]
    parents.append(in_memory())
    return [KIT, cache_folder(), *sources, *(path for path in parents if path.is_absolute())]


def _hiding(folders: Iterable[Path]) -> Callable[[Any], Any]:
    """A function that shortens paths below these folders in texts: inside a submission's tree to
    the part below it, elsewhere to the last name."""
    starts = sorted({str(folder) for folder in folders} - {"/"}, key=len, reverse=True)
    path = re.compile(f"(?:{'|'.join(map(re.escape, starts))})(?:/[\\w.+-]*)*")

    def short(match: re.Match[str]) -> str:
        parts = PurePath(match[0]).parts
        inside = [i for i, name in enumerate(parts) if name in _TREE]
        return "/".join(parts[inside[-1] :] if inside else parts[-1:])

    def hide(value: Any) -> Any:
        if isinstance(value, str):
            return path.sub(short, value)
        if isinstance(value, list):
            return [hide(item) for item in value]
        if isinstance(value, dict):
            return {name: hide(item) for name, item in value.items()}
        return value

    return hide


def _for_student(result: Result, hide: Callable[[Any], Any]) -> Result:
    """The result without paths of the machine, and without tracebacks of the grader, which reveal
    how it works."""
    if BROKE_OFF in result.facts:
        return replace(result, message=hide(result.message), details=[], facts={})
    if result.status != ERROR:
        return replace(
            result,
            message=hide(result.message),
            hint=hide(result.hint),
            details=hide(result.details),
            facts=hide(result.facts),
            findings=hide(result.findings),
        )
    return replace(result, message=_OURS, details=[], hint="", facts={}, findings=[])


def standing(report: Report) -> str:
    """How the report stands, in one sentence, with what is not shown in it."""
    parts = [_passed(report)]
    errors = sum(result.status == ERROR for result in report.results)
    if errors:
        parts.append(f"the grader itself failed in {errors}; their points are open")
    parts += _withheld(report.withheld)
    if not report.complete:
        parts.append("the grading did not finish")
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


def _withheld(counts: Mapping[Visible, int]) -> list[str]:
    after, never = counts.get(AFTER_DUE_DATE, 0), counts.get(NEVER, 0)
    said = []
    if after:
        be = "hidden one is" if after == 1 else "hidden ones are"
        said.append(f"{after} {be} graded after the due date")
    if never:
        be = "hidden one is" if never == 1 else "hidden ones are"
        said.append(f"{never} {be} never shown")
    return said
