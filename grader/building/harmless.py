"""The functions that kernels and launchers may call, by their names in an object file.

A list of forbidden functions could never be complete: each library offers more ways into the system
than anybody knows. So this lists what honest work calls: C++'s own library except for files,
mathematics, memory, text, output to the terminal, threads, clocks, CUDA and its libraries, what
compilers call by themselves, and what the kit's headers declare.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from grader.building.tree import emulator_of

# Of C++'s library, by what their names hold: files, and what opens one by a name.
_FILES_OF_CPP = re.compile(
    r"basic_[io]?f(stream|ilebuf)|12__basic_file|stdio_filebuf|10filesystem|4__fs"
)
# What is named, of what, with template arguments or parameters behind it.
_OF_EMULATOR = re.compile(r"(?<!\d)8emulator((?:\d+[A-Za-z_]\w*)?)")

_TEXT = r"""
    mem(c?cpy|pcpy|move|set|cmp|r?chr|mem) bcmp bcopy bzero ffs(l|ll)? (str|wcs|wmem)\w+ __str\w+
    to(upper|lower) is(alnum|alpha|blank|cntrl|x?digit|graph|lower|print|punct|space|upper|ascii)
    __ctype_\w+ ato(f|i|l|ll) __isoc(99|23)_(v?sscanf|(str|wcs)to\w+) v?sscanf
    (new|use|dup|free|set)locale localeconv __errno_location
"""
_OUTPUT = r"""
    v?f?w?printf v?sn?printf v?asprintf put(s|char|c) fput[cs] fwrite(_unlocked)? fflush ferror
    perror _IO_putc setv?buf setlinebuf std(out|err)
"""
_PROGRAM = r"""
    abort _?exit _Exit quick_exit atexit at_quick_exit __assert(_fail|_perror_fail)?
    malloc calloc realloc(array)? free aligned_alloc posix_memalign memalign malloc_usable_size
    qsort(_r)? bsearch s?rand(_r)? s?random (d|e|l|n|m|j)rand48 (s|seed)?rand48
    (l|ll|imax)?(abs|div)
"""
_TIME = r"""
    time clock clock_get(time|res) gettimeofday timespec_get difftime (local|gm)time(_r)? mktime
    (c|asc)time(_r)? u?sleep (clock_)?nanosleep
"""
_THREADS = r"""
    pthread_(create|join|detach|self|equal|once|exit|yield|key_create|key_delete|[gs]etspecific)
    pthread_(mutex|mutexattr|cond|condattr|rwlock|rwlockattr|spin|barrier|barrierattr|attr)_\w+
    __pthread_key_create sem_(init|destroy|(try|timed)?wait|post|getvalue) sched_(yield|getcpu)
    sysconf get_nprocs(_conf)? getpagesize
"""
_REAL = r"""
    a?(sin|cos|tan)h? atan2 sincos exp(2|10|m1)? pow10 log(2|10|1p|b)? ilogb pow sqrt cbrt hypot
    fabs fmod remainder remquo drem fma fmax fmin fdim ceil floor round(even)? trunc l?l?rint
    nearbyint l?lround frexp ldexp scalb(n|ln)? modf next(after|toward) copysign nan erfc?
    [tl]?gamma lgamma_r [jy][01n] signbit is(nan|inf) finite significand
    c(abs|arg|imag|real|conj|proj|exp|log|log10|pow|sqrt|a?(sin|cos|tan)h?)
"""
_COMPILER = r"""
    _GLOBAL_OFFSET_TABLE_ __stack_chk_(fail|guard) __dso_handle __tls_get_addr __emutls_\w+
    __cxa_\w+ __dynamic_cast _Unwind_\w+ __g(xx|cc)_personality\w*
    __cpu_(model|features2|indicator_init)
    __(atomic|sync|aarch64)_\w+ __[a-z]+([bhsdtx][fic])+[234]? __(start|stop)_emulator_\w+
    __(tsan|ubsan_handle)_\w+ _ITM_\w+ __once_proxy __libc_single_threaded
"""
_CUDA = r"""
    cu(da)?[A-Z]\w* cu(blas|blasLt|blasXt|rand|sparse|fft|dnn|solver[A-Z][a-z])[A-Z]\w*
    (nvtx|nccl|nvrtc)[A-Z]\w* __cuda\w+ __nv_\w+ __fatbinwrap\w* (cu|thrust|nvtx)_\w+
"""


def _all_of(*groups: str) -> str:
    return "|".join(word for group in groups for word in group.split())


_HARMLESS = re.compile(
    f"(?:{_all_of(_TEXT, _OUTPUT, _PROGRAM, _TIME, _THREADS, _COMPILER, _CUDA)}"
    rf"|(?:__)?(?:{_all_of(_REAL)})[fl]?(?:f16|f32|f64|f128)?x?(?:_finite)?"
    r"|__(?:isnan|isinf|finite|fpclassify|signbit|iseqsig|issignaling)(?:f|l|f128)?"
    r"|fe(?:[gs]etround|(?:clear|raise|test|get|set)except(?:flag)?|holdexcept|updateenv|[gs]etenv))"
)
_CHECKED = re.compile(r"__(\w+)_chk")  # what a hardened build calls instead


def is_harmless(name: str, declared: frozenset[str]) -> bool:
    """Whether a kernel or a launcher may call a function. `declared` holds the kit's names."""
    if name.startswith("_Z"):
        return not _FILES_OF_CPP.search(name) and _is_public(name, declared)
    checked = _CHECKED.fullmatch(name)
    return bool(_HARMLESS.fullmatch(checked[1] if checked else name))


def _is_public(name: str, declared: frozenset[str]) -> bool:
    """Whether the emulated GPU's headers have every name, of those in its namespace."""
    return all(
        declared.issuperset(_parts(name[found.start(1) :])) for found in _OF_EMULATOR.finditer(name)
    )


def _parts(mangled: str) -> list[str]:
    """The first two names in a mangled name: of `13Configuration4takeEv`, those of class and
    method."""
    parts = []
    while (digits := re.match(r"\d{1,3}", mangled)) and (size := int(digits[0])):
        parts.append(mangled[digits.end() :][:size])
        mangled = mangled[digits.end() + size :]
    return parts


@functools.cache
def declared(kit: Path) -> frozenset[str]:
    """The words of the kit's headers, without those in comments."""
    headers = [*kit.glob("src/*.h"), *(emulator_of(kit) / "include").rglob("*.*")]
    found: set[str] = set()
    for path in headers:
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(errors="replace"), flags=re.S)
        found.update(re.findall(r"[A-Za-z_]\w*", code))
    return frozenset(found)
