"""Gradebooks of a class: who has a score, lateness, and the command."""

from dataclasses import replace
from datetime import timedelta

import pytest

from class_states import (
    COLUMN,
    DUE,
    POINTS,
    canvas,
    change,
    edit_report,
    in_state,
    late_row,
    lateness,
    table,
)
from grader.base.files import write_whole
from grader.base.printable import csv_cell, from_csv_cell
from grader.classroom.gradebook import (
    GradebookError,
    figure,
    read_gradebook,
    read_spent,
    to_csv,
    to_long,
)
from grader.classroom.store import ERROR, GRADED, MISSING, PENDING, UNREADABLE, read_classbook
from grader.cli.main import main
from grader.course.rubric import load_rubric

# --- a row a student ----------------------------------------------------------------------------


def test_the_class_of_these_tests_has_all_states(book):
    assert {s.state for s in book.standings()} == {GRADED, UNREADABLE, MISSING, PENDING, ERROR}


def test_rows_stand_in_the_order_of_the_class(book):
    book.entries.reverse()
    students = [row["student"] for row in table(to_csv(read_gradebook(book)))]
    assert students == [entry.student for entry in book.entries]


def test_only_who_has_a_score_has_one(book):
    rows = {row["student"]: row for row in table(to_csv(read_gradebook(book)))}
    for standing in book.standings():
        row = rows[standing.entry.student]
        assert row["state"] == standing.state
        has_score = standing.state in (GRADED, UNREADABLE)
        assert row["score"] == (figure(standing.score) if has_score else "")
        assert row["points possible"] == "25"


def test_who_handed_in_nothing_has_empty_cells_throughout(book):
    student = in_state(book, MISSING)[0].student
    row = next(r for r in table(to_csv(read_gradebook(book))) if r["student"] == student)
    empty = [name for name, value in row.items() if name not in ("points possible",) and not value]
    checks = [each.name for each in load_rubric("default").rows]
    assert set(checks) | {"score", "part 1: autodiff", "problem"} <= set(empty)


def test_a_fault_of_the_grader_leaves_the_score_open(book):
    student = in_state(book, ERROR)[0].student
    row = next(r for r in table(to_csv(read_gradebook(book))) if r["student"] == student)
    assert (row["score"], row["part 2: gpu executor"]) == ("", "")
    assert row["part 1: autodiff"] != ""
    assert "no space left on device" in row["problem"]
    provisional = to_csv(read_gradebook(book, provisional=True))
    row = next(r for r in table(provisional) if r["student"] == student)
    parts = [float(row["part 1: autodiff"]), float(row["part 2: gpu executor"])]
    assert float(row["score"]) == sum(parts)


def test_a_report_that_is_not_there_gives_no_score_even_provisionally(book):
    entry = in_state(book, PENDING)[0]
    write_whole(book.folder(entry) / "error.txt", "a worker died\n")
    row = next(r for r in read_gradebook(book, None, True).rows if r.entry == entry)
    assert (row.standing.state, row.score) == (ERROR, None)


def test_parts_and_checks_add_up_to_the_score(book):
    rows = table(to_csv(read_gradebook(book)))
    names = [row.name for row in load_rubric("default").rows]
    scored = [row for row in rows if row["score"]]
    assert len(scored) >= len(in_state(book, GRADED)) > 10
    for row in scored:
        assert float(row["score"]) == sum(float(row[name]) for name in names)
        parts = [float(v) for name, v in row.items() if name.startswith("part ")]
        assert float(row["score"]) == sum(parts)


@pytest.mark.parametrize(
    "name",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\tx", " =1", "\x1b[0m=1", "\uff1d1", "\ufe661"),
        *("\u200b=1", "\ufeff@x", "\u2060+1", "\u00ad-1", "\ufe0f=1", "\u3164=1", "\t =1"),
    ],
)
def test_a_name_is_never_a_formula(book, name):
    change(book, 0, name=name)
    cell = table(to_csv(read_gradebook(book)))[0]["name"]
    assert cell.startswith("'")
    assert cell == csv_cell(name)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        (";=1+1", ";'=1+1"),
        ("a; \ufeff=1;-2;b", "a; \ufeff'=1;'-2;b"),
        ("a\t@x", "a\t'@x"),
        ("=1;=2", "'=1;'=2"),
        ("a;b = c-d", "a;b = c-d"),
    ],
)
def test_no_part_of_a_cell_becomes_a_formula_where_semicolons_end_cells(text, cell):
    assert csv_cell(text) == cell
    assert csv_cell("\r=1") == "\\x0d=1"
    assert from_csv_cell(cell) == text


def test_lines_in_a_name_do_not_break_the_table(book):
    change(book, 0, name='Ada, "the first"\r\n=2')
    rows = table(to_csv(read_gradebook(book)))
    assert len(rows) == len(book.entries)
    assert rows[0]["name"] == 'Ada, "the first" =2'


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, ""), (0.0, "0"), (-0.0, "0"), (12.0, "12"), (12.5, "12.5"), (100.0, "100"),
     (0.1 + 0.2, "0.3"), (123.4567, "123.4567"), (1 / 3, "0.3333"), (-1e-9, "0")],
)  # fmt: skip
def test_numbers_have_no_useless_digits(number, text):
    assert figure(number) == text


def test_the_long_form_has_each_check_of_each_student(book):
    rows = table(to_long(read_gradebook(book)))
    scores = {}
    for row in rows:
        if row["check"] and row["score"]:
            scores[row["student"]] = scores.get(row["student"], 0) + float(row["score"])
    for standing in book.standings():
        if standing.state == GRADED:
            assert scores[standing.entry.student] == pytest.approx(standing.score)
            assert {r["seed"] for r in rows if r["student"] == standing.entry.student} == {
                standing.seed
            }
    missing = in_state(book, MISSING)[0].student
    assert [r["status"] for r in rows if r["student"] == missing] == [MISSING]
    assert all(r["score"] == "" for r in rows if r["status"] in ("error", MISSING, PENDING))


def test_the_long_form_names_the_grader_that_graded(book):
    entry = in_state(book, GRADED)[0]
    edit_report(book, entry, lambda raw: raw.update(grader_version="0.0.7"))
    rows = table(to_long(read_gradebook(book)))
    assert {r["grader version"] for r in rows if r["student"] == entry.student} == {"0.0.7"}


# --- lateness -----------------------------------------------------------------------------------


def test_a_late_day_takes_its_percentage(book):
    row = late_row(book, lateness(percent_a_day=10), 1.5)
    assert row.earned > 0
    assert row.score == pytest.approx(0.8 * row.earned)
    cells = next(r for r in table(to_csv(read_gradebook(book, lateness(percent_a_day=10))))
                 if r["student"] == row.entry.student)  # fmt: skip
    assert (cells["late"], cells["days late"], cells["late days spent"]) == ("yes", "2", "0")
    assert (cells["score"], cells["score before late"]) == (figure(row.score), figure(row.earned))
    assert "20 %" in cells["late note"]


def test_late_days_that_were_spent_before_are_gone(book):
    assert late_row(book, lateness(percent_a_day=10, late_days=2), 1.5).late.spent == 2
    student = in_state(book, GRADED)[0].student
    row = late_row(book, lateness({student: 1}, percent_a_day=10, late_days=2), 1.5)
    assert (row.late.spent, row.score) == (1, pytest.approx(0.9 * row.earned))
    assert (
        late_row(book, lateness({student: 9}, percent_a_day=10, late_days=2), 1.5).late.spent == 0
    )


def test_an_extension_counts_for_its_student(book):
    student = in_state(book, GRADED)[0].student
    later = {student: DUE + timedelta(days=3)}
    row = late_row(book, lateness(percent_a_day=10, extensions=later), 2)
    assert row.late.days == 0


def test_nobody_gets_a_score_by_lateness(book):
    rule = lateness(percent_a_day=10, cutoff_days=1)
    assert late_row(book, rule, 3).score == 0
    for row in read_gradebook(book, rule).rows:
        if row.standing.state in (MISSING, PENDING, ERROR):
            assert (row.score, row.late) == (None, None)


def test_what_does_not_say_when_it_came_loses_nothing(book):
    place = book.entries.index(in_state(book, GRADED)[0])
    change(book, place, submitted="", late=True)
    row = read_gradebook(book, lateness(percent_a_day=50)).rows[place]
    assert row.score == row.earned
    assert table(to_csv(read_gradebook(book, lateness())))[place]["late"] == "yes"


@pytest.mark.parametrize("submitted", ["yesterday", "2026-10-09T10:00:00"])
def test_a_time_that_is_none_is_told_with_its_student(book, submitted):
    entry = change(book, book.entries.index(in_state(book, GRADED)[0]), submitted=submitted)
    with pytest.raises(GradebookError, match=f"student {entry.student}: "):
        read_gradebook(book, lateness())


def test_late_days_are_read_from_an_earlier_gradebook(book, tmp_path):
    rule = lateness(percent_a_day=10, late_days=3)
    row = late_row(book, rule, 1.5)
    path = tmp_path / "first.csv"
    path.write_text(to_csv(read_gradebook(book, rule)))
    assert read_spent(path)[row.entry.student] == 2
    path.write_text("student,score\n1,2\n")
    with pytest.raises(GradebookError, match="late days spent"):
        read_spent(path)
    path.write_text("student,late days spent\n1,many\n")
    with pytest.raises(GradebookError, match="many"):
        read_spent(path)


# --- the command --------------------------------------------------------------------------------


def test_the_command_writes_all_and_tells_who_has_no_score(book, tmp_path, capsys):
    (tmp_path / "c.csv").write_bytes(canvas(book, [POINTS]))
    (tmp_path / "late.toml").write_text(
        "due = 2026-10-08T23:59:00+02:00\n[late]\npercent_a_day = 10\n"
        "[late.extensions]\nnobody = 2026-10-10T23:59:00+02:00\n"
    )
    code = main([
        "export", str(book.path), "--csv", str(tmp_path / "g.csv"),
        "--long", str(tmp_path / "l.csv"), "--canvas", str(tmp_path / "c.csv"),
        "--column", "Assignment 2", "--output", str(tmp_path / "f.csv"),
        "--late", str(tmp_path / "late.toml"), "--feedback", str(tmp_path / "back.zip"),
    ])  # fmt: skip
    said = capsys.readouterr().out
    assert code == 0, said
    assert len(table((tmp_path / "g.csv").read_text())) == 60
    assert (tmp_path / "f.csv").read_bytes().startswith(b"\xef\xbb\xbfStudent")
    assert {"l.csv", "back.zip"} <= {path.name for path in tmp_path.iterdir()}
    unscored = sum(row.score is None for row in read_gradebook(read_classbook(book.path)).rows)
    assert f"{unscored} have no score" in said
    assert "1 an extension is for nobody in the class: nobody" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "nothing to write"), (["--canvas", "c.csv"], "needs --column"),
     (["--csv", "g", "--column", "x"], "need --canvas"),
     (["--csv", "g", "--spent", "x.csv"], "need --late"),
     (["--csv", "g", "--after-due-date"], "needs --feedback"),
     (["--csv", "g", "--late", "none.toml"], "none.toml does not exist"),
     (["--csv", "c.csv", "--canvas", "c.csv", "--column", "x", "--output", "o"], "is an input"),
     (["--csv", "o", "--canvas", "c.csv", "--column", "x", "--output", "o"], "name the same file"),
     (["--csv", "g", "--late", "c.csv"], "c.csv: "),
     (["--csv", "g", "--late", "empty.toml"], "no table [late]"),
     (["--csv", "g", "--late", "due.toml"], "no due date; hint: --due"),
     (["--csv", "g", "--late", "naive.toml"], "with time and offset"),
     (["--csv", "g", "--late", "parts.toml"], "a table [due]; hint: --course parts.toml"),
     (["--csv", "g", "--course", "parts.toml"], "[course] is missing"),
     (["--csv", "g", "--course", "none.toml"], "none.toml does not exist"),
     (["--csv", "course.toml", "--course", "course.toml"], "is an input, and would be lost"),
     (["--csv", "g", "--course", "course.toml"], "course.toml has several due dates; hint: --due"),
     (["--canvas", "c.csv", "--column", "x", "--output", "o"], "no column 'x'")],
)  # fmt: skip
def test_what_can_not_be_is_refused_in_words(book, tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.csv").write_bytes(canvas(book, [POINTS]))
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "due.toml").write_text("[late]\n")
    parts = "[late]\n[due]\n1 = 2026-10-08T23:59:00Z\n2 = 2026-10-09T23:59:00Z\n"
    (tmp_path / "parts.toml").write_text(parts)
    (tmp_path / "course.toml").write_text(course_file(parts))
    (tmp_path / "naive.toml").write_text("due = 2026-10-08T23:59:00\n[late]\n")
    assert main(["export", "results", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "g").exists()


def course_file(tables, parts="[]"):
    """A course's TOML; nobody looks for the files that it names."""
    return (f'[course]\nname = "C"\n[assignment]\ntitle = "A"\nrubric = "r.toml"\n'
            f'solution = "s"\nskeleton = "k"\nparts = {parts}\n{tables}')  # fmt: skip


EARLIER = "2020-01-01T00:00:00Z"
LATE = "2026-10-08T21:59:00Z"  # DUE of these tests


@pytest.mark.parametrize(
    ("parts", "due", "more"),
    [("[]", f"all = {LATE}", ""), ("[2]", f"2 = {LATE}\n1 = {EARLIER}", ""),
     ("[2, 3]", f"all = {LATE}\n1 = {EARLIER}", ""),
     ("[1, 2]", f"1 = {EARLIER}\n2 = {LATE}", LATE), ("[1, 2]", "", LATE)],
)  # fmt: skip
def test_due_date_and_late_policy_of_a_course_serve(book, tmp_path, parts, due, more):
    row = late_row(book, lateness(percent_a_day=10), 1.5)
    path = tmp_path / "course.toml"
    path.write_text(course_file(f"[late]\npercent_a_day = 10\n[due]\n{due}\n", parts))
    late = ["--course", str(path), *(["--due", more] if more else [])]
    assert main(["export", str(book.path), "--csv", str(tmp_path / "g.csv"), *late]) == 0
    rows = {each["student"]: each for each in table((tmp_path / "g.csv").read_text())}
    assert rows[row.entry.student]["score"] == figure(row.score)
    assert rows[row.entry.student]["days late"] == "2"


@pytest.mark.parametrize(("parts", "due"), [("[1, 2]", f"1 = {LATE}"), ("[]", "")])
def test_a_part_of_a_course_without_a_due_date_is_told(book, tmp_path, capsys, parts, due):
    path = tmp_path / "course.toml"
    path.write_text(course_file(f"[due]\n{due}\n", parts))
    assert main(["export", str(book.path), "--csv", str(path) + ".csv", "--course", str(path)]) == 2
    assert "no due date for all" in capsys.readouterr().err


def test_a_score_without_a_row_is_an_exit_code_of_its_own(book, tmp_path, capsys):
    (tmp_path / "c.csv").write_bytes(canvas(replace(book, entries=book.entries[:-2]), [POINTS]))
    arguments = ["--canvas", str(tmp_path / "c.csv"), "--column", COLUMN]
    code = main(["export", str(book.path), *arguments, "--output", str(tmp_path / "f.csv")])
    assert code == 1
    assert "have a score and no row in the template" in capsys.readouterr().out
