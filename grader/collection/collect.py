"""Collects a class's submissions from a folder or a download, and finds the student of each.

Runs nothing of a submission, follows no link, and leaves the source as it is. The notes name what
was skipped, and what is ambiguous.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

from grader.base.printable import printable
from grader.classroom.match_names import Matcher, NameMatch
from grader.classroom.roster import Person
from grader.classroom.store import Entry, folder_name
from grader.collection.gradescope_download import gradescope
from grader.collection.one_student import assemble
from grader.collection.platforms import (
    CANVAS,
    GRADESCOPE,
    METADATA,
    MOODLE,
    PLAIN,
    Download,
    Handed,
    canvas,
    children,
    is_archive,
    is_canvas,
    is_moodle,
    moodle,
    moodle_prefix,
    plain,
)
from grader.collection.unpacking import CollectionError, unpack
from grader.submission.archive import of_the_machine, shown, some

__all__ = ["CollectionError", "collect"]

MAX_LEVELS = 4  # folders that hold nothing but one folder
MAX_ID = 100  # characters of an id that a download gives


def collect(
    source: Path, roster: list[Person] | None, into: Path, files: Sequence[str] = ()
) -> tuple[list[Entry], list[str]]:
    """(the class, notes on the submissions together, in sentences).

    First come the students of the roster, in its order, then all others, sorted by id. A student
    who handed in nothing has the source "". The same call again gives the same paths, and makes
    nothing twice.

    Args:
        source: a folder, or a zip or tar archive of one.
        into: below it lies what had to be unpacked or put together; an entry's source is there or
            in `source`.
        files: the paths that a submission hands in, see grader.course.rubric.Rubric.

    Raises:
        CollectionError: the source can't be read, or holds no submissions.
    """
    matcher = Matcher(roster or ())
    folder, notes = _folder(source, into)
    try:
        found = _recognise(folder, into, matcher, files)
    except OSError as error:
        what = f"{shown(source.name)} cannot be read: {error.strerror or error}"
        raise CollectionError(what) from error
    if not found.handed:
        raise CollectionError(
            f"{shown(source.name)} holds no submissions; hint: one folder or archive for "
            "each student, or a download of Canvas, Moodle or Gradescope"
        )
    notes += [f"recognised: {found.systems()}.", *found.notes]
    students = _assign(found.handed, roster, matcher, notes)
    taken = set[str]()
    return [_entry(student, taken, into, files) for student in students], notes


def _folder(source: Path, into: Path) -> tuple[Path, list[str]]:
    if source.is_dir():
        if source.resolve() == into.resolve():
            raise CollectionError(
                f"{source} is the folder of the results, too; hint: name another one for them"
            )
        return source, []
    if not source.is_file():
        raise CollectionError(f"{source} does not exist")
    return unpack(source, into)


# --- what lies there ----------------------------------------------------------------------------


def _recognise(folder: Path, into: Path, matcher: Matcher, files: Sequence[str]) -> Download:
    """Enters folders that hold one folder and nothing else, unless that is a student's."""
    notes: list[str] = []
    for _ in range(MAX_LEVELS):
        paths = _without(into, children(folder, notes), notes)
        if (folder / METADATA).is_file():
            found = gradescope(folder, [path for path in paths if path.name != METADATA])
            rest = _rest(folder, paths, found)
            more = _loose(rest, matcher, files)
            return Download(found.handed + more.handed, notes + found.notes + more.notes)
        _refuse_single(folder, files)
        if len(paths) != 1 or not _wraps(paths[0], matcher, files):
            break
        folder = paths[0]
    found = _loose(paths, matcher, files)
    return Download(found.handed, notes + found.notes)


def _without(into: Path, paths: list[Path], notes: list[str]) -> list[Path]:
    """Leaves out the folder for the results, if it lies among the submissions."""
    results = into.resolve()
    inside = [path for path in paths if results.is_relative_to(path.resolve())]
    if inside:
        notes.append(f"ignored, since results go there: {shown(inside[0].name)}.")
    return [path for path in paths if path not in inside]


def _refuse_single(folder: Path, files: Sequence[str]) -> None:
    """Raises CollectionError if the folder itself is one submission."""
    for file in files:
        for name in (file, PurePosixPath(file).name):
            if (folder / name).is_file():
                raise CollectionError(
                    f"{shown(folder.name)} holds {name}, so it is one submission and not a "
                    "class; hint: grader grade, or the folder above it"
                )


def _wraps(path: Path, matcher: Matcher, files: Sequence[str], levels: int = MAX_LEVELS) -> bool:
    """Whether a folder that lies alone belongs to the class, not to one student."""
    if not path.is_dir() or is_moodle(path) or matcher.by_label(path.name).person:
        return False
    if any((path / name).exists() for file in files for name in (file, PurePosixPath(file).name)):
        return False
    inside = children(path, [])
    if (path / METADATA).is_file() or any(is_canvas(each) or is_moodle(each) for each in inside):
        return True
    if any(matcher.by_label(plain(each).own_id).person for each in inside):
        return True
    if len(inside) == 1 and levels:
        return _wraps(inside[0], matcher, files, levels - 1)
    return len(inside) > 1 and all(each.is_dir() or is_archive(each) for each in inside)


def _rest(folder: Path, paths: list[Path], found: Download) -> list[Path]:
    used = {part.path for handed in found.handed for part in handed.parts}
    return [path for path in paths if path not in used and path != folder / METADATA]


def _loose(paths: list[Path], matcher: Matcher, files: Sequence[str]) -> Download:
    """Submissions found by their own names: a late one may have been put beside a download."""
    found = Download()
    by_canvas = [path for path in paths if is_canvas(path)]
    by_moodle = [path for path in paths if is_moodle(path) and path not in by_canvas]
    found.handed += canvas(by_canvas, [PurePosixPath(file).name for file in files])
    found.handed += moodle(by_moodle)
    ignored = []
    used = {*by_canvas, *by_moodle}
    for path in paths:
        if path in used:
            continue
        handed = plain(path)
        if path.is_dir() or is_archive(path) or matcher.by_label(handed.own_id).person:
            found.handed.append(handed)
        else:
            ignored.append(path.name)
    if ignored:
        found.notes.append(f"ignored, neither folders nor archives: {some(ignored)}.")
    return found


# --- whose it is --------------------------------------------------------------------------------


@dataclass
class _Student:
    """A student of the class, with everything of theirs in the download."""

    person: Person
    handed: list[Handed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _assign(
    handed: list[Handed], roster: list[Person] | None, matcher: Matcher, notes: list[str]
) -> list[_Student]:
    matches = _told_apart([(each, _match(each, matcher)) for each in handed])
    known = {person.student: _Student(person) for person in roster or ()}
    strangers: dict[tuple[str, str, str], _Student] = {}
    doubts: dict[str, list[str]] = defaultdict(list)
    for each, match in matches:
        if match.person:
            known[match.person.student].handed.append(each)
            continue
        key = each.system, each.own_id, each.email.casefold()
        stranger = strangers.setdefault(key, _Student(_stranger(each)))
        stranger.handed.append(each)
        if roster is not None:
            why = match.doubt or "nobody in the roster"
            stranger.notes.append(f"not matched to the roster: {why}.")
            doubts[why].append(each.label)
    notes += _shared_ids(strangers)
    notes += [
        f"not matched to the roster, {why}; kept under ids of their own: {some(labels)}."
        for why, labels in doubts.items()
    ]
    return [*known.values(), *_with_ids(list(strangers.values()), set(known))]


def _shared_ids(strangers: dict[tuple[str, str, str], _Student]) -> list[str]:
    """Notes, for the class and for each of them, strangers who share an id in the download."""
    same: dict[tuple[str, str], list[_Student]] = defaultdict(list)
    for (system, own_id, _), student in strangers.items():
        same[system, own_id].append(student)
    shared = {key: students for key, students in same.items() if len(students) > 1}
    for (_, own_id), students in shared.items():
        for student in students:
            student.notes.append(
                f"{len(students)} accounts have the id {shown(own_id)}; e-mail addresses "
                "tell them apart."
            )
    return [
        f"{system}: {len(students)} accounts have the id {shown(own_id)}; addresses tell them "
        f"apart: {some([student.person.email or 'no address' for student in students])}."
        for (system, own_id), students in shared.items()
    ]


def _match(each: Handed, matcher: Matcher) -> NameMatch:
    if each.system == CANVAS:
        return matcher.by_canvas(each.own_id, each.name)
    if each.system == MOODLE:
        return matcher.by_participant(each.own_id, each.name)
    if each.system == GRADESCOPE:
        return matcher.by_account(each.sid, each.email, each.name)
    return matcher.by_label(each.own_id)


def _told_apart(matches: list[tuple[Handed, NameMatch]]) -> list[tuple[Handed, NameMatch]]:
    """The matches without those that can't be told apart. Two accounts of one system that share a
    name are two people, so that name identifies neither. Nor does an id that they share, except for
    the account with the e-mail address in the roster."""
    accounts: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each, match in matches:
        if match.person and each.system != PLAIN:
            accounts[each.system, match.person.student].add(_account(each))
    told = []
    for each, match in matches:
        shared = match.person and len(accounts[each.system, match.person.student]) > 1
        if shared and match.by_name:
            match = NameMatch(doubt=f"the download has {shown(each.name)!r} more than once")
        elif shared and match.person and each.system == GRADESCOPE:
            roster = (match.person.email.casefold(), match.person.login.casefold())
            if not each.email or each.email.casefold() not in roster:
                match = NameMatch(
                    doubt=f"several accounts of the download have the id {shown(each.sid)!r}"
                )
        told.append((each, match))
    return told


def _account(each: Handed) -> str:
    return each.email.casefold() or each.own_id


def _stranger(each: Handed) -> Person:
    name, email = (" ".join(printable(text).split())[:200] for text in (each.name, each.email))
    return Person(each.own_id, name, email)


def _with_ids(strangers: list[_Student], used: set[str]) -> list[_Student]:
    """Gives an id to each student whom nothing else names, and sorts by id."""
    lowered = {student.casefold() for student in used}
    strangers.sort(key=lambda each: (each.person.student, each.handed[0].system, each.person.email))
    for each in strangers:
        plain_id = " ".join(printable(each.person.student).split())[:MAX_ID] or "student"
        student, number = plain_id, 1
        while student.casefold() in lowered:
            system = each.handed[0].system
            base = plain_id if system == PLAIN else f"{system.lower()}-{plain_id}"
            student = base if number == 1 else f"{base}-{number}"
            number += 1
        lowered.add(student.casefold())
        each.person = replace(each.person, student=student)
    return sorted(strangers, key=lambda each: each.person.student)


# --- entries ------------------------------------------------------------------------------------


def _folder_of(person: Person, taken: set[str]) -> str:
    """A folder's name that is not in `taken`, ignoring case; adds it there."""
    text = "-".join(filter(None, (person.name, person.student)))
    folder = folder_name(text)
    if folder.casefold() in taken:
        folder = folder_name(text, taken)
    taken.add(folder.casefold())
    return folder


def _entry(student: _Student, taken: set[str], into: Path, files: Sequence[str]) -> Entry:
    person = student.person
    folder = _folder_of(person, taken)
    entry = Entry(person.student, folder, person.name, person.email, person.login, person.section)
    entry.notes.extend(student.notes)
    for each in _in_order(student.handed, entry.notes):
        source, notes = _assembled(each, folder, into, files)
        entry.notes.extend([*each.notes, *notes])
        if source:
            attempt = max((part.attempt for part in each.parts), default=0)
            return replace(
                entry, source=source, submitted=each.submitted, late=each.late, attempt=attempt
            )
    return entry


def _assembled(
    each: Handed, folder: str, into: Path, files: Sequence[str]
) -> tuple[str, list[str]]:
    try:
        return assemble(each.parts, moodle_prefix(each) or folder, into, files)
    except OSError as error:
        what = f"{shown(each.label)} cannot be read: {error.strerror or error}"
        if of_the_machine(error):  # a part of the work must not be graded as all of it
            raise CollectionError(
                f"{what}; this is a failure of the machine, not of the submission; hint: fix "
                "it, and run the same command again"
            ) from error
        return str(each.parts[0].path), [f"{what}."]  # it is told again when it is graded


def _in_order(handed: list[Handed], notes: list[str]) -> list[Handed]:
    """The parts that a student handed in, the one to grade first."""
    if len(handed) < 2:
        return handed
    ordered = sorted(handed, key=lambda each: (each.system, each.label))
    if all(each.submitted for each in handed):
        ordered.sort(key=lambda each: datetime.fromisoformat(each.submitted), reverse=True)
        why = "the newest"
    else:
        why = "the first by name, since nothing tells which is newer"
    labels = some([each.label for each in ordered])
    notes.append(f"handed in more than once: {labels}; the grader took {why}.")
    return ordered
