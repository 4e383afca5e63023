"""The self-check of a release: nothing of a solution is in it, and its archive has no time."""

import bz2
import gzip
import io
import json
import stat
import tarfile
import zipfile

import pytest

from grader.cli import main
from grader.cli import release as command
from grader.course.course import kit_course, load_course, rubric_of
from grader.grading.self_check import self_check
from grader.release.front_matter import PLACE, cover_of
from grader.release.holes import pack, release
from grader.release.leftovers import leftovers
from grader.report.model import Report, Result

SECRET = "return very_secret_rule(inputs)"


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "solution"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text(f"# Work\n\n{PLACE}\n")
    (folder / "op.py").write_text(
        f"def f(inputs):\n    # BEGIN SOLUTION 1.1\n    {SECRET}\n    # END SOLUTION\n"
    )
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    return folder


@pytest.fixture
def target(source, tmp_path):
    release(source, tmp_path / "skeleton")
    return tmp_path / "skeleton"


def zipped(**files):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return raw.getvalue()


def tarred(name, content):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


# --- what is found ------------------------------------------------------------------------------


def test_a_fresh_release_and_its_archive_are_clean(source, target):
    assert leftovers(target, source) == []
    assert leftovers(pack(target, "work"), source) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".git/HEAD", ".git lies in it: its history may hold the solution"),
        ("src/__pycache__/op.pyc", "src/__pycache__ lies in it: a cache"),
        (".pytest_cache/v", ".pytest_cache lies in it: a cache"),
        ("build/lib/x.so", "build lies in it: what was built"),
        ("src/x.so", "src/x.so lies in it: was built"),
        ("src/prelude.h.gch", "src/prelude.h.gch lies in it: was built"),
        ("gpu_op.o", "gpu_op.o lies in it: was built"),
        ("op.pyc", "op.pyc lies in it: compiled Python"),
        ("op.py.orig", "op.py.orig lies in it: an editor's or a merge's copy"),
        ("op.py~", "op.py~ lies in it: an editor's"),
        (".op.py.swp", ".op.py.swp lies in it: an editor's"),
    ],
)
def test_history_caches_copies_and_built_files_are_found(source, target, name, said):
    (target / name).parent.mkdir(parents=True, exist_ok=True)
    (target / name).write_text("x")
    (found,) = leftovers(target, source)
    assert found.startswith(said)


def test_a_worktrees_git_file_and_a_link_are_found(source, target):
    (target / ".git").write_text("gitdir: /elsewhere")
    (target / "link").symlink_to(source)
    found = leftovers(target, source)
    assert found[0].startswith(".git lies in it") and found[1] == f"link is a link, to {source}"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", f"x\n\t{SECRET}\n".encode()),
        (".hidden", SECRET.encode()),
        ("mine.patch", f"@@\n+    {SECRET}\n".encode()),
        ("a.ipynb", json.dumps({"cells": [{"source": ["x\n", f"    {SECRET}\n"]}]}).encode()),
        ("a.zip", zipped(inner__op=f"    {SECRET}")),
        ("a.bin", tarred("deep/op.py", SECRET.encode())),
        ("a.txt.gz", gzip.compress(SECRET.encode(), mtime=0)),
        ("a.bz2", bz2.compress(SECRET.encode())),
        ("twice.zip", zipped(inner=tarred("op.py", SECRET.encode()))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # an archive holds the time
)
def test_a_line_of_the_solution_is_found_wherever_it_lies(source, target, name, content):
    (target / name).write_bytes(content)
    (found,) = leftovers(target, source)
    assert found.startswith(name) and "is a line of the solution: " in found
    assert found.endswith(SECRET)


def test_lines_of_a_part_that_is_solved_in_the_skeleton_are_no_leak(source, tmp_path):
    release(source, tmp_path / "other", {2})
    assert leftovers(tmp_path / "other", source, {2}) == []
    assert leftovers(tmp_path / "other", source, {1}) != []


def test_the_words_of_a_marker_are_found_in_any_file(source, target):
    (target / "notes.md").write_text("fine\nEnd of Solution? no\n<!-- end_solution -->\n")
    assert leftovers(target, source) == [
        "notes.md, line 3, contains a marker: <!-- end_solution -->"
    ]


def test_in_archives_names_count_and_what_cannot_be_read_is_said(source, target):
    (target / "a.zip").write_bytes(zipped(x__build__lib="x", x__build__more="y", ok="z"))
    (target / "b.7z").write_bytes(b"7z\xbc\xaf\x27\x1c....")
    (target / "c.gz").write_bytes(gzip.compress(b"x" * 100, mtime=0)[:-12])
    found = leftovers(target, source)
    assert found[0] == "a.zip: x/build lies in it: what was built may hold the solution's code"
    assert found[1] == "b.7z can't be looked into: it is a 7z archive"
    assert found[2].startswith("c.gz can't be looked into: ")
    assert len(found) == 3


def test_an_archive_in_an_archive_too_deep_or_too_large_is_said(source, target, monkeypatch):
    content = SECRET.encode()
    for _ in range(4):
        content = zipped(inner=content)
    for path in (target, target / "deep.zip", content):
        (target / "deep.zip").write_bytes(content)
        assert "looked into" not in leftovers(path, source)[0]
        (target / "deep.zip").write_bytes(zipped(inner=content))
        (found,) = leftovers(zipped(inner=content) if path is content else path, source)
        assert found.endswith("can't be looked into: it is packed more than 4 times")
    (target / "deep.zip").write_bytes(gzip.compress(bytes(1 << 20), mtime=0))
    monkeypatch.setattr("grader.release.leftovers._LARGEST", 1 << 19)
    assert "unpacks to more than 0 MB" in leftovers(target, source)[0]


# --- the archive --------------------------------------------------------------------------------


def test_an_archive_of_the_same_release_is_the_same_byte_for_byte(source, target, tmp_path):
    release(source, tmp_path / "again")
    (tmp_path / "again/op.py").touch()
    assert pack(target, "work") == pack(tmp_path / "again", "work")


def test_an_archive_has_one_folder_no_owner_and_no_time(source, target):
    (target / "build").mkdir()
    (target / "build/x").write_text("built since")
    with tarfile.open(fileobj=io.BytesIO(pack(target, "work"))) as archive:
        infos = archive.getmembers()
    names = [".release.json", "README.md", "op.py", "tool"]
    assert [info.name for info in infos] == [f"work/{name}" for name in names]
    assert {(info.uid, info.gid, info.mtime, info.uname) for info in infos} == {(0, 0, 0, "")}
    assert [stat.S_IMODE(info.mode) for info in infos] == [0o644, 0o644, 0o644, 0o755]


# --- the self-check ------------------------------------------------------------------------------


def report(scores, status="pass"):
    results = [
        Result(name, task, 2, score, status, "", message="why") for name, task, score in scores
    ]
    return Report("x", "", "p", "t", "emulated", "process", "5eed", "", [], results=results)


def proven(monkeypatch, skeleton, solution, parts=(1,)):
    course = kit_course()
    reports = {course.skeleton: skeleton, course.solution: solution}
    monkeypatch.setattr(
        "grader.grading.self_check.grade", lambda path, options, show: reports[path]
    )
    return self_check(course, rubric_of(course), parts)


def test_a_skeleton_with_points_and_a_solution_without_are_told(monkeypatch):
    skeleton = report([("a", "1.1", 2), ("b", "2.1", 2), ("c", "", 1)])
    solution = report([("a", "1.1", 2), ("b", "2.1", 1)])
    assert proven(monkeypatch, skeleton, solution) == [
        "the skeleton gets 2 points in the check a (task 1.1)",
        "the skeleton gets 1 points in the check c",
        "the solution gets 1 of 2 points in the check b: why",
    ]


def test_an_error_of_the_grader_is_no_proof(monkeypatch):
    failed = report([("a", "1.1", 0)], "error")
    unread = report([])
    unread.problem = "no files"
    assert proven(monkeypatch, unread, failed) == [
        "the skeleton can't be graded: no files",
        "the grader failed in the check a of the solution: why",
    ]


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def course(source, tmp_path):
    path = tmp_path / "course.toml"
    path.write_text(
        '[course]\nname = "C"\n[assignment]\ntitle = "W"\nrubric = "r.toml"\n'
        'solution = "solution"\nskeleton = "out"\n'
    )
    (tmp_path / "r.toml").write_text(
        'title = "W"\ndescription = ""\nfiles = ["op.py"]\nsizes = "thorough"\n'
        '[parts]\n1 = "one"\n[tasks]\n"1.1" = "f"\n[[check]]\nname = "relu"\n'
        'task = "1.1"\npoints = 1\n'
    )
    return path


def test_problems_end_with_1_and_no_archive(course, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        command, "self_check", lambda *_: ["the skeleton gets 1 points in the check x"]
    )
    argv = ["release", "--course", str(course), "--archive", str(tmp_path / "a.tar.gz")]
    assert main.main(argv) == main.FELL_SHORT
    said = capsys.readouterr().out
    assert "the skeleton gets 1 points" in said and "hint: --no-self-check" in said
    assert not (tmp_path / "a.tar.gz").exists()
    assert main.main([*argv, "--no-self-check"]) == main.OK
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert archive.getnames()[0].startswith("out/")


def test_without_problems_the_archive_is_written_and_the_check_said(
    course, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(command, "self_check", lambda *_: [])
    argv = ["release", "--course", str(course), "--archive", str(tmp_path / "a.tgz")]
    assert main.main(argv) == main.OK
    assert "the solution has all 1 points" in capsys.readouterr().out
    (tmp_path / "out/.git").mkdir()
    words = ["release", "--course", str(course), "--check"]
    assert main.main(words) == main.OK  # hidden files are no part of a release
    assert main.main([*words, "--self-check"]) == main.FELL_SHORT
    assert ".git lies in it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--archive", "a.zip"], "a.zip does not end in .tar.gz"),
        (["--archive", "a.tgz", "--check"], "--check writes nothing"),
        (["--part", "7"], "there is no part 7; hint: one of 1"),
        (["--data", "nowhere"], "--data nowhere is not a folder"),
    ],
)
def test_a_wrong_use_is_told(course, capsys, words, said):
    assert main.main(["release", "--course", str(course), *words]) == main.USAGE
    assert said in capsys.readouterr().err
    assert not load_course(course).skeleton.exists()


def test_the_kits_own_release_holds_nothing_of_the_solution():
    kit = kit_course()
    packed = pack(kit.skeleton, "assignment")
    assert leftovers(packed, kit.solution) == []
    assert cover_of(kit, rubric_of(kit)).facts["points"]["2.10"] == 2
