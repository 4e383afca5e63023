"""The checks. A check is a function of a Context; its docstring is the student's sentence.

It imports base, building, course, sandbox and student. Start reading in gradients.py.
"""

from grader.checks.compare import Failure
from grader.checks.context import Context

__all__ = ["Context", "Failure"]
