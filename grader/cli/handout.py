"""`grader handout`: the students' handout, and the instructor's guide."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from grader.base.errors import UsageError
from grader.building.tree import KIT
from grader.cli.options import PROFILE_HELP, add_course, chosen_course
from grader.course.course import Course, rubric_of
from grader.course.rubric import Rubric
from grader.handout.chapters import HandoutError
from grader.handout.documents import Document, guide_document, student_document, write_document

_EXAMPLES = """examples:
  grader handout                       handout.html and handout.pdf, in build/handout/
  grader handout --html --output web/  the page alone
  grader handout --part 2              what belongs to part 2, and what belongs to every part
  grader handout --guide               the instructor's guide, in files of its own
  grader handout --course my-course/course.toml --output my-course/build

The PDF needs the extra `handout` and the system's Pango:
  apt-get install libpango-1.0-0 libpangoft2-1.0-0
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    command = commands.add_parser(
        "handout",
        help="make the students' handout, or the instructor's guide",
        description="Makes one page of HTML that needs nothing else, and a PDF.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--output", type=Path, default=KIT / "build" / "handout",
                         metavar="FOLDER", help="default: build/handout/")  # fmt: skip
    command.add_argument("--html", action="store_true", help="only the page")
    command.add_argument("--pdf", action="store_true", help="only the PDF; with --html both")
    command.add_argument("--part", type=int, action="append", metavar="N",
                         help="only this part; default: the parts of the course")  # fmt: skip
    command.add_argument("--guide", action="store_true", help="the instructor's guide instead")
    add_course(command)
    command.add_argument("--chapters", type=Path, metavar="FOLDER",
                         help="other chapters than the course's")  # fmt: skip
    command.add_argument("--profile", default="", help=PROFILE_HELP)
    command.set_defaults(run=_handout)


def _handout(options: argparse.Namespace, console: Console) -> int:
    course = chosen_course(options)
    rubric = rubric_of(course, options.profile)
    problem = _unusable(options, rubric)
    if problem:
        raise UsageError(problem)
    both = options.html == options.pdf
    try:
        document = _document(options, course, rubric)
        with console.status("drawing"):
            written = write_document(
                document, rubric, options.output, both or options.html, both or options.pdf
            )
    except HandoutError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 3
    for path in written:
        console.print(str(path), markup=False, highlight=False)
    return 0


def _document(options: argparse.Namespace, course: Course, rubric: Rubric) -> Document:
    if options.guide:
        return guide_document(course)
    parts = frozenset(options.part) if options.part else None
    return student_document(course, rubric, parts, options.chapters)


def _unusable(options: argparse.Namespace, rubric: Rubric) -> str:
    """What is wrong with the options, or ""."""
    unknown = sorted(set(options.part or ()) - set(rubric.parts))
    if unknown:
        return f"there is no part {unknown[0]}; hint: one of {', '.join(map(str, rubric.parts))}"
    if options.guide and (options.part or options.chapters):
        return "--part and --chapters are for the students' handout alone; hint: leave out --guide"
    if options.chapters and not options.chapters.is_dir():
        return f"--chapters {options.chapters} is not a folder"
    if options.output.exists() and not options.output.is_dir():
        return f"--output {options.output} is not a folder"
    return ""
