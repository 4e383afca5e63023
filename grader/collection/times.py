"""Reads from a table when students handed in, if the download does not tell it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.base.sheets import SheetError, read_sheet
from grader.classroom.moodle import WHO, Participants
from grader.classroom.roster import IDS, PARTICIPANT
from grader.classroom.store import Entry, called

_COLUMNS = {
    "student": (*IDS, "login", "email", "email address", PARTICIPANT),
    "submitted": (
        *("submitted", "submitted at", "submitted_at", "time", "submission time"),
        "last modified (submission)",
    ),
    **WHO,
}
# As Moodle writes it in English: "Thursday, 8 October 2026, 9:41 PM", or the month first.
_MOODLE = ("%d %B %Y, %I:%M %p", "%B %d, %Y, %I:%M %p")
_WEEKDAY = re.compile(r"[A-Za-z]+day, ")


def with_times(
    path: Path, entries: Sequence[Entry], due: datetime
) -> tuple[list[Entry], list[str]]:
    """(the class with the times of a CSV file, names in the file that nobody has).

    A line names a student by id, login or e-mail address, or a group, or as Moodle's grading
    worksheet does. A time without an offset gets that of the due date. The table's time replaces
    the download's. For a group the time of the graded work counts, whichever member handed it in.

    Raises:
        SheetError: the file can't be read, or a line is wrong.
    """
    names, participants = called(entries), Participants(entries)
    times: dict[str, str] = {}
    lines: dict[str, int] = {}
    strangers = []
    for line, cells in read_sheet(path, _COLUMNS, ("student", "submitted")):
        if cells["submitted"] in ("", "-"):
            continue
        moment = _moment(path, line, cells["submitted"], due)
        students = names.get(cells["student"].casefold(), ())
        if cells["participant"]:
            students = tuple(filter(None, [participants.find(cells)]))
        if not students:
            who = cells["participant"] or cells["student"]
            strangers.append(f"{who} {cells['name']}".strip() or f"line {line}")
        for student in students:
            if student in lines:
                raise SheetError(
                    f"{path}:{line}: {student} has a time in line {lines[student]} already"
                )
            lines[student], times[student] = line, moment
    found = [
        replace(entry, submitted=times.get(entry.given_by or entry.student, entry.submitted))
        for entry in entries
    ]
    return found, strangers


def _moment(path: Path, line: int, text: str, due: datetime) -> str:
    for form in _MOODLE:
        try:
            moment = datetime.strptime(_WEEKDAY.sub("", text, 1), form)
        except ValueError:
            continue
        return moment.replace(tzinfo=due.tzinfo).isoformat()
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise SheetError(
            f"{path}:{line}: {text!r} is not a time; hint: like 2026-10-08 23:41 or "
            "2026-10-08T23:41:00+02:00"
        ) from error
    if len(text) <= len("2026-10-08"):
        raise SheetError(f"{path}:{line}: {text!r} has no time of day; hint: 2026-10-08 23:41")
    return (moment if moment.tzinfo else moment.replace(tzinfo=due.tzinfo)).isoformat()
