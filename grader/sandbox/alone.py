"""Has one check run while no other does, on this machine and by this user.

A child that was killed without a known reason runs once more, alone. Others may be of the same
submission or of others, in other processes. So every check holds a file's lock that all share; who
wants to be alone waits until nobody holds it. Meanwhile nobody else begins, by a second lock. No
wait lasts for ever: whoever has waited long enough goes on as if there were no lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator

from grader.sandbox import cancel

#: Seconds that a rerun waits for the checks that run, and others for the rerun.
_PATIENCE, _PATIENCE_OF_OTHERS = 60.0, 180.0
#: Reruns of one submission that others wait for. A child may kill itself in every check.
_MOST = 2
_LOOK_AGAIN = 0.02


class Alone:
    """The checks of one submission, and how they stand to those of others."""

    def __init__(self) -> None:
        self._own, self._left = threading.Lock(), _MOST

    @contextlib.contextmanager
    def beside(self, is_rerun: bool = False) -> Iterator[None]:
        """A check that others run beside; a rerun is already alone."""
        with contextlib.ExitStack() as stack:
            if not is_rerun:
                with _locked("door", fcntl.LOCK_SH, _PATIENCE_OF_OTHERS):
                    stack.enter_context(_locked("room", fcntl.LOCK_SH, _PATIENCE_OF_OTHERS))
            yield

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """Nobody else's check runs, nor another rerun of this submission; the first few times."""
        with self._own, contextlib.ExitStack() as stack:
            self._left -= 1
            if self._left >= 0:
                stack.enter_context(_locked("door", fcntl.LOCK_EX, _PATIENCE_OF_OTHERS))
                stack.enter_context(_locked("room", fcntl.LOCK_EX, _PATIENCE))
            yield


@contextlib.contextmanager
def _locked(name: str, how: int, patience: float) -> Iterator[None]:
    """Holds a lock, or, after so many seconds, nothing."""
    try:
        file = _open(name)
    except OSError:  # no place for it, or somebody else's
        yield
        return
    end = time.monotonic() + patience
    try:
        while time.monotonic() < end:
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                cancel.go_on()
                time.sleep(_LOOK_AGAIN)
            except OSError:  # a file system without locks
                break
            else:
                break
        yield
    finally:
        os.close(file)  # which ends the lock


def _open(name: str) -> int:
    """A file that is this user's, where no child can see it. It is never removed."""
    path = os.path.join(tempfile.gettempdir(), f"dlsys-{name}-{os.getuid()}")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    found = os.fstat(file)
    if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise PermissionError(path)
    return file
