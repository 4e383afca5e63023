"""Notices that this process was stopped: by Ctrl-Z, a debugger, a machine that was put by.

A thread wakes up some times a second. If it comes late, and did not wait for a core meanwhile, then
nothing of this process ran. What another thread waits for, a lock of a child's memory, say, makes
this one no later; nor do a child's threads that leave it no core. Where the kernel does not tell
how long it waited for one (CONFIG_SCHED_INFO), no lateness counts.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

_BEAT = 0.2  # seconds
_LATE = 1.0  # seconds by which a busy machine may be late


class Pulse:
    """A thread that beats until `end`.

    Attributes:
        stopped: seconds in which this process was stopped, as far as is known.
    """

    def __init__(self) -> None:
        self.stopped = 0.0
        self._beats = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            began, before = time.monotonic(), _waited()
            self._ended.wait(_BEAT)
            length, after = time.monotonic() - began, _waited()
            if before is not None and after is not None:
                late = length - _BEAT - (after - before)
                self.stopped += late if late > _LATE else 0.0
            self._beats += 1

    def settle(self) -> None:
        """Waits for the next beat, after which `stopped` holds all that was before."""
        seen, patience = self._beats, time.monotonic() + 5 * _BEAT
        while self._beats == seen and time.monotonic() < patience and not self._ended.is_set():
            time.sleep(_BEAT / 20)

    def end(self) -> None:
        """Ends the thread, which then holds no file. May be repeated."""
        self._ended.set()
        self._thread.join()


def _waited() -> float | None:
    """Seconds for which this thread has been ready and had no core (see proc_schedstat); None if
    nobody knows."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        task = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        return int(task.read_bytes().split()[1]) / 1e9
    return None
