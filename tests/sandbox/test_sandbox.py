"""What a contained process may do, how its end is told, and that nothing of it stays."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from grader.sandbox.process import (
    MIB,
    LimitError,
    Limits,
    Output,
    plain,
    run,
    signal_name,
    start,
)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and prctl")

# Leaves its session, as daemons do, tells its id through a file, and outlives its parent.
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("daemon", "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
while not (os.path.exists("daemon") and open("daemon").read()):
    time.sleep(0.01)
"""


def python(tmp_path, code, **limits):
    return run([sys.executable, "-c", code], tmp_path, limits=Limits(**{"wall": 20.0, **limits}))


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def await_number(path):
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.01)
    raise AssertionError(f"{path} was not written")


def test_output_of_both_streams_is_returned_with_the_exit_code(tmp_path):
    done = python(
        tmp_path, "import sys; print('a', flush=True); print('b', file=sys.stderr); sys.exit(3)"
    )
    assert (done.rc, done.signal, done.reason, done.output) == (3, None, "exit", "a\nb\n")
    assert 0 < done.seconds < 20


def test_a_signal_is_told_by_name(tmp_path):
    done = python(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (done.rc, done.signal, done.reason) == (None, "SIGSEGV", "signal")


def test_a_signal_without_a_name_is_told_by_number():
    assert signal_name(11) == "SIGSEGV"
    assert signal_name(9999) == "9999"


def test_an_endless_program_is_a_timeout(tmp_path):
    done = python(tmp_path, "while True: pass", wall=0.3)
    assert (done.rc, done.reason) == (None, "timeout")
    assert 0.3 <= done.seconds < 5


def test_an_endless_print_is_stopped_at_the_output_limit(tmp_path):
    done = python(tmp_path, "while True: print('x' * 1000)", output=100_000)
    assert done.reason == "output"
    assert len(done.output) < 70_000


def test_a_burst_over_the_limit_just_before_the_exit_is_an_output_too(tmp_path):
    done = python(tmp_path, "print('x' * 5000)", output=1000)
    assert done.reason == "output"


def test_a_program_over_its_processor_time_is_told_so(tmp_path):
    done = python(tmp_path, "while True: pass", cpu=1.0)
    assert done.reason == "cpu"


def test_a_file_over_the_limit_ends_a_program_that_leaves_the_signal_alone(tmp_path):
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
    done = python(tmp_path, code + "open('f', 'wb').write(bytes(9999))", file_size=1000)
    assert done.reason == "file_size"
    assert (tmp_path / "f").stat().st_size <= 1000


@linux_only
def test_signals_that_python_ignores_are_back_to_their_default_in_the_program(tmp_path):
    done = run(["grep", "SigIgn", "/proc/self/status"], tmp_path)
    ignored = int(done.output.split()[1], 16)
    assert not ignored >> (signal.SIGPIPE - 1) & 1
    assert not ignored >> (signal.SIGXFSZ - 1) & 1


def test_core_files_are_never_written(tmp_path):
    done = python(tmp_path, "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))")
    assert done.output == "(0, 0)\n"


@linux_only
def test_new_privileges_are_off(tmp_path):
    done = run(["grep", "NoNewPrivs", "/proc/self/status"], tmp_path)
    assert done.output.split() == ["NoNewPrivs:", "1"]


def test_the_environment_is_clean_plus_what_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    done = run([sys.executable, "-I", "-c", code], tmp_path, {"GIVEN": "yes"})
    seen = json.loads(done.output)
    assert "SECRET" not in seen
    assert seen["GIVEN"] == "yes"
    assert seen["LANG"] == "C.UTF-8"
    assert seen["HOME"] == seen["TMPDIR"] != os.environ.get("HOME")


def test_the_private_folder_goes_with_the_child(tmp_path):
    done = python(
        tmp_path, "import os; open(os.path.expanduser('~/f'), 'w'); print(os.environ['HOME'])"
    )
    assert not Path(done.output.strip()).exists()


def test_standard_input_is_empty(tmp_path):
    assert python(tmp_path, "import sys; print(repr(sys.stdin.read()))").output == "''\n"


def test_a_program_that_does_not_exist_is_named(tmp_path):
    done = run(["no-such-compiler"], tmp_path)
    assert (done.rc, done.reason) == (1, "exit")
    assert done.output == "cannot run no-such-compiler: No such file or directory\n"


def test_a_missing_working_folder_is_an_os_error(tmp_path):
    with pytest.raises(OSError):
        start(["true"], tmp_path / "none")


def test_a_background_process_dies_with_its_parent(tmp_path):
    code = "import subprocess as s; open('pid', 'w').write(str(s.Popen(['sleep', '60']).pid))"
    done = python(tmp_path, code)
    assert done.reason == "exit"
    assert not alive(int((tmp_path / "pid").read_text()))


@linux_only
def test_a_daemon_that_left_its_session_is_found_and_killed(tmp_path):
    done = python(tmp_path, DAEMON)
    assert done.rc == 0
    assert not alive(int((tmp_path / "daemon").read_text()))


@linux_only
def test_a_daemon_of_a_killed_process_is_found_and_killed(tmp_path):
    child = start([sys.executable, "-c", DAEMON + "time.sleep(60)"], tmp_path)
    try:
        daemon = await_number(tmp_path / "daemon")
    finally:
        assert child.kill() == -signal.SIGKILL
    assert not alive(daemon)


@linux_only
def test_what_orphans_hold_counts_for_the_child(tmp_path):
    code = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.3)
        held = b"x" * (300 << 20)
        time.sleep(60)
    os._exit(0)
time.sleep(60)
"""
    assert python(tmp_path, code, memory=200 * MIB).reason == "memory"


@linux_only
def test_killing_one_child_spares_another(tmp_path):
    one, two = (start(["sleep", "60"], tmp_path) for _ in range(2))
    try:
        one.kill()
        assert alive(two.pid)
        assert not two.exited()
    finally:
        two.kill()
    assert not alive(two.pid)


def test_kill_may_be_repeated_and_keeps_the_exit_code(tmp_path):
    child = start([sys.executable, "-c", "raise SystemExit(5)"], tmp_path)
    try:
        assert not child.wait(child.deadline)
        assert child.exited()
    finally:
        assert child.kill() == 5
    assert child.kill() == 5
    assert child.exited()


def test_output_is_collected_while_another_pipe_is_awaited(tmp_path):
    read, write = os.pipe()
    child = start(["sh", "-c", "head -c 1000000 /dev/zero; sleep 60"], tmp_path)
    try:
        with pytest.raises(TimeoutError):
            child.wait(time.monotonic() + 1.0, read)
        assert child.output.total == 1_000_000
    finally:
        child.kill()
        os.close(read)
        os.close(write)


def test_an_awaited_child_that_floods_raises(tmp_path):
    child = start(["yes"], tmp_path, limits=Limits(output=100_000))
    try:
        with pytest.raises(LimitError):
            child.wait(child.deadline)
    finally:
        child.kill()


def open_files():
    """What is open, but for files of /proc, which threads of other tests' children read now and
    then."""
    found = []
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink("/dev/fd/" + name))
    return sorted(each for each in found if not each.startswith("/proc/"))


def test_nothing_stays_open_after_a_run(tmp_path):
    run(["true"], tmp_path)
    before, threads = open_files(), threading.active_count()
    for _ in range(5):
        run(["true"], tmp_path)
        assert threading.active_count() <= threads
    assert open_files() == before


def test_long_output_keeps_both_ends_and_counts_the_rest():
    output = Output()
    for chunk in (b"first", b"x" * 100_000, b"last"):
        output.add(chunk)
    text = output.text()
    assert text.startswith("first")
    assert text.endswith("last")
    assert f"[... {100_009 - 65_536} bytes left out ...]" in text


def test_short_output_is_whole():
    output = Output()
    output.add(b"a" * 40_000)
    assert output.text() == "a" * 40_000


def test_plain_text_has_no_escapes_or_surrogates():
    assert plain("a\x1b[31m\ud800b\n\tc\r") == "a[31m?b\n\tc"


@pytest.fixture
def one_busy_core():
    """A core with four processes on it that never pause; whatever starts here shares it."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    yield
    for process in busy:
        process.kill()
        process.wait()
    os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not tell")
def test_time_for_which_others_had_the_core_does_not_count(tmp_path, one_busy_core):
    work = "import time\nwhile time.process_time() < 1.0: pass\nprint('done')"
    done = python(tmp_path, work, wall=2.5)
    assert (done.reason, done.output) == ("exit", "done\n")


def test_a_child_that_sleeps_on_a_busy_core_is_out_of_time(tmp_path, one_busy_core):
    done = python(tmp_path, "import time; time.sleep(60)", wall=1.0)
    assert done.reason == "timeout"
    assert done.seconds < 30


def test_a_child_that_makes_itself_wait_is_out_of_time_in_the_end(tmp_path):
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        code = "import os\nfor _ in range(5): os.fork()\nwhile True: pass"
        done = python(tmp_path, code, wall=0.5)
    finally:
        os.sched_setaffinity(0, allowed)
    assert done.reason == "timeout"
    assert done.seconds < 30
