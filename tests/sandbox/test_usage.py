"""What a child holds, as it is measured: no name, ended thread or number of things hides it."""

import ctypes
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.sandbox import usage
from grader.sandbox.process import MIB, LimitError, Limits, run, start

if sys.platform != "linux":
    pytest.skip("there is no /proc", allow_module_level=True)


def python(folder, code, **limits):
    return run([sys.executable, "-c", code], folder, limits=Limits(**{"wall": 30.0, **limits}))


def test_a_folder_that_is_the_same_for_all_is_no_memory_of_a_child(tmp_path):
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    assert usage.scratch([os.getpid()], tmp_path) == (0, None)
    assert usage.scratch([], tmp_path) == (0, None)


def test_tables_of_pages_count_as_memory():
    before = usage.memory([os.getpid()])
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    size = 4 << 30
    place = libc.mmap(None, size, 1, 0x4022, -1, 0)  # private, anonymous, without reserve
    for at in range(0, size, 2 << 20):
        ctypes.c_char.from_address(place + at).value  # noqa: B018 a table for each is made
    assert usage.memory([os.getpid()]) - before > 6 * MIB
    libc.munmap(ctypes.c_void_p(place), ctypes.c_size_t(size))


NAMED = """
import ctypes, mmap, os, sys, threading, time
libc = ctypes.CDLL(None)
libc.prctl(15, {name!r}, 0, 0, 0)
with open({file!r}, "w+b") as file:
    file.write(bytes({size}))
    file.flush()
    m = mmap.mmap(file.fileno(), {size})
os.unlink({file!r})
held = b"x" * {size}
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("name", [b"\xff", b"x kB", b"a) R 1", b"a\nRssAnon: 9", b"\x0b 1 kB\x85"])
@pytest.mark.parametrize("file", ["plain", "a\x0bb", "a\nb", "a \x85 (deleted)", "\udcff"])
def test_no_name_of_a_process_or_a_file_hides_what_it_holds(tmp_path, name, file):
    size = 8 * MIB
    path = os.fsencode(tmp_path / file)
    code = NAMED.format(name=name, file=path, size=size)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        found = usage.unseen([child.pid])
        assert (found.memory, found.disk) == (0, size)
        assert size < usage.memory([child.pid]) < 20 * size
        assert usage.cpu([child.pid]) < 60
        assert found.mappings > 20
    finally:
        child.kill()
        child.communicate()


ENDED = """
import ctypes, mmap, os, sys, threading, time
path = {path!r}
def rest():
    time.sleep(1.0)
    held = b"x" * (100 << 20)
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    os.unlink(path)
    os.write(fd, bytes({disk} << 20))
    time.sleep(60)
threading.Thread(target=rest).start()
time.sleep(0.2)
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_first_thread_that_ended_hides_nothing(tmp_path, kind):
    path = str(tmp_path / "x")  # on the disk, where a run of the tests has its scratch in memory
    code = ENDED.format(disk=4 if kind == "memory" else 100, path=path)
    limits = {"memory": 90 * MIB} if kind == "memory" else {"disk": 80 * MIB}
    assert python(tmp_path, code, **limits).reason == kind


def test_mappings_are_limited_and_a_look_at_many_of_them_is_short(tmp_path):
    code = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
place = libc.mmap(None, ctypes.c_size_t(60000 * 4096), 1, 0x22, -1, ctypes.c_long(0))
for page in range(0, 60000, 2):
    libc.mprotect(ctypes.c_void_p(place + page * 4096), ctypes.c_size_t(4096), 3)
for _ in range(9):
    if os.fork() == 0:
        break
print(flush=True)
time.sleep(60)
"""
    child = start([sys.executable, "-c", code], tmp_path, limits=Limits(mappings=100_000))
    try:
        with pytest.raises(LimitError, match="mappings"):
            child.wait(child.deadline)
        while len(table := usage.processes(child.pid)) < 10:  # two are too many mappings
            assert time.monotonic() < child.deadline
            time.sleep(0.01)
        assert 100_000 < usage.unseen(table, 100_000).mappings < 170_000
    finally:
        child.kill()


def test_what_is_open_counts_as_the_most_that_the_kernel_may_hold_for_it(tmp_path):
    before = usage.unseen([os.getpid()])
    ends = [end for _ in range(20) for end in os.pipe()]
    pairs = [each for _ in range(5) for each in socket.socketpair()]
    sets = [select.epoll() for _ in range(7)]
    found = usage.unseen([os.getpid()])
    least = int(Path("/proc/sys/net/core/wmem_max").read_text()) * 2
    expected = 20 * 65536 + 10 * least + 7 * 65536
    assert abs(found.kernel - before.kernel - expected) < 16 << 10  # mappings come and go
    assert (found.memory, found.disk) == (before.memory, before.disk)
    for each in (*pairs, *sets):
        each.close()
    for end in ends:
        os.close(end)


def test_pipes_that_are_full_do_not_outgrow_the_limit_of_memory(tmp_path):
    code = """
import os, time
for _ in range(40):
    if os.fork() == 0:
        break
for _ in range(100):
    os.write(os.pipe()[1], bytes(65536))
time.sleep(60)
"""
    # The processes themselves hold about 190 MiB, and 4100 pipes 256.
    assert python(tmp_path, code, memory=320 * MIB).reason == "memory"
