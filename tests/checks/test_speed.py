"""Speed: what it is worth in points, and the batches behind it, run on the emulated GPU with times
that are made up."""

import contextlib
import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import catalogue
import speed_check
from grader.checks.harness.child import ChildContext
from grader.checks.harness.outcomes import Flag, NotHere
from grader.checks.registry import CHECKS
from grader.checks.speed import checks, fast_kernels
from grader.checks.speed.batches import Sheet, TimedChild, pairs
from grader.checks.speed.clock import Lap
from grader.course.rubric import RubricError, load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import ERROR, FAIL, PASS, SKIPPED
from grader.student.remote import ChildDied

KIT = Path(__file__).resolve().parents[2]


def row(**more):
    first = load_rubric("default").rows[0]
    return dataclasses.replace(first, name="speed_softmax", points=1, **more)


# Points.


@pytest.mark.parametrize(
    "ratio, share",
    [(0.01, 0), (0.25, 0), (0.5, 0.5), (math.sqrt(0.5), 0.75), (1, 1), (7, 1), (0, 0), (-1, 0)],
)
def test_each_doubling_of_the_speed_is_worth_the_same(ratio, share):
    assert row(zero_ratio=0.25, full_ratio=1.0).share(ratio) == pytest.approx(share)


def test_without_ratios_passing_is_worth_all_points():
    assert row().share(0.001) == 1


RUBRIC = """title = "t"
description = "d"
files = []
sizes = "published"
[parts]
[tasks]
[[check]]
name = "{name}"
points = 1
{lines}
"""


@pytest.mark.parametrize(
    "name, lines, words",
    [
        ("speed_x", "zero_ratio = 0.5", "give both"),
        ("speed_x", "full_ratio = 0.5", "give both"),
        ("speed_x", "zero_ratio = 1\nfull_ratio = 0.5", "the first smaller"),
        ("speed_x", "zero_ratio = 1\nfull_ratio = 1", "the first smaller"),
        (
            "speed_x",
            "zero_ratio = 0\nfull_ratio = 1",
            "zero_ratio is 0, expected a number above 0",
        ),
        (
            "speed_x",
            "zero_ratio = 1\nfull_ratio = inf",
            "full_ratio is inf, expected a number above 0",
        ),
        (
            "speed_x",
            "zero_ratio = 1\nfull_ratio = nan",
            "full_ratio is nan, expected a number above 0",
        ),
        ("relu", "zero_ratio = 0.5\nfull_ratio = 1", "only checks of speed"),
    ],
)
def test_ratios_that_make_no_sense_are_refused(tmp_path, name, lines, words):
    path = tmp_path / "rubric.toml"
    path.write_text(RUBRIC.format(name=name, lines=lines))
    with pytest.raises(RubricError, match=words):
        load_rubric(str(path))


def test_ratios_are_read(tmp_path):
    path = tmp_path / "rubric.toml"
    path.write_text(RUBRIC.format(name="speed_x", lines="zero_ratio = 0.25\nfull_ratio = 0.75"))
    (read,) = load_rubric(str(path)).rows
    assert (read.zero_ratio, read.full_ratio) == (0.25, 0.75)


# The arrays.


def test_a_sheet_knows_what_was_copied_and_changed():
    block = np.random.default_rng(1).uniform(-1, 1, (5, 7)).astype(np.float32)
    sheet, whole = Sheet(block, 3, 13), np.concatenate([block[3:], block, block, block])[:13]
    sheet.change(11, 2, np.float32([8, 9]))
    sheet.change(11, 3, np.float32([5]))
    sheet.change(0, 0, np.float32([4]))
    whole[11, 2:4], whole[0, 0] = (8, 5), 4
    assert np.array_equal(sheet.rows(9, 13), whole[9:13])
    assert np.array_equal(sheet.wide(), whole)
    assert np.allclose(sheet.column_sums(), whole.sum(axis=0, dtype=np.float64))
    assert np.allclose(sheet.column_sums(np.abs), np.abs(whole).sum(axis=0, dtype=np.float64))
    assert not np.any(block == 8)


def test_two_matrices_never_meet_twice_and_take_turns():
    met = [tuple(pairs(10, 2, number)) for number in range(100)]
    assert len(set(met)) == 100
    assert all(a[0] != b[0] and a[1] != b[1] for a, b in itertools.pairwise(met))


def context(backend):
    return ChildContext(Path(), load_rubric("default"), backend, "5eed", "speed_softmax", 60)


@pytest.mark.parametrize("name", checks.CHECKS)
def test_on_the_emulated_gpu_speed_is_not_measured(name):
    with pytest.raises(NotHere, match=r"^speed is measured on a real GPU only$"):
        CHECKS[name](context("emulated"))


class Dying:
    """A reference that does not come up."""

    def __init__(self, *_, **__):
        raise ChildDied(-11, "laying out arrays")


def test_a_reference_that_fails_is_not_the_submission_s_failure(monkeypatch):
    monkeypatch.setattr(checks, "TimedChild", Dying)
    ctx = context("emulated")
    ctx.reference = lambda: contextlib.nullcontext(KIT / "solution")
    monkeypatch.setattr(checks, "BACKENDS", ("emulated",))
    with pytest.raises(Flag, match="the reference failed: the process was killed"):
        checks.speed_softmax(ctx)


# From end to end, with times that are made up.


class Made(TimedChild):
    """Carries out its batches, and says they took what `times`, set on it, says of the kernel."""

    def batch(self, calls):
        super().batch(calls)
        own, events = self.times[self.case.kernel]
        return Lap(0.01 + calls * (own if self.verified else 1e-3), events)


@pytest.fixture(scope="module")
def emulated():
    """The checks of speed run on the emulated GPU, where kernels need not have been right."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "BACKENDS", ("emulated",))
        patch.setattr(checks, "TimedChild", Made)
        yield


def scored():
    rubric = speed_check.scored()
    rows = [
        dataclasses.replace(row, requires=("build",)) if row.name in checks.CHECKS else row
        for row in rubric.rows
    ]
    return Options(dataclasses.replace(rubric, rows=tuple(rows)), "emulated", only=checks.CHECKS)


@pytest.fixture(scope="module")
def report(emulated):
    Made.times = {
        "matrix_multiply": (2e-3, None),
        "softmax": (1e-3, 9.0),
        "matrix_elementwise_add": (5e-3, None),
        "reduce_sum_axis_zero": (1e-3, None),
    }
    return grade(KIT / "solution", scored())


def outcome(report, check):
    return next(result for result in report.results if result.check == check)


def test_half_the_speed_is_half_the_points(report):
    result = outcome(report, "speed_matrix_multiply")
    assert (result.status, result.score, result.points) == (PASS, 0.5, 1), result
    told = result.facts["speed"]
    assert told["summary"].startswith("matrix_multiply: 0.50 times the reference's speed")
    assert told["student_us"]["median"] == pytest.approx(2000)


def test_the_speed_of_the_reference_is_all_points(report):
    result = outcome(report, "speed_reduce_sum_axis_zero")
    assert (result.status, result.score) == (PASS, 1), result


def test_too_slow_for_any_points_is_a_failure_with_its_figures(report):
    result = outcome(report, "speed_matrix_elementwise_add")
    assert (result.status, result.score) == (FAIL, 0)
    assert result.message == "0.20 of the reference's speed; points begin above 0.25"
    assert result.facts["speed"]["reached"]["gigabytes_per_second"] > 0


def test_a_time_that_cannot_be_true_leaves_the_points_open(report):
    result = outcome(report, "speed_softmax")
    assert (result.status, result.score, result.points) == (ERROR, 0, 1)
    assert "the device's events say" in result.message and result.details == []
    assert report.has_errors


def test_the_outputs_of_timed_calls_are_verified(emulated, tmp_path):
    Made.times = dict.fromkeys(
        ("matrix_multiply", "softmax", "matrix_elementwise_add", "reduce_sum_axis_zero"),
        (1e-3, None),
    )
    # What needs streams that overlap is seen on a real GPU alone.
    cheats = [m for m in catalogue.mutants() if m.check in checks.CHECKS and "stream" not in m.name]
    edits = tuple(
        (file, find, text.replace("10000000", "3000").replace("3000000", "3000"))
        for cheat in cheats
        for file, find, text in cheat.edits
    )
    together = dataclasses.replace(cheats[0], edits=edits)
    found = grade(catalogue.write(together, tmp_path), scored())
    assert len(cheats) == 3
    for cheat in cheats:
        assert dataclasses.replace(cheat, edits=()).verdict(found) == "", cheat.name
    assert outcome(found, "speed_reduce_sum_axis_zero").status == PASS


def test_points_for_speed_count_for_nobody_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(checks, "BACKENDS", ("cuda",))
    options = dataclasses.replace(scored(), only=("speed_softmax",))
    found = grade(KIT / "solution", options)
    result = outcome(found, "speed_softmax")
    assert (result.status, result.message) == (SKIPPED, "speed is measured on a real GPU only")
    assert (found.score, found.points) == (0, 0)


def test_on_a_gpu_the_kernels_of_part_3_are_timed_beside_the_reference(monkeypatch):
    for module in (checks, fast_kernels):
        monkeypatch.setattr(module, "BACKENDS", ("emulated",))
    monkeypatch.setattr(checks, "TimedChild", Made)
    Made.times = {
        "fast_matrix_multiply": (2e-3, None),
        "fast_row_sum": (1e-3, None),
        "fast_softmax": (5e-3, None),
    }
    rubric = load_rubric("steps")
    rows = [
        dataclasses.replace(row, requires=("build",) * (row.name != "build")) for row in rubric.rows
    ]
    course = catalogue.later_course(catalogue.STEPS)
    asked = Options(dataclasses.replace(rubric, rows=tuple(rows)), "emulated", course=course,
                    only=tuple(fast_kernels.CHECKS))  # fmt: skip
    report = grade(KIT / "solution", asked)
    found = {name: outcome(report, f"speed_{name}") for name in Made.times}
    assert {name: (each.status, each.score) for name, each in found.items()} == {
        "fast_matrix_multiply": (PASS, round(2 * math.log(2) / math.log(3.2), 2)),
        "fast_row_sum": (PASS, 1),
        "fast_softmax": (FAIL, 0),
    }
