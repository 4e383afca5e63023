"""Reads tests/submissions/: each file is an edit of the solution and what the grader must say.

Those in the folders steps and nets are of parts 3 and 4, assignments of their own.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from grader.course.course import (
    Course,
    kit_course,
    known_tasks,
    load_course,
    rubric_of,
    stripped_parts,
)
from grader.course.rubric import AuditBudget, FindingsBudget, OpinionBudget, Rubric, load_rubric
from grader.grading.self_check import with_skeleton
from grader.release.front_matter import cover_of
from grader.release.holes import release
from grader.report.model import FAIL, Report
from grader.sandbox import isolation

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KIT = Path(__file__).resolve().parents[2]
FOLDER = KIT / "tests" / "submissions"
FILES = ("python/dlsys/autodiff.py", "src/gpu_op.cu")
STEPS, NETS = "steps", "nets"
#: Each with a check that comes first: it imports the Python, whose changes must not last.
LATER = {STEPS: "streams_of_launches", NETS: "window_counts"}


@dataclass(frozen=True)
class Mutant:
    """A wrong submission.

    Attributes:
        name: of its file.
        title: what is wrong with it.
        check: the check that it must fail.
        says: words that the report on that check must contain; " | " parts alternatives.
        edits: (file, text that stands there once, what replaces it). Where the text has
            @KIT@, the kit's own folder takes its place.
        family: the kind of trick; "" for an honest mistake.
        needs: "sandbox" if only isolation can catch it; it isn't run without.
        seconds: what the check may take, for a submission that never ends.
        device: "cuda" or "emulated", where only one of them shows it: those in the folder cuda
            are for a real GPU.
        missed: why the check passes all the same; "" where it fails, as it should.
        missed_on: the device where alone that is so; "" for both.
        audit: whether only a look at every access of a kernel that passes can catch it.
        opinion: whether tests ask the emulated GPU twice before the fail; the table always does.
        status: what the check must be: "fail", or "error" where a person must look.
        search: which search for holes in the grader tried it; 0 for the first, and for mistakes.
        mended: what was changed for it, if the grader did not hold it.
        course: STEPS for part 3, NETS for part 4, else "".
    """

    name: str
    title: str
    check: str
    says: tuple[str, ...]
    edits: tuple[tuple[str, str, str], ...]
    family: str = ""
    needs: str = ""
    seconds: float | None = None
    device: str = ""
    missed: str = ""
    missed_on: str = ""
    audit: bool = False
    opinion: bool = False
    status: str = FAIL
    search: int = 0
    mended: str = ""
    course: str = ""

    @property
    def only(self) -> tuple[str, ...]:
        """The checks to run. One that imports the submission's Python comes first, where that
        has been edited: what it changes must not last."""
        if self.course:
            return (LATER[self.course], self.check)
        edits_python = any(name.endswith(".py") for name, _, _ in self.edits)
        return ("topological_order", self.check) if edits_python else (self.check,)

    def is_missed(self, device: str) -> bool:
        """Whether the check is known to pass on a device."""
        return bool(self.missed) and self.missed_on in ("", device)

    @property
    def setting(self) -> tuple[Rubric, Course]:
        """The rubric with all checks there are, and the course."""
        if self.course:
            return load_rubric(self.course), later_course(self.course)
        return load_rubric("speed"), kit_course()

    def rubric(self, rubric: Rubric, opinion: bool = True) -> Rubric:
        """`rubric` with this submission's limit of time on the check, and no time for explaining
        failures, nor for audits and a second opinion unless they are wanted: these take builds of
        their own, and other tests see to them."""
        rows = [
            dataclasses.replace(row, seconds=self.seconds)
            if self.seconds is not None and row.name == self.check
            else row
            for row in rubric.rows
        ]
        none = rubric.findings if self.audit else FindingsBudget(build=0, seconds=0, total=0)
        audit = rubric.audit if self.audit else AuditBudget(total=0)
        second = rubric.second_opinion if opinion else OpinionBudget(build=0, seconds=0, total=0)
        return dataclasses.replace(
            rubric, rows=tuple(rows), findings=none, audit=audit, second_opinion=second
        )

    def verdict(self, report: Report) -> str:
        """What is wrong with a report on it; "" if it was caught with the right words."""
        result = next(r for r in report.results if r.check == self.check)
        if result.status != self.status or result.score:
            return f"{self.check} is {result.status}: {result.message}"
        said = "\n".join([result.message, result.hint, *result.details])
        lacking = [words for words in self.says if not any(w in said for w in words.split(" | "))]
        return f"the report lacks {lacking}: {said}" if lacking else ""


def mutants(*folders: str) -> list[Mutant]:
    """Those of the kit's own assignment, by name; or those of folders, as LATER."""
    found = []
    for path in sorted(
        p for each in folders or ("", "cuda") for p in (FOLDER / each).glob("*.toml")
    ):
        raw = tomllib.loads(path.read_text())
        if path.parent.name in LATER:
            raw["course"] = path.parent.name
        elif path.parent != FOLDER:
            raw["device"] = path.parent.name
        edits = tuple((e["file"], e["find"], e["replace"]) for e in raw.pop("edit"))
        says = tuple(raw.pop("says"))
        found.append(Mutant(name=path.stem, says=says, edits=edits, **raw))
    return found


@functools.cache
def later_course(name: str) -> Course:
    """Part 3 (STEPS) or 4 (NETS) as a course, with a fresh skeleton."""
    course = load_course(KIT / f"{name}.toml")
    rubric = rubric_of(course)
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    skeleton = folder / course.skeleton.name
    tasks, cover = known_tasks(course, rubric), cover_of(course, rubric)
    release(course.solution, skeleton, stripped_parts(course, rubric), tasks, cover)
    return with_skeleton(course, skeleton)


def write(mutant: Mutant, folder: Path) -> Path:
    """Lays the submission out in a new folder.

    Raises:
        ValueError: a text to be replaced does not stand exactly once in the solution.
    """
    for name in mutant.setting[0].files if mutant.course else FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KIT / "solution" / name, folder / name)
    for name, find, replace in mutant.edits:
        text = (folder / name).read_text()
        if text.count(find) != 1:
            raise ValueError(f"{mutant.name}: {find!r} stands {text.count(find)} times in {name}")
        (folder / name).write_text(text.replace(find, replace.replace("@KIT@", str(KIT))))
    return folder


def children() -> set[int]:
    """Processes whose parent is this one, the orphans that it has adopted among them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_bytes().rpartition(b")")[2].split()[1]
        except OSError:
            continue  # it has just ended
        if int(parent) == os.getpid():
            found.add(int(stat.parent.name))
    return found


def is_isolated() -> bool:
    """Whether children run with more than limits: without a view of what is not theirs."""
    return isolation.choose() != "process"
