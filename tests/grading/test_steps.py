"""Part 3 is graded on the reference's parts 1 and 2; with --own, on the student's own part 1."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import catalogue
from grader.checks.speed.counted import KEPT
from grader.cli import main
from grader.course.course import rubric_of
from grader.grading.runner import Options, grade
from grader.grading.self_check import self_check
from grader.report.model import FAIL, PASS

KIT = Path(__file__).resolve().parents[2]
AUTODIFF = "python/dlsys/autodiff.py"
BROKEN = ("return [unbroadcast_op(output_grad, operand) for operand in node.inputs]",
          "return [output_grad, output_grad]")  # fmt: skip


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Part 3 of the solution, on a part 1 with a wrong gradient."""
    folder = tmp_path_factory.mktemp("work")
    for name in (*rubric_of(catalogue.later_course(catalogue.STEPS)).files, AUTODIFF):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KIT / "solution" / name, folder / name)
    text = (folder / AUTODIFF).read_text()
    assert text.count(BROKEN[0]) == 1
    (folder / AUTODIFF).write_text(text.replace(*BROKEN))
    return folder


def graded(folder, own):
    course = catalogue.later_course(catalogue.STEPS)
    return grade(folder, Options(rubric_of(course, own=own), "emulated", course=course))


def test_the_skeleton_of_part_3_scores_0_and_the_solution_has_all_points():
    course = catalogue.later_course(catalogue.STEPS)
    assert self_check(course, rubric_of(course), course.parts) == []


@pytest.mark.core
def test_the_tasks_written_in_another_way_have_all_points():
    report = graded(catalogue.FOLDER / "steps" / "another_way", own=False)
    assert {r.check: r.message for r in report.results if r.status != PASS} == {}
    assert report.score == 17
    kept = json.loads(KEPT.read_text())["calls"]
    for speed in (result.facts["speed"] for result in report.results if "speed" in result.facts):
        assert speed["counted"]["reference"] == kept[speed["case"]], "hint: reference_costs.py"


def test_without_a_solution_costs_are_compared_with_those_that_are_kept(tmp_path):
    course = replace(catalogue.later_course(catalogue.STEPS), solution=tmp_path / "none")
    asked = Options(rubric_of(course), "emulated", only=("speed_fast_row_sum",), course=course)
    report = grade(catalogue.FOLDER / "steps" / "another_way", asked)
    result = next(r for r in report.results if r.check == "speed_fast_row_sum")
    assert (result.status, result.score) == (PASS, 1)
    assert 0.9 < result.facts["speed"]["ratio"] < 1


def test_a_mistake_in_part_1_costs_nothing_in_part_3(work):
    report = graded(work, own=False)
    assert (report.score, report.points) == (17, 17)
    assert f"changed, but the course's own are used: {AUTODIFF}." in report.notes


def test_with_own_part_3_stands_on_the_students_part_1(work):
    report = graded(work, own=True)
    found = {result.check: result.status for result in report.results}
    assert found.pop("training_step") == FAIL
    assert set(found.values()) == {PASS}
    assert report.profile == "steps-own"


def test_with_own_nothing_of_part_1_is_given(work, tmp_path):
    shutil.copytree(work, tmp_path / "work")
    (tmp_path / "work" / AUTODIFF).unlink()
    report = graded(tmp_path / "work", own=True)
    assert report.score == 0
    assert report.problem.startswith(f"{AUTODIFF} was not handed in; with --own nothing of earlier")


def test_own_is_refused_where_all_is_the_students_own(work, capsys):
    assert main.main(["grade", str(work), "--own"]) == main.USAGE
    assert "profile default has no earlier parts" in capsys.readouterr().err


def test_part_3_is_not_graded_on_a_skeleton_that_has_it_solved(work, capsys):
    assert main.main(["grade", str(work), "--profile", "steps"]) == main.USAGE
    assert "grades part 3, which is solved in the skeleton of" in capsys.readouterr().err


def test_a_profile_that_ends_in_own_is_the_same():
    course = catalogue.later_course(catalogue.STEPS)
    assert rubric_of(course, "steps-own") == rubric_of(course, own=True)
    assert rubric_of(course, own=True).digest != rubric_of(course).digest
