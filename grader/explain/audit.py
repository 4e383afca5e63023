"""Runs every check of kernels once more in the checked build, before it passes.

Right values do not prove a right kernel: a missing barrier, or an index past the end, may do no
harm here and now, and much on another GPU. The checked build sees every access, so its findings
fail a check although the values are right. For kernels that the emulated GPU can't compile,
compute-sanitizer sees much of it on the real one. The runs use shapes of moderate size, with
nothing behind the arrays, and another order of blocks and threads. They run beside the checks
themselves, and share a child as long as nothing goes wrong in it, so they cost little.

Only findings that mean a wrong program on any GPU count. Advice costs nothing, nor does a barrier
that finished threads do not reach, or two that different warps wait at, which today's GPUs take for
one. Nor does a failed audit, which is noted, unless the usual build gives no reason for it: if only
the checked build does not compile, does not end or writes no findings, a person must look.

Kernels can still recognise the checked build, by a clock or by what a template finds in the
emulated GPU's headers, and be right there alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.base.printable import plain
from grader.building.snapshot import reached
from grader.checks.harness.child import ChildContext, ChildSession
from grader.checks.harness.compare import Failure
from grader.explain import compute_sanitizer
from grader.explain.diagnosis import (
    Diagnosis,
    Evasive,
    FindingsFile,
    NoFindings,
    Sanitized,
    behind,
    watched,
)
from grader.explain.findings import Malformed
from grader.explain.rerun import fresh_copy, outcome
from grader.sandbox.cancel import Cancelled, cancelled_by, go_on
from grader.student.blame import was_killed
from grader.student.endless import endless_kernel
from grader.student.remote import ChildDied, ChildError, ChildTimeout, StudentError

#: Kinds of findings, by their start, that fail a check.
_WRONG = (
    "out-of-bounds", "misaligned access", "race", "uninitialised read global", "use after free",
    "host pointer in kernel", "device pointer on host", "different barriers",
    "lane not in its mask",
)  # fmt: skip
#: Kinds that may turn out to be one of those, once the lines in question are known.
_DOUBTFUL = ("plain read",)
#: Kinds of those that may turn out to be nothing: two barriers that are one call in the source.
_UNSURE = ("different barriers",)
_FAR_LESS = 10  # times


def _is_wrong(kind: str) -> bool:
    return kind.startswith(_WRONG)


def _is_sure(kind: str) -> bool:
    return _is_wrong(kind) and not kind.startswith(_UNSURE)


@dataclass
class Audit:
    """The audit of one check.

    Attributes:
        findings: those that fail the check; see grader.explain.findings.
        failure: what is wrong in another order of the threads, or None.
        disputed: what is wrong in the checked build alone, or why it can't be used; or None.
        facts: {"seconds", "note"}; empty if there was no audit.
    """

    findings: list[dict[str, Any]] = field(default_factory=list)
    failure: Failure | None = None
    disputed: Failure | ChildError | Evasive | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Audited(ChildContext):
    """The context of a check in a child that others share."""

    new_process = False
    audited = True
    child: ChildSession | None = None

    @contextlib.contextmanager
    def session(self) -> Iterator[ChildSession]:
        assert self.child is not None
        yield self.child


class Auditor:
    """Audits the checks of one submission in a thread of its own, which ends with the `with`."""

    def __init__(self, diagnosis: Diagnosis, seconds: float, total: float) -> None:
        """`seconds` limits one check, `total` all of them together."""
        self._diagnosis, self._seconds, self._left = diagnosis, seconds, total
        self._hung = ""  # a check that used up its time, in the checked build alone
        self._waiting: deque[ChildContext] = deque()
        self._begun: set[str] = set()
        self._audits: dict[str, Audit] = {}
        self._changed, self._stop = threading.Condition(), threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Auditor:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def begin(self, contexts: Sequence[ChildContext]) -> None:
        """Starts the audits of the checks of these contexts, in that order."""
        self._waiting.extend(contexts)
        self._begun = {context.check for context in contexts}
        self._thread.start()

    def result(self, check: str) -> Audit:
        """Waits for the audit of a check; an empty one if it was never started."""
        if check not in self._begun:
            return Audit()
        with self._changed:
            while check not in self._audits:
                go_on()
                self._changed.wait(0.1)
            return self._audits[check]

    def _work(self) -> None:
        with contextlib.suppress(Cancelled), cancelled_by(self._stop):
            while self._waiting:
                first = self._waiting[0]
                fault = _fault_of(self._in_one_child)
                unseen = bool(self._waiting) and self._waiting[0] is first
                if unseen and first.backend == "cuda" and not first.reaches:
                    why = _note(fault)
                    fault = _fault_of(lambda: self._under_sanitizer(why))  # noqa: B023 called here
                if self._waiting and self._waiting[0] is first:
                    # A real GPU has what the emulated one can't compile.
                    audit = Audit()
                    if isinstance(fault, Evasive) and first.backend != "cuda":
                        audit.disputed = fault
                    self._tell(self._waiting.popleft(), audit, 0, _note(fault))

    def _tell(self, context: ChildContext, audit: Audit, seconds: float, note: str = "") -> None:
        note = plain(note)[:500]
        audit.facts = {"seconds": round(seconds, 3), "note": note}
        with self._changed:
            self._audits[context.check] = audit
            self._changed.notify_all()

    def _in_one_child(self) -> None:
        """Audits the waiting checks until the child can't be used any more."""
        first = self._waiting[0]
        if first.reaches:
            raise NoFindings(f"the kernels call {', '.join(first.reaches)}")
        self._require_time()
        tree = self._diagnosis.checked_tree()
        reaches, fault, _ = reached(tree, self._diagnosis.pristine)
        if reaches or fault:
            raise Evasive(fault or f"the kernels call {', '.join(reaches)} there alone")
        with fresh_copy(tree) as copy, tempfile.TemporaryFile() as file:
            findings = FindingsFile(file.fileno())
            env = {"EMULATOR_SHUFFLE": str(_number(first))}
            values = watched(first, copy, self._left, findings, **env)
            with ChildContext(**values).session() as session:
                session.remote.after_fetch = lambda: findings.stop_at(session.remote, _is_sure)
                while self._waiting and self._left > 0:
                    settings = watched(self._waiting[0], copy, self._seconds, findings)
                    if not self._one(_Audited(**settings, child=session), findings):
                        return
        self._require_time()

    def _require_time(self) -> None:
        if self._left <= 0 and self._hung:
            raise Evasive(f"{self._hung} did not end, and used up the time for audits")
        if self._left <= 0:
            raise NoFindings("the time for audits is used up")

    def _one(self, again: _Audited, findings: FindingsFile) -> bool:
        """Audits the first waiting check; returns whether the child can be used for the next."""
        started, context = time.monotonic(), self._waiting[0]
        most = min(self._seconds, self._left)
        ended = self._run(again, findings, most)
        audit = Audit(self._wrong(findings))
        if not audit.findings:
            self._judge_end(audit, context, ended, findings, most)
        other = context.backend == "cuda" and ended is not None and not findings.stopped
        note = str(ended) if isinstance(ended, ChildError) or other else ""
        self._left -= time.monotonic() - started
        self._tell(self._waiting.popleft(), audit, time.monotonic() - started, note)
        return ended is None

    def _run(
        self, again: _Audited, findings: FindingsFile, most: float
    ) -> Failure | ChildError | None:
        """Runs a check in the shared child within `most` seconds; returns what it raised."""
        findings.begin()
        assert again.child is not None
        remote = again.child.remote
        try:
            with remote.deadline(most):
                ended = outcome(self._diagnosis.checks[again.check], again)
                if ended is None:
                    findings.write(remote)
                return ended
        except ChildError as error:
            return error

    def _wrong(self, findings: FindingsFile) -> list[dict[str, Any]]:
        """What was found and fails a check."""
        entries = findings.entries()[0]
        if not any(entry["kind"].startswith((*_WRONG, *_DOUBTFUL)) for entry in entries):
            return []
        return [one for one in self._diagnosis.resolve(entries)[0] if _is_wrong(one["kind"])]

    def _judge_end(
        self, audit: Audit, context: ChildContext, ended: Failure | ChildError | None,
        findings: FindingsFile, most: float,
    ) -> None:  # fmt: skip
        """Decides what the end of a check means that passed in the usual build, where nothing that
        was found explains it. On a real GPU, of which this is no build, it means nothing.

        Raises:
            NoFindings: what runs on a real GPU breaks off here.
        """
        if ended is None:
            if not findings.arrive:
                audit.disputed = Evasive("its findings do not arrive in their file")
        elif isinstance(ended, ChildError):
            if context.backend == "cuda":
                raise NoFindings(f"the checked build: {ended}")
            self._judge_break(audit, context, ended, most)
        elif context.backend != "cuda" and not findings.stopped:
            self._blame_order(audit, context, ended)

    def _judge_break(
        self, audit: Audit, context: ChildContext, ended: ChildError, most: float
    ) -> None:
        """What runs in one build and breaks off in the other: somebody must look."""
        if isinstance(ended, ChildTimeout):
            had_its_time = most == self._seconds or self._hung
            if had_its_time and self._is_quick_elsewhere(context):
                audit.disputed, self._hung = ended, context.check
        elif isinstance(ended, (ChildDied, StudentError)):
            is_of_time = was_killed(ended) or endless_kernel(ended)
            audit.disputed = None if is_of_time else ended

    def _is_quick_elsewhere(self, context: ChildContext) -> bool:
        """Whether the usual build passes in a small part of the time."""
        with fresh_copy(context.tree) as copy:
            values = watched(context, copy, self._seconds / _FAR_LESS)
            check = self._diagnosis.checks[context.check]
            return outcome(check, ChildContext(**values)) is None

    def _under_sanitizer(self, why: str) -> None:
        """Audits the waiting checks by compute-sanitizer. `why` says why the emulated GPU can't.
        One child a tool runs all checks; if the tool finds anything or ends it, each check runs in
        its own."""
        path, contexts, started = compute_sanitizer.find(), list(self._waiting), time.monotonic()
        if not path:
            raise NoFindings(f"{why}; compute-sanitizer is not on this machine")
        found: dict[str, list[dict[str, Any]]] = {context.check: [] for context in contexts}
        for tool in ("memcheck", "racecheck", "initcheck"):
            command = compute_sanitizer.command(path, tool)
            if self._by_tool(command, contexts):
                for context in contexts:
                    found[context.check] += self._by_tool(command, [context]) or ()
        note, spent = f"by compute-sanitizer: {why}", time.monotonic() - started
        self._left -= spent
        for context in contexts:
            audit = Audit(found[context.check])
            self._tell(self._waiting.popleft(), audit, spent / len(contexts), note)

    def _by_tool(
        self, command: tuple[str, ...], contexts: Sequence[ChildContext]
    ) -> list[dict[str, Any]] | None:
        """The tool's findings in the submission's own kernels; None if no finding is an error and
        every check passed."""
        first, ended = contexts[0], None
        with fresh_copy(first.tree) as copy:
            shared = Sanitized(**behind(command, first, copy, self._left))
            with contextlib.suppress(ChildError), shared.session() as session:
                for context in contexts:
                    again = _Audited(**watched(context, copy, self._seconds), child=session)
                    ended = ended or outcome(self._diagnosis.checks[context.check], again)
            text = "\n".join(shared.printed).replace(str(copy), str(first.tree))
        every = compute_sanitizer.parse(text, command[2], str(first.tree), self._diagnosis.files())[
            0
        ]
        own = [one for one in every if one["file"] in self._diagnosis.taken]
        wrong = [one for one in own if one["kind"] != "barrier"]
        return wrong if wrong or ended is not None else None

    def _blame_order(self, audit: Audit, context: ChildContext, failure: Failure) -> None:
        """Decides whether the order of threads causes a failure that no finding explains: then the
        usual build fails in that order, too."""
        with fresh_copy(context.tree) as copy:
            values = watched(context, copy, self._seconds)
            values["env"] = {**context.env, "EMULATOR_SHUFFLE": str(_number(context))}
            ordered = outcome(self._diagnosis.checks[context.check], ChildContext(**values))
        if isinstance(ordered, Failure):
            audit.failure = ordered
        else:
            audit.disputed = failure


def _fault_of(audit: Callable[[], None]) -> Exception | None:
    """Runs an audit; returns what broke it off. A failed audit must not end the grading."""
    try:
        audit()
    except Exception as fault:
        return fault
    return None


def _note(fault: Exception | None) -> str:
    if fault is None or isinstance(fault, (NoFindings, Malformed)):
        return str(fault or "")
    return f"{type(fault).__name__}: {fault}"


def _number(context: ChildContext) -> int:
    """A random number that names an order of threads, so that nobody knows it before."""
    digest = hashlib.sha256(f"{context.seed}/order".encode()).digest()
    return 1 + int.from_bytes(digest[:3], "big")
