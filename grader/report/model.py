"""What grading found: the result of each check, and the report of a submission."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from grader import __version__
from grader.base.files import write_whole
from grader.course.rubric import ALWAYS
from grader.report.wording import missing_task

#: Version of the report's JSON; a change that breaks readers makes it larger.
SCHEMA = "dlsys-grader-report/1"

PASS, FAIL, SKIPPED, ERROR = "pass", "fail", "skipped", "error"
#: How a failure is shown whose task nobody has written yet.
NOT_BEGUN = "unbegun"

#: In `facts`: what a check raised that broke off on a submission's answer.
BROKE_OFF = "broke_off"

_TIMING = threading.Lock()  # held where some `timing` is changed or copied


@dataclass
class Result:
    """The result of one check.

    Attributes:
        check, task, points (what passing is worth), score: as in the rubric.
        status: "pass", "fail" (the student's), "skipped" (an earlier check is needed) or
            "error" (the grader's or the machine's).
        sentence: what is checked.
        message: what is wrong, one sentence.
        details: further lines: traceback, output, compiler error.
        hint: what to look for.
        seconds: wall time.
        facts: what was measured.
        visibility: when a student may see it, as in the rubric.
        findings: what a tool saw the kernels do wrong, see grader.explain.findings.
    """

    check: str
    task: str
    points: float
    score: float
    status: str
    sentence: str
    message: str = ""
    details: list[str] = field(default_factory=list)
    hint: str = ""
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    visibility: str = ALWAYS
    findings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def missing_task(self) -> str:
        """The task that it failed for since it is not written yet; "" if it did otherwise."""
        return missing_task(self.message) if self.status == FAIL else ""

    @property
    def state(self) -> str:
        """Its status; what came upon a hole did not fail: it is NOT_BEGUN, or SKIPPED where it
        waits for another task."""
        if self.missing_task:
            return NOT_BEGUN if self.missing_task == self.task else SKIPPED
        return self.status


@dataclass
class Report:
    """Everything that grading one submission found. See report.schema.json for the JSON.

    Attributes:
        parts, tasks: number of a part, id of a task -> its name.
        audience: "instructor", or "student" where hidden checks were taken out.
        withheld: visibility -> how many checks were taken out for it.
        withheld_points: what those are worth.
        rubric: digest of the rubric in force.
        timing: seconds by what the grader did beside building and checking.
        grader_version: of the grader that graded, also when a later one reads the report.
        by_hand: what people gave besides, each with on, points, comment, by; see
            grader.classroom.adjustments. Stored reports have none.
    """

    submission: str
    sha256: str
    profile: str
    title: str
    device: str
    isolation: str
    seed: str
    started: str
    notes: list[str]
    problem: str = ""
    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0
    complete: bool = False
    parts: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    audience: str = "instructor"
    withheld: dict[str, int] = field(default_factory=dict)
    withheld_points: float = 0.0
    rubric: str = ""
    timing: dict[str, float] = field(default_factory=dict)
    grader_version: str = __version__
    by_hand: list[dict[str, Any]] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Points reached, with those by hand."""
        given: float = sum(each["points"] for each in self.by_hand)
        return sum(result.score for result in self.results) + given

    @property
    def points(self) -> float:
        """Points that could be reached."""
        return sum(result.points for result in self.results)

    @property
    def has_errors(self) -> bool:
        """Whether the grader itself failed somewhere."""
        return any(result.status == ERROR for result in self.results)

    @contextlib.contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Adds the time of a `with` to `timing`. Threads may do so at the same time."""
        started = time.monotonic()
        try:
            yield
        finally:
            with _TIMING:
                seconds = self.timing.get(what, 0.0) + time.monotonic() - started
                self.timing[what] = round(seconds, 3)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON types: the attributes, with schema, score and points."""
        with _TIMING:
            values = asdict(self)
        return {"schema": SCHEMA, **values, "score": self.score, "points": self.points}

    def write(self, path: Path) -> None:
        """Writes the JSON so that the file is always whole."""
        write_whole(path, json.dumps(self.to_dict(), indent=1) + "\n")
