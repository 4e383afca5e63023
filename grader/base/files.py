"""Writes files so that a reader never sees half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes bytes, or text as UTF-8, to a temporary file beside `path`, then renames it.

    Half a surrogate pair, which UTF-8 can't hold, becomes "?". Folders are made.

    Raises:
        OSError: the folder can't be made or written to.
    """
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
