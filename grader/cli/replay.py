"""`grader replay`: repeats one check of a report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.cli.options import add_course, chosen_course
from grader.grading.replay import Replay, replay
from grader.report.model import ERROR

OK, FELL_SHORT, GRADER_FAILED = 0, 1, 3

_EXAMPLES = """examples:
  grader replay report.json relu                      into replay/
  grader replay results/students/s1234/report.json softmax --output again/
  grader replay report.json relu --submission work.tar.gz
                                                      where the submission lies elsewhere now
then: python replay/relu.py replay/tree

exit codes: 0 the same result, 1 another one, 3 the grader failed
"""


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "replay",
        help="make one result again, and save the inputs of its last call",
        description="Runs one check of a report again, with the seed of the report. Writes the "
        "built tree, CHECK.npz with the student's inputs, and CHECK.py, which shows what differs "
        "with the student's package and numpy alone. CHECK.py runs the student's code without "
        "a sandbox.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("report", type=Path, help="the JSON of a run")
    command.add_argument("check", metavar="CHECK", help="name of the check")
    command.add_argument(
        "--submission", type=Path, help="path of the submission; default: as in the report"
    )
    command.add_argument("--output", type=Path, default=Path("replay"), metavar="FOLDER",
                         help="default: replay/")  # fmt: skip
    command.add_argument("--data", type=Path, metavar="FOLDER", help="MNIST; default: search")
    add_course(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    made = replay(
        *(options.report, options.check, options.output, options.submission, options.data),
        chosen_course(options),
    )
    _show(console, made)
    if made.result.status == ERROR:
        return GRADER_FAILED
    return OK if made.is_same else FELL_SHORT


def _show(console: Console, made: Replay) -> None:
    lines = [f"note: {note}" for note in made.notes]
    lines.append(f"recorded: {made.recorded[0]} {made.recorded[1]}".rstrip())
    lines.append(f"now:      {made.result.status} {made.result.message}".rstrip())
    lines.append("the same" if made.is_same else "not the same")
    if made.script:
        lines.append(
            f"its last call again, outside of the sandbox: python {made.script} {made.tree}"
        )
    else:
        lines.append("this check makes no call that runs outside of the grader")
    for line in lines:
        console.print(line, markup=False, highlight=False)
