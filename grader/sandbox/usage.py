"""Measures what a process and its descendants use: memory, disk, processes, processor time.

A process chooses names that stand in /proc. So it is read as bytes, and no name is taken for a
field.

Of the kernel's memory, what open files and mappings may take counts. What does not count is bounded
elsewhere; measured on Linux 6.18, with 264 processes: 50,000 files of the scratch 35 MiB, stacks of
threads 4 MiB, 1,024 timers or signals 2 MiB. Names that the kernel remembers it gives up again.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_MOST_FILES = 50_000  # a folder with more counts as full
_FULL = 1 << 62
_CHUNK = 1 << 20
# How the names of what is in memory begin; /dev/zero is memory that processes share.
_IN_MEMORY = (b"/memfd:", b"/dev/zero", b"/dev/shm/", b"/SYSV")
# A name with a line feed is escaped in both files.
_FIELD = re.compile(rb"^(RssAnon|VmSwap|VmPTE|HugetlbPages|RssShmem):\s+(\d+) kB$", re.MULTILINE)
_DELETED = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) (\S+) (\d+) +(.*) \(deleted\)")


def _number(path: str, otherwise: int) -> int:
    """The number in a file."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path(path).read_bytes())
    return otherwise


_PAGE = os.sysconf("SC_PAGE_SIZE")
# Bytes of the kernel's memory that these may take, and no process shows. A mapping took 1.3 KiB
# (measured); a pipe has 16 pages; a socket what may wait in it, in both directions; a set that is
# waited for 256 descriptors.
_MAPPING, _FILE, _PIPE, _OTHER = 1536, 4096, 16 * _PAGE, 64 << 10
_SOCKET = 2 * _number("/proc/sys/net/core/wmem_max", 212_992)


def processes(pid: int, most: int | None = None) -> dict[int, int]:
    """A process and its descendants: id -> number of threads. Empty without /proc. The search ends
    soon after `most` threads."""
    found: dict[int, int] = {}
    pending, threads = [pid], 0
    while pending and (most is None or threads <= most):
        number = pending.pop()
        with contextlib.suppress(OSError):
            tasks = os.listdir(f"/proc/{number}/task")
            found[number] = len(tasks)
            threads += len(tasks)
            for task in tasks:
                with contextlib.suppress(OSError):
                    children = Path(f"/proc/{number}/task/{task}/children").read_bytes()
                    pending += [int(word) for word in children.split()]
    return found


def memory(pids: Iterable[int], unnamed: int = 0) -> int:
    """The bytes that processes hold and no file backs. `unnamed` gives bytes of files in memory;
    what is also mapped counts once."""
    held = [_memory(pid) for pid in pids]
    return sum(own for own, _ in held) + max(sum(shared for _, shared in held), unnamed)


def _memory(pid: int) -> tuple[int, int]:
    """(a process's own memory, with swapped and page table bytes; memory shared with others)."""
    kib = {name: int(number) for name, number in _FIELD.findall(_alive(pid)[1])}
    shared = kib.pop(b"RssShmem", 0)
    return sum(kib.values()) << 10, shared << 10


def _alive(pid: int) -> tuple[str, bytes]:
    """(folder, status) of a thread of a process that has not ended; ("", b"") if all have. The
    first thread may end before the others, and shows nothing from then on."""
    with contextlib.suppress(OSError):
        for task in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
            folder = f"/proc/{pid}/task/{task}"
            with contextlib.suppress(OSError):
                status = Path(folder, "status").read_bytes()
                if b"\nVmRSS:" in status:
                    return folder, status
    return "", b""


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
            theirs = f"{_alive(pid)[0]}/root{folder}"
            device = os.stat(theirs).st_dev
            if device != os.stat(folder).st_dev:
                found = os.statvfs(theirs)
                if found.f_files - found.f_ffree > _MOST_FILES:
                    return _FULL, device
                return (found.f_blocks - found.f_bfree) * found.f_frsize, device
    return 0, None


class Unseen(NamedTuple):
    """What processes hold that neither shows as their memory nor lies in a folder.

    Attributes:
        memory: bytes of unnamed files in memory.
        disk: bytes of unnamed files on disk.
        kernel: bytes of the kernel's memory, an upper bound.
        mappings: their number.
    """

    memory: int
    disk: int
    kernel: int
    mappings: int


_Key = tuple[object, object]
_File = tuple[bool, int]  # whether it lies in memory, and its bytes


def unseen(pids: Iterable[int], most: int | None = None, skipped: int | None = None) -> Unseen:
    """Measures unnamed files, and what open files and mappings may take of the kernel's memory.

    Files on the device `skipped` do not count. Nor do files that the system does not report; it
    reports everything that is mapped to root alone, and to others its size. To read mappings takes
    time: soon after `most` of them it ends.
    """
    files: dict[_Key, _File] = {}
    kernel: dict[_Key, int] = {}
    mappings = 0
    for pid in pids:
        folder = _alive(pid)[0]
        opened, kept = _opened(folder)
        kernel |= kept
        for lines in _maps(folder):
            mappings += lines.count(b"\n")
            opened += _mapped(pid, lines)
            if most is not None and mappings > most:
                break
        for key, found in opened:
            if key[0] != skipped:
                files[key] = max(found, files.get(key, found))
        if most is not None and mappings > most:
            break
    memory = sum(size for in_memory, size in files.values() if in_memory)
    disk = sum(size for _, size in files.values()) - memory
    return Unseen(memory, disk, sum(kernel.values()) + _MAPPING * mappings, mappings)


def _opened(folder: str) -> tuple[list[tuple[_Key, _File]], dict[_Key, int]]:
    """Unnamed files that are open, and (what is open -> bytes of the kernel's memory)."""
    files, kernel = [], {}
    with contextlib.suppress(OSError):
        for name in os.listdir(f"{folder}/fd") if folder else ():
            with contextlib.suppress(OSError):
                path = f"{folder}/fd/{name}"
                found = os.stat(path)
                key: _Key = (found.st_dev, found.st_ino)
                if stat.S_ISFIFO(found.st_mode):
                    kernel[key] = _PIPE
                elif stat.S_ISSOCK(found.st_mode):
                    kernel[key] = _SOCKET
                elif not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
                    kernel[folder, name] = _OTHER
                else:
                    kernel[folder, name] = _FILE
                if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                    in_memory = os.readlink(os.fsencode(path)).startswith(_IN_MEMORY)
                    files.append((key, (in_memory, found.st_blocks * 512)))
    return files, kernel


def _maps(folder: str) -> Iterator[bytes]:
    """The lines of a process's mappings, many at a time."""
    if folder:
        with contextlib.suppress(OSError), open(f"{folder}/maps", "rb", buffering=0) as file:
            rest = b""
            while chunk := file.read(_CHUNK):
                lines, end, rest = (rest + chunk).rpartition(b"\n")
                yield lines + end


def _mapped(pid: int, lines: bytes) -> Iterator[tuple[_Key, _File]]:
    """Unnamed files that are mapped. A file counts until no process maps it, whether its pages are
    loaded or not."""
    known: set[tuple[bytes, bytes]] = set()
    if b" (deleted)\n" not in lines:
        return
    for line in lines.split(b"\n"):
        # Most lines have no such end, and a pattern takes its time to find that out.
        match = _DELETED.fullmatch(line) if line.endswith(b" (deleted)") else None
        if match is None:
            continue
        start, end, offset, device, number, path = match.groups()
        if (device, number) in known:
            continue
        key: _Key = (device, number)
        size = int(offset, 16) + int(end, 16) - int(start, 16)
        with contextlib.suppress(OSError):
            place = f"{int(start, 16):x}-{int(end, 16):x}"
            found = os.stat(f"/proc/{pid}/map_files/{place}")
            key, size = (found.st_dev, found.st_ino), found.st_blocks * 512
            known.add((device, number))
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
