"""A simulated class with every state there is, and Canvas' own file of it."""

import csv
import io
import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from grader.base.files import write_whole
from grader.classroom.gradebook import Lateness, read_gradebook
from grader.classroom.lateness import LatePolicy
from grader.classroom.store import GRADED
from simulated import simulate

DUE = datetime(2026, 10, 8, 21, 59, tzinfo=timezone.utc)
COLUMN = "Assignment 2 (12345)"
POINTS = "    Points Possible,,,,,10.00,25.00,5,(read only)"
POLICY = ",,,,,,Manual Posting,,"


def class_in_all_states(folder):
    """60 students, one at least in each state there is; returns the folder of the results."""
    book = simulate(folder / "results", 60, seed=4)
    graded = in_state(book, GRADED)
    change(book, book.entries.index(graded[5]), source="")
    book.report_path(graded[5]).unlink()
    book.report_path(graded[6]).unlink()
    edit_report(book, graded[7], fail_last)
    edit_report(book, graded[8], unreadable)
    return book.path


def fail_last(raw):
    raw["results"][-1] |= {"status": "error", "score": 0.0, "message": "no space left on device"}


def unreadable(raw):
    raw["problem"] = "none of autodiff.py, gpu_op.cu found in it"
    for result in raw["results"]:
        result |= {"status": "skipped", "score": 0.0}


def table(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def change(book, place, **values):
    """Sets fields of one entry."""
    book.entries[place] = replace(book.entries[place], **values)
    book.write()
    return book.entries[place]


def edit_report(book, entry, edit):
    path = book.report_path(entry)
    raw = json.loads(path.read_bytes())
    edit(raw)
    write_whole(path, json.dumps(raw))


def in_state(book, state):
    return [standing.entry for standing in book.standings() if standing.state == state]


def canvas(book, above=(), below=(), end="\r\n", bom="\ufeff"):
    """A gradebook as Canvas exports it, with some rows above and below the students."""
    head = f"Student,ID,SIS User ID,SIS Login ID,Section,Assignment 1 (12344),{COLUMN},Quiz,Total"
    lines = [head, *above]
    for entry in book.entries:
        given, _, family = entry.name.partition(" ")
        who = (
            f'"{family}, {given}",{entry.student},u{entry.student},{entry.login},"{entry.section}"'
        )
        lines.append(f'{who},"9,5",,"=1+1",88.20')
    lines += below
    return (bom + end.join(lines) + end).encode()


def cells(data):
    """The rows of a file as csv reads them."""
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def lateness(spent=None, **policy):
    return Lateness(LatePolicy(**policy), DUE, spent or {})


def late_row(book, rule, days, state=GRADED):
    """The gradebook's row of a student who came `days` late."""
    place = book.entries.index(in_state(book, state)[0])
    submitted = (DUE + timedelta(days=days)).isoformat()
    entry = change(book, place, submitted=submitted)
    return next(row for row in read_gradebook(book, rule).rows if row.entry == entry)
