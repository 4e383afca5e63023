"""Every wrong submission of tests/submissions/ fails the check that it names, with its words.

Graded on the emulated GPU. Those that only isolation can catch run where there is some.
"""

import os
import re
from pathlib import Path

import pytest

import catalogue
import catalogue_table
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import ERROR, PASS
from shares import share

pytestmark = pytest.mark.usefixtures("same_builds")

KIT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DLSYS_DATA") or KIT.parent / "shared" / "data" / "mnist")
MUTANTS = [*catalogue.mutants(), *catalogue.mutants(*catalogue.LATER)]
RUBRICS = [load_rubric(name) for name in ("speed", *catalogue.LATER)]
#: The same at every run of the tests. Whether what is `missed` is met by chance depends on the
#: seed: there it is that of the table.
SEED = "c0ffee"
#: Without --all some: of each check, and of each family and whatever else makes it another way.
ON_THE_EMULATED_GPU = share(
    [mutant for mutant in MUTANTS if mutant.device != "cuda"],
    12,
    lambda m: (m.course, m.check, m.status, m.opinion, m.audit, m.family),
)


def grade_mutant(mutant, folder):
    rubric, course = mutant.setting
    rubric = mutant.rubric(rubric, mutant.opinion)
    data = DATA if DATA.is_dir() else None
    seed = catalogue_table.SEED if mutant.is_missed("emulated") else SEED
    setup = Options(
        rubric=rubric, device="emulated", data=data, only=mutant.only, seed=seed, course=course
    )
    return grade(catalogue.write(mutant, folder), setup)


@pytest.fixture(scope="module")
def isolated():
    return catalogue.is_isolated()


@pytest.mark.core
@pytest.mark.parametrize("mutant", ON_THE_EMULATED_GPU, ids=lambda mutant: mutant.name)
def test_a_wrong_submission_fails_the_check_it_names(mutant, tmp_path, isolated):
    if mutant.needs and not isolated:
        pytest.skip("children are not isolated here")
    before = catalogue.children()
    report = grade_mutant(mutant, tmp_path)
    assert catalogue.children() - before == set(), "a process has outlived its check"
    errors = [r.check for r in report.results if r.status == ERROR]
    assert errors == ([mutant.check] if mutant.status == ERROR else [])
    if mutant.is_missed("emulated"):
        found = {r.check: r.status for r in report.results}
        assert found[mutant.check] == PASS, "caught at last; hint: remove `missed`"
    else:
        assert mutant.verdict(report) == "", mutant.title


def test_every_check_is_failed_by_some_wrong_submission():
    found = [mutant for mutant in MUTANTS if not mutant.is_missed("emulated")]
    caught = {mutant.check for mutant in found if not mutant.needs}
    assert {row.name for rubric in RUBRICS for row in rubric.rows} - caught == set()


def test_every_task_has_an_honest_mistake():
    rows = {row.name: row.task for rubric in RUBRICS for row in rubric.rows}
    honest = [mutant for mutant in MUTANTS if not mutant.family]
    tasks = {task for rubric in RUBRICS for task in rubric.tasks}
    assert {rows[mutant.check] for mutant in honest} >= tasks


def test_every_edit_of_the_solution_is_still_possible(tmp_path):
    for mutant in MUTANTS:
        catalogue.write(mutant, tmp_path / mutant.name)


def test_no_submission_stands_twice_for_one_check():
    works = [(mutant.edits, mutant.check) for mutant in MUTANTS]
    assert len(set(works)) == len(works)


def test_the_table_shows_every_submission():
    shown = set(re.findall(r"^\| .* \(`(\w+)`\) \|", catalogue_table.TABLE.read_text(), re.M))
    assert shown == {mutant.name for mutant in MUTANTS}, (
        "hint: run tools/catalogue_table.py for the submissions that are new"
    )


def test_the_guide_shows_what_the_second_search_tried():
    assert catalogue_table.SEARCH.read_text() == catalogue_table.of_search(2, MUTANTS), (
        "hint: run tools/catalogue_table.py --table-only"
    )
