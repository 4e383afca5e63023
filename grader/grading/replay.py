"""Repeats one check of a report with its seed, and writes its last call as a script."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader.base.errors import UsageError
from grader.checks.harness.child import ChildContext
from grader.course.course import Course, kit_course, rubric_of
from grader.grading.runner import Options, grade
from grader.report.model import SCHEMA, Result


class ReplayError(UsageError):
    """The check can't be repeated; the message says what is missing."""


@dataclass(frozen=True)
class Replay:
    """A repeated check.

    Attributes:
        recorded: (status, message) in the report.
        result: the result now.
        tree: the submission's tree, built.
        script: the script that makes the check's last call, or None if that call can't run without
            the check.
        notes: what differs from the recorded run.
    """

    recorded: tuple[str, str]
    result: Result
    tree: Path
    script: Path | None
    notes: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether the result equals the recorded one."""
        return self.recorded == (self.result.status, self.result.message)


def replay(
    report: Path,
    check: str,
    output: Path,
    submission: Path | None = None,
    data: Path | None = None,
    course: Course | None = None,
) -> Replay:
    """Runs one check of a report again, with what it requires, on the seed of the report.

    Args:
        report: the JSON of a run.
        check: name of a check in it.
        output: folder for the built tree (`tree`), CHECK.npz and CHECK.py. If the two forms of the
            emulated GPU disagree, CHECK.npz has the outputs of both, `fast` and `thread_by_thread`.
        submission: where the submission lies now; as in the report if None.
        data: folder of MNIST, as for the run.
        course: whose submission it is; the kit's own assignment if None.

    Raises:
        ReplayError: the report can't be read or lacks the check, or the submission is not there.
    """
    raw = _read(report)
    recorded = next((row for row in raw["results"] if row["check"] == check), None)
    if recorded is None:
        known = ", ".join(row["check"] for row in raw["results"])
        raise ReplayError(f"{report} has no check {check!r}; hint: one of {known}")
    source = submission or Path(raw["submission"])
    if not source.exists():
        raise ReplayError(f"{source} does not exist; hint: --submission PATH")
    contexts: list[ChildContext] = []
    course = course or kit_course()
    profile = raw["profile"] if raw["profile"] != course.rubric.stem else ""
    options = Options(
        rubric=rubric_of(course, profile),
        course=course,
        device=raw["device"] or "auto",
        seed=raw["seed"],
        data=data,
        only=(check,),
        keep=output / "tree",
        on_check=contexts.append,
    )
    again = grade(source, options)
    result = next(row for row in again.results if row.check == check)
    return Replay(
        recorded=(recorded["status"], recorded["message"]),
        result=result,
        tree=output / "tree",
        # A check may have been tried before, without what is built.
        script=_write(next((c for c in reversed(contexts) if c.check == check), None), output),
        notes=_differences(raw, again.to_dict()),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ReplayError(f"{path} can't be read: {error}") from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise ReplayError(f"{path} is not a report of this version, whose schema is {SCHEMA}")
    kinds = {"seed": str, "profile": str, "device": str, "submission": str, "results": list}
    for name, kind in kinds.items():
        if not isinstance(raw.get(name), kind):
            raise ReplayError(f"{path} has no {name}")
    return raw


def _differences(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, ...]:
    """What may cause another result."""
    words = {"sha256": "the submission", "grader_version": "the grader", "device": "the device"}
    return tuple(
        f"{what} is not the one of the report: {str(now[name])[:12]}, was {str(before[name])[:12]}"
        for name, what in words.items()
        if before.get(name) and before[name] != now[name]
    )


def _write(context: ChildContext | None, folder: Path) -> Path | None:
    """Writes the last call of a check: CHECK.npz, and CHECK.py, which reads it."""
    if context is None or context.call is None:
        return None
    call = context.call()
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {**call.contents(), **context.outputs}
    np.savez_compressed(folder / f"{context.check}.npz", **arrays)  # type: ignore[arg-type]
    script = folder / f"{context.check}.py"
    script.write_text(call.script(context.check))
    return script
