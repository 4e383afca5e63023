"""All checks of a submission share one budget of processor time."""

import shutil

import pytest

from grader.checks.harness.traits import check
from grader.checks.registry import CHECKS
from grader.grading import runner
from grader.grading.runner import grade
from grader.report.model import BROKE_OFF, FAIL, PASS, SKIPPED
from grader.sandbox import watch
from kit_grading import KIT, options, results

PYTHON = "python/dlsys/autodiff.py"
ONLY = ("topological_order", "gradient_matmul")
#: Takes two seconds in each process, when it is imported.
BUSY = """

import time as _time
while _time.process_time() < 2.5:
    pass
"""


@pytest.fixture
def busy(tmp_path):
    """The solution, whose Python takes more than two seconds in each check."""
    (tmp_path / PYTHON).parent.mkdir(parents=True)
    shutil.copy(KIT / "solution" / PYTHON, tmp_path / PYTHON)
    with open(tmp_path / PYTHON, "a") as file:
        file.write(BUSY)
    return tmp_path


def graded(monkeypatch, work, budget, only=ONLY):
    """The results where all checks together may take so many seconds."""
    setup = options(only=only)
    seconds = sum(row.seconds for row in setup.rubric.rows if row.name in only)
    monkeypatch.setattr(runner, "_CPU_PER_SECOND", budget / seconds)
    return results(grade(work, setup))


def test_checks_none_of_which_takes_long_spend_the_budget_together(monkeypatch, busy):
    found = graded(monkeypatch, busy, 60)
    assert {name: (each.status, each.message) for name, each in found.items()} == {
        name: (PASS, "") for name in ONLY
    }
    found = graded(monkeypatch, busy, 3.5)
    said = [each.message for each in found.values() if each.status == FAIL]
    assert said, "nothing spent it"
    assert all("used up the 3 s of processor time that all checks have together" in m for m in said)


def test_a_check_that_begins_when_all_is_spent_fails_and_is_no_error(monkeypatch, busy):
    """An error would be the grader's, and would cost nothing."""
    only = (*ONLY, "gradient_add_multiply", "reverse_walk")
    found = graded(monkeypatch, busy, 1, only)
    assert {each.status for each in found.values()} <= {FAIL, SKIPPED}
    said = [each.message for each in found.values() if each.status == FAIL]
    assert len(said) > 1
    assert all("used up the 1 s of processor time" in message for message in said)


def test_the_reference_has_its_own_time_where_all_is_spent(monkeypatch):
    """It tells whose fault an unexpected exception is."""

    @check(device=False)
    def breaks(ctx):
        if ctx.view.budget is not None:
            ctx.view.budget.spend(1000)
            raise KeyError("an answer that nobody foresaw")
        with ctx.session() as session:
            session.autodiff()

    monkeypatch.setitem(CHECKS, "topological_order", breaks)
    monkeypatch.setattr(watch, "LOOK", 0.0)
    found = graded(monkeypatch, KIT / "solution", 1, ONLY[:1])["topological_order"]
    assert found.status == FAIL
    assert "an answer that nobody foresaw" in found.facts[BROKE_OFF]
