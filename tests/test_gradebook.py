"""Gradebooks of a class: who has a score, lateness, Canvas' own file, and feedback to hand back."""

import csv
import io
import json
import shutil
import zipfile
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from grader.canvas import CanvasError, fill, find_column, read_lines
from grader.classbook import ERROR, GRADED, MISSING, PENDING, UNREADABLE, read_classbook
from grader.cli import main
from grader.feedback import FeedbackError, all_feedback, moodle_folder, write_feedback
from grader.files import write_whole
from grader.gradebook import (
    GradebookError,
    Lateness,
    figure,
    read_gradebook,
    read_spent,
    to_csv,
    to_long,
)
from grader.lateness import LatePolicy
from grader.printable import csv_cell
from grader.rubric import load_rubric
from simulated import simulate

DUE = datetime(2026, 10, 8, 21, 59, tzinfo=timezone.utc)
COLUMN = "Assignment 2 (12345)"


@pytest.fixture(scope="module")
def simulated_class(tmp_path_factory):
    """60 students, one at least in each state there is. Tests take a copy."""
    book = simulate(tmp_path_factory.mktemp("class") / "results", 60, seed=4)
    graded = in_state(book, GRADED)
    change(book, book.entries.index(graded[5]), source="")
    book.report_path(graded[5]).unlink()
    book.report_path(graded[6]).unlink()
    edit_report(book, graded[7], fail_last)
    edit_report(book, graded[8], unreadable)
    return book.path


@pytest.fixture
def book(simulated_class, tmp_path):
    """A copy of the class, for one test."""
    shutil.copytree(simulated_class, tmp_path / "results")
    return read_classbook(tmp_path / "results")


def fail_last(raw):
    raw["results"][-1] |= {"status": "error", "score": 0.0, "message": "no space left on device"}


def unreadable(raw):
    raw["problem"] = "none of autodiff.py, gpu_op.cu found in it"
    for result in raw["results"]:
        result |= {"status": "skipped", "score": 0.0}


def table(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def change(book, place, **values):
    """Sets fields of one entry."""
    book.entries[place] = replace(book.entries[place], **values)
    book.write()
    return book.entries[place]


def edit_report(book, entry, edit):
    path = book.report_path(entry)
    raw = json.loads(path.read_bytes())
    edit(raw)
    write_whole(path, json.dumps(raw))


def in_state(book, state):
    return [standing.entry for standing in book.standings() if standing.state == state]


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
    for row in rows:
        if row["score"]:
            assert float(row["score"]) == sum(float(row[name]) for name in names)
            parts = [float(v) for name, v in row.items() if name.startswith("part ")]
            assert float(row["score"]) == sum(parts)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", " =1", "\x1b[0m=1", "＝1"])
def test_a_name_is_never_a_formula(book, name):
    change(book, 0, name=name)
    cell = table(to_csv(read_gradebook(book)))[0]["name"]
    assert cell.startswith("'")
    assert cell == csv_cell(name)


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


def lateness(spent=None, **policy):
    return Lateness(LatePolicy(**policy), DUE, spent or {})


def late_row(book, rule, days, state=GRADED):
    """The gradebook's row of a student who came `days` late."""
    place = book.entries.index(in_state(book, state)[0])
    submitted = (DUE + timedelta(days=days)).isoformat()
    entry = change(book, place, submitted=submitted)
    return next(row for row in read_gradebook(book, rule).rows if row.entry == entry)


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


# --- Canvas -------------------------------------------------------------------------------------


def canvas(book, above=(), below=(), end="\r\n", bom="\ufeff"):
    """A gradebook as Canvas exports it, with some rows above and below the students."""
    head = f"Student,ID,SIS User ID,SIS Login ID,Section,Assignment 1 (12344),{COLUMN},Quiz,Total"
    lines = [head, *above]
    for entry in book.entries:
        given, _, family = entry.name.partition(" ")
        who = (
            f'"{family}, {given}",{entry.student},u{entry.student},{entry.login},"{entry.section}"'
        )
        lines.append(f'{who},"9,5",,"=1+1",88.20')
    lines += below
    return (bom + end.join(lines) + end).encode()


POINTS = "    Points Possible,,,,,10.00,25.00,5,(read only)"
POLICY = ",,,,,,Manual Posting,,"


def cells(data):
    """The rows of a file as csv reads them."""
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("above, below", [((POINTS,), ()), ((POLICY, POINTS), ()), ((), (POINTS,)),
                                          ((POLICY,), (POINTS, ""))])  # fmt: skip
def test_only_the_column_changes_in_the_template(book, end, bom, above, below):
    template = canvas(book, above, below, end, bom)
    filled = fill(template, COLUMN, read_gradebook(book))
    scores = {r.entry.student: figure(r.score) for r in read_gradebook(book).rows}
    expected = []
    for line in template.decode().split(end):
        parts = line.split(",")  # the family name holds one comma, in quotes; so does "9,5"
        student = parts[2] if line.startswith('"') else ""
        if scores.get(student):
            assert parts[8] == ""
            parts[8] = scores[student]
        expected.append(",".join(parts))
    assert filled.content.decode() == end.join(expected)
    assert filled.filled == sum(bool(score) for score in scores.values()) > 40
    assert filled.warnings == []


@pytest.mark.parametrize(
    "text",
    ["", "a", "a,b", 'a,"b\r\n,""c"""\r\n\r\n', "\ufeff,,\r,\n", 'x"y",z "q"\n', '"a"\n"b"'],
)
def test_a_file_that_is_read_is_the_same_when_it_is_joined(text):
    bom, lines = read_lines(text.encode())
    assert bom + "".join(",".join(line.cells) + line.end for line in lines) == text


def test_bytes_that_are_not_utf_8_stay(book):
    template = canvas(book, [POINTS]).replace("Émile".encode(), b"\xc9mile")
    assert b"\xc9mile" in template
    filled = fill(template, COLUMN, read_gradebook(book))
    assert filled.content.count(b"\xc9mile") == template.count(b"\xc9mile")


def test_who_has_no_score_keeps_the_cell(book):
    entry = in_state(book, MISSING)[0]
    template = canvas(book, [POINTS])
    old = f'{entry.login},"{entry.section}","9,5",'.encode()
    assert template.count(old + b",") == 1
    template = template.replace(old + b",", old + b"17,")
    filled = fill(template, COLUMN, read_gradebook(book))
    assert [r[6] for r in cells(filled.content) if r[1] == entry.student] == ["17"]
    assert entry in filled.unscored
    assert filled.changed == 0


def test_a_cell_in_quotes_stays_in_quotes_and_an_equal_number_as_it_is(book):
    a, b = in_state(book, GRADED)[:2]
    scores = {r.entry.student: r.score for r in read_gradebook(book).rows}
    text = canvas(book, [POINTS]).decode()
    for entry, cell in ((a, '"3.25"'), (b, f"{scores[b.student]:.3f}")):
        text = text.replace(f'{entry.login},"{entry.section}","9,5",,',
                            f'{entry.login},"{entry.section}","9,5",{cell},')  # fmt: skip
    filled = fill(text.encode(), COLUMN, read_gradebook(book))
    assert f'"9,5","{figure(scores[a.student])}",' in filled.content.decode()
    assert f'"9,5",{scores[b.student]:.3f},' in filled.content.decode()
    assert filled.changed == 1


@pytest.mark.parametrize("wanted", [COLUMN, "Assignment 2", "12345", "(12345)", " Assignment 2 "])
def test_a_column_is_found_by_head_name_or_number(wanted):
    titles = ["Student", "ID", "Assignment 1 (12344)", COLUMN, "Assignment 20 (12346)", "12344"]
    assert find_column(titles, wanted) == 3


def test_a_column_that_is_unknown_lists_what_there_is():
    with pytest.raises(CanvasError, match=r"no column 'Assignment 3'; hint: .*'Quiz'"):
        find_column(["Student", "ID", COLUMN, "Quiz"], "Assignment 3")
    with pytest.raises(CanvasError, match="no column 'ID'"):
        find_column(["Student", "ID", COLUMN], "ID")
    with pytest.raises(CanvasError, match="none besides"):
        find_column(["Student", "ID"], "x")


def test_a_column_that_may_be_two_is_refused():
    titles = ["Student", "Assignment 2 (1)", "Assignment 2 (2)", "Quiz", "Quiz"]
    with pytest.raises(CanvasError, match=r"'Assignment 2 \(1\)', 'Assignment 2 \(2\)'"):
        find_column(titles, "Assignment 2")
    with pytest.raises(CanvasError, match="may be any of 'Quiz', 'Quiz'"):
        find_column(titles, "Quiz")
    assert find_column(titles, "Assignment 2 (2)") == 2


def test_a_head_without_a_number_is_filled_and_told(book):
    filled = fill(canvas(book, ["    Points Possible,,,,,,,25,"]), "Quiz", read_gradebook(book))
    assert any("makes a new assignment" in line for line in filled.warnings)
    assert filled.changed == filled.filled


def test_a_column_that_canvas_computes_is_refused(book):
    with pytest.raises(CanvasError, match="computes the column 'Total'"):
        fill(canvas(book, [POINTS]), "Total", read_gradebook(book))


@pytest.mark.parametrize(("cell", "said"), [("20", "20 at Canvas, 25 here"), ("", "does not say")])
def test_other_points_possible_are_told(book, cell, said):
    above = [f"    Points Possible,,,,,,{cell},,"]
    warnings = fill(canvas(book, above), COLUMN, read_gradebook(book)).warnings
    assert len(warnings) == 1
    assert said in warnings[0]


def test_students_of_one_side_alone_are_told(book):
    template = canvas(book, [POINTS], [
        '"Student, Test",999,,cafe,section 1,,,,', "Müßig Ö,998,,nobody,,,,,", "x,,,,,,,,",
    ])  # fmt: skip
    known = in_state(book, GRADED)[3]
    lines = [ln for ln in template.split(b"\r\n") if f",{known.student},".encode() not in ln]
    filled = fill(b"\r\n".join(lines), COLUMN, read_gradebook(book))
    assert filled.absent == [known]
    assert filled.strangers == ["Müßig Ö"]
    assert b"M\xc3\xbc\xc3\x9fig \xc3\x96,998,,nobody,,,,,\r\n" in filled.content


def test_a_student_is_found_without_an_sis_id_or_by_login_alone(book):
    a, b = in_state(book, GRADED)[:2]
    change(book, book.entries.index(b), email="Bo@Example.edu")
    rows = [f"{a.name},{a.student},,,,,,,", f"{b.name},77,,bO@example.edu,,,,,"]
    head = canvas(book).split(b"\r\n")[0].decode()
    template = "\n".join([head, POINTS, *rows]).encode()  # no line end at the end
    filled = fill(template, COLUMN, read_gradebook(book))
    scores = {r.entry.student: figure(r.score) for r in read_gradebook(book).rows}
    assert [row[6] for row in cells(filled.content)[2:]] == [scores[a.student], scores[b.student]]
    assert not filled.content.endswith(b"\n")


def test_a_row_that_fits_two_students_stays(book):
    a, b = in_state(book, GRADED)[:2]
    row = f"{a.name},{a.student},,{b.login},,,7,,"
    template = "\n".join([canvas(book).split(b"\r\n")[0].decode(), POINTS, row, ""]).encode()
    filled = fill(template, COLUMN, read_gradebook(book))
    assert filled.content == template
    assert "fits more than one" in filled.warnings[0]
    assert fill(template, COLUMN, read_gradebook(book), match="ID").filled == 1


def test_numbers_of_canvas_that_are_others_numbers_here_are_not_trusted(book):
    """Here students have SIS ids, and the number of a stranger at Canvas is one of these."""
    a = in_state(book, GRADED)[0]
    head = canvas(book).split(b"\r\n")[0].decode()
    rows = [f"Other,{a.student},u1,other,,,,,", f"{a.name},5,{a.student},{a.login},,,,,"]
    template = "\n".join([head, POINTS, *rows, ""]).encode()
    filled = fill(template, COLUMN, read_gradebook(book))
    assert filled.content == template
    assert len(filled.warnings) == 2
    chosen = fill(template, COLUMN, read_gradebook(book), match="SIS User ID")
    assert [bool(row[6]) for row in cells(chosen.content)[2:]] == [False, True]


def test_a_row_with_another_name_is_filled_and_told(book):
    entry = in_state(book, GRADED)[0]
    head = canvas(book).split(b"\r\n")[0].decode()
    template = "\n".join([head, POINTS, f"Zzyzx Qux,{entry.student},,,,,,,"]).encode()
    filled = fill(template, COLUMN, read_gradebook(book))
    assert filled.filled == 1
    assert "Zzyzx Qux at Canvas has the id of" in filled.warnings[0]


def test_who_is_excused_stays_excused(book):
    entry = in_state(book, GRADED)[0]
    head = canvas(book).split(b"\r\n")[0].decode()
    template = "\n".join([head, POINTS, f"{entry.name},{entry.student},,,,,EX,,", ""]).encode()
    filled = fill(template, COLUMN, read_gradebook(book))
    assert filled.content == template
    assert "excused" in filled.warnings[0]


def test_a_row_that_is_too_short_gets_its_cells(book):
    entry = in_state(book, GRADED)[0]
    head = canvas(book).split(b"\r\n")[0].decode()
    template = "\n".join([head, POINTS, f"{entry.name},{entry.student}", ""]).encode()
    row = cells(fill(template, COLUMN, read_gradebook(book)).content)[2]
    assert row[2:6] == [""] * 4
    assert row[6] != ""


@pytest.mark.parametrize(
    ("template", "said"),
    [(b"", "no gradebook of Canvas"), (b"Name,Score\nx,1\n", "no gradebook of Canvas"),
     ("Student,ID,x\n".encode("utf-16"), "UTF-8"), (b'Student,ID,"x\n', "line 1"),
     (b'Student,ID\na,"b"c\n', "line 2")],
)  # fmt: skip
def test_what_is_no_gradebook_of_canvas_is_refused(book, template, said):
    with pytest.raises(CanvasError, match=said):
        fill(template, COLUMN, read_gradebook(book))


# --- feedback -----------------------------------------------------------------------------------


def hide(book, entry, check):
    def edit(raw):
        for result in raw["results"]:
            if result["check"] == check:
                result["visibility"] = "after_due_date"

    edit_report(book, entry, edit)


def test_feedback_is_what_a_student_may_see(book, tmp_path):
    entry = in_state(book, GRADED)[0]
    hide(book, entry, "mnist_gpu")
    gradebook = read_gradebook(book)
    assert write_feedback(tmp_path / "now", all_feedback(book, gradebook)) == sum(
        book.report_path(each).is_file() for each in book.entries
    )
    write_feedback(tmp_path / "then", all_feedback(book, gradebook, after_due_date=True))
    seed = book.standing(entry).seed
    for name in ("feedback.html", "feedback.txt"):
        now = (tmp_path / "now" / entry.folder / name).read_text()
        then = (tmp_path / "then" / entry.folder / name).read_text()
        assert "mnist_gpu" not in now
        assert "mnist_gpu" in then
        assert seed not in now + then
    missing = in_state(book, MISSING)[0]
    assert not (tmp_path / "now" / missing.folder).exists()


def test_feedback_says_what_lateness_took_but_tells_no_hidden_score(book):
    rule = lateness(percent_a_day=10)
    row = late_row(book, rule, 1.5)

    def text():
        given = all_feedback(book, read_gradebook(book, rule))
        return next(each.text for each in given if each.folder == row.entry.folder)

    assert f"{figure(row.score)} of 25 points count" in " ".join(text().split())
    hide(book, row.entry, "mnist_gpu")
    assert "points count" not in text()
    assert "this came late" in text()


def test_feedback_has_no_note_about_the_class(book):
    entry = in_state(book, GRADED)[0]
    at = book.entries.index(entry)
    change(book, at, notes=["of TWIN-4711 or me"])
    book.notes.append("not matched: TWIN-4712")
    given = list(all_feedback(book, read_gradebook(book)))
    assert any(each.folder == entry.folder for each in given)
    assert not any("TWIN-471" in each.html + each.text for each in given)


def test_feedback_does_not_mix_with_what_is_there(book, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old/x").write_text("")
    with pytest.raises(FeedbackError, match="not empty"):
        write_feedback(tmp_path / "old", [])
    with pytest.raises(RuntimeError):
        write_feedback(tmp_path / "new", broken(book))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old", "results"]


def broken(book):
    yield next(all_feedback(book, read_gradebook(book)))
    raise RuntimeError


def test_the_zip_has_the_same_files_and_goes_back_to_moodle(book, tmp_path, capsys):
    folder = "Ana María O'Neill_20731_assignsubmission_file_"
    entry = change(book, book.entries.index(in_state(book, GRADED)[0]),
                   source=f"down/{folder}/work.tar.gz")  # fmt: skip
    for name in ("a.zip", "b.zip"):
        write_feedback(tmp_path / name, all_feedback(book, read_gradebook(book)))
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
        assert f"{folder}/feedback.html" in names
        assert not any(name.startswith(entry.folder + "/") for name in names)
        assert b"<html" in archive.read(names[0])
    assert main(["export", str(book.path), "--feedback", str(tmp_path / "c.zip")]) == 0
    assert "1 came from Moodle" in capsys.readouterr().out
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "c.zip").read_bytes()


@pytest.mark.parametrize(
    ("source", "folder"),
    [("x/Ada B_1_assignsubmission_file_/w.zip", "Ada B_1_assignsubmission_file_"),
     ("x/明_22_assignsubmission_file_w.tar.gz", "明_22_assignsubmission_file_"),
     ("x/A_1_assignsubmission_file_/B_2_assignsubmission_file_/w", "A_1_assignsubmission_file_"),
     ("x/A_1_assignsubmission_file_B_2_assignsubmission_file_w.zip", "A_1_assignsubmission_file_"),
     ("x/a\x1b_1_assignsubmission_file_/w.zip", ""), ("x/s1.tar.gz", ""), ("", "")],
)  # fmt: skip
def test_moodles_folder_is_known_by_its_name(source, folder):
    assert moodle_folder(source) == folder


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
     (["--csv", "g", "--column", "x"], "go with --canvas"),
     (["--csv", "g", "--spent", "x.csv"], "go with --late"),
     (["--csv", "g", "--after-due-date"], "goes with --feedback"),
     (["--csv", "g", "--late", "none.toml"], "none.toml is no file"),
     (["--csv", "c.csv", "--canvas", "c.csv", "--column", "x", "--output", "o"], "stays as it is"),
     (["--csv", "o", "--canvas", "c.csv", "--column", "x", "--output", "o"], "the same name"),
     (["--csv", "g", "--late", "c.csv"], "c.csv: "),
     (["--csv", "g", "--late", "empty.toml"], "no table [late]"),
     (["--csv", "g", "--late", "due.toml"], "no due date; hint: --due"),
     (["--csv", "g", "--late", "naive.toml"], "with time and offset"),
     (["--csv", "g", "--late", "parts.toml"], "a table [due]; hint: --course parts.toml"),
     (["--csv", "g", "--course", "parts.toml"], "[course] is missing"),
     (["--csv", "g", "--course", "none.toml"], "none.toml is no file"),
     (["--csv", "course.toml", "--course", "course.toml"], "stays as it is"),
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
