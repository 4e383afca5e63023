"""What compiled kernels call of the system: they have no honest use for most of it.

Code in the student's process can change whatever that process tells of itself, once it reaches
the process's memory. What the grader can't see otherwise, as how often memory was allocated, is
therefore believed only of kernels that call nothing of the kind.
"""

from __future__ import annotations

import re
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

_LARGEST = 64 << 20  # bytes of an object file
# Loading code, opening files, other processes and their memory, new processes, Python, and the
# environment, by which the emulated GPU is told to protect memory.
_REACHING = re.compile(
    r"dl(open|sym|vsym|mopen)|(__)?open(at)?(64)?(_2)?|p?write(v)?(64)?(v2)?|process_vm_(read|write)v|ptrace|"
    r"f(d|re)?open(64)?|_ZNSt\d+basic_[io]?f(stream|ilebuf)\w*|prctl|syscall|mprotect|pkey_mprotect|mmap(64)?|mremap|memfd_create|shm_open|v?fork|clone3?|"
    r"exec(v|ve|vp|vpe|l|le|lp)|fexecve|posix_spawnp?|system|popen|Py[A-Z_]\w*|(set|unset|put|clear)env|(__)?environ"
)


def reaching(obj: Path) -> tuple[str, ...]:
    """Names of functions by which an object file reaches beyond its own work, sorted.

    Raises:
        ValueError: it can't be read.
    """
    if obj.stat().st_size > _LARGEST:
        raise ValueError(f"{obj.name} is larger than {_LARGEST >> 20} MiB")
    try:
        with open(obj, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return ()  # of another system, whose files this does not read
            return tuple(sorted(filter(_REACHING.fullmatch, _undefined(ELFFile(file)))))
    except (ELFError, AssertionError, AttributeError, KeyError, UnicodeError) as error:
        raise ValueError(f"{obj.name} can't be read: {error}") from error


def _undefined(elf: ELFFile) -> set[str]:
    tables = [part for part in elf.iter_sections() if isinstance(part, SymbolTableSection)]
    return {
        symbol.name
        for table in tables
        for symbol in table.iter_symbols()
        if symbol["st_shndx"] == "SHN_UNDEF"
    }
