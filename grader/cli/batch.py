"""`grader batch`: grades a class."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from grader.base.errors import UsageError
from grader.base.printable import printable
from grader.batch import engine
from grader.batch.batch import Batch, BatchPlan, Graded, Running, summary
from grader.batch.cache import cache_folder, trim_cache
from grader.batch.engine import Engine
from grader.building.tree import BLAS_THREADS, backend_of, processors
from grader.checks.speed import checks, gpu
from grader.classroom.store import ERROR, PENDING, UNREADABLE, Standing
from grader.cli.options import add_course, add_profile, chosen_course
from grader.course.course import rubric_of
from grader.grading.prebuilt import prebuilt
from grader.sandbox.isolation import LEVELS

OK, USAGE, GRADER_FAILED = 0, 2, 3
_MOST_ON_A_GPU = 8  # submissions at a time

_EXAMPLES = """examples:
  grader batch submissions/ -o results/                  folders and archives, one a student
  grader batch submissions.zip --roster class.csv -o results/
                                                         a download of Canvas, Moodle, Gradescope
  grader batch submissions.zip --roster class.csv --groups groups.csv -o results/
                                                         groups hand in together
  grader batch submissions/ -o results/ --only s1234     one student
  grader batch submissions/ -o results/ --scheduler tcp://10.0.0.1:8786
  grader batch submissions/ -o results/ --slurm 20 --slurm-option walltime=02:00:00
  grader class results/ --html class.html                then look at the class

The same command again takes up a run that was interrupted, and grades what is new.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's parser."""
    command = commands.add_parser(
        "batch",
        help="grade a class",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("source", type=Path, help="folder or zip with all submissions")
    command.add_argument("-o", "--output", type=Path, default=Path("results"), metavar="FOLDER",
                         help="folder for the results; default: results/")  # fmt: skip
    command.add_argument("--roster", type=Path, metavar="CSV",
                         help="who is in the class: a table, Canvas's gradebook or Moodle's "
                         "grading worksheet; kept for later runs")  # fmt: skip
    command.add_argument("--groups", type=Path, metavar="CSV",
                         help="who hands in together: columns student (id, login or e-mail) and "
                         "group, in the roster or in a file of its own; each member gets what one "
                         "handed in; kept, too")  # fmt: skip
    add_course(command)
    add_profile(command)
    command.add_argument("--device", default="auto", choices=["auto", "cuda", "emulated"])
    command.add_argument("--data", type=Path, metavar="FOLDER", help="MNIST; default: search")
    command.add_argument(
        "--isolation",
        default="auto",
        choices=["auto", *LEVELS],
        help="how to isolate student code; default: the best level here",
    )
    command.add_argument("--only", action="append", default=[], metavar="STUDENT",
                         help="grade this student alone: id, login, e-mail or group; may be "
                             "repeated")  # fmt: skip
    command.add_argument(
        "--regrade",
        action="store_true",
        help="grade finished submissions again; earlier reports are kept",
    )
    command.add_argument("--no-cache", action="store_true",
                         help="grade all, even what other results have graded already")  # fmt: skip
    _add_engine(command)
    command.set_defaults(run=_run)


def _add_engine(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("where it runs")
    group.add_argument("--jobs", type=_positive, default=0, metavar="N",
                       help="submissions at a time; default: one a core; on GPUs one for 2 cores, "
                       "8 a GPU at most, and one where a rubric looks at the clock")  # fmt: skip
    group.add_argument("--scheduler", metavar="ADDRESS", help="address of a running Dask scheduler")
    group.add_argument("--slurm", type=_positive, default=0, metavar="N",
                       help="number of Slurm jobs, with one worker each")  # fmt: skip
    group.add_argument("--slurm-option", action="append", default=[], metavar="NAME=VALUE",
                       help="option of dask_jobqueue.SLURMCluster; may be repeated")  # fmt: skip


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _run(options: argparse.Namespace, console: Console) -> int:
    problem = _unusable(options)
    if problem:
        raise UsageError(problem)
    course = chosen_course(options)
    batch = Batch(
        source=options.source,
        results=options.output,
        rubric=rubric_of(course, options.profile, options.own),
        course=None if course.is_kit else course,
        roster=options.roster,
        groups=options.groups,
        device=options.device,
        isolation=options.isolation,
        data=options.data and options.data.resolve(),
        only=tuple(options.only),
        regrade=options.regrade,
        cache=None if options.no_cache else cache_folder(),
    )
    with Running(batch) as running:
        with console.status("reading the submissions"):
            plan = running.plan()
        _show_plan(console, running, plan)
        if plan.todo:
            _grade(console, running, plan, options)
        return _conclude(console, running)


def _unusable(options: argparse.Namespace) -> str:
    """What is wrong with the command line, or ""."""
    if not options.source.exists():
        return f"{options.source} does not exist"
    if options.data and not options.data.is_dir():
        return f"--data {options.data} is not a folder"
    if options.scheduler and (options.slurm or options.jobs):
        return "--scheduler excludes --jobs and --slurm: the cluster has its own workers"
    if options.slurm and options.jobs:
        return "--slurm N sets the number of jobs; leave out --jobs"
    if options.slurm_option and not options.slurm:
        return "--slurm-option needs --slurm N"
    wrong = [text for text in options.slurm_option if "=" not in text]
    return f"--slurm-option {wrong[0]!r} is not NAME=VALUE" if wrong else ""


def _grade(
    console: Console, running: Running, plan: BatchPlan, options: argparse.Namespace
) -> None:
    started, using = time.monotonic(), _engine(options)
    try:
        console.print(f"grading on {using.name}", markup=False, highlight=False)
        graded = 0
        for done in _shown(console, running.run(plan, using), plan.students):
            graded += done.where not in ("", "cache")
        hours = (time.monotonic() - started) / 3600
        if graded:
            console.print(
                f"{graded} graded in {60 * hours:.1f} min, {graded / hours:,.0f} an hour",
                markup=False,
                highlight=False,
            )
    finally:
        using.close()
    trim_cache(cache_folder())


def _engine(options: argparse.Namespace) -> Engine:
    if options.scheduler:
        return engine.cluster(options.scheduler, gpu=options.device == "cuda")
    if options.slurm:
        settings = dict(text.split("=", 1) for text in options.slurm_option)
        numbers: dict[str, Any] = {
            name: int(value) if value.isdigit() else value for name, value in settings.items()
        }
        return engine.slurm(options.slurm, numbers, gpu=options.device == "cuda")
    if backend_of(prebuilt(options.device, source=chosen_course(options).skeleton)) == "cuda":
        gpus = max(1, engine.gpus())
        jobs = options.jobs or gpus * _on_a_gpu(options, gpus)
        # The threads of numpy's BLAS spin while they wait, which takes the cores from others.
        each = str(max(1, processors() // jobs))
        spinning = {name: os.environ.get(name, each) for name in BLAS_THREADS}
        return engine.local(jobs, spinning, gpus)
    jobs = options.jobs or processors()
    threads = os.environ.get("EMULATOR_THREADS") or str(max(1, processors() // jobs))
    return engine.local(jobs, {"EMULATOR_THREADS": threads})


def _on_a_gpu(options: argparse.Namespace, gpus: int) -> int:
    """How many submissions use one GPU at a time: most of a check is work for processors."""
    rows = rubric_of(chosen_course(options), options.profile, options.own).rows
    if any(row.name in checks.CHECKS for row in rows) or not gpu.is_shared():
        return 1
    return max(1, min(_MOST_ON_A_GPU, processors() // (2 * gpus)))


def _shown(console: Console, graded: Iterator[Graded], students: int) -> Iterator[Graded]:
    """Passes results on, and shows progress: on a terminal a bar with the time left, else a line
    each."""
    if not console.is_terminal:
        number = 0
        for done in graded:
            for standing in done.standings:
                number += 1
                line = f"{number}/{students} {_line(standing)}"
                console.print(line, markup=False, highlight=False)
            yield done
        return
    columns = (
        TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.description}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=students)
        for done in graded:
            for standing in done.standings:
                if standing.state == ERROR:
                    progress.console.print(_line(standing), markup=False, highlight=False)
                progress.update(task, advance=1, description=_name(standing))
            yield done


def _line(standing: Standing) -> str:
    if standing.state == ERROR:
        return printable(f"{_name(standing)}: the grader failed: {standing.problem}")
    score = f"{standing.score:g}/{standing.points:g}"
    return f"{_name(standing)}: {score}, {standing.seconds:.0f} s"


def _name(standing: Standing) -> str:
    entry = standing.entry
    return printable(" ".join(filter(None, (entry.student, entry.name))))


def _show_plan(console: Console, running: Running, plan: BatchPlan) -> None:
    lines = [printable(f"note: {note}") for note in running.book.notes]
    lines.append(
        f"{len(running.book.entries)} students: {plan.students} to grade "
        f"({len(plan.todo)} different submissions), {plan.finished} finished, "
        f"{plan.missing} missing, {plan.unreadable} unreadable"
        + (f"; {plan.failed} unread, by a fault of this machine" if plan.failed else "")
    )
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _conclude(console: Console, running: Running) -> int:
    counts = summary(running.book)
    words = ", ".join(f"{count} {state}" for state, count in counts.items())
    where = f"{words}; reports in {running.book.path / 'students'}"
    console.print(where, markup=False, highlight=False)
    for standing in running.book.standings():
        if standing.state == UNREADABLE:
            line = f"  unreadable: {standing.entry.student}: {standing.problem}"
            console.print(printable(line), markup=False, highlight=False)
    asked = {running.book.standing(entry).state for entry in running.wanted()}
    return GRADER_FAILED if asked & {ERROR, PENDING} else OK
