"""Starts a new assignment: the kit's runtime, one op with a hole, one check, a rubric.

The runtime is copied from the kit's present solution; templates hold only what is new.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.base.errors import UsageError
from grader.building.tree import emulator_of, tree_files

_TEMPLATES = Path(__file__).parent / "templates"
#: Of the kit's solution: what any assignment needs, apart from what is the kit's own exercise.
_COPIED = (
    ".vscode/tasks.json", ".devcontainer/*", ".github/**/*",
    "Makefile", "configure.py", "requirements.txt", "pytest.ini", "submit.py",
    "python/dlsys/__init__.py", "python/dlsys/_base.py", "python/dlsys/dlpack.py",
    "python/dlsys/dtypes.py", "python/dlsys/ndarray.py",
    "src/*.h", "src/*.cc", "tests/__init__.py", "tests/conftest.py",
    "tests/failed_device.py", "tests/second_opinion.py",
)  # fmt: skip
#: Template -> the file that it becomes.
_NEW = {
    "course.toml": "course.toml",
    "rubric.toml": "grading/rubric.toml",
    "checks.py": "grading/checks.py",
    "readme.md": "README.md",
    "student.md": "solution/README.md",
    "chapter.md": "handout/10-what-to-build.md.j2",
    "gpu_op.cu": "solution/src/gpu_op.cu",
    "numpy_op.py": "solution/python/dlsys/numpy_op.py",
    "test_gpu_op.py": "solution/tests/test_gpu_op.py",
}
_IGNORED = "build/\n__pycache__/\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n"
_END_OF_INTERFACE = "} /* DLSYS_EXTERN_C */"
# The declaration of a kernel's launcher, with the comment above it.
_DECLARATION = re.compile(r"  /\*!(?:(?!\*/).)*\*/\n  int DLGpu\w+\([^;]*\);\n\n?", re.S)


class NewCourseError(UsageError):
    """The assignment can't be started there; the message says why."""


def start_course(target: Path, name: str, source: Path) -> list[Path]:
    """Writes an assignment of one op to a folder; returns its files, relative and sorted.

    Args:
        target: a folder that is empty or does not exist.
        name: of the course and the assignment, for people.
        source: the kit's solution.

    Raises:
        NewCourseError: the folder is not empty, the name is no line of text, or the kit has no
            solution here.
    """
    _check(target, name, source)
    place = target if target.is_dir() else target.parent
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-course.", dir=place) as beside:
        new = Path(beside, "new")
        _copy_runtime(source, new / "solution")
        emulator = emulator_of(source)
        shutil.copytree(emulator, new / "emulator", ignore=shutil.ignore_patterns("__pycache__"))
        _render_new(new, name)
        (new / ".gitignore").write_text(_IGNORED)
        if target.is_dir():  # it may be the working folder, which has no name to take over
            for path in sorted(new.iterdir()):
                os.rename(path, target / path.name)
        else:
            os.rename(new, target)
    return sorted(tree_files(target))


def _check(target: Path, name: str, source: Path) -> None:
    if not name.strip() or not name.isprintable():
        raise NewCourseError(f"--name {name!r} is not a line of text")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise NewCourseError(f"{target} is not a folder")
    if target.is_dir() and any(target.iterdir()):
        raise NewCourseError(f"{target} is not empty; hint: name another folder")
    if not (source / "Makefile").is_file():
        raise NewCourseError(f"{source} does not exist, whose runtime a new course needs; "
                             "hint: use a whole copy of the kit")  # fmt: skip


def _copy_runtime(source: Path, target: Path) -> None:
    """The runtime without the kit's own ops, and with the binding of the new one."""
    for name in tree_files(source):
        if any(_matches(name, pattern) for pattern in _COPIED):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)
    header = target / "src" / "c_runtime_api.h"
    header.write_text(_with_declaration(header.read_text(encoding="utf-8")), encoding="utf-8")
    module = (source / "python" / "dlsys" / "gpu_op.py").read_text(encoding="utf-8")
    binding = f"{_before_ops(module)}\n\n\n{_rendered('gpu_op.py')}"
    (target / "python" / "dlsys" / "gpu_op.py").write_text(binding, encoding="utf-8")


def _matches(name: Path, pattern: str) -> bool:
    folder, deep, _ = pattern.partition("/**/")
    return (
        name.is_relative_to(folder)
        if deep
        else name.match(pattern) and (len(name.parts) == pattern.count("/") + 1)
    )


def _with_declaration(header: str) -> str:
    """The C interface with the new op alone."""
    bare = _DECLARATION.sub("", header)
    if "DLGpu" in bare or bare.count(_END_OF_INTERFACE) != 1:
        raise NewCourseError(
            "c_runtime_api.h of the kit does not have the form that this version expects"
        )
    return bare.replace(_END_OF_INTERFACE, _rendered("declaration.h") + _END_OF_INTERFACE)


def _before_ops(module: str) -> str:
    """The module gpu_op up to its first op: imports, and how launchers are called."""
    ops = [
        node.lineno
        for node in ast.parse(module).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    return "\n".join(module.split("\n")[: min(ops) - 1]).rstrip()


def _render_new(folder: Path, name: str) -> None:
    for template, place in _NEW.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(_rendered(template, name), encoding="utf-8")


def _rendered(template: str, name: str = "") -> str:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True
    )
    # What JSON writes for a printable text is a string of TOML too.
    environment.filters["toml"] = lambda text: json.dumps(text, ensure_ascii=False)
    return environment.get_template(f"newcourse_{template}.j2").render(name=name.strip())
