"""Tells who handed in what, by the names in a download: from Canvas, Moodle or Gradescope, or with
a folder or an archive a student."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.submission.archive import ignored, shown, some
from grader.submission.reader import ARCHIVE_NAMES

CANVAS, MOODLE, GRADESCOPE, PLAIN = "Canvas", "Moodle", "Gradescope", "a folder or archive each"

MAX_PREFIX = 200  # bytes of a folder that is made
METADATA = "submission_metadata.yml"

_CANVAS = re.compile(r"(?P<name>.+?)_(?P<late>LATE_)?(?P<user>\d+)_(?P<file>\d+)_(?P<own>.+)", re.S)
_MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<user>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<own>.*))?", re.S
)
# A resubmission's number, before the last extension or before both of a .tar.gz.
_AGAIN = re.compile(r"(?P<stem>.+?)(?P<tar>\.tar)?-(?P<number>\d{1,2})(?P<rest>(\.tar)?(\.\w+)?)")
_MAGIC = (b"PK\3\4", b"PK\5\6", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"Rar!", b"7z\xbc\xaf")


@dataclass(frozen=True)
class Part:
    """A file or folder that was handed in.

    Attributes:
        own: the name that the student gave it; "" for a folder that the download made.
        attempt: from 1, if the name tells it, else 0.
        number: grows with time, if the name tells it, else 0.
    """

    path: Path
    own: str = ""
    attempt: int = 0
    number: int = 0


@dataclass(frozen=True)
class Handed:
    """What one student handed in, as the download tells it.

    Attributes:
        system: CANVAS, MOODLE, GRADESCOPE or PLAIN.
        own_id: the student's id in that system.
        submitted: ISO 8601 with offset; "" if it is not told.
    """

    system: str
    label: str
    own_id: str
    parts: tuple[Part, ...]
    name: str = ""
    email: str = ""
    sid: str = ""
    submitted: str = ""
    late: bool | None = None
    notes: tuple[str, ...] = ()


@dataclass
class Download:
    """Everything found in a folder, in a fixed order."""

    handed: list[Handed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def systems(self) -> str:
        """The systems that were recognised, in words."""
        counts = Counter(each.system for each in self.handed)
        return ", ".join(f"{system} ({count})" for system, count in sorted(counts.items()))


def children(folder: Path, notes: list[str]) -> list[Path]:
    """The files and folders in a folder, sorted. Links and what tools leave behind are only
    noted."""
    found, passed = [], []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            mode = entry.stat(follow_symlinks=False).st_mode
            if ignored(entry.name):
                passed.append(entry.name)
            elif stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                found.append(Path(entry.path))
            else:
                what = "a link, and is not followed" if stat.S_ISLNK(mode) else "not a plain file"
                notes.append(f"ignored: {shown(entry.name)} is {what}.")
    if passed:
        notes.append(f"ignored, left behind by tools: {some(passed)}.")
    return found


def is_archive(path: Path, named: str = "") -> bool:
    """Whether a file is an archive by its name, or by its content if the name tells nothing."""
    name = (named or path.name).lower()
    if name.endswith(ARCHIVE_NAMES):
        return True
    if re.search(r"\.[a-z]\w{0,8}$", name):
        return False
    with open(path, "rb") as file:
        return file.read(8).startswith(_MAGIC)


def original_name(name: str) -> tuple[str, int]:
    """(the name before Canvas numbered it, number of the attempt from 1)."""
    again = _AGAIN.fullmatch(name)
    if not again:
        return name, 1
    whole = again["stem"] + (again["tar"] or "") + again["rest"]
    return whole, int(again["number"]) + 1


# --- Canvas -------------------------------------------------------------------------------------


def canvas(paths: Sequence[Path], keep: Sequence[str] = ()) -> list[Handed]:
    """The submissions among loose files of Canvas, one a user. A name in `keep` is the student's
    own, numbers included."""
    users: dict[str, list[tuple[re.Match[str], Path]]] = {}
    for path in paths:
        if named := _CANVAS.fullmatch(path.name):
            users.setdefault(named["user"], []).append((named, path))
    marked = any(named["late"] for files in users.values() for named, _ in files)
    return [_canvas_user(user, files, marked, keep) for user, files in users.items()]


def is_canvas(path: Path) -> bool:
    """Whether a file's name has the form of Canvas's."""
    return _CANVAS.fullmatch(path.name) is not None and path.is_file()


def _canvas_user(
    user: str, files: list[tuple[re.Match[str], Path]], marked: bool, keep: Sequence[str]
) -> Handed:
    parts, notes = [], []
    for named, path in files:
        own, attempt = (named["own"], 1) if named["own"] in keep else original_name(named["own"])
        parts.append(Part(path, own, attempt, int(named["file"])))
    newest: dict[str, Part] = {}
    for part in sorted(parts, key=lambda part: (part.attempt, part.number)):
        key = _kind(part.own)
        if key in newest:
            notes.append(f"an earlier attempt was left: {shown(newest[key].path.name)}.")
        newest[key] = part
    late = any(named["late"] for named, _ in files) if marked else None
    kept = tuple(sorted(newest.values(), key=lambda part: part.path.name))
    name = files[0][0]["name"]
    return Handed(CANVAS, name, user, kept, name=name, late=late, notes=tuple(sorted(notes)))


def _kind(name: str) -> str:
    """A key that attempts at one file share: the next attempt may be packed in another format."""
    lowered = name.lower()
    for suffix in sorted(ARCHIVE_NAMES, key=len, reverse=True):
        if lowered.endswith(suffix):
            return lowered[: -len(suffix)].removesuffix(".tar") + " (archive)"
    return lowered


# --- Moodle -------------------------------------------------------------------------------------


def is_moodle(path: Path) -> bool:
    """Whether a file or folder has a name of the form of Moodle's."""
    return _MOODLE.fullmatch(path.name) is not None


def moodle(paths: Sequence[Path]) -> list[Handed]:
    """The submissions among Moodle's files or folders, one a participant. Text typed in online
    counts if there is nothing else."""
    users: dict[tuple[str, str], list[tuple[re.Match[str], Path]]] = {}
    for path in paths:
        if named := _MOODLE.fullmatch(path.name):
            users.setdefault((named["user"], named["name"]), []).append((named, path))
    return [_moodle_user(*user, files) for user, files in users.items()]


def _moodle_user(user: str, name: str, files: list[tuple[re.Match[str], Path]]) -> Handed:
    work = [(named, path) for named, path in files if named["kind"] == "file"] or files
    used = {path for _, path in work}
    notes = [f"left: {shown(path.name)}." for _, path in files if path not in used]
    parts = tuple(Part(path, named["own"] or "") for named, path in work)
    return Handed(MOODLE, name, user, parts, name=name.strip(), notes=tuple(notes))


def moodle_prefix(handed: Handed) -> str:
    """Moodle's name for the folder of a participant, by which feedback finds its way back; "" if
    the name is not Moodle's, or too long for a folder that is made."""
    named = _MOODLE.fullmatch(handed.parts[0].path.name) if handed.system == MOODLE else None
    prefix = f"{named['name']}_{named['user']}_assignsubmission_{named['kind']}_" if named else ""
    return prefix if len(os.fsencode(prefix)) <= MAX_PREFIX and prefix.isprintable() else ""


# --- a folder or an archive each ----------------------------------------------------------------


def plain(path: Path) -> Handed:
    """The submissions of a folder whose names tell the student."""
    label = path.name
    if path.is_file():
        lowered = label.lower()
        for suffix in sorted(ARCHIVE_NAMES, key=len, reverse=True):
            if lowered.endswith(suffix):
                label = label[: -len(suffix)]
                break
        label = label.removesuffix(".tar")
    return Handed(PLAIN, path.name, label.strip() or path.name, (Part(path, path.name),))
