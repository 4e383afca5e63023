"""Protects a class's results from being overwritten by a command's output."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_OWN = ("class.json", "journal.jsonl", "adjustments.csv")


def overwritten(results: Path, outputs: Iterable[Path | None], read: Iterable[Path] = ()) -> str:
    """Why an output can't be written there, for people; "" if all can. `read` holds further files
    that the command reads, which are no outputs either."""
    root = results.resolve()
    kept = {root / name for name in _OWN} | {path.resolve() for path in read}
    for output in filter(None, outputs):
        place = output.resolve()
        if place in kept or place.is_relative_to(root / "students"):
            return (
                f"{output} is an input or part of the results, and would be lost; hint: name "
                "another file"
            )
    return ""
