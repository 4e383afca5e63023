"""Kernels that pass are looked at once more: what that finds, and what it leaves alone."""

import dataclasses

import pytest

import catalogue
from grader.building import symbols
from grader.course.rubric import AuditBudget, load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import ERROR, FAIL, PASS

pytestmark = pytest.mark.usefixtures("same_builds")

RUBRIC = load_rubric("default")
MUTANTS = {mutant.name: mutant for mutant in catalogue.mutants()}


def graded(source, *checks, rubric=RUBRIC):
    report = grade(source, Options(rubric, "emulated", seed="a0d17", only=checks))
    return {result.check: result for result in report.results}


def test_the_reference_is_looked_at_and_passes():
    results = graded(catalogue.KIT / "solution", "relu", "reduce_sum_axis_zero", "softmax")
    for name in ("relu", "reduce_sum_axis_zero", "softmax"):
        assert results[name].status == PASS
        assert results[name].facts["audit"]["note"] == ""
        assert results[name].facts["audit"]["seconds"] > 0


@pytest.fixture(scope="module")
def lucky(tmp_path_factory):
    """A kernel without a barrier that it needs, right in the usual order of threads."""
    return catalogue.write(
        MUTANTS["reduce_sum_by_the_last_thread"], tmp_path_factory.mktemp("lucky")
    )


def test_a_race_fails_a_check_whose_values_are_right_and_no_other(lucky):
    results = graded(lucky, "reduce_sum_axis_zero", "relu")
    found = results["reduce_sum_axis_zero"]
    assert (found.status, found.score) == (FAIL, 0)
    assert found.message.startswith("every value is right, but by luck: race in shared memory")
    assert found.findings[0]["file"] == "src/gpu_op.cu"
    assert "__syncthreads()" in found.hint
    assert results["relu"].status == PASS


def test_without_time_nothing_is_looked_at(lucky):
    rubric = dataclasses.replace(RUBRIC, audit=AuditBudget(total=0))
    found = graded(lucky, "reduce_sum_axis_zero", rubric=rubric)["reduce_sum_axis_zero"]
    assert found.status == PASS
    assert "audit" not in found.facts


def test_who_leaves_the_checked_build_is_looked_at_and_keeps_no_other_check_from_it(tmp_path):
    """Both kernels break off in the checked build: neither passes in silence."""
    source = catalogue.write(MUTANTS["leaves_the_checked_build"], tmp_path)
    results = graded(source, "array_set", "relu", "reduce_sum_axis_zero")
    for name in ("array_set", "relu"):
        assert results[name].status == ERROR
        assert "ended with exit code 0" in results[name].message
    assert results["reduce_sum_axis_zero"].status == PASS
    assert results["reduce_sum_axis_zero"].facts["audit"]["note"] == ""


def test_who_keeps_findings_from_arriving_is_looked_at(tmp_path, monkeypatch):
    """As if `close` and `getenv` could be called without a word."""
    monkeypatch.setattr(symbols, "is_harmless", lambda name, own: True)
    source = catalogue.write(MUTANTS["closes_the_findings"], tmp_path)
    found = graded(source, "relu")["relu"]
    assert (found.status, found.score) == (ERROR, 0)
    assert "its findings do not arrive" in found.message


def test_what_is_called_in_the_checked_build_alone_is_looked_at(tmp_path):
    hides = MUTANTS["sleeps_in_the_checked_build"]
    edits = tuple((*where, text.replace("sleep(1000)", "sync()")) for *where, text in hides.edits)
    source = catalogue.write(dataclasses.replace(hides, edits=edits), tmp_path)
    found = graded(source, "relu")["relu"]
    assert found.status == ERROR
    assert "the kernels call sync there alone" in found.message


def test_who_uses_up_the_time_is_looked_at_and_who_then_has_none(tmp_path):
    rubric = dataclasses.replace(RUBRIC, audit=AuditBudget(seconds=8, total=8))
    source = catalogue.write(MUTANTS["sleeps_in_the_checked_build"], tmp_path)
    results = graded(source, "reduce_sum_axis_zero", "softmax", rubric=rubric)
    assert [results[name].status for name in ("reduce_sum_axis_zero", "softmax")] == [ERROR] * 2
    used = "reduce_sum_axis_zero did not end, and used up the time for audits"
    assert used in results["softmax"].message
