"""A column of Canvas' own file is filled, and nothing else changes."""

import pytest

from class_states import COLUMN, POINTS, POLICY, canvas, cells, change, in_state
from grader.classroom.canvas import TemplateError, fill, find_column, read_lines
from grader.classroom.gradebook import figure, read_gradebook
from grader.classroom.store import GRADED, MISSING


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
    with pytest.raises(TemplateError, match=r"no column 'Assignment 3'; hint: .*'Quiz'"):
        find_column(["Student", "ID", COLUMN, "Quiz"], "Assignment 3")
    with pytest.raises(TemplateError, match="no column 'ID'"):
        find_column(["Student", "ID", COLUMN], "ID")
    with pytest.raises(TemplateError, match="none besides"):
        find_column(["Student", "ID"], "x")


def test_a_column_that_may_be_two_is_refused():
    titles = ["Student", "Assignment 2 (1)", "Assignment 2 (2)", "Quiz", "Quiz"]
    with pytest.raises(TemplateError, match=r"'Assignment 2 \(1\)', 'Assignment 2 \(2\)'"):
        find_column(titles, "Assignment 2")
    with pytest.raises(TemplateError, match="may be any of 'Quiz', 'Quiz'"):
        find_column(titles, "Quiz")
    assert find_column(titles, "Assignment 2 (2)") == 2


def test_a_head_without_a_number_is_filled_and_told(book):
    filled = fill(canvas(book, ["    Points Possible,,,,,,,25,"]), "Quiz", read_gradebook(book))
    assert any("makes a new assignment" in line for line in filled.warnings)
    assert filled.changed == filled.filled


def test_a_column_that_canvas_computes_is_refused(book):
    with pytest.raises(TemplateError, match="computes the column 'Total'"):
        fill(canvas(book, [POINTS]), "Total", read_gradebook(book))


@pytest.mark.parametrize(
    ("cell", "said"), [("20", "20 at Canvas, 25 here"), ("", "does not state")]
)
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
    assert "matches several" in filled.warnings[0]
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
    [(b"", "not a gradebook of Canvas"), (b"Name,Score\nx,1\n", "not a gradebook of Canvas"),
     ("Student,ID,x\n".encode("utf-16"), "UTF-8"), (b'Student,ID,"x\n', "line 1"),
     (b'Student,ID\na,"b"c\n', "line 2")],
)  # fmt: skip
def test_what_is_no_gradebook_of_canvas_is_refused(book, template, said):
    with pytest.raises(TemplateError, match=said):
        fill(template, COLUMN, read_gradebook(book))
