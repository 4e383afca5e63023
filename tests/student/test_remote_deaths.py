"""A student's process that dies, hangs or floods is told with how and where."""

import os
import signal
import sys
import time

import numpy as np
import pytest

from grader.sandbox.isolation import View
from grader.sandbox.limits import Starved
from grader.sandbox.usage import Budget
from grader.sandbox.watch import Watch
from grader.student import pipe
from grader.student.remote import (
    ChildDied,
    ChildError,
    ChildExcess,
    ChildTimeout,
    Remote,
    StartError,
    StudentError,
)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="counts processor time")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os._exit(0)", "ended with exit code 0 before the check was over"),
        ("import os; os._exit(3)", "ended with exit code 3 before the check was over"),
        ("import ctypes; ctypes.string_at(0)", "was killed by signal 11 (SIGSEGV)"),
        ("import os; os.abort()", "was killed by signal 6 (SIGABRT)"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9 (SIGKILL)"),
    ],
)
def test_a_child_that_ends_is_told_with_how_and_where(failure, code, words):
    error = failure(ChildDied, f"def f():\n    {code}\n", "f")
    assert str(error) == f"the process {words}; it was running: work.f()"


def test_a_library_that_exits_with_success_at_its_import_is_a_death(failure):
    error = failure(ChildDied, "import os; os._exit(0)")
    assert (error.rc, error.doing) == (0, "import work")


def test_a_death_in_the_middle_of_a_batch_names_the_instruction(student):
    code = "import os\ndef f(n):\n    if n == 3: os._exit(1)\n"
    with pytest.raises(ChildDied) as caught, student(code) as remote:
        work = remote.import_("work")
        for n in range(10):
            work.f(n)
    assert caught.value.doing == "work.f(3)"


def test_a_child_that_ends_between_two_calls_has_no_last_word(student):
    code = "import os, signal\ndef f(): signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))"
    with pytest.raises(ChildDied, match="between two calls"), student(code) as remote:
        remote.import_("work").f()
        remote.flush()
        child = remote._pipe.child
        os.kill(child.pid, signal.SIGUSR1)
        assert not child.wait(time.monotonic() + 10)


def test_a_dead_child_stays_dead_for_whoever_asks_again(student):
    with pytest.raises(ChildDied) as second, student("import os; os._exit(0)") as remote:
        remote.import_("work")
        with pytest.raises(ChildDied) as first:
            remote.flush()
        remote.put(1)
    assert second.value is first.value


def test_an_endless_loop_is_a_timeout_of_the_whole_check(failure):
    error = failure(
        ChildTimeout, "def f():\n    while True: pass", "f", wall=2.0
    )  # its start counts
    assert error.seconds == 2.0
    assert str(error) == "not finished within 2 s: work.f()"


def test_a_deadline_holds_for_what_is_queued_inside_it(student):
    code = "import time\ndef f(): time.sleep(60)\ndef g(): pass"
    with pytest.raises(ChildTimeout) as caught, student(code) as remote:
        work = remote.import_("work")
        with remote.deadline(10):
            work.g()
        with remote.deadline(0.5), remote.doing("a nap"):
            work.f()
    assert (caught.value.seconds, caught.value.doing) == (0.5, "a nap")


def test_whose_time_others_took_is_no_students_timeout(student, monkeypatch):
    monkeypatch.setattr(Watch, "time_is_up", lambda watch: Starved(99))
    with pytest.raises(Starved), student("") as remote, remote.deadline(0.2):
        remote.import_("time").sleep(60)
    with pytest.raises(ProcessLookupError):
        os.kill(remote._pipe.child.pid, 0)


def test_what_was_queued_before_a_deadline_has_its_own_time(student):
    with student("import time\ndef nap(): time.sleep(2)") as remote:
        remote.import_("work").nap()
        with remote.deadline(1.5):
            assert remote.fetch(1) == 1


def test_a_deadline_is_over_after_its_block(student):
    with student() as remote:
        with remote.deadline(0.05):
            pass
        time.sleep(0.1)
        assert remote.fetch(1) == 1


def test_a_child_that_does_not_read_a_large_request_is_a_timeout(student):
    with (
        pytest.raises(ChildTimeout) as caught,
        student() as remote,
        remote.deadline(0.3),
    ):
        pid = remote._pipe.child.pid
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        remote.fetch(np.zeros(1_000_000))
    assert str(caught.value) == "not finished within 0.3 s: nothing (between two calls)"


@linux_only
def test_too_much_processor_time_is_a_timeout(failure):
    code = "def f():\n    while True: pass"
    error = failure(ChildTimeout, code, "f", cpu=1)
    assert str(error) == "not finished within 1 s of processor time: work.f()"


def test_a_destructor_that_crashes_is_told_as_the_freeing_of_its_object(student):
    code = "import ctypes\nclass Bad:\n    def __del__(self): ctypes.string_at(0)"
    with pytest.raises(ChildDied) as caught, student(code) as remote:
        bad = remote.import_("work").Bad()
        remote.flush()
        del bad
        remote.flush()
    assert caught.value.doing == "freeing work.Bad(...)"


def test_a_child_that_closes_its_pipes_and_lingers_is_a_death(failure, monkeypatch):
    monkeypatch.setattr(pipe, "_GRACE", 0.1)
    code = "import os, time\nos.closerange(3, 64)\ntime.sleep(60)"
    error = failure(ChildDied, code)
    assert error.rc is None
    assert "closed its reply pipe before the check was over" in str(error)


def test_a_child_killed_while_its_copy_holds_the_pipe_is_a_death_at_once(failure):
    code = "import os, time\nif os.fork() == 0: time.sleep(60)\nos._exit(7)"
    assert failure(ChildDied, code, wall=10.0).rc == 7


def test_endless_printing_is_a_flood(failure):
    code = "def f():\n    while True: print('x' * 1000)"
    error = failure(ChildExcess, code, "f", output=100_000)
    assert error.limit == 100_000
    assert str(error) == "printed more than 100,000 bytes while running: work.f()"


def test_a_worker_that_cannot_start_is_no_fault_of_the_student(tmp_path):
    with (
        pytest.raises(StartError, match="cannot run no-such-python"),
        Remote("no-such-python", [], tmp_path) as remote,
    ):
        remote.fetch(1)
    assert not issubclass(StartError, ChildError)


@linux_only
def test_a_worker_that_starts_when_the_budget_is_spent_is_no_fault_of_the_machine(
    student, monkeypatch
):
    monkeypatch.setattr("grader.sandbox.watch.LOOK", 0.0)
    budget = Budget(3.0)
    budget.spend(4.0)
    view = View("none", budget=budget)
    with pytest.raises(ChildExcess) as caught, student(view=view) as remote:
        remote.fetch(1)
    assert (caught.value.kind, caught.value.limit) == ("budget", 3)
    with pytest.raises(ChildExcess), student(view=view) as remote, remote.deadline(9):
        pass


# What a dying child has printed


def test_a_fault_is_told_by_its_first_line_and_the_students_frames(failure):
    code = "import ctypes\ndef g(): ctypes.string_at(0)\ndef f():\n    print('so far')\n    g()"
    assert failure(ChildDied, code, "f").output == (
        "so far\n"
        "Fatal Python error: Segmentation fault\n"
        '  File "work.py", line 2 in g\n'
        '  File "work.py", line 5 in f\n'
    )


def test_a_fault_beside_a_thread_of_the_students_is_told_by_thread(failure):
    code = """
import os, threading, time
awake = threading.Event()
def nap(): awake.set(); time.sleep(60)
def f():
    threading.Thread(target=nap, daemon=True).start()
    awake.wait()
    os.abort()
"""
    assert failure(ChildDied, code, "f").output == (
        "Fatal Python error: Aborted\n"
        "Thread (most recent call first):\n"
        '  File "work.py", line 4 in nap\n'
        "Current thread (most recent call first):\n"
        '  File "work.py", line 8 in f\n'
    )


def test_a_faults_frames_are_found_in_a_tree_of_any_name(tmp_path):
    tree, link = tmp_path / "Bäume 木", tmp_path / "link"
    tree.mkdir()
    link.symlink_to(tree)
    (tree / "work.py").write_text("import os\ndef f(): os.abort()")
    for path, root in ((tree, tree), (tree, link), (link, link)):
        with (
            pytest.raises(ChildDied) as caught,
            Remote(sys.executable, [str(path)], root) as remote,
        ):
            remote.import_("work").f()
        frame = '  File "work.py", line 2 in f\n'
        assert caught.value.output == "Fatal Python error: Aborted\n" + frame


def test_the_workers_own_last_words_lack_its_frames(failure):
    error = failure(ChildDied, "import os\nos.closerange(3, 64)")
    words = "Traceback (most recent call last):\nOSError: [Errno 9] Bad file descriptor\n"
    assert (error.rc, error.output) == (1, words)


def test_a_printed_stack_lacks_the_workers_frames(failure, tmp_path):
    code = "import traceback\ndef f():\n    traceback.print_stack()\n    raise ValueError"
    stack = f'  File "{tmp_path}/work.py", line 3, in f\n    traceback.print_stack()\n'
    assert failure(StudentError, code, "f").output == stack


def test_warnings_about_the_workers_own_lines_are_left_out(student):
    with pytest.raises(StudentError) as caught, student("print('one')") as remote:
        remote.import_("work")
        remote.put(np.ones(2)) / 0
        remote.import_("absent")
    assert caught.value.output == "one\n"
