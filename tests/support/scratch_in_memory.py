"""Keeps the graders' temporary folders in memory, where the machine has room for them.

Each run of the tests has a folder of its own there. What pytest leaves for whoever looks at a
failed test stays on the disk. Who has set TMPDIR is obeyed.
"""

import os
import tempfile

from grader.sandbox import scratch


def use():
    """Moves temporary folders of this process and its children to memory; returns the folder, which
    whoever calls removes, or None."""
    disk = tempfile.gettempdir()
    given = os.environ.get("TMPDIR")
    scratch.use_memory()
    if os.environ.get("TMPDIR") == given:
        return None
    os.environ["PYTEST_DEBUG_TEMPROOT"] = disk
    scratch.sweep()  # of runs that were killed
    folder = scratch.Scratch()
    folder.path.chmod(0o711)  # the users of student code have their folders in it
    os.environ["TMPDIR"], tempfile.tempdir = str(folder.path), None
    return folder
