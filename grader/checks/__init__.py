"""The checks. A check is a function of a Context; its docstring is the student's sentence.

kernels.py is an example; core.py lists the checks, and harness/ is what they work with: above all
harness/context.py, what a check gets. It imports base, building, course, sandbox and student. Start
reading in kernels.py.
"""

from grader.checks.harness.compare import Failure
from grader.checks.harness.context import Context
from grader.checks.harness.kernel_case import Case, KernelCheck
from grader.checks.harness.traits import check

__all__ = ["Case", "Context", "Failure", "KernelCheck", "check"]
