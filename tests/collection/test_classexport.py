"""What Gradescope exports: groups, times, and metadata that are read as plain data."""

import pytest

from downloaded import ROSTER, WORK, Class, lay, metadata, under
from grader.collection.collect import CollectionError


@pytest.fixture
def of(tmp_path):
    return Class(tmp_path)


# --- Gradescope ----------------------------------------------------------------------------------


def gradescope(of, *submissions, roster=ROSTER, text=None):
    files = {"submission_metadata.yml": metadata(*submissions) if text is None else text}
    for number, _, _ in submissions:
        files |= under(f"submission_{number}", WORK | {"number.txt": f"{number}".encode()})
    return of(files, roster)


def test_a_group_shares_one_submission(of):
    people = [("Bob S", "bob@x.edu", "s1"), ("Åsa", "asa@x.edu", ""), ("Eve", "eve@x.edu", "s9")]
    entries = gradescope(of, (4, "2026-10-01T10:00:00.000-07:00", people))
    assert entries["s1"].source == entries["s2"].source == entries["s9"].source != ""
    assert entries["s1"].submitted == "2026-10-01T17:00:00+00:00"
    assert entries["s1"].notes == ["one submission with Åsa, Eve."]
    assert entries["s3"].source == ""
    assert of.noted("nobody in the roster; kept under ids of their own: submission_4.")


def test_of_two_submissions_of_a_student_the_newest_is_graded(of):
    bob = [("Bob", "bob@x.edu", "s1")]
    times = ("2026-10-02 01:00:00 +02:00", "2026-10-01 23:30:00.5 Z", "2026-10-01 22:00:00 UTC")
    entries = gradescope(of, *[(n, moment, bob) for n, moment in enumerate(times, 1)])
    assert entries["s1"].source.endswith("submission_2")
    assert entries["s1"].submitted == "2026-10-01T23:30:00.500000+00:00"
    assert entries["s1"].notes == [
        "handed in more than once: submission_2, submission_1, submission_3; the grader took the "
        "newest."
    ]


def test_an_address_of_somebody_else_than_the_id_s_is_never_guessed(of):
    entries = gradescope(of, (1, "2026-10-01", [("Bob", "asa@x.edu", "s1")]))
    assert not entries["s1"].source and not entries["s2"].source
    assert of.noted("id s1 and address asa@x.edu belong to two students")


def test_a_time_without_a_zone_is_not_used(of):
    entries = gradescope(of, (1, "2026-10-01 10:00:00", [("Bob", "bob@x.edu", "s1")]))
    assert entries["s1"].submitted == ""
    assert of.noted("submission_1: its time has no zone")


def test_folders_and_metadata_that_do_not_agree_are_told(of):
    lay(of.tmp_path / "download", under("submission_8", WORK))
    text = metadata((1, "x", [("Bob", "bob@x.edu", "s1")]), (2, "x", [("Åsa", "asa@x.edu", "s2")]))
    entries = gradescope(of, (1, "x", []), text=text)
    assert entries["s1"].source and not entries["s2"].source and entries["8"].source
    assert of.noted("submission_2 (Åsa) is in submission_metadata.yml and has no folder")
    assert of.noted("submission_8 is not in submission_metadata.yml")


RUBY = b"""---
submission_1: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
  :submitters:
  - &user !ruby/object:User
    :name: !ruby/string "Bob \\u2028 =cmd()"
    :email: bob@x.edu
    :sid: 's1'
  :created_at: !ruby/object:ActiveSupport::TimeWithZone
    utc: 2026-10-01 10:00:00.000000000 Z
    zone: !ruby/object:ActiveSupport::TimeZone
      name: Etc/UTC
    time: 2026-10-01 03:00:00.000000000 Z
  :results: !!python/object/apply:os.system ["touch %s"]
  :history: [[[[[[[[[[[[[[{a: b}]]]]]]]]]]]]]]
submission_2:
  :submitters: [*user, *nobody, 7, null]
  :created_at: !!python/object/new:os.system ["touch %s"]
"""


def test_ruby_s_and_python_s_objects_are_read_as_plain_data(of, tmp_path):
    text = RUBY.replace(b", *nobody", b"").replace(b"%s", bytes(tmp_path / "touched"))
    entries = gradescope(of, (1, "", []), (2, "", []), text=text)
    assert not (tmp_path / "touched").exists()
    assert entries["s1"].submitted == "2026-10-01T10:00:00+00:00"
    assert entries["s1"].name == "Smith, Bob" and "more than once" in entries["s1"].notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: [", "submission_metadata.yml is not YAML"),
        (b"a: *gone", "submission_metadata.yml is not YAML|holds no submissions"),
        (b"\xff\xfe\x00", "submission_metadata.yml is not YAML"),
        (b"- a\n", "submission_metadata.yml holds no table of submissions"),
        (b"", "submission_metadata.yml holds no table of submissions"),
        (b"{}", "holds no submissions"),
    ],
)
def test_metadata_that_cannot_be_read_are_told(of, text, said):
    with pytest.raises(CollectionError, match=said):
        gradescope(of, text=text)


@pytest.mark.parametrize("opening", [b"[", b"{a: "])
def test_deeply_nested_metadata_do_no_harm(of, opening):
    text = b"submission_1:\n  :submitters: " + opening * 5000
    with pytest.raises(CollectionError, match="is not YAML"):
        gradescope(of, (1, "", []), text=text)
