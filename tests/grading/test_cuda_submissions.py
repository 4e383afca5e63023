"""Wrong submissions that only a real GPU shows: the emulated one has a single order of work."""

import os

import pytest

import catalogue
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import FAIL

FOLDER = catalogue.FOLDER / "cuda"


def of_cuda():
    """The submissions in the folder `cuda`."""
    everywhere, catalogue.FOLDER = catalogue.FOLDER, FOLDER
    try:
        return catalogue.mutants()
    finally:
        catalogue.FOLDER = everywhere


@pytest.mark.parametrize("mutant", of_cuda(), ids=lambda mutant: mutant.name)
def test_a_submission_for_a_real_gpu_is_an_edit_of_the_solution(mutant, tmp_path):
    work = catalogue.write(mutant, tmp_path)
    assert any(replace in (work / name).read_text() for name, _, replace in mutant.edits)


@pytest.mark.skipif(os.environ.get("KIT_DEVICE") != "cuda", reason="KIT_DEVICE is not cuda")
@pytest.mark.parametrize("mutant", of_cuda(), ids=lambda mutant: mutant.name)
def test_a_real_gpu_shows_it(mutant, tmp_path):
    options = Options(load_rubric("speed"), "cuda", only=(mutant.check,))
    report = grade(catalogue.write(mutant, tmp_path), options)
    result = next(r for r in report.results if r.check == mutant.check)
    assert result.status == FAIL, result
    for words in mutant.says:
        assert words in result.message + result.hint
