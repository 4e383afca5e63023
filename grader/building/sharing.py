"""Lays out trees that share with the kit's built tree what no build of a submission changes.

Most of a built tree is the emulated GPU, its objects and its headers as the compiler has read them:
600 files and nearly all bytes. A copy of its own would take longer than the rest of a submission's
layout. So a child sees the kit's, read-only, at the place of a copy. Where the sandbox has no
mounts to do that with, each tree has a copy.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from grader.building.tree import copy_built
from grader.sandbox.isolation import View, has_mounts

_SHARED = ("emulator", "build/obj/*/emulator", "build/obj/*/prelude.h.gch")


def let_all_read(built: Path) -> None:
    """Lets other users read what trees share with a built tree: student code is another user's."""
    for part in _shared(built):
        for path in (part, *part.rglob("*")):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))


def lay_out(tree: Path, built: Path, view: View) -> None:
    """Copies a built tree of the kit to a folder, without what children of `view` can share."""
    if not has_mounts(view.level):
        copy_built(tree, built)
        return
    shared = set(_shared(built))
    copy_built(tree, built, leave_out=shared)
    for part in shared:
        place = tree / part.relative_to(built)
        if part.is_dir():
            place.mkdir()
        else:
            place.touch()


def seeing_shared(view: View, tree: Path, built: Path) -> View:
    """A view that shows at their places in a tree the parts that it shares."""
    if not has_mounts(view.level):
        return view
    placed = tuple((part, tree / part.relative_to(built)) for part in _shared(built))
    return dataclasses.replace(view, placed=placed)


def _shared(built: Path) -> list[Path]:
    return [path for pattern in _SHARED for path in sorted(built.glob(pattern))]
