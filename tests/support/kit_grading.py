"""How tests grade on the emulated GPU."""

import os
from pathlib import Path

from grader.course.rubric import load_rubric
from grader.grading.runner import Options

KIT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DLSYS_DATA") or KIT.parent / "shared" / "data" / "mnist")


def options(profile="default", **more):
    """Options of a grading; with MNIST where it is."""
    more.setdefault("data", DATA if DATA.is_dir() else None)
    return Options(rubric=load_rubric(profile), device="emulated", **more)


def results(report):
    """The results of a report by their checks."""
    return {result.check: result for result in report.results}
