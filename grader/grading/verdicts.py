"""Makes the result that the report holds for a row of the rubric, in words."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from grader.building.compiler_output import excerpt, first_error, in_tree, last_step
from grader.building.snapshot import Snapshot
from grader.checks.harness.compare import Failure
from grader.checks.registry import CHECKS, Check
from grader.course.rubric import Row, Rubric, RubricError
from grader.explain.audit import Audit
from grader.explain.diagnosis import Explanation
from grader.explain.findings import place_of, quote
from grader.explain.second_opinion import Opinion, explains
from grader.grading.own_folders import without_folders
from grader.grading.prebuilt import GraderError
from grader.report.model import BROKE_OFF, ERROR, FAIL, PASS, SKIPPED, Result, Status
from grader.report.wording import explain, tail
from grader.sandbox import process
from grader.student.blame import OutOfMemory
from grader.student.remote import ChildError, ChildTimeout, StartError

#: How the message of an error begins where the emulated GPU contradicts itself.
FORMS_DISAGREE = (
    "the two forms of the emulated GPU disagree: this check fails in the fast form, and "
    "passes thread by thread"
)
#: The same for a build.
DOES_NOT_BUILD = (
    "the two forms of the emulated GPU disagree: the fast form of the kernels does not "
    "compile; the plain one does, and the checks use it"
)
#: How the message begins where right values come of a wrong program.
VALUES_ARE_RIGHT = "every value is right, but by luck"
ORDER_MATTERS = "the result depends on the order in which blocks and threads run"
CHECKED_DIFFERS = (
    "the two builds of the emulated GPU disagree: this check passes, but fails in the "
    "checked build, which finds nothing wrong"
)
_ORDER_HINT = (
    "the order is not fixed: is a barrier missing between a write and another thread's read?"
)
#: Characters of a message and of a line of details, and how many lines a result has at most.
_SENTENCE, _LINE, _LINES = 3000, 1000, 100
#: What a check may raise because the machine fails, whatever was submitted. Starved, whose child
#: others kept from the processor, is among them as an OSError, by way of TimeoutError.
OF_THE_MACHINE = (OSError, MemoryError, StartError, GraderError, OutOfMemory)
_LOOK = (
    "a person must look: this is a bug of the kit, or code that tests which form it runs "
    "in. `grader replay` runs it again and keeps both outputs; please report it with the "
    "kernel"
)


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
            f"the rubric names the check {row.name!r}, which is not defined; hint: list the "
            "files of your own checks in course.toml, under `checks`"
        )
    return replace(row, sentence=sentence(row.name, checks))


def result_of(row: Row, status: Status, **more: Any) -> Result:
    """A result with all points for a pass, else none. `more` are further fields of `Result`."""
    score = row.points if status == PASS else 0.0
    line = row.sentence or sentence(row.name)
    visible = row.visible
    return Result(row.name, row.task, row.points, score, status, line, visibility=visible, **more)


def bounded(result: Result) -> Result:
    """The result with texts that a report can hold: much of them is what a submission said. Where
    the grader's own files lie, an `error` alone tells: that is for the instructor."""
    lines = result.details
    if len(lines) > _LINES:
        left_out = f"[... {len(lines) - _LINES} lines left out ...]"
        lines = [*lines[: _LINES // 2], left_out, *lines[-_LINES // 2 :]]
    told = {
        "message": shortened(result.message, _SENTENCE),
        "hint": shortened(result.hint, _SENTENCE),
        "details": [shortened(line, _LINE) for line in lines],
        "findings": result.findings,
    }
    return replace(result, **(told if result.status == ERROR else without_folders(told)))


def shortened(text: str, most: int) -> str:
    """A text of `most` characters, its end left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def failed(
    row: Row, error: Failure | ChildError, facts: Mapping[str, Any], on_emulated: bool
) -> Result:
    """The result of a check that failed, in words. `on_emulated`: it needs the emulated GPU."""
    words = explain(error, is_slow=on_emulated and isinstance(error, ChildTimeout))
    return result_of(row, FAIL, **words, facts={**facts, **getattr(error, "facts", {})})


def skip(row: Row, why: str) -> Result:
    """The result of a check that was not run, and why."""
    return result_of(row, SKIPPED, message=why)


def is_hole(task: str, sources: Snapshot, rubric: Rubric) -> bool:
    """Whether the task's hole still stands in the files. It may be unreachable, so this only
    chooses the words for a check that can't run."""
    marks = (f'NotImplementedError("task {task} is not', f'not_written("{task}")')
    return any(sources.holds(mark, rubric.files) for mark in marks)


def build_failure(row: Row, done: process.Completed, taken: Mapping[str, bytes]) -> Result:
    """What is wrong with a submission that does not compile."""
    if done.reason == "timeout":
        step = last_step(done.output)
        message = f"the build did not end within {row.seconds:g} s" + (f": {step}" * bool(step))
        return result_of(row, FAIL, message=message, details=tail(in_tree(done.output)))
    error = first_error(done.output, taken)
    message = str(error) if error else f"make failed ({done.signal or done.reason}, {done.rc})"
    details = excerpt(done.output) if error else tail(in_tree(done.output))
    if error and error.file in taken:
        marked = quote(taken, error.file, error.line, around=0)
        # g++ and clang quote the line themselves, nvcc does not.
        known = any(line.partition("| ")[2] in "\n".join(details) for line in marked)
        details = details if known else [*details, *marked]
    return result_of(row, FAIL, message=message, details=details)


def builds_plainly(failed: Result) -> Result:
    """The result of a build that fails in the emulated GPU's fast form alone."""
    message = f"{DOES_NOT_BUILD}; the fast form: {failed.message}"
    return replace(failed, status=ERROR, message=message, hint=_LOOK)


def own_fault(row: Row, error: Exception) -> Result:
    """The result where the grader itself failed."""
    message = f"{type(error).__name__}: {error}"
    return result_of(row, ERROR, message=message, details=_lines(error))


def not_understood(row: Row, error: Exception) -> Result:
    """The result of a check that failed to read what the submission returned. The traceback is for
    the instructor."""
    said = f"{type(error).__name__}: {error}"
    message = f"the check could not read what the submission returned: {said}"
    return result_of(row, FAIL, message=message, details=_lines(error), facts={BROKE_OFF: said})


def _lines(error: Exception) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


def with_opinion(result: Result, opinion: Opinion) -> Result:
    """A failed result after a second opinion: an error of the kit's, if the forms of the emulated
    GPU disagree, and the checked build knows no reason that is the student's."""
    if opinion.facts:
        result.facts["second_opinion"] = opinion.facts
    if opinion.hint:
        result.hint = "; ".join(filter(None, (result.hint, opinion.hint)))
    if not opinion.differs or explains(result.findings):
        return result
    message = f"{FORMS_DISAGREE}; the fast form: {result.message}"
    details = [*opinion.details, *result.details]
    return replace(result, status=ERROR, message=message, details=details, hint=_LOOK)


def with_audit(result: Result, audit: Audit) -> Result:
    """A passed result after the audit of every access: a fail if the audit found anything."""
    if audit.facts:
        result.facts["audit"] = audit.facts
    if not (audit.findings or audit.failure or audit.disputed):
        return result
    failed = replace(result, status=FAIL, score=0.0)
    if audit.failure is not None:
        message = f"{ORDER_MATTERS}: {audit.failure.message}"
        return replace(failed, message=message, hint=_ORDER_HINT)
    if audit.disputed is not None:
        message = f"{CHECKED_DIFFERS}: {audit.disputed}"
        return replace(failed, status=ERROR, message=message, hint=_LOOK)
    found = audit.findings[0]
    title = found["title"][:1].lower() + found["title"][1:]
    where = f" ({place_of(found)})" if place_of(found) else ""
    failed = replace(failed, message=f"{VALUES_ARE_RIGHT}: {title}{where}", hint=found["hint"])
    return with_findings(failed, Explanation(audit.findings))


def with_findings(result: Result, explanation: Explanation) -> Result:
    """A failed result with what was found about it, the first finding among its details too."""
    result.findings = explanation.findings
    result.hint = "; ".join(filter(None, (result.hint, explanation.hint)))
    if explanation.facts:
        result.facts["findings"] = explanation.facts
    for found in explanation.findings[:1]:
        result.details.append(": ".join(filter(None, (place_of(found), found["sentence"]))))
    return result
