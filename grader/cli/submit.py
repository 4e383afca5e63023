"""`grader submit`: checks a student's folder and packs it, as `make submit` does there."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.base.printable import printable
from grader.cli.options import add_course, chosen_course
from grader.release.submit import hand_in

_EXAMPLES = """examples:
  grader submit my-assignment                 check, build, test, pack submission.tar.gz
  grader submit my-assignment --check         pack nothing
  grader submit my-assignment --anyway        pack although something is wrong

Students need no grader: `make submit` in their folder does the same. The build and the tests run
with your rights, uncontained.
"""


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "submit",
        help="check a student's folder and pack it, as make submit does",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("folder", type=Path, help="a skeleton that somebody has worked in")
    add_course(command)
    command.add_argument("--check", action="store_true", help="pack nothing")
    command.add_argument("--anyway", action="store_true", help="pack although something is wrong")
    command.add_argument("--output", metavar="FILE", help="default: submission.tar.gz there")
    command.add_argument("--device", default="auto", choices=["auto", "cuda", "emulated"])
    command.add_argument("--no-build", action="store_true", help="neither build nor run the tests")
    command.add_argument("--no-tests", action="store_true", help="build, but run no tests")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    words = [f"--device={options.device}"]
    words += [f"--output={options.output}"] if options.output else []
    flags = ("check", "anyway", "no_build", "no_tests")
    words += [f"--{name.replace('_', '-')}" for name in flags if getattr(options, name)]

    def say(line: str) -> None:
        console.print(printable(line), highlight=False, markup=False)

    return hand_in(chosen_course(options), options.folder, words, say)
