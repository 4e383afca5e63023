"""Loads a course's own files of checks. They are the instructor's and run in the grader itself."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.checks.harness.context import Context
from grader.course.course import CourseError


def load_checks(files: Iterable[Path]) -> dict[str, Callable[[Context], None]]:
    """Name in the rubric -> check, from the table CHECKS of each file.

    Raises:
        CourseError: a file can't be loaded or has no such table, a check has no docstring (the
            student's sentence), or two files define the same check.
    """
    found: dict[str, Callable[[Context], None]] = {}
    for path in files:
        for name, check in _table(path, _load(path)).items():
            if name in found:
                raise CourseError(f"{path}: another file of the course has a check {name!r} too")
            found[name] = _checked(path, name, check)
    return found


def _load(path: Path) -> ModuleType:
    """Runs the file as a module that no import can find."""
    loader = SourceFileLoader(f"checks_of_the_course_{path.stem}", str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look for their module there
    try:
        loader.exec_module(module)
    except Exception as error:  # whatever the file does
        line = next(
            (f.lineno for f in reversed(traceback.extract_tb(error.__traceback__))
             if f.filename == str(path)), getattr(error, "lineno", None),
        )  # fmt: skip
        place = f"{path}:{line}" if line else str(path)
        raise CourseError(f"{place}: {type(error).__name__}: {error}") from error
    finally:
        del sys.modules[loader.name]
    return module


def _table(path: Path, module: ModuleType) -> dict[str, Any]:
    table = getattr(module, "CHECKS", None)
    if not isinstance(table, dict):
        raise CourseError(
            f"{path} has no table of checks; hint: CHECKS = {{check.__name__: check}} at its end"
        )
    return table


def _checked(path: Path, name: Any, check: Any) -> Callable[[Context], None]:
    if not isinstance(name, str) or name == "build" or not callable(check):
        raise CourseError(
            f"{path}: CHECKS[{name!r}] is {check!r}, expected a function declared by @check"
        )
    if not (check.__doc__ or "").strip():
        raise CourseError(
            f"{path}: the check {name!r} has no docstring; hint: its first line is the sentence "
            "that the student reads"
        )
    return check  # type: ignore[no-any-return]
