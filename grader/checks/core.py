"""The checks that need no reference. Students have them too, see grader/status/here.py.

Every other module of this folder holds checks: a new one is found, and needs no line here.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType

import grader.checks
from grader.checks.harness.context import Context

Check = Callable[[Context], None]


def _modules() -> Iterator[ModuleType]:
    """The modules of this folder, without the two that list checks."""
    package = grader.checks
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.ispkg and not found.name.endswith((".core", ".registry")):
            yield import_module(found.name)


def _all_of(modules: Iterator[ModuleType]) -> dict[str, Check]:
    table: dict[str, Check] = {}
    for module in modules:
        for name, check in module.CHECKS.items():
            if name in table:
                raise ValueError(f"{module.__name__}: another module has a check {name!r} too")
            table[name] = check
    return table


#: Name in the rubric -> function. `build` is not here: the runner does it.
CORE = _all_of(_modules())
