"""Options that several subcommands have."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

from grader.base.errors import UsageError
from grader.course.course import Course, kit_course, load_course
from grader.course.rubric import profiles
from grader.report.formats import Exports

#: Exit codes.
OK, FELL_SHORT, USAGE, GRADER_FAILED = 0, 1, 2, 3

PROFILE_HELP = (
    "another rubric: a name beside the course's rubric (in the kit: "
    f"{', '.join(profiles())}), or a path that ends in .toml"
)


def add_course(command: argparse.ArgumentParser) -> None:
    """Adds --course."""
    command.add_argument(
        "--course", type=Path, metavar="FILE",
        help="course.toml of an assignment of your own; default: the kit's",
    )  # fmt: skip


def add_profile(command: argparse.ArgumentParser) -> None:
    """Adds --profile and --own."""
    command.add_argument("--profile", default="", help=PROFILE_HELP)
    command.add_argument("--own", action="store_true",
                         help="where parts are graded on the reference's earlier ones: on the "
                         "student's own instead")  # fmt: skip


def chosen_course(options: argparse.Namespace) -> Course:
    """The course that --course names, or the kit's own.

    Raises:
        CourseError: the file is wrong.
    """
    return load_course(options.course) if options.course else kit_course()


def add_exports(command: argparse.ArgumentParser) -> None:
    """Adds the options for the forms of a report."""
    group = command.add_argument_group("reports")
    group.add_argument(
        "--html", type=Path, metavar="FILE", help="write one page of HTML that needs nothing else"
    )
    group.add_argument("--junit", type=Path, metavar="FILE", help="JUnit XML")
    group.add_argument("--gradescope", type=Path, metavar="FILE",
                       help="write results.json; Gradescope hides the hidden checks")  # fmt: skip
    group.add_argument(
        "--student",
        action="store_true",
        help="show only what a student may see, here, in HTML and in JUnit XML",
    )
    group.add_argument("--after-due-date", action="store_true",
                       help="with --student: show what opens after the due date, too")  # fmt: skip


def exports_of(options: argparse.Namespace) -> Exports:
    """The forms of a report that these options ask for."""
    names = [field.name for field in fields(Exports) if field.name != "json"]
    return Exports(**{name: getattr(options, name) for name in names})


def check_files(options: argparse.Namespace) -> None:
    """Makes the folders for the files to be written.

    Raises:
        UsageError: one of them can't be written.
    """
    for name in (field.name for field in fields(Exports)):
        path = getattr(options, name)
        if not isinstance(path, Path):
            continue
        if path.is_dir():
            raise UsageError(f"--{name} {path} is a folder")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--{name} {path}: {error}") from error
    if options.after_due_date and not options.student:
        raise UsageError("--after-due-date needs --student")
