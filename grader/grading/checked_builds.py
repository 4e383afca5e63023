"""The checked builds of a submission and of the reference, to count what their kernels move."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from grader.building.snapshot import reached
from grader.building.symbols import called
from grader.checks.harness.compare import Failure
from grader.checks.harness.outcomes import Flag
from grader.checks.speed.counted import require_open
from grader.course.course import Course
from grader.explain.diagnosis import Diagnosis, Evasive
from grader.explain.rerun import fresh_copy
from grader.grading.prebuilt import prebuilt

#: Functions of the C library that move what they are given. The checked build sees those of C++ and
#: of CUDA: memcpy, memmove and memset.
_UNSEEN = re.compile(
    r"mempcpy|memccpy|wmem\w+|bcopy|swab|st[pr]n?(cpy|cat)|str(n?dup|xfrm)|wcs\w+|wcp\w+|qsort\w*"
    r"|__atomic_(load|store|exchange)|__(w?mem|st[pr]|wc[sp])\w*_chk"
)


@contextlib.contextmanager
def checked_builds(
    taken: Mapping[str, bytes], course: Course, diagnosis: Diagnosis
) -> Iterator[tuple[Path, Path | None]]:
    """Copies of both, the submission's first; None where there is no solution to build.

    Args:
        taken: the submission's files.
        diagnosis: has the submission's checked build.

    Raises:
        Flag: the submission has no such build, for which its usual build gives no reason.
        Failure: its sources could hide work, or call there what reaches into the system.
    """
    require_open(taken)
    try:
        own = diagnosis.tree_to_count_in()
    except Evasive as why:
        raise Flag(str(why)) from why
    reaches, fault, hint = reached(own, course.skeleton)
    if reaches or fault:
        said = f"the kernels call {', '.join(reaches)} where they are counted"
        raise Failure(fault or said, hint)
    _require_seen(own, taken)
    with contextlib.ExitStack() as stack:
        mine, theirs = stack.enter_context(fresh_copy(own)), None
        if course.solution.is_dir():
            other = prebuilt("emulated", checked=True, source=course.solution)
            theirs = stack.enter_context(fresh_copy(other))
        yield mine, theirs


def _require_seen(tree: Path, taken: Mapping[str, bytes]) -> None:
    """Raises Failure if a kernel's source calls what moves values and is not counted."""
    for name in sorted(name for name in taken if name.endswith(".cu")):
        found = called(tree / "build" / "obj" / "checked" / f"{Path(name).name}.o")
        if unseen := sorted(filter(_UNSEEN.fullmatch, found)):
            raise Failure(
                f"{name} calls {', '.join(unseen)}, whose reads and writes can't be counted",
                "a kernel reads and writes elements by itself, or by memcpy",
            )
