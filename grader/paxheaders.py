"""Bounds the extended headers (PAX) of tar archives before tarfile searches them.

Old versions of tarfile look for a number anywhere in a header by trial, which takes a time that
grows with the square of the digits in a row (CVE-2024-6232): a few kilobytes took minutes.
"""

from __future__ import annotations

import re
import tarfile
from typing import IO, Any, cast

MAX_HEADER = 64 << 10  # bytes; an honest one has a path and some times
MAX_DIGITS = 100  # in a row
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_LENGTH = 8  # most digits of a record's length


class HeaderError(tarfile.ReadError):
    """An extended header that is refused; the message follows "holds"."""


class BoundedTarInfo(tarfile.TarInfo):
    """Refuses an extended header that is too large or is no list of records."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Overrides tarfile's, which is made for that. Raises HeaderError."""
        after = cast(Any, super())._proc_member
        if self.type not in _PAX:
            return cast(tarfile.TarInfo, after(archive))
        if self.size > MAX_HEADER:
            raise HeaderError(f"an extended header of {self.size:,} bytes")
        whole = cast(Any, archive)
        stream = whole.fileobj
        blocks = -(-self.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        content = stream.read(blocks)
        check_records(content[: self.size])
        whole.fileobj = _Again(stream, content)
        try:
            return cast(tarfile.TarInfo, after(archive))
        finally:
            whole.fileobj = stream


def check_records(content: bytes) -> None:
    """Refuses what is no list of `LENGTH KEY=VALUE` lines, in one pass. Raises HeaderError."""
    if max(map(len, re.split(rb"[^0-9]+", content))) > MAX_DIGITS:
        raise HeaderError(f"an extended header with over {MAX_DIGITS} digits in a row")
    at = 0
    while at < len(content) and content[at]:
        space = content.find(b" ", at, at + _LENGTH + 1)
        digits = content[at:space] if space > 0 else b""
        end = at + int(digits) if digits.isdigit() else 0
        record = content[space + 1 : end]
        if end > len(content) or not record.endswith(b"\n") or b"=" not in record:
            raise HeaderError("an extended header that is no list of records")
        at = end


class _Again:
    """The stream of an archive, that gives once more what was read of it last."""

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
