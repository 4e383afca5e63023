"""Builds the emulated GPU and the programs of this folder, once, outside of the source tree.

Environment, for another CPU than this one (arm64_check.py):
  CXX           the compiler, as toolchain.py reads it
  EMULATOR_RUN  what starts a program, as "qemu-aarch64 -L /usr/aarch64-linux-gnu"
"""

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

PROGRAMS = Path(__file__).resolve().parent
ROOT = PROGRAMS.parent.parent
EMULATOR = ROOT / "emulator"
sys.path[:0] = [str(ROOT / "solution"), str(EMULATOR)]

import compiler  # noqa: E402
import emucc  # noqa: E402
import toolchain  # noqa: E402
from rewrite import CHECKED, LOOPS  # noqa: E402

# What check.h includes.
HEADERS = ("cstdio", "cstdlib", "map", "string", "vector")
# As in the Makefile: several such libraries may be loaded in one process.
BIND = ["-Wl,-Bsymbolic"] if sys.platform == "linux" else []
# Names the folder where a run of the tests keeps the libraries that it has built.
KEPT = "EMULATOR_TEST_LIBRARIES"
RUNNER = shlex.split(os.environ.get("EMULATOR_RUN", ""))


class Kit:
    """The emulator's library and the test programs, built in a folder.

    For another CPU: its compiler, what replaces the libraries of this one, and what starts a
    program of its; each a command line as a list.
    """

    def __init__(self, folder, cxx=None, libraries=None, runner=None, checked=False):
        self.folder = folder
        self.checked = checked
        self.is_usual = cxx is None and libraries is None
        folder.mkdir(exist_ok=True)
        self.library = folder / "libemulator.so"
        variables = toolchain.emulated_variables()
        self.cxx = cxx or shlex.split(toolchain.find_cxx())
        self.kernel_flags = toolchain.flags_of_kernels(shlex.join(self.cxx), checked)
        self.prelude = compiler.PRELUDE
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
        """Runs a command to its end; a limit of time is for what never ends, on any machine."""
        command = [str(word) for word in command]
        environment = {**os.environ, **(env or {})}
        return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)

    def build_library(self):
        """The emulator as a library. The usual one is emucc.py's, which keeps it; another is built
        once by a run of the tests, for each way to compile. And what stands around a program."""
        for name in emucc.ENDS:
            self.compile(EMULATOR / f"src/ends/{name}.cc", self.library.parent / f"ends_{name}.o")
        if self.is_usual:
            asked = SimpleNamespace(
                cxx=shlex.join(self.cxx), mode=CHECKED if self.checked else LOOPS, is_verbose=False
            )
            shutil.copy(emucc.Driver(asked, str(self.folder)).library(), self.library)
            return
        if KEPT not in os.environ:
            self.link_library(self.library)
            return
        way = repr((self.cxx, self.flags, self.libraries)).encode()
        kept = Path(os.environ[KEPT]) / f"{hashlib.sha256(way).hexdigest()[:16]}.so"
        with open(kept.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                self.link_library(self.library)
                shutil.copy(self.library, kept.with_suffix(".new"))
                kept.with_suffix(".new").rename(kept)
        shutil.copy(kept, self.library)

    def link_library(self, library):
        """Compiles the emulator's sources, and links them."""
        sources = sorted((EMULATOR / "src").glob("*.cc"))
        sources += sorted((EMULATOR / "src" / "checked").glob("*.cc")) if self.checked else []
        standard = self.folder / "standard.h"
        headers = (str(EMULATOR / "src" / "standard.h"),)
        compiler.precompile(self.cxx, self.flags, str(standard), headers)

        def compiled(source):
            return self.compile(source, self.folder / f"{source.stem}.o", "-include", standard)

        with ThreadPoolExecutor() as pool:
            objects = list(pool.map(compiled, sources))
        done = self.call(*self.cxx, "-shared", *BIND, "-o", library, *objects, *self.libraries)
        assert done.returncode == 0, done.stderr

    def linked(self, *objects):
        """What a linker is given for object files: between those that say where they begin and end;
        and the library."""
        folder = self.library.parent
        begin, end = (folder / f"ends_{name}.o" for name in emucc.ENDS)
        return [begin, *objects, end, self.library, f"-Wl,-rpath,{folder}"]

    def precompile(self, *headers):
        """Reads headers once for all programs, since that takes longer than most of the rest.

        A checked program is preprocessed without them (compiler.py), and so has them itself.
        """
        path = str(self.folder / "prelude.h")
        headers = () if self.checked else headers
        flags = [*self.flags, *self.kernel_flags]
        compiler.precompile(self.cxx, flags, path, (compiler.PRELUDE, *headers))
        self.prelude = path

    def source(self, path, *flags, mode=None):
        """A .cu file to compile, as emucc.py does it."""
        mode = mode or (CHECKED if self.checked else LOOPS)
        flags = [*self.flags, *self.kernel_flags, *flags]
        return compiler.Source(path, self.cxx, flags, mode, self.prelude)

    def compile_kernels(self, source, name=None, *flags, mode=None):
        """The object file of a .cu file, which `name` may call otherwise."""
        name, made = name or source.stem, self.source(source, *flags, mode=mode)
        made.read()
        made.compile(self.folder / f"{name}.cu.o", self.folder / f"{name}.cu.cc")
        (self.folder / f"{name}.said").write_text(json.dumps(made.said))
        return self.folder / f"{name}.cu.o"

    def emucc(self, *words):
        """Runs emucc.py with this kit's compiler."""
        mode = ["--checked"] if self.checked else []
        driver = [sys.executable, EMULATOR / "emucc.py", "-ccbin", shlex.join(self.cxx), *mode]
        return self.call(*driver, *words)

    def explained(self, name):
        """How each kernel of a source runs that was compiled, as emucc.py --explain says it."""
        said = json.loads((self.folder / f"{name}.said").read_text())
        return {kernel: f"{way}: {reason}" if reason else way for kernel, way, reason in said}

    def build_shared(self, source):
        """A library of a .cu file."""
        library, compiled = self.folder / f"lib{source.stem}.so", self.compile_kernels(source)
        done = self.call(*self.cxx, "-shared", "-o", library, *self.linked(compiled))
        assert done.returncode == 0, done.stderr
        return library

    def build_program(self, source):
        """A program of a .cu file."""
        return self.link(self.compile_kernels(source), self.folder / source.stem)

    def build_once(self, source):
        """The same, by whichever process comes first."""
        with open(self.folder / f"{source.stem}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            program = self.folder / source.stem
            return program if program.exists() else self.build_program(source)

    def link(self, compiled, program):
        """A program of an object file."""
        done = self.call(*self.cxx, "-o", program, *self.linked(compiled), *self.libraries)
        assert done.returncode == 0, done.stderr
        return program

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
            kit.precompile(*HEADERS)
            with ThreadPoolExecutor() as pool:
                list(pool.map(kit.build_program, programs()))
            (folder / "built").touch()
    kit.prelude = folder / "prelude.h"
    return kit
