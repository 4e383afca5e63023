"""Runs a check again, in a fresh copy of a built tree, with the settings of its context."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from grader.building import tree as build
from grader.checks.child import ChildContext
from grader.checks.compare import Failure
from grader.sandbox.scratch import scratch_folder
from grader.student.remote import ChildError


@contextlib.contextmanager
def fresh_copy(tree: Path) -> Iterator[Path]:
    """A fresh copy of the files that a program needs to run in a built tree."""
    with scratch_folder() as folder:
        copy = folder / "tree"
        shutil.copytree(tree, copy, ignore=functools.partial(_needless, str(tree)))
        yield copy


def _needless(tree: str, folder: str, names: list[str]) -> set[str]:
    """The names in a folder that nothing that runs needs."""
    return set(build.FOR_BUILDING if folder == tree else ("obj",)) | {"__pycache__"}


def settings_of(context: ChildContext) -> dict[str, Any]:
    """The settings of a context for another run in one process, with facts and outputs of its
    own."""
    own = {"facts", "outputs"}
    names = [f.name for f in dataclasses.fields(ChildContext) if f.name not in own]
    return {name: getattr(context, name) for name in names}


def outcome(
    check: Callable[[ChildContext], None], context: ChildContext
) -> Failure | ChildError | None:
    """Runs a check; returns the failure that it raised, or None if it passed."""
    try:
        check(context)
    except (Failure, ChildError) as error:
        return error
    return None
