"""Grades the submission that the README shows, and puts its report there."""

import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

import catalogue
from grader.report import show_report
from grader.results import Report
from grader.rubric import load_rubric
from grader.runner import Options, grade

README = catalogue.KIT / "README.md"
SHOWN = ("relu_leaky", "matmul_no_barrier")
SEED = "5eed"
BLOCK = re.compile(r"(<!-- report: .*? -->\n```\n).*?(```\n<!-- end of report -->)", re.S)


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


def main() -> None:
    """Writes the README."""
    text = README.read_text()
    README.write_text(BLOCK.sub(lambda m: m[1] + report_text() + m[2], text))


if __name__ == "__main__":
    main()
