"""Looks at every check of kernels once more in the checked build, before it passes.

Right values are no proof of a right kernel: a missing barrier, or an index past the end, may do no
harm here and now, and much on another GPU. The checked build sees every access, so what it finds
fails a check although its values are right. The runs are on shapes of moderate size, with nothing
behind the arrays, and in another order of blocks and threads. They take place beside the checks
themselves, and share a child for as long as nothing goes wrong in it, so that they cost little.

Only those findings count that mean a wrong program on any GPU. What else there is, as advice, or a
barrier that finished threads pass by, costs nothing. What can't be had, as of a submission that
the checked build does not compile, is noted, and costs nothing either.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader import sandbox
from grader.cancel import Cancelled, cancelled_by, go_on
from grader.checks import Context, Failure
from grader.checks.context import Session
from grader.diagnosis import Diagnosis, Findings, NoFindings, watched
from grader.findings import Malformed
from grader.kills import was_killed
from grader.remote import ChildDied, ChildError, StudentError
from grader.rerun import fresh_copy, outcome

#: Kinds of findings, by their start, that fail a check.
_WRONG = (
    "out-of-bounds", "misaligned access", "race", "uninitialised read global", "use after free",
    "host pointer in kernel", "device pointer on host",
)  # fmt: skip
#: Kinds that may turn out to be one of those, once the lines in question are known.
_UNSETTLED = ("plain read",)


def _is_wrong(kind: str) -> bool:
    return kind.startswith(_WRONG)


@dataclass
class Audit:
    """What was seen of one check.

    Attributes:
        findings: those that fail it; as grader.findings describes them.
        failure: what is wrong in another order of the threads, or None.
        unsettled: what is wrong in the checked build alone, or None.
        facts: {"seconds", "note"}; empty if nothing was looked at.
    """

    findings: list[dict[str, Any]] = field(default_factory=list)
    failure: Failure | None = None
    unsettled: Failure | ChildError | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Audited(Context):
    """A check in a child that others share."""

    child: Session | None = None

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        assert self.child is not None
        yield self.child


class Auditor:
    """Audits the checks of one submission, in a thread of its own. Used in a `with`, at whose end
    that ends."""

    def __init__(self, diagnosis: Diagnosis, seconds: float, total: float) -> None:
        """`seconds` may be spent on a check, `total` on all."""
        self._diagnosis, self._seconds, self._left = diagnosis, seconds, total
        self._waiting: deque[Context] = deque()
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

    def begin(self, contexts: Sequence[Context]) -> None:
        """Begins with the checks of these contexts, in that order."""
        self._waiting.extend(contexts)
        self._begun = {context.check for context in contexts}
        self._thread.start()

    def result(self, check: str) -> Audit:
        """Waits for the audit of a check; an empty one if it was never begun."""
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
                first, note = self._waiting[0], ""
                try:
                    self._in_one_child()
                except (NoFindings, Malformed) as refusal:
                    note = str(refusal)
                except Exception as fault:  # an audit that fails must not end the grading
                    note = f"{type(fault).__name__}: {fault}"
                if self._waiting and self._waiting[0] is first:
                    self._tell(self._waiting.popleft(), Audit(), 0, note)

    def _tell(self, context: Context, audit: Audit, seconds: float, note: str = "") -> None:
        note = sandbox.plain(note)[:500]
        audit.facts = {"seconds": round(seconds, 3), "note": note}
        with self._changed:
            self._audits[context.check] = audit
            self._changed.notify_all()

    def _in_one_child(self) -> None:
        """Audits what waits, until the child can't be used any more."""
        first = self._waiting[0]
        if first.reaches:
            raise NoFindings(f"the kernels call {', '.join(first.reaches)}")
        tree = self._diagnosis.checked_tree()
        with fresh_copy(tree) as copy, tempfile.TemporaryFile() as file:
            findings = Findings(file.fileno())
            env = {"EMULATOR_SHUFFLE": str(_number(first))}
            values = watched(first, copy, self._left, findings, **env)
            with Context(**values).session() as session:
                session.remote.after_fetch = lambda: findings.stop_at(session.remote, _is_wrong)
                while self._waiting and self._left > 0:
                    settings = watched(self._waiting[0], copy, self._seconds, findings)
                    if not self._one(_Audited(**settings, child=session), findings):
                        return
        if self._waiting:
            raise NoFindings("the time for audits is used up")

    def _one(self, again: _Audited, findings: Findings) -> bool:
        """Audits what waits first; whether the child can be used for the next."""
        started, context = time.monotonic(), self._waiting[0]
        findings.begin()
        assert again.child is not None
        remote, audit, note = again.child.remote, Audit(), ""
        try:
            with remote.deadline(min(self._seconds, self._left)):
                ended = outcome(self._diagnosis.checks[again.check], again)
                if ended is None:
                    findings.write(remote)
        except ChildError as error:
            ended = error
        entries = findings.entries()[0]
        if any(entry["kind"].startswith((*_WRONG, *_UNSETTLED)) for entry in entries):
            found, _ = self._diagnosis.resolve(entries)
            audit.findings = [one for one in found if _is_wrong(one["kind"])]
        if isinstance(ended, (ChildDied, StudentError)) and not audit.findings:
            # What runs in one build and breaks off in the other: somebody must look.
            audit.unsettled = None if was_killed(ended) else ended
        if isinstance(ended, ChildError):
            note = str(ended)
        elif ended is not None and not audit.findings and not findings.stopped:
            self._settle(audit, context, ended)
        self._left -= time.monotonic() - started
        self._tell(self._waiting.popleft(), audit, time.monotonic() - started, note)
        return ended is None

    def _settle(self, audit: Audit, context: Context, failure: Failure) -> None:
        """Whether the order of threads is to blame for a failure that no finding explains: then
        the usual build, too, fails in that order."""
        with fresh_copy(context.tree) as copy:
            values = watched(context, copy, self._seconds)
            values["env"] = {**context.env, "EMULATOR_SHUFFLE": str(_number(context))}
            ordered = outcome(self._diagnosis.checks[context.check], Context(**values))
        if isinstance(ordered, Failure):
            audit.failure = ordered
        else:
            audit.unsettled = failure


def _number(context: Context) -> int:
    """Names the order of threads, which nobody knows before."""
    digest = hashlib.sha256(f"{context.seed}/order".encode()).digest()
    return 1 + int.from_bytes(digest[:3], "big")
