"""What compiled kernels call of the system: they have no honest use for most of it.

Code in the student's process can change whatever that process tells of itself, once it reaches
the process's memory. What the grader can't see otherwise, as how often memory was allocated, is
therefore believed only of kernels that call nothing of the kind.

An object file is what a compiler made of a student's source, and may be as large and odd as that
can be: its tables are read as arrays, within bounds, in a time that grows with its size alone.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_LARGEST = 64 << 20  # bytes of an object file
_MOST_SYMBOLS = 2_000_000  # over all tables; the kit's own kernels have some hundred
_MOST_TABLES = 16
_MOST_NAMES = 50_000  # of functions that are called; each is looked at
_LONGEST = 512  # bytes of a name that are looked at
# Loading code, opening files, other processes and their memory, new processes, Python, and the
# environment, by which the emulated GPU is told to protect memory.
_REACHING = re.compile(
    r"dl(open|sym|vsym|mopen)|(__)?open(at)?(64)?(_2)?|p?write(v)?(64)?(v2)?|process_vm_(read|write)v|ptrace|"
    r"f(d|re)?open(64)?|_ZNSt\d+basic_[io]?f(stream|ilebuf)\w*|prctl|syscall|mprotect|pkey_mprotect|mmap(64)?|mremap|memfd_create|shm_open|v?fork|clone3?|"
    r"exec(v|ve|vp|vpe|l|le|lp)|fexecve|posix_spawnp?|system|popen|Py[A-Z_]\w*|(set|unset|put|clear)env|(__)?environ"
)

# The System V ABI, 64 bits, little-endian.
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = np.dtype([
    ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"),
    ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8"),
])  # fmt: skip
_SYMBOL = np.dtype([
    ("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
    ("size", "<u8"),
])  # fmt: skip
_SYMBOL_TABLES = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
_WITHOUT_CONTENT = 8  # SHT_NOBITS

Table = np.ndarray[Any, Any]


def reaching(obj: Path) -> tuple[str, ...]:
    """Names of functions by which an object file reaches beyond its own work, sorted.

    Raises:
        ValueError: it can't be read, or not within the limits; a sentence.
    """
    if obj.stat().st_size > _LARGEST:
        raise ValueError(f"{obj.name} is larger than {_LARGEST >> 20} MiB")
    content = obj.read_bytes()
    if not content.startswith(b"\x7fELF"):
        return ()  # of another system, whose files this does not read
    try:
        found = {
            name
            for symbols, texts in _tables(content, obj.name)
            for name in _named(symbols, texts, obj.name)
            if _REACHING.fullmatch(name)
        }
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"{obj.name} can't be read: {error}") from error
    return tuple(sorted(found))


def _tables(content: bytes, name: str) -> Iterator[tuple[Table, bytes]]:
    """Each table of symbols, the undefined ones alone, with the bytes of its names."""
    sections = _sections(content, name)
    places = np.flatnonzero(np.isin(sections["type"], _SYMBOL_TABLES))
    sizes = sections["size"][places].astype(object)
    if len(places) > _MOST_TABLES or sizes.sum() > _MOST_SYMBOLS * _SYMBOL.itemsize:
        raise ValueError(f"{name} has more than {_MOST_SYMBOLS:,} symbols")
    for place in places:
        table = sections[place]
        raw = _content(content, table, name)
        symbols = np.frombuffer(raw, _SYMBOL, len(raw) // _SYMBOL.itemsize)
        texts = _content(content, sections[int(table["link"])], name)
        yield symbols[symbols["section"] == 0], texts


def _sections(content: bytes, name: str) -> Table:
    header = _HEADER.unpack_from(content)
    ident, offset, size, count = header[0], header[6], header[11], header[12]
    if ident[4:6] != b"\x02\x01" or (offset and size != _SECTION.itemsize):
        raise ValueError(f"{name} can't be read: it is no object file of 64 bits")
    if offset and not count:  # more than fit in the header's 16 bits
        count = int(np.frombuffer(content[offset:][: _SECTION.itemsize], _SECTION)[0]["size"])
    if offset + count * _SECTION.itemsize > len(content):
        raise ValueError(f"{name} can't be read: it is cut short")
    return np.frombuffer(content, _SECTION, count, offset)


def _content(content: bytes, section: Any, name: str) -> bytes:
    if section["type"] == _WITHOUT_CONTENT:
        return b""
    start, size = int(section["offset"]), int(section["size"])
    if start + size > len(content):
        raise ValueError(f"{name} can't be read: it is cut short")
    return content[start : start + size]


def _named(symbols: Table, texts: bytes, name: str) -> Iterator[str]:
    """The names of symbols, each once."""
    places = np.unique(symbols["name"]).tolist()
    if len(places) > _MOST_NAMES:
        raise ValueError(f"{name} calls more than {_MOST_NAMES:,} functions")
    for place in places:
        end = texts.find(b"\0", place, place + _LONGEST)
        yield texts[place : end if end >= 0 else place + _LONGEST].decode("utf-8", "replace")
