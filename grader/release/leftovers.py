"""Finds what a skeleton must not hold: lines of the solution, markers, history, caches, build
output.

It looks into archives too. Each finding is a sentence for the instructor.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from grader.base.printable import printable
from grader.release.holes import NEARLY, solution_lines

_FOLDERS = {
    **dict.fromkeys((".git", ".hg", ".svn"), "its history may hold the solution"),
    **dict.fromkeys(("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache",
                     ".ipynb_checkpoints"), "a cache, which may hold the solution"),
    "build": "what was built may hold the solution's code",
    ".venv": "an environment of one machine",
}  # fmt: skip
_FILES = {
    **dict.fromkeys(("*.pyc", "*.pyo"), "compiled Python"),
    **dict.fromkeys(("*.so", "*.o", "*.a", "*.gch", "*.dylib", "*.dll", "*.ptx", "*.cubin"),
                    "was built"),
    **dict.fromkeys(("*.orig", "*.rej", "*.bak", "*~", ".*.sw?", "*.save"),
                    "an editor's or a merge's copy of an earlier state"),
}  # fmt: skip
_PACKED: dict[bytes, Callable[[io.BytesIO], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
_CLOSED = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "rar", b"\x28\xb5\x2f\xfd": "zstd"}
_DAMAGE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError,
           zipfile.BadZipFile, RuntimeError, NotImplementedError)  # fmt: skip
_DEPTH = 4  # of archives in archives
_LARGEST = 64 << 20  # bytes of one unpacked file
_SHOWN = 3  # lines of one file


def leftovers(path: Path | bytes, source: Path, parts: Collection[int] | None = None) -> list[str]:
    """What a folder or an archive holds that a student must not get, in sentences.

    Args:
        path: a skeleton, an archive of one, or an archive's bytes.
        source: the solution, with its holes marked.
        parts: those that were stripped; all if None.

    Raises:
        ReleaseError: the solution has wrong markers.
        OSError: a file can't be read.
    """
    found = _Search(solution_lines(source, parts))
    if isinstance(path, bytes):
        return list(found.content("the archive", path, 0))
    if path.is_dir():
        return list(found.folder(path))
    return list(found.content(path.name, path.read_bytes(), 0))


class _Search:
    """Looks for the lines `secret`, and for everything else that is out of place."""

    def __init__(self, secret: set[str]) -> None:
        self._secret = secret

    def folder(self, root: Path) -> Iterator[str]:
        """Searches a folder on disk."""
        for folder, folders, files in os.walk(root):
            below = Path(folder).relative_to(root)
            for name in sorted(folders + files):
                path = below / name
                said = _by_name(path.as_posix())
                if (root / path).is_symlink():
                    said = f"{path.as_posix()} is a link, to {os.readlink(root / path)}"
                if said:
                    yield said
                elif name in files:
                    yield from self.content(path.as_posix(), (root / path).read_bytes(), 0)
            folders[:] = sorted(name for name in folders if name not in _FOLDERS)

    def content(self, name: str, content: bytes, depth: int) -> Iterator[str]:
        """Searches a file, and what is packed in it."""
        try:
            members = _members(name, content)
        except _DAMAGE as error:
            yield f"{name} can't be looked into: {error}"
            return
        if members is None:
            yield from self._text(name, content)
        elif depth >= _DEPTH:
            yield f"{name} can't be looked into: it is packed more than {_DEPTH} times"
        else:
            yield from self._archive(name, members, depth)

    def _archive(
        self, name: str, members: Iterator[tuple[str, bytes]], depth: int
    ) -> Iterator[str]:
        told: set[str] = set()
        try:
            for inner, content in members:
                said = _by_name(inner)
                if said and said not in told:
                    told.add(said)
                    yield f"{name}: {said}"
                elif not said:
                    yield from self.content(f"{name}: {inner}", content, depth + 1)
        except _DAMAGE as error:
            yield f"{name} can't be looked into: {error}"

    def _text(self, name: str, content: bytes) -> Iterator[str]:
        text = content.decode("utf-8", "replace")
        hits = [(number, line) for number, line in _numbered(text) if self._is_secret(line)]
        for number, line in hits[:_SHOWN]:
            yield f"{name}, line {number}, is a line of the solution: {printable(line.strip())}"
        if len(hits) > _SHOWN:
            yield f"{name} holds {len(hits) - _SHOWN} more lines of the solution"
        for number, line in _numbered(text):
            if NEARLY.search(line):
                yield f"{name}, line {number}, contains a marker: {printable(line[:80])}"
                break

    def _is_secret(self, line: str) -> bool:
        """Whether a line is the solution's, also in a diff or a quotation."""
        return any(
            " ".join(text.split()) in self._secret for text in (line, line.lstrip(" \t+-><|"))
        )


def _by_name(path: str) -> str:
    """What is wrong with a file or folder by its name alone, or ""."""
    parts = PurePosixPath(path).parts
    for depth, part in enumerate(parts, 1):
        if part in _FOLDERS:
            return f"{'/'.join(parts[:depth])} lies in it: {_FOLDERS[part]}"
    for pattern, what in _FILES.items():
        if parts and fnmatch(parts[-1], pattern):
            return f"{path} lies in it: {what}"
    return ""


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; of JSON, such as a notebook, also the lines in its texts."""
    yield from enumerate(text.split("\n"), 1)
    if text.lstrip().startswith(("{", "[")):
        try:
            values: list[Any] = [json.loads(text)]
        except (ValueError, RecursionError):
            return
        while values:
            value = values.pop()
            if isinstance(value, str):
                yield from ((1, line) for line in value.split("\n"))
            elif isinstance(value, (list, dict)):
                values += value.values() if isinstance(value, dict) else value


def _members(name: str, content: bytes) -> Iterator[tuple[str, bytes]] | None:
    """(name, content) of the members of an archive; None if the file is no archive."""
    for start, kind in _CLOSED.items():
        if content.startswith(start):
            raise ValueError(f"it is a {kind} archive")
    if content.startswith(b"PK\3\4"):
        return _zip_members(content)
    for start, unpack in _PACKED.items():
        if content.startswith(start):
            inner = _bounded(unpack(io.BytesIO(content)))
            return _tar_members(inner) if _is_tar(inner) else iter([(Path(name).stem, inner)])
    return _tar_members(content) if _is_tar(content) else None


def _bounded(stream: Any) -> bytes:
    content: bytes = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"it unpacks to more than {_LARGEST >> 20} MB")
    return content


def _is_tar(content: bytes) -> bool:
    return content[257:262] == b"ustar"


def _zip_members(content: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                with archive.open(info) as file:
                    yield info.filename, _bounded(file)


def _tar_members(content: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for info in archive:
            file = archive.extractfile(info) if info.isreg() else None
            if file:
                yield info.name, _bounded(file)
            elif not info.isdir():
                raise ValueError(f"{info.name} is no plain file")
