"""Moodle's grading worksheet: as the roster, as the table of times, and filled with scores."""

import csv
import io
from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from class_states import DUE, change, in_state, lateness
from downloaded import WORK, Class, zipped
from grader.base.sheets import SheetError
from grader.classroom.canvas import TemplateError
from grader.classroom.gradebook import figure, read_gradebook
from grader.classroom.moodle import fill_worksheet
from grader.classroom.roster import Person, read_roster
from grader.classroom.store import GRADED, MISSING, UNREADABLE, Entry
from grader.cli.main import main
from grader.collection.times import with_times

LOCAL = DUE.astimezone(timezone(timedelta(hours=2)))
HEAD = (
    "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
    "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
    "Feedback comments",
)  # fmt: skip
TIME = "Thursday, 8 October 2026, 9:41 PM"


def line(number, name, email="", submitted=TIME, grade="", most="25.00", is_open="Yes", said=""):
    return [f"Participant {number}", name, email, "Submitted for grading - ", grade, most, is_open,
            submitted, "-", said]  # fmt: skip


def sheet(*lines, end="\n", bom=""):
    """As PHP writes it: quotes around cells with spaces in them alone."""

    def cell(text):
        quoted = '"' + text.replace('"', '""') + '"'
        return quoted if set(text) & set(' ,"\n\t') else text

    return (bom + "".join(",".join(map(cell, each)) + end for each in (HEAD, *lines))).encode()


@pytest.fixture
def write(tmp_path):
    def to(*lines, **form):
        path = tmp_path / "worksheet.csv"
        path.write_bytes(sheet(*lines, **form))
        return path

    return to


# --- the roster ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_a_worksheet_is_a_roster_of_participants(write, bom):
    path = write(
        line(5001, "Ann Lee", "ann@x.edu"), line(5002, "Bob Smith", submitted="-"), bom=bom
    )
    assert read_roster(path) == [
        Person("5001", "Ann Lee", "ann@x.edu"), Person("5002", "Bob Smith"),
    ]  # fmt: skip


def test_an_id_number_that_some_lack_does_not_spoil_the_roster(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("Identifier,Full name,ID number,Grade can be changed\nParticipant 5,A,,Yes\n")
    assert read_roster(path) == [Person("5", "A")]


def test_participants_of_one_name_are_told_apart_by_number(tmp_path):
    of = Class(tmp_path)
    roster = [Person("5001", "Bob Smith"), Person("5002", "Bob Smith"), Person("5003", "Ann Lee")]
    files = {f"Bob Smith_{n}_assignsubmission_file_/w.zip": zipped(WORK) for n in (5001, 5002)}
    entries = of(files, roster)
    assert {s: bool(e.source) for s, e in entries.items()} == {
        "5001": True, "5002": True, "5003": False,
    }  # fmt: skip


def test_a_number_under_another_name_is_of_another_assignment(tmp_path):
    of = Class(tmp_path)
    roster = [Person("5001", "Bob Smith"), Person("5002", "Ann Lee")]
    entries = of({"Ann Lee_5001_assignsubmission_file_/w.zip": zipped(WORK)}, roster)
    assert {s: bool(e.source) for s, e in entries.items()} == {"5001": False, "5002": True}


def test_who_is_anonymous_goes_by_the_number(tmp_path):
    of = Class(tmp_path)
    entries = of({"Participant_5001_assignsubmission_file_/w.zip": zipped(WORK)}, [Person("5001")])
    assert list(entries) == ["5001"] and entries["5001"].source


# --- times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "minutes"),
    [(TIME, -138), ("Friday, 9 October 2026, 12:00 AM", 1), ("9 October 2026, 12:05 PM", 726),
     ("Friday, October 9, 2026, 12:05\u202fAM", 6)],
)  # fmt: skip
def test_times_of_moodle_are_of_the_course_s_zone(write, text, minutes):
    path = write(line(5001, "Ann Lee", submitted=text), line(5002, "Bob", submitted="-"))
    found, strangers = with_times(path, [Entry("5001", "a", "Ann Lee"), Entry("5002", "b")], LOCAL)
    assert found[0].submitted == (LOCAL + timedelta(minutes=minutes)).isoformat()
    assert (found[1].submitted, strangers) == ("", [])


def test_a_time_of_moodle_that_is_none_is_told_with_its_line(write):
    with pytest.raises(SheetError, match=r":2: 'Thursday, 38 October 2026, 9:41 PM' is not a time"):
        with_times(write(line(5, "A", submitted=TIME.replace("8", "38"))), [Entry("5", "a")], LOCAL)


@pytest.mark.parametrize(
    "entry",
    [Entry("s1", "a", source="/x/Any One_5001_assignsubmission_file_/w.zip"),
     Entry("s1", "a", email="ANN@x.edu"), Entry("s1", "a", name="Lee, Ann"), Entry("5001", "a")],
)  # fmt: skip
def test_a_participant_is_found_by_folder_number_address_or_name(write, entry):
    other = Entry("s2", "b", name="Bob Smith")
    path = write(line(5001, "Ann Lee", "ann@x.edu"), line(5009, "No One"))
    if entry.student == "5001":
        entry = replace(entry, name="Ann Lee")
    found, strangers = with_times(path, [other, entry], LOCAL)
    assert [bool(each.submitted) for each in found] == [False, True]
    assert strangers == ["Participant 5009 No One"]


def test_a_name_does_not_stand_for_somebody_with_another_number(write):
    entry = Entry("s1", "a", "Ann Lee", source="/x/Ann Lee_5001_assignsubmission_file_/w.zip")
    found, strangers = with_times(write(line(5002, "Ann Lee")), [entry], LOCAL)
    assert (found, strangers) == ([entry], ["Participant 5002 Ann Lee"])


# --- filled --------------------------------------------------------------------------------------


def of_class(book, **more):
    return [line(e.student, e.name, e.email, **more) for e in book.entries]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_grade_and_comment_change_and_nothing_else(book, end, bom):
    template = sheet(*of_class(book), end=end, bom=bom)
    gradebook = read_gradebook(book)
    filled = fill_worksheet(template, gradebook)
    assert filled.warnings == filled.strangers == filled.absent == []
    before, after = (data.decode().split(end) for data in (template, filled.content))
    assert len(before) == len(after) == len(book.entries) + 2
    assert before[0] == after[0]
    for row, old, new in zip(gradebook.rows, before[1:], after[1:], strict=False):
        score = figure(row.score)
        if score:
            assert old.endswith(f',,25.00,Yes,"{TIME}",-,')
            head = old.removesuffix(f',,25.00,Yes,"{TIME}",-,')
            rest = f',{score},25.00,Yes,"{TIME}",-,"{score} of 25 points.'
            assert new.startswith(head + rest)
        else:
            assert new == old
    assert filled.filled == sum(row.score is not None for row in gradebook.rows) > 40
    assert in_state(book, MISSING)[0] in filled.unscored


def test_what_is_filled_is_filled_again_to_the_byte(book):
    gradebook = read_gradebook(book)
    once = fill_worksheet(sheet(*of_class(book)), gradebook)
    twice = fill_worksheet(once.content, gradebook)
    assert (twice.content, twice.changed) == (once.content, 0)


def comments(content):
    rows = csv.DictReader(io.StringIO(content.decode()))
    return {row["Identifier"].split()[1]: row["Feedback comments"] for row in rows}


def test_the_comment_says_why_there_are_fewer_points(book):
    place = book.entries.index(in_state(book, GRADED)[0])
    late = change(book, place, submitted=(DUE + timedelta(hours=30)).isoformat())
    said = comments(
        fill_worksheet(
            sheet(*of_class(book)), read_gradebook(book, lateness(percent_a_day=10))
        ).content
    )
    assert " of 25 points. 1 day 6:00:00 h late, which begins day 2, 20 % of" in said[late.student]
    unread = in_state(book, UNREADABLE)[0]
    assert said[unread.student].startswith("0 of 25 points. It can't be read: none of autodiff.py")


def test_rows_that_are_closed_and_comments_of_people_stay(book):
    a, b, c = in_state(book, GRADED)[:3]
    lines = of_class(book)
    at = {e.student: number for number, e in enumerate(book.entries)}
    lines[at[a.student]][6] = "No"
    lines[at[b.student]][9] = "See me."
    lines[at[c.student]][9] = "<p>7 of 25 points. old</p>"
    template = sheet(*lines)
    filled = fill_worksheet(template, read_gradebook(book))
    said = comments(filled.content)
    assert template.split(b"\n")[at[a.student] + 1] in filled.content.split(b"\n")
    assert said[b.student] == "See me." and "old" not in said[c.student]
    assert len(filled.warnings) == 2
    assert "the grade can't be changed at Moodle, which stays: " in filled.warnings[0]
    assert "somebody wrote a comment there, which stays: " in filled.warnings[1]


def test_rows_of_nobody_rows_twice_and_other_points_are_told(book):
    entry = in_state(book, GRADED)[0]
    lines = [each for each in of_class(book, most="100.00") if each[0].split()[1] != entry.student]
    lines += [line("99999", "No One"), lines[0], [""]]
    filled = fill_worksheet(sheet(*lines), read_gradebook(book))
    assert filled.strangers == ["Participant 99999 No One"]
    assert filled.absent == [entry]
    assert filled.warnings[0].startswith("maximum grade: 100.00 at Moodle, 25 here")
    assert filled.warnings[1].startswith("several rows belong to the same student")


@pytest.mark.parametrize(
    "template", [b"", b"a,b\n1,2\n", b"Identifier,Full name\n", "Identifier".encode("utf-16")]
)
def test_what_is_no_worksheet_is_refused(book, template):
    with pytest.raises(TemplateError):
        fill_worksheet(template, read_gradebook(book))


def test_the_command_takes_times_and_fills_the_worksheet(book, tmp_path, capsys, write):
    path = write(*of_class(book, submitted="Friday, 9 October 2026, 1:00 AM"))
    late = tmp_path / "late.toml"
    late.write_text("due = 2026-10-08T23:59:00+02:00\n[late]\npercent_a_day = 10\n")
    words = ["export", str(book.path), "--moodle", str(path)]
    assert main(words) == 2
    assert "--moodle needs --output" in capsys.readouterr().err
    assert main([*words, "-o", str(path)]) == 2
    out = tmp_path / "filled.csv"
    assert main([*words, "-o", str(out), "--late", str(late), "--times", str(path)]) == 0
    assert "Grade: " in capsys.readouterr().out
    said = comments(out.read_bytes())[in_state(book, GRADED)[0].student]
    assert "1:01:00 h late, which begins day 1" in said
