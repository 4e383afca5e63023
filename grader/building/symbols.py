"""What compiled kernels call of the system: they have no honest use for most of it.

Code in the student's process can change whatever that process tells of itself, once it reaches
the process's memory. What the grader can't see otherwise, as how often memory was allocated, is
therefore believed only of kernels that call nothing but what grader.building.harmless lists.

A function that they define under a name of the C library or of CUDA would take its place for
everybody in the process, the clock by which they are timed among them: that is refused.

What no table of symbols shows is still possible: a system call by an instruction of its own, an
address that is computed from a function's or found in memory, and a FILE whose fields are changed.
Objects of C++ are constructed before any check, so code that runs where the library is loaded is
no sign of anything.

An object file is what a compiler made of a student's source, and may be as large and odd as that
can be: its tables are read as arrays, within bounds, in a time that grows with its size alone.
"""

from __future__ import annotations

import ctypes
import functools
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from grader.building.harmless import is_harmless

_LARGEST = 64 << 20  # bytes of an object file
_MOST_SYMBOLS = 2_000_000  # over all tables; the kit's own kernels have some hundred
_MOST_TABLES = 16
_MOST_NAMES = 50_000  # of functions that are called; each is looked at
_LONGEST = 512  # bytes of a name that are looked at
# Names of CUDA that have C linkage.
_OF_CUDA = re.compile(r"(cu|cuda|cublas|cublasLt|nvml|nvrtc)[A-Z]\w*")
#: A hint.
SMALL = "kernels and launchers need some hundred kilobytes: is a table or a template too large?"
_OWN_NAMES = (
    "give functions names of their own, or make them static: these are not yours to replace"
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
_LOCAL, _FUNCTIONS = 0, (2, 10)  # STB_LOCAL; STT_FUNC and STT_GNU_IFUNC
_CODE = 4  # SHF_EXECINSTR
_IN_MANY = 0xFFFF  # SHN_XINDEX: the section's number is elsewhere
_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libstdc++.so.6")

Table = np.ndarray[Any, Any]


class Unusable(ValueError):
    """An object file that can't be graded: a sentence, and a hint."""

    def __init__(self, sentence: str, hint: str = SMALL) -> None:
        super().__init__(sentence)
        self.hint = hint


def reaching(obj: Path, own: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Names of functions by which an object file reaches beyond its own work, sorted. `own` are
    those of the kit's headers and of the submission's other files.

    Raises:
        Unusable: it can't be read, or not within the limits, or defines what a library has.
    """
    calls, defines = _names(obj)
    taken = sorted(name for name in defines if _is_of_a_library(name))
    if taken:
        names = ", ".join(taken[:5])
        raise Unusable(f"it defines {names}, which the C library or CUDA has", _OWN_NAMES)
    others = (name for name in calls if not is_harmless(name, own))
    return tuple(sorted(name for name in others if name not in own or _is_of_a_library(name)))


def defined(obj: Path) -> set[str]:
    """Names of functions that an object file has for others.

    Raises:
        Unusable: it can't be read, or not within the limits.
    """
    return _names(obj)[1]


def _names(obj: Path) -> tuple[set[str], set[str]]:
    """What an object file calls, and the functions that it has for others."""
    if obj.stat().st_size > _LARGEST:
        raise Unusable(f"{obj.name} is larger than {_LARGEST >> 20} MiB")
    content = obj.read_bytes()
    calls: set[str] = set()
    defines: set[str] = set()
    if not content.startswith(b"\x7fELF"):
        return calls, defines  # of another system, whose files this does not read
    try:
        runs = _sections(content, obj.name)["flags"] & _CODE != 0
        for symbols, texts in _tables(content, obj.name):
            place = symbols["section"]
            calls.update(_named(symbols[place == 0], texts, obj.name))
            # What a symbol is said to be is its author's word: code is what lies where code does.
            code = runs[np.where(place < len(runs), place, 0)] | (place == _IN_MANY)
            code |= np.isin(symbols["info"] & 15, _FUNCTIONS)
            seen = (place != 0) & (symbols["info"] >> 4 != _LOCAL) & code
            defines.update(_named(symbols[seen], texts, obj.name))
    except (struct.error, IndexError, OverflowError) as error:
        raise Unusable(f"{obj.name} can't be read: {error}") from error
    return calls, defines


def _is_of_a_library(name: str) -> bool:
    """Whether the C library, or CUDA, has a function of this name; names of C++ hold more."""
    if name.startswith("_Z") or name == "main":
        return False
    return bool(_OF_CUDA.fullmatch(name)) or any(_has(library, name) for library in _opened())


@functools.cache
def _opened() -> tuple[ctypes.CDLL, ...]:
    """The system's libraries, each by its name: this process may have loaded others' kernels."""
    opened = []
    for library in _LIBRARIES:
        try:
            opened.append(ctypes.CDLL(library))
        except OSError:  # another C library, or an old one's parts
            continue
    return tuple(opened)


def _has(library: ctypes.CDLL, name: str) -> bool:
    try:
        library[name]
    except (AttributeError, ValueError):  # the latter of a name that is none
        return False
    return True


def _tables(content: bytes, name: str) -> Iterator[tuple[Table, bytes]]:
    """Each table of symbols, with the bytes of its names."""
    sections = _sections(content, name)
    places = np.flatnonzero(np.isin(sections["type"], _SYMBOL_TABLES))
    sizes = sections["size"][places].astype(object)
    if len(places) > _MOST_TABLES or sizes.sum() > _MOST_SYMBOLS * _SYMBOL.itemsize:
        raise Unusable(f"{name} has more than {_MOST_SYMBOLS:,} symbols")
    for place in places:
        table = sections[place]
        raw = _content(content, table, name)
        symbols = np.frombuffer(raw, _SYMBOL, len(raw) // _SYMBOL.itemsize)
        texts = _content(content, sections[int(table["link"])], name)
        yield symbols, texts


def _sections(content: bytes, name: str) -> Table:
    header = _HEADER.unpack_from(content)
    ident, offset, size, count = header[0], header[6], header[11], header[12]
    if ident[4:6] != b"\x02\x01" or (offset and size != _SECTION.itemsize):
        raise Unusable(f"{name} can't be read: it is no object file of 64 bits")
    if offset and not count:  # more than fit in the header's 16 bits
        count = int(np.frombuffer(content[offset:][: _SECTION.itemsize], _SECTION)[0]["size"])
    if offset + count * _SECTION.itemsize > len(content):
        raise Unusable(f"{name} can't be read: it is cut short")
    return np.frombuffer(content, _SECTION, count, offset)


def _content(content: bytes, section: Any, name: str) -> bytes:
    if section["type"] == _WITHOUT_CONTENT:
        return b""
    start, size = int(section["offset"]), int(section["size"])
    if start + size > len(content):
        raise Unusable(f"{name} can't be read: it is cut short")
    return content[start : start + size]


def _named(symbols: Table, texts: bytes, file: str) -> Iterator[str]:
    """The names of symbols, each once, without the versions behind them."""
    places = np.unique(symbols["name"]).tolist()
    if len(places) > _MOST_NAMES:
        raise Unusable(f"{file} calls or defines more than {_MOST_NAMES:,} functions")
    for place in places:
        end = texts.find(b"\0", place, place + _LONGEST)
        whole = texts[place : end if end >= 0 else place + _LONGEST].decode("utf-8", "replace")
        if name := whole.partition("@")[0]:
            yield name
