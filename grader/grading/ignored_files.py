"""Links a failure to a file that was handed in, but is not taken: it says so in the hint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from grader.report.model import FAIL, Result
from grader.submission.reader import Submission

#: What g++ and nvcc, and then clang, say of a header that is not there; what Python says of a
#: module, and of one that it looks for in a package.
_LACKS = (
    re.compile(r"([\w./+-]{1,200}): No such file or directory"),
    re.compile(r"'([\w./+-]{1,200})' file not found"),
    re.compile(r"No module named '([\w.]{1,200})'"),
    re.compile(r"cannot import name '(\w{1,200})' from '[\w.]{1,200}'"),
)
_OF_PYTHON = _LACKS[2:]


def with_ignored_files(result: Result, submission: Submission) -> Result:
    """A failure that lacks a file which was handed in, with a hint at which files are taken."""
    if result.status != FAIL:
        return result
    own = sorted(set(_lacking("\n".join([result.message, *result.details]), submission.extra)))
    if not own:
        return result
    taken = " and ".join(sorted(submission.taken))
    hint = f"{', '.join(own[:5])} was handed in, but only {taken} count: write what it holds there"
    return replace(result, hint="; ".join(filter(None, (result.hint, hint))))


def with_changed_headers(result: Result, changed: Sequence[str]) -> Result:
    """A failed build of a submission that needs changed headers, which are not taken."""
    own = [name for name in changed if not name.endswith(".md")]
    if result.status != FAIL or not own:
        return result
    which = "replaces the one that was" if len(own) == 1 else "replace those that were"
    hint = f"the course's own {', '.join(own[:5])} {which} handed in"
    return replace(result, hint="; ".join(filter(None, (result.hint, hint))))


def _lacking(said: str, extra: Sequence[str]) -> list[str]:
    """Those of the files that are not taken which the text misses."""
    found = []
    for pattern in _LACKS:
        for name in pattern.findall(said):
            wanted = name.rpartition(".")[2] if pattern in _OF_PYTHON else PurePosixPath(name).name
            found += [each for each in extra if wanted in _names(each, pattern in _OF_PYTHON)]
    return found


def _names(path: str, is_python: bool) -> list[str]:
    """The names by which a file is included, or imported: of a module, also those of its
    packages."""
    whole = PurePosixPath(path)
    if not is_python:
        return [whole.name]
    return [whole.stem, *whole.parent.parts] if whole.suffix == ".py" else []
