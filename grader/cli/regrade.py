"""`grader regrade`: shows who changes between two gradings of a class, and accepts the new one."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.base.printable import printable
from grader.batch.batch import lock
from grader.batch.regrade import (
    DOWN,
    EQUAL,
    GAINED,
    LOST,
    SAME,
    UP,
    Change,
    CheckChange,
    Totals,
    accept,
    compare,
    to_csv,
    to_json,
    totals,
)
from grader.classroom.adjustments import adjustments_path, read_adjustments
from grader.classroom.gradebook import figure
from grader.classroom.store import PAGES_HINT, Classbook, read_classbook
from grader.cli.outputs import overwritten

OK, FELL_SHORT, USAGE = 0, 1, 2
_CHECKS = 8
_MESSAGE = 160
_STYLES = {UP: "green", DOWN: "red", GAINED: "green", LOST: "red", EQUAL: "yellow", SAME: ""}
_WORDS = {
    UP: "up",
    DOWN: "down",
    GAINED: "with a score that had none",
    LOST: "without a score that had one",
    EQUAL: "with the same score, graded otherwise",
    SAME: "the same",
}

_EXAMPLES = """examples:
  grader regrade results/ new/                       who changes, and why
  grader regrade results/ new/ --diff                with every check and messages in full
  grader regrade results/ new/ --csv changes.csv     a row a student and check that changes
  grader regrade results/ new/ --accept              then take the new reports over
  grader regrade results/ new/ --accept --only s1234

The new results come from grader batch SUBMISSIONS --output new/. With --accept, the reports of who
changes are replaced, and of who was graded by another rubric or grader; each old one is kept beside
the new as report-before-TIME.json. Where the new results have no score, the old report stays.

exit codes: 0 nobody changes, or all was taken over; 1 somebody changes, or was not taken over
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's parser."""
    command = commands.add_parser(
        "regrade",
        help="show who changes between two gradings of a class",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("old", type=Path, metavar="OLD", help="results that count now")
    command.add_argument("new", type=Path, metavar="NEW", help="results of the same class")
    add_review(command)
    command.set_defaults(run=_run)


def add_review(command: argparse.ArgumentParser) -> None:
    """Adds the options of `review`."""
    command.add_argument("--diff", action="store_true",
                         help="show every check that changes, and messages in full")  # fmt: skip
    command.add_argument("--csv", type=Path, metavar="FILE", help="the changes, a row a check")
    command.add_argument("--json", type=Path, metavar="FILE", help="the changes and the totals")
    command.add_argument("--accept", action="store_true",
                         help="replace the old reports; each is kept beside the new")  # fmt: skip
    command.add_argument("--only", action="append", default=[], metavar="STUDENT",
                         help="with --accept: replace this student's report alone, by id, login "
                              "or e-mail; may be repeated")  # fmt: skip


def _run(options: argparse.Namespace, console: Console) -> int:
    if options.old.resolve() == options.new.resolve():
        raise UsageError("OLD and NEW are the same folder")
    return review(options.old, options.new, options, console)


def review(
    old_results: Path, new_results: Path, options: argparse.Namespace, console: Console
) -> int:
    """Shows who changes; with --accept, then replaces the reports. Returns the exit code.

    Args:
        options: of `add_review`.

    Raises:
        StoredError: one of the folders holds no results.
        RegradeError: --only names somebody who is not in the results.
        BatchError: with --accept: a batch is writing to the old results.
        OSError: a file can't be written.
    """
    if options.only and not options.accept:
        raise UsageError("--only needs --accept")
    for results in (old_results, new_results):
        if problem := overwritten(results, (options.csv, options.json)):
            raise UsageError(problem)
    read_classbook(old_results)  # before a lock is left in a folder of something else
    with lock(old_results) if options.accept else nullcontext():
        return _review(read_classbook(old_results), read_classbook(new_results), options, console)


def _review(old: Classbook, new: Classbook, options: argparse.Namespace, console: Console) -> int:
    with console.status("comparing"):
        changes = compare(old, new)
    show(console, changes, options.diff)
    _show_by_hand(console, old, changes)
    if options.csv:
        write_whole(options.csv, to_csv(changes))
    if options.json:
        write_whole(options.json, to_json(changes))
    if options.accept:
        return _accept(old, new, changes, options.only, console)
    return FELL_SHORT if totals(changes).changed else OK


def _show_by_hand(console: Console, old: Classbook, changes: list[Change]) -> None:
    """Warns that points by hand stay: they may be for a mistake that the new grading corrects."""
    changed = {change.student for change in changes if change.kind != SAME}
    stay = [each for each in read_adjustments(old) if each.student in changed]
    for each in stay:
        line = f"by hand, stays: {each.student} {each.on or 'the whole'} {each.points:+g}"
        console.print(printable(f"{line}: {each.comment}"), markup=False, highlight=False)
    if stay:
        where = f"hint: delete what no longer applies in {adjustments_path(old)}"
        console.print(printable(where), markup=False, highlight=False)


def _accept(
    old: Classbook, new: Classbook, changes: list[Change], only: Collection[str], console: Console
) -> int:
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("replacing", total=None)
        done = accept(old, new, changes, only, lambda: progress.advance(task))
    for student, why in done.kept.items():
        console.print(f"{printable(student)} stays: {why}", markup=False, highlight=False)
    console.print(f"{len(done.replaced)} reports replaced in {old.path}", markup=False,
                  highlight=False)  # fmt: skip
    if done.replaced and old.has_pages:
        console.print(PAGES_HINT.format(old.path), markup=False, highlight=False)
    return FELL_SHORT if done.kept else OK


def show(console: Console, changes: list[Change], whole: bool = False) -> None:
    """Shows a table of those who change, then the totals. `whole` shows all checks and whole
    messages."""
    table = Table(box=None, pad_edge=False)
    for name in ("student", "score", "change", "why"):
        table.add_column(name, overflow="fold")
    for change in changes:
        if change.kind != SAME:
            table.add_row(_who(change), _scores(change), _delta(change),
                          "\n".join(_why(change, whole)))  # fmt: skip
    if table.row_count:
        console.print(table)
        console.print()
    for line in total_lines(totals(changes)):
        console.print(line, highlight=False, markup=False)


def total_lines(found: Totals) -> list[str]:
    """The totals in words: how many go up, down and so on, and the mean change."""
    parts = [f"{found.counts[kind]} {word}" for kind, word in _WORDS.items() if found.counts[kind]]
    lines = [f"{sum(found.counts.values())} students: {', '.join(parts) or 'none'}"]
    if found.mean is not None:
        lines.append(f"mean change {found.mean:+.3g} points, of those with a score in both")
    return lines


def _who(change: Change) -> str:
    return _safe(f"{change.student} {change.name}".strip())


def _scores(change: Change) -> str:
    before = _score(change.score_before, change.points_before, change.state_before)
    after = _score(change.score_after, change.points_after, change.state_after)
    return f"{before} -> {after}"


def _score(score: float | None, points: float, state: str) -> str:
    return state or "not there" if score is None else f"{figure(score)}/{figure(points)}"


def _delta(change: Change) -> str:
    text = change.kind if change.delta is None else f"{change.delta:+.4g}"
    return f"[{_STYLES[change.kind]}]{text}[/]"


def _why(change: Change, whole: bool) -> list[str]:
    """The checks that end differently, then all else that differs besides seed and result."""
    shown = change.checks if whole else change.checks[:_CHECKS]
    lines = [_check(each, whole) for each in shown]
    more = len(change.checks) - len(shown)
    if more:
        lines.append(f"and {more} checks more; hint: --diff")
    told = {name: pair for name, pair in change.differs.items() if name != "seed"}
    if "submission" in told:
        told["submission"] = ("", "another")
    lines += [_safe(f"{n}: {_pair(*pair)}") for n, pair in told.items()]
    return lines


def _pair(before: str, after: str) -> str:
    return f"{before} -> {after}" if before else after or "none"


def _check(each: CheckChange, whole: bool) -> str:
    before, after = each.status_before or "not run", each.status_after or "not run"
    status = after if before == after else f"{before} -> {after}"
    score = f"{figure(each.score_before)} -> {figure(each.score_after)}"
    message = printable(each.message)
    short = message if whole or len(message) <= _MESSAGE else f"{message[:_MESSAGE]}..."
    return escape(f"{printable(each.check)} {status}, {score}{': ' if short else ''}{short}")


def _safe(text: str) -> str:
    return escape(printable(text))
