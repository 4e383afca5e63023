"""Reads a rubric: parts, tasks, checks and their points, from one TOML file."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from grader import __version__
from grader.base.errors import UsageError
from grader.base.typed import Amount, Positive, Text, typed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RUBRICS = Path(__file__).parent / "rubrics"

#: Seconds of wall time that a check may take where its row says nothing.
DEFAULT_SECONDS = 60.0

_Number = Annotated[str, Meta(pattern=r"^[0-9]+$", extra={"expected": "the number of a part"})]

#: When a student may see a check, from the most to the least open.
Visible = Literal["always", "after_due_date", "never"]
ALWAYS: Final = "always"
AFTER_DUE_DATE: Final = "after_due_date"
NEVER: Final = "never"
VISIBILITIES: tuple[Visible, ...] = (ALWAYS, AFTER_DUE_DATE, NEVER)


#: How a profile's name ends where the earlier parts are the student's own, too.
OWN = "-own"


class RubricError(UsageError):
    """The rubric file is wrong; the message names the file and the place."""


@dataclass(frozen=True)
class Row:
    """One check of the rubric.

    Attributes:
        name: of the check function.
        task: id of the task it grades, as "2.11"; "" for what students are given.
        points: what passing is worth.
        requires: names of checks that must have passed before.
        seconds: wall time that the check may take.
        visible: when a student may see it, one of VISIBILITIES.
        zero_ratio, full_ratio: of a check of speed: in proportion to the reference's speed, where
            points begin, and where there are all of them; 0 if passing alone counts.
        sentence: what it checks, for the student; not in the file: the check's docstring says it.
    """

    name: str
    task: str
    points: float
    requires: tuple[str, ...]
    seconds: float
    visible: Visible = ALWAYS
    zero_ratio: float = 0.0
    full_ratio: float = 0.0
    sentence: str = ""

    def share(self, ratio: float) -> float:
        """The share of the points for a ratio of speeds: from 0 to 1, and as much for doubling a
        slow kernel's speed as for doubling a fast one's."""
        if not self.full_ratio:
            return 1.0
        if ratio <= self.zero_ratio:
            return 0.0
        whole = math.log(self.full_ratio / self.zero_ratio)
        return min(1.0, math.log(ratio / self.zero_ratio) / whole)


class FindingsBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds that may be spent on explaining failures of kernels.

    Attributes:
        build: for the checked build of a submission.
        seconds: for running one failed check again.
        total: for running all failed checks of a submission again.
    """

    build: Amount = 120.0
    seconds: Amount = 30.0
    total: Amount = 120.0


class AuditBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds that may be spent on looking at every access of kernels whose values are right.

    Attributes:
        seconds: for one check.
        total: for all checks of a submission; 0: nothing is looked at.
    """

    seconds: Amount = 30.0
    total: Amount = 120.0


class OpinionBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds that may be spent on second opinions, on the emulated GPU.

    Attributes:
        build: for the build without the fast form of kernels.
        seconds: for one run of a failed check.
        hung: the same for one that did not end in its time.
        total: for all runs of a submission.
    """

    build: Amount = 120.0
    seconds: Amount = 120.0
    hung: Amount = 20.0
    total: Amount = 240.0


@dataclass(frozen=True)
class Rubric:
    """A whole rubric.

    Attributes:
        profile: the name of its file.
        title, description: one line each.
        files: paths that a submission hands in.
        sizes: "thorough" or "published", what kernels are checked on.
        parts: number of a part -> its name.
        tasks: task id -> its name.
        rows: the checks in the order in which they run.
        mnist: how MNIST is trained, as it stands in the file.
        findings: how long failures of kernels may be explained.
        audit: how long kernels that pass may be looked at.
        second_opinion: how long the emulated GPU may be asked twice before a fail.
        own_checks: names the contents of a course's own files of checks; "" without any.
        earlier: files of parts that were graded before: the skeleton has the reference's, and a
            submission's are not taken.
        required: files without which a submission is not graded.
    """

    profile: str
    title: str
    description: str
    files: tuple[str, ...]
    sizes: str
    parts: dict[int, str]
    tasks: dict[str, str]
    rows: tuple[Row, ...]
    mnist: dict[str, Any] = field(default_factory=dict)
    findings: FindingsBudget = field(default_factory=FindingsBudget)
    audit: AuditBudget = field(default_factory=AuditBudget)
    second_opinion: OpinionBudget = field(default_factory=OpinionBudget)
    own_checks: str = ""
    earlier: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def own(self) -> Rubric:
        """The same, with the files of earlier parts taken from the submission, too.

        Raises:
            RubricError: there are no earlier parts.
        """
        if not self.earlier:
            raise RubricError(
                f"profile {self.profile} has no earlier parts: all files are the student's own; "
                "hint: leave out --own"
            )
        files = (*self.earlier, *self.files)
        return replace(
            self, profile=self.profile + OWN, files=files, earlier=(), required=self.earlier
        )

    @property
    def digest(self) -> str:
        """Names this rubric as this version of the grader reads it."""
        return hashlib.sha256(repr((__version__, self)).encode()).hexdigest()[:16]

    @property
    def points(self) -> float:
        """Points of all checks together."""
        return sum(row.points for row in self.rows)

    def points_of(self, task: str) -> float:
        """Points of all checks of a task."""
        return sum(row.points for row in self.rows if row.task == task)


def selected(rubric: Rubric, only: Iterable[str]) -> list[Row]:
    """The rows to run: all, or those named and what they require.

    Raises:
        RubricError: there is no check of a name.
    """
    rows = {row.name: row for row in rubric.rows}
    wanted: set[str] = set()
    pending = list(only) or list(rows)
    while pending:
        name = pending.pop()
        if name not in rows:
            raise RubricError(f"no check {name!r}; hint: one of {', '.join(rows)}")
        if name not in wanted:
            wanted.add(name)
            pending.extend(rows[name].requires)
    return [row for row in rubric.rows if row.name in wanted]


def profiles() -> list[str]:
    """Names that load_rubric takes."""
    return sorted(path.stem for path in RUBRICS.glob("*.toml"))


def load_rubric(profile: str) -> Rubric:
    """The rubric of that name, or in that file if it ends in .toml.

    Raises:
        RubricError: there is none, or it is wrong.
    """
    path = _path(profile)
    if not path.is_file():
        raise RubricError(f"no rubric {profile!r}; hint: one of {_beside(path)}")
    try:
        return _parse(path, _merged(path, _chain(path)))
    except ValueError as error:
        raise RubricError(f"{path}: {error}") from error


def _beside(path: Path) -> str:
    """Names of the rubrics where one was looked for, else of the kit's."""
    return ", ".join(sorted(each.stem for each in path.parent.glob("*.toml")) or profiles())


def rubric_files(profile: str) -> list[Path]:
    """The file that load_rubric reads for a name or a path, that of its base, and so on.

    Raises:
        RubricError: one of them is missing or no TOML, or they go round in a circle.
    """
    return [path for path, _ in _chain(_path(profile))]


def _path(profile: str) -> Path:
    return Path(profile) if profile.endswith(".toml") else RUBRICS / f"{profile}.toml"


def _chain(path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """A file and its bases, as (path, what is in it)."""
    found: list[tuple[Path, dict[str, Any]]] = []
    while True:
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RubricError(f"{path}: {error}") from error
        try:
            typed(raw, _Layer)
        except ValueError as error:
            raise RubricError(f"{path}: {error}") from error
        found.append((path, raw))
        if "base" not in raw:
            return found
        path = path.parent / f"{raw['base']}.toml"
        if path in [earlier for earlier, _ in found]:
            raise RubricError(f"{path} is a base of itself")


def _merged(path: Path, chain: list[tuple[Path, dict[str, Any]]]) -> dict[str, Any]:
    """The contents of files together: each takes what it leaves out from its base, the next."""
    merged: dict[str, Any] = {"check": []}
    for _, raw in reversed(chain):
        mnist = {**merged.get("mnist", {}), **raw.get("mnist", {})}
        merged = {**merged, **raw, "mnist": mnist}
        merged["check"] = _with_added(merged["check"], raw.get("added_check", []))
    if not merged["check"]:
        raise RubricError(f"{path} has no checks; hint: [[check]], or a `base` that has some")
    return merged


def _with_added(checks: list[Any], added: list[Any]) -> list[Any]:
    """Checks with those that are added: in the place of one of the same name, or at the end."""
    names = [entry["name"] for entry in checks]
    instead = {entry["name"]: entry for entry in added if entry["name"] in names}
    new = [entry for entry in added if entry["name"] not in names]
    return [instead.get(entry["name"], entry) for entry in checks] + new


class _Check(Struct, forbid_unknown_fields=True, kw_only=True):
    """A [[check]] as it is written; for its meaning see Row."""

    name: Text
    task: str = ""
    points: Amount
    requires: tuple[str, ...] = ()
    seconds: Positive = DEFAULT_SECONDS
    visible: Visible = ALWAYS
    zero_ratio: Positive = 0.0
    full_ratio: Positive = 0.0


class _Layer(Struct):
    """The fields that are validated in each file before it is merged with its base."""

    base: Text = ""
    check: list[_Check] = []
    added_check: list[_Check] = []


class _File(_Layer, forbid_unknown_fields=True, kw_only=True):
    """A file with all that it takes from its bases; for its meaning see Rubric."""

    title: Text
    description: str
    files: tuple[Text, ...]
    earlier: tuple[Text, ...] = ()
    sizes: Literal["thorough", "published"]
    parts: dict[_Number, str]
    tasks: dict[str, str]
    mnist: dict[str, Any] = {}
    findings: FindingsBudget = FindingsBudget()
    audit: AuditBudget = AuditBudget()
    second_opinion: OpinionBudget = OpinionBudget()


def _parse(path: Path, raw: dict[str, Any]) -> Rubric:
    file = typed(raw, _File)
    rows = tuple(Row(**asdict(check)) for check in file.check)
    _check_rows(path, rows, file.tasks)
    return Rubric(
        profile=path.stem,
        title=file.title,
        description=file.description,
        files=file.files,
        earlier=file.earlier,
        sizes=file.sizes,
        parts={int(number): name for number, name in file.parts.items()},
        tasks=file.tasks,
        rows=rows,
        mnist=file.mnist,
        findings=file.findings,
        audit=file.audit,
        second_opinion=file.second_opinion,
    )


def _check_ratios(path: Path, row: Row) -> None:
    """Raises RubricError unless a check of speed has both ratios, in order, or none has any."""
    if not row.zero_ratio and not row.full_ratio:
        return
    if not row.name.startswith("speed_"):
        raise RubricError(f"{path}: check {row.name!r} has ratios, which only checks of speed take")
    if not 0 < row.zero_ratio < row.full_ratio:
        raise RubricError(
            f"{path}: check {row.name!r}: zero_ratio is {row.zero_ratio:g}, full_ratio "
            f"{row.full_ratio:g}; hint: give both, the first smaller"
        )


def _check_rows(path: Path, rows: tuple[Row, ...], tasks: dict[str, str]) -> None:
    earlier: set[str] = set()
    for row in rows:
        if row.name in earlier:
            raise RubricError(f"{path}: check {row.name!r} occurs twice")
        if row.task and row.task not in tasks:
            raise RubricError(f"{path}: check {row.name!r} names unknown task {row.task!r}")
        missing = set(row.requires) - earlier
        if missing:
            raise RubricError(
                f"{path}: check {row.name!r} requires {sorted(missing)}, which must come before it"
            )
        _check_ratios(path, row)
        earlier.add(row.name)
    _check_visible(path, rows)


def _check_visible(path: Path, rows: tuple[Row, ...]) -> None:
    """Refuses a check that requires one that is hidden longer: its reason for being skipped would
    reveal that one."""
    visible = {row.name: row.visible for row in rows}
    for row, name in ((each, name) for each in rows for name in each.requires):
        if VISIBILITIES.index(visible[name]) > VISIBILITIES.index(row.visible):
            raise RubricError(
                f"{path}: check {row.name!r}, visible {row.visible}, requires {name!r}, "
                f"visible {visible[name]}; hint: hide what it requires no longer than itself"
            )
