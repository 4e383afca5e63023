"""Measures what the audit costs a submission, on the reference, for the guide.

    .venv/bin/python tools/audit_costs.py [--runs 5]

Grades all checks of kernels with and without audits in turn, on the emulated GPU, and writes
handout/guide/audit_costs.md.
"""

import argparse
import dataclasses
import platform
import resource
import statistics
import sys
import time
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT)]

from grader.building.tree import REFERENCE, processors
from grader.checks.harness.traits import traits_of
from grader.checks.registry import CHECKS
from grader.course.rubric import AuditBudget, load_rubric
from grader.grading.runner import Options, grade

TEXT = KIT / "handout" / "guide" / "audit_costs.md"
WORDS = """\
On {processors} cores of {machine} the audits of the reference take {audits:.1f} s in all, beside
the checks: {cpu:.1f} s of processor more, and the grading of the {checks} kernels, {plain:.1f} s
without audits, takes {wall:.1f} s longer (medians of {runs} gradings).
"""


def graded(rubric, seed):
    """Seconds of the audits, of the processor, and until all is done."""
    started, before = time.monotonic(), spent()
    only = tuple(row.name for row in rubric.rows if traits_of(CHECKS.get(row.name)).kernels)
    report = grade(REFERENCE, Options(rubric, "emulated", only=only, seed=seed))
    assert report.score == sum(row.points for row in rubric.rows if row.name in only)
    audits = [result.facts.get("audit", {}).get("seconds", 0) for result in report.results]
    return sum(audits), spent() - before, time.monotonic() - started, len(only)


def spent():
    """Seconds of the processor, of this process and of its children that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(each)[:2]) for each in whose)


def main():
    """Measures, and writes the text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    rubric = load_rubric("default")
    plain = dataclasses.replace(rubric, audit=AuditBudget(total=0))
    graded(rubric, "00")  # what all share is built
    seeds = [f"{number:02x}" for number in range(1, runs + 1)]
    checks = graded(plain, "00")[3]
    pairs = [(graded(rubric, seed), graded(plain, seed)) for seed in seeds]
    audits, cpu, wall = (
        statistics.median(one[i] - other[i] for one, other in pairs) for i in range(3)
    )
    TEXT.write_text(
        WORDS.format(
            processors=processors(), machine=platform.machine(), audits=audits, cpu=cpu, wall=wall,
            plain=statistics.median(other[2] for _, other in pairs), runs=runs, checks=checks,
        )
    )  # fmt: skip
    print(TEXT.read_text(), end="")


if __name__ == "__main__":
    main()
