"""A class's submissions as folders and downloads give them: whose each is, and what is graded."""

import io
import os
import shutil
import struct
import tarfile
import unicodedata
import zipfile
from pathlib import Path

import pytest

from grader import unpacking
from grader.collection import CollectionError, collect
from grader.downloads import original_name
from grader.roster import Person
from grader.submission import SubmissionError, load_submission

PY, CU = "python/dlsys/autodiff.py", "src/gpu_op.cu"
HOLES = (PY, CU)
WORK = {PY: b"mine = 1\n", CU: b"// mine\n"}
OTHER = {PY: b"other = 1\n", CU: b"// other\n"}
LOOSE = {"autodiff.py": WORK[PY], "gpu_op.cu": WORK[CU]}
PRISTINE = {PY: b"hole\n", CU: b"// hole\n", "Makefile": b"all:\n"}

BOB = Person("s1", "Smith, Bob", "bob@x.edu", "bsmith", "A", "340934")
ASA = Person("s2", "Åsa van der Berg", "asa@x.edu", "asa", "B", "340935")
MING = Person("s3", "明 李", "ming@x.edu", "ming", "B", "340936")
ROSTER = [BOB, ASA, MING]


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def under(folder, files):
    return {f"{folder}/{name}": content for name, content in files.items()}


@pytest.fixture
def pristine(tmp_path):
    return lay(tmp_path / "pristine", PRISTINE)


def lay(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


class Class:
    """What collect gives for some files, in a folder or in a zip of it."""

    def __init__(self, tmp_path, pristine):
        self.tmp_path, self.pristine = tmp_path, pristine

    def __call__(self, files, roster=ROSTER, kind="folder"):
        if kind == "folder":
            source = lay(self.tmp_path / "download", files)
        else:
            source = self.tmp_path / f"download.{kind}"
            source.write_bytes(zipped(files) if kind == "zip" else tar(files))
        return self.collect(source, roster)

    def collect(self, source, roster=ROSTER, files=HOLES):
        entries, self.notes = collect(source, roster, self.tmp_path / "into", files)
        self.entries = {entry.student: entry for entry in entries}
        assert len(self.entries) == len(entries) == len({e.folder.casefold() for e in entries})
        return self.entries

    def load(self, student):
        return load_submission(Path(self.entries[student].source), HOLES, self.pristine)

    def noted(self, *words):
        """Whether one of the notes about all has all these words."""
        return any(all(word in note for word in words) for note in self.notes)


@pytest.fixture
def of(tmp_path, pristine):
    return Class(tmp_path, pristine)


def canvas(name, user, original, late=False, file=[208490000]):  # noqa: B006
    file[0] += 1  # each file has a number of its own, and later ones have larger ones
    return f"{name}{'_LATE' if late else ''}_{user}_{file[0]}_{original}"


def metadata(*submissions):
    """As Ruby writes it."""
    lines = ["---"]
    for number, created, people in submissions:
        lines += [f"submission_{number}:", "  :submitters:"]
        for name, email, sid in people:
            lines += [f"  - :name: {name}", f"    :email: {email}", f"    :sid: {sid}"]
        lines += [f"  :created_at: {created}", "  :score: 12.0", "  :status: processed"]
    return "\n".join(lines).encode() + b"\n"


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
def test_the_same_work_is_the_same_submission_in_every_form(of, pristine, form, kind):
    junk = {"__MACOSX/._x": b"x", ".DS_Store": b"x"}
    entries = of({**FORMS[form], **junk}, kind=kind)
    assert list(entries) == ["s1", "s2", "s3"]
    found = of.load("s1")
    assert found.taken == WORK
    assert found.sha256 == load_submission(lay(of.tmp_path / "w", WORK), HOLES, pristine).sha256
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
    assert of.noted("kept, nobody in the roster: abe.zip, zed.zip.")
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
    assert of.noted("kept, ", "with another Canvas id, 340934: smithbob.")


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


def test_an_id_that_is_another_s_login_is_never_guessed(of):
    entries = of(under("7", WORK), [Person("7", "A"), Person("8", "B", login="7")])
    assert list(entries) == ["7", "8", "7-2"] and not entries["7"].source
    assert of.noted("'7' is an id of one and a login of another")


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
        "handed in more than once: bsmith, s1.zip; graded is the first by name, since nothing "
        "tells which is newer."
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


def test_links_are_noted_and_never_followed(of):
    secret = lay(of.tmp_path / "secret", WORK)
    download = lay(of.tmp_path / "download", under("ming", WORK) | under("asa", {PY: b"x"}))
    (download / "bsmith").symlink_to(secret)
    (download / "asa/src").symlink_to(secret / "src")
    os.mkfifo(download / "pipe.zip")
    entries = of.collect(download)
    assert entries["s1"].source == ""
    assert of.noted("ignored: bsmith is a link, and is not followed")
    assert of.noted("ignored: pipe.zip is no plain file")
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
    with pytest.raises(CollectionError, match="is where the results go; hint:"):
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


def test_a_participant_s_number_is_never_taken_for_a_student_s_id(of):
    entries = of({"Nobody Known_340934_assignsubmission_file_/w.zip": zipped(WORK)})
    assert entries["s1"].source == "" and entries["340934"].name == "Nobody Known"


def test_names_with_underscores_and_dots_are_read(of):
    roster = [Person("1", "Dr. J. Q_Public"), Person("2", "X")]
    name = "Dr. J. Q_Public_4_assignsubmission_file_my_work_v2.zip"
    assert of({name: zipped(WORK)}, roster)["1"].source.endswith(name)


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
    assert of.noted("kept, nobody in the roster: submission_4.")


def test_of_two_submissions_of_a_student_the_newest_is_graded(of):
    bob = [("Bob", "bob@x.edu", "s1")]
    times = ("2026-10-02 01:00:00 +02:00", "2026-10-01 23:30:00.5 Z", "2026-10-01 22:00:00 UTC")
    entries = gradescope(of, *[(n, moment, bob) for n, moment in enumerate(times, 1)])
    assert entries["s1"].source.endswith("submission_2")
    assert entries["s1"].submitted == "2026-10-01T23:30:00.500000+00:00"
    assert entries["s1"].notes == [
        "handed in more than once: submission_2, submission_1, submission_3; graded is the newest."
    ]


def test_an_address_of_somebody_else_than_the_id_s_is_never_guessed(of):
    entries = gradescope(of, (1, "2026-10-01", [("Bob", "asa@x.edu", "s1")]))
    assert not entries["s1"].source and not entries["s2"].source
    assert of.noted("id s1 and address asa@x.edu are of two students")


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


# --- the archive around it all -------------------------------------------------------------------


def refused(of, content, name="download.zip"):
    (of.tmp_path / name).write_bytes(content)
    with pytest.raises(CollectionError) as caught:
        of.collect(of.tmp_path / name)
    assert not list(of.tmp_path.glob("into/*")) and not list(of.tmp_path.glob("into/.*"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


PATHS = ["../up.zip", "/abs.zip", "C:/x.zip", "a/../../up.zip"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [*[("zip", name) for name in [*PATHS, "..\\up.zip"]], *[("tar", name) for name in PATHS]],
)
def test_a_path_out_of_the_folder_is_left_out_and_told(of, name, kind):
    before = set(of.tmp_path.parent.iterdir())
    of({name: zipped(WORK), "asa.zip": zipped(WORK), "ming.zip": zipped(WORK)}, kind=kind)
    assert of.load("s2").taken == WORK and set(of.tmp_path.parent.iterdir()) == before
    assert of.noted("left out of the download", name.replace("\\", "/"))


def test_a_link_in_the_download_is_left_out_and_told(of):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (
            ("asa", tarfile.SYMTYPE),
            ("b", tarfile.LNKTYPE),
            ("c", tarfile.CHRTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc"
            archive.addfile(info)
        info = tarfile.TarInfo("asa/x")
        archive.addfile(info)
    (of.tmp_path / "download.tar").write_bytes(out.getvalue())
    entries = of.collect(of.tmp_path / "download.tar")
    assert entries["s2"].source.endswith("asa") and not Path(entries["s2"].source).is_symlink()
    for name, what in (("asa", "a symbolic link"), ("b", "a hard link"), ("c", "a special file")):
        assert of.noted(f"left out of the download, {what}: {name}.")


def test_a_link_in_a_zip_is_left_out_and_told(of):
    info = zipfile.ZipInfo("bsmith.zip")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(of.tmp_path / "download.zip", "w") as out:
        out.writestr(info, "/etc/passwd")
        out.writestr("asa.zip", zipped(WORK))
    assert of.collect(of.tmp_path / "download.zip")["s1"].source == ""
    assert of.noted("left out of the download, a symbolic link: bsmith.zip.")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_occurs_twice_and_one_below_a_file_are_told(of):
    with zipfile.ZipFile(of.tmp_path / "download.zip", "w") as out:
        for name, work in (("asa.zip", WORK), ("asa.zip", OTHER), ("asa.zip/x/y", OTHER)):
            out.writestr(name, zipped(work))
    of.collect(of.tmp_path / "download.zip")
    assert of.load("s2").taken == WORK
    assert of.noted("a name that is there twice, and the first counts: asa.zip.")
    assert of.noted("left out of the download, below a file: asa.zip/x/y.")


def test_a_bomb_in_the_download_is_its_student_s_alone(of, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_MEMBER", 1 << 20)
    size = (64 << 20) + 1
    bomb = {"bsmith.zip": b"\0" * size, f"ming/{PY}": WORK[PY], "ming/data.bin": b"\0" * (2 << 20)}
    of({**bomb, "asa.zip": zipped(WORK)}, kind="zip")
    with pytest.raises(SubmissionError, match="larger than 64 MiB"):
        of.load("s1")
    source = Path(of.entries["s1"].source)
    assert source.stat().st_size == size and source.stat().st_blocks * 512 < 1 << 20
    assert of.load("s2").taken == WORK and of.load("s3").taken == {PY: WORK[PY]}
    assert of.noted("not unpacked, larger than 1 MiB: bsmith.zip, ming/data.bin.")


def test_a_loose_file_that_is_too_large_takes_no_room_when_put_together(of):
    download = lay(of.tmp_path / "download", {canvas("smithbob", 340934, "gpu_op.cu"): b""})
    os.truncate(next(download.iterdir()), (64 << 20) + 1)
    of.collect(download)
    with pytest.raises(SubmissionError, match=r"gpu_op\.cu has 67,108,865 bytes"):
        of.load("s1")


def test_a_download_over_the_limits_is_refused_and_leaves_nothing(of, monkeypatch):
    files = {f"{number}.zip": zipped(WORK) for number in range(20)}
    for kind, pack in (("zip", zipped), ("tar", tar)):
        monkeypatch.setattr(unpacking, "MAX_MEMBERS", 19)
        assert "holds more than 19 files" in refused(of, pack(files), f"a.{kind}")
        monkeypatch.undo()
        monkeypatch.setattr(unpacking, "MAX_BYTES", 2000)
        assert "holds more than 300,000 files or 0 GiB; hint:" in refused(of, pack(files), kind)
        monkeypatch.undo()


def test_a_download_with_a_huge_list_of_members_is_refused_before_it_is_read(of):
    content = bytearray(zipped({"asa.zip": b"x"}))
    end = content.rfind(b"PK\5\6")
    content[end + 12 : end + 16] = struct.pack("<I", 65 << 20)
    assert "holds more than 300,000 files" in refused(of, bytes(content))


@pytest.mark.parametrize("pack", [zipped, tar])
@pytest.mark.parametrize("share", [0.4, 0.8])
def test_a_download_that_is_cut_short_is_refused(of, pack, share):
    content = pack({f"{n}.bin": os.urandom(5000) for n in range(9)})
    said = refused(of, content[: int(share * len(content))])
    assert said.startswith("download.zip is damaged (") and "hint: download it again" in said


def test_a_download_with_a_wrong_checksum_is_refused(of):
    content = bytearray(zipped({"asa.zip": zipped(WORK)}, zipfile.ZIP_STORED))
    content[60] ^= 1
    assert "Bad CRC-32" in refused(of, bytes(content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is neither a folder nor a zip or tar archive"),
        (b"hello" * 999, "is neither a folder nor a zip or tar archive"),
        (zipped({"a": b"x" * 99}, zipfile.ZIP_BZIP2), "is compressed by method 12; hint: unpack"),
        (zipped({}), "holds no submissions"),
    ],
)
def test_what_is_no_download_is_told(of, content, said):
    (of.tmp_path / "download.zip").write_bytes(content)
    with pytest.raises(CollectionError, match=said):
        of.collect(of.tmp_path / "download.zip")


def test_a_source_that_is_missing_empty_or_one_submission_is_told(of):
    with pytest.raises(CollectionError, match="gone does not exist"):
        of.collect(of.tmp_path / "gone")
    with pytest.raises(CollectionError, match="holds no submissions; hint: a folder or an archive"):
        of({})
    with pytest.raises(CollectionError, match=r"holds src/gpu_op\.cu, so it is one submission"):
        of({CU: b"x"})


def test_names_are_decoded_as_macos_writes_them_and_cut_to_what_file_systems_take(of):
    long = "明" * 200 + ".zip"
    content = zipped({"X明 李.zip": zipped(WORK), f"{long}": zipped(WORK)})
    # UTF-8 without the mark that it is UTF-8
    data, at = bytearray(content), -1
    for magic, offset in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        while (at := data.find(magic, at + 1)) >= 0:
            data[at + offset + 1] &= ~8
    (of.tmp_path / "download.zip").write_bytes(data)
    entries = of.collect(of.tmp_path / "download.zip", [Person("1", "X明 李")])
    assert entries["1"].source.endswith("X明 李.zip")
    (other,) = [entry for entry in entries.values() if entry.student != "1"]
    assert other.source.endswith(".zip") and len(Path(other.source).name.encode()) <= 255


def test_what_a_killed_run_left_is_made_again(of, tmp_path):
    source = tmp_path / "download.zip"
    files = {canvas("smithbob", 340934, name): text for name, text in LOOSE.items()}
    source.write_bytes(zipped(files))
    first = of.collect(source)
    for place in [*tmp_path.glob("into/download-*"), *tmp_path.glob("into/assembled/*/*")]:
        place.rename(place.parent / f".{place.name}.part")
    assert of.collect(source) == first and of.load("s1").taken == WORK
    assert not list(tmp_path.rglob("*.part"))


def test_three_thousand_submissions_are_collected(of):
    inner = zipped(WORK)
    roster = [Person(f"s{n}", f"Name {n}", canvas_id=f"{n}") for n in range(3000)]
    entries = of({f"n_{n}_{n + 7}_w.zip": inner for n in range(2990)}, roster, "zip")
    assert len(entries) == 3000 and sum(not entry.source for entry in entries.values()) == 10
    assert of.load("s2989").taken == WORK
