"""The table of all checks: the kit's, and a course's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from grader.checks import gradients, kernels, walks
from grader.checks.child import ChildContext
from grader.checks.core import CORE
from grader.checks.course_checks import load_checks
from grader.checks.kernel_case import KernelCheck
from grader.checks.speed import checks
from grader.course.course import Course

Check = Callable[[ChildContext], None]

#: Name in the rubric -> function. `build` is not here: the runner does it.
CHECKS: dict[str, Check] = {**CORE, **checks.CHECKS}

#: Checks of the kit whose failure may be explained by what kernels do.
ON_GPU = frozenset(kernels.CHECKS) | {"feed_shapes", "memory_plan", "mnist_gpu"}
#: Those that soon end, and whose inputs follow from the seed alone.
REPEATABLE = frozenset(kernels.CHECKS)

#: Checks that use no device, and nothing that was built.
OFF_DEVICE = frozenset({**gradients.CHECKS, **walks.CHECKS}) | {"infer_shape", "mnist_numpy"}


def is_timed(check: str, backend: str) -> bool:
    """Whether a check looks at the clock, so that nothing else may run beside it."""
    return check in checks.CHECKS or (check == "mnist_gpu" and backend == "cuda")


def checks_of(course: Course) -> Mapping[str, Check]:
    """The checks that a course's rubric may name: the kit's, and the course's own, which come
    first where both have a name.

    Raises:
        CourseError: a file of the course can't be loaded.
    """
    return {**CHECKS, **load_checks(course.checks)}


def is_of_kernels(check: Check) -> bool:
    """Whether a course's own check calls kernels alone, so that it can be run again, watched."""
    return isinstance(check, KernelCheck)
