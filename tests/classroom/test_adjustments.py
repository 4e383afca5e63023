"""Points and comments by hand: read with care, shown beside the automatic ones, kept."""

import csv
import json
import shutil

import pytest

from class_states import edit_report, in_state, lateness, table
from grader.base.sheets import SheetError
from grader.classroom.adjustments import (
    Adjustment,
    adjustments_path,
    by_hand,
    known_places,
    parse_adjustments,
    read_adjustments,
)
from grader.classroom.feedback import all_feedback
from grader.classroom.gradebook import read_gradebook, to_csv, to_long
from grader.classroom.page import gather
from grader.classroom.store import GRADED, MISSING, read_classbook
from grader.cli.main import main

HEAD = "student,on,points,comment,by\n"


@pytest.fixture
def entry(book):
    """A student who has 0 of 1 in relu and 2 of 2 in matrix_multiply."""
    entry = in_state(book, GRADED)[0]

    def edit(raw):
        for result in raw["results"]:
            if result["check"] == "relu":
                result |= {"status": "fail", "score": 0.0}
            if result["check"] == "matrix_multiply":
                result |= {"status": "pass", "score": result["points"]}

    edit_report(book, entry, edit)
    return entry


def write(book, *lines):
    adjustments_path(book).write_text(HEAD + "".join(f"{line}\n" for line in lines))


def given(book, entry):
    """What a student's feedback has of the points by hand: (text, HTML)."""
    found = next(
        each for each in all_feedback(book, read_gradebook(book)) if each.folder == entry.folder
    )
    return " ".join(found.text.split()), found.html


# --- what counts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "points", "counts"),
    [("relu", 0.5, 0.5), ("relu", 3, 1), ("relu", -1, 0), ("matrix_multiply", 1, 0),
     ("matrix_multiply", -1.5, -1.5), ("", 4, 4), ("part 9", 1, 0)],
)  # fmt: skip
def test_a_check_has_never_more_than_it_is_worth(book, entry, on, points, counts):
    report = book.report(entry)
    after = by_hand(report, [Adjustment(entry.student, on, points, "x", "Ada")])
    assert after.score == pytest.approx(report.score + counts)
    assert after.by_hand[0]["points"] == counts


def test_what_was_given_on_a_check_counts_in_its_part_and_in_the_whole(book, entry):
    report = book.report(entry)
    points = sum(r.points for r in report.results if r.task.startswith("2."))
    some = [Adjustment("", "part 2", 100, "x", "A"), Adjustment("", "relu", 1, "x", "A")]
    after = by_hand(report, [*some, Adjustment("", "", -100, "x", "A")])
    assert [each["on"] for each in after.by_hand] == ["relu", "part 2", ""]
    assert after.score == 0
    part = sum(r.score for r in report.results if r.task.startswith("2."))
    assert after.by_hand[1]["points"] == points - part - 1


def test_points_by_hand_stand_beside_the_automatic_ones(book, entry):
    before = read_gradebook(book).rows[book.entries.index(entry)]
    write(book, f"{entry.login.upper()},relu,1,the text is unclear there,Ada", "")
    row = table(to_csv(read_gradebook(book)))[book.entries.index(entry)]
    assert (row["score"], row["by hand"]) == (f"{before.score + 1:g}", "1")
    assert row["by hand note"] == "relu +1: the text is unclear there (Ada)"
    assert row["relu"] == "0"
    long = [r for r in table(to_long(read_gradebook(book))) if r["student"] == entry.student]
    assert sum(float(r["score"]) for r in long) == before.score + 1
    assert [r["check"] for r in long if r["status"] == "by hand"] == ["relu"]


def test_lateness_is_taken_of_all_points(book, entry):
    write(book, f"{entry.student},,4,bonus,Ada")
    place = book.entries.index(entry)
    row = read_gradebook(book, lateness()).rows[place]
    assert row.earned == book.report(entry).score + 4
    assert row.late is not None and row.score == row.earned


def test_feedback_and_pages_show_who_gave_what_and_why(book, entry):
    score = book.report(entry).score
    write(book, f"{entry.student},relu,1,<b>unclear</b>,Ada", f"{entry.student},,,well written,Bo")
    text, html = given(book, entry)
    assert "by hand, relu: <b>unclear</b> (Ada) +1" in text
    assert "by hand: well written (Bo)" in text
    assert f"total {score + 1:g} / 25" in text
    assert "By hand, relu +1:</b> &lt;b&gt;unclear" in html
    assert '<span class="tag">by hand +1</span>' in html
    assert main(["class", str(book.path), "--students"]) == 0
    page = (book.folder(entry) / "report.html").read_text()
    assert "By hand, relu +1:" in page and "well written" in page
    standing = gather(book).standings[book.entries.index(entry)]
    assert standing.score == score + 1


def test_points_on_a_hidden_check_are_hidden_with_it(book, entry):
    def hide(raw):
        for result in raw["results"]:
            if result["check"] == "relu":
                result["visibility"] = "after_due_date"

    edit_report(book, entry, hide)
    write(book, f"{entry.student},relu,1,secret,Ada")
    assert "secret" not in "".join(given(book, entry))
    [after] = [e for e in all_feedback(book, read_gradebook(book), True)
               if e.folder == entry.folder]  # fmt: skip
    assert "secret" in after.text


def test_who_has_no_score_gets_none_and_is_named(book, entry, tmp_path, capsys):
    missing = in_state(book, MISSING)[0]
    write(book, f"{missing.student},,5,oral,Ada", f"{entry.student},matrix_multiply,1,x,Ada")
    assert main(["export", str(book.path), "--csv", str(tmp_path / "g.csv")]) == 0
    said = capsys.readouterr().out
    assert f"1 have something by hand and no score, so it does not count: {missing.student}" in said
    assert f"is worth: {entry.student} matrix_multiply +0 of +1" in said
    assert read_gradebook(book).rows[book.entries.index(missing)].score is None


# --- the file -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nobody,relu,1,x,A", ":2: nobody in the class is 'nobody'"),
        ("S,rulu,1,x,A", ":2: 'rulu' is neither a check nor a part; hint: one of part 1, part 2, "),
        ("S,relu,one,x,A", ":2: points are 'one'; hint: a number"),
        ("S,relu,nan,x,A", ":2: points are 'nan'"),
        ("S,relu,1,,A", ":2: the comment is missing; hint: say why"),
        ("S,relu,1,x,", ":2: the giver is missing"),
        ("S,relu,1,x,A\nS,relu,2,x,A", ":3: "),
        ("S,relu,1,x,A,B", ":2: 6 cells under 5 columns"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(book, entry, tmp_path, line, said):
    path = tmp_path / "points.csv"
    path.write_text(HEAD + line.replace("S,", f"{entry.student},") + "\n")
    with pytest.raises(SheetError) as caught:
        parse_adjustments(path, book)
    assert str(caught.value).startswith(f"{path}{said}")
    assert main(["adjust", str(book.path), "--csv", str(path)]) == 2
    assert not adjustments_path(book).exists()


def test_a_part_goes_by_its_number_and_a_comma_is_a_point(book, entry, tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(f"student;part;points;comment\n{entry.student};2;-0,5;zu langsam\n")
    want = Adjustment(entry.student, "part 2", -0.5, "zu langsam", "Bo")
    assert parse_adjustments(path, book, "Bo") == [want]


def test_a_second_one_takes_the_place_of_the_first_and_is_told(book, entry, capsys):
    words = ["adjust", str(book.path), "--student", entry.email, "--on", "relu", "--by", "Ada"]
    assert main([*words, "--points", "1", "--comment", "=unclear"]) == 0
    assert main([*words, "--points", "0.5", "--comment", "- half"]) == 0
    said = capsys.readouterr().out
    assert f"in place of {entry.student} relu +1: =unclear (Ada)" in said
    assert read_adjustments(book) == [Adjustment(entry.student, "relu", 0.5, "- half", "Ada")]
    cells = list(csv.reader(adjustments_path(book).read_text().splitlines()))
    assert cells[1][3] == "'- half"  # no formula
    assert main(["adjust", str(book.path)]) == 0
    assert f"{entry.student} relu +0.5: - half (Ada)" in capsys.readouterr().out


def test_a_line_for_who_left_the_class_is_told_and_stops_nothing(book, entry, tmp_path, capsys):
    write(book, "s5010,relu,1,was here,Ada", f"{entry.student},relu,1,x,Ada")
    page = str(tmp_path / "class.html")
    for words in (
        ["export", str(book.path), "--csv", str(tmp_path / "g.csv")],
        ["export", str(book.path), "--feedback", str(tmp_path / "feedback")],
        ["class", str(book.path), "--html", page],
        ["adjust", str(book.path)],
    ):
        assert main(words) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "warning: " in said and "counts for nobody: s5010" in said
    assert read_gradebook(book).rows[book.entries.index(entry)].given == 1
    # it stays when more is given, since they may come back; anew it is refused
    more = ["adjust", str(book.path), "--points", "1", "--comment", "y", "--by", "Ada"]
    assert main([*more, "--student", entry.login]) == 0
    assert [each.student for each in read_adjustments(book)] == ["s5010", *[entry.student] * 2]
    assert main([*more, "--student", "s5010"]) == 2
    assert "nobody in the class is 's5010'" in capsys.readouterr().err


def test_a_batch_that_writes_there_is_not_disturbed_and_files_are_not_overwritten(book, entry):
    write(book, f"{entry.student},relu,1,x,Ada")
    own = str(adjustments_path(book))
    assert main(["export", str(book.path), "--csv", own]) == 2
    assert main(["adjust", str(book.path), "--on", "relu"]) == 2
    assert len(read_adjustments(book)) == 1


def test_they_stay_when_a_class_is_graded_again(book, entry, tmp_path, capsys):
    shutil.copytree(book.path, tmp_path / "new")
    new = read_classbook(tmp_path / "new")

    def passes(raw):
        next(r for r in raw["results"] if r["check"] == "relu").update(status="pass", score=1.0)

    edit_report(new, entry, passes)
    score = new.report(entry).score
    write(book, f"{entry.student},relu,1,the check is wrong,Ada")
    assert main(["regrade", str(book.path), str(new.path), "--accept"]) == 0
    said = capsys.readouterr().out
    assert f"by hand, stays: {entry.student} relu +1: the check is wrong" in said
    assert json.loads(book.report_path(entry).read_bytes())["score"] == score
    # the check has all of its points now, and not one more
    row = read_gradebook(book).rows[book.entries.index(entry)]
    assert (row.score, row.given, len(row.by_hand)) == (score, 0, 1)


def test_what_may_be_adjusted_stands_in_the_first_report_that_is_whole(book):
    places = known_places(book)
    assert places[:2] == ["part 1", "part 2"] and "relu" in places
    first = next(each for each in book.entries if book.report_path(each).exists())
    book.report_path(first).write_text("{")
    assert known_places(book) == places
