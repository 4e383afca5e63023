"""Temporary folders that go away even if their process was killed: a later process removes them.

The user of a folder holds a lock on it, which ends with the process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "dlsys-scratch-"
_YOUNG = 60.0  # seconds in which a new folder may not be locked yet
_LEAST = 256 << 20  # bytes that must be free: a tree that is built takes some 20 MiB
_MEMORY = Path("/dev/shm")  # folders there never go to a disk
_ROOM_IN_MEMORY = 4 << 30  # bytes
_FIRST_USER, _LOGIND = 1000, Path("/run/systemd/seats")


class Scratch:
    """A new temporary folder.

    Raises:
        OSError: there is no room: a failure of what runs there would be nobody's fault.
    """

    def __init__(self) -> None:
        _demand_room(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        self._lock = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Removes the folder with everything in it. May be repeated."""
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
    """A new temporary folder that is removed at the end."""
    scratch = Scratch()
    try:
        yield scratch.path
    finally:
        scratch.remove()


@contextlib.contextmanager
def workspace(keep: Path | None) -> Iterator[Path]:
    """The absolute path of the folder `keep`, which is made if needed; or of a temporary folder."""
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with scratch_folder() as folder:
        yield folder


def in_memory() -> Path:
    """This user's folder for temporary folders in memory, whether it is used or not."""
    return _MEMORY / f"dlsys-{os.getuid()}"


def has_room() -> bool:
    """Whether temporary folders may lie in memory: trees that are graded live for seconds, and a
    disk takes longer for them than all else that the kernel does."""
    try:
        found, known = os.statvfs(_MEMORY), Path("/proc/meminfo").read_text()
    except OSError:
        return False
    free = re.search(r"^MemAvailable: *(\d+) kB$", known, re.MULTILINE)
    if free is None or found.f_flag & os.ST_NOEXEC or not os.access(_MEMORY, os.W_OK):
        return False
    # systemd-logind removes what an ordinary user has there at the end of the last session, also
    # what a service or a job of a cluster uses.
    if os.getuid() >= _FIRST_USER and _LOGIND.exists():
        return False
    return min(found.f_bavail * found.f_frsize, int(free[1]) << 10) >= _ROOM_IN_MEMORY


def use_memory() -> None:
    """Puts the temporary folders of this process and its children there, unless TMPDIR says
    where."""
    sweep()
    if "TMPDIR" in os.environ or not has_room():
        return
    # A folder of its own: student code does not see where temporary folders lie, but may need the
    # rest. Users of student code have their folders in it.
    own = in_memory()
    try:
        own.mkdir(mode=0o711, exist_ok=True)
        if not _is_ours(own):
            return
        own.chmod(0o711)  # whatever the umask
    except OSError:
        return
    os.environ["TMPDIR"], tempfile.tempdir = str(own), None


def _is_ours(folder: Path) -> bool:
    """Whether nobody but this user can put anything there."""
    try:
        made = folder.lstat()
    except OSError:
        return False
    is_folder = stat.S_ISDIR(made.st_mode) and made.st_uid == os.getuid()
    return is_folder and not made.st_mode & 0o022


def sweep() -> None:
    """Removes the temporary folders of processes that have ended."""
    own = in_memory()
    for place in {Path(tempfile.gettempdir()), *[own] * _is_ours(own)}:
        for path in place.glob(f"{PREFIX}*"):
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
    """Removes a tree of any depth and with any rights. Unlike Python's own function, these commands
    need no stack for deep trees. They follow no link inside."""
    with contextlib.suppress(OSError):
        os.rmdir(path)  # most homes are empty
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        if not os.path.lexists(path):
            return
        subprocess.run([*command, "--", str(path)], stderr=subprocess.DEVNULL, check=False)
