"""Runs the grader's checks in this process, for students: uncontained, so that a debugger works.

These are the grader's checks, with random numbers of their own and the same messages. Only the
grader can contain the work, prove what ran on the GPU and use the checked build; that is left out
here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.checks.core import CORE
from grader.checks.harness.compare import Failure
from grader.checks.harness.context import Context, Session
from grader.report.wording import explain, missing_task
from grader.student import worker
from grader.student.proxy import ChildError, Fault, Instruction, Proxies, StudentError
from grader.student.reply import parse_reply

if TYPE_CHECKING:
    from grader.course.course import Course

PASS, FAIL, SKIPPED = "pass", "fail", "skipped"
#: What a skeleton says of its checks.
RELEASE = ".release.json"
#: Where the scripts are written that make a failed call once more, below a student's folder.
AGAIN = "build/again"
_SEED = "local"
# Files of checks that are a course's own.
_OWN = Path(__file__).parent.with_name("own")
# What ends this process, or a debugger's session, and is no error of the student's code.
_NOT_CAUGHT = {"KeyboardInterrupt": KeyboardInterrupt, "BdbQuit": KeyboardInterrupt}


@dataclass(frozen=True)
class PlannedCheck:
    """A check in a student's folder: its name, its task or "", its points, and the checks that must
    pass before."""

    name: str
    task: str
    points: float
    requires: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class CheckPlan:
    """What a student's folder says about its checks.

    Attributes:
        title: of the assignment.
        files: that are handed in.
        tasks: id -> name.
        rows: the checks, in the order in which they run.
        sizes, mnist: see `grader.checks.harness.context.Settings`.
    """

    title: str
    files: tuple[str, ...]
    tasks: Mapping[str, str]
    rows: tuple[PlannedCheck, ...]
    sizes: str
    mnist: Mapping[str, Any]


@dataclass
class Outcome:
    """The result of a check.

    Attributes:
        raised: the type of the exception in the student's code; "" for none.
        again: the script that makes the failed call once more; "" for none.
        message, details, hint: as in a report.
    """

    check: str
    status: str
    message: str = ""
    details: Sequence[str] = ()
    hint: str = ""
    raised: str = ""
    again: str = ""

    @property
    def is_of_a_hole(self) -> bool:
        """Whether it failed only because a task is not written yet."""
        return bool(missing_task(self.message))

    def text(self) -> str:
        """What is wrong, line by line, the cause first."""
        lines = [self.message, *[f"  {line}" for line in self.details]]
        lines += [f"hint: {self.hint}"] * bool(self.hint)
        lines += [f"again: python3 {self.again}"] * bool(self.again)
        return "\n".join(lines)


class PlanError(Exception):
    """The folder does not say which checks there are."""


def plan_of(folder: Path) -> CheckPlan:
    """The checks of a student's folder.

    Raises:
        PlanError: the folder is no student's.
    """
    path = folder / RELEASE
    try:
        facts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else _beside(folder)
        rows = [
            PlannedCheck(**{**row, "requires": tuple(row["requires"])}) for row in facts["checks"]
        ]
        return CheckPlan(
            facts["title"], tuple(facts["files"]), facts["names"], tuple(rows), facts["sizes"],
            facts["mnist"],
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlanError(
            f"{path} can't be read: {type(error).__name__}: {error}; hint: run this in the "
            "assignment's folder"
        ) from error


def code_of(folder: Path) -> str:
    """The folder in a student's folder that holds their Python."""
    return str(folder.resolve() / "python")


def _beside(folder: Path) -> Mapping[str, Any]:
    """The same for a solution, from the course beside it; only in the whole kit."""
    try:
        from grader.course.course import rubric_of
        from grader.release.front_matter import cover_of
    except ImportError as error:
        raise FileNotFoundError(RELEASE) from error
    course = _course(folder)
    return cover_of(course, rubric_of(course)).facts


def _course(folder: Path) -> Course:
    """The course of a solution: the one beside it, else the kit's own."""
    from grader.course.course import kit_course, load_course

    path = folder.parent / "course.toml"
    return load_course(path) if path.is_file() else kit_course()


def checks_of(folder: Path) -> Mapping[str, Callable[[Context], None]]:
    """The checks for the work in a folder: the kit's, and the course's own."""
    files = sorted(_OWN.glob("*.py"))
    if not files and not (folder / RELEASE).exists():
        files = list(_course(folder).checks)
    found = dict(CORE)
    for path in files:
        found |= runpy.run_path(str(path))["CHECKS"]
    return found


class _Here(worker.Worker):
    """The worker of the grader's child processes, in this process."""

    def __init__(self, root: Path) -> None:
        self.root, self.code, self.table = str(root.resolve()), code_of(root), {}

    def begin(self, index: int) -> None:
        """Does nothing: nobody asks how far it has come."""


class Local(Proxies):
    """Objects of this process behind proxies."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._worker = _Here(root)

    def _carry_out(
        self, batch: list[Instruction], arrays: list[np.ndarray[Any, Any]], most: int
    ) -> tuple[list[Any], Fault | None]:
        reply, out = self._worker.carry_out([[i.action, i.target, i.args] for i in batch], arrays)
        error = reply["error"]
        if error is not None and error["types"][0] in _NOT_CAUGHT:
            where = [f"in {file}:{line}" for file, line, *_ in error["frames"][-1:]]
            raise _NOT_CAUGHT[error["types"][0]](*where)
        # Copies, as from another process: what is done to the originals later must not show.
        return parse_reply(reply, [array.copy() for array in out], len(batch))


@dataclass
class LocalContext(Context):
    """A context whose sessions are in this process."""

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """The submission in this process."""
        _fill_new_arrays()
        yield Session(Local(self.tree), self.note)

    def require_harmless(self) -> None:
        """Does nothing: students could only deceive themselves."""


@functools.cache
def _fill_new_arrays() -> None:
    worker.fill_new_arrays()


#: Seconds of a processor for a check that needs no build; each takes about one.
PATIENCE = 20.0


def check_named(name: str, folder: Path) -> PlannedCheck:
    """A check of a student's folder, by name.

    Raises:
        PlanError: the folder is no student's, or has no such check.
    """
    plan, checks = plan_of(folder), checks_of(folder)
    for row in plan.rows:
        if row.name == name and name in checks:
            return row
    known = ", ".join(row.name for row in plan.rows if row.name in checks)
    raise PlanError(f"there is no check {name!r}; hint: one of {known}")


def patience_for(row: PlannedCheck) -> float:
    """The seconds that a check may take here."""
    return row.seconds if "build" in row.requires else min(row.seconds, PATIENCE)


def run(name: str, folder: Path, seed: str = _SEED, watched: bool = False) -> Outcome:
    """Runs one check of the work in a folder, without the checks that it requires.

    Args:
        name: of the check.
        folder: of the student, built.
        seed: for the random numbers; the same seed gives the same numbers.
        watched: whether a tool looks at every access: then sizes are small.

    Raises:
        PlanError: the folder is no student's, or has no such check.
    """
    plan, row, check = plan_of(folder), check_named(name, folder), checks_of(folder)[name]
    package = code_of(folder)
    if package not in sys.path:
        sys.path.insert(0, package)
    if "build" in row.requires and (broken := not_built(folder, watched)):
        return Outcome(name, SKIPPED, broken)
    context = LocalContext(folder, plan, backend_of(folder), seed, name, row.seconds)
    context.watched = watched
    try:
        check(context)
    except (Failure, ChildError) as error:
        raised, said = "", explain(error)
        if isinstance(error, StudentError):
            raised = error.types[0]
        again = _write_again(context, folder) if isinstance(error, Failure) else ""
        return Outcome(name, FAIL, raised=raised, again=again, **said)
    for kind in ("py", "npz"):
        (folder / AGAIN / f"{name}.{kind}").unlink(missing_ok=True)
    return Outcome(name, PASS)


def backend_of(folder: Path) -> str:
    """ "cuda" or "emulated", whichever the folder was configured for; "" if it was not
    configured."""
    path = folder / "build" / "config.mk"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = [line.partition(":=")[2].strip() for line in lines if line.startswith("BACKEND :=")]
    return found[0] if found else ""


def not_built(folder: Path, checked: bool = False) -> str:
    """Why the library in a folder, or that of its checked build, is out of date or missing; "" if
    it is neither."""
    place, target = ("build/checked/lib", "make checked") if checked else ("build/lib", "make")
    library = folder / place / "libc_runtime_api.so"
    if not library.is_file():
        return f"nothing is built yet; hint: {target}"
    made = library.stat().st_mtime
    sources = [path for path in sorted(folder.glob("src/*")) if path.is_file()]
    newer = [path for path in sources if path.stat().st_mtime > made]
    if not newer:
        return ""
    return (
        f"src/{newer[0].name} is newer than the library; hint: {target}, and fix compiler "
        "errors first"
    )


def _write_again(context: Context, folder: Path) -> str:
    """Writes the script that makes the last call once more; returns its path in the folder, or
    ""."""
    if context.call is None:
        return ""
    call = context.call()
    target = folder / AGAIN
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{context.check}.py").write_text(call.script(context.check), encoding="utf-8")
    np.savez(target / f"{context.check}.npz", **call.contents())  # type: ignore[arg-type]
    return f"{AGAIN}/{context.check}.py"
