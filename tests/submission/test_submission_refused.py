"""Submissions as they come: what is refused, and in which words."""

import bz2
import gzip
import io
import os
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile

import pytest

from grader.submission import archive
from packed import CU, KINDS, PY, WORK, folder, loader, pack, refused, special, tar, zipped


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path)


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


def test_a_zip_with_a_long_list_of_members_is_refused_before_it_is_read(
    tmp_path, load, monkeypatch
):
    source = zipped(tmp_path / "work", WORK | {f"x{i}": b"" for i in range(200)})
    monkeypatch.setattr(zipfile, "ZipInfo", None)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 201)
    assert "holds more than 201 files" in refused(load, source)
    monkeypatch.undo()
    monkeypatch.setattr(zipfile, "ZipInfo", None)
    monkeypatch.setattr(archive, "MAX_DIRECTORY", 5000)
    assert "holds more than 20,000 files" in refused(load, source)


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
    assert "work holds more than 32 extended headers in a row; hint: " in refused(
        load, tmp_path / "work"
    )


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
