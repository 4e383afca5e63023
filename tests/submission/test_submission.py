"""Submissions as they come: what is found in them, and what the machine's failures are."""

import errno
import os
from pathlib import Path

import pytest

from grader.submission import archive
from grader.submission.manifest import NAME as MANIFEST
from packed import CU, KINDS, PRISTINE, PY, WORK, folder, loader, pack, refused, tar, zipped


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path)


# --- found -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("root", ["", "hw2", "hw2/inner/最終版 (1)"])
def test_the_files_are_found_at_any_depth_of_any_kind(tmp_path, load, kind, root):
    found = load(pack(tmp_path, {f"{root}/{k}".strip("/"): v for k, v in WORK.items()}, kind))
    assert found.taken == WORK and found.root == root
    assert (found.missing, found.changed, found.extra) == ([], [], [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("root", ["", "hw2/"])
def test_loose_files_are_taken(tmp_path, load, kind, root):
    loose = {root + "autodiff.py": WORK[PY], root + "gpu_op.cu": WORK[CU]}
    assert load(pack(tmp_path, loose, kind)).taken == WORK


def test_one_loose_and_one_in_its_folder_are_taken_together(tmp_path, load):
    found = load(pack(tmp_path, {"autodiff.py": WORK[PY], CU: WORK[CU]}))
    assert found.taken == WORK and found.root == ""


def test_files_scattered_over_folders_are_taken_while_each_occurs_once(tmp_path, load):
    found = load(pack(tmp_path, {"a/autodiff.py": WORK[PY], "b/gpu_op.cu": WORK[CU]}))
    assert found.taken == WORK and "in different folders" in found.notes[0]


@pytest.mark.parametrize("name", ["work.tar.gz", "work", "work.docx"])
def test_the_content_and_not_the_name_says_what_it_is(tmp_path, load, name):
    assert load(zipped(tmp_path / name, WORK)).taken == WORK


def test_a_tar_named_zip_is_read(tmp_path, load):
    assert load(tar(tmp_path / "work.zip", WORK)).taken == WORK


def test_windows_paths_in_a_zip_are_read(tmp_path, load):
    content = zipped(tmp_path / "a", {"hw2/" + k: v for k, v in WORK.items()}).read_bytes()
    (tmp_path / "b").write_bytes(
        content.replace(b"hw2/src/gpu_op.cu", b"hw2\\src\\gpu_op.cu").replace(
            b"hw2/python/dlsys/autodiff.py", b"hw2\\python\\dlsys\\autodiff.py"
        )
    )
    assert load(tmp_path / "b").taken == WORK


def test_a_download_folder_with_one_archive_in_it_is_opened(tmp_path, load):
    inner = folder(tmp_path / "Anna Ångström_123_assignsubmission_file_", {}) / "work.tgz"
    found = load(tar(inner, WORK).parent)
    assert found.taken == WORK and found.source == inner


def test_what_tools_leave_behind_is_ignored_and_said(tmp_path, load):
    junk = {f"{d}/{PY}": b"x" for d in ("__MACOSX", ".git", "build", "venv", "__pycache__")}
    junk |= {".DS_Store": b"x", "src/._gpu_op.cu": b"x", "src/gpu_op.o": b"x"}
    found = load(pack(tmp_path, WORK | junk))
    assert found.taken == WORK and found.extra == []
    assert found.notes[-1].startswith("ignored, by number of files: *.o (1), .DS_Store (1)")


def test_ignored_folders_are_named_in_a_folder_too(tmp_path, load):
    found = load(pack(tmp_path, WORK | {".git/objects/ab": b"x", "build/lib/x": b"x"}, "folder"))
    assert found.notes == ["ignored, by number of files: .git (1), build (1)."]


def test_the_fullest_and_then_the_shallowest_copy_is_taken(tmp_path, load):
    files = {"old/deep/" + k: b"old" for k in WORK} | {"new/" + k: v for k, v in WORK.items()}
    found = load(pack(tmp_path, files | {"gpu_op.cu": b"part"}))
    assert found.taken == WORK and found.root == "new"
    assert any("further copies" in note and "old/deep" in note for note in found.notes)


def test_two_equal_copies_are_an_error_that_names_both(tmp_path, load):
    files = {d + k: v for d in ("a/", "b/") for k, v in WORK.items()}
    said = refused(load, pack(tmp_path, files))
    assert said == "work.tar.gz holds the work more than once, in a, b; hint: hand in one copy"


def test_a_missing_file_is_listed_and_noted(tmp_path, load):
    found = load(pack(tmp_path, {"hw2/" + CU: WORK[CU]}))
    assert found.missing == [PY] and list(found.taken) == [CU] and found.root == "hw2"
    assert f"not handed in, so graded as the skeleton: {PY}." in found.notes


@pytest.mark.parametrize("kind", KINDS)
def test_other_files_that_differ_are_reported_and_not_taken(tmp_path, load, kind):
    files = WORK | {"Makefile": b"all: cheat\n", "src/dlarray.h": b"int a;\r\n", "notes.txt": b"x"}
    found = load(pack(tmp_path, files, kind))
    assert found.taken == WORK
    assert found.changed == ["Makefile"] and found.extra == ["notes.txt"]
    assert "changed, but the course's own are used: Makefile." in found.notes


def test_a_readme_of_ones_own_is_not_called_changed(tmp_path, load):
    (tmp_path / "pristine/README.md").write_text("# The assignment\n")
    found = load(pack(tmp_path, WORK | {"README.md": b"# My notes\n"}))
    assert found.taken == WORK
    assert not any("README.md" in note for note in found.notes)


def test_a_long_list_of_extra_files_is_shortened(tmp_path, load):
    found = load(pack(tmp_path, WORK | {f"x{i:02}": b"" for i in range(30)}))
    assert len(found.extra) == 13 and found.extra[-1] == "... and 18 more"


def test_the_hash_depends_on_the_taken_files_alone(tmp_path, load):
    one = load(pack(tmp_path, WORK, "zip"))
    two = load(pack(tmp_path, {"deep/" + k: v for k, v in WORK.items()} | {"x": b"x"}, "tar"))
    other = load(pack(tmp_path, WORK | {CU: b"// mine \n"}, "tar.gz"))
    assert one.sha256 == two.sha256 != other.sha256


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"\xef\xbb\xbfa", "begins with a UTF-8 byte order mark"),
        (b"a\r\nb\r\n", "has Windows line endings (CRLF)"),
        (b"ab\0c", "holds a NUL byte at offset 2"),
        (b"caf\xe9", "is not UTF-8 text: byte 0xe9 at offset 3"),
        (b" \n", "is empty"),
        (PRISTINE[CU], "is unchanged: none of its tasks is begun"),
    ],
)
def test_odd_text_is_kept_as_it_is_and_noted(tmp_path, load, content, note):
    found = load(pack(tmp_path, WORK | {CU: content}))
    assert found.taken[CU] == content
    assert any(line.startswith(f"{CU} {note}") for line in found.notes)


# --- failures of the machine --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES, errno.ESTALE])
def test_a_failure_of_the_machine_is_not_the_student_s(tmp_path, load, monkeypatch, kind, number):
    source = pack(tmp_path, WORK, kind)

    def fail(*_, **__):
        raise OSError(number, "said by the system")

    monkeypatch.setattr(archive.os, "scandir", fail)
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(OSError) as caught:
        load(source)
    assert caught.value.errno == number


@pytest.mark.parametrize("error", [OSError(errno.EIO, "disk"), MemoryError()])
@pytest.mark.parametrize("name", [PY, "Makefile", MANIFEST])
def test_a_file_that_the_machine_cannot_read_is_no_damage(tmp_path, load, monkeypatch, error, name):
    source = pack(tmp_path, {**WORK, "Makefile": b"al:\n", MANIFEST: b"{}"}, "folder")
    opened = os.open

    def fail(path, *rest, **how):
        if str(path).endswith(name) and str(path).startswith(str(source)):
            raise error
        return opened(path, *rest, **how)

    monkeypatch.setattr(archive.os, "open", fail)
    with pytest.raises(OSError) as caught:
        load(source)
    assert caught.value.errno in (errno.EIO, errno.ENOMEM)


def test_damage_stays_the_student_s_though_it_is_an_os_error(tmp_path, load):
    whole = tar(tmp_path / "work", WORK).read_bytes()
    (tmp_path / "work").write_bytes(whole[:-8] + b"\0" * 8)  # the checksum: BadGzipFile, an OSError
    assert "is damaged or cut short" in refused(load, tmp_path / "work")


def test_a_file_that_is_changed_for_a_link_or_a_pipe_after_it_was_listed_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("of another")
    path = folder(tmp_path / "work", {"work.py": b"mine"}) / "work.py"
    (member,) = archive.list_members(tmp_path / "work")
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        member.read()
    path.unlink()
    os.mkfifo(path)
    assert member.read() == b""  # whoever waits for a writer waits for ever
