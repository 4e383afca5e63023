"""A check that runs once more runs alone: no check of another submission begins meanwhile."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import catalogue
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.sandbox import alone
from grader.sandbox.alone import Alone

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
        with mine.exclusively(), mine.beside(is_rerun=True):
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


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(alone, "_PATIENCE", 0.1)
    monkeypatch.setattr(alone, "_PATIENCE_OF_OTHERS", 0.1)
    started = time.monotonic()
    with Alone().beside(), Alone().exclusively(), Alone().beside(), Alone().exclusively():
        assert time.monotonic() - started < 30


def test_who_is_killed_in_every_check_does_not_hold_up_a_class():
    mine = Alone()
    for _ in range(2):
        with mine.exclusively():
            pass
    with Alone().beside(), mine.exclusively():
        pass  # the third time nobody is waited for, else this would take a minute


def test_where_no_file_can_be_locked_checks_run_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(alone.tempfile, "tempdir", str(tmp_path / "is not there"))
    with Alone().exclusively(), Alone().beside():
        pass
    Path(tmp_path, f"dlsys-door-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(alone.tempfile, "tempdir", str(tmp_path))
    with Alone().beside():
        assert not (tmp_path / "elsewhere").exists()
