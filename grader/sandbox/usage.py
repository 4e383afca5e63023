"""Measures what a process and its descendants use: memory, disk, processes, processor time."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_MOST_FILES = 50_000  # a folder with more counts as full
_FULL = 1 << 62
# How the names of what is in memory begin; /dev/zero is memory that processes share.
_IN_MEMORY = ("/memfd:", "/dev/zero", "/dev/shm/", "/SYSV")


def processes(pid: int) -> dict[int, int]:
    """A process and its descendants: id -> number of threads. Empty without /proc."""
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


def memory(pids: Iterable[int], unnamed: int = 0) -> int:
    """The bytes that processes hold and no file backs. `unnamed` gives bytes of files in memory;
    what is also mapped counts once."""
    held = [_memory(pid) for pid in pids]
    return sum(own for own, _ in held) + max(sum(shared for _, shared in held), unnamed)


def _memory(pid: int) -> tuple[int, int]:
    """(a process's own memory, with swapped and page table bytes; memory shared with others)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0, 0
    words = [line.split() for line in status.splitlines()]
    kib = {w[0]: int(w[1]) for w in words if len(w) == 3 and w[2] == "kB"}
    own = sum(kib.get(name, 0) for name in ("RssAnon:", "VmSwap:", "VmPTE:", "HugetlbPages:"))
    return own << 10, kib.get("RssShmem:", 0) << 10


def cpu(pids: Iterable[int]) -> float:
    """Seconds of processor time of processes, and of those that they waited for."""
    return sum(_cpu(pid) for pid in pids)


def _cpu(pid: int) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


class Budget:
    """Seconds of processor time for several children together."""

    def __init__(self, seconds: float) -> None:
        self.seconds = self._left = seconds

    def spend(self, seconds: float) -> bool:
        """Takes so many seconds; returns whether the budget still lasts."""
        self._left -= seconds
        return self._left >= 0


def scratch(pids: Iterable[int], folder: Path) -> tuple[int, int | None]:
    """(bytes, device) in a folder that is memory for these processes, not for this one; named files
    or not. (0, None) without such a folder."""
    for pid in reversed(list(pids)):
        with contextlib.suppress(OSError):
            theirs = f"/proc/{pid}/root{folder}"
            device = os.stat(theirs).st_dev
            if device != os.stat(folder).st_dev:
                found = os.statvfs(theirs)
                if found.f_files - found.f_ffree > _MOST_FILES:
                    return _FULL, device
                return (found.f_blocks - found.f_bfree) * found.f_frsize, device
    return 0, None


def unnamed(pids: Iterable[int], skipped: int | None = None) -> tuple[int, int]:
    """Bytes of unnamed files that processes hold open or mapped: (in memory, on disk).

    They lie in no folder, and what is written to them counts as no process's memory. Files on the
    device `skipped` do not count. Nor do files that the system does not report; it reports
    everything that is mapped to root alone, and to others its size.
    """
    sizes: dict[tuple[object, int], tuple[bool, int]] = {}
    for pid in pids:
        for key, found in (*_opened(pid), *_mapped(pid)):
            if key[0] != skipped:
                sizes[key] = max(found, sizes.get(key, found))
    memory = sum(size for in_memory, size in sizes.values() if in_memory)
    return memory, sum(size for _, size in sizes.values()) - memory


def _opened(pid: int) -> Iterator[tuple[tuple[object, int], tuple[bool, int]]]:
    """(device, number) -> (whether in memory, bytes) of unnamed files that are open."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                path = f"/proc/{pid}/fd/{name}"
                found = os.stat(path)
                if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                    in_memory = os.readlink(path).startswith(_IN_MEMORY)
                    yield (found.st_dev, found.st_ino), (in_memory, found.st_blocks * 512)


def _mapped(pid: int) -> Iterator[tuple[tuple[object, int], tuple[bool, int]]]:
    """The same for unnamed files that are mapped. A file counts until no process maps it, whether
    its pages are loaded or not."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        if line.endswith(" (deleted)"):
            place, _, offset, device, number, path = line.split(maxsplit=5)
            key: tuple[object, int] = (device, int(number))
            start, end = (int(word, 16) for word in place.split("-"))
            size = int(offset, 16) + end - start
            with contextlib.suppress(OSError):
                found = os.stat(f"/proc/{pid}/map_files/{start:x}-{end:x}")
                key, size = (found.st_dev, found.st_ino), found.st_blocks * 512
            yield key, (path.startswith(_IN_MEMORY), size)


def machine_memory() -> int:
    """The bytes of memory of this machine, or those that its container may use."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path("/sys/fs/cgroup", name).read_text()))
    return min(found)


def disk(folders: Iterable[Path], most: int) -> int:
    """The bytes in folders. Stops soon after `most`; too many files count as that much."""
    total = 0
    for number, size in enumerate(_sizes(folders)):
        total += size
        if total > most:
            break
        if number >= _MOST_FILES:
            return most + 1
    return total


def _sizes(folders: Iterable[Path]) -> Iterator[int]:
    """The size of every file and folder. What can't be read counts as the limit, since it may hide
    much."""
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
