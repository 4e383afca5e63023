"""A check that runs once more runs alone: no check of another submission begins meanwhile."""

import fcntl
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import catalogue
from grader.checks.registry import CHECKS
from grader.course.rubric import load_rubric
from grader.grading import runner
from grader.grading.runner import Options, grade
from grader.sandbox import alone, gpu_memory
from grader.sandbox.alone import Alone
from grader.sandbox.gpu_memory import Meter
from grader.student.remote import ChildDied

#: Another process of a batch: says when it has begun a check, and ends it at the end of its input.
OTHER = """
import sys
from grader.sandbox.alone import Alone
with Alone().beside():
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    """Not those of other tests, nor of a grader that runs beside."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(alone.tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def other():
    """Starts the check of another submission in a process of its own."""
    words = [sys.executable, "-c", OTHER]
    started = subprocess.Popen(
        words, cwd=catalogue.KIT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield started
    started.stdin.close()
    started.wait()
    started.stdout.close()


class Clock:
    """Stands for the module `time`: who sleeps takes no time."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(alone, "time", clock)
    return clock


def door_is_open():
    with open(Path(alone.tempfile.tempdir, f"dlsys-door-{os.getuid()}"), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def waits(thread, seconds=0.3):
    thread.join(seconds)
    return thread.is_alive()


def test_checks_run_beside_each_other(other):
    with Alone().beside(), Alone().beside():
        assert other.stdout.readline() == "begun\n"


def test_a_rerun_waits_for_the_check_of_another_process(other):
    def again():
        with Alone().exclusively():
            pass

    other.stdout.readline()
    rerun = threading.Thread(target=again)
    rerun.start()
    assert waits(rerun)
    other.stdin.close()
    other.wait()
    assert not waits(rerun, 30)


def test_no_check_begins_while_a_rerun_waits_or_runs(other):
    begun = []

    def check():
        with Alone().beside():
            begun.append(True)

    other.stdout.readline()
    mine = Alone()
    threads = []
    ended = threading.Event()

    def again():
        with mine.exclusively():
            ended.wait(60)

    for work in (again, check):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        assert waits(threads[-1])  # for the other process, or for the rerun
    other.stdin.close()
    other.wait()
    assert waits(threads[1]) and not begun
    ended.set()
    assert not waits(threads[1], 30) and begun
    threads[0].join()


def test_a_grader_keeps_to_it():
    """The check of another submission has no result before the rerun is over."""
    found = []
    options = Options(load_rubric("default"), "emulated", only=("topological_order",))
    work = threading.Thread(target=grade, args=(catalogue.KIT / "solution", options, found.append))
    with Alone().exclusively():
        work.start()
        assert waits(work, 4) and not found
    work.join(60)
    assert [result.check for result in found] == ["topological_order"]


def test_others_wait_for_a_rerun_and_not_until_it_is_judged(monkeypatch):
    """A second opinion, an explanation and an audit may take minutes, as may the wait for a GPU's
    memory that another program fills."""

    class Full(Meter):
        def was_full(self, error):
            return error is not None

    seen = []

    def check(context):
        seen.append(("check", door_is_open()))
        if len(seen) == 1:
            context.view = replace(context.view, gpu=Full())
            raise ChildDied(-9, "a check")

    def judge(self, *rest):
        seen.append(("judgement", door_is_open()))
        return usual(self, *rest)

    def wait():
        seen.append(("wait", door_is_open()))

    usual = runner._Grading._judge
    monkeypatch.setattr(gpu_memory, "wait_for_room", wait)
    monkeypatch.setattr(runner._Grading, "_judge", judge)
    monkeypatch.setattr(runner, "checks_of", lambda _: {**CHECKS, "topological_order": check})
    grade(
        catalogue.KIT / "solution",
        Options(load_rubric("default"), "emulated", only=("topological_order",)),
    )
    assert seen == [("check", True), ("wait", True), ("check", False), ("judgement", True)]


def test_nobody_waits_for_ever(clock):
    with Alone().beside(), Alone().exclusively(), Alone().beside(), Alone().exclusively():
        assert clock.now < 600


def test_all_checks_of_a_submission_together_wait_a_minute(clock):
    """The grader that runs once more may be stopped, and there may be a hundred checks."""
    mine = Alone()
    with Alone().exclusively():
        for _ in range(100):
            with mine.beside():
                assert 59 < clock.now < 61
    with mine.beside():
        started = clock.now
        with Alone().exclusively():
            assert clock.now > started  # those without patience are waited for all the same


def test_a_rerun_that_waits_leaves_others_patience_for_its_time_alone():
    assert alone._FOR_CHECKS <= alone._PATIENCE / 2


def test_who_is_killed_in_every_check_does_not_hold_up_a_class(clock):
    mine = Alone()
    for _ in range(2):
        with mine.exclusively():
            assert not door_is_open()
    with Alone().beside(), mine.exclusively():
        assert door_is_open() and not clock.now


def test_who_is_killed_in_every_check_does_not_run_beside_the_rerun_of_another(clock):
    mine = Alone()
    for _ in range(2):
        with mine.exclusively():
            pass
    with mine.exclusively(), Alone().exclusively():
        assert clock.now > 20  # it is waited for
    started = clock.now
    with Alone().exclusively(), mine.exclusively():
        assert clock.now > started + 50  # it waits


def test_where_no_file_can_be_locked_checks_run_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(alone.tempfile, "tempdir", str(tmp_path / "is not there"))
    with Alone().exclusively(), Alone().beside():
        pass
    Path(tmp_path, f"dlsys-door-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(alone.tempfile, "tempdir", str(tmp_path))
    with Alone().beside():
        assert not (tmp_path / "elsewhere").exists()
