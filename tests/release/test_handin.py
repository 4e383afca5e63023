"""What `make submit` checks and packs, and what the grader makes of such an archive."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from grader.building import tree
from grader.cli import main
from grader.course.course import kit_course
from grader.grading.prebuilt import prebuilt
from grader.release.holes import MANIFEST
from grader.release.submit import HandinError, hand_in
from grader.submission.manifest import manifest_notes
from grader.submission.reader import load_submission

KIT = Path(__file__).resolve().parents[2]
PY, CU = "python/dlsys/autodiff.py", "src/gpu_op.cu"


@pytest.fixture
def folder(tmp_path):
    """A student's folder, with the solution in both files and what the release left beside."""
    work = tmp_path / "work"
    for name in (MANIFEST, "submit.py", "Makefile"):
        (work / name).parent.mkdir(exist_ok=True)
        shutil.copy(KIT / "assignment" / name, work / name)
    for name in (PY, CU):
        (work / name).parent.mkdir(parents=True)
        shutil.copy(KIT / "solution" / name, work / name)
    return work


def submit(folder, *options):
    """(exit code, what was said) without building."""
    said = []
    code = hand_in(kit_course(), folder, ["--no-build", *options], said.append)
    return code, "\n".join(said)


def members(path):
    with tarfile.open(path) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive}


def test_the_archive_holds_the_files_with_holes_and_a_manifest(folder):
    code, said = submit(folder)
    assert code == 0 and "hand in this file" in said and "not written" not in said
    packed = members(folder / "submission.tar.gz")
    manifest = json.loads(packed.pop("submission.json"))
    assert packed == {name: (KIT / "solution" / name).read_bytes() for name in (PY, CU)}
    release = json.loads((KIT / "assignment" / MANIFEST).read_text())
    assert manifest["release"] == release["release"] and manifest["title"] == release["title"]
    assert (manifest["open_tasks"], manifest["missing"]) == ([], [])
    assert (manifest["tests"], manifest["built"]) == (None, None)
    assert manifest["packed"].endswith("+00:00")


def test_open_holes_are_listed_with_points_and_pack_all_the_same(folder):
    shutil.copy(KIT / "assignment" / CU, folder / CU)
    code, said = submit(folder)
    assert code == 0
    assert (
        "  2.10 matrix_multiply (2 points)\n  2.11 relu (1 point)" in said and "  1.1" not in said
    )
    manifest = json.loads(members(folder / "submission.tar.gz")["submission.json"])
    assert manifest["open_tasks"] == [f"2.{number}" for number in range(3, 14)]


def test_a_hole_that_is_commented_out_is_not_open(folder):
    (folder / PY).write_text('# raise NotImplementedError("task 1.1 is not written yet")\nx = 1\n')
    (folder / CU).write_text('  // return not_written("2.3");\n  return not_written("2.4");\n')
    assert "2.3" not in submit(folder)[1]
    assert "  2.4 broadcast_to (1 point)" in submit(folder)[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "wrong: python/dlsys/autodiff.py does not exist"),
        ("  \n", "wrong: python/dlsys/autodiff.py is empty"),
        ("x = 1\ndef f(:\n", "wrong: python/dlsys/autodiff.py, line 2 does not parse: "),
        ("\0", "wrong: python/dlsys/autodiff.py does not parse: "),
    ],
)
def test_what_is_wrong_is_said_with_how_to_pack_all_the_same(folder, content, said):
    (folder / PY).unlink()
    if content is not None:
        (folder / PY).write_text(content)
    code, text = submit(folder)
    assert code == 1 and said.replace(", line 2", "") in text.replace(", line 2", "")
    assert "hint: fix what is wrong, or `python3 submit.py --anyway`" in text
    assert not (folder / "submission.tar.gz").exists()
    assert submit(folder, "--anyway")[0] == 0
    manifest = json.loads(members(folder / "submission.tar.gz")["submission.json"])
    assert manifest["missing"] == ([PY] if content is None else [])


def test_check_packs_nothing(folder):
    assert submit(folder, "--check")[0] == 0
    (folder / PY).unlink()
    assert submit(folder, "--check", "--anyway")[0] == 1
    assert not (folder / "submission.tar.gz").exists()


def test_a_folder_that_is_no_skeleton_or_has_no_work_is_refused(folder, tmp_path, capsys):
    with pytest.raises(HandinError, match=r"release\.json can't be read: .*; hint: run this in"):
        submit(tmp_path)
    for name in (PY, CU):
        (folder / name).unlink()
    with pytest.raises(HandinError, match="none of the files to hand in exists"):
        submit(folder, "--anyway")
    (folder / MANIFEST).write_text("[]")
    assert main.main(["submit", str(folder), "--no-build"]) == main.USAGE
    assert "does not say which files to hand in" in capsys.readouterr().err


def test_the_command_packs_where_it_is_told(folder, tmp_path, capsys):
    argv = ["submit", str(folder), "--no-build", "--output", str(tmp_path / "mine.tar.gz")]
    assert main.main(argv) == main.OK
    assert "not built, not tested" in capsys.readouterr().out
    assert set(members(tmp_path / "mine.tar.gz")) == {PY, CU, "submission.json"}


def test_make_submit_builds_tests_and_says_what_does_not_compile(tmp_path):
    work = tmp_path / "work"
    shutil.copytree(prebuilt("emulated"), work)
    shutil.rmtree(work / "tests")
    (work / "tests").mkdir()
    test = "def test_a():\n    pass\n\n\ndef test_b():\n    assert 0\n"
    (work / "tests/test_x.py").write_text(test)
    command = ["make", "-C", str(work), "submit", f"PYTHON={sys.executable}", "DEVICE=emulated"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests: 1 passed, 1 failed" in done.stdout
    manifest = json.loads(members(work / "submission.tar.gz")["submission.json"])
    assert "  test_b" in done.stdout
    counts = {"passed": 1, "failed": 1, "skipped": 0, "not_yours": 0, "failing": ["test_b"]}
    assert manifest["tests"] == counts
    assert (manifest["built"], manifest["device"]) == (True, "emulated")
    (work / CU).write_text((work / CU).read_text() + "int broken( {\n")
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode != 0 and "wrong: it does not build:" in done.stdout
    assert "gpu_op.cu" in done.stdout and "--anyway" in done.stdout


def test_make_compiles_on_several_cores_unless_it_is_told_how_many(tmp_path):
    work = tmp_path / "work"
    shutil.copytree(prebuilt("emulated"), work)
    outer = ("MAKE", "MFLAGS", "OMP_")  # nproc reads the last
    environment = {k: v for k, v in os.environ.items() if not k.startswith(outer)}

    def jobs(*options):
        command = ["make", "-C", str(work), "-pn", *options, f"PYTHON={sys.executable}", "checked"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=600, env=environment, check=True
        )
        assert "warning" not in done.stderr  # as another make inside of it would, of two wishes
        return re.findall(r"^MAKEFLAGS = .*?-j *(\d+)", done.stdout, re.MULTILINE)

    assert int(jobs()[0]) == min(8, len(os.sched_getaffinity(0)))
    assert jobs("-j3")[0] == "3"


# --- the grader ---------------------------------------------------------------------------------


def load(path):
    return load_submission(path, [PY, CU], tree.PRISTINE)


def test_the_grader_reads_the_archive_like_any_other(folder):
    submit(folder)
    found = load(folder / "submission.tar.gz")
    assert found.taken == {name: (folder / name).read_bytes() for name in (PY, CU)}
    assert found.notes == [] and found.extra == []


def test_the_grader_says_when_the_files_are_not_those_that_were_packed(folder, tmp_path):
    submit(folder)
    out = tmp_path / "out"
    for name, content in members(folder / "submission.tar.gz").items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    (out / CU).write_text("// changed\n")
    assert f"{CU} is not as submission.json says: it was changed after packing." in load(out).notes
    (out / PY).unlink()
    assert f"submission.json names {PY}, which is not among the files taken." in load(out).notes


def test_another_release_of_the_skeleton_is_told(folder):
    release = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**release, "release": "old\x1b[31m"}))
    submit(folder)
    (note,) = load(folder / "submission.tar.gz").notes
    assert note.startswith("it was packed with release ") and "\x1b" not in note
    assert note.endswith(f"of the skeleton; the current one is {release['release']}.")


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"[" * 100_000, b'{"schema": 1}', b"\xff", b" " * 70_000, b'{"schema": []}'],
)
def test_a_manifest_of_somebodys_own_is_passed_over(content):
    (note,) = manifest_notes(content, {}, tree.PRISTINE)
    assert note == "submission.json was not written by `make submit`, and is ignored."


def test_a_manifest_that_is_huge_or_a_link_does_not_cost_the_work(folder):
    (folder / "submission.json").write_bytes(b" " * (30 << 20))
    assert load(folder).notes[0].startswith("submission.json was not written by `make submit`")
    (folder / "submission.json").unlink()
    (folder / "submission.json").symlink_to("/etc/passwd")
    assert set(load(folder).taken) == {PY, CU}


def test_a_hostile_manifest_does_no_harm():
    raw = {"schema": "dlsys-submission/1", "files": {"\x1b[2J": 3, PY: ["x"]}, "release": {"a": 1}}
    notes = manifest_notes(json.dumps(raw).encode(), {PY: b"x", CU: b"y"}, tree.PRISTINE)
    assert not any("\x1b" in note for note in notes)
    assert f"{PY} is not as submission.json says: it was changed after packing." in notes
    assert f"{CU} is not in submission.json: it was added after packing." in notes
    raw["files"] = 3
    assert (
        "does not list the files that were packed"
        in manifest_notes(json.dumps(raw).encode(), {}, tree.PRISTINE)[0]
    )
