"""The checks. A check is a function of a Context; its docstring is the student's sentence."""

from __future__ import annotations

from collections.abc import Callable

from grader.checks import executor, gradients, kernels, mnist, speed
from grader.checks.context import Context, Failure
from grader.checks.outcomes import Flag, NotHere

Check = Callable[[Context], None]

#: Name in the rubric -> function. `build` is not here: the runner does it.
CHECKS: dict[str, Check] = {
    **gradients.CHECKS,
    **executor.CHECKS,
    **kernels.CHECKS,
    **mnist.CHECKS,
    **speed.CHECKS,
}

#: Checks whose failure may be explained by what kernels do.
ON_GPU = frozenset(kernels.CHECKS) | {"memory_plan", "mnist_gpu"}
#: Those that soon end, and whose inputs follow from the seed alone.
REPEATABLE = frozenset(kernels.CHECKS)

#: Checks that use no device, and nothing that was built.
OFF_DEVICE = frozenset(gradients.CHECKS) | {"infer_shape", "mnist_numpy"}


def is_timed(check: str, backend: str) -> bool:
    """Whether a check looks at the clock, so that nothing else may run beside it."""
    return check in speed.CHECKS or (check == "mnist_gpu" and backend == "cuda")


__all__ = ["CHECKS", "OFF_DEVICE", "ON_GPU", "REPEATABLE", "Check", "Context", "Failure", "Flag",
           "NotHere", "is_timed"]  # fmt: skip
