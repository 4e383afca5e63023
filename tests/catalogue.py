"""Reads tests/submissions/: each file is an edit of the solution and what the grader must say."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KIT = Path(__file__).resolve().parent.parent
FOLDER = KIT / "tests" / "submissions"
FILES = ("python/dlsys/autodiff.py", "src/gpu_op.cu")


@dataclass(frozen=True)
class Mutant:
    """A wrong submission.

    Attributes:
        name: of its file.
        title: what is wrong with it.
        check: the check that it must fail.
        says: words that the report on that check must contain.
        edits: (file, text that stands there once, what replaces it).
    """

    name: str
    title: str
    check: str
    says: tuple[str, ...]
    edits: tuple[tuple[str, str, str], ...]


def mutants() -> list[Mutant]:
    """All of them, by name."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        raw = tomllib.loads(path.read_text())
        edits = tuple((e["file"], e["find"], e["replace"]) for e in raw["edit"])
        found.append(Mutant(path.stem, raw["title"], raw["check"], tuple(raw["says"]), edits))
    return found


def write(mutant: Mutant, folder: Path) -> Path:
    """Lays the submission out in a new folder.

    Raises:
        ValueError: a text to be replaced does not stand exactly once in the solution.
    """
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KIT / "solution" / name, folder / name)
    for name, find, replace in mutant.edits:
        text = (folder / name).read_text()
        if text.count(find) != 1:
            raise ValueError(f"{mutant.name}: {find!r} stands {text.count(find)} times in {name}")
        (folder / name).write_text(text.replace(find, replace))
    return folder
