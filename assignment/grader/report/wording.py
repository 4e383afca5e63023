"""Describes, in the words of a report, what a student's process did or computed."""

from __future__ import annotations

import re
import sys
from typing import Any

from grader.building.compiler_output import link_error
from grader.checks.harness.compare import Failure
from grader.student.proxy import ChildError, StudentError

_OUTPUT_LINES = 12
_LINE = 500  # characters
_HOLE = re.compile(r"task (\d+\.\d+) is not written yet")
_PYTHON_2 = (
    "Missing parentheses in call to 'print'",
    "multiple exception types must be parenthesized",
    "'map' object is not subscriptable",
    "'dict' object has no attribute 'iteritems'",
    "name 'xrange' is not defined",
)


#: The hint where a check of the emulated GPU does not end.
_SLOW_HERE = (
    "if nothing waits or loops without end: kernels whose threads meet often, by shuffles or at "
    "barriers, may be right and still too slow on the emulated GPU. "
    "`python3 emulator/emucc.py --explain src/gpu_op.cu` says which of them do not run as loops; "
    "give a thread more elements and a block fewer meetings, or ask to be graded on a GPU"
)


def missing_task(message: str) -> str:
    """The task whose hole raised this message; "" if the message says anything else."""
    match = _HOLE.fullmatch(message)
    return match[1] if match else ""


def explain(error: Failure | ChildError, is_slow: bool = False) -> dict[str, Any]:
    """Message, details and hint for an error of a student's process. `is_slow`: the time of a check
    is up that needs the emulated GPU."""
    if isinstance(error, Failure):
        return {"message": error.message, "hint": error.hint}
    details = tail(error.output)
    if not isinstance(error, StudentError):
        said = {"message": str(error), "details": details}
        return {**said, "hint": _SLOW_HERE} if is_slow else said
    first, _, rest = error.message.strip().partition("\n")
    if "NotImplementedError" in error.types and first.startswith("task "):
        return {"message": first}
    hint = ""
    if any(words in error.message for words in _PYTHON_2):
        hint = "this is Python 2 code; port it to Python 3, by hand or by 2to3"
    elif missing := link_error(error.message):
        hint = str(missing)
    elif "RecursionError" in error.types:
        hint = (
            "a graph may be deeper than Python's stack; replace the recursion by a loop "
            "with a list as its stack"
        )
    elif "invalid configuration argument" in first and not rest:  # a real GPU says no more
        hint = "a block has 1 to 1,024 threads, and a grid at least one block along each axis"
    elif "given an array on the CPU: CUDA error 700" in first:
        hint = (
            "a GPU's kernel can't reach it, also where the emulated GPU lets it pass: allocate "
            "every array of the executor with its ctx, by ndarray.empty(shape, self.ctx)"
        )
    more = tail(rest)
    return {
        "message": str(error),
        "details": [*more, *error.traceback.splitlines(), *(d for d in details if d not in more)],
        "hint": hint,
    }


def tail(output: str) -> list[str]:
    """The last lines of an output, without paths of this machine's Python."""
    lines = [line for line in output.strip().splitlines() if line.strip()]
    lines = [line.replace(sys.prefix, "...") for line in lines]
    return [line[:_LINE] for line in lines[-_OUTPUT_LINES:]]
