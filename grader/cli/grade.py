"""`grader grade`: grades one submission."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.base.errors import UsageError
from grader.cli.options import (
    FELL_SHORT,
    GRADER_FAILED,
    OK,
    add_course,
    add_exports,
    add_profile,
    check_files,
    chosen_course,
    exports_of,
)
from grader.course.course import rubric_of
from grader.grading.runner import Options, grade
from grader.report.formats import Exports
from grader.report.model import Report, Result
from grader.report.terminal import show_report, show_result, show_timing
from grader.sandbox.isolation import LEVELS

_EXAMPLES = """examples:
  grader grade work.tar.gz --json report.json         an archive or a folder; keep the report
  grader grade . --student                            this folder, as its student sees it
  grader grade work --only relu --only softmax        these checks, and what they need
  grader grade work --html report.html --student      a page for the student
  grader grade work --json report.json --seed 5eed    with the inputs of an earlier run
  grader grade work --keep built/                     and keep the tree as it was built
  grader grade work --profile classic                 by the published rubric and recipe
  grader grade work --course steps.toml --own         part 3, on the student's own part 1

An interrupted run continues where it stopped when --json names the same file.

exit codes: 0 all points, 1 the submission fell short, 2 usage, 3 the grader failed
"""


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "grade",
        help="grade one submission",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("submission", type=Path, help="a folder, .tar.gz or .zip")
    add_course(command)
    add_profile(command)
    command.add_argument("--device", default="auto", choices=["auto", "cuda", "emulated"])
    command.add_argument("--only", action="append", default=[], metavar="CHECK",
                         help="run this check and what it requires; may be repeated")  # fmt: skip
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="write the whole report there, after every check"
    )
    add_exports(command)
    command.add_argument("--seed", type=_seed, default="", metavar="HEX",
                         help="secret of the run, hexadecimal; default: a new one")  # fmt: skip
    command.add_argument("--data", type=Path, metavar="FOLDER", help="MNIST; default: search")
    command.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the built tree there")
    command.add_argument("--timing", action="store_true", help="show where the time went")
    command.add_argument(
        "--isolation",
        default="auto",
        choices=["auto", *LEVELS],
        help="how to isolate student code; default: the best level here",
    )
    command.set_defaults(run=_run)


def _seed(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not hexadecimal; hint: 0 to 9 and a to f")
    return text


def _run(options: argparse.Namespace, console: Console) -> int:
    course = chosen_course(options)
    rubric = rubric_of(course, options.profile, options.own)
    _check(options)
    settings = Options(
        rubric=rubric,
        device=options.device,
        seed=options.seed,
        data=options.data,
        only=tuple(options.only),
        output=options.json,
        keep=options.keep,
        isolation=options.isolation,
        course=course,
    )
    exports = exports_of(options)
    try:
        with console.status("building the kit; the first time takes a minute") as status:

            def show(result: Result) -> None:
                status.update("checking")
                if exports.shows(result):
                    show_result(console, result)

            report = grade(options.submission, settings, show)
        exports.write(report)
    except Exception as error:
        exports.write_failure(f"{type(error).__name__}: {error}")
        raise
    show_report(console, exports.view(report))
    if options.timing:
        show_timing(console, report)
    return _exit_code(report, exports)


def _exit_code(report: Report, exports: Exports) -> int:
    """The exit code for what is shown. A student's must not reveal how hidden checks ended."""
    view = exports.view(report)
    if view.has_errors or not view.complete:
        return GRADER_FAILED
    return OK if view.score == view.points and not view.problem else FELL_SHORT


def _check(options: argparse.Namespace) -> None:
    """Refuses paths in the command line that can't serve their purpose."""
    if not options.submission.exists():
        raise UsageError(f"{options.submission} does not exist")
    if options.data and not options.data.is_dir():
        raise UsageError(f"--data {options.data} is not a folder")
    if options.keep and options.keep.exists() and not options.keep.is_dir():
        raise UsageError(f"--keep {options.keep}: {options.keep} is not a folder")
    check_files(options)
