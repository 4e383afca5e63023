"""The results of a class on disk: who is in it, how each was graded, and where the reports lie.

    RESULTS/class.json                  who is in it and how it was graded; written when it begins
    RESULTS/journal.jsonl               a line for each grading that ended, in that order
    RESULTS/adjustments.csv             points and comments by hand; see adjustments.py
    RESULTS/students/FOLDER/
        report.json                     the student's report; see grader/report/model.py
        error.txt                       why the grader failed on the present submission
        report-before-TIME.json         an earlier report, by the time when its grading began

Files are whole at any moment. What follows (class page, gradebook, regrading) reads this alone.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from grader import __version__
from grader.base.files import write_whole
from grader.base.typed import typed
from grader.classroom.roster import Person
from grader.report.model import FAIL, Report
from grader.report.stored import StoredError, read_report
from grader.report.wording import missing_task

#: Version of class.json; a change that breaks readers makes it larger.
SCHEMA = "dlsys-grader-class/1"

#: How a student stands: has a report; handed in what can't be graded; handed in nothing; waits
#: for grading; the grader failed, in whole or in one of the checks.
STATES = GRADED, UNREADABLE, MISSING, PENDING, ERROR = (
    "graded",
    "unreadable",
    "missing",
    "pending",
    "error",
)
#: After what the students' pages do not show yet.
PAGES_HINT = (
    "hint: the students' pages do not show this yet; write them again with grader class {} "
    "--students"
)


@dataclass(frozen=True)
class Entry:
    """One student of the class.

    Attributes:
        student: the id that names the student in all files; unique.
        folder: of the student's files below students/; unique, safe as a file name.
        name, email, login, section: as the roster has them, or the download's names.
        source: path of what was handed in; "" if nothing was.
        submitted: when, ISO 8601 with offset; "" where the download does not tell.
        late: whether the download says that it came late; None where it does not tell.
        attempt: number of the attempt that is graded, from 1; 0 where it is not told.
        notes: what was odd about what was handed in, in sentences.
        group: who hands in together with the student; "" for nobody.
        given_by: whose work of the group is graded; "" for the student's own.
    """

    student: str
    folder: str
    name: str = ""
    email: str = ""
    login: str = ""
    section: str = ""
    source: str = ""
    submitted: str = ""
    late: bool | None = None
    attempt: int = 0
    notes: list[str] = field(default_factory=list)
    group: str = ""
    given_by: str = ""


@dataclass(frozen=True)
class CheckOutcome:
    """How one check of one student ended, see grader.report.model.Result.

    Attributes:
        finding: title of the first finding about it, see grader.explain.findings.
        ratio: of a check of speed, in proportion to the reference's; else 0.
    """

    status: str
    score: float
    seconds: float
    message: str = ""
    finding: str = ""
    ratio: float = 0.0

    @property
    def is_unbegun(self) -> bool:
        """Whether it failed only because a task is not written yet."""
        return self.status == FAIL and bool(missing_task(self.message))


@dataclass(frozen=True)
class Standing:
    """What became of a student, in short. `points` is what could be reached, 0 without a report.

    Attributes:
        state: one of STATES.
        problem: why there is no score, or what failed of the grader's own.
        outcomes: check -> how it ended.
    """

    entry: Entry
    state: str
    score: float = 0.0
    points: float = 0.0
    problem: str = ""
    seconds: float = 0.0
    sha256: str = ""
    seed: str = ""
    outcomes: dict[str, CheckOutcome] = field(default_factory=dict)


@dataclass
class Classbook:
    """The results of a class. `path` is their folder; see the module for what lies there.

    Attributes:
        rubric: its digest; points: what can be reached.
        source: folder or archive that the submissions came in.
        isolation, device: as they were asked for.
        started: when the first run began, ISO 8601 with offset.
        notes: what was odd about the submissions together, in sentences.
        roster: who is in the class, for runs to which nobody says it again; empty where nobody has.
    """

    path: Path
    title: str
    profile: str
    rubric: str
    points: float
    device: str
    isolation: str
    source: str
    started: str
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)
    grader_version: str = __version__
    roster: list[Person] = field(default_factory=list)

    def write(self) -> None:
        """Writes class.json, and makes the folders."""
        values = {**asdict(self), "schema": SCHEMA}
        del values["path"]
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / "class.json", json.dumps(values, indent=1) + "\n")

    @property
    def has_pages(self) -> bool:
        """Whether students' pages were written beside their reports."""
        return any(self.path.glob("students/*/report.html"))

    def folder(self, entry: Entry) -> Path:
        """Where a student's files lie."""
        return self.path / "students" / entry.folder

    def report_path(self, entry: Entry) -> Path:
        """Where a student's report lies, or would lie."""
        return self.folder(entry) / "report.json"

    def error_path(self, entry: Entry) -> Path:
        """The file that says why the grader failed on a student's present submission."""
        return self.folder(entry) / "error.txt"

    def store(self, entry: Entry, report: Report) -> None:
        """Writes a student's report; one that lies there is kept beside it.

        Raises:
            OSError: nothing has been replaced.
        """
        keep_former(self.report_path(entry))
        report.write(self.report_path(entry))
        self.error_path(entry).unlink(missing_ok=True)

    def report(self, entry: Entry) -> Report | None:
        """A student's report, whole or interrupted; None if there is none.

        Raises:
            StoredError: the file is damaged.
        """
        path = self.report_path(entry)
        return read_report(path) if path.is_file() else None

    def standing(self, entry: Entry) -> Standing:
        """What became of a student. A damaged file is the grader's own failure."""
        if not entry.source:
            return Standing(entry, MISSING)
        failure = self.error_path(entry)
        if failure.is_file():  # a report that lies there is of an earlier submission
            return Standing(entry, ERROR, problem=failure.read_text(errors="replace").strip())
        try:
            report = self.report(entry)
        except (StoredError, OSError) as error:
            return Standing(entry, ERROR, problem=str(error))
        if report is None or not report.complete:
            return Standing(entry, PENDING)
        return _standing(entry, report)

    def standings(self) -> Iterator[Standing]:
        """All of them, in the order of the entries; one report at a time is in memory."""
        return (self.standing(entry) for entry in self.entries)


def read_classbook(path: Path) -> Classbook:
    """The results in a folder.

    Raises:
        StoredError: there are none; class.json is no JSON or of another schema; a field is wrong.
    """
    file = path / "class.json"
    if not file.is_file():
        raise StoredError(f"{path} holds no results of a class (class.json); hint: grader batch")
    try:
        raw = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise StoredError(f"{file} is not JSON: {error}") from error
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        raise StoredError(f"{file} has schema {schema!r}; this version reads {SCHEMA}")
    try:
        return typed({**raw, "path": path}, Classbook)
    except ValueError as error:
        raise StoredError(f"{file}: {error}") from error


def called(entries: Collection[Entry]) -> dict[str, tuple[str, ...]]:
    """Name, in lower case -> ids of the students that a table may mean by it: an id; a login or an
    e-mail address that one student has; a group, for its members."""
    found: dict[str, tuple[str, ...]] = {}
    for kind in ("group", "email", "login", "student"):
        same: dict[str, tuple[str, ...]] = {}
        for entry in entries:
            name = getattr(entry, kind).casefold()
            same[name] = (*same.get(name, ()), entry.student)
        found |= {name: who for name, who in same.items() if kind == "group" or len(who) == 1}
    found.pop("", None)
    return found


def nobody(name: str, names: Iterable[str]) -> str:
    """A sentence for a name that is not among `names`, as `called` gives them."""
    near = difflib.get_close_matches(name.casefold(), list(names), 1)
    hint = f"the nearest name is {near[0]!r}" if near else "an id, a login or an e-mail address"
    return f"nobody in the class is {name!r}; hint: {hint}"


def keep_former(path: Path) -> None:
    """Copies a whole report, or what can't be read as one, to a name of its own beside it; what
    is there already stays. Does nothing without a report, or with an interrupted one.

    Raises:
        OSError: it can't be copied.
    """
    if not path.is_file():
        return
    try:
        former = read_report(path)
    except StoredError:
        started = "unknown"
    else:
        if not former.complete:
            return
        started = former.started
    short = started.replace(":", "").replace("+0000", "Z")
    stamp = re.sub(r"[^0-9A-Za-z+-]", "", short)[:40] or "unknown"
    content, number, name = path.read_bytes(), 1, f"report-before-{stamp}.json"
    while (path.parent / name).exists():
        if (path.parent / name).read_bytes() == content:
            return
        number += 1
        name = f"report-before-{stamp}-{number}.json"
    write_whole(path.parent / name, content)


def folder_name(text: str, taken: Collection[str] = ()) -> str:
    """A file name made of any text: letters of any script, digits, `-`, `_` and `.` stay.

    Names that differ in capitals alone are told apart too, since some file systems don't.
    """
    plain = unicodedata.normalize("NFC", text)
    safe = re.sub(r"[^\w.-]+", "-", plain).strip("-.")[:60] or "student"
    lowered = {name.casefold() for name in taken}
    name, number = safe, 1
    while name.casefold() in lowered:
        number += 1
        name = f"{safe}-{number}"
    return name


def _standing(entry: Entry, report: Report) -> Standing:
    outcomes = {
        result.check: CheckOutcome(
            result.status,
            result.score,
            result.seconds,
            result.message,
            finding=_first_finding(result.findings) if result.status == FAIL else "",
            ratio=_ratio(result.facts),
        )
        for result in report.results
    }
    failed = [f"{r.check}: {r.message}" for r in report.results if r.status == "error"]
    state = ERROR if failed else UNREADABLE if report.problem else GRADED
    return Standing(
        entry,
        state,
        score=report.score,
        points=report.points,
        problem="; ".join(failed) or report.problem,
        seconds=report.seconds,
        sha256=report.sha256,
        seed=report.seed,
        outcomes=outcomes,
    )


def _first_finding(findings: list[dict[str, Any]]) -> str:
    return str(findings[0].get("title", "")) if findings else ""


def _ratio(facts: dict[str, Any]) -> float:
    """The speed in proportion to the reference's, of a check that measures it; else 0."""
    speed = facts.get("speed")
    ratio = speed.get("ratio", 0.0) if isinstance(speed, dict) else 0.0
    ratio = ratio.get("median", 0.0) if isinstance(ratio, dict) else ratio  # of many rounds
    return float(ratio) if isinstance(ratio, (int, float)) else 0.0
