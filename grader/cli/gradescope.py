"""`grader gradescope`: an autograder to upload."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.base.errors import UsageError
from grader.cli.options import PROFILE_HELP, add_course, chosen_course
from grader.report.gradescope_zip import Autograder, build_zip

OK, USAGE = 0, 2

_EXAMPLES = """examples:
  grader gradescope                            autograder.zip
  grader gradescope hw2.zip --data mnist/      with MNIST in it, so that nothing is downloaded
  grader gradescope hw2.zip --minutes 20       where the platform gives more time
  grader gradescope hw2.zip --course my-course/course.toml

Upload it at Gradescope: Configure Autograder, Zip file upload.
"""


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "gradescope",
        help="make an autograder for Gradescope",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("output", type=Path, nargs="?", default=Path("autograder.zip"),
                         help="default: autograder.zip")  # fmt: skip
    add_course(command)
    command.add_argument("--profile", default="", help=PROFILE_HELP)
    command.add_argument("--data", type=Path, metavar="FOLDER",
                         help="MNIST to pack; default: downloaded by setup.sh")  # fmt: skip
    command.add_argument(
        "--minutes", type=float, default=10, help="time limit of the platform; default: 10"
    )
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    if options.data and not options.data.is_dir():
        raise UsageError(f"--data {options.data} is not a folder")
    how = Autograder(options.profile, options.data, options.minutes, chosen_course(options))
    names = build_zip(options.output, how)
    console.print(f"{len(names)} files in {options.output}", highlight=False, markup=False)
    return OK
