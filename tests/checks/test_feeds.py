"""Changed feed shapes: what is asked first, and what it costs in the classic rubric."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import catalogue
from grader.checks import feeds
from grader.checks.harness.child import ChildContext
from grader.course.rubric import load_rubric
from grader.grading.runner import grade
from grader.report.model import FAIL, PASS
from kit_grading import options, results

MUTANTS = {mutant.name: mutant for mutant in catalogue.mutants()}


@pytest.mark.parametrize("seed", range(10))
def test_vectors_come_last_behind_all_matrices_of_both_devices(monkeypatch, seed):
    asked = []
    for name in ("_elementwise", "_layer"):
        monkeypatch.setattr(feeds, name, lambda session, on_gpu: on_gpu)
    monkeypatch.setattr(
        feeds, "_feed_elementwise", lambda ctx, on_gpu, shape: asked.append((on_gpu, len(shape)))
    )
    monkeypatch.setattr(
        feeds, "_feed_layer", lambda ctx, on_gpu, *sizes: asked.append((on_gpu, len(sizes)))
    )
    session = SimpleNamespace(device=SimpleNamespace(finish=lambda words: None))
    rubric = load_rubric("classic")
    ctx = ChildContext(Path(), rubric, "emulated", str(seed), "feed_shapes", 1)
    feeds._check_shapes(session, ctx)
    first = next(place for place, (_, axes) in enumerate(asked) if axes == 1)
    before, behind = asked[:first], asked[first:]
    for on_gpu in (False, True):
        assert before.count((on_gpu, 2)) >= 5
        assert before.count((on_gpu, 3)) == 6  # of the layer, which is not asked again
        assert behind.count((on_gpu, 1)) == 2
    assert {axes for _, axes in behind} == {1, 2}


def test_in_the_classic_rubric_it_needs_the_build_alone_and_costs_nothing(tmp_path):
    """So whatever else is missing, whoever trains and validates with other batches is told."""
    row = next(row for row in load_rubric("classic").rows if row.name == "feed_shapes")
    assert (row.points, row.requires) == (0, ("build",))
    mutant = MUTANTS["feeds_other_shapes_in_one_array"]
    report = grade(catalogue.write(mutant, tmp_path), options("classic", only=("feed_shapes",)))
    found = results(report)
    assert {name: each.status for name, each in found.items()} == {
        "build": PASS, "feed_shapes": FAIL,
    }  # fmt: skip
    assert "elements differ" in found["feed_shapes"].message
    assert report.points == report.score == 0
