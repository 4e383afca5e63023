"""Students' folders that need no build of their own: what the grader has built of equal sources is
taken."""

import os
import shutil
import time

from grader.building.tree import REFERENCE, tree_files
from grader.grading.prebuilt import prebuilt


def build_as(folder, source=REFERENCE):
    """Gives a tree what the grader has built of `source` for the emulated GPU, with such times that
    `make` builds what differs from that alone."""
    built, now = prebuilt("emulated", source=source), time.time_ns()
    shutil.copytree(built / "build", folder / "build")
    for path in (folder / "build").rglob("*"):
        os.utime(path, ns=(now, now))
    for name in tree_files(folder):
        own, theirs = folder / name, built / name
        if not theirs.is_file() or own.read_bytes() != theirs.read_bytes():
            os.utime(own, ns=(now + 1, now + 1))
