"""Opens zip archives that may be hostile: zipfile reads their whole list of members at once."""

from __future__ import annotations

import zipfile
from typing import IO, Any, cast

_ENTRY = b"PK\1\2"  # how an entry of the list begins


class TooManyMembers(Exception):
    """The list of members is longer than allowed."""


class _Reads:
    """The file of a zip. Several contradictory fields can say where its list of members stands and
    how long it is, so this limits what zipfile really reads."""

    def __init__(self, file: IO[bytes], members: int, size: int) -> None:
        self._file, self._members, self._size = file, members, size
        self.seek, self.tell, self.close = file.seek, file.tell, file.close

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size > self._size:
            raise TooManyMembers
        content = self._file.read(size if size >= 0 else self._size + 1)
        if len(content) > self._size or content.count(_ENTRY) > self._members:
            raise TooManyMembers
        return content


def open_zip(file: IO[bytes], members: int, size: int) -> zipfile.ZipFile:
    """Opens a zip with at most so many members, whose list takes at most `size` bytes.

    Raises:
        TooManyMembers: it has more.
        zipfile.BadZipFile, and what `grader.submission.archive.DAMAGE` names: it is damaged.
    """
    return zipfile.ZipFile(cast(Any, _Reads(file, members, size)))
