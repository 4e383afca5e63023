"""Python that reaches into its process is named to instructors; honest Python never is."""

import dataclasses
import sys

import pytest

import catalogue
import many_seeds
from grader.course.rubric import load_rubric
from grader.grading import reach
from grader.grading.runner import Options, grade
from grader.report.audience import student_view
from grader.report.model import FAIL

NAME = "python/dlsys/autodiff.py"
REACHING = {
    "import ctypes": "ctypes (line 1)",
    "import numpy\nfrom ctypes import util": "ctypes (line 2)",
    "import gc, sys": "gc (line 1)",
    "import inspect as i": "inspect (line 1)",
    "import sys\nf = sys._getframe(1)": "sys._getframe (line 2)",
    "from sys import modules": "modules (line 1)",
    "import sys as s\ns.modules.clear()": "s.modules (line 2)",
    "import sys\ngetattr(sys, 'modules')": "modules (line 2)",
    "import numpy\nnumpy.ctypeslib.ctypes": ".ctypes (line 2)",
    "__import__('gc')": "__import__ (line 1)",
    "from ._base import _LIB": "_LIB (line 1)",
    "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame.f_back": ".f_back",
    "x = a" + ".a" * 3000: "too deep to be looked at",
}


@pytest.mark.parametrize("source", REACHING, ids=REACHING.values())
def test_what_reaches_into_its_process_is_named_with_its_line(source):
    (note,) = reach.notes({NAME: source.encode(), "src/gpu_op.cu": b"import ctypes"})
    assert f"{NAME} reaches into its own process: " in note
    assert REACHING[source] in note


def test_a_program_of_any_depth_leaves_the_grader_whole():
    """Where a million calls are allowed, Python's parser would overrun its stack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        (note,) = reach.notes({NAME: b"x = a" + b".a" * 400_000})
        assert sys.getrecursionlimit() == 1_000_000
    finally:
        sys.setrecursionlimit(before)
    assert "too deep to be looked at" in note


@pytest.mark.parametrize("source", ["import sys\nsys.setrecursionlimit(10)", "net.modules", "x ="])
def test_what_anybody_writes_is_not(source):
    assert reach.notes({NAME: source.encode()}) == []


@pytest.mark.parametrize("name", many_seeds.RIGHT)
def test_honest_work_is_not_named(name):
    folder = many_seeds.RIGHT[name][1]
    taken = {NAME: (folder / NAME).read_bytes()}
    assert reach.notes(taken) == []


def test_instructors_see_it_and_students_do_not(tmp_path):
    for name in catalogue.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((catalogue.KIT / "solution" / name).read_bytes())
    with open(tmp_path / NAME, "a") as file:
        file.write("\nimport gc\n")
    rubric = load_rubric("default")
    rows = tuple(row for row in rubric.rows if row.name == "topological_order")
    options = Options(dataclasses.replace(rubric, rows=rows), "emulated")
    report = grade(tmp_path, options)
    (result,) = report.results
    assert result.status != FAIL and result.score == result.points
    assert [note for note in report.notes if "gc (line" in note]
    assert not [note for note in student_view(report).notes if "gc (line" in note]
