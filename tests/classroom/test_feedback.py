"""Feedback to hand back: what a student may see, for people and for Moodle."""

import zipfile

import pytest

from class_states import change, edit_report, in_state, late_row, lateness
from grader.classroom.feedback import FeedbackError, all_feedback, moodle_folder, write_feedback
from grader.classroom.gradebook import figure, read_gradebook
from grader.classroom.store import GRADED, MISSING
from grader.cli.main import main


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
    assert "this was late" in text()


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
