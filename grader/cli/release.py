"""`grader release`: makes the students' skeleton, and checks that it may be handed out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.cli.options import add_course, chosen_course
from grader.course.course import Course, known_tasks, rubric_of, stripped_parts
from grader.course.rubric import Rubric
from grader.grading.self_check import self_check, with_skeleton
from grader.handout.chapters import HandoutError
from grader.handout.documents import student_document, write_document
from grader.release.front_matter import Cover, cover_of
from grader.release.holes import pack, release, stale
from grader.release.leftovers import leftovers
from grader.report.model import Result

_OK, _FELL_SHORT, _USAGE = 0, 1, 2
_SUFFIXES = (".tar.gz", ".tgz")

_EXAMPLES = """examples:
  grader release                              assignment/ from solution/
  grader release --check                      say whether it is fresh
  grader release --part 2 --output classic/   holes in part 2 alone, part 1 solved
  grader release --archive dlsys.tar.gz       one file to hand out, after the self-check
  grader release --archive dlsys.tar.gz --handout web/
                                              and handout.html and handout.pdf to go with it
  grader release --check --self-check         the self-check of what lies there
  grader release --course my/course.toml

The self-check grades the skeleton, which must score 0, and the solution, which must get all points,
on the emulated GPU; and it looks for lines of the solution, markers, history, caches and built
files, in archives too. What it finds is printed, and the exit code is 1.
"""


@dataclass(frozen=True)
class _Job:
    """What to release, and where to.

    Attributes:
        parts: those that students get to do.
    """

    course: Course
    rubric: Rubric
    parts: frozenset[int]
    output: Path
    cover: Cover

    @property
    def stripped(self) -> frozenset[int]:
        """Those and the later ones, whose holes the skeleton has, too."""
        return stripped_parts(self.course, self.rubric, self.parts)


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "release",
        help="make the students' skeleton from the solution",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_course(command)
    command.add_argument("--part", type=int, action="append", metavar="N",
                         help="strip this part, repeatable; default: the course's")  # fmt: skip
    command.add_argument("--output", type=Path, metavar="FOLDER",
                         help="default: the course's skeleton, assignment/")  # fmt: skip
    command.add_argument("--check", action="store_true",
                         help="write nothing; say whether the skeleton is up to date")  # fmt: skip
    command.add_argument(
        "--archive",
        type=Path,
        metavar="FILE.tar.gz",
        help="pack the skeleton, too; equal releases give equal bytes",
    )
    command.add_argument("--handout", type=Path, metavar="FOLDER",
                         help="make the handout of these parts, too, as HTML and PDF")  # fmt: skip
    command.add_argument("--self-check", action=argparse.BooleanOptionalAction, default=None,
                         help="the self-check; default: when an archive is made")  # fmt: skip
    command.add_argument("--data", type=Path, metavar="FOLDER", help="MNIST; default: search")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    course = chosen_course(options)
    rubric = rubric_of(course)
    parts = frozenset(options.part or course.released(rubric))
    problem = _unusable(options, parts, rubric)
    if problem:
        raise UsageError(problem)
    cover = cover_of(course, rubric, parts)
    job = _Job(course, rubric, parts, options.output or course.skeleton, cover)
    checked = options.self_check if options.self_check is not None else options.archive is not None
    problems = _check(job, console) if options.check else _write(job, console)
    if checked:
        problems += _self_check(job, options.data, console)
    if options.archive and not problems:
        problems += _archive(job, options.archive, checked, console)
    if problems and options.archive:
        problems.append("no archive was written; hint: --no-self-check skips the self-check")
    if options.handout:
        problems += _handout(job, options.handout, console)
    for line in problems:
        console.print(line, highlight=False, markup=False)
    return _FELL_SHORT if problems else _OK


def _unusable(options: argparse.Namespace, parts: frozenset[int], rubric: Rubric) -> str:
    """What is wrong with the options, or ""."""
    unknown = sorted(parts - set(rubric.parts))
    if unknown:
        known = ", ".join(map(str, rubric.parts))
        return f"there is no part {unknown[0]}; hint: one of {known}"
    if options.data and not options.data.is_dir():
        return f"--data {options.data} is not a folder"
    if options.handout and options.handout.exists() and not options.handout.is_dir():
        return f"--handout {options.handout} is not a folder"
    if options.handout and options.check:
        return "--check writes nothing, --handout does; hint: leave one of them out"
    if options.archive and options.check:
        return "--check writes nothing, --archive does; hint: leave one of them out"
    if options.archive and not options.archive.name.endswith(_SUFFIXES):
        return f"--archive {options.archive} does not end in {' or '.join(_SUFFIXES)}"
    return ""


def _write(job: _Job, console: Console) -> list[str]:
    tasks = known_tasks(job.course, job.rubric)
    files = release(job.course.solution, job.output, job.stripped, tasks, job.cover)
    console.print(f"{len(files)} files in {job.output}", highlight=False, markup=False)
    return []


def _check(job: _Job, console: Console) -> list[str]:
    found = stale(job.course.solution, job.output, job.stripped, cover=job.cover)
    if not found:
        fresh = f"{job.output} is up to date with {job.course.solution}"
        console.print(fresh, highlight=False, markup=False)
    return found


def _self_check(job: _Job, data: Path | None, console: Console) -> list[str]:
    found = leftovers(job.output, job.course.solution, job.stripped)
    course = with_skeleton(job.course, job.output)
    with _progress(console, 2 * len(job.rubric.rows)) as step:
        found += self_check(course, job.rubric, job.parts, data, step)
    if not found:
        console.print(
            f"self-check: the skeleton scores 0, the solution has all {job.rubric.points:g} "
            "points, and the skeleton holds no line of it",
            highlight=False, markup=False,
        )  # fmt: skip
    return found


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Any]:
    """A progress bar; yields the function that advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn())  # fmt: skip
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("building the skeleton; the first time takes a minute", total=total)

        def step(what: str, result: Result) -> None:
            bar.update(task, advance=1, description=f"grading the {what}")

        yield step


def _archive(job: _Job, target: Path, checked: bool, console: Console) -> list[str]:
    """Writes the archive, unless it would hold something that students must not get."""
    content = pack(job.output, job.course.skeleton.name)
    found = leftovers(content, job.course.solution, job.stripped) if checked else []
    if not found:
        write_whole(target, content)
        console.print(f"{len(content):,} bytes in {target}", highlight=False, markup=False)
    return found


def _handout(job: _Job, folder: Path, console: Console) -> list[str]:
    """Writes the handout of the parts."""
    usual = job.parts == frozenset(job.course.released(job.rubric))
    try:
        document = student_document(job.course, job.rubric, None if usual else job.parts)
        with console.status("drawing the handout"):
            files = write_document(document, job.rubric, folder)
    except HandoutError as error:
        return [str(error)]
    for path in files:
        console.print(str(path), highlight=False, markup=False)
    return []
