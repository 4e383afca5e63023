"""`grader report`: shows a stored report, or converts it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.cli.options import OK, add_exports, check_files, exports_of
from grader.report.stored import read_report
from grader.report.terminal import show_report

_EXAMPLES = """examples:
  grader report report.json                           show it
  grader report report.json --html report.html        as one page
  grader report report.json --student --after-due-date --html student.html
  grader report report.json --junit report.xml --gradescope results.json
"""


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "report",
        help="show a stored report, or convert it",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("report", type=Path, metavar="FILE", help="file of grader grade --json")
    command.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the report there; with --student, without what is hidden",
    )
    add_exports(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    report, exports = read_report(options.report), exports_of(options)
    check_files(options)
    replace(exports, json=options.json).write(report)
    show_report(console, exports.view(report))
    return OK
