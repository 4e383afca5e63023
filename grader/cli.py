"""The command `grader`."""

from __future__ import annotations

import argparse
import sys
import traceback
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from grader import __version__
from grader.autograder import Autograder, AutograderError, build_zip
from grader.batch import BatchError
from grader.bench import bench
from grader.build import KIT
from grader.canvas import CanvasError
from grader.collection import CollectionError
from grader.commands import (
    batch,
    classpage,
    export,
    handout,
    init,
    regrade,
    release,
    similarity,
    submit,
)
from grader.commands.options import PROFILE_HELP, add_course, chosen_course
from grader.course import CourseError, rubric_of
from grader.engine import EngineError
from grader.exports import ExportError, Exports
from grader.feedback import FeedbackError
from grader.gradebook import GradebookError
from grader.handin import HandinError
from grader.isolation import LEVELS, IsolationError
from grader.lateness import LatenessError
from grader.newcourse import NewCourseError
from grader.pristine import GraderError
from grader.regrade import RegradeError
from grader.release import ReleaseError
from grader.replay import Replay, ReplayError, replay
from grader.report import show_report, show_result, show_timing
from grader.results import ERROR, Report, Result
from grader.roster import RosterError
from grader.rubric import RubricError
from grader.runner import Options, grade
from grader.stored import StoredError, read_report

_USAGE_ERRORS = (
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
    RosterError,
    CanvasError,
    FeedbackError,
    GradebookError,
    LatenessError,
    RegradeError,
)
OK, FELL_SHORT, USAGE, GRADER_FAILED = 0, 1, 2, 3

_COMMANDS = (release, submit, init, batch, classpage, export, handout, regrade, similarity)

_EXAMPLES = """examples:
  grader grade solution                       grade a folder
  grader grade work.tar.gz --json out.json    grade an archive, keep the report
  grader grade work.zip --profile classic     by the published rubric and recipe
  grader grade work --only relu --only softmax
  grader batch submissions/ -o results/       grade a class
  grader replay out.json relu                 make one result again, drop its inputs
  grader grade work --html report.html --student
  grader report out.json --html report.html   the same from a stored report
  grader class results/                       look at the results of a class
  grader gradescope autograder.zip            an autograder to upload
  grader similarity results --html pairs.html how alike a class's submissions are
  grader release                              regenerate assignment/ from solution/
  grader release --check                      say whether it is fresh
  grader release --part 2 --output classic/   holes in part 2 alone
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grader",
        description="Grades submissions, and makes what students receive.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"grader {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_grade(commands)
    _add_replay(commands)
    _add_report(commands)
    _add_gradescope(commands)
    _add_bench(commands)
    for command in _COMMANDS:
        command.add(commands)
    return parser


def _add_grade(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("grade", help="grade one submission")
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
    command.add_argument("--seed", default="", help="the secret of the run, hex; default: new")
    command.add_argument("--data", type=Path, metavar="FOLDER", help="MNIST; default: search")
    command.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the built tree there")
    command.add_argument("--timing", action="store_true", help="show where the time went")
    command.add_argument("--isolation", default="auto", choices=["auto", *LEVELS],
                         help="how student code is contained; default: the best here")  # fmt: skip
    command.set_defaults(run=_grade)


def _add_replay(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "replay",
        help="make one result again, and drop the inputs of its last call",
        description="Runs one check of a report again, with the seed of the report. Writes the "
        "built tree, CHECK.npz with the student's inputs, and CHECK.py, which shows what differs "
        "with the student's package and numpy alone. CHECK.py runs the student's code without "
        "a sandbox.",
    )
    command.add_argument("report", type=Path, help="the JSON of a run")
    command.add_argument("check", metavar="CHECK", help="name of the check")
    command.add_argument("--submission", type=Path, help="where it lies now; default: as graded")
    command.add_argument("--output", type=Path, default=Path("replay"), metavar="FOLDER",
                         help="default: replay/")  # fmt: skip
    command.add_argument("--data", type=Path, metavar="FOLDER", help="MNIST; default: search")
    add_course(command)
    command.set_defaults(run=_replay)


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
    command = commands.add_parser("report", help="show a stored report, or convert it")
    command.add_argument("report", type=Path, metavar="FILE", help="of grade --json")
    command.add_argument("--json", type=Path, metavar="FILE",
                         help="write it again, for a student without what is hidden")  # fmt: skip
    _add_exports(command)
    command.set_defaults(run=_report)


def _add_gradescope(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("gradescope", help="make an autograder for Gradescope")
    command.add_argument("output", type=Path, nargs="?", default=Path("autograder.zip"),
                         help="default: autograder.zip")  # fmt: skip
    add_course(command)
    command.add_argument("--profile", default="", help=PROFILE_HELP)
    command.add_argument("--data", type=Path, metavar="FOLDER",
                         help="MNIST to pack; default: downloaded by setup.sh")  # fmt: skip
    command.add_argument("--minutes", type=float, default=10, help="what the platform gives; 10")
    command.set_defaults(run=_gradescope)


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("bench", help="measure the solution, as it is built")
    command.add_argument("--output", type=Path, default=KIT / "handout", metavar="FOLDER")
    command.add_argument("--data", metavar="FOLDER", help="MNIST; default: search")
    command.set_defaults(run=_bench)


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


def _gradescope(options: argparse.Namespace, console: Console) -> int:
    if options.data and not options.data.is_dir():
        print(f"grader: --data {options.data} is no folder", file=sys.stderr)
        return USAGE
    how = Autograder(options.profile, options.data, options.minutes, chosen_course(options))
    names = build_zip(options.output, how)
    console.print(f"{len(names)} files in {options.output}", highlight=False, markup=False)
    return OK


def _replay(options: argparse.Namespace, console: Console) -> int:
    made = replay(
        *(options.report, options.check, options.output, options.submission, options.data),
        chosen_course(options),
    )
    _show_replay(console, made)
    if made.result.status == ERROR:
        return GRADER_FAILED
    return OK if made.is_same else FELL_SHORT


def _show_replay(console: Console, made: Replay) -> None:
    lines = [f"note: {note}" for note in made.notes]
    lines.append(f"recorded: {made.recorded[0]} {made.recorded[1]}".rstrip())
    lines.append(f"now:      {made.result.status} {made.result.message}".rstrip())
    lines.append("the same" if made.is_same else "not the same")
    if made.script:
        lines.append(f"its last call, outside of the sandbox: python {made.script} {made.tree}")
    else:
        lines.append("this check makes no call that could be made without it")
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _unusable(options: argparse.Namespace) -> str:
    """What is wrong with the paths on the command line, or ""."""
    if not options.submission.exists():
        return f"{options.submission} does not exist"
    if options.data and not options.data.is_dir():
        return f"--data {options.data} is no folder"
    if options.keep and options.keep.exists() and not options.keep.is_dir():
        return f"--keep {options.keep}: {options.keep} is no folder"
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


def _bench(options: argparse.Namespace, console: Console) -> int:
    with console.status("measuring") as status:
        bench(options.output, options.data, lambda what: status.update(f"measuring {what}"))
    console.print((options.output / "results.md").read_text(), markup=False, highlight=False)
    return OK


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
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
        print("grader: interrupted", file=sys.stderr)
        return GRADER_FAILED
    except Exception:  # never the exit code of a submission that fell short
        traceback.print_exc()
        return GRADER_FAILED


if __name__ == "__main__":
    sys.exit(main())
