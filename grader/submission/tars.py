"""Reads tar archives that may be hostile, within bounds that tarfile does not have.

- Old versions of tarfile look for a number anywhere in an extended header (PAX) by trial, which
  takes a time that grows with the square of the digits in a row (CVE-2024-6232): a few kilobytes
  took minutes.
- tarfile skips what a header claims in small steps, past the end of the archive too: 2^62 bytes
  never end.
- It keeps a copy of the global headers with every member, and all members.
- It reads the map of a sparse file whole, and unpacks what compresses well without a bound.
- It calls itself for each extended header in a row, as deep as Python lets it.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, Protocol, cast

MAX_HEADER = 64 << 10  # bytes of an extended header; an honest one has a path and some times
MAX_DIGITS = 100  # in a row
MAX_RECORDS = 256  # of an extended header; macOS writes a dozen
MAX_IN_A_ROW = 32  # extended headers of one member; honest ones are three at most
MAX_GLOBAL = 64  # records of global headers, over all; git writes one
MAX_STREAMS = 50_000  # compressed ones behind each other, as parallel packers write them
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_LENGTH = 8  # most digits of a record's length
_MOST_EMPTY = 1000  # reads at the end of a stream
_XZ_MEMORY = 128 << 20  # bytes; xz -9 asks for 65 MiB
_CHUNK = 64 << 10


class Stream(Protocol):
    """The source of an archive."""

    def read(self, size: int = -1) -> bytes:
        """So many bytes at most."""


class HeaderError(tarfile.ReadError):
    """A refused header; the message continues the sentence "it holds ..."."""


class SizeError(HeaderError):
    """A header that announces more than an archive may hold."""


class BoundedTarInfo(tarfile.TarInfo):
    """Refuses a header that is too large, announces too much, or is no list of records. Each
    archive has a class of its own: see `members`."""

    limit = 0  # bytes of the archive, unpacked
    global_records = 0  # so far
    in_a_row = 0  # extended headers until now

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Overrides tarfile's hook. Raises HeaderError."""
        if self.size < 0:
            raise HeaderError(f"a member of {self.size:,} bytes")
        if self.size > self.limit:
            raise SizeError(f"a member of {self.size:,} bytes")
        if self.type in (*_PAX, *_LONG) and self.size > MAX_HEADER:
            raise HeaderError(f"an extended header of {self.size:,} bytes")
        own = type(self)
        own.in_a_row = own.in_a_row + 1 if self.type in (*_PAX, *_LONG) else 0
        if own.in_a_row > MAX_IN_A_ROW:
            raise HeaderError(f"more than {MAX_IN_A_ROW} extended headers in a row")
        found = self._proc_pax_checked(archive) if self.type in _PAX else self._after(archive)
        # The next header is looked for there. Extended headers may have changed it.
        if not 0 <= cast(Any, archive).offset <= self.limit:
            raise SizeError("a member that reaches beyond all that may be unpacked")
        return found

    def _after(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        return cast(tarfile.TarInfo, cast(Any, super())._proc_member(archive))

    def _proc_pax_checked(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        whole = cast(Any, archive)
        stream = whole.fileobj
        blocks = -(-self.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        content = stream.read(blocks)
        count = check_records(content[: self.size])
        if self.type == tarfile.XGLTYPE:
            type(self).global_records += count
            if self.global_records > MAX_GLOBAL:
                raise HeaderError(f"more than {MAX_GLOBAL} records in global headers")
        whole.fileobj = _Again(stream, content)
        try:
            return self._after(archive)
        finally:
            whole.fileobj = stream

    def _proc_sparse(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Skips the map of a sparse file, which nobody reads here."""
        own, whole = cast(Any, self), cast(Any, archive)
        _, is_extended, size = own._sparse_structs
        while is_extended:
            block = whole.fileobj.read(tarfile.BLOCKSIZE)
            if len(block) < tarfile.BLOCKSIZE:
                raise HeaderError("a sparse file that is cut short")
            is_extended = block[504]
        own.sparse, self.offset_data = [], whole.fileobj.tell()
        whole.offset = self.offset_data + own._block(self.size)
        self.size = size
        return self

    def _proc_gnusparse_10(self, following: Any, *_: object) -> None:
        """The same for a map that stands before the file's content."""
        following.sparse = []


def members(stream: Stream, limit: int) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The members of an archive in a stream, one after the other, each with the archive to extract
    it from until the next one is asked for. `limit` is in unpacked bytes.

    Raises:
        HeaderError: the archive is refused.
        tarfile.TarError, and what `grader.submission.archive.DAMAGE` names: it is damaged.
    """
    own = type("BoundedTarInfo", (BoundedTarInfo,), {"limit": limit})
    with tarfile.open(fileobj=cast(Any, stream), mode="r|", tarinfo=own) as archive:
        while (info := archive.next()) is not None:
            cast(Any, archive).members = []  # of many, with all their headers
            yield archive, info


def check_records(content: bytes) -> int:
    """The number of `LENGTH KEY=VALUE` lines, read in one pass.

    Raises:
        HeaderError: it is no list of such lines.
    """
    if max(map(len, re.split(rb"[^0-9]+", content))) > MAX_DIGITS:
        raise HeaderError(f"an extended header with over {MAX_DIGITS} digits in a row")
    at = count = 0
    while at < len(content) and content[at]:
        space = content.find(b" ", at, at + _LENGTH + 1)
        digits = content[at:space] if space > 0 else b""
        end = at + int(digits) if digits.isdigit() else 0
        record = content[space + 1 : end]
        if end > len(content) or not record.endswith(b"\n") or b"=" not in record:
            raise HeaderError("an extended header that is no list of records")
        at, count = end, count + 1
        if count > MAX_RECORDS:
            raise HeaderError(f"an extended header of more than {MAX_RECORDS} records")
    return count


class _Again:
    """The stream of an archive, which gives what was read of it last once more."""

    def __init__(self, stream: IO[bytes], content: bytes) -> None:
        self.stream, self.content = stream, content

    def read(self, size: int) -> bytes:
        head, self.content = self.content[:size], self.content[size:]
        return head + self.stream.read(size - len(head)) if len(head) < size else head

    def tell(self) -> int:
        return self.stream.tell() - len(self.content)

    def seek(self, place: int) -> None:
        """Forward alone, as in the streams that are read here."""
        self.read(place - self.tell())


class Unpacked(io.RawIOBase):
    """The content of a file, decompressed if it is packed by gzip, bzip2 or xz; `packed` says so.
    Reading on and on at its end raises EOFError, since tarfile would not stop."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._streams, self._empty = file, 0, 0
        start = file.read(6)
        file.seek(0)
        self._new = _decompressor(start)
        self._now: Any = None
        self._rest = b""  # compressed
        self.packed = self._new is not None

    def read(self, size: int = -1) -> bytes:
        """As many bytes at most, b"" at the end. Raises what decompressors raise, and EOFError."""
        size = size if size >= 0 else _CHUNK
        content = self._unpack(size) if self.packed else self._file.read(size)
        self._empty = 0 if content or not size else self._empty + 1
        if self._empty > _MOST_EMPTY:
            raise EOFError("it ends before its last member does")
        return content

    def _unpack(self, size: int) -> bytes:
        while size:
            if self._now is None and not self._begin():
                return b""
            if not self._rest and self._now.needs_input:
                self._rest = self._file.read(_CHUNK)
                if not self._rest:
                    raise EOFError("compressed data ends in the middle")
            content = self._decompress(size)
            if self._now is not None and self._now.eof:
                self._rest, self._now = self._now.unused_data, None
            if content:
                return content
        return b""

    def _decompress(self, size: int) -> bytes:
        data, self._rest = self._rest, b""
        try:
            return cast(bytes, self._now.decompress(data, size))
        except (OSError, lzma.LZMAError):
            if self._streams == 1:
                raise
            self._now = None  # what follows a stream is none: padding, as it is passed over
            self._file.seek(0, io.SEEK_END)
            return b""

    def _begin(self) -> bool:
        """Starts the next stream; False at the end."""
        self._rest = self._rest.lstrip(b"\0") or self._file.read(_CHUNK).lstrip(b"\0")
        if not self._rest:
            return False
        self._streams += 1
        if self._streams > MAX_STREAMS:
            raise EOFError(f"it has more than {MAX_STREAMS:,} compressed streams")
        assert self._new is not None
        self._now = self._new()
        return True


def _decompressor(start: bytes) -> Any:
    """A decompressor for a file that starts with these bytes; None if it is not compressed."""
    if start.startswith(b"\x1f\x8b"):
        return _Gzip
    if start.startswith(b"BZh"):
        return bz2.BZ2Decompressor
    if start.startswith(b"\xfd7zXZ\0"):
        return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    return None


class _Gzip:
    """zlib's decompressor with the interface of the other two."""

    def __init__(self) -> None:
        self._own = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, size: int) -> bytes:
        return self._own.decompress(self._own.unconsumed_tail + data, size)

    @property
    def needs_input(self) -> bool:
        return not self._own.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._own.eof

    @property
    def unused_data(self) -> bytes:
        return self._own.unused_data
