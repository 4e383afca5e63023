"""The archive around a class's submissions: what is left out, what is refused, and limits."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from downloaded import CU, LOOSE, OTHER, PY, WORK, Class, canvas, lay, tar, zipped
from grader.classroom.roster import Person
from grader.collection import unpacking
from grader.collection.collect import CollectionError
from grader.submission.reader import SubmissionError


@pytest.fixture
def of(tmp_path):
    return Class(tmp_path)


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


def test_a_download_with_a_long_list_of_members_is_refused_before_it_is_read(of, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_DIRECTORY", 5000)
    files = {f"{number:050}.zip": b"" for number in range(99)}
    assert "holds more than 300,000 files" in refused(of, zipped(files))


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


def test_a_member_that_is_shorter_than_it_says_is_refused(of):
    content = bytearray(zipped({"asa.zip": zipped(WORK)}))
    at = content.find(b"PK\1\2", content.rfind(b"PK\3\4"))
    content[at + 24] += 1
    assert "asa.zip is cut short" in refused(of, bytes(content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is neither a folder nor a zip or tar archive"),
        (b"hello" * 999, "is neither a folder nor a zip or tar archive"),
        (zipped({"a": b"x" * 99}, zipfile.ZIP_BZIP2), "is compressed by method 12; hint: unpack"),
        (zipped({}), "holds no submissions"),
    ],
    ids=["nothing", "text", "bzip2", "no files"],  # a zip has the time in it: workers would differ
)
def test_what_is_no_download_is_told(of, content, said):
    (of.tmp_path / "download.zip").write_bytes(content)
    with pytest.raises(CollectionError, match=said):
        of.collect(of.tmp_path / "download.zip")


def test_a_source_that_is_missing_empty_or_one_submission_is_told(of):
    with pytest.raises(CollectionError, match="gone does not exist"):
        of.collect(of.tmp_path / "gone")
    with pytest.raises(CollectionError, match="holds no submissions; hint: one folder or archive"):
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
