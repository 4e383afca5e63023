"""Grades a class: every submission once, each result written when it is there.

A run that ends early, however it ends, is taken up by the next one: what has a whole report of the
same work by the same rubric is finished. Equal work is graded once, also across runs and classes:
a cache holds reports by everything that they depend on.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from grader import build, engine, gpu, isolation
from grader.classbook import GRADED, MISSING, Classbook, Entry, Standing, read_classbook
from grader.collection import collect
from grader.course import Course, kit_course
from grader.engine import Engine
from grader.files import write_whole
from grader.pristine import GraderError, prebuilt, prepare
from grader.results import Report
from grader.roster import read_roster
from grader.rubric import Rubric
from grader.runner import Options, grade
from grader.stored import StoredError, read_report
from grader.submission import Submission, SubmissionError, load_submission

_REFUSED = (
    "student code would run here without isolation, with the rights of whoever grades; "
    "hint: install bubblewrap (apt-get install bubblewrap), or, if you trust every submission, "
    "--isolation process"
)


class BatchError(Exception):
    """The batch can't be graded as asked; the message says why."""


@dataclass(frozen=True)
class Batch:
    """What to grade, and how.

    Attributes:
        source: folder or archive with all submissions.
        results: folder for the results, see grader.classbook.
        rubric: the rubric.
        roster: a CSV file with who is in the class, or None.
        device: "auto", "cuda" or "emulated".
        isolation: "auto" for the strongest level that works, or a level.
        data: folder of MNIST, or None to search.
        only: students to grade, by id, login or e-mail; all if empty.
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


@dataclass(frozen=True)
class Site:
    """What a worker says of itself before it is given work.

    Attributes:
        backend: "cuda" or "emulated".
        isolation: the level that it would use.
        grader: digest of the grader's own files.
        chain: digest of compilers, interpreter, device and what else a result depends on.
    """

    backend: str
    isolation: str
    grader: str
    chain: str


@dataclass(frozen=True)
class Work:
    """A submission to grade, as it travels to a worker."""

    submission: Submission
    rubric: Rubric
    site: Site
    device: str
    isolation: str
    data: Path | None
    hidden: tuple[Path, ...]
    course: Course | None


@dataclass
class Group:
    """Students who handed in the same; it is graded once.

    Attributes:
        sha256: of the files with holes.
        members: each with the notes on what else was handed in.
    """

    sha256: str
    members: list[tuple[Entry, list[str]]] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """What is to be done, and what is not.

    Attributes:
        todo: what is to be graded.
        finished, missing: how many students have a report already, or handed in nothing.
        unreadable: how many handed in what can't be graded; their reports are written.
    """

    todo: list[Group]
    finished: int
    missing: int
    unreadable: int

    @property
    def students(self) -> int:
        """How many students wait for grading."""
        return sum(len(group.members) for group in self.todo)


@dataclass(frozen=True)
class Graded:
    """How the grading of one group ended.

    Attributes:
        standings: of its members.
        where: host and process that graded it; "cache" if nobody had to.
    """

    standings: list[Standing]
    where: str


# --- on a worker --------------------------------------------------------------------------------


def look_around(work: tuple[str, str, str, Course | None]) -> Site:
    """What this worker is, for (device, isolation, data, course). Builds the skeleton, so that no
    work waits.

    Raises:
        GraderError: the kit does not build here, or nothing isolates student code.
    """
    device, wanted, data, course = work
    level = _level(wanted)
    backend = build.backend_of(prebuilt(device, source=_skeleton(course)))
    prepare(backend, str(course.path) if course else "")
    return Site(backend, level, _grader_digest(course), _chain_digest(backend, level, data))


def grade_work(work: Work) -> tuple[Report, str]:
    """The report on a submission, and which process has made it.

    Raises:
        GraderError: this worker is not as the first one was.
    """
    if _grader_digest(work.course) != work.site.grader:
        raise GraderError(f"{socket.gethostname()} has another version of the grader")
    if _level(work.isolation) != work.site.isolation:
        raise GraderError(f"{socket.gethostname()} isolates by another level")
    options = Options(
        rubric=work.rubric,
        device=work.site.backend,
        data=work.data,
        isolation=work.site.isolation,
        hidden=work.hidden,
        course=work.course or kit_course(),
    )
    return grade(work.submission, options), f"{socket.gethostname()}:{os.getpid()}"


def _level(wanted: str) -> str:
    level = isolation.choose(wanted)
    if level == "process" and wanted != "process":
        raise GraderError(_REFUSED)
    return level


def _skeleton(course: Course | None) -> Path:
    """What submissions are laid over; of the kit's own assignment where this machine has it."""
    return (course or kit_course()).skeleton


def _grader_digest(course: Course | None) -> str:
    """Of the grader's own files and the pristine tree: two machines must agree on them."""
    digest = hashlib.sha256()
    for root in (Path(__file__).parent, _skeleton(course)):
        for path in build.tree_files(root):
            digest.update(str(path).encode() + b"\0" + (root / path).read_bytes())
    return digest.hexdigest()[:16]


def _chain_digest(backend: str, level: str, data: str) -> str:
    """Of what a result depends on besides the submission, the rubric and the grader."""
    known = [backend, level, sys.version, np.__version__, data or os.environ.get("DLSYS_DATA", "")]
    known += [_version_of(os.environ.get("CXX", "g++")), *build.build_environment().values()]
    if backend == "cuda":
        known += [_version_of(os.environ.get("NVCC", "nvcc")), gpu.find().properties.name]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def _version_of(command: str) -> str:
    """What a compiler says of its version; "" where there is none."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        words = [*command.split(), "--version"]
        return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    return ""


# --- in the parent ------------------------------------------------------------------------------


class Running:
    """A batch under way. Used in a `with`: it keeps others from the same results.

    Raises:
        BatchError: another run is at it, or the results are by another rubric.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Running:
        with contextlib.ExitStack() as stack:
            stack.enter_context(lock(self.batch.results))
            self.book = _open_book(self.batch)
            self.book.write()
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def plan(self) -> Plan:
        """Reads every submission; writes the reports on those that can't be read."""
        groups: dict[str, Group] = {}
        finished = missing = unreadable = 0
        for entry in self._wanted():
            if not entry.source:
                missing += 1
                continue
            try:
                submission = self._load(entry)
            except SubmissionError:
                self._write_unreadable(entry)
                unreadable += 1
                continue
            if not self.batch.regrade and self._is_finished(entry, submission.sha256):
                finished += 1
                continue
            group = groups.setdefault(submission.sha256, Group(submission.sha256))
            group.members.append((entry, submission.notes))
        return Plan(list(groups.values()), finished, missing, unreadable)

    def run(self, plan: Plan, using: Engine) -> Iterator[Graded]:
        """Grades what the plan has to do; each result is written before it is told.

        Raises:
            BatchError: the submissions can't be graded on these workers.
        """
        if not plan.todo:
            return
        site = self._site(using)
        waiting = []
        for group in plan.todo:
            cached = self._cached(group, site)
            if cached is None:
                waiting.append(group)
            else:
                yield self._finish(group, cached, "cache", site)
        by_sha = {group.sha256: group for group in waiting}
        for done in engine.run(using, grade_work, self._works(waiting, site)):
            group = by_sha[done.task.submission.sha256]
            if done.value is None:
                yield self._fail(group, f"{type(done.error).__name__}: {done.error}")
            else:
                yield self._finish(group, *done.value, site)

    def _wanted(self) -> list[Entry]:
        names = set(self.batch.only)
        found = [e for e in self.book.entries if not names or names & {e.student, e.login, e.email}]
        known = {name for e in found for name in (e.student, e.login, e.email)}
        unknown = sorted(names - known)
        if unknown:
            raise BatchError(f"nobody in the class is {unknown[0]!r}; hint: --only takes the "
                             "student's id, login or e-mail")  # fmt: skip
        return found

    def _load(self, entry: Entry) -> Submission:
        skeleton = _skeleton(self.batch.course)
        return load_submission(Path(entry.source), self.batch.rubric.files, skeleton)

    def _is_finished(self, entry: Entry, sha256: str) -> bool:
        try:
            report = self.book.report(entry)
        except (StoredError, OSError):
            return False
        if report is None or not report.complete or report.has_errors:
            return False
        return (report.sha256, report.rubric) == (sha256, self.batch.rubric.digest)

    def _write_unreadable(self, entry: Entry) -> None:
        """No student code runs for it, so it needs no worker."""
        options = Options(
            self.batch.rubric, self.batch.device, course=self.batch.course or kit_course()
        )
        report = grade(Path(entry.source), options)
        self._keep_former(entry)
        replace(report, notes=[*entry.notes, *report.notes]).write(self.book.report_path(entry))

    def _site(self, using: Engine) -> Site:
        batch = self.batch
        asked = (batch.device, batch.isolation, str(batch.data or ""), batch.course)
        done = next(engine.run(using, look_around, [asked]))
        if done.value is None:
            if isinstance(done.error, GraderError):
                raise BatchError(str(done.error)) from done.error
            raise BatchError(f"no worker begins: {done.error!r}") from done.error
        return done.value

    def _works(self, groups: list[Group], site: Site) -> Iterator[Work]:
        """One after the other, so that few submissions are in memory."""
        hidden = [isolation.outermost(self.batch.results.resolve())]
        hidden.append(isolation.outermost(self.batch.source.resolve()))
        for group in groups:
            yield Work(
                self._load(group.members[0][0]),
                self.batch.rubric,
                site,
                self.batch.device,
                self.batch.isolation,
                self.batch.data.resolve() if self.batch.data else None,
                tuple(hidden),
                self.batch.course,
            )

    def _finish(self, group: Group, report: Report, where: str, site: Site) -> Graded:
        """Writes the report of each member, and the cache's."""
        shared = set(group.members[0][1])
        common = report.notes if where == "cache" else [n for n in report.notes if n not in shared]
        if where != "cache":
            self._store(group, replace(report, notes=common), site)
        standings = []
        for entry, notes in group.members:
            own = replace(report, submission=entry.source, notes=[*entry.notes, *notes, *common])
            self._keep_former(entry)
            own.write(self.book.report_path(entry))
            with contextlib.suppress(FileNotFoundError):
                (self.book.folder(entry) / "error.txt").unlink()
            standings.append(self._journal(self.book.standing(entry), where))
        return Graded(standings, where)

    def _fail(self, group: Group, why: str) -> Graded:
        """The grader has failed on a submission: that is told, and costs the students nothing."""
        standings = []
        for entry, _ in group.members:
            self._keep_former(entry)
            write_whole(self.book.folder(entry) / "error.txt", why + "\n")
            standings.append(self._journal(self.book.standing(entry), ""))
        return Graded(standings, "")

    def _keep_former(self, entry: Entry) -> None:
        """Puts a whole report that would be overwritten aside, under the time of its run."""
        path = self.book.report_path(entry)
        with contextlib.suppress(StoredError, OSError):
            former = read_report(path)
            stamp = former.started.replace(":", "").replace("+0000", "Z")
            if former.complete:
                shutil.copyfile(path, path.with_name(f"report-before-{stamp}.json"))

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

    def _cache_file(self, group: Group, site: Site) -> Path | None:
        if self.batch.cache is None:
            return None
        known = (group.sha256, self.batch.rubric.digest, site.grader, site.chain)
        return self.batch.cache / f"{hashlib.sha256(repr(known).encode()).hexdigest()}.json"

    def _cached(self, group: Group, site: Site) -> Report | None:
        path = self._cache_file(group, site)
        if path is None or self.batch.regrade:
            return None
        try:
            report = read_report(path)
        except (StoredError, OSError):
            return None
        os.utime(path)
        return report if report.complete and report.sha256 == group.sha256 else None

    def _store(self, group: Group, report: Report, site: Site) -> None:
        path = self._cache_file(group, site)
        if path and not report.has_errors:
            report.write(path)


def cache_folder() -> Path:
    """Where reports are kept for later runs."""
    return build.cache_folder().parent / "graded"


def trim_cache(folder: Path, most: int = 20_000) -> None:
    """Forgets the reports that were used longest ago."""
    with contextlib.suppress(OSError):
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[: max(0, len(files) - most)]:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def lock(results: Path) -> Iterator[None]:
    """One run at a time writes to a folder of results.

    Raises:
        BatchError: another one is at it.
    """
    results.mkdir(parents=True, exist_ok=True)
    with open(results / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BatchError(f"another run is writing to {results}") from error
        yield


def _open_book(batch: Batch) -> Classbook:
    """The class as it stands in the source now; results of an earlier run stay."""
    roster = read_roster(batch.roster) if batch.roster else None
    entries, notes = collect(batch.source, roster, batch.results / "collected", batch.rubric.files)
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    rubric = batch.rubric
    if (batch.results / "class.json").exists():
        former = read_classbook(batch.results)
        _check_same(former, batch)
        started = former.started
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
    )


def _check_same(former: Classbook, batch: Batch) -> None:
    """Nothing is overwritten by another rubric's results, unless that is asked for."""
    if batch.regrade:
        return
    for what, was, now in (
        ("rubric", (former.profile, former.rubric), (batch.rubric.profile, batch.rubric.digest)),
        ("device", former.device, batch.device),
    ):
        if was != now:
            raise BatchError(
                f"{batch.results} holds results by another {what}; hint: name a new folder and "
                "compare the two with grader regrade, or --regrade"
            )


def summary(book: Classbook) -> dict[str, int]:
    """State -> how many students are in it."""
    counts: dict[str, int] = dict.fromkeys((GRADED, MISSING), 0)
    for standing in book.standings():
        counts[standing.state] = counts.get(standing.state, 0) + 1
    return counts
