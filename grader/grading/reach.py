"""Names submitted Python that reaches around the package: into memory, frames or modules of its
process. What it computes is judged by values; this only tells a person where to look."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator, Mapping

from grader.report.model import FOR_INSTRUCTORS

#: Modules by which Python reaches the memory, the frames or the objects of its process.
_MODULES = ("ctypes", "_ctypes", "cffi", "gc", "importlib", "inspect", "mmap", "tracemalloc")
#: What reaches there by the name of an attribute.
_ATTRIBUTES = (
    "_getframe", "_current_frames", "f_back", "f_globals", "f_locals", "tb_frame", "gi_frame",
    "__subclasses__", "_LIB",
)  # fmt: skip
#: The same where it is one of `sys`: others have such names too.
_OF_SYS = ("modules", "settrace", "setprofile")
#: Functions that reach whatever a text names.
_BY_TEXT = ("__import__", "eval", "exec", "compile")
_MOST = 8  # places in a note
_LARGEST = 1 << 20  # bytes of a file that is looked at
_DEEPEST = 1000


def notes(taken: Mapping[str, bytes]) -> list[str]:
    """A note for each submitted Python file that reaches into its process, with the lines."""
    found = []
    for name, content in sorted(taken.items()):
        places = _places(content) if name.endswith(".py") else []
        if places:
            shown = ", ".join(f"{what} (line {line})" for line, what in places[:_MOST])
            more = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
            found.append(f"{FOR_INSTRUCTORS}{name} reaches into its own process: {shown}{more}")
    return found


def _places(content: bytes) -> list[tuple[int, str]]:
    """(line, what is reached for), in order, each thing once."""
    try:
        if len(content) > _LARGEST:
            raise MemoryError
        with _shallow():
            tree = ast.parse(content)
    except (RecursionError, MemoryError):  # Python itself may still run it
        return [(1, "a program too large or too deep to be looked at")]
    except (SyntaxError, ValueError):
        return []  # nor can Python run it
    first: dict[str, int] = {}
    of_sys = {"sys"} | {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "sys" and alias.asname
    }
    for node in ast.walk(tree):
        for name in _reached(node, of_sys):
            line = getattr(node, "lineno", 1)
            first[name] = min(first.get(name, line), line)
    return sorted((line, name) for name, line in first.items())


@contextlib.contextmanager
def _shallow() -> Iterator[None]:
    """Python's parser calls itself as often as this process may, and ends it where its stack ends:
    so it gets Python's own limit, whatever somebody has set."""
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(_DEEPEST)
        yield
    finally:
        sys.setrecursionlimit(before)


def _reached(node: ast.AST, of_sys: set[str]) -> Iterator[str]:
    """What one node reaches for, by name."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if _is_telling(alias.name))
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if _is_telling(module):
            yield module
        else:
            names = [alias.name for alias in node.names]
            yield from (name for name in names if _counts(name, module, of_sys))
    elif isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if _counts(node.attr, owner, of_sys):
            yield f"{owner}.{node.attr}"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        owners = {arg.id for arg in node.args if isinstance(arg, ast.Name)}
        texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        if node.func.id in _BY_TEXT:
            yield node.func.id
        elif node.func.id in ("getattr", "setattr"):
            owner = "sys" if owners & of_sys else ""
            yield from (str(t) for t in texts if isinstance(t, str) and _counts(t, owner, of_sys))


def _is_telling(module: str) -> bool:
    return module.partition(".")[0] in _MODULES


def _counts(name: str, owner: str, of_sys: set[str]) -> bool:
    if name in _OF_SYS:
        return owner in of_sys
    return name in _ATTRIBUTES or (owner == "" and name in _MODULES)
