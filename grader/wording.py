"""Says what a student's process did, or computed, in the words of a report."""

from __future__ import annotations

import sys
from typing import Any

from grader.checks import Failure
from grader.compiler import link_error
from grader.remote import ChildError, StudentError

_OUTPUT_LINES = 12
_LINE = 500  # characters
_PYTHON_2 = (
    "Missing parentheses in call to 'print'",
    "multiple exception types must be parenthesized",
    "'map' object is not subscriptable",
    "'dict' object has no attribute 'iteritems'",
    "name 'xrange' is not defined",
)


def explain(error: Failure | ChildError) -> dict[str, Any]:
    """Message, details and hint for what a student's process did, or computed."""
    if isinstance(error, Failure):
        return {"message": error.message, "hint": error.hint}
    details = tail(error.output)
    if not isinstance(error, StudentError):
        return {"message": str(error), "details": details}
    first = error.message.strip().partition("\n")[0]
    if "NotImplementedError" in error.types and first.startswith("task "):
        return {"message": first}
    hint = ""
    if any(words in error.message for words in _PYTHON_2):
        hint = "this is Python 2 code; run 2to3 on it, or mend it by hand"
    elif missing := link_error(error.message):
        hint = str(missing)
    elif "RecursionError" in error.types:
        hint = "a graph may be deeper than Python's stack; keep a stack of your own, a list"
    return {
        "message": str(error),
        "details": error.traceback.splitlines() + details,
        "hint": hint,
    }


def tail(output: str) -> list[str]:
    """The last lines that were printed, paths of this machine's Python left out."""
    lines = [line for line in output.strip().splitlines() if line.strip()]
    lines = [line.replace(sys.prefix, "...") for line in lines]
    return [line[:_LINE] for line in lines[-_OUTPUT_LINES:]]
