"""One process at a time trains in a folder."""

import contextlib
import os

from .settings import SettingsError

try:
    import fcntl
except ImportError:  # Windows: whoever starts two trainings must look out
    fcntl = None


class Lock:
    """Holds a folder until `release`, or until the process ends, however it ends."""

    def __init__(self, folder):
        """
        Args:
            folder: a Path, which exists.

        Raises:
            SettingsError: another process trains there, or another Solver of this one.
        """
        self._file = open(folder / "lock", "a+", encoding="utf-8")
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            said = "process %s trains in %s; hint: wait for it, or another --output"
            if holder == str(os.getpid()):
                said = "a Solver of this process, %s, has %s's lock; hint: its run() or close()"
            raise SettingsError(said % (holder, folder)) from None
        except OSError:  # a file system without locks
            return
        self._file.truncate(0)
        self._file.write("%d\n" % os.getpid())
        self._file.flush()

    def release(self):
        """Lets others train there."""
        with contextlib.suppress(OSError):
            self._file.close()
