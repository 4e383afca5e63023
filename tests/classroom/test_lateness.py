"""What lateness costs: to the second, over changes of the clock, and with late days."""

import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from grader.classroom.lateness import DAY, Late, LatenessError, LatePolicy, apply, late_policy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DUE = datetime(2026, 10, 9, 23, 59, tzinfo=timezone(timedelta(hours=2)))
HOUR, MINUTE = 3600, 60


def late(policy, seconds, score=20.0, points=25.0, days_left=0):
    return apply(policy, DUE, DUE + timedelta(seconds=seconds), score, points, days_left)


TEN = LatePolicy(percent_a_day=10)
GRACE = LatePolicy(grace_minutes=15, percent_a_day=10)
POSSIBLE = LatePolicy(percent_a_day=10, percent_of="possible")
CUTOFF = LatePolicy(percent_a_day=10, cutoff_days=3)
SPEND = LatePolicy(percent_a_day=10, late_days=5)


@pytest.mark.parametrize(
    ("policy", "seconds", "days", "score"),
    [
        (LatePolicy(), 100 * DAY, 100, 20),
        (TEN, -DAY, 0, 20),
        (TEN, -1, 0, 20),
        (TEN, 0, 0, 20),
        (TEN, 0.999, 0, 20),
        (TEN, 1, 1, 18),
        (TEN, DAY, 1, 18),
        (TEN, DAY + 0.5, 1, 18),
        (TEN, DAY + 1, 2, 16),
        (TEN, 2 * DAY, 2, 16),
        (TEN, 10 * DAY, 10, 0),
        (TEN, 11 * DAY, 11, 0),
        (GRACE, 1, 0, 20),
        (GRACE, 15 * MINUTE, 0, 20),
        (GRACE, 15 * MINUTE + 1, 1, 18),
        (GRACE, DAY, 1, 18),
        (GRACE, DAY + 1, 2, 16),
        (POSSIBLE, 0, 0, 20),
        (POSSIBLE, 1, 1, 17.5),
        (POSSIBLE, 7 * DAY + 1, 8, 0),
        (POSSIBLE, 99 * DAY, 99, 0),
        (CUTOFF, 3 * DAY, 3, 14),
        (CUTOFF, 3 * DAY + 1, 4, 0),
        (LatePolicy(cutoff_days=0), 0, 0, 20),
        (LatePolicy(cutoff_days=0), 1, 1, 0),
        (LatePolicy(cutoff_days=0.5), 12 * HOUR, 1, 20),
        (LatePolicy(cutoff_days=0.5), 12 * HOUR + 1, 1, 0),
        (LatePolicy(percent_a_day=33.3), DAY, 1, 13.34),
    ],
)
def test_what_is_left_to_the_second(policy, seconds, days, score):
    found = late(policy, seconds)
    assert (found.days, found.score, found.spent) == (days, score, 0)
    assert found.penalty == pytest.approx(20 - score)


@pytest.mark.parametrize(
    ("policy", "seconds", "reached", "days_left", "spent", "score"),
    [
        (SPEND, 1, 20, 2, 1, 20),
        (SPEND, 2 * DAY, 20, 2, 2, 20),
        (SPEND, 2 * DAY + 1, 20, 2, 2, 18),
        (SPEND, 2 * DAY + 1, 20, 0, 0, 14),
        (SPEND, 0, 20, 2, 0, 20),
        (SPEND, 3 * DAY, 0, 2, 0, 0),  # nothing to save
        (SPEND, 12 * DAY, 20, 2, 0, 0),  # too few to save anything
        (SPEND, 11 * DAY, 20, 2, 2, 2),
        (SPEND, 9 * DAY, 20, 99, 5, 12),  # no more than the course gives
        (TEN, DAY, 20, 3, 0, 18),  # a course without late days
        (LatePolicy(late_days=5), DAY, 20, 3, 0, 20),  # lateness costs nothing
        (LatePolicy(late_days=5, percent_a_day=10, cutoff_days=1), DAY + 1, 20, 5, 0, 0),
        (LatePolicy(late_days=5, percent_a_day=100), 3 * DAY, 20, 3, 3, 20),
        (LatePolicy(late_days=5, percent_a_day=100), 3 * DAY, 20, 2, 0, 0),
        (LatePolicy(late_days=5, percent_a_day=10, percent_of="possible"), 3 * DAY, 20, 2, 2, 17.5),
    ],
)
def test_late_days_are_spent_where_they_save_points(
    policy, seconds, reached, days_left, spent, score
):
    found = late(policy, seconds, reached, 25, days_left)
    assert (found.spent, found.score) == (spent, score)


def test_the_reason_is_one_sentence():
    assert late(GRACE, 0).reason == "in time: nothing is taken off"
    assert late(GRACE, 65).reason == "0:01:05 h late, within the grace: nothing is taken off"
    assert late(SPEND, DAY + HOUR, days_left=1) == Late(
        2,
        1,
        2.0,
        18.0,
        "1 day 1:00:00 h late, which begins day 2, 1 late day spent, "
        "10 % of the reached points taken off (2)",
    )
    assert late(CUTOFF, 4 * DAY).reason == (
        "4 days 0:00:00 h late, after the cut-off of 3 days: no points"
    )
    assert late(LatePolicy(), 1).reason == (
        "0:00:01 h late, which begins day 1, nothing is taken off"
    )


@pytest.mark.parametrize(
    ("due", "submitted", "days"),
    [
        # clocks go back on 2026-10-25: the day has 25 hours
        ("2026-10-24T23:59:00", "2026-10-25T22:59:00", 1),
        ("2026-10-24T23:59:00", "2026-10-25T22:59:01", 2),
        ("2026-10-24T23:59:00", "2026-10-25T23:59:00", 2),
        # clocks go forward on 2026-03-29: it has 23
        ("2026-03-28T23:59:00", "2026-03-30T00:59:00", 1),
        ("2026-03-28T23:59:00", "2026-03-30T00:59:01", 2),
    ],
)
def test_a_day_has_24_hours_when_the_clock_is_changed(due, submitted, days):
    zone = ZoneInfo("Europe/Berlin")
    due, submitted = (
        datetime.fromisoformat(text).replace(tzinfo=zone) for text in (due, submitted)
    )
    assert apply(TEN, due, submitted, 20, 25).days == days
    assert apply(TEN, due, submitted.astimezone(timezone.utc), 20, 25).days == days


def test_an_extension_is_a_later_due_date_of_one_student():
    later = DUE + timedelta(days=7)
    policy = LatePolicy(percent_a_day=10, extensions={"s1": later})
    assert policy.due_for("s1", DUE) == later and policy.due_for("s2", DUE) == DUE
    assert policy.due_for("s1", later) == later
    with pytest.raises(LatenessError, match=r"extension of s1 ends .* before the due date"):
        policy.due_for("s1", later + timedelta(seconds=1))


def test_a_moment_without_a_time_zone_is_refused():
    naive = datetime(2026, 10, 9, 23, 59)
    with pytest.raises(LatenessError, match=r"the due date, 2026-10-09T23:59:00, has no time zone"):
        apply(TEN, naive, DUE, 20, 25)
    with pytest.raises(LatenessError, match="the time of handing in"):
        apply(TEN, DUE, naive, 20, 25)
    with pytest.raises(LatenessError, match="the extension of s1"):
        LatePolicy(extensions={"s1": naive}).due_for("s1", DUE)


@pytest.mark.parametrize("numbers", [(-1, 25, 0), (20, -1, 0), (20, 25, -1), (float("nan"), 25, 0)])
def test_negative_numbers_are_refused(numbers):
    with pytest.raises(LatenessError, match="expected a number from 0 on"):
        apply(TEN, DUE, DUE, *numbers)


# --- the table ---------------------------------------------------------------------------------

WHOLE = """
[late]
grace_minutes = 15
percent_a_day = 12.5
percent_of = "possible"
late_days = 4
cutoff_days = 5
percent_marked = 20
[late.extensions]
s1 = 2026-10-16T23:59:00+02:00
"""


def test_a_table_gives_the_policy():
    policy = late_policy(tomllib.loads(WHOLE)["late"])
    assert policy == LatePolicy(15, 12.5, "possible", 4, 5, {"s1": DUE + timedelta(days=7)}, 20)
    assert late_policy({}) == LatePolicy()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "percent = 10",
            "[late] has the unknown key 'percent'; hint: one of grace_minutes, ",
        ),
        ("grace_minutes = -1", "[late] grace_minutes is -1, expected a number from 0 on"),
        ("grace_minutes = '5'", "[late] grace_minutes is '5', expected a number from 0 on"),
        ("grace_minutes = true", "[late] grace_minutes is True, expected a number from 0 on"),
        ("grace_minutes = inf", "[late] grace_minutes is inf, expected a number from 0 on"),
        ("percent_a_day = nan", "[late] percent_a_day is nan, expected a number from 0 to 100"),
        (
            "percent_a_day = 100.5",
            "[late] percent_a_day is 100.5, expected a number from 0 to 100",
        ),
        ("percent_of = 'all'", "[late] percent_of is 'all', expected possible or reached"),
        (
            "percent_of = ['reached']",
            "[late] percent_of is ['reached'], expected possible or reached",
        ),
        ("late_days = 1.5", "[late] late_days is 1.5, expected an integer from 0 on"),
        ("late_days = -2", "[late] late_days is -2, expected an integer from 0 on"),
        ("cutoff_days = -1", "[late] cutoff_days is -1, expected a number from 0 on"),
        (
            "cutoff_days = 0\ngrace_minutes = 1",
            "[late] cutoff_days is 0, which ends before the grace of 1 minutes does",
        ),
        ("extensions = 3", "[late] extensions is 3, expected a table of due dates"),
        (
            "extensions.s1 = '2026-10-16'",
            "[late.extensions] s1 is '2026-10-16', expected a date and time with UTC offset",
        ),
        (
            "extensions.s1 = 2026-10-16",
            "[late.extensions] s1 is 2026-10-16, expected a date and time with",
        ),
        (
            "extensions.s1 = 2026-10-16T23:59:00",
            "[late.extensions] s1 is 2026-10-16T23:59:00, expected a date and time with UTC offset",
        ),
    ],
)
def test_a_wrong_table_is_refused_in_words(line, said):
    with pytest.raises(LatenessError) as caught:
        late_policy(tomllib.loads(line))
    assert str(caught.value).startswith(said)
