"""Groups of students who hand in together: one member's submission is every member's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.base.sheets import SheetError, read_sheet
from grader.classroom.roster import IDS
from grader.classroom.store import Entry, called, nobody

_COLUMNS = {
    "student": (*IDS, "login", "email", "email address"),
    "group": ("group name", "group_name", "group", "groups", "team"),
}


def read_groups(path: Path, entries: Sequence[Entry]) -> dict[str, str]:
    """Id -> group, from a CSV file with a line a student, named by id, login or e-mail address. An
    empty cell means no group.

    Raises:
        SheetError: the file can't be read, a column is missing, or a student occurs twice or is not
            in the class.
    """
    names = called([replace(entry, group="") for entry in entries])
    groups: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line, cells in read_sheet(path, _COLUMNS, ("student", "group")):
        name = cells["student"]
        if not name:
            continue
        if name.casefold() not in names and cells["group"]:
            raise SheetError(f"{path}:{line}: {nobody(name, names)}")
        [student] = names.get(name.casefold(), [name])
        if student in lines:
            raise SheetError(
                f"{path}:{line}: student {student!r} is in line {lines[student]} already"
            )
        lines[student] = line
        if cells["group"]:
            groups[student] = cells["group"]
    if not groups:
        raise SheetError(f"{path} puts nobody into a group; hint: columns student and group")
    return groups


def shared(entries: Sequence[Entry], groups: Mapping[str, str]) -> tuple[list[Entry], list[str]]:
    """(the class, in which each member has the group's submission; notes).

    If several members handed in, the newest submission counts if all times are known, else that of
    the first member in the order of the class.
    """
    members: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.student in groups:
            members.setdefault(groups[entry.student], []).append(entry)
    chosen = {group: _chosen(found) for group, found in members.items()}
    notes = [
        f"group {group}: {', '.join(e.student for e in members[group] if e.source)} handed in; "
        f"graded for all is {one.student}'s, {why}."
        for group, (one, why) in chosen.items()
        if one and why
    ]
    found = [
        _member(entry, groups[entry.student], chosen[groups[entry.student]][0])
        if entry.student in groups
        else entry
        for entry in entries
    ]
    return found, notes


def _chosen(members: Sequence[Entry]) -> tuple[Entry | None, str]:
    """(the member whose submission counts, the reason if there are several)."""
    given = [entry for entry in members if entry.source]
    if len(given) < 2:
        return (given[0] if given else None), ""
    if all(entry.submitted for entry in given):
        return max(given, key=lambda e: datetime.fromisoformat(e.submitted)), "the newest"
    return given[0], "the first in the class, since nothing tells which is newer"


def _member(entry: Entry, group: str, one: Entry | None) -> Entry:
    if one is None or one.student == entry.student:
        return replace(entry, group=group)
    who = f"{one.student} {one.name}".strip()
    told = ("source", "submitted", "late", "attempt")
    values = {name: getattr(one, name) for name in told}
    notes = [*entry.notes, f"{who} handed in for group {group}."]
    return replace(entry, group=group, given_by=one.student, notes=notes, **values)
