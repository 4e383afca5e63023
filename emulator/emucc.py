"""Compiles CUDA programs for the emulated GPU, as nvcc does for a real one.

    python3 emulator/emucc.py saxpy.cu -o saxpy && ./saxpy

Examples:

    emucc.py main.cu kernels.cu host.cc -Iinclude -O2 -o prog   several files, and C++ beside them
    emucc.py --checked --run saxpy.cu -- 1024                   finds races, wrong accesses ...
    emucc.py --count --run saxpy.cu -- 1024                     counts what makes a kernel fast
    emucc.py --run saxpy.cu -- 1024                             builds it somewhere, and runs it
    emucc.py --explain src/gpu_op.cu                            how each kernel runs, and why
    emucc.py -c src/gpu_op.cu -o gpu_op.o --keep                an object file, and the plain C++
    emucc.py --shared kernels.cu -o libkernels.so

All options of nvcc are known (nvcc_options.py). Those that only concern a real GPU (-arch,
-gencode, -lineinfo, -Xptxas, --use_fast_math ...) change nothing, those that ask for its machine
code (-ptx) are refused, and others go to the C++ compiler. C++11 is compiled as C++14.

Environment: CXX, the compiler. EMULATOR_CACHE, where the emulated GPU itself is kept once it is
built, and its headers precompiled (default: ~/.cache/emulated-gpu). A program that runs heeds
EMULATOR_LAUNCH_SECONDS, how long a block may take (README.md).
Exit codes: 0 done, 1 the program is not right, 2 usage, 3 something is missing here, or
the emulated GPU has a bug.
"""

import fcntl
import glob
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor

import check_kernels
import count_kernels
import toolchain
from command_line import Options, Told, UsageError
from compiler import (
    PRELUDE,
    CompileError,
    Source,
    bytes_of,
    precompile,
    usable,
    without_names,
    write,
)
from layout import LayoutError, laid_out
from rewrite import CHECKED, LOOPS

HERE = os.path.dirname(os.path.abspath(__file__))
# nvcc's own choice. Kernels start by a lambda that C++11 does not have.
STANDARD = "-std=gnu++17"
# Calls in one another: some passes call themselves for each level of brackets and of else-ifs.
_RECURSION = 6000
RAISED = {"-std=%s%s" % (dialect, year): "-std=%s14" % dialect
          for dialect in ("c++", "gnu++") for year in ("98", "03", "0x", "11")}  # fmt: skip


# What stands around all that is linked: src/ends, where its variables begin and end. A program with
# threads of its own has all variables once: another thread may use them while a kernel runs.
ENDS = ("begin", "end")
END_WITH_THREADS = "end_with_threads"
# Functions that make threads, as object files name them.
THREADS = (b"pthread_create", b"_M_start_thread", b"thrd_create", b"GOMP_parallel", b"__kmpc_fork")


class Driver:
    """Does what a command line asks for, with one compiler."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.cxx = shlex.split(options.cxx or toolchain.find_cxx())
        self.checked = options.mode == CHECKED
        variables = toolchain.emulated_variables()
        self.libraries = shlex.split(variables["LIBS"].replace("$$", "$"))
        self.common = ["-fPIC", *shlex.split(variables["BLAS_INCLUDE"].replace("$$", "$"))]
        self.common += ["-g", "-DEMULATOR_CHECKED"] if self.checked else []

    def kernel_flags(self):
        """What CUDA sources are compiled with: the emulated GPU's own flags, then the user's."""
        given = [RAISED.get(f, f) for f in self.options.flags if not f.startswith("-O")]
        own = toolchain.flags_of_kernels(shlex.join(self.cxx), self.checked)
        return [STANDARD, *self.common, *own, *given]

    def host_flags(self):
        """What C++ is compiled with. As nvcc has it, __CUDACC__ is for CUDA alone, __NVCC__ for all
        that it compiles."""
        include = ["-isystem", os.path.join(HERE, "include")]
        return [STANDARD, *self.common, *include, "-D__NVCC__=1", *self.options.flags]

    def compile(self, source, language):
        """The object file of one source."""
        output = self.options.output if self.options.only_compile else None
        stem = os.path.splitext(os.path.basename(source))[0]
        if output is None:
            named = self.options.folder or "."
            folder = named if self.options.only_compile else tempfile.mkdtemp(dir=self.folder)
            output = os.path.join(folder, stem + ".o")
        if not os.path.exists(source):
            raise CompileError("%s: error: no such file\n" % source)
        if language != "cu":
            words = [*self.options.dependencies, "-c", source, "-o", output]
            self.call([*self.cxx, *self.host_flags(), *words])
            return output
        made = Source(source, self.cxx, self.kernel_flags(), self.options.mode, self.prelude())
        self.say(["preprocess, rewrite, compile:", *self.cxx, *made.flags, source])
        made.read(*dependency_flags(self.options.dependencies, output))
        plain = os.path.join(tempfile.mkdtemp(dir=self.folder), stem + ".cu.cc")
        made.compile(output, plain)
        sys.stderr.write(made.warnings)
        if self.options.keep:
            keep(plain, os.path.join(os.path.dirname(output), stem + ".cu.cc"))
        return output

    def preprocess(self):
        """What -E and -M ask for, of all sources."""
        for source, language in self.options.sources:
            words = self.options.dependencies
            if language == "cu":
                made = Source(source, self.cxx, self.kernel_flags(), self.options.mode)
                text = made.preprocess(*words)
            else:
                text = self.call([*self.cxx, *self.host_flags(), *words, "-E", source])
            if self.options.output:
                write(self.options.output, text)
            else:
                print(text, end="")

    def precompile(self):
        """Writes the prelude that the command line names."""
        precompile(self.cxx, self.kernel_flags(), self.options.prelude)

    def prelude(self):
        """What stands before a source, precompiled where there is a place to keep it."""
        if self.options.prelude:
            return usable(self.options.prelude, self.cxx)
        flags = without_names(self.kernel_flags())
        folder = os.path.join(cache_folder(), "prelude-" + self.state_of("include", flags))
        path = os.path.join(folder, "prelude.h")
        try:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not os.path.exists(path):
                    precompile(self.cxx, flags, path)
        except OSError:
            return PRELUDE  # nothing can be kept here
        return path

    def state_of(self, folder, flags):
        """What a thing is made of as a short text: the compiler, its options, files of a folder."""
        state = hashlib.sha256(repr((self.cxx, flags)).encode())
        for path in sorted(glob.glob(os.path.join(HERE, folder, "**", "*.*"), recursive=True)):
            if path.endswith((".h", ".cc", ".cuh")):
                with open(path, "rb") as file:
                    state.update(path.encode() + b"\0" + file.read())
        return state.hexdigest()[:16]

    def explain(self):
        """Prints how each kernel runs; compiles, since it is the compiler that confirms it."""
        for source, language in self.options.sources:
            if language == "cu":
                made = Source(source, self.cxx, self.kernel_flags(), LOOPS, self.prelude())
                made.read()
                folder = tempfile.mkdtemp(dir=self.folder)
                made.compile(os.path.join(folder, "a.o"), os.path.join(folder, "a.cc"))
                for kernel, way, reason in made.said:
                    print("%-36s %s%s" % (kernel, way, ": " + reason if reason else ""))

    def say(self, command):
        """Prints a command, if the caller wants to see them."""
        if self.options.is_verbose:
            print(shlex.join(command), file=sys.stderr)

    def call(self, command):
        """Runs a command, whose errors become ours."""
        self.say(command)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise CompileError(done.stderr)
        sys.stderr.write(done.stderr)
        return done.stdout

    def build(self):
        """Compiles all, and links them unless told not to; returns what was made."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(lambda source: self.compile(*source), self.options.sources))
        if self.options.only_compile:
            return objects
        if self.options.links_device:  # there is nothing to link
            made = self.options.output or "a_dlink.o"
            self.call([*self.cxx, *self.common, "-x", "c++", "-c", os.devnull, "-o", made])
            return [made]
        if self.options.is_archive:
            made = self.options.output or "a.a"
            self.call(["ar", "rcs", made, *objects, *self.options.objects])
            return [made]
        library = self.library()
        made = self.options.output or ("a.out" if not self.options.runs else
                                       os.path.join(self.folder, "program"))  # fmt: skip
        shared = [*without_names(self.options.flags), *["-shared"] * self.options.is_shared]
        folder = os.path.dirname(library)
        linked = [*objects, *self.options.objects]
        names = ENDS[0], END_WITH_THREADS if any(map(makes_threads, linked)) else ENDS[1]
        begin, end = (os.path.join(folder, name + ".o") for name in names)
        linked = [begin, *linked, end, library, "-Wl,-rpath," + folder]
        self.call([*self.cxx, *shared, "-o", made, *linked, *self.options.links, *self.libraries])
        return [made]

    def library(self):
        """The emulated GPU as a library, built once for each compiler and each version of it."""
        sources = sorted(glob.glob(os.path.join(HERE, "src", "*.cc")))
        sources += sorted(glob.glob(os.path.join(HERE, "src", "checked", "*.cc"))) * self.checked
        common = [flag for flag in self.common if flag != "-g"]
        flags = ["-std=c++17", *common, "-O2", "-I" + os.path.join(HERE, "include")]
        folder = os.path.join(cache_folder(), "library-" + self.state_of("", flags))
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise CompileError(
                "emucc: the emulated GPU can't be kept in %s: %s; hint: set EMULATOR_CACHE to a "
                "folder that you may write to\n" % (folder, error.strerror)
            ) from error
        library = os.path.join(folder, "libemulated_gpu.so")
        with open(os.path.join(folder, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(library):
                print("emucc: building the emulated GPU, once", file=sys.stderr)
                self.build_library(sources, flags, library)
        return library

    def build_library(self, sources, flags, library):
        """Compiles and links the emulated GPU itself."""
        folder = tempfile.mkdtemp(dir=self.folder)
        standard = os.path.join(folder, "standard.h")
        precompile(self.cxx, flags, standard, [os.path.join(HERE, "src", "standard.h")])

        def compiled(source):
            output = os.path.join(folder, os.path.basename(source) + ".o")
            self.call([*self.cxx, *flags, "-include", standard, "-c", source, "-o", output])
            return output

        for name in (*ENDS, END_WITH_THREADS):
            source = os.path.join(HERE, "src", "ends", name + ".cc")
            output = os.path.join(os.path.dirname(library), name + ".o")
            self.call([*self.cxx, *flags, "-c", source, "-o", output])

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compiled, sources))
        bind = ["-Wl,-Bsymbolic"] if sys.platform == "linux" else []
        new = library + ".new"
        self.call([*self.cxx, "-shared", *bind, "-o", new, *objects, *self.libraries])
        os.replace(new, library)


def makes_threads(path):
    """Whether an object file or library names a function that makes threads."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return False  # the linker tells
    return any(name in text for name in THREADS)


def keep(plain, path):
    """Leaves the plain C++ that a source became, laid out where there is clang-format."""
    text = bytes_of(plain).decode("utf-8", "surrogateescape")
    try:
        text = laid_out(text)
    except LayoutError as error:
        print("emucc: %s has long lines: %s" % (path, error), file=sys.stderr)
    write(path, text)


def dependency_flags(words, output):
    """The options of the preprocessor that have it write dependencies."""
    if not words:
        return []
    named = "-MF" in words
    target = [] if {"-MT", "-MQ"} & set(words) else ["-MT", output]
    return [*words, *target, *([] if named else ["-MF", os.path.splitext(output)[0] + ".d"])]


def cache_folder():
    """Where the emulated GPU itself is kept."""
    named = os.environ.get("EMULATOR_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return named or os.path.join(base, "emulated-gpu")


def main(words=None):
    """Does what the command line asks for."""
    words = sys.argv[1:] if words is None else words
    if not words:
        print(__doc__.strip())
        return 2
    folder = tempfile.mkdtemp(prefix="emucc-")
    sys.setrecursionlimit(_RECURSION)
    try:
        options = Options(words)
        driver = Driver(options, folder)
        if options.explain or options.precompiles or options.only_preprocess:
            work = driver.explain if options.explain else driver.precompile
            (driver.preprocess if options.only_preprocess else work)()
            return 0
        made = driver.build()
        if options.runs:
            command = [os.path.abspath(made[0]), *options.arguments]
            if driver.checked:
                watches = count_kernels if options.counts else check_kernels
                return watches.main(["--", *command])
            return subprocess.run(command).returncode
    except Told as told:
        print(told if str(told) else __doc__.strip())
        return 0
    except UsageError as error:
        hint = "" if "hint: " in str(error) else "; hint: emucc.py --help"
        print("emucc: %s%s" % (error, hint), file=sys.stderr)
        return 2
    except CompileError as error:
        sys.stderr.write(str(error))
        return 1
    except toolchain.ToolchainError as error:
        print("emucc: %s" % error, file=sys.stderr)
        return 3
    except BrokenPipeError:  # as of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception:
        traceback.print_exc()
        print("emucc: this is a bug of the emulated GPU, not of the program; hint: tell who gave "
              "it to you, and go on with --no-loops (make LOOPS=0)", file=sys.stderr)  # fmt: skip
        return 3
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
