"""What a run has to do: which stored reports hold, which are put aside, and who waits together."""

from dataclasses import replace
from pathlib import Path

import pytest

import sample_report
from grader.batch.batch import Batch, Running
from grader.batch.job import Site
from grader.course.rubric import load_rubric
from grader.submission import contained_reader
from packed import WORK, tar

RUBRIC = load_rubric("default")


@pytest.fixture
def batch(tmp_path):
    """Ada and Bob handed in the same work, Carl other work, Dan nothing that can be read."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for name in ("ada", "bob", "carl"):
        more = {"src/gpu_op.cu": b"// by another"} if name == "carl" else {}
        tar(inbox / f"{name}.tar.gz", WORK | more, "w:gz")
    (inbox / "dan.zip").write_bytes(b"no zip")
    return Batch(inbox, tmp_path / "results", RUBRIC)


def planned(batch, stored=None, **changes):
    """The plan once a report like that, on the work that each handed in, is stored."""
    with Running(batch) as running:
        if stored is not None:
            for entry in running.book.entries[:3]:
                sha256 = running._load(entry).sha256
                report = replace(stored, sha256=sha256, rubric=RUBRIC.digest)
                replace(report, **changes).write(running.book.report_path(entry))
        plan = running.plan()
        return plan, [[e.student for e in work.students] for work in plan.todo], running.book


def former(book):
    return [sorted(p.name for p in book.folder(e).glob("report*")) for e in book.entries[:3]]


PASSED = replace(sample_report.report([sample_report.result("relu")]), problem="", complete=True)
BROKEN = replace(PASSED, results=[sample_report.result("relu", "error")])


def test_equal_work_waits_together_and_what_cannot_be_read_does_not_wait(batch):
    plan, todo, book = planned(batch)
    assert todo == [["ada", "bob"], ["carl"]]
    assert (plan.students, plan.finished, plan.missing) == (3, 0, 0)
    assert (plan.unreadable, plan.failed) == (1, 0)
    assert book.report(book.entries[3]).problem


def test_a_final_report_on_the_same_work_holds_unless_all_is_graded_anew(batch):
    plan, todo, book = planned(batch, PASSED)
    assert (todo, plan.finished, plan.unreadable) == ([], 3, 1)
    plan, todo, book = planned(replace(batch, regrade=True))
    assert (todo, plan.finished) == ([["ada", "bob"], ["carl"]], 0)
    assert former(book) == [["report.json"]] * 3


@pytest.mark.parametrize(
    ("stored", "changes"),
    [(PASSED, {"complete": False}), (BROKEN, {}), (PASSED, {"rubric": "of another"})],
    ids=["broken off", "a fault of the grader", "another rubric"],
)
def test_a_report_that_is_not_final_stays_until_the_work_is_graded(batch, stored, changes):
    plan, todo, book = planned(batch, stored, **changes)
    assert (todo, plan.finished) == ([["ada", "bob"], ["carl"]], 0)
    assert former(book) == [["report.json"]] * 3


def test_a_report_on_other_work_is_put_aside(batch):
    plan, todo, book = planned(batch, PASSED, sha256="of other work")
    assert (todo, plan.finished) == ([["ada", "bob"], ["carl"]], 0)
    for names in former(book):
        assert len(names) == 1 and names[0].startswith("report-before-")


def test_a_final_report_holds_when_the_work_is_gone_and_without_one_it_is_a_fault(batch, tmp_path):
    with Running(batch) as running:
        ada, bob = running.book.entries[:2]
        report = replace(PASSED, sha256="kept", rubric=RUBRIC.digest)
        report.write(running.book.report_path(ada))
        for entry in (ada, bob):
            Path(entry.source).unlink()
        plan = running.plan()
    assert (plan.finished, plan.failed, plan.students) == (1, 1, 1)
    assert "is gone" in running.book.error_path(bob).read_text()


@pytest.fixture
def hangs(monkeypatch):
    """A function: work by that name is read for ever, by a reader with little time."""

    def hang(name):
        monkeypatch.setattr(
            contained_reader,
            "_CODE",
            f"""
import sys
sys.path.insert(0, sys.argv[1])
from grader.submission import contained_reader, reader
load = reader.load_submission
def hang(source, *more):
    while source.name == {name!r}: pass
    return load(source, *more)
reader.load_submission, contained_reader._SECONDS = hang, 0.3
contained_reader.serve()""",
        )

    return hang


def test_work_that_hangs_who_reads_it_is_refused_and_the_rest_is_planned(batch, hangs):
    hangs("bob.tar.gz")
    plan, todo, book = planned(batch)
    assert todo == [["ada"], ["carl"]]
    assert (plan.unreadable, plan.failed) == (2, 0)
    told = book.report(book.entries[1])
    assert "bob.tar.gz takes more than 60 s of processor time to read" in told.problem
    assert {result.status for result in told.results} == {"skipped"}


def test_work_that_hangs_when_it_is_sent_holds_up_nobody_else(batch, hangs):
    """It was read when the run was planned: an archive on a disk may change."""
    with Running(batch) as running:
        plan = running.plan()
        hangs("carl.tar.gz")
        running._reader._end()  # the next one that reads has the new code
        site = Site("emulated", "process", "", "", "")
        sent = [job.submission.source.name for job in running._works(plan.todo, site)]
    assert sent == ["ada.tar.gz"]
