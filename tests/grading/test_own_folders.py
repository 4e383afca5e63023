"""Reports do not say where the grader's files lie, and submissions do not see its data."""

from dataclasses import replace
from pathlib import Path

import pytest

import catalogue
from grader.building.tree import KIT, cache_folder
from grader.course.rubric import load_rubric
from grader.grading.own_folders import without_folders
from grader.grading.runner import grade
from grader.grading.verdicts import bounded, result_of
from grader.report.model import ERROR, FAIL
from kit_grading import options, results


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"{KIT}/grader/student/worker.py:79: wrong", "worker.py:79: wrong"),
        (f"at {cache_folder()}/3f/emulator/src/launch.cc:12", "at launch.cc:12"),
        ("'/dev/shm/dlsys-scratch-a1_b2/tree/src/gpu_op.cu'", "'gpu_op.cu'"),
        (f"in {KIT}, and {KIT}/", "in ..., and ..."),
        ("src/gpu_op.cu:12, /etc/passwd, a / b", "src/gpu_op.cu:12, /etc/passwd, a / b"),
        (f"{KIT}s/of/others and /x{KIT}/y", f"{KIT}s/of/others and /x{KIT}/y"),
    ],
)
def test_a_file_of_the_graders_is_told_by_its_name(said, told):
    assert without_folders(said) == told
    assert without_folders([{"text": said, "line": 3}]) == [{"text": told, "line": 3}]


def test_all_texts_of_a_failure_are_without_folders_and_an_error_tells_them():
    row = next(row for row in load_rubric("default").rows if row.name == "relu")
    path = f"{cache_folder()}/launch.cc"
    texts = {"message": path, "hint": path, "details": [path], "findings": [{"text": path}]}
    failed = result_of(row, FAIL, **texts)
    shown = bounded(failed)
    found = [shown.message, shown.hint, *shown.details, shown.findings[0]["text"]]
    assert found == ["launch.cc"] * 4
    assert bounded(replace(failed, status=ERROR)).message == path


def test_a_submission_does_not_see_the_folder_of_the_data(tmp_path):
    """One of the system's, since all that a test makes lies where nobody sees it anyway."""
    if not catalogue.is_isolated():
        pytest.skip("children are not isolated here")
    found = sorted(path for path in Path("/usr/share").iterdir() if path.is_dir())
    folder = next(path for path in found if any(path.iterdir()))
    looks = f'import numpy as np\nimport os\nraise RuntimeError(os.listdir("{folder}"))\n'
    edits = ((catalogue.FILES[0], "import numpy as np\n", looks),)
    mutant = catalogue.Mutant("looks", "", "topological_order", (), edits)
    setup = options(only=("topological_order",), data=folder)
    report = grade(catalogue.write(mutant, tmp_path / "work"), setup)
    assert results(report)["topological_order"].message.endswith("raised RuntimeError: []")
