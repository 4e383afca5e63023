"""Checks and packs a student's work with the script of the skeleton."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from grader.base.errors import UsageError
from grader.course.course import Course


class HandinError(UsageError):
    """The work can't be checked; the message says why."""


def hand_in(
    course: Course, folder: Path, options: Sequence[str], say: Callable[[str], None]
) -> int:
    """Does what `make submit` does in a student's folder; returns its exit code.

    The script is the course's own, never the one in the folder. But the build and the tests that it
    starts are the folder's, and run uncontained.

    Args:
        options: of submit.py, which ends the process if they are wrong.
        say: called with every line for people.

    Raises:
        HandinError: the folder is no skeleton, or none of the files is there.
    """
    script = _script(course)
    try:
        return int(script.submit(str(folder), script.parse_arguments(list(options)), say))
    except script.SubmitError as error:
        raise HandinError(str(error)) from error


def _script(course: Course) -> ModuleType:
    path = course.skeleton / "submit.py"
    spec = spec_from_file_location("submit", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise HandinError(f"{path} does not exist; hint: grader release")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
