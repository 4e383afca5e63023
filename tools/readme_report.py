"""Grades the submission that the README shows, and puts its report there and into the handout."""

import io
import re
import sys
import tempfile
from pathlib import Path

KIT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

from rich.console import Console

import catalogue
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import Report
from grader.report.terminal import show_report

README = catalogue.KIT / "README.md"
CHAPTER = catalogue.KIT / "handout/chapters/40-how-to-read-a-report.md.j2"
SHOWN = ("relu_leaky", "matmul_no_barrier")
SEED = "5eed"
BLOCK = re.compile(r"(<!-- report: .*? -->\n```\n).*?(```\n<!-- end of report -->)", re.S)
#: A part of the report in the chapter: its first line stays, so it says where the part begins.
PART = re.compile(r"(?<=```text\n)(.*\n)((?:.*\n)*?)(?=```)")


def shown() -> Report:
    """The report, with a seed of its own, so that it is the same every time but for the time."""
    mutants = {mutant.name: mutant for mutant in catalogue.mutants()}
    edits = tuple(edit for name in SHOWN for edit in mutants[name].edits)
    both = catalogue.Mutant("shown", "", "", (), edits)
    rubric = load_rubric("default")
    only = tuple(row.name for row in rubric.rows if not row.name.startswith("mnist"))
    with tempfile.TemporaryDirectory() as folder:
        work = catalogue.write(both, Path(folder))
        report = grade(work, Options(rubric, "emulated", seed=SEED, only=only))
    report.seconds = round(report.seconds, -1)
    return report


def report_text() -> str:
    """The report as the terminal shows it."""
    text = io.StringIO()
    show_report(Console(file=text, width=96), shown())
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines()) + "\n"


def part_of(report: str, first: str, lines: int) -> str:
    """The line `first` of the report, and the `lines` after it."""
    return "".join(report[report.index(first) :].splitlines(keepends=True)[: 1 + lines])


def main() -> None:
    """Writes the README, and the parts of its report that the chapter explains."""
    made = report_text()
    README.write_text(BLOCK.sub(lambda m: m[1] + made + m[2], README.read_text()))
    CHAPTER.write_text(
        PART.sub(lambda m: part_of(made, m[1], m[2].count("\n")), CHAPTER.read_text())
    )


if __name__ == "__main__":
    main()
