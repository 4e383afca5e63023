"""Takes over the results of an earlier run.

Nobody loses a result because a download lacks what an earlier one had.
"""

from __future__ import annotations

from dataclasses import replace

from grader.classroom.store import Classbook, Entry, folder_name


def absent_of(former: Classbook, entries: list[Entry]) -> list[Entry]:
    """The students who have a result, and are neither in the roster nor in what was handed in
    now."""
    present = {entry.student for entry in entries}
    others = [entry for entry in former.entries if entry.student not in present]
    return [entry for entry in others if former.report_path(entry).exists()]


def note_on_leavers(absent: list[Entry]) -> list[str]:
    """A note that these students leave the class, since a new roster lacks them; [] for nobody.

    A new roster says anew who is in the class. What was graded for others before may be the work of
    somebody in it, such as under an id that a run without a roster made up.
    """
    names = ", ".join(entry.student for entry in absent)
    note = (f"the roster is new, and these are not in it, so they leave the class (their reports "
            f"stay in students/): {names}.")  # fmt: skip
    return [note] if absent else []


def merged(
    former: Classbook, entries: list[Entry], absent: list[Entry]
) -> tuple[list[Entry], list[str]]:
    """(the class, notes). A student keeps the folder of the earlier run, and the result where
    nothing was handed in now.

    Args:
        former: the class of the earlier run.
        entries: the students of the roster and of the download.
        absent: students who are in neither, and have a result.
    """
    known = {entry.student: entry for entry in former.entries}
    taken = [entry.folder for entry in former.entries]
    found, kept = [], []
    for entry in entries:
        before = known.pop(entry.student, None)
        if before is None:
            entry = replace(entry, folder=folder_name(entry.folder, taken))
            taken.append(entry.folder)
        elif not entry.source and former.report_path(before).exists():
            kept.append(before.student)
            entry = before
        else:
            entry = replace(entry, folder=before.folder)
        found.append(entry)
    kept += [entry.student for entry in absent]
    note = f"not handed in now, so the former result stands: {', '.join(kept)}."
    return [*found, *absent], [note] if kept else []
