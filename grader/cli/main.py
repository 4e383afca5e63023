"""The command `grader`."""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from grader import __version__
from grader.base.sheets import SheetError
from grader.batch.batch import BatchError
from grader.batch.engine import EngineError
from grader.batch.regrade import RegradeError
from grader.classroom.adjustments import AdjustmentError
from grader.classroom.canvas import TemplateError
from grader.classroom.feedback import FeedbackError
from grader.classroom.gradebook import GradebookError
from grader.classroom.lateness import LatenessError
from grader.cli import (
    adjust,
    batch,
    bench,
    classpage,
    export,
    gradescope,
    handout,
    init,
    regrade,
    release,
    replay,
    similarity,
    submit,
)
from grader.cli.options import PROFILE_HELP, add_course, chosen_course
from grader.collection.collect import CollectionError
from grader.course.course import CourseError, rubric_of
from grader.course.rubric import RubricError
from grader.grading.prebuilt import GraderError
from grader.grading.replay import ReplayError
from grader.grading.runner import Options, grade
from grader.handout.bench import BenchError
from grader.release.holes import ReleaseError
from grader.release.new_course import NewCourseError
from grader.release.submit import HandinError
from grader.report.formats import ExportError, Exports
from grader.report.gradescope_zip import AutograderError
from grader.report.model import Report, Result
from grader.report.stored import StoredError, read_report
from grader.report.terminal import show_report, show_result, show_timing
from grader.sandbox.isolation import LEVELS, IsolationError

_USAGE_ERRORS = (
    AdjustmentError,
    BenchError,
    CourseError,
    HandinError,
    NewCourseError,
    RubricError,
    ReleaseError,
    ReplayError,
    StoredError,
    ExportError,
    AutograderError,
    IsolationError,
    BatchError,
    CollectionError,
    EngineError,
    SheetError,
    TemplateError,
    FeedbackError,
    GradebookError,
    LatenessError,
    RegradeError,
)
OK, FELL_SHORT, USAGE, GRADER_FAILED = 0, 1, 2, 3

_COMMANDS = (
    replay, gradescope, bench, release, submit, init, batch, classpage, adjust, export, handout,
    regrade, similarity,
)  # fmt: skip

_EXAMPLES = """examples:
  grader grade solution                       grade a folder
  grader grade work.tar.gz --json out.json    grade an archive, keep the report
  grader grade work.zip --profile classic     by the published rubric and recipe
  grader grade work --only relu --only softmax
  grader batch submissions/ -o results/       grade a class
  grader replay out.json relu                 make one result again, save its inputs
  grader grade work --html report.html --student
  grader report out.json --html report.html   the same from a stored report
  grader class results/                       look at the results of a class
  grader gradescope autograder.zip            an autograder to upload
  grader similarity results --html pairs.html how alike a class's submissions are
  grader release                              regenerate assignment/ from solution/
  grader release --check                      say whether it is fresh
  grader release --part 2 --output classic/   holes in part 2 alone
  grader adjust results/ --csv points.csv     points and comments by hand
  grader export results/ --csv grades.csv     the scores of a class
  grader regrade results/ new/                who changes between two gradings
  grader handout                              what students read, as HTML and PDF
  grader release --archive dlsys.tar.gz       pack it, after a self-check
  grader submit my-assignment                 check a student's folder and pack it
  grader init my-course --name "My course"    start an assignment of your own
  grader grade work --course my-course/course.toml
  grader bench                                measure the solution on this machine's GPU

exit codes: 0 as it should be, 1 the submission fell short, 2 usage, 3 the grader failed
"""


_GRADE_EXAMPLES = """examples:
  grader grade work.tar.gz --json report.json         an archive or a folder; keep the report
  grader grade . --student                            this folder, as its student sees it
  grader grade work --only relu --only softmax        these checks, and what they need
  grader grade work --html report.html --student      a page for the student
  grader grade work --json report.json --seed 5eed    with the inputs of an earlier run
  grader grade work --keep built/                     and keep the tree as it was built
  grader grade work --profile classic                 by the published rubric and recipe

A run that was interrupted goes on where it was when --json names the same file.

exit codes: 0 all points, 1 the submission fell short, 2 usage, 3 the grader failed
"""

_REPORT_EXAMPLES = """examples:
  grader report report.json                           show it
  grader report report.json --html report.html        as one page
  grader report report.json --student --after-due-date --html student.html
  grader report report.json --junit report.xml --gradescope results.json
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grader",
        description="Grades submissions, and makes what students receive.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"grader {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    _add_grade(commands)
    _add_report(commands)
    for command in _COMMANDS:
        command.add(commands)
    return parser


def _add_grade(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "grade",
        help="grade one submission",
        epilog=_GRADE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("submission", type=Path, help="a folder, .tar.gz or .zip")
    add_course(command)
    command.add_argument("--profile", default="", help=PROFILE_HELP)
    command.add_argument("--device", default="auto", choices=["auto", "cuda", "emulated"])
    command.add_argument("--only", action="append", default=[], metavar="CHECK",
                         help="run this check and what it requires; may be repeated")  # fmt: skip
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="write all of it there, after every check"
    )
    _add_exports(command)
    command.add_argument("--seed", type=_seed, default="", metavar="HEX",
                         help="the secret of the run; default: new")  # fmt: skip
    command.add_argument("--data", type=Path, metavar="FOLDER", help="MNIST; default: search")
    command.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the built tree there")
    command.add_argument("--timing", action="store_true", help="show where the time went")
    command.add_argument("--isolation", default="auto", choices=["auto", *LEVELS],
                         help="how student code is contained; default: the best here")  # fmt: skip
    command.set_defaults(run=_grade)


def _seed(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not hexadecimal; hint: 0 to 9 and a to f")
    return text


def _add_exports(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("reports")
    group.add_argument("--html", type=Path, metavar="FILE", help="one page, on its own")
    group.add_argument("--junit", type=Path, metavar="FILE", help="JUnit XML")
    group.add_argument("--gradescope", type=Path, metavar="FILE",
                       help="results.json; the platform hides what is hidden")  # fmt: skip
    group.add_argument("--student", action="store_true",
                       help="show what a student may see: here, in HTML, in JUnit XML")  # fmt: skip
    group.add_argument("--after-due-date", action="store_true",
                       help="with --student: and what opens then")  # fmt: skip


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "report",
        help="show a stored report, or convert it",
        epilog=_REPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("report", type=Path, metavar="FILE", help="of grade --json")
    command.add_argument("--json", type=Path, metavar="FILE",
                         help="write it again, for a student without what is hidden")  # fmt: skip
    _add_exports(command)
    command.set_defaults(run=_report)


def _grade(options: argparse.Namespace, console: Console) -> int:
    course = chosen_course(options)
    rubric = rubric_of(course, options.profile)
    problem = _unusable(options)
    if problem:
        print(f"grader: {problem}", file=sys.stderr)
        return USAGE
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
    exports = _exports(options)
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


def _exports(options: argparse.Namespace) -> Exports:
    names = ("html", "junit", "gradescope", "student", "after_due_date")
    return Exports(**{name: getattr(options, name) for name in names})


def _exit_code(report: Report, exports: Exports) -> int:
    """Of what is shown: for a student it must not tell how hidden checks ended."""
    view = exports.view(report)
    if view.has_errors or not view.complete:
        return GRADER_FAILED
    return OK if view.score == view.points and not view.problem else FELL_SHORT


def _report(options: argparse.Namespace, console: Console) -> int:
    report, exports = read_report(options.report), _exports(options)
    problem = _unusable_files(options)
    if problem:
        print(f"grader: {problem}", file=sys.stderr)
        return USAGE
    replace(exports, json=options.json).write(report)
    show_report(console, exports.view(report))
    return OK


def _unusable(options: argparse.Namespace) -> str:
    """What is wrong with the paths on the command line, or ""."""
    if not options.submission.exists():
        return f"{options.submission} does not exist"
    if options.data and not options.data.is_dir():
        return f"--data {options.data} is not a folder"
    if options.keep and options.keep.exists() and not options.keep.is_dir():
        return f"--keep {options.keep}: {options.keep} is not a folder"
    return _unusable_files(options)


def _unusable_files(options: argparse.Namespace) -> str:
    """What is wrong with the files to be written, or "". Makes their folders."""
    for name in ("json", "html", "junit", "gradescope"):
        path = getattr(options, name)
        if path and path.is_dir():
            return f"--{name} {path} is a folder"
        try:
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return f"--{name} {path}: {error}"
    if options.after_due_date and not options.student:
        return "--after-due-date goes with --student"
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.command:
        parser.print_help()
        return USAGE
    console = Console(highlight=False, soft_wrap=True)
    try:
        return int(options.run(options, console))
    except _USAGE_ERRORS as error:
        print(f"grader: {error}", file=sys.stderr)
        return USAGE
    except (GraderError, OSError) as error:
        print(f"grader: {error}", file=sys.stderr)
        return GRADER_FAILED
    except KeyboardInterrupt:
        print(f"grader: interrupted{_way_on(options)}", file=sys.stderr)
        return GRADER_FAILED
    except Exception:  # never the exit code of a submission that fell short
        traceback.print_exc()
        return GRADER_FAILED


def _way_on(options: argparse.Namespace) -> str:
    """How to go on after an interruption; "" where the same command begins anew."""
    if options.command == "batch":
        return f"; what is graded is kept in {options.output}: the same command goes on there"
    if options.command != "grade":
        return ""
    if options.json:
        return f"; what is graded is kept in {options.json}: the same command goes on there"
    return "; nothing is kept; hint: with --json FILE the same command goes on where it was"


if __name__ == "__main__":
    sys.exit(main())
