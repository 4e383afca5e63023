"""Runs a check again: in a fresh copy of a built tree, or in another build of the submission."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from grader.building import compiler_output, sharing
from grader.building import tree as build
from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import Failure
from grader.sandbox import process
from grader.sandbox.isolation import View
from grader.sandbox.process import Limits
from grader.sandbox.scratch import scratch_folder
from grader.student.remote import ChildError

#: Seconds under which no run is begun.
LEAST = 2.0

Made = TypeVar("Made")


class Once(Generic[Made]):
    """Makes something at the first call, and gives it again; or raises again why it can't be."""

    def __init__(self, make: Callable[[], Made], refusal: type[Exception]) -> None:
        self._make, self._kind = make, refusal
        self._made: list[Made] = []
        self._refusal: Exception | None = None
        self._turn = threading.Lock()

    def __call__(self) -> Made:
        with self._turn:
            if self._refusal:
                raise self._refusal
            if not self._made:
                try:
                    self._made.append(self._make())
                except self._kind as refusal:
                    self._refusal = refusal
                    raise
            return self._made[0]


class Allowance:
    """Seconds that the reruns of one submission may take, together and each.

    `left` is what is left of them.
    """

    def __init__(self, total: float, each: float, purpose: str, refusal: type[Exception]) -> None:
        self.left = self._total = total
        self._each, self._purpose, self._refusal = each, purpose, refusal

    def seconds(self) -> float:
        """What the next run may take. Raises the refusal if there is too little left."""
        if self.left < LEAST:
            raise self._refusal(f"no time is left of the {self._total:g} s for {self._purpose}")
        return min(self.left, self._each)

    @contextlib.contextmanager
    def spending(self) -> Iterator[None]:
        """Takes off the time for which this is entered."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.left -= time.monotonic() - started


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


def rebuild(
    tree: Path, kit: Path, taken: Mapping[str, bytes], view: View, seconds: float, **form: bool
) -> str:
    """Builds a submission once more for the emulated GPU; returns why that failed, or "".

    Args:
        tree: an empty folder, for the tree.
        kit: the built tree of the kit in the same form.
        taken: the submission's files.
        view: what student code sees beside the tree.
        seconds: for the build.
        form: `checked` or `fast`, see grader.building.tree.make_command.
    """
    sharing.lay_out(tree, kit, view)
    build.lay_over(tree, taken)
    view = dataclasses.replace(view, writable=(tree / "build",))
    view = sharing.seeing_shared(view, tree, kit)
    command, environment = build.make_command("emulated", **form), build.build_environment()
    done = process.run(command, tree, environment, Limits(wall=seconds), view)
    if done.rc == 0:
        return ""
    return str(compiler_output.first_error(done.output, taken) or done.reason)


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
