"""The self-check of an assignment: its skeleton scores 0, its reference all points."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from grader.course.course import Course
from grader.course.rubric import Rubric
from grader.grading.runner import Options, grade
from grader.report.model import ERROR, Report, Result


def self_check(
    course: Course,
    rubric: Rubric,
    parts: Collection[int],
    data: Path | None = None,
    on_result: Callable[[str, Result], None] = lambda what, result: None,
) -> list[str]:
    """Grades the course's skeleton and its solution on the emulated GPU; returns what is wrong, in
    sentences.

    Args:
        parts: those whose holes were stripped; the others are solved in the skeleton.
        data: folder of MNIST, or None to search.
        on_result: called with "skeleton" or "solution", and each of its results.

    Raises:
        GraderError: the skeleton does not build.
    """
    options = Options(rubric, "emulated", data=data, course=course)
    # Where it was handed in doesn't matter for what is graded, and a report is not kept.
    skeleton = grade(course.skeleton, options, lambda result: on_result("skeleton", result))
    solution = grade(course.solution, options, lambda result: on_result("solution", result))
    return [*_problems("skeleton", skeleton), *_problems("solution", solution),
            *(_too_good(result) for result in skeleton.results if _is_hole(result, parts)),
            *(_too_bad(result) for result in solution.results if _falls_short(result))]  # fmt: skip


def _problems(what: str, report: Report) -> list[str]:
    """Failures of the grader itself."""
    said = [f"the {what} can't be graded: {report.problem}"] if report.problem else []
    return said + [
        f"the grader failed in the check {result.check} of the {what}: {result.message}"
        for result in report.results
        if result.status == ERROR
    ]


def _is_hole(result: Result, parts: Collection[int]) -> bool:
    """Whether a result of the skeleton has points for what was stripped."""
    return result.score > 0 and (not result.task or int(result.task.partition(".")[0]) in parts)


def _too_good(result: Result) -> str:
    task = f" (task {result.task})" if result.task else ""
    return f"the skeleton gets {result.score:g} points in the check {result.check}{task}"


def _falls_short(result: Result) -> bool:
    return result.status != ERROR and result.score < result.points


def _too_bad(result: Result) -> str:
    return (
        f"the solution gets {result.score:g} of {result.points:g} points in the check "
        f"{result.check}: {result.message or result.status}"
    )


def with_skeleton(course: Course, folder: Path) -> Course:
    """The course with another folder as its skeleton."""
    return replace(course, skeleton=folder.resolve())
