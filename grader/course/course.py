"""Reads what a course is called, when its parts are due and where its files lie: one TOML file.

The kit's own assignment is a course too, described by course.toml beside grader/. Points are not
here: they stand in the rubric that the file names.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from grader.base.errors import UsageError
from grader.base.typed import Text, typed
from grader.course.rubric import OWN, RUBRICS, Rubric, RubricError, load_rubric

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The kit: the folder that holds grader/, course.toml, and the kit's own solution and skeleton.
KIT = Path(__file__).resolve().parents[2]
#: In `due`: the date for all parts that have none of their own.
ALL = 0


class CourseError(UsageError):
    """The course's file is wrong; the message names the file and the place."""


@dataclass(frozen=True)
class Course:
    """An assignment of a course.

    Attributes:
        path: the file that it was read from.
        name, term, contact: of the course, for people; "" where they are not told.
        title: of the assignment.
        rubric: the rubric's file.
        solution: the reference, with holes marked in it.
        skeleton: the folder that students receive, and that submissions are laid over.
        parts: numbers of the parts whose holes are stripped; all of the rubric if empty.
        beside: the files of other courses that are made of the same solution: it has holes for
            their tasks, too.
        checks: Python files with checks beside the kit's. They are the instructor's own, and run
            in the grader itself.
        share_checks: whether students get these files, so that `make status` knows the checks.
        handout: the folder with the chapters of the students' handout; None: there is none.
        due: number of a part, or ALL -> when it is due, with an offset from UTC.
        late: the late policy, as it stands in the file.
    """

    path: Path
    name: str
    title: str
    rubric: Path
    solution: Path
    skeleton: Path
    term: str = ""
    contact: str = ""
    parts: tuple[int, ...] = ()
    beside: tuple[Path, ...] = ()
    checks: tuple[Path, ...] = ()
    share_checks: bool = False
    handout: Path | None = None
    due: Mapping[int, datetime] = field(default_factory=dict)
    late: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where its file lies."""
        return self.path.parent

    @property
    def is_kit(self) -> bool:
        """Whether this is the kit's own assignment."""
        return self.path == KIT / "course.toml"

    @property
    def secrets(self) -> tuple[Path, ...]:
        """Folders that a submission must not see, beside those of the kit."""
        if self.is_kit:
            return ()
        files = (self.path, self.rubric, *self.checks)
        return tuple(dict.fromkeys((self.solution, self.skeleton, *(f.parent for f in files))))

    def due_of(self, part: int) -> datetime | None:
        """When a part is due; None if nobody said."""
        return self.due.get(part, self.due.get(ALL))

    def released(self, rubric: Rubric) -> tuple[int, ...]:
        """The parts whose holes are stripped."""
        return self.parts or tuple(rubric.parts)


@functools.cache
def kit_course() -> Course:
    """The kit's own assignment."""
    return load_course(KIT / "course.toml")


def load_course(path: Path) -> Course:
    """The course in a file. Its solution and skeleton need not exist yet.

    Raises:
        CourseError: it can't be read, or something in it is wrong.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(
            f"{path} can't be read: {error.strerror or error}; hint: grader init starts a course"
        ) from error
    except ValueError as error:  # TOML, and UTF-8
        raise CourseError(f"{path}: {error}") from error
    try:
        return _parse(path.resolve(), raw)
    except ValueError as error:
        raise CourseError(f"{path}: {error}") from error


def rubric_of(course: Course, profile: str = "", own: bool = False) -> Rubric:
    """The course's rubric; or another one, by a name beside it or by a path that ends in .toml.

    With `own`, or a name that ends in OWN, files of earlier parts are the student's own. The digest
    tells the course's own files of checks apart too.

    Raises:
        RubricError: there is none, or it is wrong, or it lacks a part that the course releases, or
            the course releases none of its parts.
    """
    own, profile = own or profile.endswith(OWN), profile.removesuffix(OWN)
    rubric = load_rubric(_rubric_file(course, profile))
    rubric = rubric.own() if own else rubric
    missing = sorted(set(course.parts) - set(rubric.parts)) if not profile else []
    if missing:
        raise RubricError(
            f"{course.path} releases part {missing[0]}, which {course.rubric} lacks; "
            f"hint: one of {', '.join(map(str, rubric.parts))}"
        )
    if profile and rubric.parts.keys().isdisjoint(course.released(rubric)):
        raise RubricError(
            f"profile {profile} grades part {min(rubric.parts)}, which is solved in the skeleton "
            f"of {course.path}; hint: --course with the course that releases it"
        )
    return replace(rubric, own_checks=_digest(course.checks)) if course.checks else rubric


def known_tasks(course: Course, rubric: Rubric) -> set[str]:
    """The tasks that the solution may have holes for: the rubric's, and those of other courses.

    Raises:
        CourseError, RubricError: another course can't be read.
    """
    return {
        *rubric.tasks,
        *(t for path in course.beside for t in rubric_of(load_course(path)).tasks),
    }


def stripped_parts(course: Course, rubric: Rubric, parts: Collection[int] = ()) -> frozenset[int]:
    """The parts whose holes a skeleton has: those that are released, `parts` or the course's own,
    and those that other courses of the same solution release later.

    Raises:
        CourseError, RubricError: another course can't be read.
    """
    released = frozenset(parts or course.released(rubric))
    beside = (rubric_of(load_course(path)) for path in course.beside)
    return released | {p for other in beside for p in other.parts if p > max(released)}


def _rubric_file(course: Course, profile: str) -> str:
    if not profile:
        return str(course.rubric)
    if profile.endswith(".toml") or course.rubric.parent == RUBRICS:
        return profile
    return str(course.rubric.parent / f"{profile}.toml")


def _digest(files: Collection[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RubricError(f"checks of the course: {error}") from error
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


# --- the file -----------------------------------------------------------------------------------


_Part = Annotated[int, Meta(ge=1, extra={"expected": "the number of a part"})]
_Checks = Annotated[str, Meta(pattern=r"\.py$", extra={"expected": "the name of a Python file"})]
_DueKey = Annotated[
    str, Meta(pattern=r"^(all|[1-9]\d*)$", extra={"expected": "the number of a part, or all,"})
]
_Due = Annotated[
    dict[_DueKey, Any],
    Meta(extra={"expected": "a table", "hint": "[due] and all = 2026-10-26T23:59:00+01:00"}),
]


class _CourseTable(Struct, forbid_unknown_fields=True):
    name: Text
    term: str = ""
    contact: str = ""


class _AssignmentTable(Struct, forbid_unknown_fields=True, kw_only=True):
    title: Text
    rubric: Text
    solution: Text
    skeleton: Text
    parts: tuple[_Part, ...] = ()
    beside: tuple[Text, ...] = ()
    checks: tuple[_Checks, ...] = ()
    share_checks: bool = False
    handout: Text = ""


class _File(Struct, forbid_unknown_fields=True):
    """The file as it is written; for its meaning see Course."""

    course: _CourseTable
    assignment: _AssignmentTable
    due: _Due = {}
    late: dict[str, Any] = {}


def _parse(path: Path, raw: dict[str, Any]) -> Course:
    """Raises ValueError for what is wrong."""
    file = typed(raw, _File)
    course, assignment, folder = file.course, file.assignment, path.parent
    return Course(
        path=path,
        name=course.name.strip(),
        term=course.term.strip(),
        contact=course.contact.strip(),
        title=assignment.title.strip(),
        rubric=folder / assignment.rubric.strip(),
        solution=folder / assignment.solution.strip(),
        skeleton=folder / assignment.skeleton.strip(),
        parts=assignment.parts,
        beside=tuple(folder / name for name in assignment.beside),
        checks=tuple(folder / name for name in assignment.checks),
        share_checks=assignment.share_checks,
        handout=folder / assignment.handout.strip() if assignment.handout else None,
        due={ALL if key == "all" else int(key): _moment(key, due) for key, due in file.due.items()},
        late=file.late,
    )


def _moment(key: str, value: Any) -> datetime:
    """A date with an offset: without one nobody knows when it is."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError as error:
            raise ValueError(f"[due] {key}: {error}") from error
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise ValueError(
            f"[due] {key} is {value}, which has no time and offset; hint: 2026-10-26T23:59:00+01:00"
        )
    return value
