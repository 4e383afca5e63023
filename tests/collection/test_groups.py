"""Groups hand in once: each member has the result, and the class's figures count it once."""

from dataclasses import replace

import pytest

from class_states import change, in_state, table
from grader.base.sheets import SheetError
from grader.classroom.gradebook import read_gradebook, to_csv
from grader.classroom.page import gather
from grader.classroom.store import GRADED, MISSING, Entry, called
from grader.cli.main import main
from grader.collection.groups import read_groups, shared

FIRST = "2026-10-08T20:00:00+00:00"
LATER = "2026-10-08T23:00:00+02:00"  # an hour after the first

CLASS = [
    Entry("s1", "f1", email="ada@x.edu", login="ada"),
    Entry("s2", "f2", email="bob@x.edu", login="bob"),
    Entry("s3", "f3"),
]


def entries(**sources):
    """Students with what they handed in: a path and a time, or nothing."""
    return [
        Entry(student, f"f-{student}", f"Name {student}", source=source, submitted=submitted)
        for student, (source, submitted) in sources.items()
    ]


def test_each_member_has_what_one_handed_in():
    given = entries(a=("", ""), b=("b.zip", FIRST), c=("", ""), d=("d.zip", ""))
    given[1] = replace(given[1], late=True, attempt=2)
    found, notes = shared(given, {"a": "7", "b": "7", "c": "8"})
    assert [(e.source, e.submitted, e.group) for e in found] == [
        ("b.zip", FIRST, "7"), ("b.zip", FIRST, "7"), ("", "", "8"), ("d.zip", "", ""),
    ]  # fmt: skip
    assert (found[0].late, found[0].attempt, found[0].folder) == (True, 2, "f-a")
    assert found[0].notes == ["b Name b handed in for group 7."]
    assert found[1].notes == [] and notes == []


def test_of_several_the_newest_counts_and_that_is_said():
    given = entries(a=("a.zip", FIRST), b=("b.zip", LATER), c=("", ""))
    found, notes = shared(given, dict.fromkeys("abc", "7"))
    assert {entry.source for entry in found} == {"b.zip"}
    assert notes == ["group 7: a, b handed in; graded for all is b's, the newest."]
    given[1] = replace(given[1], submitted="")
    found, notes = shared(given, dict.fromkeys("abc", "7"))
    assert {entry.source for entry in found} == {"a.zip"}
    assert "the first in the class, since nothing tells which is newer" in notes[0]


def test_a_table_of_groups_is_read_as_a_spreadsheet_or_canvas_writes_it(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("group;student id\nred;s1\n;s2\nblue;s3\n")
    assert read_groups(path, CLASS) == {"s1": "red", "s3": "blue"}
    path.write_text("name,canvas_user_id,user_id,login_id,sections,group_name\nA,9,s1,a,X,G 1\n")
    assert read_groups(path, CLASS) == {"s1": "G 1"}


@pytest.mark.parametrize("head", ["student", "id", "login", "email"])
def test_a_student_of_a_group_goes_by_id_login_or_address(tmp_path, head):
    path = tmp_path / "groups.csv"
    path.write_text(f"{head},group\nAda,red\nbob@x.edu,red\nS3,blue\nnobody,\n")
    assert read_groups(path, CLASS) == {"s1": "red", "s2": "red", "s3": "blue"}


@pytest.mark.parametrize(
    ("text", "said"),
    [("student,group\ns1,a\ns1,b\n", ":3: student 's1' is in line 2 already"),
     ("student,group\ns1,a\nada,a\n", ":3: student 's1' is in line 2 already"),
     ("student,group\ns1,a\nboob,a\n",
      ":3: nobody in the class is 'boob'; hint: the nearest name is 'bob'"),
     ("student,group\nwhoever,a\n", ":2: nobody in the class is 'whoever'; hint: an id, a login"),
     ("student,tutor\ns1,a\n", ":1: no column 'group name'; it has: student, tutor"),
     ("student,group\ns1,\n", " puts nobody into a group")],
)  # fmt: skip
def test_a_table_that_is_wrong_is_refused_with_its_line(tmp_path, text, said):
    path = tmp_path / "groups.csv"
    path.write_text(text)
    with pytest.raises(SheetError) as caught:
        read_groups(path, CLASS)
    assert str(caught.value).startswith(f"{path}{said}")


def paired(book):
    """Two graded students who are one group."""
    one, two = in_state(book, GRADED)[:2]
    book.report_path(two).write_bytes(book.report_path(one).read_bytes())
    places = [book.entries.index(each) for each in (one, two)]
    return [change(book, place, group="red", source=one.source) for place in places]


def test_the_figures_of_a_class_count_a_group_once(book):
    before = gather(book)
    one, _ = paired(book)
    after = gather(book)
    assert after.figures.scores.count == before.figures.scores.count - 1
    assert after.figures.states == before.figures.states
    assert len(after.standings) == len(before.standings)
    named = {e.name for failure in after.figures.failures for e in failure.students}
    assert "group red" in named and not any(
        e.student == one.student and e.name == one.name
        for failure in after.figures.failures
        for e in failure.students
    )


def test_each_member_has_a_row_and_points_by_hand_go_to_all(book, tmp_path):
    one, two = paired(book)
    assert set(called(book.entries)["red"]) == {one.student, two.student}
    words = ["--student", "Red", "--points", "-1", "--comment", "x", "--by", "Ada"]
    assert main(["adjust", str(book.path), *words]) == 0
    rows = {row["student"]: row for row in table(to_csv(read_gradebook(book)))}
    assert [rows[e.student]["group"] for e in (one, two)] == ["red", "red"]
    assert rows[one.student]["score"] == rows[two.student]["score"] != ""
    assert {rows[e.student]["by hand"] for e in (one, two)} == {"-1"}
    missing = in_state(book, MISSING)[0]
    assert rows[missing.student]["group"] == ""
