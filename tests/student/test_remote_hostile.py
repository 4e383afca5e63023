"""Nothing that a student's process does reaches the grader, or stays after the check."""

import json
import os
import signal
import sys
import time

import numpy as np
import pytest

from grader.student.remote import ChildDied, ChildExcess, ChildTimeout, ProtocolError, StudentError

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and prctl")

# Writes to every pipe that the process has beyond the standard ones.
SHOUT = """
import json, os, stat, struct
def shout(data):
    for fd in range(3, 64):
        try:
            stat.S_ISFIFO(os.fstat(fd).st_mode) and os.write(fd, data)
        except OSError:
            pass
def forge(arrays, body, size=None, **header):
    text = json.dumps({"id": "x", "values": [], "error": None, "arrays": arrays, **header}).encode()
    shout(struct.pack("<IQ", len(text) if size is None else size, body) + text)
"""


def test_garbage_in_the_reply_pipe_is_a_malformed_reply(failure):
    error = failure(ProtocolError, SHOUT + "shout(b'garbage' * 100)")
    assert str(error).startswith("the process sent a malformed reply: ")


@pytest.mark.parametrize(
    ("forgery", "words"),
    [
        ("forge([], 0)", "answers no question"),
        ("forge([], 0, size=1 << 31)", "more than allowed"),
        ("forge([['float64', [1 << 40]]], 8 << 40)", "more than allowed"),
        ("shout(struct.pack('<IQ', 9, 0) + b'[1, 2, 3]')", "no object"),
        ("shout(struct.pack('<IQ', 9, 0) + b'not json!')", "JSONDecodeError"),
        ("shout(struct.pack('<IQ', 9, 0) + bytes([200] * 9))", "UnicodeDecodeError"),
        ("shout(struct.pack('<IQ', 99999, 0) + b'[' * 99999)", "RecursionError"),
        ("shout(struct.pack('<IQ', 9999, 0) + b'1' * 9999)", "too long"),
    ],
)
def test_a_forged_frame_is_a_malformed_reply(failure, forgery, words):
    assert words in str(failure(ProtocolError, SHOUT + forgery))


def test_half_a_reply_and_then_silence_is_a_timeout(student):
    code = SHOUT + "import time\nshout(b'half')\ntime.sleep(60)"
    with (
        pytest.raises(ChildTimeout, match="import work"),
        student(code) as remote,
        remote.deadline(0.5),
    ):
        remote.import_("work")


def test_a_frame_left_in_the_pipe_does_not_answer_the_next_question(student):
    code = SHOUT + "import signal\ndef f(): signal.signal(signal.SIGUSR1, lambda *_: forge([], 0))"
    with pytest.raises(ProtocolError, match="answers no question"), student(code) as remote:
        remote.fetch(remote.import_("work").f())
        child = remote._pipe.child
        os.kill(child.pid, signal.SIGUSR1)
        assert child.wait(time.monotonic() + 10, remote._pipe._replies)
        remote.fetch(1)


def test_an_answer_larger_than_expected_is_refused_before_it_is_read(student):
    code = "import numpy\nx = numpy.zeros(1000)"
    with (
        pytest.raises(ChildExcess, match="answered with more than 7,999 bytes"),
        student(code) as remote,
    ):
        remote.fetch(remote.import_("work").x, most=7999)


@pytest.mark.parametrize("asked", ["len", "items"])
def test_a_length_that_is_none_and_too_many_items_are_malformed(student, asked):
    code = "class Long:\n    def __len__(self): return 1 << 62"
    with pytest.raises(ProtocolError), student(code) as remote:
        if asked == "len":
            remote.len(remote.import_("work").Long())
        iter(remote.put([0] * 100_001))


def test_fewer_or_more_values_than_asked_for_are_a_malformed_reply(student):
    with pytest.raises(ProtocolError, match="2 values were asked for"), student() as remote:
        remote.fetch = lambda value, most: [1, 2, 3]
        remote.fetch_all([1, 2])


def test_a_reply_larger_than_allowed_is_refused(student):
    code = "import numpy\nx = numpy.zeros(1000)"
    with (
        pytest.raises(ProtocolError, match="more than allowed"),
        student(code, max_reply=7999) as remote,
    ):
        remote.fetch(remote.import_("work").x, most=1 << 30)


@pytest.mark.parametrize(
    "sabotage",
    [
        "import builtins\nfor n in ('len', 'isinstance', 'type'): setattr(builtins, n, None)",
        "import json\njson.dumps = json.loads = json.JSONEncoder.encode = None",
        "import sys\nfor name in list(sys.modules): sys.modules[name] = None",
        "import sys, numpy\nnumpy.asarray = numpy.ndarray = numpy.empty = None\nsys.stdout = None",
        "import __main__ as main\nfor n in list(vars(main)): setattr(main, n, None)",
        "import os\nos.readv = os.write = os.pwrite = os.getpid = None",
        "import sys\nsys.setrecursionlimit(30)",
    ],
)
def test_sabotage_of_the_interpreter_is_answered_truly_or_fails_in_kind(student, sabotage):
    try:
        with student(sabotage) as remote:
            remote.import_("work")
            assert remote.fetch(remote.put(np.arange(3))).tolist() == [0, 1, 2]
    except (ChildDied, ProtocolError, StudentError):
        pass


def test_replaced_numpy_os_and_builtin_functions_do_not_reach_the_worker(student):
    code = "import numpy, os, builtins\n"
    code += "def f(): numpy.asarray = os.write = builtins.len = builtins.isinstance = None"
    with student(code) as remote:
        remote.import_("work").f()
        assert remote.fetch(remote.put(np.arange(3))).tolist() == [0, 1, 2]


def test_a_forked_copy_never_answers(student):
    code = "import os\ndef f():\n    copy = os.fork()\n    if copy == 0: return 'copy'\n"
    code += "    os.waitpid(copy, 0)\n    return 'parent'"
    with student(code) as remote:
        assert remote.fetch(remote.import_("work").f()) == "parent"
        assert remote.fetch(2) == 2


def test_programs_started_by_the_student_do_not_hold_the_pipes(student):
    code = """
import subprocess, sys
look = "import os; print([n for n in range(3, 64) if os.path.exists(f'/dev/fd/{n}')])"
def f():
    command = [sys.executable, "-c", look]
    return subprocess.run(command, close_fds=False, capture_output=True, text=True).stdout
"""
    with student(code) as remote:
        held = json.loads(remote.fetch(remote.import_("work").f()))
    assert len(held) <= 1  # the folder being looked at


@linux_only
def test_a_daemon_is_dead_after_the_check(student):
    code = """
import os, time
def f():
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            time.sleep(60)
        os._exit(0)
    return int(os.read(read, 20))
"""
    with student(code) as remote:
        daemon = remote.fetch(remote.import_("work").f())
        os.kill(daemon, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(daemon, 0)


def test_the_check_can_fail_without_leaving_a_process(student):
    with pytest.raises(ZeroDivisionError), student() as remote:
        pid = remote.fetch(remote.import_("os").getpid())
        raise ZeroDivisionError
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_nothing_stays_open_after_a_check(student):
    def once():
        with student() as remote:
            remote.fetch(1)
        return len(os.listdir("/dev/fd"))

    assert once() == once()


def test_the_tree_is_not_littered_with_compiled_files(student, tmp_path):
    with student() as remote:
        remote.import_("work")
    assert [path.name for path in tmp_path.iterdir()] == ["work.py"]
