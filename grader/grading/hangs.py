"""Remembers what hung in one check of a submission, so that later checks wait less for it.

Kernels that hung are among it: how children tell of these, and are told, is in
grader.student.endless. The threads that decide rows share this. Its fields only grow: a thread that
reads an old value waits longer, and its result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.course.rubric import Row
from grader.student import blame, endless
from grader.student.pipe import ChildExcess
from grader.student.remote import ChildTimeout

#: What ends a check that would not have ended: a program that grows
#: meets a limit of memory first.
ENDLESS = (ChildTimeout, ChildExcess)
_HASTE = 4  # times less for a check after one that did not end


def _grows_or_hangs(error: Exception) -> bool:
    """Whether the limits suggest that Python did not end. Too much output does not."""
    is_full = isinstance(error, ChildExcess) and error.kind == "memory"
    return is_full or isinstance(error, ChildTimeout)


@dataclass
class Hangs:
    """The hangs of one submission so far.

    Attributes:
        kernels: kernels that the emulated GPU's watchdog stopped.
        python: whether Python that needs no device did not end.
        launchers: whether a check on the device did not end, as where a launcher sleeps or waits.
        unimportable: module -> why no check imports it again.
        unimportable_unbuilt: those of them whose import needs no built library.
    """

    kernels: set[str] = field(default_factory=set)
    python: bool = False
    launchers: bool = False
    unimportable: dict[str, str] = field(default_factory=dict)
    unimportable_unbuilt: dict[str, str] = field(default_factory=dict)

    def seconds(self, row: Row, needs_build: bool) -> float:
        """The seconds that a check may take."""
        hung = self.launchers if needs_build else self.python
        return row.seconds / (_HASTE if hung else 1)

    def unimportable_in(self, is_unbuilt: bool) -> dict[str, str]:
        """Modules that a check does not import again, and why; `is_unbuilt` as in `note`."""
        return dict(self.unimportable_unbuilt if is_unbuilt else self.unimportable)

    def note(self, row: Row, error: Exception, needs_build: bool, is_unbuilt: bool) -> None:
        """Notes what the error of a check tells. `is_unbuilt`: the check ran without the built
        library, where only an error in ENDLESS is final: others are tried again with it."""
        is_final = not is_unbuilt or isinstance(error, ENDLESS)
        if is_final and blame.ends_imports(error):
            why = f"needs {error.importing}, whose import failed in the check {row.name}: {error}"
            self.unimportable.setdefault(error.importing, why)
            if is_unbuilt:
                self.unimportable_unbuilt.setdefault(error.importing, why)
        self.python |= not needs_build and _grows_or_hangs(error)
        self.launchers |= needs_build and isinstance(error, ChildTimeout)
        if kernel := endless.endless_kernel(error):
            self.kernels.add(kernel)
