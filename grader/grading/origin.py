"""Recognises work that started from another skeleton than the course's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: Lines that are shorter stand in any program.
_TELLING = 20
#: Of the skeleton's telling lines: who begins with it keeps more.
_LITTLE = 0.3
_CLASSIC = "classic"


def kept_of_skeleton(taken: Mapping[str, bytes], skeleton: Path) -> float:
    """The share of the skeleton's characteristic lines that the submission's files contain."""
    theirs: set[str] = set()
    ours: set[str] = set()
    for name, content in taken.items():
        path = skeleton / name
        if path.is_file():
            ours |= _lines(path.read_bytes())
            theirs |= _lines(content)
    if len(theirs) < _LITTLE * len(ours):  # of a file with next to nothing in it, who can tell?
        return 1.0
    return len(ours & theirs) / max(1, len(ours))


def _lines(content: bytes) -> set[str]:
    lines = (line.strip() for line in content.decode("utf-8", "replace").splitlines())
    return {line for line in lines if len(line) >= _TELLING}


def note(taken: Mapping[str, bytes], skeleton: Path, profile: str) -> str:
    """A note on work that holds hardly any line of the skeleton, or ""."""
    if profile == _CLASSIC or kept_of_skeleton(taken, skeleton) >= _LITTLE:
        return ""
    return (
        "these files have hardly a line of the skeleton: if they were written for the "
        f"classic assignment, grade them with --profile {_CLASSIC}"
    )
