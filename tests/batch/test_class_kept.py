"""Who is in the class is kept with its results: a later run that does not say it harms nothing."""

from dataclasses import replace

import pytest

import sample_report
from grader.batch.batch import Batch, BatchError, Running
from grader.classroom.roster import Person
from grader.classroom.store import read_classbook
from grader.cli.main import main
from grader.course.rubric import load_rubric

ROSTER = (
    "Student,ID,SIS User ID,SIS Login ID,Section\n"
    '"Lovelace, Ada",5001,s5001,ada,A\n"Boole, George",5002,s5002,bob,A\n'
    '"Gauss, Carl",5010,s5010,carl,B\n'
)
GROUPS = "student,group\nada,red\ncarl,red\n"


@pytest.fixture
def inbox(tmp_path):
    """Canvas's download: Ada and George handed in, Carl did not."""
    folder = tmp_path / "inbox"
    for label in ("lovelaceada_5001_71_work", "boolegeorge_5002_72_work"):
        hand_in(folder, label)
    (tmp_path / "canvas.csv").write_text(ROSTER)
    return folder


def hand_in(folder, label):
    folder.mkdir(exist_ok=True)
    (folder / f"{label}.zip").write_bytes(b"no zip")


def run(inbox, roster="", **more):
    """The class after a batch, in which whoever handed in has a report; nothing is graded."""
    there = inbox.parent
    for name in ("roster", "groups"):
        text = roster if name == "roster" else more.pop(name, "")
        more[name] = there / text if text else None
    with Running(Batch(inbox, there / "results", load_rubric("default"), **more)) as running:
        for entry in running.wanted():
            if entry.source:
                sample_report.report([]).write(running.book.report_path(entry))
    book = read_classbook(there / "results")
    assert book == running.book
    return book


def students(book):
    return [entry.student for entry in book.entries]


def told(book):
    return [note for note in book.notes if not note.startswith("recognised")]


def test_the_roster_is_kept_with_the_results(inbox):
    first = run(inbox, "canvas.csv")
    assert first.roster[0] == Person("s5001", "Lovelace, Ada", "", "ada", "A", "5001")
    again = run(inbox)
    assert (again.entries, again.roster) == (first.entries, first.roster)
    assert students(again) == ["s5001", "s5002", "s5010"] and told(again) == []


def test_nobody_goes_away_by_only_or_in_another_folder(inbox, tmp_path):
    run(inbox, "canvas.csv")
    hand_in(tmp_path / "late", "gausscarl_LATE_5010_73_work")
    hand_in(tmp_path / "late", "noetheremmy_5020_74_work")
    late = run(tmp_path / "late", only=("CARL",))
    assert students(late) == ["s5001", "s5002", "s5010", "5020"]
    assert all(entry.source for entry in late.entries)
    assert "not handed in now, so the former result stands: s5001, s5002." in late.notes


def test_a_new_roster_takes_the_place_of_the_former(inbox, tmp_path):
    run(inbox, "canvas.csv")
    hand_in(inbox, "noetheremmy_5020_74_work")
    assert "5020" in students(run(inbox))  # not in the roster yet
    (tmp_path / "new.csv").write_text(ROSTER + '"Noether, Emmy",5020,s5020,emmy,B\n')
    new = run(inbox, "new.csv")
    assert students(new) == ["s5001", "s5002", "s5010", "s5020"]
    assert students(run(inbox)) == students(new)


def test_results_of_a_run_without_a_roster_go_when_there_is_one(inbox):
    assert students(run(inbox)) == ["5001", "5002"]
    healed = run(inbox, "canvas.csv")
    assert students(healed) == ["s5001", "s5002", "s5010"]
    [note] = told(healed)
    assert "they leave the class" in note and "5001, 5002" in note
    assert told(run(inbox)) == []


def test_a_class_that_was_damaged_so_is_healed_by_its_roster(inbox):
    """As the grader left it before it kept rosters: everybody twice, one away."""
    book = run(inbox, "canvas.csv")
    book.roster, book.entries = [], book.entries[:2]
    for entry in book.entries[:2]:
        ghost = replace(entry, student=f"50{entry.student[-2:]}", folder=f"of-{entry.student}")
        book.entries.append(ghost)
        sample_report.report([]).write(book.report_path(ghost))
    book.write()
    assert students(run(inbox, "canvas.csv")) == ["s5001", "s5002", "s5010"]


def test_groups_by_login_are_formed_and_kept(inbox, tmp_path):
    (tmp_path / "groups.csv").write_text(GROUPS)
    book = run(inbox, "canvas.csv", groups="groups.csv")
    assert [entry.group for entry in book.entries] == ["red", "", "red"]
    assert book.entries[2].source == book.entries[0].source and told(book) == []
    assert run(inbox).entries == book.entries
    assert run(inbox, "canvas.csv", only=("red",)).entries == book.entries


def test_a_name_of_nobody_in_a_group_ends_the_run_before_it_begins(inbox, tmp_path, capsys):
    (tmp_path / "groups.csv").write_text(GROUPS + "carol,red\n")
    words = ["--roster", str(tmp_path / "canvas.csv"), "--groups", str(tmp_path / "groups.csv")]
    assert main(["batch", str(inbox), "-o", str(tmp_path / "results"), *words]) == 2
    said = capsys.readouterr().err
    assert "groups.csv:4: nobody in the class is 'carol'; hint: the nearest name is 'carl'" in said
    assert not (tmp_path / "results/class.json").exists()


def test_a_name_of_nobody_for_only_is_told_with_the_nearest(inbox):
    with pytest.raises(BatchError, match="is 'george'; hint: an id, a login or"):
        run(inbox, "canvas.csv", only=("george",))
    with pytest.raises(BatchError, match="is 's501'; hint: the nearest name is 's5010'"):
        run(inbox, only=("s501",))


def test_what_cannot_be_read_is_named_at_the_end(inbox, tmp_path, capsys):
    words = ["batch", str(inbox), "--output", str(tmp_path / "cli"), "--isolation", "process"]
    main([*words, "--device", "emulated"])
    said = capsys.readouterr().out
    assert "\n  unreadable: 5001: lovelaceada_5001_71_work.zip is not an archive" in said
    assert "\n  unreadable: 5002: " in said
