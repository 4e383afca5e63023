"""The checks that need no reference. Students have them too, see grader/status/here.py."""

from __future__ import annotations

from collections.abc import Callable

from grader.checks import executor, feeds, gradients, kernels, mnist, plan, walks
from grader.checks.context import Context

#: Name in the rubric -> function. `build` is not here: the runner does it.
CORE: dict[str, Callable[[Context], None]] = {
    **gradients.CHECKS,
    **walks.CHECKS,
    **executor.CHECKS,
    **plan.CHECKS,
    **feeds.CHECKS,
    **kernels.CHECKS,
    **mnist.CHECKS,
}
