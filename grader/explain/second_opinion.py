"""A second opinion before a fail: does the check fail without the emulated GPU's fast form, too?

The emulated GPU runs most kernels in a fast form, made by passes that may be wrong. Its plain form
calls a kernel's function thread by thread and takes nothing for granted. So a check that fails on
the emulated GPU runs once more, with the same inputs, in a second library, built here from the same
source without the fast form. If it fails there as well, the fail stands. If it passes there, fails
again in the fast form, and passes in another order of threads and blocks, the two forms disagree:
the result is an `error`, nobody's fail and nobody's points, until a person has looked.

What a hostile submission could make of that:

- It can't make up a second opinion. That is a check like any other: a child of its own, random
  inputs that are new in this run, and the parent decides.
- It can tell the two runs apart only by inspecting itself, as by its own symbols: neither the
  environment (EMULATOR_LOOPS is set in none of them) nor the place of its files differs. The third
  run has EMULATOR_SHUFFLE in its environment.
- Telling them apart gains nothing. Never does a second opinion give points; and to get an `error`
  instead of a fail, the submission has to be right on fresh inputs, thread by thread, in two orders
  of the threads. Whoever has code that is, gets the points by leaving out the switch. A person sees
  the `error`, with the values of both forms and how each kernel runs.
- Except by a race: code without a barrier may be right in one order by chance. So the order is
  changed, and what the checked build has found keeps the fail: a race, or memory that nobody wrote,
  explains the difference, and is the student's (`explains` below; see grader.explain.diagnosis).
- Code that reaches into the system could change what its process tells of itself. It is not
  believed, as elsewhere, and gets no second opinion.
- Hanging costs time alone. The rubric bounds it, by run and by submission, and what hung in the
  fast form gets little.

A fail that does not come again in the fast form stays a fail: chance is no difference of forms.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from grader.base.printable import plain
from grader.building import tree as build
from grader.building.sharing import seeing_shared
from grader.building.snapshot import Snapshot
from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import Array, Failure
from grader.checks.harness.traits import traits_of
from grader.checks.registry import CHECKS, Check
from grader.course.rubric import Rubric
from grader.explain.rerun import Allowance, Once, outcome, rebuild, settings_of
from grader.sandbox import process
from grader.sandbox.isolation import View
from grader.sandbox.process import Limits
from grader.sandbox.scratch import Scratch
from grader.student.endless import endless_kernel
from grader.student.remote import ChildDied, ChildError, ChildExcess, ChildTimeout, StudentError

_ORDER = "7"  # EMULATOR_SHUFFLE of the run in another order
_VALUES = 5  # elements that are shown with both values
_KERNELS = 20  # lines on how kernels run
_EXPLAINING = Limits(wall=60, cpu=60, memory=2 << 30)  # it compiles, as make does
#: Says how each kernel of a source runs, with the headers that make has precompiled.
_EXPLAIN = (
    sys.executable, "-B", "emulator/emucc.py", "--explain",
    "--prelude", "build/obj/emulated/prelude.h", "-Isrc",
)  # fmt: skip
#: Kinds of findings, by their start, that leave every value as it was.
_HARMLESS = ("advice", "leak", "cublas handle leaked", "launch error unread")


class NoOpinion(Exception):
    """There is no second opinion; the message says why."""


@dataclass
class Opinion:
    """The second opinion on a failed check.

    Attributes:
        differs: whether the two forms of the emulated GPU disagree.
        hint: for a failure that the order of threads decides, or "".
        details: lines for the instructor if they disagree.
        facts: for the report; empty if there was no second run.
    """

    differs: bool = False
    hint: str = ""
    details: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def concerns(check: str, error: Exception, checks: Mapping[str, Check] = CHECKS) -> bool:
    """Whether the fast form of kernels may have caused a failure."""
    traits = traits_of(checks.get(check))
    if check not in checks or not traits.device or "emulated" in traits.timed:
        return False
    if isinstance(error, StudentError):  # what did not end was tried thread by thread already
        return "DeviceError" in error.types and not endless_kernel(error)
    return isinstance(error, (Failure, ChildDied, ChildTimeout, ChildExcess))


def explains(findings: list[dict[str, Any]]) -> bool:
    """Whether findings of the checked build explain a result that differs from run to run."""
    return any(not str(found["kind"]).startswith(_HARMLESS) for found in findings)


class SecondOpinion:
    """Gives second opinions on one submission. Used in a `with`, which removes what it built."""

    def __init__(
        self,
        taken: Mapping[str, bytes],
        rubric: Rubric,
        prebuilt: Callable[[], Path],
        view: View,
        checks: Mapping[str, Check] = CHECKS,
    ) -> None:
        """Builds nothing yet.

        Args:
            taken: the submission's files.
            prebuilt: gives the pristine tree, built for the emulated GPU.
            view: what student code sees.
            checks: the table of checks.
        """
        self._taken, self._prebuilt, self._view = taken, prebuilt, view
        self._budget, self._checks = rubric.second_opinion, checks
        total, each = self._budget.total, self._budget.seconds
        self._time = Allowance(total, each, "second opinions", NoOpinion)
        self._scratch: Scratch | None = None
        self._built = Once(self._build, NoOpinion)
        self._hung = False  # whether a check ended in neither form
        self._turn = threading.Lock()

    def __enter__(self) -> SecondOpinion:
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch:
            self._scratch.remove()

    def about(self, context: ChildContext, error: Exception, fast: Snapshot) -> Opinion:
        """The second opinion on a check that failed in the tree `fast`. If the forms differ in an
        output, `context.outputs` holds both outputs. Threads take turns."""
        if context.backend != "emulated" or not concerns(context.check, error, self._checks):
            return Opinion()
        with self._turn:
            return self._about(context, error, fast)

    def built(self) -> Snapshot:
        """The submission without the fast form, in a tree of its own; the first call builds it.

        Raises:
            NoOpinion: it does not build in this form either, or there is no time.
        """
        return self._built()

    def kernels(self) -> list[str]:
        """How each kernel of the submission runs in the fast form, a line for each."""
        if self._scratch is None:
            return []
        sources = sorted(name for name in self._taken if name.endswith(".cu"))
        view = seeing_shared(self._view, self._scratch.path, self._prebuilt())
        lines: list[str] = []
        for source in sources:
            done = process.run([*_EXPLAIN, source], self._scratch.path,
                               build.build_environment(), _EXPLAINING, view)  # fmt: skip
            lines += done.output.strip().splitlines() if done.rc == 0 else []
        return lines[:_KERNELS]

    def _about(self, context: ChildContext, error: Exception, fast: Snapshot) -> Opinion:
        opinion, started, note = Opinion(), time.monotonic(), ""
        try:
            self._ask(opinion, context, error, fast)
        except NoOpinion as refusal:
            note = str(refusal)
        opinion.facts["seconds"] = round(time.monotonic() - started, 3)
        opinion.facts["note"] = plain(note)[:500]
        return opinion

    def _ask(
        self, opinion: Opinion, context: ChildContext, error: Exception, fast: Snapshot
    ) -> None:
        """Makes the runs that the opinion needs, and fills it in."""
        if context.reaches:
            raise NoOpinion(f"the kernels call {', '.join(context.reaches)}")
        facts = opinion.facts
        awaited = error.call if isinstance(error, Failure) else ""
        hung = isinstance(error, ChildTimeout)
        if hung and self._hung:
            raise NoOpinion("a check before did not end thread by thread either")
        most = min(context.seconds, self._budget.hung) if hung else self._budget.seconds
        plain, found = self._run(context, self.built(), most, awaited=awaited)
        facts["thread_by_thread"] = _ended(plain)
        self._hung |= hung and isinstance(plain, ChildTimeout)
        if plain is not None:
            return
        again, _ = self._run(context, fast, context.seconds)
        facts["fast_again"] = _ended(again)
        if again is None:
            return
        other = {**context.env, "EMULATOR_SHUFFLE": _ORDER}
        shuffled, _ = self._run(context, self.built(), most, env=other)
        facts["another_order"] = _ended(shuffled)
        if isinstance(shuffled, (Failure, ChildDied, StudentError)):
            opinion.hint = (
                "the result depends on the order in which threads run, which is not fixed: "
                "is a barrier missing between a write and another thread's read?"
            )
            return
        opinion.differs = True
        if found and isinstance(error, Failure) and error.output is not None:
            context.outputs = {"fast": error.output, **found}
        opinion.details = [*self.kernels(), *_both(context.outputs)]

    def _run(
        self, context: ChildContext, tree: Snapshot, most: float, **changes: Any
    ) -> tuple[Failure | ChildError | None, dict[str, Array]]:
        """(what the check raises in a fresh copy of a tree within `most` seconds, the output of the
        awaited call)."""
        most = min(most, self._time.seconds())
        with self._time.spending(), tree.copy() as copy:
            changes |= {"tree": copy, "seconds": most}
            again = ChildContext(**{**settings_of(context), **changes})
            return outcome(self._checks[context.check], again), again.outputs

    def _build(self) -> Snapshot:
        self._time.seconds()  # with no time at all, nothing is built either
        self._scratch = Scratch()
        tree, kit, seconds = self._scratch.path, self._prebuilt(), self._budget.build
        error = rebuild(tree, kit, self._taken, self._view, seconds, fast=False)
        if error:
            raise NoOpinion(f"without the fast form it does not build: {error}")
        built = Snapshot(tree, kit)
        if built.fault:
            raise NoOpinion(built.fault)
        return built


def _ended(error: Failure | ChildError | None) -> str:
    return "passed" if error is None else plain(str(error))[:500]


def _both(outputs: Mapping[str, Array]) -> list[str]:
    """Lines with the first elements that differ, and both values of each."""
    if len(outputs) < 2:
        return []
    fast, plain = outputs["fast"], outputs["thread_by_thread"]
    if fast.shape != plain.shape:
        return [f"shapes: fast {fast.shape}, thread by thread {plain.shape}"]
    places = np.argwhere(~((fast == plain) | (np.isnan(fast) & np.isnan(plain))))
    lines = [f"{len(places):,} of {fast.size:,} elements differ between the forms"]
    for place in map(tuple, places[:_VALUES]):
        index = [int(i) for i in place]
        lines.append(f"{index}: fast {fast[place]:.7g}, thread by thread {plain[place]:.7g}")
    return lines
