"""The table of all checks: the kit's, and a course's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from grader.checks.core import CORE
from grader.checks.harness.child import ChildContext
from grader.checks.harness.course_checks import load_checks
from grader.checks.speed import checks, fast_kernels
from grader.course.course import Course

Check = Callable[[ChildContext], None]

#: Name in the rubric -> function. `build` is not here: the runner does it.
CHECKS: dict[str, Check] = {**CORE, **checks.CHECKS, **fast_kernels.CHECKS}


def checks_of(course: Course) -> Mapping[str, Check]:
    """Name -> check, for a course's rubric: the kit's checks and the course's own, which replace
    the kit's of the same name.

    Raises:
        CourseError: a file of the course can't be loaded.
    """
    return {**CHECKS, **load_checks(course.checks)}
