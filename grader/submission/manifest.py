"""Compares the manifest of an archive from `make submit` with the archive."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.release.holes import MANIFEST as RELEASE
from grader.submission.archive import shown

#: Its name in the archive, beside the files with holes.
NAME = "submission.json"
SCHEMA = "dlsys-submission/1"
LARGEST = 1 << 16  # bytes


def manifest_notes(content: bytes, taken: Mapping[str, bytes], pristine: Path) -> list[str]:
    """Sentences on differences between the manifest and the submission.

    Args:
        content: of the manifest, which a student may have written.
        taken: path -> content of the files with holes.
        pristine: the skeleton that the submission is laid over.
    """
    try:
        raw = json.loads(content) if len(content) <= LARGEST else None
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        return [f"{NAME} was not written by `make submit`, and is ignored."]
    return [*_file_notes(raw.get("files"), taken), *_release_notes(raw.get("release"), pristine)]


def _file_notes(files: Any, taken: Mapping[str, bytes]) -> list[str]:
    if not isinstance(files, dict):
        return [f"{NAME} does not list the files that were packed."]
    notes = [
        f"{NAME} names {shown(str(name))}, which is not among the files taken."
        for name in sorted(set(files) - set(taken))[:3]
    ]
    for name, content in sorted(taken.items()):
        if name not in files:
            notes.append(f"{name} is not in {NAME}: it was added after packing.")
        elif files[name] != hashlib.sha256(content).hexdigest():
            notes.append(f"{name} is not as {NAME} says: it was changed after packing.")
    return notes


def _release_notes(release: Any, pristine: Path) -> list[str]:
    try:
        current = json.loads((pristine / RELEASE).read_bytes()).get("release")
    except (OSError, ValueError, AttributeError):
        return []
    if not current or not release or release == current:
        return []
    return [
        f"it was packed with release {shown(str(release))} of the skeleton; the current one "
        f"is {current}."
    ]
