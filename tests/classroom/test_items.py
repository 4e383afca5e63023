"""The figures of a class, against values that were computed by hand."""

import math

import pytest

from grader.classroom.statistics import (
    EVERYBODY,
    NOBODY,
    WRONG_WAY,
    alike,
    analyse,
    cronbach_alpha,
    distribution,
    failures,
    item,
    spread,
    upper_lower,
)
from grader.classroom.store import (
    ERROR,
    GRADED,
    MISSING,
    PENDING,
    UNREADABLE,
    CheckOutcome,
    Entry,
    Standing,
)

MARKS = {"p": "pass", "f": "fail", "s": "skipped", "e": "error"}


def standing(student, marks, state=GRADED, messages=None, **more):
    """One whose checks a, b, c... end as the letters of `marks` say; a pass is worth a point."""
    outcomes = {}
    for name, mark in zip("abcdefgh", marks, strict=False):
        message = (messages or {}).get(name, {"s": "needs build", "f": "wrong"}.get(mark, ""))
        outcomes[name] = CheckOutcome(MARKS[mark], float(mark == "p"), 1.0, message)
    values = {"score": float(marks.count("p")), "points": float(len(marks)), "seconds": 2.0}
    return Standing(Entry(student, student), state, outcomes=outcomes, **{**values, **more})


def graded(*rows):
    return [standing(f"s{number}", marks) for number, marks in enumerate(rows)]


def test_quantiles_lie_between_neighbours():
    found = spread([4.0, 2.0, 3.0, 1.0])
    quantiles = (found.smallest, found.lower, found.median, found.upper, found.p90, found.largest)
    assert quantiles == (1, 1.75, 2.5, 3.25, 3.7, 4)
    assert spread([7.0]).p90 == 7


def test_a_spread_of_scores_is_that_of_the_book():
    found = spread([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert found.count == 8 and found.mean == 5
    assert found.deviation == pytest.approx(math.sqrt(32 / 7))
    assert (found.smallest, found.median, found.largest) == (2, 4.5, 9)
    assert spread([]) is None
    assert spread([3.0]).deviation == 0


def test_bins_suit_the_points_and_full_points_stand_apart():
    bins = distribution([0, 24, 24, 24.5, 25], 25)
    assert len(bins) == 26
    assert [(b.low, b.high, b.count) for b in bins if b.count] == [
        (0, 1, 1),
        (24, 25, 3),
        (25, 25, 1),
    ]
    for points, number in ((100, 21), (15, 16), (4, 5), (1, 2), (0, 0), (101, 22), (1000, 21)):
        assert len(distribution([points], points)) == number, points
    fine = distribution([0.1 + 0.2, 0.5], 1)
    assert [(b.low, b.count) for b in fine if b.count] == [(0.3, 1), (0.5, 1)]


def test_every_score_is_in_one_bin_even_beyond_the_points():
    for points in (1, 7, 15, 25, 33, 100, 137.5):
        scores = [points * part / 64 for part in range(70)]
        assert sum(b.count for b in distribution(scores, points)) == len(scores)


def test_alpha_is_cronbachs():
    # Points of a: 1 1 1 0 0, of b: 1 1 0 0 0; variances 0.24 each, of the sum 0.8.
    students = [each.outcomes for each in graded("pp", "pp", "pf", "ff", "ff")]
    assert cronbach_alpha(students) == pytest.approx(2 * (1 - 0.48 / 0.8))
    with_constant = [each.outcomes for each in graded("ppp", "ppp", "pfp", "ffp", "ffp")]
    assert cronbach_alpha(with_constant) == pytest.approx(0.8)


@pytest.mark.parametrize("rows", [(), ("pp", "ff"), ("pf",) * 6, ("p", "p", "f", "f", "f"),
                                  ("pf", "fp", "pf", "fp", "pf")])  # fmt: skip
def test_alpha_is_none_where_it_makes_no_sense(rows):
    assert cronbach_alpha([each.outcomes for each in graded(*rows)]) is None


def test_correlation_leaves_the_checks_own_points_out():
    # Scores in the rest 1 2 3 4 5, a passed by the last two: 3 / sqrt(1.2 * 10).
    rows = graded("fpffff", "fppfff", "fpppff", "pppppf", "pppppp")
    assert item("a", rows).correlation == pytest.approx(3 / math.sqrt(12))
    assert item("a", rows).share == pytest.approx(0.4)


def test_correlation_is_none_where_all_are_equal_or_few():
    assert item("a", graded("pp", "pf", "pp", "pf", "pp")).correlation is None
    assert item("a", graded("pf", "fp", "pp", "ff")).correlation is None


def test_upper_less_lower_compares_27_percent():
    rows = [(float(score), score >= 8 or score == 1) for score in range(1, 11)]
    assert upper_lower(rows) == pytest.approx(1 - 1 / 3)


def test_ties_at_the_border_of_a_group_do_not_depend_on_the_order():
    # All ten tie, four of them passed: 0.4 in both groups.
    assert upper_lower([(5.0, number < 4) for number in range(10)]) == pytest.approx(0)
    # Three places above: one for 9, two for the four at 5, half of whom passed.
    rows = [(9.0, True), *((5.0, p) for p in (True, False, True, False)), *[(1.0, False)] * 5]
    assert upper_lower(rows) == upper_lower(rows[::-1]) == pytest.approx((1 + 2 * 0.5) / 3)
    assert upper_lower(rows[:4]) is None


def test_flags_name_what_an_instructor_should_look_at():
    # c is passed by the weak alone.
    rows = graded(*["pfpfff"] * 6, *["pffppp"] * 6)
    assert item("a", rows).flags == (EVERYBODY,)
    assert item("b", rows).flags == (NOBODY,)
    assert item("c", rows).flags == (WRONG_WAY,)
    assert item("c", rows).correlation == pytest.approx(-1)
    assert item("c", rows).upper_lower == pytest.approx(-1)
    assert item("d", rows).flags == ()


def test_a_little_below_zero_is_chance_and_no_flag():
    rows = graded("pffp", "fpff", "pfpf", "fppf", "pppp", "fppp", "pfff")
    found = item("a", rows)
    assert -2 / math.sqrt(7) < found.correlation < 0
    assert WRONG_WAY not in found.flags


def test_who_could_not_run_a_check_counts_unless_the_machine_could_not():
    rows = graded("ps", "ps", "pp", "pf")
    rows[0].outcomes["b"] = CheckOutcome("skipped", 0.0, 0.0, "a real GPU alone is timed")
    found = item("b", rows)
    assert (found.passed, found.failed, found.skipped, found.away) == (1, 1, 2, 1)
    assert found.share == pytest.approx(1 / 3)


def test_a_check_that_the_machine_can_not_run_is_not_flagged():
    rows = graded("ps", "ps", "ps", "ps", "ps", "pf", "pf")
    for row in rows[:5]:
        row.outcomes["b"] = CheckOutcome(
            "skipped", 0.0, 0.0, "speed is measured on a real GPU only"
        )
    found = item("b", rows)
    assert (found.failed, found.skipped, found.away) == (2, 5, 5)
    assert found.share is found.correlation is found.upper_lower is None
    assert found.flags == ()


def test_students_without_a_score_are_counted_and_are_no_zeros():
    rows = [
        *graded("pp", "pf", "pp", "pf", "pp"),
        standing("gone", "", MISSING),
        standing("waits", "", PENDING),
        standing("odd", "ss", UNREADABLE, problem="none of a.py found in 3 files"),
        standing("odder", "ss", UNREADABLE, problem="none of a.py found in 12 files"),
        standing("ours", "pe", ERROR, problem="b: OSError: the disk is full"),
    ]
    figures = analyse(rows, 2)
    assert figures.states == {
        "graded": 5, "unreadable": 2, "missing": 1, "pending": 1, "error": 1
    }  # fmt: skip
    assert figures.scores.count == 5 and figures.scores.smallest == 1
    assert sum(b.count for b in figures.bins) == 5
    a, b = figures.items
    assert (a.passed, a.failed, a.skipped, a.error) == (6, 0, 0, 0)
    assert (b.passed, b.failed, b.skipped, b.error, b.share) == (3, 2, 0, 1, 0.6)
    assert [(f.count, f.message) for f in figures.faults] == [(1, "b: OSError: the disk is full")]
    (unreadable,) = [f for f in figures.failures if not f.check]
    assert unreadable.kind == "none of a.py found in N files"
    assert [entry.student for entry in unreadable.students] == ["odd", "odder"]


def test_a_class_of_nobody_has_figures():
    figures = analyse([], 25)
    assert figures.scores is None and figures.items == [] and figures.failures == []
    assert sum(b.count for b in figures.bins) == 0


def test_messages_are_alike_but_for_their_numbers():
    first = (
        "add((33, 40)): 40 of 1,320 elements differ, the first is [32, 0]: got nan, expected 0.3"
    )
    second = "add((1025,)): 7 of 1,025 elements differ, the first is [8]: got nan, expected -1e-05"
    assert alike(first) == alike(second)
    assert alike(first) == (
        "add((N)): N of N elements differ, the first is [N]: got nan, expected N"
    )  # fmt: skip
    every = "add((1025,)): 1,025 of 1,025 elements differ, the first is [0]: got 0, expected 1.5"
    assert alike(every) == (
        "add((N)): all elements differ, the first is [N]: got N, expected N"
    )  # fmt: skip
    assert alike("no float32, at 0x7f3a, 60s\nsecond line") == "no float32, at N, Ns"
    assert alike("") == alike("\n \n") == ""
    assert len(alike("x" * 10_000)) < 400


def test_failures_stand_by_what_they_share_the_commonest_first():
    rows = [standing(f"s{n}", "f", messages={"a": f"{n} of 9 elements differ"}) for n in range(3)]
    rows.append(standing("found", "f"))
    rows[-1].outcomes["a"] = CheckOutcome("fail", 0.0, 1.0, "5 of 9 elements differ", "Race")
    rows.append(standing("b", "pf", messages={"b": "did not end within 60 s"}))
    found = failures(rows)
    assert [(f.check, f.kind, f.count) for f in found] == [
        ("a", "N of N elements differ", 3),
        ("a", "Race", 1),
        ("b", "did not end within N s", 1),
    ]
    assert found[0].message == "0 of 9 elements differ"
    assert [entry.student for entry in found[0].students] == ["s0", "s1", "s2"]


def test_times_are_of_those_who_ran_a_check_and_speeds_of_those_who_were_timed():
    rows = graded("pf", "ps", "fs", "ps", "ps")
    for number, row in enumerate(rows):
        old = row.outcomes["a"]
        ratio = 0.5 * number
        row.outcomes["a"] = CheckOutcome(old.status, old.score, float(number), ratio=ratio)
    figures = analyse(rows, 2)
    assert figures.seconds["a"].count == 4, "one of 0 s never ran"
    assert figures.seconds["a"].median == 2.5
    assert figures.seconds["a"].p90 == pytest.approx(3.7)
    assert figures.seconds["b"].count == 1
    assert list(figures.ratios) == ["a"]
    assert figures.ratios["a"].count == 4 and figures.ratios["a"].largest == 2
    assert figures.total_seconds.median == 2
