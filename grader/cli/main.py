"""The command `grader`."""

from __future__ import annotations

import argparse
import sys
import traceback

from rich.console import Console

from grader import __version__
from grader.base.errors import UsageError
from grader.cli import (
    adjust,
    batch,
    bench,
    classpage,
    export,
    grade,
    gradescope,
    handout,
    init,
    regrade,
    release,
    replay,
    report,
    similarity,
    submit,
)
from grader.cli.options import FELL_SHORT, GRADER_FAILED, OK, USAGE
from grader.grading.prebuilt import GraderError
from grader.sandbox import scratch

_COMMANDS = (
    grade, report, replay, gradescope, bench, release, submit, init, batch, classpage, adjust,
    export, handout, regrade, similarity,
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
  grader bench                                how fast the solution is here, as a page

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
    commands = parser.add_subparsers(dest="command", metavar="command")
    for command in _COMMANDS:
        command.add(commands)
    return parser


__all__ = ["FELL_SHORT", "GRADER_FAILED", "OK", "USAGE", "main"]


def main(arguments: list[str] | None = None) -> int:
    """Runs a command line; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.command:
        parser.print_help()
        return USAGE
    console = Console(highlight=False, soft_wrap=True)
    scratch.use_memory()
    try:
        return int(options.run(options, console))
    except UsageError as error:
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
    """How to go on after an interruption; "" if the same command starts anew."""
    if options.command == "batch":
        return f"; finished results are in {options.output}: the same command continues there"
    if options.command != "grade":
        return ""
    if options.json:
        return f"; finished results are in {options.json}: the same command continues there"
    return "; nothing was kept; hint: with --json FILE the same command continues where it stopped"


if __name__ == "__main__":
    sys.exit(main())
