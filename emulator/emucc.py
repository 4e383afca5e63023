"""Compiles CUDA programs for the emulated GPU, as nvcc does for a real one.

    python3 emulator/emucc.py saxpy.cu -o saxpy && ./saxpy

Examples:

    emucc.py main.cu kernels.cu host.cc -Iinclude -O2 -o prog   several files, and C++ beside them
    emucc.py --checked --run saxpy.cu -- 1024                   finds races, wrong accesses ...
    emucc.py --run saxpy.cu -- 1024                             builds it somewhere, and runs it
    emucc.py --explain src/gpu_op.cu                            how each kernel runs, and why
    emucc.py -c src/gpu_op.cu -o gpu_op.o --keep                an object file, and the plain C++
    emucc.py --shared kernels.cu -o libkernels.so

Options of nvcc that a program needs are understood: -I -D -U -L -l -o -c -O -g -G -w -W -std
-shared -x -Xcompiler -Xlinker -ccbin -M -MD -MMD -MP -MF -MT -include -isystem. Those that only
concern a real GPU (-arch, -gencode, -lineinfo, -rdc, -Xptxas, --use_fast_math ...) change nothing.

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
import toolchain
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
from rewrite import CHECKED, LOOPS, THREADS

HERE = os.path.dirname(os.path.abspath(__file__))


# Options with a value: a word of its own, or the rest of the word.
WITH_VALUE = ("-I", "-D", "-U", "-include", "-isystem", "-iquote", "-std", "--std")
DEPENDENCIES = ("-MF", "-MT", "-MQ")
DEPENDENCY_FLAGS = ("-M", "-MM", "-MD", "-MMD", "-MP")
# What only concerns a real GPU: exact words, words with a value behind them, and beginnings.
IGNORED = (
    "-G", "--device-debug", "-lineinfo", "--generate-line-info", "-dc", "--use_fast_math",
    "-use_fast_math", "--extended-lambda", "-extended-lambda", "--expt-extended-lambda",
    "-expt-extended-lambda", "--expt-relaxed-constexpr", "-expt-relaxed-constexpr", "-m64",
    "-cudart", "-lcudart", "-lcudart_static", "-lcuda", "-lcublas", "-lcublasLt", "-lcudadevrt",
    "-lnvToolsExt",
    "--default-stream", "-dlto", "-restrict", "--restrict", "-keep", "--ptxas-options=-v",
)  # fmt: skip
IGNORED_WITH_VALUE = (
    "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "-Xptxas",
    "--ptxas-options", "-Xnvlink", "-maxrregcount", "--maxrregcount", "-Xcudafe", "-t", "--threads",
    "-diag-suppress", "--diag-suppress",
)  # fmt: skip
IGNORED_BEGINNINGS = tuple(word + "=" for word in IGNORED_WITH_VALUE) + (
    "-rdc", "--relocatable-device-code", "-fmad", "--fmad", "-ftz", "-prec-", "-cudart=",
    "--cudart=", "--default-stream=", "-diag-", "-res-usage", "--resource-usage",
)  # fmt: skip
CUDA, CXX, LINKED = (".cu", ".cuh"), (".cc", ".cpp", ".cxx", ".c"), (".o", ".a", ".so", ".obj")


class UsageError(Exception):
    """A command line that is not understood."""


class Options:
    """What a command line asks for."""

    def __init__(self, words):
        self.sources, self.objects, self.flags, self.links, self.dependencies = [], [], [], [], []
        self.output = self.language = self.cxx = None
        self.mode, self.only_compile, self.is_shared = LOOPS, False, False
        self.prelude, self.precompiles = None, False
        self.keep = self.explain = self.runs = self.is_verbose = self.links_nothing = False
        self.arguments = []
        if "--" in words:
            self.arguments = words[words.index("--") + 1 :]
            words = words[: words.index("--")]
        self.words = list(words)
        while self.words:
            self.take(self.words.pop(0))
        if not self.sources and not self.objects and not self.precompiles:
            raise UsageError("no source is named")
        if self.precompiles and not self.prelude:
            raise UsageError("--precompile needs --prelude FILE, which it writes")
        if self.only_compile and self.output and len(self.sources) > 1:
            raise UsageError("-o with -c and several sources")

    def value(self, word, rest=""):
        """The value of an option: the rest of its word, or the next word."""
        if rest:
            return rest
        if not self.words:
            raise UsageError("%s needs a value" % word)
        return self.words.pop(0)

    def take(self, word):
        """Reads one word of the command line."""
        simple = {
            "-c": "only_compile", "--compile": "only_compile", "-shared": "is_shared",
            "--shared": "is_shared", "--keep": "keep", "--explain": "explain", "--run": "runs",
            "-run": "runs", "--precompile": "precompiles", "-v": "is_verbose",
            "--verbose": "is_verbose", "-dryrun": "is_verbose",
        }  # fmt: skip
        if word in simple:
            setattr(self, simple[word], True)
        elif word == "--checked":
            self.mode = CHECKED
        elif word == "--no-loops":
            self.mode = THREADS
        elif word in ("-o", "--output-file"):
            self.output = self.value(word)
        elif word == "--prelude":
            self.prelude = self.value(word)
        elif word in ("-x", "--x"):
            self.language = self.value(word)
        elif word in ("-ccbin", "--compiler-bindir"):
            self.cxx = self.value(word)
        elif word in ("-Xcompiler", "--compiler-options"):
            self.flags += self.value(word).split(",")
        elif word.startswith(("-Xcompiler=", "--compiler-options=")):
            self.flags += word.partition("=")[2].split(",")
        elif word in ("-Xlinker", "--linker-options"):
            self.links += ["-Wl,%s" % part for part in self.value(word).split(",")]
        elif word in DEPENDENCY_FLAGS:
            self.dependencies.append(word)
        elif word in DEPENDENCIES:
            self.dependencies += [word, self.value(word)]
        elif word in IGNORED_WITH_VALUE:
            self.value(word)
        elif word in IGNORED or word.startswith(IGNORED_BEGINNINGS):
            pass
        elif word in WITH_VALUE:
            text = self.value(word)
            self.flags += ["-std=" + text] if word.endswith("std") else [word, text]
        elif word.startswith("--std="):
            self.flags.append(word[1:])
        elif word.startswith(("-L", "-l", "-Wl,")):
            if word in ("-L", "-l"):
                word += self.value(word)
            self.links.append(word)
        elif word.startswith("-"):
            self.flags.append(word)
        else:
            self.file(word)

    def file(self, word):
        """Takes a file by what its name ends in, or by -x."""
        end = os.path.splitext(word)[1]
        if self.language == "cu" or end in CUDA:
            self.sources.append((word, "cu"))
        elif end in CXX:
            self.sources.append((word, "c++" if self.language is None else self.language))
        elif end in LINKED:
            self.objects.append(word)
        else:
            raise UsageError("%s: it is not known what this is; hint: -x cu" % word)


class Driver:
    """Does what a command line asks for, with one compiler."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.cxx = shlex.split(options.cxx or toolchain.find_cxx())
        self.checked = options.mode == CHECKED
        variables = toolchain.emulated_variables()
        self.libraries = shlex.split(variables["LIBS"].replace("$$", "$"))
        self.common = ["-fPIC", *shlex.split(variables["BLAS_INCLUDE"].replace("$$", "$"))]
        if not any(flag.startswith("-std=") for flag in options.flags):
            self.common.insert(0, "-std=c++17")
        self.common += ["-g", "-DEMULATOR_CHECKED"] if self.checked else []

    def kernel_flags(self):
        """What CUDA sources are compiled with: the emulated GPU's own flags, then the user's."""
        return [*self.common, *toolchain.flags_of_kernels(shlex.join(self.cxx), self.checked),
                *(f for f in self.options.flags if not f.startswith("-O"))]  # fmt: skip

    def compile(self, source, language):
        """The object file of one source."""
        output = self.options.output if self.options.only_compile else None
        stem = os.path.splitext(os.path.basename(source))[0]
        if output is None:
            folder = "." if self.options.only_compile else tempfile.mkdtemp(dir=self.folder)
            output = os.path.join(folder, stem + ".o")
        if not os.path.exists(source):
            raise CompileError("%s: error: no such file\n" % source)
        if language != "cu":
            # As nvcc has it: __CUDACC__ for CUDA alone, __NVCC__ for all that it compiles.
            include = "-I" + os.path.join(HERE, "include")
            words = [*self.common, include, "-D__NVCC__=1", *self.options.flags]
            words += [*self.options.dependencies, "-c", source, "-o", output]
            self.call([*self.cxx, *words])
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
        if self.options.is_verbose:
            print(shlex.join(command), file=sys.stderr)

    def call(self, command):
        """Runs a command, whose errors become ours."""
        self.say(command)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise CompileError(done.stderr)
        sys.stderr.write(done.stderr)

    def build(self):
        """Compiles all, and links them unless told not to; returns what was made."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(lambda source: self.compile(*source), self.options.sources))
        if self.options.only_compile:
            return objects
        library = self.library()
        made = self.options.output or ("a.out" if not self.options.runs else
                                       os.path.join(self.folder, "program"))  # fmt: skip
        shared = ["-shared"] if self.options.is_shared else []
        place = "-Wl,-rpath," + os.path.dirname(library)
        self.call([*self.cxx, *shared, *objects, *self.options.objects, "-o", made, library, place,
                   *self.options.links, *self.libraries])  # fmt: skip
        return [made]

    def library(self):
        """The emulated GPU as a library, built once for each compiler and each version of it."""
        sources = sorted(glob.glob(os.path.join(HERE, "src", "*.cc")))
        sources += sorted(glob.glob(os.path.join(HERE, "src", "checked", "*.cc"))) * self.checked
        flags = [flag for flag in self.common if flag != "-g"]
        flags += ["-O2", "-I" + os.path.join(HERE, "include")]
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

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compiled, sources))
        bind = ["-Wl,-Bsymbolic"] if sys.platform == "linux" else []
        new = library + ".new"
        self.call([*self.cxx, "-shared", *bind, "-o", new, *objects, *self.libraries])
        os.replace(new, library)


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
    if not words or words[0] in ("-h", "--help", "-help"):
        print(__doc__.strip())
        return 0 if words else 2
    folder = tempfile.mkdtemp(prefix="emucc-")
    try:
        options = Options(words)
        driver = Driver(options, folder)
        if options.explain or options.precompiles:
            driver.explain() if options.explain else driver.precompile()
            return 0
        made = driver.build()
        if options.runs:
            command = [os.path.abspath(made[0]), *options.arguments]
            if driver.checked:
                return check_kernels.main(["--", *command])
            return subprocess.run(command).returncode
    except UsageError as error:
        print("emucc: %s; hint: emucc.py --help" % error, file=sys.stderr)
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
