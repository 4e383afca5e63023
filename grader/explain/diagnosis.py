"""Explains why a check of kernels failed: runs it again under a tool that sees every access.

The tool is the emulated GPU's checked build. If that can't compile something that only a real GPU
has, it is compute-sanitizer, which takes far longer. Findings explain and decide nothing: whatever
goes wrong here is noted, and costs no points.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.base.printable import plain
from grader.building import tree as build
from grader.building.sharing import seeing_shared
from grader.checks.harness.child import ChildContext, ChildSession
from grader.checks.harness.compare import Failure
from grader.checks.harness.traits import traits_of
from grader.checks.registry import CHECKS, Check
from grader.course.rubric import FindingsBudget, Rubric
from grader.explain import compute_sanitizer
from grader.explain.findings import Malformed, read_entries, read_file, read_resolved
from grader.explain.rerun import LEAST, Allowance, Once, fresh_copy, outcome, rebuild, settings_of
from grader.sandbox import process
from grader.sandbox.isolation import View
from grader.sandbox.process import Limits
from grader.sandbox.scratch import Scratch, scratch_folder
from grader.student import endless
from grader.student.remote import ChildDied, ChildError, Remote, StudentError

_RESOLVER = Path(__file__).with_name("checked_build.py")
_RESOLVING = Limits(wall=30, cpu=30, memory=2 << 30, file_size=16 << 20)
_FAREWELL = 10.0  # seconds that compute-sanitizer may take to print what it found
_WRITTEN = '{"written": '  # begins a line that is no finding, see emulator_write_findings
_TILE = 32  # most tiles and blocks are multiples of it, or divide it


class NoFindings(Exception):
    """There are no findings; the message says why."""


class Evasive(NoFindings):
    """No findings, and the usual build gives no reason for that: a person must look."""


@dataclass
class Explanation:
    """What was found about one failure.

    Attributes:
        findings: as grader.explain.findings describes them.
        hint: what running it again showed, or "".
        facts: {"tool", "seconds", "note"}; empty if nothing was looked for.
    """

    findings: list[dict[str, Any]] = field(default_factory=list)
    hint: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def concerns_kernels(check: str, error: Exception, checks: Mapping[str, Check] = CHECKS) -> bool:
    """Whether accesses of kernels may explain why a check failed."""
    if not traits_of(checks[check]).explained:
        return False
    if isinstance(error, StudentError):
        return "DeviceError" in error.types
    return isinstance(error, (Failure, ChildDied))


class _Found(Failure):
    """The last call has findings. Those of later calls would only hide them."""


class FindingsFile:
    """The file to which a child's checked build writes its findings.

    Attributes:
        env: variables that the child needs.
        fds: descriptors that the child inherits.
        stopped: whether a finding ended the check, since the last `begin`.
        arrive: whether the file received the child's last write.
    """

    def __init__(self, descriptor: int) -> None:
        """`fd` is an open file without a name, so the child can't replace it; it outlives the
        child."""
        os.fchmod(descriptor, 0o666)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)  # nothing is written over
        self._descriptor, self._start, self.stopped = descriptor, 0, False
        self._number, self.arrive = 0, False
        self.env = {"DLSYS_CHECKED": "1", "EMULATOR_FINDINGS": f"/dev/fd/{descriptor}"}
        self.env |= endless.CHECKED
        self.fds = (descriptor,)

    def begin(self) -> None:
        """Forgets the findings so far."""
        self._start, self.stopped = len(read_file(self._descriptor)), False

    def write(self, remote: Remote) -> None:
        """Makes the child write its findings."""
        self._number += 1
        remote.import_("dlsys._base")._LIB.emulator_write_findings(self._number)
        remote.flush()
        self.arrive = f"{_WRITTEN}{self._number}}}" in self._lines()

    def entries(self) -> tuple[list[dict[str, Any]], int]:
        """The findings, and the number of malformed lines; see `findings.read_entries`."""
        lines = (line for line in self._lines() if not line.startswith(_WRITTEN))
        return read_entries("\n".join(lines))

    def _lines(self) -> list[str]:
        return read_file(self._descriptor)[self._start :].splitlines()

    def stop_at(self, remote: Remote, counts: Callable[[str], bool]) -> None:
        """Raises a Failure if there is a finding whose kind `counts`."""
        self.write(remote)
        if any(counts(entry["kind"]) for entry in self.entries()[0]):
            self.stopped = True
            raise _Found("found")


def _is_no_advice(kind: str) -> bool:
    return not kind.startswith("advice")


@dataclass
class _Checked(ChildContext):
    """Runs a check with the checked build, and stops it at the first call that has findings."""

    findings: FindingsFile | None = None

    @contextlib.contextmanager
    def session(self) -> Iterator[ChildSession]:
        findings = self.findings
        assert findings is not None
        with super().session() as session:
            session.remote.after_fetch = lambda: findings.stop_at(session.remote, _is_no_advice)
            try:
                yield session
            finally:
                with contextlib.suppress(ChildError):
                    findings.write(session.remote)


@dataclass
class Sanitized(ChildContext):
    """Waits for the end of compute-sanitizer, and keeps what each session printed."""

    printed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def session(self) -> Iterator[ChildSession]:
        """A session whose end waits for compute-sanitizer and keeps what it printed."""
        with super().session() as session:
            try:
                yield session
            finally:
                session.remote.dismiss(_FAREWELL)
                self.printed.append(session.remote.output)


class Diagnosis:
    """Explains the failures of one submission. Used in a `with`, which removes what it built."""

    def __init__(
        self,
        taken: Mapping[str, bytes],
        rubric: Rubric,
        prebuilt: Callable[[], Path],
        view: View,
        pristine: Path = build.PRISTINE,
        checks: Mapping[str, Check] = CHECKS,
    ) -> None:
        """Builds nothing yet.

        Args:
            taken: the submission's files.
            prebuilt: gives the tree at `pristine`, built checked.
            view: what student code sees.
            checks: the table of checks.
        """
        self.pristine, self.checks = pristine, checks
        self.taken = taken
        self._budget = budget = rubric.findings
        self._time = Allowance(budget.total, budget.seconds, "explanations", NoFindings)
        self._prebuilt = prebuilt
        self._view = view
        self._scratch: Scratch | None = None
        self._built = Once(lambda: self._build(self._prebuilt()), NoFindings)
        self._turn = threading.Lock()
        self._reading = threading.Lock()  # the sandbox gives a tree to one child at a time
        self._sources: dict[str, bytes] = {}

    def __enter__(self) -> Diagnosis:
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch:
            self._scratch.remove()

    def explain(self, context: ChildContext, error: Exception) -> Explanation:
        """The findings about a failed check. Never raises. Threads take turns."""
        if not concerns_kernels(context.check, error, self.checks):
            return Explanation()
        with self._turn:
            return self._explain(context, error)

    def _explain(self, context: ChildContext, error: Exception) -> Explanation:
        told = Explanation(facts={"tool": "checked build"})
        started, before, note = time.monotonic(), "", ""
        try:
            self._time.seconds()  # with no time at all, nothing is built either
            told.hint = self._compared(context, error)
            try:
                told.findings, note = self._checked(context)
            except (NoFindings, Malformed) as refusal:
                if context.backend != "cuda":
                    raise
                told.facts["tool"], before = "compute-sanitizer", f"{refusal}; "
                told.findings, note = self._sanitized(context)
        except (NoFindings, Malformed) as refusal:
            note = str(refusal)
        except Exception as fault:  # an explanation that fails must not end the grading
            note = f"{type(fault).__name__}: {fault}"
        told.facts["seconds"] = round(time.monotonic() - started, 3)
        told.facts["note"] = plain(before + note)[:500]
        # What was not written is often read because of what stands before it.
        told.findings.sort(key=lambda found: str(found["kind"]).startswith("uninitialised"))
        return told

    def _rerun(self, again: ChildContext) -> Failure | ChildError | None:
        """Runs a check, and returns what it raised."""
        with self._time.spending():
            return outcome(self.checks[again.check], again)

    def _compared(self, context: ChildContext, error: Exception) -> str:
        """A hint from running the check once more with the same inputs, and with whole tiles."""
        repeatable = traits_of(self.checks[context.check]).kernels
        if not isinstance(error, Failure) or not repeatable:
            return ""
        again = self._plainly(context)
        if again is None or (isinstance(again, Failure) and again.result != error.result):
            return (
                "the result differs from run to run on the same inputs: is there a race, or "
                "a read of memory that nobody wrote?"
            )
        whole = self._plainly(context, tile=_TILE) is None
        if whole and self._plainly(context, tile=_TILE, past=1) is not None:
            return (
                f"sizes that are multiples of {_TILE} are right, and one more is wrong: are "
                "the edges guarded, where a tile or a block reaches past the array?"
            )
        return ""

    def _plainly(self, context: ChildContext, **changes: Any) -> Failure | ChildError | None:
        """Runs the check once more in a fresh tree; returns what it raises."""
        with fresh_copy(context.tree) as copy:
            values = {
                **settings_of(context),
                "tree": copy,
                "seconds": self._time.seconds(),
                **changes,
            }
            return self._rerun(ChildContext(**values))

    # The checked build.

    def _checked(self, context: ChildContext) -> tuple[list[dict[str, Any]], str]:
        with fresh_copy(self.checked_tree()) as copy, tempfile.TemporaryFile() as file:
            findings = FindingsFile(file.fileno())
            values = watched(context, copy, self._time.seconds(), findings)
            ended = self._rerun(_Checked(**values, findings=findings))
            entries, broken = findings.entries()
        notes = [str(ended)] if isinstance(ended, ChildError) and not entries else []
        notes += [f"{broken} lines of findings are malformed"] if broken else []
        found, more = self.resolve(entries)
        notes += [f"{more} more findings are left out"] if more else []
        notes += ["nothing was found"] if not found else []
        return found, "; ".join(notes)

    def checked_tree(self) -> Path:
        """The submission in a tree of its own, built checked at the first call.

        Raises:
            Evasive: it does not compile so.
            NoFindings: nothing is to be explained.
        """
        if not self._budget.build:
            raise NoFindings("explanations are switched off")
        return self._built()

    def tree_to_count_in(self) -> Path:
        """The same, also where nothing is to be explained.

        Raises:
            Evasive: it does not compile so.
        """
        return self._built()

    def _build(self, prebuilt: Path) -> Path:
        self._scratch = Scratch()
        tree, seconds = self._scratch.path, self._budget.build or FindingsBudget().build
        error = rebuild(tree, prebuilt, self.taken, self._view, seconds, checked=True)
        if error:
            raise Evasive(f"the checked build failed: {error}")
        return tree

    def resolve(self, entries: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
        """What the checked build found, with lines and words, by a process in the sandbox; and
        how much is left out.

        Raises:
            NoFindings, Malformed: it can't be read.
        """
        if not entries:
            return [], 0
        tree = self.checked_tree()
        with self._reading, scratch_folder() as folder:
            script, path = folder / "resolve.py", folder / "findings.jsonl"
            shutil.copyfile(_RESOLVER, script)
            path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
            library = str(tree / build.CHECKED_LIBRARY)
            argv = [sys.executable, "-I", "-B", str(script), "emulator", str(path), library]
            view = dataclasses.replace(self._view, readable=(script, path))
            view = seeing_shared(view, tree, self._prebuilt())
            done = process.run(argv, tree, limits=_RESOLVING, view=view)
        if done.rc != 0:
            said = done.output.strip().rpartition("\n")[2][:200]
            raise NoFindings(f"the findings can't be read ({done.reason}): {said}")
        return read_resolved(done.output, self.files())

    def files(self) -> dict[str, bytes]:
        """The files of the tree that a finding may quote."""
        if not self._sources:
            files = build.whole_tree(self.pristine)
            self._sources = {str(name): path.read_bytes() for name, path in files.items()}
            self._sources |= self.taken
        return self._sources

    # compute-sanitizer.

    def _sanitized(self, context: ChildContext) -> tuple[list[dict[str, Any]], str]:
        path = compute_sanitizer.find()
        if not path:
            raise NoFindings("compute-sanitizer is not on this machine")
        found, notes = [], []
        end = time.monotonic() + self._time.seconds()
        for tool in compute_sanitizer.TOOLS:
            left = min(self._time.left, end - time.monotonic())
            if left < LEAST:
                notes.append(f"no time was left for {tool}")
                continue
            text = self._under(context, compute_sanitizer.command(path, tool), left)
            if "COMPUTE-SANITIZER" not in text:
                notes.append(f"{tool} did not run")
            some, more = compute_sanitizer.parse(text, tool, str(context.tree), self.files())
            found += some
            notes += [f"{more} more findings of {tool} are left out"] if more else []
        notes += ["nothing was found"] if not found else []
        return found, "; ".join(notes)

    def _under(self, context: ChildContext, command: tuple[str, ...], seconds: float) -> str:
        """Runs a check behind a command; returns all output."""
        with fresh_copy(context.tree) as copy:
            again = Sanitized(**behind(command, context, copy, seconds))
            self._rerun(again)
        # Paths in the copy are told as those of the tree.
        return "\n".join(again.printed).replace(str(copy), str(context.tree))


def watched(
    context: ChildContext,
    tree: Path,
    seconds: float,
    findings: FindingsFile | None = None,
    **env: str,
) -> dict[str, Any]:
    """The settings of a context, for a run under a tool. With `findings` the tree is the checked
    build, which is one of the emulated GPU."""
    values = settings_of(context)
    del values["wrap"]
    rubric = _smaller(context.rubric)
    values |= {"tree": tree, "seconds": seconds, "watched": True, "rubric": rubric}
    if findings is not None:
        known = endless.known(context.env)
        own = build.child_environment("emulated")
        values |= {"env": {**own, **known, **findings.env, **env}}
        values |= {"fds": findings.fds, "backend": "emulated"}
    return values


def behind(
    command: tuple[str, ...], context: ChildContext, tree: Path, seconds: float
) -> dict[str, Any]:
    """The settings of a context, for a run behind a command that only this run's child sees."""
    folders = {Path(command[0]).parent, Path(command[0]).resolve().parent}
    seen = (*context.view.readable, *sorted(folders))
    view = dataclasses.replace(context.view, readable=seen)
    return {**watched(context, tree, seconds), "view": view, "wrap": command}


def _smaller(rubric: Rubric) -> Rubric:
    """The rubric with trainings of two batches, since every access takes long."""
    mnist = {
        name: {**row, "train": 2 * row["batch"], "valid": row["batch"], "epochs": 1}
        if isinstance(row, dict)
        else row
        for name, row in rubric.mnist.items()
    }
    return dataclasses.replace(rubric, mnist=mnist)
