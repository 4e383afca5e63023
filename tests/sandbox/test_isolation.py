"""At every level that works here: what a contained process sees, reaches and may use."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from grader.sandbox import isolation, scratch, usage
from grader.sandbox.isolation import IsolationError, View
from grader.sandbox.process import MIB, Limits, run
from grader.student import pipe
from grader.student.pipe import ChildDied, ChildExcess
from grader.student.remote import Remote

KIT = Path(__file__).resolve().parents[2]
LEVELS = [level for level in isolation.LEVELS if not isolation.why_not(level)]
STRONG = [level for level in LEVELS if level != "process"]

if not STRONG:
    pytest.skip(isolation.why_not("namespaces"), allow_module_level=True)


@pytest.fixture(params=STRONG)
def level(request):
    return request.param


@pytest.fixture
def tree():
    """A submission's tree: a source, and the folder that a build may write to. It lies where
    another user may go, unlike the folders of pytest."""
    with scratch.scratch_folder() as folder:
        (folder / "build").mkdir()
        (folder / "source.txt").write_text("mine")
        yield folder


def python(tree, level, code, view=None, **limits):
    view = view or View(level, writable=(tree / "build",))
    argv = [sys.executable, "-I", "-u", "-c", code]
    return run(argv, tree, limits=Limits(**{"wall": 30.0, **limits}), view=view)


def test_relative_folders_are_those_of_who_asks(tree, level, monkeypatch):
    monkeypatch.chdir(tree)
    code = "open('build/out', 'w').write(open('more/x').read())"
    (tree / "more").mkdir()
    (tree / "more" / "x").write_text("seen")
    view = View(level, readable=(Path("more"),), writable=(Path("build"),))
    done = python(tree, level, code, view)
    assert (done.rc, done.output) == (0, "")
    assert (tree / "build" / "out").read_text() == "seen"


def test_trees_and_scratch_may_lie_in_memory_beside_other_devices(level, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    with scratch.scratch_folder() as folder:
        (folder / "build").mkdir()
        code = """
import os
open("build/made", "w").write("x")
open(os.environ["HOME"] + "/scratch", "w").write("x")
print(os.environ["HOME"].startswith("/dev/shm/"), os.access("/dev/shm", os.W_OK))
"""
        done = python(folder, level, code)
        assert (done.rc, done.output) == (0, "True False\n")
        assert (folder / "build" / "made").read_text() == "x"


def test_the_tree_is_read_only_and_its_build_folder_is_not(tree, level):
    code = """
import os
print(open("source.txt").read())
open("build/made", "w").write("x")
open(os.environ["HOME"] + "/scratch", "w").write("x")
for path in ("source.txt", "new", "/usr/new", "/tmp/new", "/dev/shm/new"):
    try:
        open(path, "w")
    except OSError:
        print("no", path)
"""
    done = python(tree, level, code)
    expected = ["mine", *(f"no {p}" for p in ("source.txt", "new", "/usr/new", "/tmp/new"))]
    assert done.output.splitlines() == [*expected, "no /dev/shm/new"]
    assert (tree / "build" / "made").read_text() == "x"


def test_grader_solution_home_and_other_submissions_are_not_there(tree, level, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "work.py").write_text("secret")
    paths = [KIT / "solution/src", KIT / "grader/grading/runner.py", KIT / "tests",
             other / "work.py", Path.home() / ".cache", Path.home() / ".bashrc"]  # fmt: skip
    code = f"import os; print([p for p in {list(map(str, paths))} if os.path.exists(p)])"
    done = python(tree, level, code)
    assert done.output == "[]\n"


def test_a_folder_that_is_named_as_hidden_is_not_seen(tree, level):
    """One of the system's, since all that a test makes lies where nobody sees it anyway."""
    found = sorted(path for path in Path("/usr/share").iterdir() if path.is_dir())
    folder = next(path for path in found if any(path.iterdir()))
    code = f"import os; print(sorted(os.listdir({str(folder)!r})))"
    assert python(tree, level, code).output == f"{sorted(os.listdir(folder))}\n"
    hidden = python(tree, level, code, View(level, hidden=(folder,)))
    assert hidden.output == "[]\n"


def test_no_network_not_even_that_of_the_machine_itself(tree, level):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        done = python(tree, level, code)
    assert done.rc == 1
    assert "Error" in done.output


def test_other_processes_are_not_seen_and_cannot_be_signalled(tree, level):
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        code = f"""
import os
print(len([name for name in os.listdir("/proc") if name.isdigit()]) < 5)
try:
    os.kill({bystander.pid}, 15)
except ProcessLookupError:
    print("nobody")
"""
        done = python(tree, level, code)
        assert done.output.splitlines() == ["True", "nobody"]
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_the_process_is_not_root_and_has_no_rights(tree, level):
    code = "print(__import__('os').getuid()); print(open('/proc/self/status').read())"
    lines = python(tree, level, code).output.splitlines()
    words = dict(line.split(":\t", 1) for line in lines[1:] if ":\t" in line)
    assert int(lines[0]) != 0
    assert int(words["CapEff"], 16) == int(words["CapPrm"], 16) == 0
    assert words["NoNewPrivs"] == "1"


def test_exit_codes_and_signals_are_told_as_they_are(tree, level):
    assert python(tree, level, "raise SystemExit(7)").rc == 7
    done = python(tree, level, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (done.reason, done.signal) == ("signal", "SIGSEGV")
    assert python(tree, level, "import os; os.abort()").signal == "SIGABRT"


def test_processor_time_and_file_sizes_are_limited(tree, level):
    assert python(tree, level, "while True: pass", cpu=1.0).reason == "cpu"
    code = "open('build/f', 'wb').write(bytes(99999))"
    assert python(tree, level, code, file_size=1000).rc == 1
    assert (tree / "build/f").stat().st_size <= 1000


def test_what_lives_on_is_ended(tree, level):
    code = """
import os, time
if os.fork() == 0:
    os.setpgid(0, 0)
    if os.fork() == 0:
        while True:
            open("build/beat", "w").write(str(time.time()))
            time.sleep(0.01)
    os._exit(0)
while not os.path.exists("build/beat"):
    time.sleep(0.01)
"""
    done = python(tree, level, code)
    assert done.reason == "exit"
    (tree / "build/beat").unlink()
    time.sleep(0.1)
    assert not (tree / "build/beat").exists()


def test_a_timeout_ends_everything(tree, level):
    code = "import os, time\nos.fork()\nopen(f'build/{os.getpid()}', 'w')\ntime.sleep(60)"
    done = python(tree, level, code, wall=1.0)
    assert done.reason == "timeout"
    assert done.seconds < 20


@pytest.mark.parametrize("level", LEVELS)
def test_memory_of_all_processes_together_is_limited(tree, level):
    code = "import os, time\nos.fork()\nx = b'1' * (150 << 20)\ntime.sleep(60)"
    done = python(tree, level, code, memory=200 * MIB)
    assert done.reason == "memory"


@pytest.mark.parametrize("level", LEVELS)
def test_the_disk_cannot_be_filled(tree, level):
    code = """
import os, time
for i in range(100):
    open(f"{os.environ['HOME']}/{i}", "wb").write(bytes(1 << 20))
time.sleep(60)
"""
    done = python(tree, level, code, disk=50 * MIB)
    assert done.reason == "disk" or "No space left on device" in done.output


@pytest.mark.parametrize("level", LEVELS)
def test_processes_are_limited_in_number(tree, level):
    code = """
import os, time
for i in range(100):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""
    done = python(tree, level, code, processes=60)
    # The kernel refuses where it counts the child's apart; else the grader sees them and ends it.
    assert done.reason == "processes" or "BlockingIOError" in done.output


def test_a_worker_runs_in_it_and_arrays_come_back(tree, level):
    (tree / "work.py").write_text("import numpy as np\ndef twice(x): return 2 * x\n")
    view = View(level)
    with Remote(sys.executable, [str(tree)], tree, Limits(wall=60), view=view) as remote:
        got = remote.fetch(remote.import_("work").twice(np.arange(3.0)))
    assert got.tolist() == [0, 2, 4]


def test_a_worker_that_dies_or_swells_in_it_is_told_in_words(tree, level):
    code = """
import os, time

def die():
    os.kill(os.getpid(), 11)

def swell():
    kept = b"1" * (1 << 30)
    time.sleep(60)
"""
    (tree / "work.py").write_text(code)
    limits = Limits(wall=60, memory=500 * MIB)
    for function, kind, words in (
        ("die", ChildDied, "signal 11 (SIGSEGV)"),
        ("swell", ChildExcess, "used more than 524,288,000 bytes of memory"),
    ):
        with pytest.raises(kind, match=r"work\.") as caught, Remote(
            sys.executable, [str(tree)], tree, limits, view=View(level)
        ) as remote:  # fmt: skip
            remote.fetch(getattr(remote.import_("work"), function)())
        assert words in str(caught.value)


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_two_children_of_root_are_two_users(tree, level):
    users = {python(tree, level, "import os; print(os.getuid())").output for _ in range(2)}
    assert len(users) == 2


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root, setpriv")
def test_an_ordinary_user_gets_the_same_levels():
    code = "from grader.sandbox.isolation import *; print([why_not(level) for level in LEVELS])"
    folder = os.path.dirname(os.path.realpath(sys.executable))
    if not all(os.stat(path).st_mode & 1 for path in (folder, *Path(folder).parents)):
        pytest.skip("an ordinary user may not run this Python")
    words = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", sys.executable]
    done = subprocess.run([*words, "-c", code], cwd=KIT, capture_output=True, text=True)
    assert done.stdout == "['', '', '']\n", done.stderr


def test_the_strongest_level_is_chosen_unless_another_is_wanted():
    assert isolation.choose() == LEVELS[0]
    assert isolation.choose(LEVELS[-1]) == LEVELS[-1]
    with pytest.raises(IsolationError, match="no isolation 'x'; hint: one of auto, bubblewrap"):
        isolation.choose("x")


def test_a_level_that_does_not_work_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(isolation, "why_not", lambda level: "the kernel says no")
    with pytest.raises(IsolationError, match="does not work here: the kernel says no"):
        isolation.choose("namespaces")


def test_what_is_used_is_counted(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 8192)
    assert usage.disk([tmp_path], 1 << 30) >= 8192
    gone = tmp_path / "gone"
    for folders in ([gone, tmp_path], [tmp_path, gone]):
        assert usage.disk(folders, 1 << 30) >= 8192
    assert usage.disk([tmp_path], 10) > 10
    child = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"])
    try:
        until = time.monotonic() + 20
        while len(usage.processes(child.pid)) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        table = usage.processes(child.pid)
        assert len(table) == 3
        assert usage.memory(table) > 0
    finally:
        for pid in table:
            os.kill(pid, signal.SIGKILL)
        child.wait()


def test_the_settings_of_the_shim_are_plain_json(tree):
    command = isolation.confined(["true"], tree, tree, lambda own: [["CORE", 0, 0]], View())
    assert json.loads(command[5])["limits"] == [["CORE", 0, 0]]


@pytest.mark.parametrize("level", LEVELS)
def test_everything_ends_with_a_grader_that_is_killed(tree, level):
    beat = """
import time
while True:
    open("build/beat", "w").write(str(time.time()))
    time.sleep(0.01)
"""
    code = f"""
import sys
from pathlib import Path
from grader.sandbox.isolation import View
from grader.sandbox.process import run
tree = Path({str(tree)!r})
run([sys.executable, "-c", {beat!r}], tree, view=View({level!r}, writable=(tree / "build",)))
"""
    grader = subprocess.Popen([sys.executable, "-c", code], cwd=KIT)
    until = time.monotonic() + 60
    while not (tree / "build/beat").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert (tree / "build/beat").exists(), "it has not begun"
    grader.kill()
    grader.wait()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        (tree / "build/beat").unlink(missing_ok=True)
        time.sleep(0.2)
        if not (tree / "build/beat").exists():
            return
    raise AssertionError("it goes on")


def test_folders_of_dead_processes_are_swept_and_those_in_use_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    used = scratch.Scratch()
    left = tmp_path / "dlsys-scratch-left"
    left.mkdir()
    for path in (used.path, left):
        os.utime(path, (0, 0))
    young = tmp_path / "dlsys-scratch-young"
    young.mkdir()
    scratch.sweep()
    assert (used.path.exists(), left.exists(), young.exists()) == (True, False, True)
    used.remove()
    assert not used.path.exists()


def test_a_folder_of_any_depth_is_counted_and_removed(tree, level):
    code = """
import os
os.chdir(os.environ["HOME"])
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
open("x", "wb").write(bytes(1 << 20))
print(os.environ["HOME"])
"""
    home = Path(python(tree, level, code).output.strip())
    assert home.name.startswith("dlsys-scratch-")
    assert not home.exists()
    held = scratch.Scratch()
    (held.path / "locked").mkdir(mode=0o300)
    held.remove()
    assert not held.path.exists()


def test_what_lies_too_deep_to_be_counted_counts_as_full(tmp_path):
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
    finally:
        os.chdir(here)
    assert usage.disk([tmp_path], 1 << 40) > 1 << 40


def test_beside_a_submission_the_folders_of_others_are_hidden():
    assert isolation.outermost(Path("/data/hw1/alice")) == Path("/data")
    assert isolation.outermost(Path("/opt/course/alice")) == Path("/opt/course/alice")
    assert isolation.outermost(Path("/")) == Path("/")


def test_a_level_whose_preparation_fails_is_not_had(monkeypatch):
    def refuse(*words):
        if words[4].level == LEVELS[0]:
            raise PermissionError(1, "chown")
        return confined(*words)

    confined = isolation.confined
    monkeypatch.setattr(isolation, "confined", refuse)
    isolation.why_not.cache_clear()
    try:
        if len(LEVELS) > 1:
            assert isolation.choose() == LEVELS[1]
        else:
            with pytest.raises(isolation.IsolationError, match="no isolation works here"):
                isolation.choose()
        assert "chown" in isolation.why_not(LEVELS[0])
    finally:
        isolation.why_not.cache_clear()


def test_a_child_that_closes_its_pipes_is_noticed_though_others_watch_over_it(
    tree, level, monkeypatch
):
    monkeypatch.setattr(pipe, "_GRACE", 0.1)
    (tree / "work.py").write_text("import os, time\nos.closerange(3, 256)\ntime.sleep(60)\n")
    started = Remote(sys.executable, [str(tree)], tree, Limits(wall=50), view=View(level))
    with pytest.raises(ChildDied, match="closed its reply pipe"), started as remote:
        remote.import_("work")
        remote.flush()


def test_only_bubblewrap_needs_its_program(monkeypatch):
    isolation.why_not.cache_clear()
    try:
        monkeypatch.setattr(isolation.shutil, "which", lambda name: None)
        assert "bwrap is not installed" in isolation.why_not("bubblewrap")
        assert "bwrap" not in isolation.why_not("namespaces")
        isolation.why_not.cache_clear()
        monkeypatch.setattr(isolation.shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(isolation, "confined", lambda *_: ["true"])
        assert isolation.why_not("bubblewrap") == ""
    finally:
        isolation.why_not.cache_clear()


@pytest.mark.parametrize("known, works", [(True, True), (True, False), (False, True)])
def test_bubblewrap_is_told_to_forbid_user_namespaces_where_it_can(monkeypatch, known, works):
    """Without bwrap: what it would say of itself, and how a try would end."""
    said = "--unshare-user\n" + "--disable-userns\n" * known

    def ran(words, **_):
        assert words[0] == "bwrap"
        return subprocess.CompletedProcess(words, 0 if works or "--help" in words else 1, said)

    caches = isolation._knows, isolation._no_user_namespaces
    for each in caches:
        each.cache_clear()
    try:
        monkeypatch.setattr(isolation.subprocess, "run", ran)
        words = isolation._bubblewrap((), (), None, (), (Path("/tmp/home"), None))
        assert ("--disable-userns" in words) == (known and works)
        assert "--unshare-user" in words
    finally:
        for each in caches:
            each.cache_clear()
