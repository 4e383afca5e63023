"""`grader adjust`: points and comments by hand, beside what the checks give."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.base.errors import UsageError
from grader.base.printable import printable
from grader.batch.batch import lock
from grader.classroom.adjustments import (
    Adjustment,
    adjustments,
    adjustments_path,
    known_places,
    of_nobody,
    parse_adjustments,
    read_adjustments,
    write_adjustments,
)
from grader.classroom.store import PAGES_HINT, Classbook, called, read_classbook

OK, USAGE = 0, 2

_EXAMPLES = """examples:
  grader adjust results/                                 what was given so far
  grader adjust results/ --student s1234 --on relu --points 1 \\
      --comment "right, but for a case that the task leaves open" --by "A. Lovelace"
  grader adjust results/ --csv points.csv --by "A. Lovelace"

points.csv, where `on` is a check, a part such as "part 2", or empty for the whole, and `by` may be
left out; a student goes by id, login or e-mail address, or the name of a group for each member:
  student,on,points,comment
  s1234,relu,1,"right, but for a case that the task leaves open"
  s1235,part 2,-2,"the kernels are those of a library"
  s1236,,,"well written"

Points are added to what the checks give, those of less than 0 are taken away. A check or a part
never gets more than it is worth; the whole may, which is a bonus. They stay when a class is graded
again. Feedback, students' pages and grader export show them as "by hand". There is one line for
each student and place: a new one takes the place of an old one. To take one back, delete its line
in results/adjustments.csv.
"""


def add(commands: Any) -> None:
    """Adds the parser."""
    command = commands.add_parser(
        "adjust",
        help="give points and comments by hand",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("results", type=Path, help="folder of grader batch")
    command.add_argument("--csv", type=Path, metavar="FILE", help="table with a line for each")
    command.add_argument(
        "--student", default="", help="student by id, login, e-mail address or group"
    )
    command.add_argument("--on", default="", metavar="CHECK",
                         help='check or part, such as "part 2"; default: the whole')  # fmt: skip
    command.add_argument(
        "--points", default="", metavar="N", help="points to add; below 0 they are taken away"
    )
    command.add_argument("--comment", default="", help="the reason; students read it")
    command.add_argument(
        "--by", default="", metavar="NAME", help="name of the person who gives them"
    )
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, console: Console) -> int:
    one = (options.student, options.on, options.points, options.comment)
    problem = ""
    if options.csv and any(one):
        problem = "--csv goes without --student, --on, --points and --comment"
    elif any(one) and not options.student:
        problem = "the student is missing; hint: --student"
    if problem:
        raise UsageError(problem)
    book = read_classbook(options.results)
    if not options.csv and not options.student:
        return _list(book, console)
    with lock(options.results):
        given = _given(options, book)
        replaced = write_adjustments(book, given)
    for each in replaced:
        console.print(printable(f"in place of {_line(each)}"), markup=False, highlight=False)
    for each in given:
        console.print(printable(_line(each)), markup=False, highlight=False)
    where = f"{len(given)} in {adjustments_path(book)}"
    console.print(printable(where), markup=False, highlight=False)
    if book.has_pages:
        console.print(PAGES_HINT.format(book.path), markup=False, highlight=False)
    return OK


def _given(options: argparse.Namespace, book: Classbook) -> list[Adjustment]:
    if options.csv:
        return parse_adjustments(options.csv, book, options.by)
    names = ("student", "on", "points", "comment", "by")
    cells = {name: getattr(options, name).strip() for name in names}
    return adjustments(cells, called(book.entries), known_places(book))


def _list(book: Classbook, console: Console) -> int:
    given = read_adjustments(book)
    for line in map(_line, given):
        console.print(printable(line), markup=False, highlight=False)
    if stale := of_nobody(book):
        console.print(printable(stale), markup=False, highlight=False)
    if not given:
        console.print("nothing was given by hand; hint: grader adjust --help", highlight=False)
    return OK


def _line(each: Adjustment) -> str:
    points = f" {each.points:+g}" if each.points else ""
    return f"{each.student} {each.on or 'the whole'}{points}: {each.comment} ({each.by})"
