"""Compiles the kernels that a program needs, and keeps them on disk for the next one.

A library holds the kernels that were missing when a program was made. A kernel's name is a hash of
its source, of the headers, of the emulated GPU where it runs there, and of the processor, so that
what is found is right. `make` compiles: the Makefile knows the compilers of this machine.
"""

import contextlib
import ctypes
import functools
import glob
import hashlib
import os
import subprocess
import sys

from dlsys._base import CHECKED, find_lib_path
from dlsys.ndarray import is_emulated

try:
    import fcntl
except ImportError:  # a system without such locks compiles twice
    fcntl = None

_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCES = os.path.normpath(os.path.join(_HERE, "..", "..", "..", "src", "backend"))

#: Kernels for which it pays to start another compiler.
_WORTH_A_COMPILER = 12

#: Lines of /proc/cpuinfo that say what code a processor runs.
_PROCESSOR = ("flags", "model name", "Features", "CPU part")

#: What a user may say of it; and turns of an empty loop, some nanoseconds each.
_WAITS, _SPINS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"), "5000"

#: name -> address.
_LOADED = {}

#: Whether who asks for kernels is only asked for which.
_only_asks = False


class CompileError(RuntimeError):
    """A kernel did not compile; the message has the compiler's first lines."""


class _Asked(Exception):
    """Somebody asked for the kernels of the keys in `args`."""


@functools.cache
def capability():
    """(major, minor) of the first GPU, by the driver, or None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    found, device = (ctypes.c_int * 2)(), ctypes.c_int()
    failed = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0)
    for i, attribute in enumerate((75, 76)):  # the driver's numbers of major and minor
        at = ctypes.byref(found, i * ctypes.sizeof(ctypes.c_int))
        failed = failed or driver.cuDeviceGetAttribute(at, attribute, device)
    return None if failed else tuple(found)


def root():
    """The folder that holds src/ and build/."""
    return os.path.normpath(os.path.join(_HERE, "..", "..", ".."))


def folder():
    """Where libraries are kept: DLSYS_KERNELS, or build/kernels."""
    return os.environ.get("DLSYS_KERNELS") or os.path.join(
        os.path.dirname(os.path.dirname(find_lib_path())), "kernels"
    )


def kernels(backend, keys):
    """The addresses of functions for the keys of instructions, compiled where they are new.

    Raises:
        CompileError: there is no compiler, or it refuses the source.
    """
    if _only_asks:
        raise _Asked(*keys)
    wanted = {key: _name_of(backend, key) for key in dict.fromkeys(keys)}
    missing = {name: key for key, name in wanted.items() if name not in _LOADED}
    absent = {name: key for name, key in missing.items() if not os.path.exists(_path_of(name))}
    if absent:
        os.makedirs(folder(), exist_ok=True)
        with _alone():
            # Another process may have compiled them meanwhile.
            absent = {n: key for n, key in absent.items() if not os.path.exists(_path_of(n))}
            if absent:
                _compile(backend, absent)
    for name in missing:
        with _short_waits():
            library = ctypes.CDLL(_path_of(name))
        _LOADED[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    return [_LOADED[wanted[key]] for key in keys]


def asked_by(make):
    """The keys of the kernels that `make()`, which makes a program, asks for; it does not end.

    None is compiled: many programs are asked first, and `kernels` compiles for all in one go.
    """
    global _only_asks
    _only_asks = True
    try:
        make()
    except _Asked as asked:
        return list(asked.args)
    finally:
        _only_asks = False
    return []


def are_only_asked():
    """Whether `asked_by` is at work, so that no kernel runs."""
    return _only_asks


@contextlib.contextmanager
def _short_waits():
    """Threads of GNU's OpenMP, if it is loaded now, wait for work a tenth of a millisecond.

    As it comes they keep their processors busy for some milliseconds after each loop, and a
    library with threads of its own, as numpy's, gets slower by as much.
    """
    if any(os.environ.get(name) for name in _WAITS):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def runner(backend):
    """The C function that executes steps: (steps, count, threads, stream) -> which one failed,
    or -1."""
    (address,) = kernels(backend, [("runner",)])
    whole, address_of = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(whole, address_of, whole, whole, address_of)
    return kind(address)


def text_of(backend, names):
    """The source file of some kernels, name -> key."""
    includes = "".join('#include "%s"\n' % header for header in backend.HEADERS)
    body = "\n".join(
        "// %s\n%s" % (_described(key), backend.source(name, key)) for name, key in names.items()
    )
    return "%s\nusing namespace dlsys::backend;\n\n%s" % (includes, body)


def readable(backend, keys):
    """The sources of kernels as a person reads them.

    Args:
        keys: key of an instruction -> the nodes of each launch, in words.
    """
    texts = []
    for key, launches in keys.items():
        comment = "".join("// %s\n" % said for said in launches)
        texts.append(comment + backend.source(key[0], key))
    return "\n".join(texts)


def _described(key):
    """A key in words: elementwise tanh(x0) float32 float32 ..."""
    words = []
    for part in key:
        words += [str(each) for each in part] if isinstance(part, tuple) else [str(part)]
    return " ".join(words)


@functools.lru_cache(10000)
def _name_of(backend, key):
    """A hash of a kernel's source, of the headers, and of the processor."""
    text = "\0".join((backend.source("kernel", key), surroundings(backend)))
    return "k_" + hashlib.sha256(text.encode()).hexdigest()[:20]


@functools.cache
def surroundings(backend):
    """A hash of what decides beside a kernel's source what its library holds."""
    runs_on = [] if backend.SUFFIX != ".cu" or is_emulated() else [str(capability())]
    found = hashlib.sha256("\0".join((backend.__name__, str(CHECKED), *runs_on)).encode())
    for path in (*sorted(glob.glob(os.path.join(_SOURCES, "*"))), *_emulator_files(backend)):
        with open(path, "rb") as file:
            found.update(b"\0" + file.read())
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        found.update("".join(sorted({n for n in file if n.startswith(_PROCESSOR)})).encode())
    return found.hexdigest()


def _emulator_files(backend):
    """What the emulated GPU makes of a kernel, and how its library is called: passes and headers.

    A kernel that knows other headers than the library passes it structs of another size.
    """
    if backend.SUFFIX != ".cu" or not is_emulated():
        return []
    folders = [os.path.join(root(), place, "emulator") for place in ("", "..")]
    found = next((each for each in folders if os.path.isdir(each)), folders[0])
    kinds = ("**/*.py", "include/**/*.h")
    return sorted(p for kind in kinds for p in glob.glob(os.path.join(found, kind), recursive=True))


@contextlib.contextmanager
def _alone():
    """One process of all that share the folder; a process that ends lets go."""
    with open(os.path.join(folder(), "lock"), "w") as file:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _path_of(name):
    return os.path.join(folder(), name + ".so")


def _compile(backend, names):
    """Compiles kernels, name -> key: into one library, or into one for each processor."""
    ordered = sorted(names.items())
    parts = max(1, min(len(os.sched_getaffinity(0)), len(ordered) // _WORTH_A_COMPILER))
    started = [_started(backend, dict(ordered[i::parts])) for i in range(parts)]
    said = [process.communicate()[0] for process, *_ in started]
    for text, process in zip(said, started):
        _finish(text, *process)


def _started(backend, names):
    """(make, the source, what it builds, where that belongs, the names of its kernels)."""
    whole = _path_of("lib_" + hashlib.sha256("".join(names).encode()).hexdigest()[:20])
    source = whole[: -len(".so")] + backend.SUFFIX
    write(source, text_of(backend, names))
    # Built beside its place, and moved there: another process may do the same now.
    built = "%s.%d" % (whole, os.getpid())
    command = ["make", "-s", "--no-print-directory", "-C", root(), "kernels"]
    command += ["PYTHON=" + sys.executable, "SOURCE=" + source, "TARGET=" + built]
    if CHECKED and backend.SUFFIX == ".cu":
        command += ["CHECKED=1", "DEVICE=emulated"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment()
    )
    return process, source, built, whole, names


def _finish(said, process, source, built, whole, names):
    """Puts a library in its place; each kernel's name becomes a link to it."""
    if process.returncode != 0 or not os.path.exists(built):
        raise CompileError("%s does not compile:\n%s" % (source, "\n".join(said.splitlines()[:20])))
    os.replace(built, whole)
    for name in names:
        link = "%s.%d" % (_path_of(name), os.getpid())
        with contextlib.suppress(FileNotFoundError):
            os.remove(link)
        os.symlink(os.path.basename(whole), link)
        os.replace(link, _path_of(name))


def _environment():
    """Without what an outer make would tell the inner one."""
    return {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}


def write(path, text):
    """Writes a file at once, or not at all."""
    temporary = "%s.%d" % (path, os.getpid())
    with open(temporary, "w") as file:
        file.write(text)
    os.replace(temporary, path)
