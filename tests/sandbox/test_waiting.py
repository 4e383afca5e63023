"""Waiting for a core counts only as far as the use of others explains it."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.sandbox import pulse, usage, waiting
from grader.sandbox.isolation import View
from grader.sandbox.process import Limits, run, start
from grader.sandbox.waiting import Interval, Run

KIT = Path(__file__).resolve().parents[2]
needs_schedstat = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="the kernel does not tell"
)


def python(tmp_path, code, view=None, **limits):
    argv = [sys.executable, "-c", code]
    return run(argv, tmp_path, limits=Limits(**{"wall": 20.0, **limits}), view=view)


@pytest.fixture
def one_core():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


# --- the rule -----------------------------------------------------------------------------------


def test_one_thread_that_others_keep_from_its_core_is_held_up_as_long_as_it_waits():
    held = Interval(length=1, cores=2, own=0.4, waited=0.6, longest=0.6, busy=2).held_up()
    assert held == pytest.approx(0.6)


def test_a_hundred_threads_alone_on_a_machine_are_held_up_by_nobody():
    assert Interval(length=1, cores=2, own=2, waited=98, longest=1, busy=2).held_up() == 0


def test_a_hundred_threads_beside_a_few_others_lose_what_these_use_and_no_more():
    held = Interval(length=1, cores=2, own=1.9, waited=98, longest=1, busy=2).held_up()
    assert held == pytest.approx(0.05)


def test_threads_that_could_run_at_once_lose_their_time_together():
    held = Interval(length=1, cores=2, own=1.0, waited=1.0, longest=0.6, busy=2).held_up()
    assert held == pytest.approx(0.5)


def test_threads_that_crowd_on_one_of_two_cores_are_held_up_by_nobody():
    assert Interval(length=1, cores=2, own=1, waited=9, longest=1, busy=1).held_up() == 0


def test_an_interval_of_no_length_holds_nobody_up():
    assert Interval(length=0, cores=2, own=0, waited=1, longest=1, busy=1).held_up() == 0


def test_where_processes_come_and_go_nothing_counts(monkeypatch):
    clock = iter(range(10))
    monkeypatch.setattr(waiting.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(usage, "cpu", lambda pids: 0.0)
    busy = iter(range(0, 100, 10))
    monkeypatch.setattr(waiting, "_busy", lambda: float(next(busy)))
    waited = iter(range(0, 10**12, 5 * 10**8))
    monkeypatch.setattr(
        waiting, "_runs", lambda pid: iter([("thread", Run(0, next(waited), False))])
    )
    seen = waiting.Waiting()
    for pids, expected in (([1], 0), ([1], 0.5), ([2], 0.5), ([2], 1.0)):
        seen.look(pids)
        assert seen.seconds == pytest.approx(expected)


def test_a_wait_that_outlasts_many_looks_counts_once_and_whole(monkeypatch):
    second = 10**9
    runs = [
        Run(5, 0, False),
        Run(6, 0, True),  # it ran, and has waited since some time in this interval
        *[Run(6, 0, True)] * 3,  # three whole intervals
        Run(7, int(3.75 * second), True),  # the kernel tells the wait
        Run(7, int(3.75 * second), False),
    ]
    clock = iter(range(10))
    monkeypatch.setattr(waiting.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(usage, "cpu", lambda pids: 0.0)
    busy = iter(range(0, 100, 10))
    monkeypatch.setattr(waiting, "_busy", lambda: float(next(busy)))
    told = iter(runs)
    monkeypatch.setattr(waiting, "_runs", lambda pid: iter([("thread", next(told))]))
    seen = waiting.Waiting()
    for expected in (0, 0, 1, 2, 3, 3.75, 3.75):
        seen.look([1])
        assert seen.seconds == pytest.approx(expected)


# --- children -----------------------------------------------------------------------------------


CROWD = """
import ctypes, os, time
for _ in range(16):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # it ends with its parent
        os.setsid()  # a share of the processor of its own
        while True:
            pass
print(flush=True)
time.sleep(600)
"""


@pytest.fixture
def crowd(one_core):
    """Sixteen sessions that share a core with what starts here, and never pause."""
    parent = subprocess.Popen([sys.executable, "-c", CROWD], stdout=subprocess.PIPE)
    parent.stdout.readline()
    yield
    parent.kill()
    parent.communicate()


@needs_schedstat
def test_whom_others_leave_no_time_is_starved_and_who_sleeps_beside_them_is_late(tmp_path, crowd):
    work = "import time\nwhile time.process_time() < 60: pass"
    assert python(tmp_path, work, wall=1.0).reason == "starved"
    # Python's own start waits, too, but by far not six times as long.
    assert python(tmp_path, "import time; time.sleep(60)", wall=3.0).reason == "timeout"


def test_an_answer_that_came_in_time_counts_though_the_grader_comes_late(tmp_path):
    read, write = os.pipe()
    os.set_blocking(read, False)
    code = f"import os, time; os.write({write}, b'x'); time.sleep(60)"
    child = start([sys.executable, "-c", code], tmp_path, pass_fds=(write,))
    try:
        time.sleep(1.0)
        assert child.wait(child.now() - 0.5, read)
        os.read(read, 1)
        with pytest.raises(TimeoutError):
            child.wait(child.now() - 0.5, read)
        with pytest.raises(TimeoutError):
            child.wait(child.now() - 60.0, write, select.POLLOUT)
    finally:
        child.kill()
        os.close(read)
        os.close(write)


@needs_schedstat
def test_many_processes_of_its_own_buy_no_time(tmp_path, one_core):
    code = "import os\nfor _ in range(5): os.fork()\nwhile True: pass"
    done = python(tmp_path, code, wall=1.5)
    assert done.reason == "timeout"
    assert done.seconds < 8  # by spinning alone it would get 9


@needs_schedstat
def test_processes_that_come_and_go_buy_no_time(tmp_path, one_core):
    code = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets what they used
for _ in range(4):
    if os.fork() == 0:
        while True:
            if os.fork() == 0:
                until = time.monotonic() + 0.03
                while time.monotonic() < until:
                    pass
                os._exit(0)
            time.sleep(0.01)
while True:
    pass
"""
    done = python(tmp_path, code, wall=1.5)
    assert done.reason == "timeout"
    assert done.seconds < 8  # by spinning alone it would get 9


def test_the_processor_time_of_all_processes_together_is_limited(tmp_path):
    code = "import os\nos.fork()\nos.fork()\nwhile True: pass"
    done = python(tmp_path, code, cpu=1.0, wall=20)
    assert done.reason == "cpu"
    assert done.seconds < 10


def test_the_time_of_processes_that_ended_is_not_forgotten(tmp_path):
    code = """
import os, time
while True:
    if os.fork() == 0:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        os._exit(0)
    os.wait()
"""
    done = python(tmp_path, code, cpu=1.0, wall=20)
    assert done.reason == "cpu"


def test_children_share_a_budget_of_processor_time(tmp_path):
    budget = usage.Budget(1.0)
    view = View("none", budget=budget)
    work = "import time\nwhile time.process_time() < 0.7: pass\ntime.sleep(0.5)"
    assert python(tmp_path, work, view).reason == "exit"
    assert python(tmp_path, work, view).reason == "budget"


def test_the_load_of_the_machine_is_seen(one_core):
    before = waiting._busy()
    done = subprocess.run(
        [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True
    )
    assert done.returncode == 0
    assert waiting._busy() - before > 0.2


#: A grader that gives a child two seconds, and is busy with something else before it waits.
WAITS = """
import os, sys, time
from pathlib import Path
from grader.sandbox import process

process._LATE = 0.0
read, write = os.pipe()
os.set_blocking(read, False)
code = f"import os, time; time.sleep({sys.argv[1]}); os.write({write}, b'x'); time.sleep(60)"
child = process.start([sys.executable, "-c", code], Path(sys.argv[2]), pass_fds=(write,))
deadline = child.now() + 2.0
print("begun", flush=True)
time.sleep(float(sys.argv[3]))
try:
    print("answered" if child.wait(deadline, read) else "ended")
except TimeoutError:
    print("late")
finally:
    child.kill()
"""


@needs_schedstat
@pytest.mark.parametrize(("seconds", "outcome"), [(3.5, "answered"), (50, "late")])
def test_a_grader_that_was_stopped_fails_nobody_for_it(tmp_path, seconds, outcome):
    """By Ctrl-Z, say. The child goes on meanwhile."""
    words = [sys.executable, "-c", WAITS, str(seconds), str(tmp_path), "0.6"]
    grader = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=KIT)
    try:
        assert grader.stdout.readline() == "begun\n"
        time.sleep(0.3)
        grader.send_signal(signal.SIGSTOP)
        time.sleep(4.5)
        grader.send_signal(signal.SIGCONT)
        assert grader.communicate(timeout=60)[0] == outcome + "\n"
    finally:
        grader.kill()


def test_who_holds_up_the_measuring_of_its_use_gains_no_time(tmp_path, monkeypatch):
    """As by locks of its memory, for which /proc waits."""
    look = usage.processes
    monkeypatch.setattr(usage, "processes", lambda *given: time.sleep(1.5) or look(*given))
    began = time.monotonic()
    assert python(tmp_path, "import time; time.sleep(60)", wall=2.0).reason == "timeout"
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("waits", "stopped"), [((1.0, 8.5, 8.5, 9.0), 12 - 0.5 - pulse._BEAT), ((None,) * 4, 0.0)]
)  # fmt: skip
def test_time_without_a_core_is_no_time_in_which_the_grader_was_stopped(
    monkeypatch, waits, stopped
):
    """Two beats of 8 and 12 seconds; None is a kernel that does not tell."""
    clock, waited = iter([0.0, 8.0, 8.0, 20.0]), iter(waits)
    monkeypatch.setattr(pulse, "_waited", lambda: next(waited))
    monkeypatch.setattr(pulse.time, "monotonic", lambda: next(clock))
    found = object.__new__(pulse.Pulse)
    found.stopped, found._beats = 0.0, 0
    found._ended = type(
        "Twice", (), {"is_set": lambda _: found._beats == 2, "wait": lambda *_: 0}
    )()
    found._run()
    assert found.stopped == pytest.approx(stopped)
