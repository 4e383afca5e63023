"""What grading found: the result of each check, and the report of a submission."""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypedDict

from msgspec import Meta

from grader import __version__
from grader.base.files import write_whole
from grader.base.typed import FINITE, Amount
from grader.course.rubric import ALWAYS, Visible
from grader.report.wording import missing_task

#: Version of the report's JSON; a change that breaks readers makes it larger.
SCHEMA = "dlsys-grader-report/1"

Status = Literal["pass", "fail", "skipped", "error"]
PASS: Final = "pass"
FAIL: Final = "fail"
SKIPPED: Final = "skipped"
ERROR: Final = "error"
#: How a failure is shown whose task nobody has written yet.
NOT_BEGUN = "unbegun"

#: Begins a note for instructors alone: no student needs to know.
FOR_INSTRUCTORS = "for instructors: "

#: In `facts`: what a check raised that broke off on a submission's answer.
BROKE_OFF = "broke_off"

_TASK = r"[0-9]+\.[0-9]+"
_FACTS = {
    "mismatch": {"$ref": "#/$defs/Mismatch"},
    "backend": {
        "enum": ["cuda", "emulated"],
        "description": "What the submission was built for.",
    },
}
_TIMING = threading.Lock()  # held where some `timing` is changed or copied


Audience = Literal["instructor", "student"]


@dataclass
class Result:
    """One check."""

    check: Annotated[str, Meta(description="Its name.", extra_json_schema={"minLength": 1})]
    task: Annotated[
        str,
        Meta(
            description="The task that it grades; empty for what students are given.",
            extra_json_schema={"pattern": f"^({_TASK})?$"},
        ),
    ]
    points: Annotated[float, Meta(description="What passing is worth.", ge=0, le=FINITE)]
    score: Annotated[
        float, Meta(description="What was reached: all of `points`, or 0.", ge=0, le=FINITE)
    ]
    status: Annotated[
        Status,
        Meta(
            description="fail is the student's, error the grader's or the machine's; skipped "
            "needs an earlier check."
        ),
    ]
    sentence: Annotated[str, Meta(description="What is checked.")]
    message: Annotated[str, Meta(description="What is wrong, one sentence; empty for a pass.")] = ""
    details: Annotated[
        list[str], Meta(description="Further lines: traceback, output, compiler error.")
    ] = field(default_factory=list)
    hint: Annotated[str, Meta(description="What to look for, if the pattern is known.")] = ""
    seconds: Annotated[float, Meta(description="Wall time of the check.", ge=0, le=FINITE)] = 0.0
    facts: Annotated[
        dict[str, Any],
        Meta(
            description="What was measured, by the check; what stands here without a "
            "description may change.",
            extra_json_schema={"properties": _FACTS},
        ),
    ] = field(default_factory=dict)
    visibility: Annotated[Visible, Meta(description="When a student may see it.")] = ALWAYS
    findings: Annotated[
        list[dict[str, Any]], Meta(description="What a checking tool found in a failed check.")
    ] = field(default_factory=list)

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


class _Given(TypedDict):
    on: Annotated[str, Meta(description="A check, `part 2`, or empty for the whole.")]
    points: Annotated[float, Meta(description="Points added.", ge=-FINITE, le=FINITE)]
    comment: Annotated[str, Meta(description="Why.")]
    by: Annotated[str, Meta(description="Who gave them.")]


class ByHand(_Given, total=False):
    """What somebody gave, see grader.classroom.adjustments."""

    asked: Annotated[float, Meta(description="As they were given, where no more fit.")]


@dataclass
class Report:
    """Everything that grading one submission found."""

    submission: Annotated[
        str, Meta(description="Path of what was graded; for a student the last part of it.")
    ]
    sha256: Annotated[
        str,
        Meta(
            description="Of the files that were taken, hex; empty if the submission can't be read.",
            extra_json_schema={"pattern": "^([0-9a-f]{64})?$"},
        ),
    ]
    profile: Annotated[str, Meta(description="Name of the rubric.")]
    title: Annotated[str, Meta(description="The rubric's title.")]
    device: Annotated[
        str,
        Meta(
            description="What the checks ran on; auto if none did.",
            extra_json_schema={"enum": ["auto", "cuda", "emulated"]},
        ),
    ]
    isolation: Annotated[str, Meta(description="How student code was kept apart.")]
    seed: Annotated[
        str,
        Meta(
            description="The run's secret, hex, from which every input can be made again; "
            "empty for a student."
        ),
    ]
    started: Annotated[
        str,
        Meta(
            description="When the grading began, ISO 8601 with offset.",
            extra_json_schema={"format": "date-time"},
        ),
    ]
    notes: Annotated[
        list[str],
        Meta(description="Sentences on the submission: what was ignored, what is missing."),
    ]
    problem: Annotated[
        str, Meta(description="Why the submission can't be read; empty if it can.")
    ] = ""
    results: Annotated[
        list[Result], Meta(description="One entry a check, in the order of the rubric.")
    ] = field(default_factory=list)
    seconds: Annotated[
        float, Meta(description="Wall time of the whole grading.", ge=0, le=FINITE)
    ] = 0.0
    complete: Annotated[bool, Meta(description="Whether every check has its result.")] = False
    parts: Annotated[
        dict[str, str],
        Meta(
            description="Number of a part -> its name.",
            extra_json_schema={"propertyNames": {"pattern": "^[0-9]+$"}},
        ),
    ] = field(default_factory=dict)
    tasks: Annotated[
        dict[str, str],
        Meta(
            description="Id of a task -> its name.",
            extra_json_schema={"propertyNames": {"pattern": f"^{_TASK}$"}},
        ),
    ] = field(default_factory=dict)
    audience: Annotated[
        Audience,
        Meta(description="Whom this report is for; a student's lacks hidden checks."),
    ] = "instructor"
    withheld: Annotated[
        dict[Visible, Annotated[int, Meta(ge=1)]],
        Meta(description="Visibility -> how many checks were left out of this report for it."),
    ] = field(default_factory=dict)
    withheld_points: Annotated[
        float, Meta(description="What the checks that were left out are worth.", ge=0, le=FINITE)
    ] = 0.0
    rubric: Annotated[
        str,
        Meta(description="Digest of the rubric in force, as the grader of this version reads it."),
    ] = ""
    timing: Annotated[
        dict[str, Amount],
        Meta(description="Seconds by what the grader did beside building and checking."),
    ] = field(default_factory=dict)
    grader_version: Annotated[str, Meta(description="Version of the grader.")] = __version__
    by_hand: Annotated[
        list[ByHand],
        Meta(description="What people gave besides the checks; empty in stored reports."),
    ] = field(default_factory=list)

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
        for result in values["results"]:
            result["facts"], result["findings"] = _finite([result["facts"], result["findings"]])
        return {"schema": SCHEMA, **values, "score": self.score, "points": self.points}

    def write(self, path: Path) -> None:
        """Writes the JSON so that the file is always whole."""
        write_whole(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    """A value whose numbers JSON has: what was measured as NaN or infinite is None."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
