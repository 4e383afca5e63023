"""The C++ compiler and the BLAS that the emulated GPU needs, as they are on this machine.

Environment: CXX, the C++ compiler; default g++, clang++, c++, or the ziglang package.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys


class ToolchainError(Exception):
    """Something is missing; the message says what to install."""


def package_folder(name):
    """Folder of an installed Python package, or None."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(spec.submodule_search_locations))


def find_cxx():
    """The C++ compiler as a command line."""
    named = os.environ.get("CXX")
    if named:
        return named
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return name
    if package_folder("ziglang"):
        return "%s -m ziglang c++" % shlex.quote(sys.executable)
    raise ToolchainError(
        "no C++ compiler; hint: python3 -m pip install ziglang, or your system's g++"
    )


def check_flags(cxx):
    """Options that the compiler of the checked build needs beyond -fsanitize=thread."""
    try:
        command = shlex.split(cxx) + ["--version"]
        version = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    # Else clang leaves out a read that a write to the same address follows, and ends the process
    # at an index past the end; and g++ leaves out the copies that it makes of calls.
    # Accesses of what is volatile call functions of their own (clang 11, GCC 11 and later).
    if b"clang" in version.stdout:
        flags = "-mllvm -tsan-instrument-read-before-write=1 -fno-sanitize=local-bounds"
        return flags + " -mllvm -tsan-distinguish-volatile=1"
    major = re.search(rb"\) (\d+)\.", version.stdout)
    knows_volatile = major is not None and int(major.group(1)) >= 11
    # Some systems' compilers make __memcpy_chk of memcpy, which has no hook.
    flags = "-fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -U_FORTIFY_SOURCE"
    # Fences, of which it warns since then, our functions know.
    return flags + (" --param=tsan-distinguish-volatile=1 -Wno-tsan" if knows_volatile else "")


def kernel_flags(cxx):
    """What kernels are compiled with, for a compiler and this CPU; results are the same bits.

    `make` asks at every build, so that kernels are built again for another CPU.
    """
    try:
        done = subprocess.run(
            [*shlex.split(cxx), "-dM", "-E", "-x", "c++", os.devnull],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "-O3"
    macros = {line.split()[1] for line in done.stdout.splitlines() if line.count(" ") >= 1}
    flags = "-O3 -Wno-pass-failed"  # nvcc does not say which loops it could not unroll, either
    # GCC takes long for -O3, which has it sum up in memory (-floop-unroll-and-jam), and for -O2;
    # these passes of theirs are what makes kernels fast (the second: expf over several threads,
    # the third: tiles in shared memory).
    if "__GNUC__" in macros and "__clang__" not in macros:
        flags = "-O1 -ftree-vectorize -fexpensive-optimizations -ftree-vrp"
        flags += " -fvect-cost-model=dynamic -fpeel-loops"
        # An index past a row's end, which a GPU takes for the next row's, would end no loop.
        flags += " -fno-aggressive-loop-optimizations"
        # In kernels `new` gives null where there is no memory, and programs ask for that.
        flags += " -fcheck-new"
    return flags + (" -mavx2" if "__x86_64__" in macros and has_avx2() else "")


def flags_of_kernels(cxx, checked=False):
    """All that CUDA sources are compiled with for the emulated GPU, as a list of words."""
    # nvcc, too, lets a pointer of another type see the same memory.
    language = ["-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unknown-pragmas"]
    language += ["-DEMULATOR_CUDA_SOURCE"]
    if not checked:
        # With lines for what is told of a kernel that fails; the code stays as it is.
        return [*kernel_flags(cxx).split(), "-g1", "-fopenmp-simd", *language]
    # The compiler calls a function at each access. These functions are the emulator's own, in
    # emulator/src/checked, so nothing is linked with -fsanitize.
    return [
        "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=thread", "-fsanitize=bounds,alignment",
        "-DEMULATOR_CHECKED", *language, *check_flags(cxx).split(),
    ]  # fmt: skip


def has_avx2():
    """Whether this CPU can compute 8 floats at once."""
    try:
        with open("/proc/cpuinfo") as file:
            return " avx2 " in file.read()
    except OSError:
        return False


def flag(prefix, path):
    """A compiler's option with a path in it, quoted for the shell and for make."""
    return shlex.quote(prefix + path).replace("$", "$$")


def emulated_variables():
    """Make variables of a build for the emulated GPU."""
    folder = package_folder("scipy_openblas32")
    if folder is None:
        raise ToolchainError(
            "the BLAS behind the emulated cuBLAS is missing; "
            "hint: python3 -m pip install scipy-openblas32"
        )
    lib = os.path.join(folder, "lib")
    return {
        "BLAS_INCLUDE": flag("-I", os.path.join(folder, "include")),
        "LIBS": "%s -lscipy_openblas %s -lpthread" % (flag("-L", lib), flag("-Wl,-rpath,", lib)),
    }
