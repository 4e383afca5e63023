"""What no limit of a process sees: memory that is nobody's, keys, doors into the kernel."""

import errno
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from grader.sandbox import isolation, syscalls
from grader.sandbox.isolation import View
from grader.sandbox.process import MIB, Limits, run, start
from grader.sandbox.scratch import scratch_folder

KIT = Path(__file__).resolve().parents[2]
LEVELS = [level for level in isolation.LEVELS if not isolation.why_not(level)]
COLUMN = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS

if COLUMN is None or sys.platform != "linux" or not LEVELS:
    pytest.skip("the system calls of this machine are not known", allow_module_level=True)


@pytest.fixture(params=LEVELS)
def level(request):
    return request.param


@pytest.fixture
def tree():
    """Where another user may go, unlike the folders of pytest."""
    with scratch_folder() as folder:
        (folder / "build").mkdir()
        yield folder


def python(tree, level, code, tools=True, **limits):
    argv = [sys.executable, "-I", "-u", "-c", code]
    view = View(level, writable=(tree / "build",), tools=tools)
    return run(argv, tree, limits=Limits(**{"wall": 30.0, **limits}), view=view)


# --- the filter of system calls -----------------------------------------------------------------


def judged(program, number, machine, *arguments):
    """What the kernel would do about a call: the filter, run here."""
    data = struct.pack("=IIQ6Q", number, machine, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    code = [struct.unpack_from("=HBBI", program, place) for place in range(0, len(program), 8)]
    at, held = 0, 0
    while True:
        kind, yes, no, value = code[at]
        at += 1
        if kind == 0x06:
            return value
        if kind == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
        else:
            true = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[kind]
            at += yes if true else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("sockets", [False, True])
def test_on_each_machine_the_filter_refuses_what_is_named_and_nothing_else(machine, sockets):
    program = syscalls.program(sockets, machine=machine)
    name, column = syscalls._MACHINES[machine]
    refused = {numbers[column] for numbers in syscalls._REFUSED.values()}
    refused |= {numbers[column] for numbers in syscalls._SOCKETS.values()}
    refused |= {numbers[column] for numbers in syscalls._OF_TOOLS.values()}
    for number in range(600):
        expected = EPERM if number in refused else ENOSYS if number == 435 else ALLOW
        assert judged(program, number, name) == expected, number


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_by_the_numbers_of_another_machine_are_refused(machine):
    program = syscalls.program(False, machine=machine)
    for other in (0x40000003, 0x40000028, 0xC000003E, 0xC00000B7):  # i386, arm, x86-64, arm64
        expected = ALLOW if other == syscalls._MACHINES[machine][0] else EPERM
        assert judged(program, 1, other) == expected


def test_calls_of_the_x32_interface_are_refused():
    name = syscalls._MACHINES["x86_64"][0]
    assert judged(syscalls.program(False, machine="x86_64"), 0x40000000 | 1, name) == EPERM


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_process_may_be_cloned_and_a_namespace_not(machine):
    name, column = syscalls._MACHINES[machine]
    program, clone = syscalls.program(False, machine=machine), syscalls._CLONE[column]
    assert judged(program, clone, name, 0x01200011) == ALLOW  # fork
    assert judged(program, clone, name, 0x003D0F00) == ALLOW  # a thread
    for kind in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 1 << 28, 1 << 29, 1 << 30):
        assert judged(program, clone, name, kind | 17) == EPERM


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_process_leaves_the_tree_that_is_measured(machine):
    name, column = syscalls._MACHINES[machine]

    def asked(numbers, *arguments):
        return judged(syscalls.program(False, machine=machine), numbers[column], name, *arguments)

    assert asked(syscalls._CLONE, 0x8000 | 17) == EPERM  # a sister
    assert asked(syscalls._CLONE, 0x003D0F00 & ~0x400) == EPERM  # a thread with files of its own
    assert [asked(syscalls._CLOSE_RANGE, 3, 9, flags) for flags in (0, 2, 4)] == [
        *(ALLOW, EPERM, ALLOW)
    ]
    for which, undone in ((1, ALLOW), (4, EPERM), (15, ALLOW), (36, EPERM)):
        assert asked(syscalls._PRCTL, which, 0) == undone
        assert asked(syscalls._PRCTL, which, 1) == ALLOW
    for action, child in ((0, ALLOW), (1, EPERM), (1 << 40, EPERM)):
        assert asked(syscalls._SIGACTION, signal.SIGCHLD, action) == child
        assert asked(syscalls._SIGACTION, signal.SIGUSR1, action) == ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("tools", [False, True])
def test_what_is_for_tools_alone_and_larger_pipes_are_for_nobody(machine, tools):
    name, column = syscalls._MACHINES[machine]
    program = syscalls.program(False, tools, machine=machine)
    for_tools = ALLOW if tools else EPERM
    for call in ("flock", "setsid"):
        assert judged(program, syscalls._OF_TOOLS[call][column], name) == for_tools
    action = syscalls._SIGACTION[column]
    assert judged(program, action, name, signal.SIGCHLD, 1 << 20) == for_tools
    for command in range(1100):
        refused = command in (1026, 1031) or (command in (6, 7, 37, 38) and not tools)
        expected = EPERM if refused else ALLOW
        assert judged(program, syscalls._FCNTL[column], name, 3, command) == expected, command


def test_where_there_is_a_gpu_sockets_are_between_processes_alone():
    name, column = syscalls._MACHINES["x86_64"]
    for kind in ("socket", "socketpair"):
        number = syscalls._SOCKETS[kind][column]
        found = [
            judged(syscalls.program(True, machine="x86_64"), number, name, f)
            for f in (1, 2, 10, 40)
        ]
        assert found == [ALLOW, EPERM, EPERM, EPERM]


def test_a_machine_whose_numbers_are_not_known_has_no_filter():
    assert syscalls.program(False, machine="s390x") is None


def test_what_is_refused_is_refused_at_every_level(tree, level):
    named = syscalls._REFUSED | syscalls._OF_TOOLS
    calls = {name: numbers[COLUMN] for name, numbers in named.items()}
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number in {calls!r}.items():
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    if ctypes.get_errno() != 1:
        print(name, ctypes.get_errno())
libc.syscall(435, 0, 0)
print(ctypes.get_errno())
"""
    assert python(tree, level, code, tools=False).output == f"{errno.ENOSYS}\n"


def test_nobody_makes_himself_a_namespace(tree, level):
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), ctypes.get_errno())
print(libc.syscall({syscalls._CLONE[COLUMN]}, 0x10000000 | 17, 0, 0, 0, 0), ctypes.get_errno())
"""
    assert python(tree, level, code).output == "-1 1\n-1 1\n"


@pytest.mark.skipif(isolation.has_gpu(), reason="CUDA needs sockets")
def test_there_are_no_sockets_where_there_is_no_gpu(tree, level):
    code = """
import socket
for family in (1, 2, 10, 16, 40):
    for make in (socket.socket, socket.socketpair):
        try:
            make(family)
            print(family)
        except OSError as error:
            assert error.errno == 1, error
"""
    assert python(tree, level, code).output == ""


def test_the_processor_time_of_children_that_nobody_waits_for_is_not_forgotten(tree, level):
    code = """
import os, signal, time
try:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
except OSError:
    pass
while True:
    if os.fork() == 0:
        until = time.process_time() + 0.03
        while time.process_time() < until:
            pass
        os._exit(0)
    time.sleep(0.04)
"""
    done = python(tree, level, code, tools=False, cpu=1.0, wall=20.0, processes=None)
    assert done.reason == "cpu"


def test_orphans_count_and_nobody_gives_them_away(tree, level):
    code = """
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.3)
        held = b"x" * (300 << 20)
        time.sleep(60)
    os._exit(0)
time.sleep(60)
"""
    assert python(tree, level, code, memory=200 * MIB, wall=20.0).reason == "memory"


def test_two_children_send_each_other_nothing_by_locks(tree, level):
    code = f"""
import fcntl
for lock in (fcntl.flock, fcntl.lockf):
    try:
        lock(open({sys.executable!r}, "rb"), fcntl.LOCK_SH)
    except PermissionError:
        print("no")
"""
    assert python(tree, level, code, tools=False).output == "no\nno\n"
    assert python(tree, level, code).output == ""


def test_threads_processes_pipes_and_numpy_work_under_the_filter(tree, level):
    code = """
import subprocess, sys, threading
import numpy as np
threading.Thread(target=lambda: print("thread", flush=True)).start()
print(subprocess.run(["sh", "-c", "echo a | cat"], capture_output=True, text=True).stdout.strip())
a = np.ones((300, 300))
print((a @ a)[0, 0])
"""
    done = python(tree, level, code)
    assert sorted(done.output.split()) == ["300.0", "a", "thread"]


# --- memory that is nobody's --------------------------------------------------------------------


def test_files_and_queues_are_few(tree, level):
    code = """
import resource
for name in ("NOFILE", "MSGQUEUE", "SIGPENDING"):
    print(*resource.getrlimit(getattr(resource, "RLIMIT_" + name)))
"""
    done = python(tree, level, code, files=99)
    assert done.output == "99 99\n0 0\n1024 1024\n"


@pytest.mark.parametrize(
    "held",
    [
        "m = mmap.mmap(-1, N); m.write(bytes(N)); m.madvise(mmap.MADV_DONTNEED)",
        "fd = os.open(f, os.O_CREAT | os.O_RDWR); os.posix_fallocate(fd, 0, N)\n"
        "m = mmap.mmap(fd, N); os.close(fd); os.unlink(f); m.write(bytes(N))",
    ],
    ids=["shared", "mapped"],
)
def test_what_is_mapped_and_has_no_name_counts(tree, level, held):
    code = f"import mmap, os, time\nN = 300 << 20\nf = 'build/x'\n{held}\ntime.sleep(60)"
    done = python(tree, level, code, memory=256 * MIB, disk=256 * MIB)
    assert done.reason in ("memory", "disk"), done.output


def test_files_in_memory_are_refused_and_without_a_level_they_count(tree, level):
    code = """
import os, time
fd = os.memfd_create("x")
for _ in range(256):
    os.write(fd, bytes(1 << 20))
time.sleep(60)
"""
    done = python(tree, level, code, memory=128 * MIB)
    assert (done.rc, "PermissionError" in done.output) == (1, True)
    assert python(tree, "none", code, memory=128 * MIB).reason == "memory"


def test_a_file_without_a_name_does_not_outgrow_the_scratch(tree, level):
    code = """
import os, time
path = os.environ["HOME"] + "/x"
fd = os.open(path, os.O_CREAT | os.O_RDWR)
os.unlink(path)
for _ in range(256):
    os.write(fd, bytes(1 << 20))
time.sleep(60)
"""
    done = python(tree, level, code, memory=256 * MIB, disk=128 * MIB)
    assert done.reason == "disk" or "No space left on device" in done.output


# --- a scratch of one's own ---------------------------------------------------------------------


@pytest.mark.skipif(set(LEVELS) <= {"process"}, reason="no level has one")
def test_the_scratch_is_memory_of_a_bounded_size_that_counts(tree, level):
    if level == "process" or (level == "bubblewrap" and not isolation.can_size_scratch()):
        pytest.skip("it lies on the disk here")
    code = """
import os, time
home = os.environ["HOME"]
found = os.statvfs(home)
print(found.f_blocks * found.f_frsize >> 20, os.stat(home).st_dev)
open(home + "/x", "wb").write(bytes(60 << 20))
kept = b"1" * (80 << 20)
time.sleep(60)
"""
    done = python(tree, level, code, memory=100 * MIB, disk=70 * MIB)
    size, device = map(int, done.output.split()[:2])
    assert size == 50 and device != os.stat(tempfile.gettempdir()).st_dev
    big = python(tree, level, code, memory=130 * MIB, disk=70 * MIB)
    assert big.reason == "memory", big.output


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a disk")
def test_a_neighbour_who_fills_the_disk_harms_nobody(tmp_path, monkeypatch, level):
    if level == "process":
        pytest.skip("its scratch lies on the disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m,mode=1777", "none", disk])
    if done.returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        fill = f"""
import os
try:
    os.write(os.open({str(disk / "x")!r}, os.O_CREAT | os.O_RDWR), bytes(299 << 20))
except OSError:
    pass
"""
        code = "import os; open(os.environ['HOME'] + '/x', 'wb').write(bytes(9 << 20)); print('ok')"
        with scratch_folder() as tree:
            (tree / "build").mkdir()
            child = start([sys.executable, "-c", code], tree, view=View(level))
            subprocess.run([sys.executable, "-c", fill], check=True)
            child.wait(child.deadline)
            child.kill()
        assert child.output.text() == "ok\n"
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_disk_without_room_is_told_before_anything_runs(tmp_path, monkeypatch):
    free = lambda folder: shutil._ntuple_diskusage(1 << 30, 1 << 30, 100 << 20)  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", free)
    with pytest.raises(OSError, match=r"only 100 MiB are free in .*; hint: free some") as caught:
        run(["true"], tmp_path)
    assert caught.value.errno == errno.ENOSPC


def test_no_child_may_take_more_than_half_of_what_is_free():
    assert Limits(disk=100).within(1000).disk == 100
    assert Limits(disk=100).within(120).disk == 60
    assert Limits(disk=None).within(120).disk is None


# --- keys ---------------------------------------------------------------------------------------

HELD = """
import ctypes, sys
from pathlib import Path
from grader.sandbox.isolation import View
from grader.sandbox.process import run
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall({keyctl}, 1, None) > 0
key = libc.syscall({add_key}, b"user", b"of-the-login", b"secret", 6, -3)
if key < 0:
    sys.exit(77)
assert "of-the-login" in open("/proc/keys").read()
code = '''
import ctypes
try:
    print(open('/proc/keys').read())
except PermissionError:
    pass
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall({keyctl}, 11, %d, None, 0), ctypes.get_errno())
''' % key
print(run([sys.executable, "-I", "-c", code], Path({tree!r}), view=View({level!r})).output)
"""


def test_the_keys_of_a_login_are_not_there(tree, level):
    if not os.path.exists("/proc/keys"):
        pytest.skip("this kernel has no keys")
    numbers = {name: syscalls._REFUSED[name][COLUMN] for name in ("keyctl", "add_key")}
    held = HELD.format(tree=str(tree), level=level, **numbers)
    done = subprocess.run([sys.executable, "-c", held], cwd=KIT, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no key can be added here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("-1 1\n\n")
    # Without a level of its own mounts, one sees the names of keys of the same user.
    assert "of-the-login" not in done.stdout or (level == "process" and os.getuid() != 0)


RINGS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
rings = (-1, -2, -3, -4, -5)  # of the thread, the process, the session, the user, the user's login
name = b"note-to-the-next"
"""
ADDS = RINGS + 'print([libc.syscall({add_key}, b"user", name, b"hello", 5, r) for r in rings])'
LOOKS = (
    RINGS
    + """
found = [libc.syscall({keyctl}, 10, r, b"user", name, 0) for r in rings]
found.append(libc.syscall({request_key}, b"user", name, None, 0))
try:
    listed = name.decode() in open("/proc/keys").read()
except OSError:
    listed = False
print(max(found), listed)
"""
)


@pytest.mark.parametrize("tools", [True, False])
def test_no_child_leaves_a_key_for_the_next(tree, level, tools):
    """A kernel without keys refuses them too, so this needs no other."""
    numbers = {n: syscalls._REFUSED[n][COLUMN] for n in ("keyctl", "add_key", "request_key")}
    assert python(tree, level, ADDS.format(**numbers), tools).output.strip() == str([-1] * 5)
    assert python(tree, level, LOOKS.format(**numbers), tools).output.strip() == "-1 False"


# --- never as root ------------------------------------------------------------------------------

WHO = "import os; print(os.getuid(), os.getgid(), os.getgroups()); open('build/x', 'w').close()"


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_root_is_nobody_at_every_level(tree, level):
    words = python(tree, level, WHO).output.split()
    assert int(words[0]) >= 60514 and int(words[1]) >= 60514 and words[2] == "[]"
    assert (tree / "build/x").stat().st_uid != 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_where_root_cannot_become_another_user_the_level_process_is_refused(monkeypatch):
    monkeypatch.setattr(isolation, "_PROBE", "raise SystemExit('cannot run python: no')")
    isolation.why_not.cache_clear()
    try:
        with pytest.raises(isolation.IsolationError, match="never runs as root") as caught:
            isolation.choose("process")
        assert "hint: install bubblewrap" in str(caught.value)
        with pytest.raises(isolation.IsolationError, match="no isolation works here"):
            isolation.choose()
    finally:
        isolation.why_not.cache_clear()


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_a_folder_that_the_other_user_cannot_enter_is_told(tmp_path):
    if "process" not in LEVELS:
        pytest.skip("this Python is root's alone")
    tmp_path.chmod(0o700)
    (tmp_path / "tree").mkdir()
    done = run(["true"], tmp_path / "tree", view=View("process"))
    if done.rc != 0:  # the folders of pytest are root's alone where root runs it
        assert "cannot enter" in done.output and "hint:" in done.output
