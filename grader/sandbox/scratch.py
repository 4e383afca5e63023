"""Temporary folders that are removed even if their process was killed: by a later one.

Whoever uses a folder holds a lock on it, which ends with the process, however it ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "dlsys-scratch-"
_YOUNG = 60.0  # seconds in which a new folder may not be locked yet
_LEAST = 256 << 20  # bytes that must be free: a tree that is built takes some 20 MiB


class Scratch:
    """A new folder in the folder of temporary files.

    Raises OSError where there is no room: what runs there would fail, by nobody's fault.
    """

    def __init__(self) -> None:
        _demand_room(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        self._lock = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Removes it with all that is in it. Harmless when repeated."""
        if self._lock >= 0:
            _remove_tree(self.path)
            os.close(self._lock)
            self._lock = -1


def _demand_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _LEAST:
        raise OSError(
            errno.ENOSPC,
            f"only {free >> 20} MiB are free in {folder}, and {_LEAST >> 20} are needed; "
            "hint: free some, or set TMPDIR to another folder",
        )


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, removed at the end."""
    scratch = Scratch()
    try:
        yield scratch.path
    finally:
        scratch.remove()


@contextlib.contextmanager
def workspace(keep: Path | None) -> Iterator[Path]:
    """The folder `keep`, made where it is not there, or a temporary one; absolute."""
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with scratch_folder() as folder:
        yield folder


def sweep() -> None:
    """Removes what was left by processes that are no more."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _YOUNG:
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove_tree(path)
    finally:
        os.close(lock)


def _remove_tree(path: Path) -> None:
    """However deep it is, and whatever rights its folders have been given: unlike Python's own
    function, these commands need no stack for it. They follow no link that lies in it."""
    for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        subprocess.run([*command, "--", str(path)], stderr=subprocess.DEVNULL, check=False)
