"""What a process and its descendants use, as far as the system tells: memory, disk, processes."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_MOST_FILES = 50_000  # a folder with more counts as full
_FULL = 1 << 62


def processes(pid: int) -> dict[int, int]:
    """Descendants of a process and itself: {id: number of threads}. Empty without /proc."""
    found: dict[int, int] = {}
    pending = [pid]
    while pending:
        number = pending.pop()
        with contextlib.suppress(OSError):
            tasks = os.listdir(f"/proc/{number}/task")
            found[number] = len(tasks)
            for task in tasks:
                with contextlib.suppress(OSError):
                    children = Path(f"/proc/{number}/task/{task}/children").read_text()
                    pending += [int(word) for word in children.split()]
    return found


def memory(pids: Iterable[int]) -> int:
    """Bytes that processes hold, without what is backed by files."""
    return sum(_memory(pid) for pid in pids)


def _memory(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    words = [line.split() for line in status.splitlines()]
    return sum(int(w[1]) << 10 for w in words if w and w[0] in ("RssAnon:", "RssShmem:"))


class Waiting:
    """How long processes have waited for a core that others were using.

    Of each interval between two looks counts the time of the thread that waited longest in it.
    Where the kernel does not tell (CONFIG_SCHED_INFO), nothing counts.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before: dict[str, int] = {}

    def look(self, pids: Iterable[int]) -> None:
        """Adds what these processes have waited since the last look."""
        now = {path: waited for pid in pids for path, waited in _waited(pid)}
        most = max((now[path] - self._before.get(path, 0) for path in now), default=0)
        self.seconds += max(0, most) / 1e9
        self._before = now


def _waited(pid: int) -> Iterator[tuple[str, int]]:
    """(thread, nanoseconds that it could have run and had no core), see proc_schedstat."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            path = f"/proc/{pid}/task/{task}/schedstat"
            with contextlib.suppress(OSError, ValueError, IndexError):
                yield path, int(Path(path).read_text().split()[1])


def unnamed(pids: Iterable[int]) -> tuple[int, int]:
    """Bytes of files without a name that processes hold open: (in memory, on disk).

    They are in no folder, and what is written to them is in no process. Where the system does not
    tell what a process has open, they are not counted.
    """
    sizes: dict[tuple[int, int], tuple[bool, int]] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    path = f"/proc/{pid}/fd/{name}"
                    found = os.stat(path)
                    if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                        in_memory = os.readlink(path).startswith("/memfd:")
                        sizes[found.st_dev, found.st_ino] = (in_memory, found.st_blocks * 512)
    memory = sum(size for in_memory, size in sizes.values() if in_memory)
    return memory, sum(size for _, size in sizes.values()) - memory


def machine_memory() -> int:
    """Bytes of memory that this machine has, or its container may use."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path("/sys/fs/cgroup", name).read_text()))
    return min(found)


def disk(folders: Iterable[Path], most: int) -> int:
    """Bytes in folders; stops soon after `most`, and a folder of too many files is as full."""
    total = 0
    for number, size in enumerate(_sizes(folders)):
        total += size
        if total > most:
            break
        if number >= _MOST_FILES:
            return most + 1
    return total


def _sizes(folders: Iterable[Path]) -> Iterator[int]:
    """Of every file and folder. What can't be looked into counts as full: it may hide much."""
    pending = [str(folder) for folder in folders]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    yield _size(entry)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except FileNotFoundError:
            continue  # gone meanwhile
        except OSError:
            yield _FULL


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        return 0
