"""Classes for the tests of what is made of results: of given reports, and a hostile one."""

import sample_report
from grader.classroom.page import class_page
from grader.classroom.store import Classbook, Entry
from sample_report import HOSTILE, result

#: Names of folders that break links which are put together carelessly.
FOLDERS = (
    "Иван-明-é", "it's \"her\" <b>", "100%25 & more", "a b#c?d=e", "javascript:alert(1)",
    "..data", "x;y,z+=w",
)  # fmt: skip


def text_of(results):
    return class_page(results, results.book.path / "class.html")


def book_of(folder, reports, **more):
    """Results of a class from (entry, report or None)."""
    book = Classbook(
        folder, "A <class>", "default", "0" * 16, 4.0, "emulated", "auto", "inbox", "2026-01-02",
        [entry for entry, _ in reports], **more,
    )  # fmt: skip
    book.write()
    for entry, report in reports:
        if report is not None:
            report.write(book.report_path(entry))
    return book


def hostile_book(folder):
    """A class in which every text that a student may choose is hostile."""
    rows = [
        result("relu", "fail", message=HOSTILE, findings=[{"title": HOSTILE}]),
        result("softmax", "fail", message=f"=cmd()|{HOSTILE}"),
        result("array_set", seconds=0.5),
        result(HOSTILE, "fail", message="wrong"),
    ]
    reports = [
        (
            Entry(f"{HOSTILE}{number}", name, HOSTILE + str(number), HOSTILE, HOSTILE, HOSTILE,
                  HOSTILE, HOSTILE, True, 1, [HOSTILE]),
            sample_report.report(rows, submission=HOSTILE),
        )
        for number, name in enumerate(FOLDERS)
    ]  # fmt: skip
    unreadable = sample_report.report([], problem=HOSTILE)
    broken = sample_report.report([result("relu", "error", message=HOSTILE)])
    reports += [
        (Entry("-1+1", "unreadable", "=1+1", source="x"), unreadable),
        (Entry("@SUM(A1)", "broken", "\t=1", source="x"), broken),
    ]
    return book_of(folder, reports, notes=[HOSTILE])
