"""`grader similarity`: measures how alike the submissions of a class are. It judges nobody."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.base.printable import printable
from grader.cli.options import PROFILE_HELP, add_course, chosen_course
from grader.cli.outputs import overwritten
from grader.course.course import rubric_of
from grader.similarity.measure import Likeness, Similarity, compare
from grader.similarity.page import function_text, to_csv, to_html, to_json

_DESCRIPTION = """Compares what students wrote in the files with holes, Python and CUDA, each
submission with each other of this year and with earlier ones. Names, comments, layout and the
order of functions change nothing; what the skeleton holds counts nothing, and what many have
counts little. Functions are compared one by one, too; pairs that stand out come first. It measures
likeness; what it means is for people to find out."""

_EXAMPLES = """examples:
  grader similarity results                           the class that grader batch graded
  grader similarity submissions --html pairs.html     a folder of folders and archives
  grader similarity results --earlier 2024 --earlier 2025 --html pairs.html
  grader similarity section-a section-b --csv pairs.csv --at-least 50

exit codes: 0 compared, 2 usage, 3 the grader failed
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    command = commands.add_parser(
        "similarity",
        help="how alike the submissions of a class are",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("folders", type=Path, nargs="+", metavar="RESULTS_OR_FOLDER",
                         help="results of a class, or a folder of submissions")  # fmt: skip
    command.add_argument(
        "--earlier",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="results or submissions of an earlier year; may be repeated",
    )
    command.add_argument("--known", type=Path, action="append", default=[], metavar="FOLDER",
                         help="an older skeleton or a published solution, whose code is ignored; "
                              "may be repeated")  # fmt: skip
    add_course(command)
    command.add_argument("--profile", default="", help=PROFILE_HELP)
    command.add_argument("--html", type=Path, metavar="FILE",
                         help="a page with the shared passages side by side")  # fmt: skip
    command.add_argument("--json", type=Path, metavar="FILE", help="all pairs")
    command.add_argument("--csv", type=Path, metavar="FILE", help="all pairs, a line each")
    command.add_argument("--top", type=_count, default=30, metavar="N",
                         help="pairs on the page; default: 30")  # fmt: skip
    command.add_argument("--at-least", type=_percent, default=0.0, metavar="PERCENT",
                         help="leave out pairs that are less alike everywhere")  # fmt: skip
    command.set_defaults(run=_run)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{printable(text)!r} is not a number from 1 to 1000")
    return int(text)


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{printable(text)!r} is not a number from 0 to 100")
    return value / 100


def _run(options: argparse.Namespace, console: Console) -> int:
    problem = _unusable(options)
    if problem:
        raise UsageError(printable(problem))
    with _bar("reading") as bar:
        course = chosen_course(options)
        files = rubric_of(course, options.profile).files
        result = compare(options.folders, options.earlier, files, bar, course.skeleton,
                         course.solution, options.known)  # fmt: skip
    _write(options, result)
    _show(console, result, options)
    return 0


def _unusable(options: argparse.Namespace) -> str:
    """What is wrong with the files to be written, or ""."""
    outputs = {name: getattr(options, name) for name in ("html", "json", "csv")}
    for name, path in outputs.items():
        if path and path.is_dir():
            return f"--{name} {path} is a folder"
    problems = (
        overwritten(folder, outputs.values()) for folder in (*options.folders, *options.earlier)
    )
    return next(filter(None, problems), "")


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, told (done, total)."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _write(options: argparse.Namespace, result: Similarity) -> None:
    if options.html:
        with _bar("passages") as bar:
            write_whole(options.html, to_html(result, options.top, options.at_least, bar))
    if options.json:
        write_whole(options.json, to_json(result, options.at_least))
    if options.csv:
        write_whole(options.csv, to_csv(result, options.at_least))


def _show(console: Console, result: Similarity, options: argparse.Namespace) -> None:
    """Shows the first ten pairs, and what could not be compared."""
    console.print(f"{len(result.works)} submissions, {len(result):,} pairs. A measure of likeness, "
                  "never a verdict: read the passages.", markup=False)  # fmt: skip
    table = Table("place", "first", "second", "likeness", *map(escape, result.files), "")
    for pair in islice(result.pairs(options.at_least), min(10, options.top)):
        second = pair.second.label + (f" ({pair.second.year})" if pair.second.year else "")
        odd = ["identical: " + ", ".join(pair.identical)] if pair.identical else []
        odd += [function_text(match) for match in pair.functions[:3]]
        odd += ["and more"] if len(pair.functions) > 3 else []
        odd += ["the same student"] if pair.same_student else []
        odd += ["too little to tell"] if pair.says_little else []
        odd += ["nothing stands out"] if not (pair.stands_out or pair.says_little) else []
        table.add_row(
            str(pair.place), escape(printable(pair.first.label)), escape(printable(second)),
            *(_figure(each) for each in (pair.whole, *pair.files.values())),
            escape(printable("; ".join(odd))),
        )  # fmt: skip
    console.print(table)
    for who, why in result.unreadable:
        console.print(f"not compared: {printable(who)}: {printable(why)}", markup=False)
    for who in result.empty:
        console.print(f"too little written: {printable(who)}", markup=False)
    for note in result.notes:
        console.print(f"note: {printable(note)}", markup=False)


def _figure(likeness: Likeness) -> str:
    far = "" if likeness.distance is None else f" ({likeness.distance:+.1f})"
    return f"{likeness.value:.0%}{far}"
