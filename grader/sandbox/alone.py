"""Has one check run while no other does, on this machine and by this user.

A child that was killed without a known reason runs once more, alone. Others may be of the same
submission or of others, in other processes. So every check holds a file's lock that all share; who
wants to be alone waits until nobody holds it. Meanwhile nobody else begins, by a second lock. No
wait lasts for ever: whoever has waited long enough goes on as if there were no lock. Who holds a
lock may be stopped (Ctrl-Z), so the checks of a submission have one measure of patience together:
with one each, every check would wait anew.
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
from dataclasses import dataclass

from grader.sandbox import cancel

#: Seconds that all checks of a submission wait for the reruns of others, together.
_PATIENCE = 60.0
#: Seconds that a rerun waits for its turn, and then for the checks that run. Nobody begins a check
#: in the second time, so it is shorter than the patience of those who wait.
_FOR_A_TURN, _FOR_CHECKS = 180.0, 30.0
#: Reruns of one submission that others wait for. A child may kill itself in every check.
_MOST = 2
_LOOK_AGAIN = 0.02


@dataclass
class _Patience:
    """Seconds that are left for waits. Threads that wait at the same time all use them up."""

    left: float


class Alone:
    """The checks of one submission, and how they stand to those of others."""

    def __init__(self) -> None:
        self._own, self._left = threading.Lock(), _MOST
        self._patience = _Patience(_PATIENCE)

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """A check that others run beside."""
        with contextlib.ExitStack() as stack:
            with _locked("door", fcntl.LOCK_SH, self._patience):
                stack.enter_context(_locked("room", fcntl.LOCK_SH, self._patience))
            yield

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """A rerun. Beside it runs no other of this submission, and, the first few times, nobody
        else's check."""
        with self._own, contextlib.ExitStack() as stack:
            self._left -= 1
            if self._left >= 0:
                stack.enter_context(_locked("door", fcntl.LOCK_EX, _Patience(_FOR_A_TURN)))
                stack.enter_context(_locked("room", fcntl.LOCK_EX, _Patience(_FOR_CHECKS)))
            else:
                stack.enter_context(self.beside())
            yield


@contextlib.contextmanager
def _locked(name: str, how: int, patience: _Patience) -> Iterator[None]:
    """Holds a lock, or, if there is no patience left, nothing."""
    try:
        file = _open(name)
    except OSError:  # no place for it, or somebody else's
        yield
        return
    started = time.monotonic()
    end = started + patience.left
    try:
        while not _has_taken(file, how) and time.monotonic() < end:
            cancel.go_on()
            time.sleep(_LOOK_AGAIN)
        patience.left -= time.monotonic() - started
        yield
    finally:
        os.close(file)  # which ends the lock


def _has_taken(file: int, how: int) -> bool:
    """Whether there is nothing to wait for: the lock is held, or the file system has none."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _open(name: str) -> int:
    """A file that is this user's, where no child can see it. It is never removed."""
    path = os.path.join(tempfile.gettempdir(), f"dlsys-{name}-{os.getuid()}")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    found = os.fstat(file)
    if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise PermissionError(path)
    return file
