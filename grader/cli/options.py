"""Options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.course.course import Course, kit_course, load_course
from grader.course.rubric import profiles

PROFILE_HELP = (
    f"another rubric: the name of one beside the course's (for the kit's own: "
    f"{', '.join(profiles())}), or a path that ends in .toml"
)


def add_course(command: argparse.ArgumentParser) -> None:
    """Adds --course."""
    command.add_argument(
        "--course", type=Path, metavar="FILE",
        help="course.toml of an assignment of your own; default: the kit's",
    )  # fmt: skip


def chosen_course(options: argparse.Namespace) -> Course:
    """The course of --course, or the kit's own.

    Raises:
        CourseError: the file is wrong.
    """
    return load_course(options.course) if options.course else kit_course()
