"""Part 4 is graded on the reference's parts 1 to 3; with --own, on the student's own."""

import shutil
from pathlib import Path

import pytest

import catalogue
from grader.course.course import rubric_of
from grader.grading.runner import Options, grade
from grader.grading.self_check import self_check
from grader.report.model import FAIL, PASS

KIT = Path(__file__).resolve().parents[2]
AUTODIFF = "python/dlsys/autodiff.py"
MERGING = "python/dlsys/step/passes/subexpressions.py"
BROKEN = ("return [unbroadcast_op(output_grad, operand) for operand in node.inputs]",
          "return [output_grad, output_grad]")  # fmt: skip


@pytest.fixture(scope="module")
def course():
    return catalogue.later_course(catalogue.NETS)


@pytest.fixture(scope="module")
def work(course, tmp_path_factory):
    """Part 4 of the solution, on a part 1 with a wrong gradient."""
    folder = tmp_path_factory.mktemp("work")
    for name in (*rubric_of(course).files, AUTODIFF, MERGING):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KIT / "solution" / name, folder / name)
    text = (folder / AUTODIFF).read_text()
    assert text.count(BROKEN[0]) == 1
    (folder / AUTODIFF).write_text(text.replace(*BROKEN))
    return folder


def graded(course, folder, own=False, **how):
    return grade(folder, Options(rubric_of(course, own=own), "emulated", course=course, **how))


def test_the_skeleton_of_part_4_scores_0_and_the_solution_has_all_points(course):
    assert self_check(course, rubric_of(course), course.parts) == []


@pytest.mark.core
@pytest.mark.parametrize("way", ["another_way", "by_offsets"])
def test_the_tasks_written_in_another_way_have_all_points(course, way):
    report = graded(course, catalogue.FOLDER / "nets" / way, seed="5eed")
    assert {r.check: r.message for r in report.results if r.status != PASS} == {}
    assert report.score == report.points


def test_a_mistake_in_part_1_costs_nothing_in_part_4(course, work):
    report = graded(course, work)
    assert report.score == report.points
    assert any(note.startswith("changed, but the course's own are used:") for note in report.notes)


def test_with_own_part_4_stands_on_the_students_part_1(course, work):
    report = graded(course, work, own=True)
    found = {result.check: result.status for result in report.results}
    assert found["batch_norm_gradients"] == FAIL
    assert found["convolution"] == found["residual_block"] == PASS
    assert report.profile == "nets-own"


def test_with_own_nothing_of_part_3_is_given(course, work, tmp_path):
    shutil.copytree(work, tmp_path / "work")
    (tmp_path / "work" / MERGING).unlink()
    report = graded(course, tmp_path / "work", own=True)
    assert report.score == 0
    assert report.problem.startswith(f"{MERGING} was not handed in; with --own nothing of earlier")
