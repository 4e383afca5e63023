"""`grader class`: the figures and pages of a class."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from grader.base.files import write_whole
from grader.base.printable import printable
from grader.classroom.adjustments import of_nobody
from grader.classroom.leaderboard import pseudonyms, write_leaderboard
from grader.classroom.page import (
    ClassPageError,
    ClassResults,
    class_page,
    gather,
    standing_text,
    write_student_pages,
)
from grader.classroom.store import Classbook, called, nobody, read_classbook
from grader.classroom.tables import csv_text, write_csv
from grader.cli.outputs import overwritten

OK, USAGE = 0, 2
EVERYBODY = "all"

_EXAMPLES = """examples:
  grader class results/                                  results/class.html
  grader class results/ --students                       and a page for each student, linked
  grader class results/ --html class.html --csv figures/
                                                         elsewhere, and the figures as CSV
  grader class results/ --leaderboard board.html --salt @salt.txt --joined ids.txt
                                                         for those who agreed, under pseudonyms

The class page and the students' pages are the instructor's: they name students and show hidden
checks. A salt is made by: python3 -c 'import secrets; print(secrets.token_hex(16))' > salt.txt
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's parser."""
    command = commands.add_parser(
        "class",
        help="look at the results of a class",
        description="Makes the class page, and the same figures as CSV.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("results", type=Path, metavar="RESULTS", help="folder of grader batch")
    command.add_argument("--html", type=Path, metavar="FILE",
                         help="the class page; default: RESULTS/class.html")  # fmt: skip
    command.add_argument("--csv", type=Path, metavar="FOLDER",
                         help="write students.csv, items.csv and failures.csv there")  # fmt: skip
    command.add_argument("--students", action="store_true",
                         help="write each student's page beside the report")  # fmt: skip
    board = command.add_argument_group("leaderboard")
    board.add_argument("--leaderboard", type=Path, metavar="FILE",
                       help="write its page, and FILE.json beside it; with --csv, pseudonyms.csv "
                            "tells who has which pseudonym")  # fmt: skip
    board.add_argument("--salt", metavar="SECRET",
                       help="salt of the pseudonyms, or @FILE that holds it; a new salt makes new "
                            "pseudonyms")  # fmt: skip
    board.add_argument("--joined", metavar="FILE",
                       help="who agreed to be on it, one a line: id, login or e-mail address; or "
                            f"{EVERYBODY}")  # fmt: skip
    command.set_defaults(run=run)


def run(options: argparse.Namespace, console: Console) -> int:
    """Writes what the command line asks for.

    Raises:
        StoredError: there are no results.
        OSError: a file can't be read or written.
    """
    book = read_classbook(options.results)
    page = options.html or options.results / "class.html"
    _check(options, page)
    salt, joined = _salt(options.salt), _joined(options.joined, book)
    if options.leaderboard:
        pseudonyms([], salt)  # refuses a short salt before the reports are read
    results = _write(options, book, page, console)
    made = _leaderboard(options, results, salt, joined) if options.leaderboard else []
    stale = [printable(text) for text in [of_nobody(book)] if text]
    lines = [*stale, f"{standing_text(results.figures)}.", str(page), *made]
    for line in [*lines, str(options.csv)] if options.csv else lines:
        console.print(line, markup=False, highlight=False)
    return OK


def _write(
    options: argparse.Namespace, book: Classbook, page: Path, console: Console
) -> ClassResults:
    """Writes everything except the leaderboard. The students' pages come first, since the class
    page links to them."""
    with _bar(console, "reading reports", len(book.entries)) as step:
        results = gather(book, step)
    if options.students:
        with _bar(console, "writing students' pages", len(book.entries)) as step:
            write_student_pages(results, step)
    write_whole(page, class_page(results, page))
    if options.csv:
        write_csv(results, options.csv)
    return results


def _leaderboard(
    options: argparse.Namespace, results: ClassResults, salt: str, joined: set[str] | None
) -> list[str]:
    """Writes the board, and beside the other tables who is who on it; returns lines about both."""
    write_leaderboard(results.book, results.standings, options.leaderboard, salt, joined)
    if options.csv:
        ids = [e.student for e in results.book.entries if joined is None or e.student in joined]
        rows = [("student", "pseudonym"), *pseudonyms(ids, salt).items()]
        write_whole(options.csv / "pseudonyms.csv", csv_text(rows))
    return [str(options.leaderboard), str(options.leaderboard.with_suffix(".json"))]


def _check(options: argparse.Namespace, page: Path) -> None:
    """Refuses what can't be written, before anything is written."""
    for name, path in (("html", page), ("leaderboard", options.leaderboard)):
        if path and path.is_dir():
            raise ClassPageError(f"--{name} {path} is a folder")
    if options.csv and options.csv.exists() and not options.csv.is_dir():
        raise ClassPageError(f"--csv {options.csv} is not a folder")
    if bool(options.leaderboard) != bool(options.salt):
        raise ClassPageError(
            "--leaderboard needs --salt, and --salt needs --leaderboard; hint: grader class --help"
        )
    if options.leaderboard and not options.joined:
        raise ClassPageError("--leaderboard needs the ids of those who agreed to it; hint: "
                             f"--joined FILE, or --joined {EVERYBODY}")  # fmt: skip
    if options.joined and not options.leaderboard:
        raise ClassPageError("--joined needs --leaderboard")
    if options.leaderboard and options.leaderboard.suffix == ".json":
        raise ClassPageError(f"--leaderboard {options.leaderboard} names the page, and its "
                             "JSON file would replace it; hint: end it in .html")  # fmt: skip
    if options.leaderboard and options.leaderboard.resolve() == page.resolve():
        raise ClassPageError(f"--leaderboard and the class page are one file, {page}")
    if problem := overwritten(options.results, _outputs(options, page), _inputs(options)):
        raise ClassPageError(problem)


def _outputs(options: argparse.Namespace, page: Path) -> list[Path]:
    board = options.leaderboard
    tables = ("students.csv", "items.csv", "failures.csv", *(["pseudonyms.csv"] if board else []))
    outputs = [page, *(options.csv / name for name in tables if options.csv)]
    return [*outputs, board, board.with_suffix(".json")] if board else outputs


def _inputs(options: argparse.Namespace) -> list[Path]:
    salt, joined = options.salt or "", options.joined
    files = [Path(salt[1:])] if salt.startswith("@") else []
    return [*files, Path(joined)] if joined and joined != EVERYBODY else files


def _salt(text: str | None) -> str:
    """The salt, or the contents of the file named by @FILE."""
    if text is None or not text.startswith("@"):
        return text or ""
    try:
        return Path(text[1:]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ClassPageError(f"--salt {text}: {error}") from error


def _joined(name: str | None, book: Classbook) -> set[str] | None:
    """The ids of those who agreed; None for all. Refuses an id that nobody has."""
    if name is None or name == EVERYBODY:
        return None
    path = Path(name)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ClassPageError(f"--joined {path}: {error}") from error
    names, ids = called(book.entries), set[str]()
    for number, line in enumerate(lines, 1):
        name = line.strip()
        if name and name.casefold() not in names:
            raise ClassPageError(f"{path}:{number}: {nobody(name, names)}")
        ids.update(names.get(name.casefold(), ()))
    return ids


@contextmanager
def _bar(console: Console, words: str, total: int) -> Iterator[Callable[[], None]]:
    """A temporary progress bar; yields a function that advances it by one."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(words, total=total)
        yield lambda: progress.advance(task)
