"""Builds that several tests grade: what a tree's sources were made into once is taken from there.

For tests of what comes after the build. The sources that count are all files of the tree but those
of the Python package, so a changed kernel, header or pass is built anew; what fails always is, and
so is the checked build, unless it is asked for: its lines of source name the folder where it was
made, which only findings show.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
from pathlib import Path

import kit as emulator_kit
from grader.building.tree import tree_files
from grader.sandbox import process


def _key(command, tree, environment, view):
    shared = [str(what) for what, _ in view.placed]  # in folders that are named by their content
    said = (list(command), sorted((environment or {}).items()), shared)
    digest = hashlib.sha256(repr(said).encode())
    for name in tree_files(tree):
        if name.parts[0] == "python":  # which make does not read
            continue
        digest.update(str(name).encode() + b"\0" + (tree / name).read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _files_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def kept_builds(with_checked=False):
    """While this is entered, `make` of sources that were built before in this run of the tests only
    copies what it wrote; of the checked build, too, if that is asked for."""
    run, place = process.run, Path(os.environ[emulator_kit.KEPT])

    def remembering(command, cwd, env=None, limits=None, view=None):
        is_made_anew = "CHECKED=1" in command and not with_checked
        is_the_kit = view is None  # a tree that others share holds what was made in it
        if command[0] != "make" or is_made_anew or is_the_kit:
            return run(command, cwd, env, limits, view)
        kept = place / f"build-{_key(command, cwd, env, view)}"
        with open(kept.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if kept.is_dir():
                shutil.copytree(kept, cwd / "build", dirs_exist_ok=True)
                return process.Completed(0, None, "exit", "", 0.0)
            before = _files_of(cwd / "build")
            done = run(command, cwd, env, limits, view)
            if done.rc == 0:
                _keep(cwd / "build", before, kept)
            return done

    process.run = remembering
    try:
        yield
    finally:
        process.run = run


def _keep(folder, before, kept):
    """Keeps the files of a folder that are new or changed, and their times."""
    new = kept.with_suffix(".new")
    for path, time in _files_of(folder).items():
        if before.get(path) != time:
            (new / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, new / path.relative_to(folder))
    if new.exists():
        new.rename(kept)
