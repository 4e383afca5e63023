"""Archives made to hang, fill or crash whoever reads them end soon: refused, or read."""

import bz2
import gzip
import io
import lzma
import random
import struct
import sys
import tarfile
import time
import tracemalloc
import zipfile
import zlib

import pytest

from grader.collection.unpacking import CollectionError, unpack
from grader.submission import tars
from grader.submission.reader import SubmissionError
from packed import WORK, loader, refused, special, tar, zipped

#: Seconds of processor time and bytes for one small archive.
SECONDS, MEMORY = 5, 100 << 20


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path)


def measured(read):
    """What `read()` gives; it may take so much time and memory."""
    tracemalloc.start()
    started = time.process_time()
    try:
        return read()
    finally:
        seconds, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seconds < SECONDS
        assert peak < MEMORY


def ended(load, source):
    """The submission, or the sentence why there is none."""
    try:
        return measured(lambda: load(source))
    except SubmissionError as error:
        assert "\n" not in str(error)
        return str(error)


def gz(content):
    return gzip.compress(content, mtime=0)


# --- made by hand -------------------------------------------------------------------------------


def header(name, size, kind=tarfile.REGTYPE, more=0):
    """A header of tar with any size, in base 256 where it is needed. `more` says, of a sparse file,
    that another block of its map follows."""
    info = special(name, kind)
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = bytes([0x80 if size >= 0 else 0xFF]) + size.to_bytes(11, "big", signed=True)
    block[482] = more
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def pax(kind, **records):
    """An extended header with records."""
    lines = b""
    for name, value in records.items():
        line = f" {name.replace('__', '.')}={value}\n".encode()
        length = len(line) + 1
        while len(str(length)) + len(line) != length:
            length += 1
        lines += str(length).encode() + line
    info = special("x", kind)
    info.size = len(lines)
    return info.tobuf(tarfile.GNU_FORMAT) + lines.ljust(-(-len(lines) // 512) * 512, b"\0")


WORK_TAR = b"".join(
    header(name, len(content)) + content.ljust(512, b"\0") for name, content in WORK.items()
)
SPARSE = {"GNU__sparse__major": "1", "GNU__sparse__minor": "0", "GNU__sparse__name": "s"}
TARS = {
    "2^62 bytes": header("big", 1 << 62),
    "2^62 bytes, beside the work": WORK_TAR + header("big", 1 << 62),
    "2^62 bytes in an extended header": pax(tarfile.XHDTYPE, size=1 << 62) + header("big", 0),
    "2^62 bytes in a global header": pax(tarfile.XGLTYPE, size=1 << 62) + header("big", 0) * 3,
    "2^62 bytes of an unknown type": header("big", 1 << 62, b"Z"),
    "2^62 bytes of an extended header": header("big", 1 << 62, tarfile.XHDTYPE),
    "2^62 bytes of a long name": header("big", 1 << 62, tarfile.GNUTYPE_LONGNAME),
    "a long name without end": header("x", 40 << 20, tarfile.GNUTYPE_LONGNAME) + b"n" * (40 << 20),
    "a negative size": WORK_TAR + header("back", -1024),
    "a negative size of a long name": header("back", -512, tarfile.GNUTYPE_LONGNAME) + WORK_TAR,
    "a negative size in an extended header": (
        pax(tarfile.XHDTYPE, size=-(1 << 40)) + header("back", 0) + WORK_TAR
    ),
    "extended headers without end": pax(tarfile.XHDTYPE, comment="c") * 9000,
    "global headers without end": (pax(tarfile.XGLTYPE, **{f"k{n}": n for n in range(60)})
                                   + header("x", 0)) * 2000,
    "a global header of thousands of records": (
        pax(tarfile.XGLTYPE, **{f"k{n}": n for n in range(5000)})
        + b"".join(header(f"f{n}", 0) for n in range(15_000))
    ),
    "long names without end": (
        (header("x", 5, tarfile.GNUTYPE_LONGNAME) + b"long\0".ljust(512)) * 9000
    ),
    "a sparse file whose map has no end": header("s", 0, tarfile.GNUTYPE_SPARSE, 1)
    + b"7" * (30 << 20),
    "a sparse map of 10^60 parts": (
        pax(tarfile.XHDTYPE, **SPARSE) + header("s", 1024) + b"9" * 60 + b"\n" + b"1\n" * 482
    ),
    "a sparse file of 2^62 bytes": (
        pax(tarfile.XHDTYPE, **SPARSE, GNU__sparse__realsize=1 << 62)
        + header("s", 512) + b"0\n" * 256
    ),
    "an end in the middle of a header": WORK_TAR + header("x", 3)[:300],
    "nothing but zeros": bytes(60 << 20),
}  # fmt: skip


@pytest.mark.parametrize("name", TARS)
@pytest.mark.parametrize("pack", [bytes, gz], ids=["tar", "gz"])
def test_a_hostile_tar_is_refused_or_read_in_seconds(tmp_path, load, name, pack):
    (tmp_path / "work").write_bytes(pack(TARS[name]))
    found = ended(load, tmp_path / "work")
    assert isinstance(found, str) or found.taken == WORK


def test_extended_headers_in_a_row_are_counted_however_deep_python_may_go(tmp_path, load):
    """As in a process whose limit somebody has raised."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        for name in ("extended headers without end", "long names without end"):
            (tmp_path / "work").write_bytes(TARS[name])
            assert "more than 32 extended headers in a row" in refused(load, tmp_path / "work")
    finally:
        sys.setrecursionlimit(before)


def test_a_map_of_a_sparse_file_is_passed_over_and_one_that_is_cut_short_refused(tmp_path, load):
    sparse = header("s", 0, tarfile.GNUTYPE_SPARSE, 1)
    last = bytes(512)
    (tmp_path / "work").write_bytes(sparse + b"7" * 512 + last + WORK_TAR + bytes(1024))
    assert load(tmp_path / "work").taken == WORK
    for end in (b"", b"7" * 512, last[:-1]):
        (tmp_path / "work").write_bytes(sparse + end)
        assert "a sparse file that is cut short" in refused(load, tmp_path / "work")


def test_an_extended_header_holds_so_many_records_and_no_more():
    assert tars.check_records(b"6 a=b\n" * tars.MAX_RECORDS) == tars.MAX_RECORDS
    with pytest.raises(tars.HeaderError, match="more than 256 records"):
        tars.check_records(b"6 a=b\n" * (tars.MAX_RECORDS + 1))


@pytest.mark.parametrize("name", [n for n in TARS if n[:4] == "2^62" and "global" not in n])
def test_a_tar_that_claims_more_than_there_can_be_is_refused(tmp_path, load, name):
    (tmp_path / "work").write_bytes(TARS[name] + bytes(1024))
    assert "unpacks to more than 64 MiB" in refused(load, tmp_path / "work")
    with pytest.raises(CollectionError, match="holds more than 300,000 files or 16 GiB"):
        unpack(tmp_path / "work", tmp_path / "into")


def test_a_download_that_ends_before_what_it_claims_is_damaged(tmp_path):
    (tmp_path / "work").write_bytes(header("big", 15 << 30) + bytes(1024))
    started = time.process_time()
    with pytest.raises(CollectionError, match="is damaged"):
        unpack(tmp_path / "work", tmp_path / "into")
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    ("stream", "count"),
    [(gz(b""), 1 << 20), (bz2.compress(b""), 1 << 20), (lzma.compress(b""), 1 << 20)],
    ids=["gz", "bz2", "xz"],
)
def test_empty_streams_without_end_are_refused(tmp_path, load, monkeypatch, stream, count):
    monkeypatch.setattr(tars, "MAX_STREAMS", 5000)
    (tmp_path / "work").write_bytes(stream * count)
    assert "more than 5,000 compressed streams" in refused(load, tmp_path / "work")


@pytest.mark.parametrize("compress", [gz, bz2.compress, lzma.compress])
def test_an_archive_in_several_streams_is_read(tmp_path, load, compress):
    with io.BytesIO() as out:
        tar(tmp_path / "plain", WORK, "w")
        content = (tmp_path / "plain").read_bytes()
        for at in range(0, len(content), 1000):
            out.write(compress(content[at : at + 1000]))
        (tmp_path / "work").write_bytes(out.getvalue() + bytes(300))
    assert load(tmp_path / "work").taken == WORK


def test_xz_that_asks_for_gigabytes_of_memory_is_refused(tmp_path, load):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30, "mode": lzma.MODE_FAST, "mf":
                lzma.MF_HC3, "nice_len": 3}]  # fmt: skip
    small = [{**filters[0], "dict_size": 1 << 20}]
    tar(tmp_path / "plain", WORK, "w")
    content = lzma.compress((tmp_path / "plain").read_bytes(), filters=small, check=lzma.CHECK_NONE)
    data = bytearray(content)
    # The block's header: size, flags, filter, size of properties, dictionary, padding, CRC32.
    assert data[14:16] == b"\x21\x01"
    data[16] = 38  # 2 GiB
    data[20:24] = struct.pack("<I", zlib.crc32(data[12:20]))
    (tmp_path / "work").write_bytes(data)
    assert "memory" in refused(load, tmp_path / "work").lower()


def long_list(count):
    """The list of a zip with so many empty members."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, *[0] * 6, 0, 1, *[0] * 6)
    return (entry + b"x") * count


def end_of_zip(count, size, offset, comment=b""):
    return (
        struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, offset, len(comment)) + comment
    )


def test_a_zip_whose_comment_tells_of_a_shorter_list_is_refused(tmp_path, load):
    entries = long_list(100_000)
    end = end_of_zip(0xFFFF, len(entries), 4)
    # What looks like a zip64 locator stands before the end that counts, without its record.
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    for tail in (end, locator + end, end_of_zip(1, 47, 4)[:20] + b"\26\0" + end):
        (tmp_path / "work").write_bytes(b"PK\3\4" + entries + tail)
        said = ended(load, tmp_path / "work")
        assert "20,000 files" in said or "damaged" in said


def test_a_zip_whose_entries_overlap_is_bounded(tmp_path, load):
    source = zipped(tmp_path / "work", {"Makefile": b"\0" * (1 << 20), **WORK})
    content = bytearray(source.read_bytes())
    at = content.find(b"PK\1\2")
    for _ in WORK:  # both files of the work are the first member
        at = content.find(b"PK\1\2", at + 1)
        content[at + 42 : at + 46] = bytes(4)
    source.write_bytes(content)
    assert "cannot be read" in ended(load, source)


# --- mutated ------------------------------------------------------------------------------------


def honest(folder):
    """Archives as students pack them, small."""
    files = {f"hw/{name}": content * 40 for name, content in WORK.items()}
    files |= {f"hw/{'d' * 60}/{'é' * 60}/{n}.txt": b"text" for n in range(3)}
    with tarfile.open(folder / "pax", "w", format=tarfile.PAX_FORMAT,
                      pax_headers={"comment": "a" * 40}) as out:  # fmt: skip
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1.5
            out.addfile(info, io.BytesIO(content))
    with tarfile.open(folder / "gnu", "w", format=tarfile.GNU_FORMAT) as out:
        for name, content in files.items():
            info = tarfile.TarInfo(name + "n" * 110)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    zipped(folder / "deflated", files)
    zipped(folder / "stored", files, method=zipfile.ZIP_STORED)
    names = ("pax", "gnu", "deflated", "stored")
    return {name: (folder / name).read_bytes() for name in names}


VALUES = (b"\0", b"\xff", b"\x7f", b"\x80", b"9", b"\xff" * 4, b"\xff" * 8, b"\x80" + b"\xff" * 11,
          b"7" * 11, b"\xff" * 12, b"PK\5\6", b"PK\6\7", b"PK\1\2", b"L", b"x", b"g", b"S",
          b" ")  # fmt: skip


def mended(content):
    """With right checksums in what may be headers of tar, so that more of them are read."""
    data = bytearray(content)
    for at in range(0, len(data) - 511, 512):
        if data[at + 257 : at + 262] == b"ustar":
            data[at + 148 : at + 156] = b" " * 8
            data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    return bytes(data)


def mutated(content, lots):
    """Some bytes changed, often in a header; parts left out, repeated or cut off."""
    data = bytearray(content)
    for _ in range(lots.randint(1, 4)):
        at = lots.randrange(len(data))
        way = lots.randrange(8)
        if way < 5:
            at = at // 512 * 512 + lots.choice([0, 124, 156, 157, 257, 345, 482, 504]) * (way < 3)
            value = lots.choice(VALUES)
            data[at : at + len(value)] = value
        elif way == 5:
            del data[at : at + lots.choice([1, 30, 512, 1024])]
        elif way == 6:
            piece = data[at // 512 * 512 :][: lots.choice([46, 512, 1024, 2048])]
            data[at:at] = piece * lots.choice([1, 2, 50])
        else:
            del data[at:]
        data = data or bytearray(b"x")
    return bytes(data)


@pytest.mark.parametrize("kind", ["pax", "gnu", "deflated", "stored"])
@pytest.mark.parametrize("pack", [bytes, gz], ids=["plain", "gz"])
def test_mutated_archives_are_refused_or_read_in_seconds(tmp_path, load, kind, pack):
    whole, lots = honest(tmp_path)[kind], random.Random(f"{kind}{pack.__name__}")
    started, read = time.process_time(), 0
    for number in range(150):
        content = mended(mutated(whole, lots))
        (tmp_path / f"work{number}").write_bytes(pack(content))
        read += not isinstance(ended(load, tmp_path / f"work{number}"), str)
    assert time.process_time() - started < 60
    assert read < 150


@pytest.mark.parametrize("pack", [gz, bz2.compress, lzma.compress])
def test_mutated_compressed_data_is_refused_or_read_in_seconds(tmp_path, load, pack):
    whole, lots = pack(honest(tmp_path)["pax"]), random.Random(pack.__module__)
    for number in range(60):
        (tmp_path / f"work{number}").write_bytes(mutated(whole, lots))
        ended(load, tmp_path / f"work{number}")


@pytest.mark.parametrize("kind", ["pax", "deflated"])
def test_mutated_downloads_are_refused_or_unpacked_in_seconds(tmp_path, kind):
    whole, lots = honest(tmp_path)[kind], random.Random(7)
    for number in range(60):
        source = tmp_path / f"work{number}"
        source.write_bytes(mended(mutated(whole, lots)))
        try:
            measured(lambda source=source: unpack(source, tmp_path / "into"))
        except CollectionError as error:
            assert "\n" not in str(error)
