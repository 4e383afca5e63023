"""Finds what compiled kernels call of the system. They have no honest use for most of it.

Code in the student's process that reaches the process's memory can change whatever that process
says about itself. So the grader believes what it can't see otherwise, such as the number of
allocations, only of kernels that call nothing but what grader.building.harmless lists. A function
that kernels define under a name of the C library or of CUDA would replace the original for the
whole process, the clock that times them among it: such a build is refused.

Symbol tables can't show everything: a system call made by an instruction, an address computed from
a function's address or found in memory, a FILE whose fields are changed. C++ constructs objects
before any check runs, so code that runs when the library is loaded proves nothing.

A compiler made the object file from a student's source, so it may be as large and odd as a file can
be. Its tables are read as arrays, within bounds, in time proportional to its size.
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
_OWN_NAMES = "rename these functions, or make them static: a submission must not replace them"

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
    """An object file can't be graded. Holds a sentence, and a hint."""

    def __init__(self, sentence: str, hint: str = SMALL) -> None:
        super().__init__(sentence)
        self.hint = hint


def reaching(obj: Path, own: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The functions by which an object file reaches beyond its own work, sorted by name. `own`
    holds the names of the kit's headers and of the submission's other files.

    Raises:
        Unusable: the file can't be read within the limits, or defines a function of a library.
    """
    calls, defines = _names(obj)
    taken = sorted(name for name in defines if _is_of_a_library(name))
    if taken:
        names = ", ".join(taken[:5])
        raise Unusable(
            f"it defines {names}, which the C library or CUDA already defines", _OWN_NAMES
        )
    others = (name for name in calls if not is_harmless(name, own))
    return tuple(sorted(name for name in others if name not in own or _is_of_a_library(name)))


def called(obj: Path) -> set[str]:
    """The names of the functions of others that an object file calls.

    Raises:
        Unusable: the file can't be read within the limits.
    """
    return _names(obj)[0]


def defined(obj: Path) -> set[str]:
    """The names of the functions that an object file offers to others.

    Raises:
        Unusable: the file can't be read within the limits.
    """
    return _names(obj)[1]


def _names(obj: Path) -> tuple[set[str], set[str]]:
    """(functions that an object file calls, functions that it offers to others)."""
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
    """Whether the C library or CUDA has a function of this name. C++ names hold their types too, so
    they can't collide."""
    if name.startswith("_Z") or name == "main":
        return False
    return bool(_OF_CUDA.fullmatch(name)) or any(_has(library, name) for library in _opened())


@functools.cache
def _opened() -> tuple[ctypes.CDLL, ...]:
    """The system's libraries, each opened by its name. The names in this whole process would not
    do: it may have loaded the kernels of others."""
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
