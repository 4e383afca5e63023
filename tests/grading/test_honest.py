"""Right work in eleven styles, as students write it: the grader gives each of them full points."""

import pytest

import many_seeds
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import PASS

pytestmark = pytest.mark.usefixtures("same_builds")

#: tools/many_seeds.py draws others.
SEED = "0ddba11"
HONEST = [name for name in many_seeds.RIGHT if name not in ("default", "classic")]


def test_there_are_eleven_styles():
    assert len(HONEST) == 11


@pytest.mark.core
@pytest.mark.parametrize("name", HONEST)
def test_honest_work_gets_full_points(name):
    profile, folder = many_seeds.RIGHT[name]
    rubric = load_rubric(profile)
    only = tuple(row.name for row in rubric.rows if not row.name.startswith("mnist"))
    report = grade(folder, Options(rubric, "emulated", seed=SEED, only=only))
    assert {r.check: r.message for r in report.results if r.status != PASS} == {}
    points = sum(row.points for row in rubric.rows if row.name in only)
    assert report.score == points
