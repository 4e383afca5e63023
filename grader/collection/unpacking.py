"""Unpacks the download of a whole class into a folder, within limits of its own.

Opens only the download itself; what students packed stays packed. Leaves out links, devices and
paths that lead out of the folder, and says so; no student's file stops the others.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.submission import tars
from grader.submission.archive import DAMAGE, MAX_DEPTH, MAX_READ, shown, some
from grader.submission.zips import TooManyMembers, open_zip

# A class of 3,000 with a hundred files each, or a few megabytes.
MAX_MEMBERS = 300_000
MAX_DIRECTORY = 64 << 20  # bytes of a zip's list of members, which is read at once
MAX_BYTES = 16 << 30  # unpacked, over all members
MAX_MEMBER = MAX_READ  # bytes of one: more, and the grader would not read it either
MAX_NAME = 255  # bytes that file systems take

_AGAIN = "hint: download it again, or unpack it with another program and give the folder"
_CHUNK = 1 << 20


class CollectionError(UsageError):
    """The submissions can't be collected; the message is one sentence for the instructor."""


@dataclass(frozen=True)
class _Member:
    """A member of the archive. kind: "file", "folder", or what it is instead."""

    name: str
    kind: str
    size: int
    open: Callable[[], AbstractContextManager[IO[bytes]]]


def unpack(source: Path, into: Path) -> tuple[Path, list[str]]:
    """(the folder with the content of a zip or tar archive, what was left out, in sentences).

    The folder lies below `into`; a digest of the archive names it. It is made once, whole or not at
    all. Only one caller at a time may use this.

    Raises:
        CollectionError: the file is no archive, damaged, encrypted or over the limits.
    """
    try:
        folder = into / f"download-{_digest(source)[:16]}"
        if not folder.exists():
            part = into / f".{folder.name}.part"
            shutil.rmtree(part, ignore_errors=True)  # of a run that was killed
            try:
                (part / "files").mkdir(parents=True)
                notes = _unpack(source, part / "files")
                write_whole(part / "notes.json", json.dumps(notes))
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        notes = json.loads((folder / "notes.json").read_bytes())
    except OSError as error:
        what = f"{error.strerror or error}"
        raise CollectionError(f"{shown(source.name)} cannot be unpacked: {what}") from error
    return folder / "files", notes


def _digest(source: Path) -> str:
    digest = hashlib.sha256()
    with open(source, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _unpack(source: Path, folder: Path) -> list[str]:
    try:
        return _unpack_members(source, folder)
    except OSError as error:
        if error.errno is None:  # of a decompressor, not of the system
            raise _damaged(source, error) from error
        raise
    except DAMAGE as error:
        raise _damaged(source, error) from error


def _damaged(source: Path, error: BaseException) -> CollectionError:
    return CollectionError(f"{shown(source.name)} is damaged ({shown(str(error))}); {_AGAIN}")


def _unpack_members(source: Path, folder: Path) -> list[str]:
    """Unpacks the members; returns notes on those left out."""
    count = total = 0
    left: dict[str, list[str]] = defaultdict(list)
    for member in _members(source):
        count, total = count + 1, total + member.size
        if count > MAX_MEMBERS or total > MAX_BYTES:
            raise _too_large(source)
        path, why = _target(folder, member)
        if path is None:
            left[f"left out of the download, {why}"].append(member.name)
            continue
        (path if member.kind == "folder" else path.parent).mkdir(parents=True, exist_ok=True)
        if member.kind == "file" and member.size > MAX_MEMBER:
            placeholder(path, member.size)
            left[f"not unpacked, larger than {MAX_MEMBER >> 20} MiB"].append(member.name)
        elif member.kind == "file":
            _write(member, path)
    return [f"{why}: {some(names)}." for why, names in left.items()]


def _too_large(source: Path) -> CollectionError:
    return CollectionError(
        f"{shown(source.name)} holds more than {MAX_MEMBERS:,} files or {MAX_BYTES >> 30} GiB; "
        "hint: is it the download of one assignment? grade it in parts"
    )


def placeholder(path: Path, size: int) -> None:
    """Makes a file of that size that holds nothing and takes no room: its reader sees that it is
    too large."""
    with open(path, "xb") as file:
        file.truncate(size)


def _write(member: _Member, path: Path) -> None:
    """Writes at most the bytes that the member announces; zipfile and tarfile check that there are
    no fewer."""
    with member.open() as file, open(path, "xb") as out:
        shutil.copyfileobj(file, out, _CHUNK)
    if path.stat().st_size != member.size:
        raise zipfile.BadZipFile(f"{shown(member.name)} is cut short")


def _target(folder: Path, member: _Member) -> tuple[Path | None, str]:
    """(where a member belongs, or None and the reason)."""
    if member.kind not in ("file", "folder"):
        return None, member.kind
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if not parts or member.name.startswith("/") or re.match(r"[A-Za-z]:(/|$)", member.name):
        return None, "an absolute path" if parts else "without a name"
    if ".." in parts:
        return None, "a path out of the folder"
    if len(parts) > 2 * MAX_DEPTH:
        return None, "in too many folders"
    path = folder.joinpath(*map(_fit, parts))
    if len(os.fsencode(path)) > 4000:
        return None, "a path that is too long"
    if path.exists() and not (path.is_dir() and member.kind == "folder"):
        return None, "a name that is there twice, and the first counts"
    above = path.parent
    while above != folder:
        if above.exists() and not above.is_dir():
            return None, "below a file"
        above = above.parent
    return path, ""


def _fit(part: str) -> str:
    """A name that file systems accept; the end of a longer one is replaced by a digest of it
    all."""
    raw = part.encode("utf-8", "surrogateescape")
    if len(raw) <= MAX_NAME:
        return part
    stem, dot, suffix = part.rpartition(".")
    end = f"~{hashlib.sha256(raw).hexdigest()[:12]}"
    end += dot + suffix if stem and len(suffix) <= 8 else ""
    return raw[: MAX_NAME - len(end.encode())].decode("utf-8", "ignore") + end


# --- members ------------------------------------------------------------------------------------


def _members(source: Path) -> Iterator[_Member]:
    with open(source, "rb") as file:
        start = file.read(4)
        file.seek(0)
        if start not in (b"PK\3\4", b"PK\5\6"):
            yield from _tar_members(source, file)
            return
        try:
            archive = open_zip(file, MAX_MEMBERS, MAX_DIRECTORY)
        except TooManyMembers:
            raise _too_large(source) from None
        with archive:
            for info in archive.infolist():
                yield _zip_member(source, archive, info)


def _zip_member(source: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    if info.flag_bits & 1:
        raise CollectionError(f"{shown(source.name)} is encrypted; hint: unpack it first")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # zipfile unpacks the other methods without a bound
        raise CollectionError(
            f"{shown(source.name)} is compressed by method {info.compress_type}; "
            "hint: unpack it with another program and give the folder"
        )
    mode, name = info.external_attr >> 16, _zip_name(info)
    folder = name.endswith("/") or stat.S_ISDIR(mode)
    kind = "folder" if folder else "a symbolic link" if stat.S_ISLNK(mode) else "file"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        kind = "a special file"
    return _Member(name, kind, info.file_size, lambda: archive.open(info))


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name of a zip's member. zipfile reads a name without the flag of UTF-8 as code page 437,
    and macOS leaves out the flag."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _tar_members(source: Path, file: IO[bytes]) -> Iterator[_Member]:
    kinds = {tarfile.SYMTYPE: "a symbolic link", tarfile.LNKTYPE: "a hard link"}
    started = False
    try:
        for archive, info in tars.members(tars.Unpacked(file), MAX_BYTES):
            started = True
            plain = info.isreg() and not info.issparse()
            kind = "file" if plain else "folder" if info.isdir() else kinds.get(info.type, "")
            content = partial(_content, archive, info)
            yield _Member(info.name, kind or "a special file", info.size, content)
    except tars.SizeError as error:
        raise _too_large(source) from error
    except tars.HeaderError as error:
        raise _damaged(source, error) from error
    except (tarfile.ReadError, EOFError, lzma.LZMAError) as error:
        if started:
            raise
        raise CollectionError(
            f"{shown(source.name)} is neither a folder nor a zip or tar archive ({error}); "
            "hint: give the download as it came, or its folder"
        ) from error


def _content(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(info)
    if file is None:
        raise tarfile.ReadError(f"{shown(info.name)} has no content")
    return file
