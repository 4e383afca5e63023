"""Grades a class: each submission once; writes each result as soon as it is there.

After an interruption, the next run goes on: it skips each student who has a whole report on the
same work by the same rubric. Equal work is graded once, also across runs and classes: a cache keeps
reports by everything that they depend on.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.batch import engine
from grader.batch.cache import ReportCache
from grader.batch.engine import Engine
from grader.batch.former import absent_of, merged, note_on_leavers
from grader.batch.job import GradingJob, Site, grade_work, look_around, skeleton
from grader.classroom.roster import read_roster
from grader.classroom.store import (
    GRADED,
    MISSING,
    Classbook,
    Entry,
    Standing,
    called,
    keep_former,
    nobody,
    read_classbook,
)
from grader.collection.collect import collect
from grader.collection.groups import read_groups, shared
from grader.course.course import Course, kit_course
from grader.course.rubric import Rubric
from grader.grading.prebuilt import GraderError
from grader.grading.runner import Options, grade
from grader.report.model import Report
from grader.report.stored import StoredError
from grader.sandbox import isolation
from grader.submission.contained_reader import Reader, load_contained
from grader.submission.reader import Submission, SubmissionError


class BatchError(UsageError):
    """The batch can't be graded as asked; the message says why."""


@dataclass(frozen=True)
class Batch:
    """What to grade, and how.

    Attributes:
        source: folder or archive with all submissions.
        results: folder for the results, see grader.classroom.store.
        rubric: the rubric.
        roster: a CSV file with who is in the class; None for nobody, or as it was before.
        groups: a CSV file with who hands in together; None for nobody, or as it was before.
        device: "auto", "cuda" or "emulated".
        isolation: "auto" for the strongest level that works, or a level.
        data: folder of MNIST, or None to search.
        only: students to grade, by id, login, e-mail or group; all if empty.
        regrade: whether to grade what is finished, too.
        cache: folder of reports by what they depend on, or None for no cache.
        course: whose submissions they are; the kit's own assignment if None.
    """

    source: Path
    results: Path
    rubric: Rubric
    roster: Path | None = None
    device: str = "auto"
    isolation: str = "auto"
    data: Path | None = None
    only: tuple[str, ...] = ()
    regrade: bool = False
    cache: Path | None = None
    course: Course | None = None
    groups: Path | None = None


@dataclass
class SameWork:
    """The students who handed in the same work. It is graded once.

    Attributes:
        sha256: digest of the files with holes.
        members: each student, with notes on what else that student handed in.
    """

    sha256: str
    members: list[tuple[Entry, list[str]]] = field(default_factory=list)

    @property
    def students(self) -> list[Entry]:
        """Their entries."""
        return [entry for entry, _ in self.members]


@dataclass(frozen=True)
class BatchPlan:
    """What a run has to do.

    Attributes:
        todo: the work to grade.
        finished, missing: the number of students who have a report already, or handed in nothing.
        unreadable: the number of students whose work can't be graded; their reports are written.
        failed: the number of students whose work the grader failed to read.
    """

    todo: list[SameWork]
    finished: int
    missing: int
    unreadable: int
    failed: int

    @property
    def students(self) -> int:
        """How many students wait for grading."""
        return sum(len(group.members) for group in self.todo)


@dataclass(frozen=True)
class Graded:
    """The end of one grading.

    Attributes:
        standings: of the students who handed that work in.
        where: host and process that graded it; "cache" if the cache had it.
    """

    standings: list[Standing]
    where: str


class Running:
    """A batch while it runs. Used in a `with`, which locks the results for other runs.

    Raises:
        BatchError: another run writes to the results, or they were made by another rubric.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._cache = ReportCache(batch.cache, batch.rubric.digest)
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Running:
        with contextlib.ExitStack() as stack:
            stack.enter_context(lock(self.batch.results))
            self._reader = stack.enter_context(Reader())
            self.book = _open_book(self.batch)
            self.book.write()
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def plan(self) -> BatchPlan:
        """Reads every submission, and writes the reports on those that can't be read."""
        groups: dict[str, SameWork] = {}
        finished = missing = unreadable = failed = 0
        for entry in self.wanted():
            if not entry.source:
                missing += 1
            elif self._is_kept(entry):
                finished += 1
            else:
                try:
                    submission = self._load(entry)
                except SubmissionError as error:
                    self._write_unreadable(entry, str(error))
                    unreadable += 1
                except (OSError, MemoryError) as error:  # the machine's fault
                    self._fail([entry], f"{type(error).__name__}: {error}")
                    failed += 1
                else:
                    finished += not self._add(groups, entry, submission)
        return BatchPlan(list(groups.values()), finished, missing, unreadable, failed)

    def _add(self, groups: dict[str, SameWork], entry: Entry, submission: Submission) -> bool:
        """Adds a student to those who handed in the same work; False if there is a final report on
        it. A report on other work is put aside: it says nothing about this work."""
        stored = self._stored(entry)
        is_same = stored is not None and stored.sha256 == submission.sha256
        if is_same and not self.batch.regrade and self._is_final(entry, stored):
            return False
        if stored is not None and not is_same:
            keep_former(self.book.report_path(entry))
            self.book.report_path(entry).unlink()
        group = groups.setdefault(submission.sha256, SameWork(submission.sha256))
        group.members.append((entry, submission.notes))
        return True

    def run(self, plan: BatchPlan, using: Engine) -> Iterator[Graded]:
        """Grades the work of a plan. Writes each result before it yields it.

        Raises:
            BatchError: the submissions can't be graded on these workers.
        """
        if not plan.todo:
            return
        site = self._site(using)
        waiting: dict[str, SameWork] = {}
        for group in plan.todo:
            cached = None if self.batch.regrade else self._cache.read(group.sha256, site)
            if cached is None:
                waiting[group.sha256] = group
            else:
                yield self._finish(group, cached, "cache", site)
        for done in engine.run(using, grade_work, self._works(list(waiting.values()), site)):
            group = waiting.pop(done.task.submission.sha256)
            if done.value is None:
                yield self._fail(group.students, f"{type(done.error).__name__}: {done.error}")
            else:
                yield self._finish(group, *done.value, site)
        for group in waiting.values():
            yield self._fail(group.students, "the submission changed while it was being graded")

    def wanted(self) -> list[Entry]:
        """The students that `only` asks for; all if it is empty.

        Raises:
            BatchError: somebody in `only` is not in the class.
        """
        names, asked = called(self.book.entries), set[str]()
        for name in self.batch.only:
            if name.casefold() not in names:
                raise BatchError(nobody(name, names))
            asked.update(names[name.casefold()])
        return [e for e in self.book.entries if e.student in asked or not self.batch.only]

    def _load(self, entry: Entry) -> Submission:
        source, pristine = Path(entry.source), skeleton(self.batch.course)
        if not source.exists():  # it was there when it was collected
            raise FileNotFoundError(f"{source} is gone")
        return load_contained(source, self.batch.rubric.files, pristine, self._reader)

    def _stored(self, entry: Entry) -> Report | None:
        """A student's stored report; None if there is none, or it is damaged."""
        try:
            return self.book.report(entry)
        except (StoredError, OSError):
            return None

    def _is_final(self, entry: Entry, report: Report | None) -> bool:
        if report is None or self.book.error_path(entry).exists():
            return False
        same = report.rubric == self.batch.rubric.digest
        return same and report.complete and not report.has_errors

    def _is_kept(self, entry: Entry) -> bool:
        """Whether a student has a final result, and the submission is gone."""
        return not Path(entry.source).exists() and self._is_final(entry, self._stored(entry))

    def _write_unreadable(self, entry: Entry, problem: str) -> None:
        """Writes a report that says why the work can't be read. This runs no student code, so it
        needs no worker."""
        stored = self._stored(entry)
        if stored and stored.problem == problem and self._is_final(entry, stored):
            return
        options = Options(
            self.batch.rubric, self.batch.device, course=self.batch.course or kit_course()
        )
        self.book.store(entry, grade(Path(entry.source), options))

    def _site(self, using: Engine) -> Site:
        batch = self.batch
        asked = (batch.device, batch.isolation, str(batch.data or ""), batch.course)
        done = next(engine.run(using, look_around, [asked]))
        if done.value is None:
            if isinstance(done.error, GraderError):
                raise BatchError(str(done.error)) from done.error
            raise BatchError(f"no worker starts: {done.error!r}") from done.error
        return done.value

    def _works(self, groups: list[SameWork], site: Site) -> Iterator[GradingJob]:
        """The work to send, one at a time, so that few submissions are in memory. Leaves out a
        submission that has changed since the plan."""
        hidden = [isolation.outermost(self.batch.results.resolve())]
        hidden.append(isolation.outermost(self.batch.source.resolve()))
        for group in groups:
            try:
                submission = self._load(group.students[0])
            except (SubmissionError, OSError, MemoryError):
                continue
            if submission.sha256 != group.sha256:
                continue
            yield GradingJob(
                submission,
                self.batch.rubric,
                site,
                self.batch.device,
                self.batch.isolation,
                self.batch.data.resolve() if self.batch.data else None,
                tuple(hidden),
                self.batch.course,
            )

    def _finish(self, group: SameWork, report: Report, where: str, site: Site) -> Graded:
        """Writes the report of each member, and the cached one. Notes that the roster caused stay
        out of the cache, since they are about other students too."""
        shared = set(group.members[0][1])
        common = report.notes if where == "cache" else [n for n in report.notes if n not in shared]
        if where != "cache":
            self._cache.write(group.sha256, replace(report, notes=common), site)
        standings = []
        for entry, notes in group.members:
            own = replace(report, submission=entry.source, notes=[*notes, *common])
            self.book.store(entry, own)
            standings.append(self._journal(self.book.standing(entry), where))
        return Graded(standings, where)

    def _fail(self, students: list[Entry], why: str) -> Graded:
        """Records that the grader failed on a submission. This costs the students nothing."""
        standings = []
        for entry in students:
            write_whole(self.book.error_path(entry), why + "\n")
            standings.append(self._journal(self.book.standing(entry), ""))
        return Graded(standings, "")

    def _journal(self, standing: Standing, where: str) -> Standing:
        line = {
            "student": standing.entry.student,
            "state": standing.state,
            "score": standing.score,
            "seconds": standing.seconds,
            "sha256": standing.sha256,
            "where": where,
            "ended": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        }
        with open(self.book.path / "journal.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        return standing


@contextlib.contextmanager
def lock(results: Path) -> Iterator[None]:
    """Locks a folder of results, so that one run at a time writes to it.

    Raises:
        BatchError: another run holds the lock.
    """
    results.mkdir(parents=True, exist_ok=True)
    with open(results / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BatchError(f"another run is writing to {results}") from error
        yield


def _open_book(batch: Batch) -> Classbook:
    """The class as its source has it now. Results of an earlier run stay."""
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    rubric = batch.rubric
    former = read_classbook(batch.results) if (batch.results / "class.json").exists() else None
    if former:
        _check_same(former, batch)
        started = former.started
    roster = read_roster(batch.roster) if batch.roster else former.roster if former else []
    people = roster or (read_roster(batch.groups) if batch.groups else None)
    source, into = batch.source.absolute(), batch.results.absolute() / "collected"
    entries, notes = collect(source, people, into, rubric.files)
    absent = absent_of(former, entries) if former else []
    if former and roster != former.roster:
        notes += note_on_leavers(absent)
        absent = []
    groups = {e.student: e.group for e in former.entries if e.group} if former else {}
    groups = read_groups(batch.groups, [*entries, *absent]) if batch.groups else groups
    entries, told = shared(entries, groups)
    notes += told
    absent = [replace(entry, group=groups.get(entry.student, "")) for entry in absent]
    if former:
        entries, gone = merged(former, entries, absent)
        notes += gone
    return Classbook(
        path=batch.results,
        title=rubric.title,
        profile=rubric.profile,
        rubric=rubric.digest,
        points=rubric.points,
        device=batch.device,
        isolation=batch.isolation,
        source=str(batch.source),
        started=started,
        entries=entries,
        notes=notes,
        roster=roster,
    )


def _check_same(former: Classbook, batch: Batch) -> None:
    """Raises BatchError if the results were made by another rubric or on another device, unless
    `regrade` allows to replace them."""
    if batch.regrade:
        return
    for what, was, now in (
        ("rubric", (former.profile, former.rubric), (batch.rubric.profile, batch.rubric.digest)),
        ("device", former.device, batch.device),
    ):
        if was != now:
            raise BatchError(
                f"{batch.results} holds results by another {what}, {_brief(was)}; hint: say so "
                "again, or name a new folder and compare the two with grader regrade, or --regrade"
            )


def _brief(was: str | tuple[str, str]) -> str:
    """What made the former results, in words: a device, or the name of a profile."""
    return was if isinstance(was, str) else f"profile {was[0]}"


def summary(book: Classbook) -> dict[str, int]:
    """State -> number of students in it."""
    counts: dict[str, int] = dict.fromkeys((GRADED, MISSING), 0)
    for standing in book.standings():
        counts[standing.state] = counts.get(standing.state, 0) + 1
    return counts
