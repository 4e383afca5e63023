"""Builds the emulated GPU and the programs of this folder, once, outside of the source tree.

Environment, for another CPU than this one (arm64_check.py):
  CXX           the compiler, as configure.py reads it
  EMULATOR_RUN  what starts a program, as "qemu-aarch64 -L /usr/aarch64-linux-gnu"
"""

import fcntl
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent
ROOT = PROGRAMS.parent.parent
EMULATOR = ROOT / "solution" / "emulator"
sys.path[:0] = [str(ROOT / "solution"), str(EMULATOR)]

import configure  # noqa: E402

# As in the Makefile: several such libraries may be loaded in one process.
BIND = ["-Wl,-Bsymbolic"] if sys.platform == "linux" else []
RUNNER = shlex.split(os.environ.get("EMULATOR_RUN", ""))
# What the Makefile compiles kernels with.
KERNEL_FLAGS = [
    "-ffp-contract=off",
    "-fopenmp-simd",
    "-Wno-pass-failed",
    "-include",
    "cuda_runtime.h",
]

# And those of kernels in the checked build.
CHECK_FLAGS = [
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fsanitize=thread",
    "-fsanitize=bounds,alignment",
]


class Kit:
    """The emulator's library and the test programs, built in a folder.

    For another CPU: its compiler, what replaces the libraries of this one, and what starts a
    program of its; each a command line as a list.
    """

    def __init__(self, folder, cxx=None, libraries=None, runner=None, checked=False):
        self.folder = folder
        self.checked = checked
        folder.mkdir(exist_ok=True)
        self.library = folder / "libemulator.so"
        variables = configure.emulated_variables()
        self.cxx = cxx or shlex.split(configure.find_cxx())
        of_cxx = configure.check_flags if checked else configure.kernel_flags
        self.kernel_flags = KERNEL_FLAGS + (CHECK_FLAGS if checked else [])
        self.kernel_flags += of_cxx(shlex.join(self.cxx)).split()
        self.runner = RUNNER if runner is None else runner
        self.flags = ["-std=c++17", "-fPIC", "-O2", "-Wall", "-Wfatal-errors"]
        self.flags += [f"-I{EMULATOR / 'include'}", f"-I{PROGRAMS}"]
        self.flags += ["-g", "-DEMULATOR_CHECKED"] if checked else []
        self.flags += shlex.split(variables["BLAS_INCLUDE"])
        self.libraries = shlex.split(variables["LIBS"]) if libraries is None else libraries

    def object_of(self, source):
        """Where the object file of a source goes."""
        return self.folder / f"{source.stem}.o"

    def compile(self, source, output, *flags):
        """Compiles a file; the compiler's messages are the failure."""
        done = self.call(*self.cxx, *self.flags, *flags, "-c", source, "-o", output)
        assert done.returncode == 0, done.stderr
        return output

    def call(self, *command, env=None):
        """Runs a command to its end."""
        command = [str(word) for word in command]
        environment = {**os.environ, **(env or {})}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)

    def build_library(self):
        """The emulator as a library."""
        sources = sorted((EMULATOR / "src").glob("*.cc"))
        sources += sorted((EMULATOR / "src" / "checked").glob("*.cc")) if self.checked else []
        with ThreadPoolExecutor() as pool:
            objects = list(
                pool.map(lambda s: self.compile(s, self.folder / f"{s.stem}.o"), sources)
            )
        done = self.call(*self.cxx, "-shared", *BIND, "-o", self.library, *objects, *self.libraries)
        assert done.returncode == 0, done.stderr

    def rewrite(self, source, output):
        """Runs rewrite.py as the Makefile does."""
        mode = ["--checked"] if self.checked else []
        return self.call(sys.executable, EMULATOR / "rewrite.py", *mode, source, "-o", output)

    def compile_kernels(self, source):
        """The object file of a .cu file."""
        plain = self.folder / f"{source.stem}.cu.cc"
        done = self.rewrite(source, plain)
        assert done.returncode == 0, done.stderr
        return self.compile(plain, self.folder / f"{source.stem}.cu.o", *self.kernel_flags)

    def build_shared(self, source):
        """A library of a .cu file."""
        library, compiled = self.folder / f"lib{source.stem}.so", self.compile_kernels(source)
        rpath = f"-Wl,-rpath,{self.folder}"
        done = self.call(*self.cxx, "-shared", "-o", library, compiled, self.library, rpath)
        assert done.returncode == 0, done.stderr
        return library

    def build_program(self, source):
        """A program of a .cu file."""
        program, compiled = self.folder / source.stem, self.compile_kernels(source)
        done = self.call(
            *self.cxx,
            compiled,
            "-o",
            program,
            self.library,
            f"-Wl,-rpath,{self.folder}",
            *self.libraries,
        )
        assert done.returncode == 0, done.stderr

    def run(self, program, case, **env):
        """Runs a case of a program."""
        return self.call(*self.runner, self.folder / program, case, env=env)


def programs():
    """The sources of all programs; speed.cu is none."""
    return sorted(path for path in PROGRAMS.glob("*.cu") if path.stem != "speed")


def built(folder):
    """The library and all programs, in a folder; built by the process that comes first."""
    kit = Kit(folder)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            kit.build_library()
            with ThreadPoolExecutor() as pool:
                list(pool.map(kit.build_program, programs()))
            (folder / "built").touch()
    return kit
