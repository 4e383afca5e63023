"""Lists and reads what a folder or an archive holds, in memory, within limits.

Refused: an absolute path, a `..`, a device node, a name twice, an encrypted member, anywhere in an
archive, since no honest packer writes one. Links are listed as links and never followed.
"""

import errno
import io
import lzma
import os
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.submission import tars
from grader.submission.zips import TooManyMembers, open_zip

MAX_MEMBERS = 20_000
MAX_READ = 64 << 20  # bytes, decompressed, over all members; also the size of an archive
MAX_FILE = 1 << 20  # bytes of a file that is taken
MAX_DEPTH = 64  # folders in one another
MAX_DIRECTORY = 8 << 20  # bytes of a zip's list of members, which is read before it is counted

# Left behind by tools; passed over wherever they lie.
IGNORED = frozenset(
    (
        *("__MACOSX", ".DS_Store", "Thumbs.db", ".git", ".hg", ".svn", ".idea", ".vscode"),
        *("build", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"),
        *(".ipynb_checkpoints", ".venv", "venv", "node_modules"),
    )
)
IGNORED_SUFFIXES = (".pyc", ".o", ".so")
OTHER_ARCHIVES = {b"Rar!": "a RAR archive", b"7z\xbc\xaf": "a 7z archive"}
PACK_HINT = "hint: pack the assignment's folder as .tar.gz or .zip"

# What zipfile, tarfile and the decompressors raise for a damaged archive: tarfile indexes and
# computes with whatever stands in a header. Who catches it calls `let_out` first: some of it may be
# the machine's failure.
DAMAGE = (
    *(OSError, EOFError, ValueError, RuntimeError, ArithmeticError, MemoryError, struct.error),
    *(LookupError, TypeError, AttributeError, AssertionError),
    *(zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile),
)

# What the system says of a submission itself: links, sockets, paths that are too long.
_OF_THE_FILES = frozenset((errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.ENAMETOOLONG))


class SubmissionError(Exception):
    """The submission can't be graded; the message is one sentence for the student."""


def of_the_machine(error: BaseException) -> bool:
    """Whether the machine (a disk, memory, rights) failed, rather than the archive being damaged.
    Decompressors raise OSError for damage too, but without an error number of the system."""
    if isinstance(error, MemoryError):
        return True
    number = error.errno if isinstance(error, OSError) else None
    return number is not None and number not in _OF_THE_FILES


def let_out(error: BaseException) -> None:
    """Raises the error as OSError if the machine failed: no student may lose points for that."""
    if isinstance(error, MemoryError):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)) from error
    if of_the_machine(error):
        raise error


@dataclass(frozen=True)
class Member:
    """A member that is no folder. kind: "file", or what it is instead ("a symbolic link")."""

    name: str
    kind: str
    size: int
    read: Callable[[], bytes]


def shown(name: str) -> str:
    """A name that can't move the reader's cursor or fill the screen."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return safe if len(safe) <= 120 else safe[:117] + "..."


def some(names: Sequence[str], most: int = 12) -> str:
    """A list of names for people, shortened."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def ignored(name: str) -> bool:
    """Whether a member is something that a tool left behind."""
    parts = name.split("/")
    hidden = parts[-1].startswith("._") or parts[-1].endswith(IGNORED_SUFFIXES)
    return hidden or not IGNORED.isdisjoint(parts)


class _Meter:
    """Counts members and bytes, and refuses an archive bomb before it is unpacked."""

    def __init__(self, source: Path) -> None:
        self.name, self.members, self.bytes = shown(source.name), 0, 0

    def member(self) -> None:
        self.members += 1
        if self.members > MAX_MEMBERS:
            raise self.too_many()

    def count(self, size: int) -> None:
        self.bytes += size
        if self.bytes > MAX_READ:
            raise self.too_large()

    def too_large(self) -> SubmissionError:
        return SubmissionError(
            f"{self.name} unpacks to more than {MAX_READ >> 20} MiB; "
            "hint: leave out data sets, environments and build output"
        )

    def too_many(self) -> SubmissionError:
        return SubmissionError(f"{self.name} holds more than {MAX_MEMBERS:,} files; {PACK_HINT}")

    def room(self) -> int:
        return MAX_READ - self.bytes + 1


def list_members(source: Path) -> list[Member]:
    """All files and links in `source`, names with forward slashes.

    Raises:
        SubmissionError: the submission can't be read, or is not safe to read.
        OSError: the machine failed, see `of_the_machine`.
    """
    if not source.exists():
        raise SubmissionError(f"{source} does not exist")
    meter = _Meter(source)
    try:
        members = list((_read_folder if source.is_dir() else _read_archive)(source, meter))
    except (OSError, MemoryError) as error:
        let_out(error)
        raise SubmissionError(
            f"{shown(source.name)} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not members:
        raise SubmissionError(f"{shown(source.name)} is empty")
    return members


def _read_folder(source: Path, meter: _Meter, below: str = "") -> Iterator[Member]:
    with os.scandir(source / below) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        name = f"{below}/{entry.name}" if below else entry.name
        meter.member()
        if not entry.is_dir(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            yield Member(name, _kind(status.st_mode), status.st_size, _reader(entry.path, meter))
        elif name.count("/") >= MAX_DEPTH:
            raise SubmissionError(
                f"{meter.name} holds more than {MAX_DEPTH} folders in one another; {PACK_HINT}"
            )
        elif not ignored(name):
            yield from _read_folder(source, meter, name)
        else:  # one entry stands for all of it
            yield Member(f"{name}/*", "file", 0, bytes)


def _kind(mode: int) -> str:
    odd = {stat.S_IFLNK: "a symbolic link", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return "file" if stat.S_ISREG(mode) else odd.get(stat.S_IFMT(mode), "a special file")


def _reader(path: str, meter: _Meter) -> Callable[[], bytes]:
    def read() -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            content = file.read(MAX_FILE + 1)
        meter.count(len(content))
        return content

    return read


def _read_archive(source: Path, meter: _Meter) -> Iterator[Member]:
    """Reads an archive, whose format its content tells, not its name."""
    if not source.is_file():
        raise SubmissionError(f"{shown(source.name)} is neither a folder nor a file")
    if source.stat().st_size > MAX_READ:
        raise SubmissionError(f"{meter.name} is larger than {MAX_READ >> 20} MiB; {PACK_HINT}")
    content = source.read_bytes()
    if not content:
        raise SubmissionError(f"{meter.name} is empty (0 bytes); {PACK_HINT}")
    for magic, what in OTHER_ARCHIVES.items():
        if content.startswith(magic):
            raise SubmissionError(f"{meter.name} is {what}; {PACK_HINT}")
    read = _read_zip if content.startswith((b"PK\3\4", b"PK\5\6")) else _read_tar
    names = set[str]()
    for member in read(content, meter):
        if member.name in names and not ignored(member.name):
            raise SubmissionError(f"{meter.name} holds {shown(member.name)} twice; {PACK_HINT}")
        names.add(member.name)
        yield member


def _safe_name(name: str, meter: _Meter) -> str:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or re.match(r"[A-Za-z]:(/|$)", name):
        raise SubmissionError(f"{meter.name} holds an absolute path, {shown(name)}; {PACK_HINT}")
    if ".." in parts:
        raise SubmissionError(f"{meter.name} holds a path with '..', {shown(name)}; {PACK_HINT}")
    return "/".join(parts)


def _refuse_device(kind: str, name: str, meter: _Meter) -> None:
    if kind == "a device":
        raise SubmissionError(f"{meter.name} holds a device, {shown(name)}; {PACK_HINT}")


def _read_zip(content: bytes, meter: _Meter) -> Iterator[Member]:
    try:
        if b"PK\5\6" not in content:
            raise zipfile.BadZipFile("its end is missing")
        archive = open_zip(io.BytesIO(content), MAX_MEMBERS, MAX_DIRECTORY)
    except TooManyMembers:
        raise meter.too_many() from None
    except DAMAGE as error:
        let_out(error)
        raise SubmissionError(
            f"{meter.name} is a damaged zip file ({shown(str(error))}); hint: upload it again"
        ) from error
    for info in archive.infolist():
        meter.member()
        name = _safe_name(info.filename.replace("\\", "/"), meter)
        if info.flag_bits & 1:
            raise SubmissionError(f"{meter.name} is encrypted; hint: pack it without a password")
        mode = info.external_attr >> 16
        kind = _kind(mode) if stat.S_IFMT(mode) else "file"
        _refuse_device(kind, name, meter)
        if name and not stat.S_ISDIR(mode) and not info.filename.endswith(("/", "\\")):
            yield Member(name, kind, info.file_size, _zip_reader(archive, info, meter))


def _zip_reader(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, meter: _Meter
) -> Callable[[], bytes]:
    def read() -> bytes:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # zipfile unpacks the other methods without a bound
            raise SubmissionError(
                f"{meter.name}: {shown(info.filename)} is compressed by method "
                f"{info.compress_type}; hint: pack with zip -r, or as .tar.gz"
            )
        with archive.open(info) as file:
            content = file.read(min(MAX_FILE + 1, meter.room()))
        meter.count(len(content))
        return content

    return read


class _Metered(io.RawIOBase):
    """A decompressing stream that the meter watches."""

    def __init__(self, stream: tars.Unpacked, meter: _Meter) -> None:
        self.stream, self.meter = stream, meter

    def read(self, size: int = -1) -> bytes:
        content = self.stream.read(min(size, self.meter.room()) if size >= 0 else 1 << 16)
        self.meter.count(len(content))
        return content

    def drain(self) -> None:
        """Reads to the end, where compressed files keep their checksum."""
        while self.read(1 << 16):
            pass


def _read_tar(content: bytes, meter: _Meter) -> Iterator[Member]:
    stream = _Metered(tars.Unpacked(io.BytesIO(content)), meter)
    started = False
    try:
        for archive, info in tars.members(stream, MAX_READ):
            started = True
            meter.member()
            name = _safe_name(info.name, meter)
            _refuse_device("a device" if info.ischr() or info.isblk() else "", name, meter)
            if name and not info.isdir():
                yield _tar_member(archive, info, name)
        started = True
        stream.drain()
    except tars.SizeError as error:
        raise meter.too_large() from error
    except DAMAGE as error:
        let_out(error)
        raise SubmissionError(f"{meter.name} {_tar_fault(stream, started, error)}") from error


def _tar_fault(stream: _Metered, started: bool, error: BaseException) -> str:
    if isinstance(error, tars.HeaderError):
        return f"holds {error}; {PACK_HINT}"
    packed = stream.stream.packed
    try:
        if packed and not started:  # a tar archive that is damaged, or something else inside?
            stream.drain()
    except DAMAGE as later:
        let_out(later)
        started = True
    if started or (packed and not isinstance(error, tarfile.TarError)):
        return f"is damaged or cut short ({shown(str(error))}); hint: upload it again"
    return f"is {'compressed, but no tar' if packed else 'not an'} archive; {PACK_HINT}"


def _tar_member(archive: tarfile.TarFile, info: tarfile.TarInfo, name: str) -> Member:
    """Reads a member of a stream, whose content can be read only when its turn comes."""
    kinds = {tarfile.SYMTYPE: "a symbolic link", tarfile.LNKTYPE: "a hard link"}
    if not info.isreg() or info.issparse():
        return Member(name, kinds.get(info.type, "a special file"), info.size, bytes)
    keep = info.size <= MAX_FILE and not ignored(name)
    file = archive.extractfile(info) if keep else None
    content = file.read() if file else b""
    if keep and len(content) != info.size:
        raise tarfile.ReadError(f"{shown(name)}: {len(content)} of {info.size} bytes")
    return Member(name, "file", info.size, lambda: content)
