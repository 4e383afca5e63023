"""A class's submissions as folders and downloads give them: whose each is, and what is graded."""

import errno
import os
import shutil
import subprocess
import tarfile
import unicodedata

import pytest

from downloaded import (
    CU,
    HOLES,
    LOOSE,
    OTHER,
    PY,
    ROSTER,
    WORK,
    Class,
    canvas,
    lay,
    metadata,
    tar,
    under,
    zipped,
)
from grader.classroom.feedback import moodle_folder
from grader.classroom.roster import Person
from grader.collection import one_student
from grader.collection.collect import CollectionError, collect
from grader.collection.platforms import original_name
from grader.submission.reader import SubmissionError, load_submission


@pytest.fixture
def of(tmp_path):
    return Class(tmp_path)


@pytest.fixture
def removed(tmp_path):
    """Takes away what is too deep for shutil, which pytest cleans up with."""
    yield
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


# --- the same work in all forms ------------------------------------------------------------------

FORMS = {
    "folders": under("bsmith", WORK),
    "folders of the content, one deeper": under("s1/hw2", WORK),
    "archives by e-mail address": {"bob@x.edu.tar.gz": tar(under("hw2", WORK))},
    "archives by name": {"Bob Smith.zip": zipped(WORK)},
    "a zip named .tar.gz": {"smith_bob.tar.gz": zipped(WORK)},
    "git": under("bsmith", WORK | {".git/config": b"[core]", ".git/objects/ab": b"x"}),
    "canvas, an archive": {"smithbob_340934_208490284_work.tar.gz": tar(WORK)},
    "canvas, late": {"smithbob_LATE_340934_208490284_work.tar.gz": tar(WORK)},
    "canvas, resubmitted": {"smithbob_340934_208490284_work-2.zip": zipped(WORK)},
    "canvas, loose": under(".", {canvas("smithbob", 340934, n): c for n, c in LOOSE.items()}),
    "canvas, loose, resubmitted": {
        "smithbob_340934_1_autodiff-1.py": WORK[PY],
        "smithbob_340934_2_gpu_op-1.cu": WORK[CU],
    },
    "canvas, an archive and a report": {
        "smithbob_340934_1_report.pdf": b"%PDF",
        "smithbob_340934_2_work.zip": zipped(WORK),
    },
    "moodle, folders": {"Bob Smith_77_assignsubmission_file_/work.zip": zipped(WORK)},
    "moodle, folders of loose files": under("Bob Smith_77_assignsubmission_file_", LOOSE),
    "moodle, an archive and a report": under(
        "Bob Smith_77_assignsubmission_file_", {"w.zip": zipped(WORK), "report.pdf": b"%PDF"}
    ),
    "moodle, files": {"Bob Smith_77_assignsubmission_file_work.tgz": tar(WORK)},
    "moodle, loose files": under(
        ".", {f"Bob Smith_77_assignsubmission_file_{n}": c for n, c in LOOSE.items()}
    ),
    "gradescope": {
        "assignment_5_export/submission_metadata.yml": metadata(
            (9, "2026-10-01 10:00:00.123456000 Z", [("Bob", "bob@x.edu", "s1")])
        ),
        **under("assignment_5_export/submission_9", WORK),
    },
    "gradescope, an archive": {
        "submission_metadata.yml": metadata((9, "2026-10-01", [("Bob", "bob@x.edu", "s1")])),
        "submission_9/work.tar.gz": tar(under("hw2", WORK)),
    },
}


@pytest.mark.parametrize("kind", ["folder", "zip", "tar.gz"])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_work_is_the_same_submission_in_every_form(of, form, kind):
    junk = {"__MACOSX/._x": b"x", ".DS_Store": b"x"}
    entries = of({**FORMS[form], **junk}, kind=kind)
    assert list(entries) == ["s1", "s2", "s3"]
    found = of.load("s1")
    assert found.taken == WORK
    assert found.sha256 == load_submission(lay(of.tmp_path / "w", WORK), HOLES, of.pristine).sha256
    assert entries["s1"].name == "Smith, Bob" and entries["s1"].section == "A"
    assert [entries[student].source for student in ("s2", "s3")] == ["", ""]
    assert of.noted("left behind by tools", ".DS_Store", "__MACOSX")


@pytest.mark.parametrize("form", FORMS)
def test_collecting_again_gives_the_same_and_writes_nothing(of, form):
    first = of({**FORMS[form]}, kind="zip")
    stamps = {path: path.stat().st_mtime_ns for path in of.tmp_path.rglob("*")}
    assert of.collect(of.tmp_path / "download.zip") == first
    assert {path: path.stat().st_mtime_ns for path in of.tmp_path.rglob("*")} == stamps


def test_what_was_recognised_is_said(of):
    of(FORMS["canvas, loose"] | FORMS["archives by name"] | FORMS["moodle, files"])
    assert of.notes == ["recognised: Canvas (1), Moodle (1), a folder or archive each (1)."]
    of(FORMS["gradescope"], kind="zip")
    assert of.notes == ["recognised: Gradescope (1)."]


def test_a_class_is_collected_without_a_roster(of):
    entries = of(under("b", WORK) | {"A.tar.gz": tar(WORK), "read.me": b"x"}, roster=None)
    assert [(e.student, e.name, e.notes) for e in entries.values()] == [
        ("A", "", []),
        ("b", "", []),
    ]
    assert of.noted("ignored, neither folders nor archives: read.me")


def test_the_order_is_the_roster_s_and_then_by_id(of):
    files = {f"{name}.zip": zipped(WORK) for name in ("zed", "ming", "bsmith", "abe")}
    assert list(of(files)) == ["s1", "s2", "s3", "abe", "zed"]
    assert of.noted("nobody in the roster; kept under ids of their own: abe.zip, zed.zip.")
    assert of.entries["zed"].notes == ["not matched to the roster: nobody in the roster."]


# --- Canvas --------------------------------------------------------------------------------------


def test_canvas_says_who_is_late_where_it_marks_anybody(of):
    files = {
        canvas("smithbob", 340934, "w.zip", late=True): zipped(WORK),
        canvas("vanderbergåsa", 340935, "w.zip"): zipped(WORK),
    }
    entries = of(files)
    assert [entries[student].late for student in ("s1", "s2", "s3")] == [True, False, None]
    shutil.rmtree(of.tmp_path / "download")
    assert of({canvas("smithbob", 340934, "w.zip"): zipped(WORK)})["s1"].late is None


def test_the_newest_attempt_on_canvas_counts_whatever_it_is_packed_as(of):
    files = {
        "smithbob_340934_7_work-2.zip": zipped(WORK),
        "smithbob_340934_9_work.tar.gz": tar(OTHER),
        "smithbob_340934_8_work.tar-1.gz": tar(OTHER),
        "vanderbergåsa_340935_3_autodiff-10.py": WORK[PY],
        "vanderbergåsa_340935_4_autodiff-9.py": OTHER[PY],
        "vanderbergåsa_340935_5_gpu_op.cu": WORK[CU],
    }
    entries = of(files)
    assert of.load("s1").taken == of.load("s2").taken == WORK
    assert (entries["s1"].attempt, entries["s2"].attempt) == (3, 11)
    assert sorted(entries["s1"].notes) == [
        "an earlier attempt was left: smithbob_340934_8_work.tar-1.gz.",
        "an earlier attempt was left: smithbob_340934_9_work.tar.gz.",
    ]


@pytest.mark.parametrize(
    ("name", "original", "attempt"),
    [
        ("work.zip", "work.zip", 1),
        ("work-1.zip", "work.zip", 2),
        ("work-1.tar.gz", "work.tar.gz", 2),
        ("work.tar-12.gz", "work.tar.gz", 13),
        ("work-1", "work", 2),
        ("hw-2026.zip", "hw-2026.zip", 1),
        ("-1.zip", "-1.zip", 1),
        ("a-b.py", "a-b.py", 1),
    ],
)
def test_a_resubmission_s_number_stands_before_the_extension(name, original, attempt):
    assert original_name(name) == (original, attempt)


def test_loose_files_win_over_an_archive_beside_them(of):
    files = {canvas("smithbob", 340934, name): text for name, text in LOOSE.items()}
    entries = of({**files, canvas("smithbob", 340934, "old.zip"): zipped(OTHER)})
    assert of.load("s1").taken == WORK
    assert entries["s1"].notes == ["loose files are graded; old.zip beside them was not opened."]


def test_two_archives_of_one_student_are_not_chosen_between(of):
    of({canvas("smithbob", 340934, f"{name}.zip"): zipped(WORK) for name in "ab"})
    with pytest.raises(SubmissionError, match=r"it holds: a\.zip, b\.zip; hint: hand in a\.zip"):
        of.load("s1")


def test_a_name_on_canvas_is_enough_where_the_roster_lacks_the_numbers(of):
    roster = [Person("s1", "Bob Smith"), Person("s2", "Åsa van der Berg"), Person("3", "明 李")]
    accents = unicodedata.normalize("NFD", "vanderbergåsa")
    names = {"smithbob": 1, accents: 2, "李明": 3}
    entries = of({canvas(n, u, "w.zip"): zipped(WORK) for n, u in names.items()}, roster)
    assert list(entries) == ["s1", "s2", "3"] and all(e.source for e in entries.values())


def test_a_name_on_canvas_with_another_number_is_not_matched(of):
    entries = of({canvas("smithbob", 555, "w.zip"): zipped(WORK)})
    assert entries["s1"].source == "" and entries["555"].source
    assert of.noted("with another Canvas id, 340934; kept", "own: smithbob.")


def test_a_roster_whose_ids_are_canvas_s_is_matched_where_the_name_agrees(of):
    roster = [Person("340934", "Bob Smith"), Person("2", "Bob Smith"), Person("3", "Li Ming")]
    files = {
        canvas("smithbob", 340934, "w.zip"): zipped(WORK),
        canvas("elseanna", 2, "w.zip"): zipped(WORK),
    }
    entries = of(files, roster)
    assert entries["340934"].source and not entries["2"].source
    assert entries["canvas-2"].name == "elseanna"


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "label",
    [
        *("s1", "S1", "bsmith", "BOB@X.EDU", "340934", "Bob Smith", "bob_smith", "SMITH, Bob"),
        *("smithbob", "bob.smith", "Ｂｏｂ Ｓｍｉｔｈ"),
    ],
)
def test_a_folder_may_be_called_by_anything_that_names_the_student(of, label):
    assert of(under(label, WORK))["s1"].source.endswith(label)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("label", "student"), [("ÅSA van der BERG", "s2"), ("van der Berg Åsa", "s2"), ("李明", "s3")]
)
def test_names_of_any_script_match_in_either_unicode_form(of, form, label, student):
    name = unicodedata.normalize(form, label)
    entries = of({f"{name}_12_assignsubmission_file_/w.zip": zipped(WORK)}, kind="zip")
    assert [s for s, entry in entries.items() if entry.source] == [student]


def test_a_name_that_two_students_share_is_never_guessed(of):
    roster = [Person("1", "Bob Smith"), Person("2", "Smith, Bob"), Person("3", "Li")]
    entries = of({"Bob Smith_3_assignsubmission_file_/w.zip": zipped(WORK)}, roster)
    assert list(entries) == ["1", "2", "3", "moodle-3"]
    assert [bool(entry.source) for entry in entries.values()] == [False, False, False, True]
    assert of.noted("'Bob Smith' may be any of several in the roster")


def test_two_accounts_that_share_one_name_of_the_roster_are_never_guessed(of):
    files = {f"Bob Smith_{n}_assignsubmission_file_/w.zip": zipped(WORK) for n in (7, 8)}
    entries = of(files)
    assert list(entries) == ["s1", "s2", "s3", "7", "8"] and not entries["s1"].source
    assert of.noted("Bob Smith", "the download has 'Bob Smith' more than once")


def two_accounts(*emails):
    people = [(n, "2026-10-01 10:00:00 Z", [("Bob", e, "s1")]) for n, e in enumerate(emails, 1)]
    works = under("submission_1", WORK) | under("submission_2", OTHER)
    return {"submission_metadata.yml": metadata(*people), **works}


@pytest.mark.parametrize("roster", [None, ROSTER])
def test_two_accounts_with_one_id_and_other_addresses_are_two_students(of, roster):
    entries = of(two_accounts("eve@x.edu", "mal@x.edu"), roster=roster)
    handed = {e.email: e for e in entries.values() if e.source}
    assert set(handed) == {"eve@x.edu", "mal@x.edu"}
    assert of.load(handed["eve@x.edu"].student).taken == WORK
    assert of.load(handed["mal@x.edu"].student).taken == OTHER
    assert all("tell them apart" in " ".join(e.notes) for e in handed.values())
    assert of.noted("2 accounts have the id s1", "eve@x.edu, mal@x.edu")


def test_of_two_accounts_with_one_id_the_roster_s_address_tells_whose_it_is(of):
    entries = of(two_accounts("mal@x.edu", "BOB@x.edu"))
    assert of.load("s1").taken == OTHER
    assert [e.email for e in entries.values() if e.source] == ["bob@x.edu", "mal@x.edu"]
    assert of.noted("not matched to the roster", "several accounts", "'s1'")


def test_an_id_that_is_another_s_login_is_never_guessed(of):
    entries = of(under("7", WORK), [Person("7", "A"), Person("8", "B", login="7")])
    assert list(entries) == ["7", "8", "7-2"] and not entries["7"].source
    assert of.noted("'7' is one student's id and another's login")


def test_words_are_not_parted_in_another_place(of):
    roster = [Person("1", "Anna Lee"), Person("2", "李明"), Person("3", "Mary-Jane O'Neill")]
    labels = {"Ann Alee": "", "annalee": "1", "明 李": "2", "oneill_mary jane": "3"}
    for label, student in labels.items():
        entries = of(under(label, WORK), roster)
        assert [s for s in "123" if entries[s].source] == [student] * bool(student)
        shutil.rmtree(of.tmp_path / "download")


def test_letters_with_and_without_marks_are_different_names(of):
    assert of(under("Asa van der Berg", WORK))["s2"].source == ""


def test_hostile_names_are_escaped_and_make_safe_folders(of):
    entries = of(under("\x1b[2J=cmd|x\n", WORK) | under("..a", WORK) | under("s1", WORK))
    for entry in entries.values():
        assert entry.folder.strip(".-") and not set(entry.folder) & set("/\\\x1b\n=|")
    assert "\x1b" not in "".join([*entries, *of.notes])


# --- missing, twice, odd -------------------------------------------------------------------------


def test_an_empty_folder_is_nothing_handed_in(of):
    (of.tmp_path / "download/asa").mkdir(parents=True)
    entries = of(under("bsmith/.git", {"config": b"x"}) | {"ming.zip": zipped(WORK)})
    assert (entries["s1"].source, entries["s2"].source) == ("", "")
    assert entries["s1"].notes == ["bsmith is empty, so nothing was handed in."]
    assert entries["s3"].source


def test_of_two_sources_without_a_time_the_first_by_name_is_graded_with_a_note(of):
    entries = of(under("bsmith", WORK) | {"s1.zip": zipped(OTHER)})
    assert of.load("s1").taken == WORK
    assert entries["s1"].notes == [
        "handed in more than once: bsmith, s1.zip; the grader took the first by name, since "
        "nothing tells which is newer."
    ]


def test_an_empty_folder_beside_an_archive_does_no_harm(of):
    (of.tmp_path / "download/bsmith").mkdir(parents=True)
    of({"bsmith.zip": zipped(WORK), "asa.zip": zipped(WORK)})
    assert of.load("s1").taken == WORK


def test_a_broken_archive_is_its_student_s_alone(of):
    files = {
        canvas("smithbob", 340934, "w.zip"): b"PK\3\4 and no more",
        canvas("vanderbergåsa", 340935, "w.tar.gz"): b"",
        canvas("李明", 340936, "w.zip"): zipped(WORK),
        "noarchive.zip": b"hello",
    }
    of(files, kind="zip")
    for student, said in (("s1", "damaged zip"), ("s2", "0 bytes"), ("noarchive", "not an arch")):
        with pytest.raises(SubmissionError, match=said):
            of.load(student)
    assert of.load("s3").taken == WORK


def test_a_full_disk_never_makes_a_part_of_the_work_all_of_it(of, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(one_student, "_copy", fail)
    with pytest.raises(CollectionError, match=r"smithbob.*No space.*failure of the machine.*hint:"):
        of(FORMS["canvas, loose"])


@pytest.mark.usefixtures("removed")
@pytest.mark.parametrize("kind", ["folder", "zip", "tar.gz"])
def test_folders_in_one_another_without_end_are_their_student_s_alone(of, kind):
    bottomless = {f"bsmith/{'d/' * 1100}x": b"x"} if kind != "folder" else {}
    download = lay(of.tmp_path / "download", {"bsmith/x": b"x"})
    if kind == "folder":
        for _ in range(1100):
            inner = of.tmp_path / "outer"
            inner.mkdir()
            (download / "bsmith").rename(inner / "d")
            inner.rename(download / "bsmith")
        lay(download, under("ming", WORK))
        of.collect(download)
    else:
        of({**bottomless, **under("ming", WORK), "bsmith/y": b"y"}, kind=kind)
        assert of.noted("left out of the download, in too many folders")
    assert of.load("s3").taken == WORK
    with pytest.raises(SubmissionError):
        of.load("s1")


def test_links_are_noted_and_never_followed(of):
    secret = lay(of.tmp_path / "secret", WORK)
    download = lay(of.tmp_path / "download", under("ming", WORK) | under("asa", {PY: b"x"}))
    (download / "bsmith").symlink_to(secret)
    (download / "asa/src").symlink_to(secret / "src")
    os.mkfifo(download / "pipe.zip")
    entries = of.collect(download)
    assert entries["s1"].source == ""
    assert of.noted("ignored: bsmith is a link, and is not followed")
    assert of.noted("ignored: pipe.zip is not a plain file")
    with pytest.raises(SubmissionError, match="src is a symbolic link"):
        of.load("s2")


def test_a_late_submission_put_beside_a_download_is_collected_too(of):
    files = FORMS["gradescope, an archive"] | {"asa.zip": zipped(WORK)}
    files["李 明_3_assignsubmission_file_w.zip"] = zipped(WORK)
    assert all(entry.source for entry in of(files).values())


def test_a_file_that_a_student_of_the_roster_handed_in_unpacked_is_kept(of):
    of({"bsmith.py": b"x", "asa": b"text", "ming.zip": zipped(WORK)})
    assert of.entries["s2"].source and not of.entries["s1"].source
    assert of.noted("neither folders nor archives: bsmith.py")


@pytest.mark.parametrize("folders", ["subs", "a/b"])
def test_folders_around_the_download_are_entered(of, folders):
    files = {canvas("smithbob", 340934, "w.zip"): zipped(WORK)}
    assert of(under(folders, files), kind="zip")["s1"].source
    assert of(under(folders, under("s2", WORK)), kind="tar")["s2"].source


def test_results_among_the_submissions_are_no_student(of):
    download = lay(of.tmp_path / "download", under("bsmith", WORK) | under("out/x", WORK))
    entries, notes = collect(download, ROSTER, download / "out/work", HOLES)
    assert [entry.student for entry in entries] == ["s1", "s2", "s3"]
    assert "ignored, since results go there: out." in notes
    with pytest.raises(CollectionError, match="is the folder of the results, too; hint:"):
        collect(download, ROSTER, download, HOLES)


# --- Moodle --------------------------------------------------------------------------------------


def test_text_typed_in_on_moodle_is_left_beside_files(of):
    files = {
        "Bob Smith_77_assignsubmission_file_/w.zip": zipped(WORK),
        "Bob Smith_77_assignsubmission_onlinetext_/onlinetext.html": b"<p>hi",
        "明 李_78_assignsubmission_onlinetext_/onlinetext.html": b"<p>hi",
    }
    entries = of(files)
    assert of.load("s1").taken == WORK
    assert entries["s1"].notes == ["left: Bob Smith_77_assignsubmission_onlinetext_."]
    with pytest.raises(SubmissionError, match="none of autodiff"):
        of.load("s3")


def test_loose_files_of_moodle_go_back_under_the_name_of_its_download(of):
    name = "Bob Smith_77_assignsubmission_file_"
    of(under(".", {f"{name}{own}": content for own, content in LOOSE.items()}))
    assert moodle_folder(of.entries["s1"].source) == name
    assert of.load("s1").taken == WORK


def test_a_participant_s_number_is_never_taken_for_a_student_s_id(of):
    entries = of({"Nobody Known_340934_assignsubmission_file_/w.zip": zipped(WORK)})
    assert entries["s1"].source == "" and entries["340934"].name == "Nobody Known"


def test_names_with_underscores_and_dots_are_read(of):
    roster = [Person("1", "Dr. J. Q_Public"), Person("2", "X")]
    name = "Dr. J. Q_Public_4_assignsubmission_file_my_work_v2.zip"
    assert of({name: zipped(WORK)}, roster)["1"].source.endswith(name)


def test_an_odd_extended_header_in_a_download_is_refused_before_tarfile_searches_it(of):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 3000
    content = header.tobuf() + (b"7" * 3000).ljust(3072, b"\0") + bytes(1024)
    (of.tmp_path / "download.tar").write_bytes(content)
    with pytest.raises(CollectionError, match=r"damaged.*over 100 digits in a row.*hint:"):
        of.collect(of.tmp_path / "download.tar")
