"""Finds and ends descendants of a child that left its session.

On Linux this process adopts the orphans of its children. So a descendant that daemonised shows up
as a child of this process, in a session that is neither this one nor that of a running child: a
process can leave a session, but not join one. Therefore nothing else in this process may start
processes in sessions of their own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_PATIENCE = 5.0  # seconds that killed processes have to vanish
_PR_SET_CHILD_SUBREAPER = 36

LOCK = threading.Lock()  # held while a child is started, so that it is not taken for a stray
LIVE: set[int] = set()  # leaders not yet killed


def open_pidfd(pid: int) -> int | None:
    """A descriptor for a process on Linux; None if there is none, or on another system."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None


def adopt_orphans() -> None:
    """Makes this process the parent of its children's orphans. Does nothing except on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _processes() -> Iterator[tuple[int, int, int]]:
    """(pid, parent, session) of every process, zombies too. Empty where there is no /proc."""
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError):
                stat = Path("/proc", name, "stat").read_bytes()
                _, parent, _, session = stat.rpartition(b")")[2].split()[:4]
                yield int(name), int(parent), int(session)


def _strays(session: int) -> set[int]:
    """The processes of `session`, orphans that left their session, and the descendants of both."""
    me, mine = os.getpid(), os.getsid(0)
    table = list(_processes())
    found = {
        pid
        for pid, parent, sid in table
        if sid == session or (parent == me and sid != mine and sid not in LIVE)
    }
    while more := {pid for pid, parent, _ in table if parent in found} - found:
        found |= more
    return found


def end_strays(session: int) -> None:
    """Kills what is left of a session and the orphans that left it. Gives up after some seconds."""
    until = time.monotonic() + _PATIENCE
    while (pids := _strays(session)) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
