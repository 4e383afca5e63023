"""Explains why a check of kernels failed: runs it once more under a tool that sees every access.

On the emulated GPU the tool is the checked build, on a real one compute-sanitizer. What they find
explains, and decides nothing: whatever goes wrong here is noted, and costs no points.
"""

from __future__ import annotations

import contextlib
import dataclasses
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

from grader import build, compiler, sandbox, sanitizer
from grader.checks import CHECKS, ON_GPU, REPEATABLE, Check, Context, Failure, is_of_kernels
from grader.checks.context import Session
from grader.findings import Malformed, read_entries, read_file, read_resolved
from grader.isolation import View
from grader.remote import ChildDied, ChildError, Remote, StudentError
from grader.rerun import fresh_copy, outcome, settings_of
from grader.rubric import Rubric
from grader.sandbox import Limits
from grader.scratch import Scratch, scratch_folder

_RESOLVER = Path(__file__).with_name("resolve.py")
_RESOLVING = Limits(wall=30, cpu=30, memory=2 << 30, file_size=16 << 20)
_FAREWELL = 10.0  # seconds that compute-sanitizer may take to print what it found
_LEAST = 2.0  # seconds under which no run is begun
_TILE = 32  # most tiles and blocks are multiples of it, or divide it


class NoFindings(Exception):
    """Why no findings can be had."""


@dataclass
class Explanation:
    """What was found about one failure.

    Attributes:
        findings: as grader.findings describes them.
        hint: what running it again showed, or "".
        facts: {"tool", "seconds", "note"}; empty if nothing was looked for.
    """

    findings: list[dict[str, Any]] = field(default_factory=list)
    hint: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def concerns_kernels(check: str, error: Exception, checks: Mapping[str, Check] = CHECKS) -> bool:
    """Whether a failed check can be explained by what kernels access."""
    if check not in ON_GPU and not is_of_kernels(checks[check]):
        return False
    if isinstance(error, StudentError):
        return "DeviceError" in error.types
    return isinstance(error, (Failure, ChildDied))


class _Found(Failure):
    """The call just made has findings; those of later calls would only blur them."""


class Findings:
    """What the checked build writes into a file, while a child lives.

    Attributes:
        env: what the child's environment needs, and fds: the descriptors that it inherits.
        stopped: whether a check was ended at a finding, since the last `begin`.
    """

    def __init__(self, descriptor: int) -> None:
        """The file has no name that the child could replace, and outlives the child."""
        os.fchmod(descriptor, 0o666)
        self._descriptor, self._start, self.stopped = descriptor, 0, False
        self.env = {"DLSYS_CHECKED": "1", "EMULATOR_FINDINGS": f"/dev/fd/{descriptor}"}
        self.fds = (descriptor,)

    def begin(self) -> None:
        """Forgets what was found so far."""
        self._start, self.stopped = len(read_file(self._descriptor)), False

    def write(self, remote: Remote) -> None:
        """Lets the child write what it has found."""
        remote.import_("dlsys._base")._LIB.emulator_write_findings()
        remote.flush()

    def entries(self) -> tuple[list[dict[str, Any]], int]:
        """What was found, and how many lines are malformed; see `grader.findings.read_entries`."""
        return read_entries(read_file(self._descriptor)[self._start :])

    def stop_at(self, remote: Remote, counts: Callable[[str], bool]) -> None:
        """Raises a Failure if there is a finding whose kind `counts`."""
        self.write(remote)
        if any(counts(entry["kind"]) for entry in self.entries()[0]):
            self.stopped = True
            raise _Found("found")


def _is_no_advice(kind: str) -> bool:
    return not kind.startswith("advice")


@dataclass
class _Checked(Context):
    """Runs a check with the checked build, and stops it at the first call that has findings."""

    findings: Findings | None = None

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
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
class _Sanitized(Context):
    """Lets compute-sanitizer end by itself, and keeps what was printed."""

    printed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
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
        """`taken` are the submission's files; `prebuilt` gives the tree at `pristine`, built
        checked; `view` is what student code sees; `checks` is the table of them."""
        self._pristine, self.checks = pristine, checks
        self._taken = taken
        self._budget = rubric.findings
        self._left = rubric.findings.total
        self._prebuilt = prebuilt
        self._view = view
        self._scratch: Scratch | None = None
        self._tree: Path | None = None
        self._refusal = ""
        self._turn, self._building = threading.Lock(), threading.Lock()
        self._reading = threading.Lock()  # the sandbox gives a tree to one child at a time
        self._sources: dict[str, bytes] = {}

    def __enter__(self) -> Diagnosis:
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch:
            self._scratch.remove()

    def explain(self, context: Context, error: Exception) -> Explanation:
        """Findings about the failure of a check. Never raises. Threads take turns."""
        if not concerns_kernels(context.check, error, self.checks):
            return Explanation()
        with self._turn:
            return self._explain(context, error)

    def _explain(self, context: Context, error: Exception) -> Explanation:
        on_gpu = context.backend == "cuda"
        told = Explanation(facts={"tool": "compute-sanitizer" if on_gpu else "checked build"})
        started, note = time.monotonic(), ""
        try:
            self._seconds()  # with no time at all, nothing is built either
            told.hint = self._compared(context, error)
            told.findings, note = (self._sanitized if on_gpu else self._checked)(context)
        except (NoFindings, Malformed) as refusal:
            note = str(refusal)
        except Exception as fault:  # an explanation that fails must not end the grading
            note = f"{type(fault).__name__}: {fault}"
        told.facts["seconds"] = round(time.monotonic() - started, 3)
        told.facts["note"] = sandbox.plain(note)[:500]
        # What was not written is often read because of what stands before it.
        told.findings.sort(key=lambda found: str(found["kind"]).startswith("uninitialised"))
        return told

    def _seconds(self) -> float:
        """The time that the next run may take.

        Raises:
            NoFindings: there is too little left.
        """
        if self._left < _LEAST:
            raise NoFindings(f"the {self._budget.total:g} s for explanations are used up")
        return min(self._left, self._budget.seconds)

    def _rerun(self, again: Context) -> Failure | ChildError | None:
        """Runs a check, and returns what it raised."""
        started = time.monotonic()
        try:
            return outcome(self.checks[again.check], again)
        finally:
            self._left -= time.monotonic() - started

    def _compared(self, context: Context, error: Exception) -> str:
        """A hint from running the check once more with the same inputs, and with whole tiles."""
        repeatable = context.check in REPEATABLE or is_of_kernels(self.checks[context.check])
        if not isinstance(error, Failure) or not repeatable:
            return ""
        again = self._plainly(context)
        if again is None or (isinstance(again, Failure) and again.result != error.result):
            return (
                "with the same inputs the result differs from run to run: is there a race, or is "
                "something read that nobody wrote?"
            )
        whole = self._plainly(context, tile=_TILE) is None
        if whole and self._plainly(context, tile=_TILE, past=1) is not None:
            return (
                f"all sizes that are multiples of {_TILE} are right, and wrong with one more: are "
                "the edges guarded, where a tile or a block reaches past the array?"
            )
        return ""

    def _plainly(self, context: Context, **changes: Any) -> Failure | ChildError | None:
        """What the check raises, run again in a fresh tree."""
        with fresh_copy(context.tree) as copy:
            values = {**settings_of(context), "tree": copy, "seconds": self._seconds(), **changes}
            return self._rerun(Context(**values))

    # The emulated GPU: the checked build.

    def _checked(self, context: Context) -> tuple[list[dict[str, Any]], str]:
        with fresh_copy(self.checked_tree()) as copy, tempfile.TemporaryFile() as file:
            findings = Findings(file.fileno())
            values = watched(context, copy, self._seconds(), findings)
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
            NoFindings: it does not compile so.
        """
        with self._building:
            if self._refusal:
                raise NoFindings(self._refusal)
            if self._tree is None:
                try:
                    self._tree = self._build(self._prebuilt())
                except NoFindings as refusal:
                    self._refusal = str(refusal)
                    raise
            return self._tree

    def _build(self, prebuilt: Path) -> Path:
        self._scratch = Scratch()
        tree = self._scratch.path
        build.copy_built(tree, prebuilt)
        build.lay_over(tree, self._taken)
        limits = Limits(wall=self._budget.build)
        command = build.make_command("emulated", checked=True)
        view = dataclasses.replace(self._view, writable=(tree / "build",))
        done = sandbox.run(command, tree, build.build_environment(), limits, view)
        if done.rc != 0:
            error = compiler.first_error(done.output, self._taken)
            raise NoFindings(f"the checked build failed: {error or done.reason}")
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
            done = sandbox.run(argv, tree, limits=_RESOLVING, view=view)
        if done.rc != 0:
            said = done.output.strip().rpartition("\n")[2][:200]
            raise NoFindings(f"the findings can't be read ({done.reason}): {said}")
        return read_resolved(done.output, self._files())

    def _files(self) -> dict[str, bytes]:
        """The files of the tree, which may be quoted."""
        if not self._sources:
            files = build.tree_files(self._pristine)
            self._sources = {str(name): (self._pristine / name).read_bytes() for name in files}
            self._sources |= self._taken
        return self._sources

    # A real GPU: compute-sanitizer.

    def _sanitized(self, context: Context) -> tuple[list[dict[str, Any]], str]:
        path = sanitizer.find()
        if not path:
            raise NoFindings("compute-sanitizer is not on this machine")
        found, notes = [], []
        end = time.monotonic() + self._seconds()
        for tool in sanitizer.TOOLS:
            left = min(self._left, end - time.monotonic())
            if left < _LEAST:
                notes.append(f"no time was left for {tool}")
                continue
            text = self._under(context, sanitizer.command(path, tool), left)
            if "COMPUTE-SANITIZER" not in text:
                notes.append(f"{tool} did not run")
            some, more = sanitizer.parse(text, tool, str(context.tree), self._files())
            found += some
            notes += [f"{more} more findings of {tool} are left out"] if more else []
        notes += ["nothing was found"] if not found else []
        return found, "; ".join(notes)

    def _under(self, context: Context, command: tuple[str, ...], seconds: float) -> str:
        """Everything that is printed when the check runs behind a command."""
        with fresh_copy(context.tree) as copy:
            values = watched(context, copy, seconds)
            folders = {Path(command[0]).parent, Path(command[0]).resolve().parent}
            seen = (*context.view.readable, *sorted(folders))
            values["view"] = dataclasses.replace(context.view, readable=seen)
            again = _Sanitized(**values, wrap=command)
            self._rerun(again)
        # Paths in the copy are told as those of the tree.
        return "\n".join(again.printed).replace(str(copy), str(context.tree))


def watched(
    context: Context, tree: Path, seconds: float, findings: Findings | None = None, **env: str
) -> dict[str, Any]:
    """The same settings for a run under a tool: in the checked build if it writes `findings`."""
    values = settings_of(context)
    del values["wrap"]
    rubric = _smaller(context.rubric)
    values |= {"tree": tree, "seconds": seconds, "watched": True, "rubric": rubric}
    if findings is not None:
        values |= {"env": {**context.env, **findings.env, **env}, "fds": findings.fds}
    return values


def _smaller(rubric: Rubric) -> Rubric:
    """The rubric with trainings of two batches, since every access takes long."""
    mnist = {
        name: {**row, "train": 2 * row["batch"], "valid": row["batch"], "epochs": 1}
        if isinstance(row, dict)
        else row
        for name, row in rubric.mnist.items()
    }
    return dataclasses.replace(rubric, mnist=mnist)
