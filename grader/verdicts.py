"""Puts into words what came of a row of the rubric: the result that the report holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from grader import sandbox
from grader.checks import CHECKS, Check
from grader.compiler import excerpt, first_error, last_step
from grader.diagnosis import Explanation
from grader.findings import place_of, quote
from grader.results import FAIL, PASS, SKIPPED, Result
from grader.rubric import Row, Rubric, RubricError
from grader.snapshot import Snapshot
from grader.wording import tail


def sentence(name: str, checks: Mapping[str, Check] = CHECKS) -> str:
    """What a check checks, for the student: the first line of its docstring."""
    if name == "build":
        return "the submission compiles"
    return (checks[name].__doc__ or name).strip().partition("\n")[0]


def with_sentence(row: Row, checks: Mapping[str, Check]) -> Row:
    """The row with its sentence.

    Raises:
        RubricError: there is no such check.
    """
    if row.name != "build" and row.name not in checks:
        raise RubricError(
            f"the rubric names the check {row.name!r}, which is nowhere defined; hint: `checks` in "
            "the course's file names the files that define more than the kit's"
        )
    return replace(row, sentence=sentence(row.name, checks))


def result_of(row: Row, status: str, **more: Any) -> Result:
    score = row.points if status == PASS else 0.0
    line = row.sentence or sentence(row.name)
    visible = row.visible
    return Result(row.name, row.task, row.points, score, status, line, visibility=visible, **more)


def skip(row: Row, why: str) -> Result:
    return result_of(row, SKIPPED, message=why)


def is_hole(task: str, sources: Snapshot, rubric: Rubric) -> bool:
    """Whether the task's hole still stands in the files. It may be unreachable, so this only
    chooses the words for a check that can't run."""
    marks = (f'NotImplementedError("task {task} is not', f'not_written("{task}")')
    return any(sources.holds(mark, rubric.files) for mark in marks)


def build_failure(row: Row, done: sandbox.Completed, taken: Mapping[str, bytes]) -> Result:
    """What is wrong with a submission that does not compile."""
    if done.reason == "timeout":
        step = last_step(done.output)
        message = f"the build did not end within {row.seconds:g} s" + (f": {step}" * bool(step))
        return result_of(row, FAIL, message=message, details=tail(done.output))
    error = first_error(done.output, taken)
    message = str(error) if error else f"make failed ({done.signal or done.reason}, {done.rc})"
    details = excerpt(done.output) if error else tail(done.output)
    if error and error.file in taken:
        marked = quote(taken, error.file, error.line, around=0)
        # g++ and clang quote the line themselves, nvcc does not.
        known = any(line.partition("| ")[2] in "\n".join(details) for line in marked)
        details = details if known else [*details, *marked]
    return result_of(row, FAIL, message=message, details=details)


def with_findings(result: Result, explanation: Explanation) -> Result:
    """A failed result with what was found about it, the first finding among its details too."""
    result.findings = explanation.findings
    result.hint = "; ".join(filter(None, (result.hint, explanation.hint)))
    if explanation.facts:
        result.facts["findings"] = explanation.facts
    for found in explanation.findings[:1]:
        result.details.append(": ".join(filter(None, (place_of(found), found["sentence"]))))
    return result
