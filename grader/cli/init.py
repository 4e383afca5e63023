"""`grader init`: starts a new assignment."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.building.tree import REFERENCE
from grader.release.new_course import start_course

_EXAMPLES = """examples:
  grader init my-course --name "GPU programming 1"
  grader release --course my-course/course.toml
  grader grade my-course/solution --course my-course/course.toml

The README.md that it writes says how to go on, and how to add an op.
"""


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "init",
        help="start an assignment of your own: one op, one check, a rubric",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("folder", type=Path, help="a folder that is empty or does not exist yet")
    command.add_argument("--name", required=True, help="title of the course")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    files = start_course(options.folder, options.name, REFERENCE)
    for line in (
        f"{len(files)} files in {options.folder}",
        f"next: grader release --course {options.folder / 'course.toml'}",
        f"then: {options.folder / 'README.md'}",
    ):
        console.print(line, highlight=False, markup=False)
    return 0
