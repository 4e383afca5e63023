"""Keeps the graders' temporary folders in memory, where the machine has room for them.

Trees that are graded live for seconds, and a file system on disk takes far longer for them than all
else that the kernel does for a test. What pytest leaves for whoever looks at a failed test stays on
the disk. Who has set TMPDIR is obeyed.
"""

import os
import tempfile
from pathlib import Path

from grader.sandbox import scratch

_MEMORY = Path("/dev/shm")
#: Bytes that must be free there, and in the machine's memory.
_LEAST = 4 << 30


def use():
    """Moves temporary folders of this process and its children to memory; returns the folder, which
    whoever calls removes, or None."""
    if "TMPDIR" in os.environ or not _has_room():
        return None
    os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.gettempdir()
    _go_to(_MEMORY)
    scratch.sweep()  # of runs that were killed
    folder = scratch.Scratch()
    folder.path.chmod(0o711)  # the users of student code have their folders in it
    _go_to(folder.path)
    return folder


def _go_to(folder):
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None


def _has_room():
    try:
        found, memory = os.statvfs(_MEMORY), Path("/proc/meminfo").read_text()
    except OSError:
        return False
    (free,) = [line.split()[1] for line in memory.splitlines() if line.startswith("MemAvailable:")]
    room = min(found.f_bavail * found.f_frsize, int(free) << 10)
    return room >= _LEAST and not found.f_flag & os.ST_NOEXEC and os.access(_MEMORY, os.W_OK)
