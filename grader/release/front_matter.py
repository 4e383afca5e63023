"""The course's names, dates and points, for the README and the manifest of a skeleton."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.course.course import Course
from grader.course.rubric import ALWAYS, Row, Rubric

#: The line of the solution's README.md in whose place names, dates and points are written.
PLACE = "<!-- course -->"
_PACKAGE = Path(__file__).parents[1]
#: What `grader.status` needs of this package: no containment, no reference, no other library.
FOR_STUDENTS = {
    "base": ("__init__", "printable"),
    "building": ("__init__", "compiler_output"),
    "checks": sorted({path.stem for path in _PACKAGE.glob("checks/*.py")} - {"registry"}),
    "checks/harness": (
        "__init__", "answers", "call_script", "compare", "context", "convolution_reference",
        "device", "kernel_case", "loop_programs", "mnist_reference", "net_reference",
        "randomgraph", "recipe", "trainer", "traits", "unwritten",
    ),
    "report": ("__init__", "wording"),
    "status": ("__init__", "__main__", "child", "here", "main"),
    "student": ("__init__", "proxy", "reply", "worker"),
}  # fmt: skip


@dataclass(frozen=True)
class Cover:
    """What a skeleton gets beside the source.

    Attributes:
        front: Markdown that replaces PLACE in README.md.
        facts: further entries of the manifest.
        files: further files by path: the checks that students can run themselves.
    """

    front: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


def cover_of(course: Course, rubric: Rubric, parts: Collection[int] | None = None) -> Cover:
    """The cover for a release of some parts; of those that the course releases if None."""
    shown = sorted(parts if parts is not None else course.released(rubric))
    tasks = [task for task in rubric.tasks if _part(task) in shown]
    facts = {
        "title": course.title,
        "course": course.name,
        "term": course.term,
        "files": list(rubric.files),
        "due": {str(part): due.isoformat() for part in shown if (due := course.due_of(part))},
        "names": {task: rubric.tasks[task] for task in tasks},
        "points": {task: _plain(rubric.points_of(task)) for task in tasks},
        "checks": [_check(row) for row in rubric.rows if row.visible == ALWAYS],
        "sizes": rubric.sizes,
        "mnist": rubric.mnist,
    }
    rooms = [f"{room}/{name}.py" for room, names in FOR_STUDENTS.items() for name in names]
    names = ["__init__.py", *rooms]
    files = {f"grader/{name}": (_PACKAGE / name).read_bytes() for name in names}
    if course.share_checks:
        files |= {f"grader/own/{path.name}": path.read_bytes() for path in course.checks}
    return Cover(f"{heading(course)}\n\n{_table(course, rubric, shown)}", facts, files)


def _check(row: Row) -> dict[str, Any]:
    """A check's entry in a student's folder, see grader/status/here.py."""
    return {
        "name": row.name,
        "task": row.task,
        "points": _plain(row.points),
        "requires": list(row.requires),
        "seconds": _plain(row.seconds),
    }


def _part(task: str) -> int:
    return int(task.partition(".")[0])


def _plain(points: float) -> float:
    return int(points) if points == int(points) else points


def heading(course: Course) -> str:
    """One line: `Deep learning systems, Autumn 2026. Questions: ...`"""
    line = ", ".join(filter(None, (course.name, course.term)))
    return f"{line}. Questions: {course.contact}" if course.contact else f"{line}."


def _table(course: Course, rubric: Rubric, parts: Collection[int]) -> str:
    dated = any(course.due_of(part) for part in parts)
    rows = [[f"{part} {rubric.parts[part]}", _points(rubric, part)] for part in parts]
    for row, part in zip(rows, parts, strict=True):
        row += [moment(course.due_of(part))] if dated else []
    head = ["part", "points", *(["due"] if dated else [])]
    return "\n".join(_row(cells) for cells in (head, ["---"] * len(head), *rows))


def _points(rubric: Rubric, part: int) -> str:
    return f"{sum(rubric.points_of(task) for task in rubric.tasks if _part(task) == part):g}"


def _row(cells: Collection[str]) -> str:
    safe = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(safe)} |".replace("| --- | --- |", "|---|---|").replace(" --- |", "---|")


def moment(due: datetime | None) -> str:
    """A date for people: `2026-10-05 23:59, UTC+02:00`; "" for none."""
    if due is None:
        return ""
    offset = due.strftime("%z")
    return f"{due:%Y-%m-%d %H:%M}, UTC{offset[:3]}:{offset[3:5]}"
