"""`grader export`: the scores of a class as files for the systems around a course."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.base.printable import printable
from grader.classroom.adjustments import of_nobody
from grader.classroom.canvas import KEYS, Filled, fill
from grader.classroom.feedback import all_feedback, moodle_folder, write_feedback
from grader.classroom.gradebook import (
    Gradebook,
    GradebookError,
    Lateness,
    figure,
    read_gradebook,
    read_spent,
    to_csv,
    to_long,
)
from grader.classroom.lateness import late_policy
from grader.classroom.moodle import fill_worksheet
from grader.classroom.store import ERROR, MISSING, PENDING, UNREADABLE, Entry, read_classbook
from grader.cli.outputs import overwritten
from grader.collection.times import with_times
from grader.course.course import Course, load_course

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OK, FELL_SHORT, USAGE = 0, 1, 2
_SHOWN = 20

_EXAMPLES = """examples:
  grader export results/ --csv grades.csv              a row a student, a column a part and check
  grader export results/ --canvas export.csv --column "Assignment 2 (12345)" --output filled.csv
                                                       the course's own gradebook with our scores
  grader export results/ --moodle worksheet.csv --output filled.csv
                                                       Moodle's grading worksheet with our scores
  grader export results/ --csv grades.csv --course course.toml
                                                       its late policy and due date
  grader export results/ --csv grades.csv --late late.toml --due 2026-10-08T23:59:00+02:00
  grader export results/ --csv second.csv --late late.toml --spent first.csv
                                                       late days of the term: what the first took
  grader export results/ --csv grades.csv --course course.toml --times times.csv
                                                       of a download that bears no times; Moodle's
                                                       grading worksheet is such a table
  grader export results/ --long long.csv               a row a student and check
  grader export results/ --feedback feedback/          what each student may see, to hand back
  grader export results/ --feedback feedback.zip --after-due-date

late.toml, whose keys may all be left out but the table:
  due = 2026-10-08T23:59:00+02:00
  [late]
  grace_minutes = 10
  percent_a_day = 10           # of the points reached, or percent_of = "possible"
  late_days = 5                # of the term; --spent says what earlier assignments took
  cutoff_days = 7
  percent_marked = 15          # once, where Canvas marks work LATE and nothing tells how late
  [late.extensions]
  s1234 = 2026-10-15T23:59:00+02:00    # id, login, group, or an e-mail address in quotes

Who handed in nothing or waits for grading has no score, which is not a zero; nor has whom the
grader failed, unless --provisional gives the points that are safe. What can't be read has 0.

exit codes: 0 all is told, 1 a student has a score and no row in the template, 2 usage
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's parser."""
    command = commands.add_parser(
        "export",
        help="write gradebooks, and feedback to hand back",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("results", type=Path, help="folder of grader batch")
    command.add_argument("--csv", type=Path, metavar="FILE", help="a row a student")
    command.add_argument("--long", type=Path, metavar="FILE", help="a row a student and check")
    command.add_argument("--provisional", action="store_true",
                         help="give a score even where the grader failed in a check")  # fmt: skip
    _add_filled(command)
    _add_late(command)
    group = command.add_argument_group("feedback")
    group.add_argument("--feedback", type=Path, metavar="FOLDER",
                       help="a folder a student, as HTML and text; or a .zip of it")  # fmt: skip
    group.add_argument("--after-due-date", action="store_true",
                       help="show the checks that open after the due date")  # fmt: skip
    command.set_defaults(run=_run)


def _add_filled(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("Canvas and Moodle")
    either = group.add_mutually_exclusive_group()
    either.add_argument("--canvas", type=Path, metavar="FILE",
                        help="Canvas's exported gradebook; never changed")  # fmt: skip
    either.add_argument("--moodle", type=Path, metavar="FILE",
                        help="Moodle's grading worksheet; never changed")  # fmt: skip
    group.add_argument(
        "--column", default="", help="the assignment's column: its title, name or Canvas id"
    )
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help="the filled file")
    group.add_argument("--match", default="", choices=KEYS, metavar="COLUMN",
                       help=f"match students by this column alone: {', '.join(KEYS)}")  # fmt: skip


def _add_late(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("lateness")
    either = group.add_mutually_exclusive_group()
    either.add_argument("--late", type=Path, metavar="FILE", help="TOML with a table [late]")
    either.add_argument("--course", type=Path, metavar="FILE",
                        help="course.toml with [late] and [due]")  # fmt: skip
    group.add_argument("--due", type=_moment, metavar="TIME",
                       help="due date with UTC offset; default: that file's")  # fmt: skip
    group.add_argument("--times", type=Path, metavar="CSV",
                       help="times of submission, if the download has none: columns student and "
                            "submitted, or Moodle's grading worksheet")  # fmt: skip
    group.add_argument("--spent", type=Path, action="append", default=[], metavar="CSV",
                       help="late days that an earlier assignment used: its --csv; may be "
                            "repeated")  # fmt: skip


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time with an offset, like 2026-10-08T23:59:00+02:00"
        )
    return moment


def _run(options: argparse.Namespace, console: Console) -> int:
    outputs = (options.csv, options.long, options.output, options.feedback)
    problem = _unusable(options) or overwritten(options.results, outputs)
    if problem:
        raise UsageError(problem)
    book = read_classbook(options.results)
    lateness = _lateness(options) if options.late or options.course else None
    say = _sayer(console)
    if lateness:
        lateness = lateness.for_class(book.entries)
    if lateness and options.times:
        book.entries, strangers = with_times(options.times, book.entries, lateness.due)
        _list(say, f"in {options.times}, not in the class", strangers)
    gradebook = read_gradebook(book, lateness, options.provisional)
    _tell(say, gradebook, lateness)
    if stale := of_nobody(book):
        say(stale)
    for path, to_text in ((options.csv, to_csv), (options.long, to_long)):
        if path:
            write_whole(path, to_text(gradebook))
            say(f"{len(gradebook.rows)} students in {path}")
    code = _fill(options, gradebook, say) if options.output else OK
    if options.feedback:
        given = all_feedback(book, gradebook, options.after_due_date)
        shown = track(given, "feedback", len(gradebook.rows), console=console, transient=True,
                      disable=not console.is_terminal)  # fmt: skip
        count = write_feedback(options.feedback, shown)
        say(f"feedback for {count} students in {options.feedback}")
        moodle = sum(bool(moodle_folder(entry.source)) for entry in book.entries)
        if moodle:
            say(f"{moodle} came from Moodle: their folders have Moodle's names, which its upload "
                "of feedback needs; try one student first")  # fmt: skip
    return code


def _sayer(console: Console) -> Callable[[str], None]:
    return lambda line: console.print(printable(line), markup=False, highlight=False)


def _unusable(options: argparse.Namespace) -> str:
    """What is wrong with the command line, or ""."""
    template = options.canvas or options.moodle
    if not any((options.csv, options.long, template, options.feedback)):
        return "nothing to write; hint: --csv, --canvas, --moodle, --long or --feedback"
    if options.canvas and not (options.column and options.output):
        return "--canvas needs --column and --output"
    if options.moodle and not options.output:
        return "--moodle needs --output"
    if not options.canvas and (options.column or options.match):
        return "--column and --match need --canvas"
    if options.output and not template:
        return "--output needs --canvas or --moodle"
    if not (options.late or options.course) and (options.due or options.spent or options.times):
        return "--due, --spent and --times need --late FILE or --course FILE"
    if options.after_due_date and not options.feedback:
        return "--after-due-date needs --feedback"
    return _unusable_files(options)


def _unusable_files(options: argparse.Namespace) -> str:
    templates = (options.canvas, options.moodle)
    sources = [*templates, options.late, options.course, options.times, *options.spent]
    for path in filter(None, sources):
        if not path.is_file():
            return f"{path} is not a file" if path.exists() else f"{path} does not exist"
    read = {path.resolve() for path in sources if path}
    written = [path for path in (options.csv, options.long, options.output) if path]
    for path in written:
        if path.is_dir():
            return f"{path} is a folder; hint: name a file"
        if path.resolve() in read:
            return f"{path} is an input, and would be lost; hint: name another file"
    twice = len({path.resolve() for path in written}) < len(written)
    return "two options name the same file" if twice else ""


def _lateness(options: argparse.Namespace) -> Lateness:
    """The late policy that the command line names.

    Raises:
        CourseError, GradebookError: the file can't be read, or states no late policy or due date.
        LatenessError: the policy is wrong.
    """
    if options.course:
        course = load_course(options.course)
        table, due = course.late, options.due or _due_of(course)
    else:
        table, due = _late_file(options.late, options.due)
    spent: dict[str, int] = {}
    for path in options.spent:
        for student, days in read_spent(path).items():
            spent[student] = spent.get(student, 0) + days
    where = f"late of {options.course or options.late}"
    return Lateness(late_policy(table, where), due, spent)


def _due_of(course: Course) -> datetime:
    """The single date by which everything that the course releases is due."""
    dates = {course.due_of(part) for part in course.parts or course.due}
    date = next(iter(dates), None)
    if len(dates) > 1 and None not in dates:
        raise GradebookError(f"{course.path} has several due dates; hint: --due says which")
    if len(dates) > 1 or date is None:
        raise GradebookError(f"{course.path} has no due date for all; hint: --due, or [due] there")
    return date


def _late_file(path: Path, due: datetime | None) -> tuple[dict[str, Any], datetime]:
    """(the table [late] of a TOML file, the due date: `due`, or else the one in that table)."""
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise GradebookError(f"{path}: {error}") from error
    table, due = raw.get("late"), due or raw.get("due")
    if not isinstance(table, dict):
        raise GradebookError(f"{path} has no table [late]; hint: grader export --help")
    if due is None:
        raise GradebookError(f"{path} has no due date; hint: --due 2026-10-08T23:59:00Z")
    if isinstance(due, dict):
        raise GradebookError(f"{path} has a table [due]; hint: --course {path}, or --due")
    if not isinstance(due, datetime) or due.tzinfo is None:
        raise GradebookError(f"{path}: due is {due}; hint: with time and offset, without quotes, "
                             "like 2026-10-08T23:59:00+02:00")  # fmt: skip
    return table, due


def _tell(say: Callable[[str], None], gradebook: Gradebook, lateness: Lateness | None) -> None:
    """Prints what an instructor should know before handing the files on."""
    states = gradebook.states
    say(f"{len(gradebook.rows)} students: {', '.join(f'{n} {s}' for s, n in states.items())}")
    open_states = [state for state in (MISSING, PENDING, ERROR) if states[state]]
    unscored = sum(row.score is None for row in gradebook.rows)
    if unscored:
        say(f"{unscored} have no score ({', '.join(open_states)}): their cells are empty, not 0")
    if states[UNREADABLE]:
        say(f"{states[UNREADABLE]} can't be read and have 0; hint: look at them")
    if states[ERROR] and gradebook.provisional:
        say(f"{states[ERROR]} met a fault of the grader; their scores are provisional")
    _tell_by_hand(say, gradebook)
    if lateness:
        _tell_late(say, gradebook, lateness)


def _tell_by_hand(say: Callable[[str], None], gradebook: Gradebook) -> None:
    given = [row for row in gradebook.rows if row.by_hand]
    _list(say, "have points or comments by hand",
          (f"{row.entry.student} {figure(row.given)}" for row in given))  # fmt: skip
    _list(say, "of the points by hand exceed what a check or part is worth",
          (f"{row.entry.student} {each['on']} {each['points']:+g} of {each['asked']:+g}"
           for row in given for each in row.by_hand
           if each["points"] != each["asked"]))  # fmt: skip
    _list(say, "have something by hand and no score, so it does not count",
          (row.entry.student for row in gradebook.rows if row.in_vain))  # fmt: skip


def _tell_late(say: Callable[[str], None], gradebook: Gradebook, lateness: Lateness) -> None:
    scored = [row for row in gradebook.rows if row.score is not None]
    late = [row.late for row in scored if row.late and row.late.is_late]
    less = sum(each.penalty > 0 for each in late)
    say(f"{len(late)} late, {less} of them with fewer points, {sum(e.spent for e in late)} "
        "late days spent")  # fmt: skip
    unknown = [row.entry for row in scored if row.late is None]
    if unknown:
        say(f"{len(unknown)} have no time of submission, and lose nothing; hint: --times")
        _list(say, "of them are marked late; hint: --times, or percent_marked",
              (_who(entry) for entry in unknown if entry.late))  # fmt: skip
    known = {row.entry.student for row in gradebook.rows}
    _list(say, "an extension is for nobody in the class",
          sorted(set(lateness.policy.extensions) - known))  # fmt: skip


def _fill(options: argparse.Namespace, gradebook: Gradebook, say: Callable[[str], None]) -> int:
    if options.moodle:
        filled = fill_worksheet(options.moodle.read_bytes(), gradebook)
    else:
        filled = fill(options.canvas.read_bytes(), options.column, gradebook, options.match)
    write_whole(options.output, filled.content)
    _tell_filled(say, filled)
    say(f"{filled.column}: {filled.filled} scores in {options.output}")
    return FELL_SHORT if filled.absent else OK


def _tell_filled(say: Callable[[str], None], filled: Filled) -> None:
    for line in filled.warnings:
        say(f"warning: {line}")
    if filled.changed:
        say(f"{filled.changed} cells had another score")
    _list(say, "without a score, their cells stay", map(_who, filled.unscored))
    _list(say, "have a score and no row in the template", map(_who, filled.absent))
    _list(say, "in the template, not in the results", filled.strangers)


def _who(entry: Entry) -> str:
    return f"{entry.student} {entry.name}".strip()


def _list(say: Callable[[str], None], what: str, names: Iterable[str]) -> None:
    given = list(names)
    more = f" and {len(given) - _SHOWN} more" if len(given) > _SHOWN else ""
    if given:
        say(f"{len(given)} {what}: {'; '.join(given[:_SHOWN])}{more}")
