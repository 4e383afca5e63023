"""Submissions as they come: what is found, what is refused, and in which words."""

import bz2
import errno
import gzip
import io
import os
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from grader import archive
from grader.manifest import NAME as MANIFEST
from grader.submission import SubmissionError, load_submission

PY, CU = "python/dlsys/autodiff.py", "src/gpu_op.cu"
HOLES = (PY, CU)
WORK = {PY: b"mine = 1\n", CU: b"// mine\n"}
PRISTINE = {PY: b"hole\n", CU: b"// hole\n", "Makefile": b"all:\n", "src/dlarray.h": b"int a;\n"}
KINDS = ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "folder"]


@pytest.fixture
def pristine(tmp_path):
    return folder(tmp_path / "pristine", PRISTINE)


@pytest.fixture
def load(pristine):
    return lambda source: load_submission(source, HOLES, pristine)


def folder(path, files):
    path.mkdir(parents=True)
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def tar(path, files, mode="w:gz", extra=()):
    with tarfile.open(path, mode) as out:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
        for info in extra:
            out.addfile(info)
    return path


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zipped(path, files, **how):
    with zipfile.ZipFile(path, "w", how.pop("method", zipfile.ZIP_DEFLATED)) as out:
        for name, content in files.items():
            out.writestr(name, content)
    return path


def pack(tmp_path, files, kind="tar.gz"):
    if kind == "folder":
        return folder(tmp_path / "work", files)
    if kind == "zip":
        return zipped(tmp_path / "work.zip", files)
    return tar(tmp_path / f"work.{kind}", files, "w:" + kind[4:])


def refused(load, source):
    """The sentence."""
    with pytest.raises(SubmissionError) as caught:
        load(source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def removed(tmp_path):
    """Takes away what is too deep for shutil, which pytest cleans up with."""
    yield
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


def deep(folder, levels):
    """Makes folders in one another."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


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
    assert found.taken == WORK and "scattered" in found.notes[0]


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
    assert found.notes[-1].startswith("ignored, with the number of files: *.o (1), .DS_Store (1)")


def test_ignored_folders_are_named_in_a_folder_too(tmp_path, load):
    found = load(pack(tmp_path, WORK | {".git/objects/ab": b"x", "build/lib/x": b"x"}, "folder"))
    assert found.notes == ["ignored, with the number of files: .git (1), build (1)."]


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
    assert "changed but not taken, the course's own are used: Makefile." in found.notes


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


# --- refused -----------------------------------------------------------------------------------


def test_a_missing_path_is_named(tmp_path, load):
    assert refused(load, tmp_path / "gone") == f"{tmp_path / 'gone'} does not exist"


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_submission_is_refused(tmp_path, load, kind):
    assert "is empty" in refused(load, pack(tmp_path, {}, kind))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "work is empty (0 bytes); hint: pack"),
        (b"hello world" * 99, "work is not an archive; hint: pack"),
        (b"\0\1" * 5000, "work is not an archive; hint: pack"),
        (
            gzip.compress(b"print('hello')\n" * 99, mtime=0),
            "work is compressed, but no tar archive; hint:",
        ),
        (b"Rar!\x1a\7\0", "work is a RAR archive; hint: pack"),
        (b"7z\xbc\xaf\x27\x1c", "work is a 7z archive; hint: pack"),
        (b"PK\3\4 and no more", "work is a damaged zip file (its end is missing); hint: upload"),
        (b"\x1f\x8b\x08\0\0", "work is damaged or cut short"),
        (b"BZh9 not really", "work is damaged or cut short"),
    ],
)
def test_what_is_no_archive_is_told_in_words(tmp_path, load, content, said):
    (tmp_path / "work").write_bytes(content)
    assert refused(load, tmp_path / "work").startswith(said)


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.75])
def test_a_truncated_archive_is_refused(tmp_path, load, kind, share):
    whole = pack(tmp_path, WORK | {"big": os.urandom(30_000)}, kind)
    content = whole.read_bytes()
    whole.write_bytes(content[: int(len(content) * share)])
    assert "damaged" in refused(load, whole)


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
def test_a_corrupt_archive_is_refused(tmp_path, load, kind):
    whole = pack(tmp_path, WORK | {CU: os.urandom(30_000)}, kind)
    content = bytearray(whole.read_bytes())
    for offset in range(8000, 8040):
        content[offset] ^= 0x55
    whole.write_bytes(content)
    assert "damaged" in (said := refused(load, whole)) or "cannot be read" in said


def test_none_of_the_files_is_said_with_what_is_there(tmp_path, load):
    said = refused(load, pack(tmp_path, {"readme.md": b"", "a/b.txt": b""}))
    assert (
        said == "none of autodiff.py, gpu_op.cu found in work.tar.gz; it holds: readme.md, a/b.txt"
    )


def test_a_renamed_file_is_hinted_at(tmp_path, load):
    said = refused(load, pack(tmp_path, {"autodiff (1).py": b""}))
    assert said.endswith("; hint: rename autodiff (1).py to autodiff.py")


def test_an_archive_in_an_archive_is_hinted_at(tmp_path, load):
    said = refused(load, pack(tmp_path, {"hw/work.zip": b"", "hw/report.pdf": b""}))
    assert said.endswith("; hint: hand in hw/work.zip itself")


@pytest.mark.parametrize("bad", ["/etc/passwd", "../../up", "a/../../up", "C:/windows/x"])
@pytest.mark.parametrize("write", [tar, zipped])
def test_a_path_that_leaves_the_folder_is_refused(tmp_path, load, bad, write):
    said = refused(load, write(tmp_path / "work", WORK | {bad: b"x"}))
    assert bad in said and ("absolute path" in said or "'..'" in said)


def test_a_windows_path_that_leaves_the_folder_is_refused(tmp_path, load):
    said = refused(load, zipped(tmp_path / "work", WORK | {"..\\..\\up": b"x"}))
    assert "'..'" in said


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_taken_file_that_is_a_link_is_refused(tmp_path, load, kind):
    extra = [special(CU, kind, "/etc/passwd")]
    said = refused(load, tar(tmp_path / "work", {PY: b"x"}, extra=extra))
    assert said.startswith(f"work: {CU} is a") and "not a plain file; hint:" in said


def test_a_link_on_the_way_to_a_taken_file_is_refused(tmp_path, load):
    source = tar(tmp_path / "work", WORK, extra=[special("src", tarfile.SYMTYPE, "/etc")])
    assert "src is a symbolic link" in refused(load, source)


def test_a_link_in_place_of_a_folder_is_refused(tmp_path, load):
    source = tar(tmp_path / "work", {PY: b"x"}, extra=[special("src", tarfile.SYMTYPE, "/etc")])
    assert "src is a symbolic link" in refused(load, source)


def test_a_link_in_a_zip_is_refused(tmp_path, load):
    info = zipfile.ZipInfo(CU)
    info.create_system, info.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "work", "w") as out:
        out.writestr(PY, b"x")
        out.writestr(info, "/etc/passwd")
    assert "is a symbolic link" in refused(load, tmp_path / "work")


@pytest.mark.parametrize("link", [CU, "src"])
def test_a_link_in_a_folder_is_refused_and_never_followed(tmp_path, load, link):
    elsewhere = folder(tmp_path / "elsewhere", WORK)
    work = folder(tmp_path / "work", {PY: b"x"})
    (work / link).parent.mkdir(exist_ok=True)
    (work / link).symlink_to(elsewhere / link)
    assert f"{link} is a symbolic link" in refused(load, work)


def test_a_fifo_in_a_folder_is_refused_without_waiting(tmp_path, load):
    work = folder(tmp_path / "work", {PY: b"x", "src/a": b""})
    os.mkfifo(work / CU)
    assert "is a special file" in refused(load, work)


def test_links_and_sockets_beside_the_work_do_no_harm(tmp_path, load):
    kinds = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE
    extra = [special(f"{d}/x{i}", k, "y") for i, k in enumerate(kinds) for d in (".git", "notes")]
    assert load(tar(tmp_path / "work", WORK, extra=extra)).taken == WORK


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_a_device_anywhere_is_refused(tmp_path, load, kind):
    source = tar(tmp_path / "work", WORK, extra=[special("dev/null", kind)])
    assert "holds a device, dev/null" in refused(load, source)


def test_a_file_that_occurs_twice_is_refused(tmp_path, load):
    source = tar(tmp_path / "work", WORK | {"./" + CU: b"other"})
    assert f"holds {CU} twice" in refused(load, source)


def test_an_encrypted_zip_is_refused(tmp_path, load):
    content = bytearray(zipped(tmp_path / "work", WORK).read_bytes())
    at = content.find(b"PK\1\2")
    content[at + 8] |= 1
    (tmp_path / "work").write_bytes(content)
    assert "is encrypted; hint: pack it without a password" in refused(load, tmp_path / "work")


def test_a_name_cannot_carry_terminal_codes_into_the_report(tmp_path, load):
    said = refused(load, pack(tmp_path, {"\x1b[2Jgone\n": b"x", "y" * 200: b""}))
    assert "\\x1b[2Jgone\\n" in said and "y" * 118 not in said


# --- bombs -------------------------------------------------------------------------------------


def test_a_taken_file_over_a_mebibyte_is_refused(tmp_path, load):
    for kind in ("zip", "tar.gz", "folder"):
        said = refused(load, pack(tmp_path, WORK | {CU: b"/" * ((1 << 20) + 1)}, kind))
        assert said == f"{CU} has 1,048,577 bytes; the limit is 1,048,576"


@pytest.mark.parametrize("open_", [gzip.open, bz2.open])
def test_a_bomb_is_stopped_at_the_limit(tmp_path, load, open_, monkeypatch):
    monkeypatch.setattr(archive, "MAX_READ", 4 << 20)
    info = tarfile.TarInfo("bomb")
    info.size = 1 << 34
    with open_(tmp_path / "work", "wb") as out:
        out.write(info.tobuf())
        for _ in range(64):
            out.write(b"\0" * (1 << 20))
    tracemalloc.start()
    said = refused(load, tmp_path / "work")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert said.startswith("work unpacks to more than 4 MiB; hint: leave out data sets")
    assert peak < 8 << 20


def test_a_huge_member_of_a_zip_beside_the_work_is_never_unpacked(tmp_path, load, monkeypatch):
    monkeypatch.setattr(archive, "MAX_READ", 1 << 20)
    files = WORK | {"data.bin": b"\0" * (8 << 20), "Makefile": b"\0" * (8 << 20)}
    found = load(pack(tmp_path, files, "zip"))
    assert found.changed == ["Makefile"] and found.extra == ["data.bin"]


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path, load):
    content = bytearray(zipped(tmp_path / "work", {CU: b"\0" * (9 << 20)}).read_bytes())
    at = content.find(b"PK\1\2")
    content[at + 24 : at + 28] = struct.pack("<I", 100)
    (tmp_path / "work").write_bytes(content)
    assert "cannot be read" in refused(load, tmp_path / "work")


def test_a_zip_method_that_cannot_be_bounded_is_refused(tmp_path, load):
    source = zipped(tmp_path / "work", WORK, method=zipfile.ZIP_BZIP2)
    assert "is compressed by method 12; hint:" in refused(load, source)


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "folder"])
def test_too_many_members_are_refused(tmp_path, load, kind, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBERS", 50)
    source = pack(tmp_path, WORK | {f"x{i}": b"" for i in range(51)}, kind)
    assert "holds more than 50 files" in refused(load, source)


def test_a_zip_with_a_huge_list_of_members_is_refused_before_it_is_read(tmp_path, load):
    content = bytearray(zipped(tmp_path / "work", WORK).read_bytes())
    end = content.rfind(b"PK\5\6")
    content[end + 12 : end + 16] = struct.pack("<I", 9 << 20)
    (tmp_path / "work").write_bytes(content)
    assert "holds more than 20,000 files" in refused(load, tmp_path / "work")


def test_an_archive_over_the_limit_is_not_even_read(tmp_path, load):
    with open(tmp_path / "work", "wb") as out:
        out.truncate((64 << 20) + 1)
    assert "is larger than 64 MiB" in refused(load, tmp_path / "work")


def test_a_chain_of_extended_headers_is_refused_in_words(tmp_path, load):
    chain = b""
    for _ in range(3000):
        info = special("x", tarfile.XHDTYPE)
        chain += info.tobuf()
    (tmp_path / "work").write_bytes(chain)
    refused(load, tmp_path / "work")


def pax(content):
    """An archive whose first member has that extended header."""
    header = special("x", tarfile.XHDTYPE)
    header.size = len(content)
    file = tarfile.TarInfo("work.py")
    padded = content.ljust(-(-len(content) // 512) * 512, b"\0")
    return header.tobuf() + padded + file.tobuf() + bytes(1024)


@pytest.mark.parametrize("content", [
    b"7" * 3000, b"3012 comment=" + b"7" * 2998 + b"\n", b"12 a=b\n", b"6 abc\n", b"x a=b\n",
    b"65540 a=" + b"b" * 65531 + b"\n", b"0 a=b\n",
])  # fmt: skip
def test_an_odd_extended_header_is_refused_before_tarfile_searches_it(
    tmp_path, load, monkeypatch, content
):
    def searched(*_):
        raise AssertionError

    monkeypatch.setattr(tarfile.TarInfo, "_proc_pax", searched)
    (tmp_path / "work").write_bytes(gzip.compress(pax(content), mtime=0))
    assert "extended header" in refused(load, tmp_path / "work")


def test_extended_headers_of_honest_packers_are_read(tmp_path, load):
    files = {f"{'d' * 90}/{'é' * 90}/{name}": content for name, content in WORK.items()}
    with tarfile.open(tmp_path / "work", "w:gz", format=tarfile.PAX_FORMAT,
                      pax_headers={"comment": "a" * 40}) as out:  # fmt: skip
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1.5
            out.addfile(info, io.BytesIO(content))
    assert load(tmp_path / "work").taken == WORK


@pytest.mark.usefixtures("removed")
def test_folders_in_one_another_have_a_limit(tmp_path, load):
    source = folder(tmp_path / "work", WORK)
    deep(source, 1100)
    assert "more than 64 folders in one another" in refused(load, source)


def test_nothing_is_written_to_disk(tmp_path, load, monkeypatch):
    source = pack(tmp_path, WORK, "zip")
    before = sorted(tmp_path.rglob("*"))
    load(source)
    assert sorted(tmp_path.rglob("*")) == before


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
