"""The objects of the emulated GPU, which trees of the kit share: compiled once, then copied."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from pathlib import Path

from grader import __version__
from grader.building import tree as build

#: In a built tree, beside its objects: what these depend on.
_KEY = "emulator.key"
# Of a tree, beside the emulated GPU itself: how its objects are compiled.
_RULES = ("Makefile", "configure.py", "emulator/toolchain.py")


def take_objects(target: Path, checked: bool, kept: Path) -> None:
    """Copies to a tree that is about to be built the objects of the emulated GPU from one of the
    folder `kept`, built of equal sources in an equal way; none, if there is none. What make holds
    for older than its sources it compiles all the same."""
    key = _key(target, checked)
    for tree in kept.iterdir():
        with contextlib.suppress(OSError):  # it is being made, or forgotten
            if (tree / _objects(checked) / _KEY).read_text() == key:
                _copy(tree, target, checked)
                return


def leave_objects(tree: Path, checked: bool) -> None:
    """Notes in a built tree what its objects depend on, so that others may take them."""
    with contextlib.suppress(OSError):  # it was built for a real GPU, and has none
        (tree / _objects(checked) / _KEY).write_text(_key(tree, checked))


def _objects(checked: bool) -> Path:
    return Path("build/obj", "checked" if checked else "emulated", "emulator")


def _config(checked: bool) -> Path:
    return Path("build/checked/config.mk" if checked else "build/config.mk")


def _key(tree: Path, checked: bool) -> str:
    """A digest of all that the objects depend on, compilers that may be chosen among them."""
    chosen = sorted(build.build_environment().items())
    said = (__version__, checked, sys.executable, build.tool_chain(), chosen)
    digest = hashlib.sha256(repr(said).encode())
    folders = (tree / "emulator" / "src", tree / "emulator" / "include")
    sources = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    for path in (*sources, *(tree / name for name in _RULES)):
        digest.update(str(path.relative_to(tree)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _copy(tree: Path, target: Path, checked: bool) -> None:
    """Copies objects, and what they were configured by, with their times, and makes every source
    older. What is not the tree's own is younger if it is new since, a header of a library or what
    configure.py now writes, and make compiles anew what depends on it."""
    objects, config = _objects(checked), _config(checked)
    shutil.copytree(tree / objects, target / objects, ignore=shutil.ignore_patterns("*.h"))
    (target / config).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(tree / config, target / config)
    for path in build.tree_files(target):
        os.utime(target / path, (0, 0))
