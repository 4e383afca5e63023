"""A kit whose emulated GPU has a fault in its fast form alone: that form leaves out the last block
of a grid. So what must happen on a miscompile is tested without one."""

from __future__ import annotations

from pathlib import Path

from edits import edit
from grader.building.tree import copy_files, whole_tree
from grader.course.course import Course, kit_course
from grader.grading.self_check import with_skeleton

_LAUNCH = "emulator/src/launch.cc"
_BLOCKS = "  int64_t count = static_cast<int64_t>(blocks.x) * blocks.y * blocks.z;\n"
_FAULT = "  if (grid->block_function != nullptr && count > 1) --count;\n"


def write(source: Path, folder: Path) -> Path:
    """Copies a tree of the kit, with the fault.

    Raises:
        ValueError: the place of the fault is not as it was.
    """
    copy_files(whole_tree(source), folder)
    edit(folder / _LAUNCH, (_BLOCKS, _BLOCKS + _FAULT))
    return folder


def course(folder: Path) -> Course:
    """The kit's own course with such a skeleton, written to a folder."""
    kit = kit_course()
    return with_skeleton(kit, write(kit.skeleton, folder))
