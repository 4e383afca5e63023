"""Rosters as they come: which columns are found, what is refused, and in which words."""

import pytest

from grader.base.sheets import SheetError
from grader.classroom.roster import Person, read_roster

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Assignment 2 (12345)\r\n"
    ",,,,,Manual Posting\r\n"
    '"    Points Possible",,,,,25\r\n'
    '"Smith, Bob",340934,s1,bob,"Sec 1 and Sec 2",20\r\n'
    '"Øst, Åsa",340935,,asa,Sec 1,\r\n'
    '"Noid, Nell",340936,,,Sec 1,\r\n'
    '"Student, Test",999,,1f2e3d,Sec 1,\r\n'
)


@pytest.fixture
def write(tmp_path):
    def write(content, encoding="utf-8"):
        path = tmp_path / "roster.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


def refused(path):
    """The sentence, less the path."""
    with pytest.raises(SheetError) as caught:
        read_roster(path)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_encoding_and_delimiter_gives_the_same_people(write, delimiter, encoding, end):
    rows = (
        ("Email", "STUDENT ID", "Name", "Section", "Login", "Remark"),
        ("a@x.edu", "007", "Zoë 明", "A", "zoe", "none"),
        ("", "8", "Bo", "", "", ""),
    )
    text = "".join(delimiter.join(row) + end for row in rows)
    assert read_roster(write(text, encoding)) == [
        Person("007", "Zoë 明", "a@x.edu", "zoe", "A"),
        Person("8", "Bo"),
    ]


@pytest.mark.parametrize("byte_order", ["utf-16-le", "utf-16-be"])
def test_both_byte_orders_of_utf_16_are_read(write, byte_order):
    assert read_roster(write("\ufeffid\tname\r\n1\tÅsa\r\n", byte_order)) == [Person("1", "Åsa")]


@pytest.mark.parametrize(
    ("header", "person"),
    [
        ("id,name", Person("one", "two")),
        ("student,name", Person("one", "two")),
        ("student,email", Person("one", email="two")),
        ("sis user id,student", Person("one", "two")),
        ("SID,Student Name", Person("one", "two")),
        ("Student ID,SIS Login ID", Person("one", login="two")),
        ("ID number,Username", Person("one", login="two")),
    ],
)
def test_columns_go_by_several_names(write, header, person):
    assert read_roster(write(f"{header}\none,two\n")) == [person]


def test_given_and_family_names_are_joined(write):
    text = "First Name,Last Name,SID,Email Address\nÉmile,van der Berg,9,e@x.edu\n"
    assert read_roster(write(text)) == [Person("9", "Émile van der Berg", "e@x.edu")]


def test_canvas_s_gradebook_is_read_without_the_rows_that_are_no_students(write):
    assert read_roster(write(CANVAS, "utf-8-sig")) == [
        Person("s1", "Smith, Bob", "", "bob", "Sec 1 and Sec 2", "340934"),
        Person("asa", "Øst, Åsa", "", "asa", "Sec 1", "340935"),
        Person("340936", "Noid, Nell", "", "", "Sec 1", "340936"),
    ]


def test_quoted_cells_hold_commas_quotes_and_line_ends(write):
    text = 'id,name,section\n1,"O""Neill, ""Bob""","two\nlines"\n2,B,C\n'
    assert read_roster(write(text)) == [
        Person("1", 'O"Neill, "Bob"', section="two lines"),
        Person("2", "B", section="C"),
    ]


def test_excel_s_line_about_the_delimiter_is_passed_over(write):
    for delimiter in ";|\t":
        text = f"sep={delimiter}\r\nid{delimiter}name\r\n1{delimiter}Bo, Li\r\n"
        assert read_roster(write(text)) == [Person("1", "Bo, Li")]


def test_empty_lines_are_passed_over_and_cells_are_trimmed(write):
    assert read_roster(write("\nid,name\n".lstrip() + ' 1 ,"  A   B "\n\n,,\n2,C\n')) == [
        Person("1", "A B"),
        Person("2", "C"),
    ]


def test_a_name_cannot_carry_terminal_codes(write):
    assert read_roster(write("id,name\n1,\x1b[2Jgo\x07ne\n")) == [Person("1", "go\\x07ne")]


# --- refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,name\n1,A\n2,B\n1,C\n", ":4: the id '1' is in line 2 already"),
        ("id,name\na1,A\nA1,B\n", ":3: the id 'A1' is in line 2 already"),
        ('id,name\n1,"A\nA"\n\n1,C\n', ":5: the id '1' is in line 2 already"),
        ("id,name\n1,A\n,B\n", ":3: the id is empty (B)"),
        ("id,email\n1,A\n  ,x\n", ":3: the id is empty"),
        (
            "name,email\nA,b\n",
            ":1: no column of ids; it has: name, email; hint: the first line names the "
            "columns, one of them student id, sis user id, id, student",
        ),
        ("", ":1: no column of ids; it has: nothing; hint:"),
        ("id,name\n", " names no students; hint: one line a student below the header"),
        ("id,ID\n1,2\n", ":1: two columns are called 'id'"),
        (
            "id,name\n1,Smith, Bob\n",
            ":2: 3 cells under 2 columns; hint: quote a cell that holds a comma",
        ),
        ('id,name\n1,A\n2,"B"x\n', ":3: "),
        ('id,name\n1,A\n2,"B\n', ":3: "),
        ("sep=;\nid;name\n;B\n", ":3: the id is empty (B)"),
        (CANVAS + '"Twice, Tim",340934,s9,tim,,\r\n', ":8: the Canvas id '340934' is in"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(write, text, said):
    assert refused(write(text)).startswith(said)


def test_text_of_another_encoding_is_refused_with_the_way_out(write):
    said = refused(write("id,name\n1,Åsa\n", "latin-1"))
    assert said == ':2: byte 0xc5 is not UTF-8 text; hint: save it as "CSV UTF-8"'


def test_a_file_that_is_missing_or_no_file_is_told(tmp_path):
    assert "cannot be read: No such file" in refused(tmp_path / "gone.csv")
    assert "cannot be read: Is a directory" in refused(tmp_path)


def test_a_file_that_is_no_roster_is_not_read_to_its_end(write):
    assert "is larger than 16 MiB" in refused(write(b"x" * ((16 << 20) + 1)))
