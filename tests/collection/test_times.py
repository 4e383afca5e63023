"""Times of handing in from a table, and what a mark without a time costs."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from class_states import DUE, change, in_state, late_row, lateness, table
from grader.base.sheets import SheetError
from grader.classroom.feedback import all_feedback
from grader.classroom.gradebook import figure, read_gradebook, to_csv
from grader.classroom.lateness import LatenessError, late_policy
from grader.classroom.store import GRADED, Entry
from grader.cli.main import main
from grader.collection.groups import shared
from grader.collection.times import with_times

ZONE = timezone(timedelta(hours=2))
LOCAL = DUE.astimezone(ZONE)


@pytest.fixture
def entry(book):
    """A graded student whose work bears no time, and is marked late."""
    place = book.entries.index(in_state(book, GRADED)[0])
    return change(book, place, submitted="", late=True)


def timed(book, tmp_path, text):
    path = tmp_path / "times.csv"
    path.write_text(text)
    return with_times(path, book.entries, LOCAL)


def test_a_time_without_an_offset_has_that_of_the_due_date(book, entry, tmp_path):
    text = f"Student;Submitted\n{entry.login};2026-10-09 00:01\n"
    found, strangers = timed(book, tmp_path, text)
    moment = datetime.fromisoformat(found[book.entries.index(entry)].submitted)
    assert moment - LOCAL == timedelta(minutes=2)
    assert strangers == []
    found, _ = timed(book, tmp_path, text.replace("00:01", "00:01:30+00:00"))
    moment = datetime.fromisoformat(found[book.entries.index(entry)].submitted)
    assert moment - DUE == timedelta(hours=2, minutes=2, seconds=30)


@pytest.mark.parametrize("key", ["student", "login", "email"])
def test_an_extension_goes_by_id_login_or_address(book, tmp_path, capsys, key):
    rule = lateness(percent_a_day=10)
    entry = late_row(book, rule, 1.5).entry
    path = tmp_path / "late.toml"
    path.write_text(
        f"due = {DUE.isoformat()}\n[late]\npercent_a_day = 10\n[late.extensions]\n"
        f'"{getattr(entry, key)}" = {(DUE + timedelta(days=2)).isoformat()}\n'
    )
    words = ["export", str(book.path), "--csv", str(tmp_path / "g.csv"), "--late", str(path)]
    assert main(words) == 0
    rows = {row["student"]: row for row in table((tmp_path / "g.csv").read_text())}
    assert rows[entry.student]["late"] == "no"
    assert "nobody in the class" not in capsys.readouterr().out
    if key != "student":
        with path.open("a") as file:
            file.write(f"{entry.student} = {(DUE + timedelta(days=3)).isoformat()}\n")
        assert main(words) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"student {entry.student} has two extensions" in said


def test_who_is_not_named_keeps_the_time_of_the_download(book, entry, tmp_path):
    found, strangers = timed(book, tmp_path, "id,time\nnobody,2026-10-09 00:01\n99,\n")
    assert found == book.entries
    assert strangers == ["nobody"]


@pytest.mark.parametrize(
    ("bob", "carl", "days"),
    [("10-08 20:00", "10-10 20:00", [0, 0, 0]), ("10-10 20:00", "10-08 20:00", [2, 2, 0])],
)
def test_all_of_a_group_are_charged_by_the_work_that_was_graded(tmp_path, bob, carl, days):
    who = [Entry("s1", "s1"), Entry("s2", "s2", source="b.zip"), Entry("s3", "s3", source="c.zip"),
           Entry("s4", "s4")]  # fmt: skip
    entries, notes = shared(who, dict.fromkeys(("s1", "s2", "s3", "s4"), "red"))
    assert "graded for all is s2's" in notes[0]
    path = tmp_path / "times.csv"
    path.write_text(f"student,submitted\ns2,2026-{bob}\ns3,2026-{carl}\n")
    entries, _ = with_times(path, entries, LOCAL)
    assert len({entry.submitted for entry in entries}) == 1
    rule = lateness(percent_a_day=10, extensions={"s4": DUE + timedelta(days=3)})
    found = [rule.of(entry, 20.0, 25.0).days for entry in entries if entry.student != "s3"]
    assert found == days
    assert rule.of(entries[2], 20.0, 25.0) == rule.of(entries[1], 20.0, 25.0)


def test_a_time_of_whose_work_was_not_graded_charges_nobody(tmp_path):
    who = [Entry("s1", "s1", source="a.zip", submitted=LOCAL.isoformat()), Entry("s2", "s2")]
    entries, _ = shared(who, {"s1": "red", "s2": "red"})
    path = tmp_path / "times.csv"
    path.write_text("student,submitted\ns2,2026-10-20 10:00\n")
    found, _ = with_times(path, entries, LOCAL)
    assert {entry.submitted for entry in found} == {LOCAL.isoformat()}
    path.write_text("student,submitted\nred,2026-10-20 10:00\n")
    found, _ = with_times(path, entries, LOCAL)
    assert {entry.submitted for entry in found} == {"2026-10-20T10:00:00+02:00"}


@pytest.mark.parametrize(
    ("text", "said"),
    [("S,yesterday\n", ":2: 'yesterday' is not a time; hint: like 2026-10-08 23:41"),
     ("\nS,2026-10-08\n", ":3: '2026-10-08' has no time of day"),
     ("S,2026-10-08 10:00\nS,2026-10-09 10:00\n", ":3: ")],
)  # fmt: skip
def test_a_time_that_is_none_is_told_with_its_line(book, entry, tmp_path, text, said):
    with pytest.raises(SheetError) as caught:
        timed(book, tmp_path, "student,submitted\n" + text.replace("S,", f"{entry.student},"))
    assert str(caught.value).startswith(f"{tmp_path}/times.csv{said}")


def test_a_mark_without_a_time_costs_what_the_policy_says_once(book, entry):
    rule = lateness(percent_a_day=50, percent_marked=15, late_days=3)
    row = read_gradebook(book, rule).rows[book.entries.index(entry)]
    assert row.earned > 0
    assert row.score == pytest.approx(0.85 * row.earned)
    assert row.late.spent == 0
    cells = table(to_csv(read_gradebook(book, rule)))[book.entries.index(entry)]
    assert (cells["late"], cells["days late"]) == ("yes", "")
    assert "marked late, without a time, 15 % of the reached points" in cells["late note"]
    given = next(f for f in all_feedback(book, read_gradebook(book, rule))
                 if f.folder == entry.folder)  # fmt: skip
    assert f"{figure(row.score)} of 25 points count" in " ".join(given.text.split())


def test_who_is_not_marked_or_has_an_extension_loses_nothing(book, entry):
    later = {entry.student: DUE + timedelta(days=3)}
    for values, policy in (({"late": False}, {}), ({"late": None}, {}),
                           ({}, {"extensions": later})):  # fmt: skip
        book.entries = [replace(e, **values) if e.student == entry.student else e
                        for e in book.entries]  # fmt: skip
        rows = read_gradebook(book, lateness(percent_marked=15, **policy)).rows
        row = next(row for row in rows if row.entry.student == entry.student)
        assert (row.late, row.score) == (None, row.earned)
        book.entries = [entry if e.student == entry.student else e for e in book.entries]


@pytest.mark.parametrize("value", [-1, 101, "15"])
def test_a_share_that_is_none_is_refused(value):
    with pytest.raises(LatenessError, match=r"\[late\] percent_marked is"):
        late_policy({"percent_marked": value})


def test_export_takes_times_and_names_whom_it_cannot_place(book, entry, tmp_path, capsys):
    late = tmp_path / "late.toml"
    late.write_text("due = 2026-10-08T23:59:00+02:00\n[late]\npercent_a_day = 10\n")
    times = tmp_path / "times.csv"
    times.write_text(f"student,submitted\n{entry.student},2026-10-09 01:00\nx9,2026-10-09 01:00\n")
    words = ["export", str(book.path), "--csv", str(tmp_path / "g.csv")]
    assert main([*words, "--times", str(times)]) == 2
    assert "--times need --late" in capsys.readouterr().err
    assert main([*words, "--late", str(late)]) == 0
    assert f"of them are marked late; hint: --times, or percent_marked: {entry.student}" in (
        capsys.readouterr().out
    )
    assert main([*words, "--late", str(late), "--times", str(times)]) == 0
    said = capsys.readouterr().out
    assert f"1 in {times}, not in the class: x9" in said
    rows = {row["student"]: row for row in table((tmp_path / "g.csv").read_text())}
    assert rows[entry.student]["days late"] == "1"
    assert rows[entry.student]["submitted"] == "2026-10-09T01:00:00+02:00"
