"""Who hands in a file that is not taken is told so where it is missed."""

from pathlib import Path

import pytest

from grader.grading.ignored_files import with_changed_headers, with_ignored_files
from grader.report.model import FAIL, PASS, Result
from grader.submission.reader import Submission

TAKEN = {"python/dlsys/autodiff.py": b"", "src/gpu_op.cu": b""}


def hint_of(message, *extra, status=FAIL, details=()):
    work = Submission(Path("work"), "", TAKEN, [], [], list(extra), "", [])
    result = Result("relu", "2.11", 1, 0, status, "", message=message, details=list(details))
    return with_ignored_files(result, work).hint


@pytest.mark.parametrize(
    ("message", "file"),
    [
        ("src/gpu_op.cu:11: my_tiles.h: No such file or directory", "src/my_tiles.h"),
        ("src/gpu_op.cu:11: lib/my_tiles.h: No such file or directory", "src/lib/my_tiles.h"),
        ("src/gpu_op.cu:11: 'my_tiles.h' file not found", "my_tiles.h"),
        ("import dlsys.autodiff raised ModuleNotFoundError: No module named 'dlsys.my_plan'",
         "python/dlsys/my_plan.py"),
        ("ModuleNotFoundError: No module named 'plans'", "python/plans/first.py"),
        ("ImportError: cannot import name 'my_plan' from 'dlsys' (python/dlsys/__init__.py)",
         "python/dlsys/my_plan.py"),
    ],
)  # fmt: skip
def test_a_file_that_is_missed_was_handed_in(message, file):
    hint = hint_of(message, "notes.txt", file, "src/other.h")
    assert hint == (
        f"{file} was handed in, but only python/dlsys/autodiff.py and src/gpu_op.cu count: "
        "write what it holds there"
    )
    assert hint_of("the import failed", file, details=[message]) == hint


def test_what_nobody_handed_in_or_nobody_misses_is_not_named():
    missing = "src/gpu_op.cu:11: my_tiles.h: No such file or directory"
    assert hint_of(missing, "src/tiles.h", "my_tiles.h.txt") == ""
    assert hint_of("No module named 'my_plan'", "my_plan.h") == ""
    assert hint_of("values differ", "src/my_tiles.h") == ""
    assert hint_of(missing, "src/my_tiles.h", status=PASS) == ""


def test_a_failed_build_names_the_headers_that_the_course_replaced():
    build = Result("build", "", 0, 0, FAIL, "", message="`my_sum` was not declared", hint="first")
    changed = ["README.md", "src/cuda_check.h", "src/dlarray.h"]
    assert with_changed_headers(build, changed).hint == (
        "first; the course's own src/cuda_check.h, src/dlarray.h replace those that were handed in"
    )
    assert with_changed_headers(build, ["README.md"]) == build
    passed = Result("build", "", 0, 0, PASS, "")
    assert with_changed_headers(passed, changed) == passed
