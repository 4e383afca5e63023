"""Builds a submission in its tree, and decides whose fault a failed build is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from grader.building import sharing
from grader.building import tree as trees
from grader.building.snapshot import Snapshot
from grader.course.rubric import Row
from grader.explain.second_opinion import NoOpinion, SecondOpinion
from grader.grading.ignored_files import with_changed_headers
from grader.grading.verdicts import build_failure, builds_plainly, result_of
from grader.report.model import ERROR, FAIL, PASS, Report, Result
from grader.report.wording import tail
from grader.sandbox import isolation, process
from grader.sandbox.limits import Starved
from grader.sandbox.process import Limits
from grader.sandbox.scratch import scratch_folder
from grader.submission.reader import Submission


class Built(NamedTuple):
    """The end of a build: its result, the built tree, and whether only the emulated GPU's fast form
    failed to compile."""

    result: Result
    tree: Snapshot
    is_disputed: bool = False


@dataclass(frozen=True)
class SubmissionBuild:
    """Builds one submission.

    Attributes:
        submission: what the student handed in.
        pristine: the skeleton that the submission is laid over.
        kit: the built tree of the skeleton.
        device: "auto", "cuda" or "emulated".
        report: takes the seconds of what is done beside the build.
        view: gives what student code sees if it may write to folders.
        second: builds the submission without the emulated GPU's fast form.
        keeps: whether somebody uses the tree afterwards.
    """

    submission: Submission
    pristine: Path
    kit: Path
    device: str
    report: Report
    view: Callable[..., isolation.View]
    second: SecondOpinion
    keeps: bool = False

    def lay_out(self, tree: Path, taken: Mapping[str, bytes]) -> None:
        """Copies the kit's built tree to a folder, and the files in `taken` over it; whole if the
        tree is kept."""
        if self.keeps:
            trees.copy_built(tree, self.kit)
        else:
            sharing.lay_out(tree, self.kit, self.view())
        trees.lay_over(tree, taken)

    def run(self, row: Row, tree: Path) -> Built:
        """Compiles the submission in its tree. A failed build is the student's if the pristine
        files compile here."""
        started = time.monotonic()
        done = self._make(tree, row)
        snapshot = Snapshot(tree, self.pristine)
        built = Built(self._result(row, tree, done), snapshot)
        if done.rc == 0 and built.tree.fault:
            message = f"it compiles, but {built.tree.fault}"
            built = built._replace(
                result=result_of(row, FAIL, message=message, hint=built.tree.hint)
            )
        elif built.result.status == FAIL and trees.backend_of(self.kit) == "emulated":
            built = self._plainly(built)
        built.result.seconds = round(time.monotonic() - started, 3)
        return built

    def _result(self, row: Row, tree: Path, done: process.Completed) -> Result:
        if done.rc == 0:
            return result_of(row, PASS, facts={"backend": trees.backend_of(tree)})
        if done.reason == "starved":
            message = f"the build was kept from the processor twice: {Starved(done.seconds)}"
            return result_of(row, ERROR, message=message, details=tail(done.output))
        failed = build_failure(row, done, self.submission.taken)
        failed = with_changed_headers(failed, self.submission.changed)
        return self._error(row) or failed

    def _plainly(self, failed: Built) -> Built:
        """An error of the kit if the submission compiles without the emulated GPU's fast form. The
        checks then run in that build."""
        try:
            with self.report.timed("second opinions"):
                tree = self.second.built()
        except NoOpinion:
            return failed
        return Built(builds_plainly(failed.result), tree, is_disputed=True)

    def _make(self, tree: Path, row: Row) -> process.Completed:
        command, environment = trees.make_command(self.device), trees.build_environment()
        view = sharing.seeing_shared(self.view(tree / "build"), tree, self.kit)
        for _ in range(2):  # others may keep it from the processor for a while
            done = process.run(command, tree, environment, Limits(wall=row.seconds), view)
            if done.reason != "starved":
                break
        return done

    def _error(self, row: Row) -> Result | None:
        """An error of the grader if the pristine files do not compile here either."""
        pristine = {
            name: path.read_bytes()
            for name in self.submission.taken
            if (path := self.pristine / name).is_file()
        }
        with self.report.timed("building the pristine files"), scratch_folder() as tree:
            self.lay_out(tree, pristine)
            done = self._make(tree, row)
        if done.rc == 0:
            return None
        why = f"{done.reason}{f', {done.rc}' * (done.rc is not None)}"
        message = f"the pristine files do not compile here either ({why})"
        return result_of(row, ERROR, message=message, details=tail(done.output))
