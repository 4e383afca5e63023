"""Measures the kit's Python: lengths of files and functions, comments, docstrings of public names.

python tools/house_sizes.py

Prints a table in Markdown, which docs/make_site.py puts on the page about the rooms. A function's
length is that of its body without the docstring. A public name is a module, or a class, function or
method in one, that does not begin with an underscore; a method needs no docstring of its own where
a class of the same part has one for that method, and what a script's `main` does its module says.
Tests have none: their names say what they claim.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

KIT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(KIT))

from grader.building.tree import tree_files

#: What the table has a row for; what students write or hand in is nobody's style.
PARTS = {
    "grader": ("grader",),
    "emulator": ("emulator",),
    "solution": ("solution/python",),
    "tests": ("tests",),
    "tools": ("tools", "docs"),
}
LEFT_OUT = ("tests/honest/", "tests/submissions/", "tests/similarity/earlier_skeleton/")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Sizes:
    """What was measured of a part: lines of each file and of each function, and counts."""

    files: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    comments: int = 0
    public: dict[str, bool] = field(default_factory=dict)  # whether it has a docstring

    def add(self, path: Path) -> None:
        """Measures a file too."""
        text = path.read_text()
        tree = ast.parse(text)
        self.files.append(len(text.splitlines()))
        self.functions += map(length, (n for n in ast.walk(tree) if isinstance(n, FUNCTION)))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self.comments += sum(token.type == tokenize.COMMENT for token in tokens)
        for name, node in public(tree, path.relative_to(KIT).as_posix() + ":"):
            self.public[name] = ast.get_docstring(node) is not None

    def row(self) -> list[str]:
        """The cells of the table."""
        lines = sum(self.files)
        share = f"{100 * self.comments / lines:.0f} %"
        return [str(len(self.files)), spread(self.files), spread(self.functions), share]

    @property
    def silent(self) -> list[str]:
        """Public names without a docstring."""
        methods = {name.rpartition(".")[2] for name, told in self.public.items() if told}
        untold = [n for n, told in self.public.items() if not told and not n.endswith(":main")]
        return [
            name
            for name in untold
            if "." not in name.partition(":")[2] or name.rpartition(".")[2] not in methods
        ]


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def public(node: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, ast.AST]]:
    """(name, node) of a module or class, and of the public names in it."""
    yield name, node
    for child in node.body:
        if isinstance(child, (ast.ClassDef, *FUNCTION)) and not child.name.startswith("_"):
            if isinstance(child, ast.ClassDef):
                yield from public(child, f"{name}{child.name}.")
            else:
                yield f"{name}{child.name}", child


def spread(lengths: list[int]) -> str:
    """The median, what 95 % do not exceed, and the longest."""
    ordered = sorted(lengths)
    high = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return f"{median(ordered):.0f} / {high} / {ordered[-1]}"


def sources(folders: tuple[str, ...]) -> list[Path]:
    """The Python files of these folders, without what was built."""
    paths = [KIT / folder / name for folder in folders for name in tree_files(KIT / folder)]
    return [
        path
        for path in paths
        if path.suffix == ".py" and not path.relative_to(KIT).as_posix().startswith(LEFT_OUT)
    ]


def measured(part: str) -> Sizes:
    """The sizes of a part of the kit."""
    sizes = Sizes()
    for path in sources(PARTS[part]):
        sizes.add(path)
    return sizes


def table() -> str:
    """The table in Markdown."""
    found = {part: measured(part) for part in PARTS}
    head = ("part", "files", "lines of a file", "lines of a function", "comments")
    rows = [head, ("---", *["--:"] * 4), *((part, *sizes.row()) for part, sizes in found.items())]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    silent = sum(len(sizes.silent) for part, sizes in found.items() if part != "tests")
    public_names = sum(len(sizes.public) for part, sizes in found.items() if part != "tests")
    return "\n".join([*lines, "", f"Public names without a docstring: {silent} of {public_names}."])


if __name__ == "__main__":
    print(table())
