"""Compiles one CUDA source for the emulated GPU: preprocessor, passes, compiler.

What the passes believe of a kernel they have the compiler confirm. Where it does not, the source is
compiled once more without that kernel's second version, and the kernel's threads run one by one.
"""

import os
import re
import shlex
import subprocess
import tempfile

import toolchain
from block_loops.loops import SECOND
from compiler_facts import clang_tree, gimple
from compiler_facts.addressed import PROBE, addressed
from cuda_source.host_and_device import merged
from cuda_source.refused_headers import tell
from cuda_source.tokens import ENTERS, MARKER, SYSTEM, SourceError, unquoted
from rewrite import CHECKED, LOOPS, place_of, rewritten

HERE = os.path.dirname(os.path.abspath(__file__))

INCLUDE = os.path.join(HERE, "include")
# What nvcc 13 says of itself, and what has language.h leave CUDA's words as they are.
DEFINES = (
    "-D__CUDACC__=1", "-D__NVCC__=1", "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0",
    "-D__CUDACC_VER_BUILD__=88", "-D__CUDA_API_VER_MAJOR__=13", "-D__CUDA_API_VER_MINOR__=0",
    "-DEMULATOR_REWRITES",
)  # fmt: skip
ARCHITECTURE = "-D__CUDA_ARCH__=900"
_ERROR = r"(?:fatal )?error: (.*)"
_SECOND = re.compile(re.escape(SECOND % (0, "")).replace("0", r"(\d+)").replace(">", r"[^>]*>"))


# Options that only matter to the preprocessor, with a value.
OF_PREPROCESSOR = ("-I", "-D", "-U", "-include", "-isystem", "-iquote", "-idirafter")
# What names folders of headers whose warnings nobody wants, and what they are searched by, too.
NAMES_FOLDERS, FOLDERS = re.compile(r"-.*isystem|-idirafter"), "CPLUS_INCLUDE_PATH"
# What a source is not to know of the build that checks it.
_OF_CHECKED = re.compile("-DEMULATOR_CHECKED|-fsanitize=.*")
PRELUDE = "cuda_runtime.h"  # what stands before each source, unless something else is precompiled


class CompileError(Exception):
    """A source is not right, or a compiler cannot be had; the message is what to show."""


class Source:
    """A CUDA source and how it is compiled: `cxx` is the compiler, both as lists of words.

    `prelude` is what stands before it, perhaps precompiled: cuda_runtime.h, and more.
    """

    def __init__(self, path, cxx, flags, mode=LOOPS, prelude=PRELUDE):
        self.path, self.cxx, self.flags, self.mode = str(path), list(cxx), list(flags), mode
        self.prelude = str(prelude)
        self.said = []  # (kernel, how it runs, reason)
        self.refused = {}  # reasons, by the numbers of functions
        self.pinned = {}  # names of variables whose addresses are taken, by these numbers
        self.believed = {}  # names of those whose addresses nobody should have
        self.named = set()  # headers in folders that the user calls the system's, as -isystem does
        self.warnings = ""  # what the compilers said of a source that is right
        self.text = None

    def preprocess(self, *words):
        """The text after the preprocessor; with the words of a device, as a kernel sees it.

        The checked build's is that of every other: no macro tells a program where it is watched.
        """
        flags, prelude = self.flags, self.prelude
        if self.mode == CHECKED:
            flags = [flag for flag in flags if not _OF_CHECKED.fullmatch(flag)]
            flags += toolchain.kernel_flags(shlex.join(self.cxx)).split()
            prelude = PRELUDE
        # zig c++ -O2 defines NDEBUG, which nvcc never does; a program may still do so itself.
        done = run(
            *self.cxx, *of_emulator(), "-UNDEBUG", "-include", prelude, *flags, *DEFINES,
            *words, "-x", "c++", "-E", self.path,
        )  # fmt: skip
        if done.returncode:
            raise CompileError(tell(done.stderr))
        self.warnings = done.stderr
        return self.with_named(done.stdout)

    def with_named(self, text):
        """The text with the headers in folders that the user calls the system's as the user's own.

        They are noted, so that the compiler does not warn in them.
        """
        if FOLDERS not in os.environ and not any(map(NAMES_FOLDERS.match, self.flags)):
            return text
        folders = tuple(os.path.realpath(f) + os.sep for f in (INCLUDE, *self.system_folders()))

        def marker(found):
            file, flags = found.group(2), found.group(3).split()
            path = os.path.realpath(unquoted(file))
            if ENTERS not in flags or SYSTEM not in flags or path.startswith(folders):
                return found.group()
            self.named.add(file)
            return '# %s "%s" %s' % (found.group(1), file, ENTERS)

        return MARKER.sub(marker, text)

    def system_folders(self):
        """Where the compiler itself looks for headers."""
        said = run(
            *self.cxx, *without_names(self.flags), "-x", "c++", "-E", "-v", os.devnull,
            env={**os.environ, FOLDERS: "", "CPATH": "", "LC_ALL": "C"},
        ).stderr  # fmt: skip
        listed = said.partition("search starts here:")[2].partition("End of search list")[0]
        return [line.strip() for line in listed.splitlines() if line.startswith(" ")]

    def read(self, *dependencies):
        """Preprocesses the source; `dependencies` are options as -MD."""
        self.text = self.preprocess(*dependencies)
        if asks_for_architecture(self.text):
            device = self.preprocess(ARCHITECTURE)
            self.text = self.checked(lambda: merged(self.text, device, self.path))

    def checked(self, work):
        """What some work returns; an error in the source becomes one for the user."""
        try:
            return work()
        except SourceError as error:
            file, line = place_of(self.text, self.path, error)
            raise CompileError("%s:%d: error: %s\n" % (file, line, error)) from None

    def rewritten(self):
        """The source as plain C++."""
        text, program = self.checked(
            lambda: rewritten(self.text, self.path, self.mode, self.refused, self.pinned)
        )
        self.said, self.believed = (program.said, program.believed) if program else ([], {})
        return MARKER.sub(self.without_warnings, text)

    def without_warnings(self, marker):
        """A marker that says that it is the system's where it leads to one of those headers."""
        is_named = marker.group(2) in self.named and SYSTEM not in marker.group(3).split()
        return marker.group() + " " + SYSTEM if is_named else marker.group()

    def compile(self, output, plain):
        """Writes the object file, and the plain C++ that it was made of."""
        words = [*self.cxx, *of_emulator(), *without_names(self.flags), "-include", self.prelude]
        with tempfile.TemporaryDirectory() as folder:
            dump = os.path.join(folder, "dump")
            while True:
                text = self.rewritten()
                reader = self.reader() if self.believed else None
                write(plain, text + PROBE * bool(reader))
                more = ["-fdump-tree-gimple=" + dump] * (reader is gimple)
                done = run(*words, *more, "-c", plain, "-o", output)
                if done.returncode:
                    if not self.refuse(done.stderr):
                        raise CompileError(done.stderr)
                    continue
                if reader is clang_tree:
                    write(dump, run(*words, *clang_tree.OPTIONS, plain).stdout)
                if not (reader and self.pin(reader, dump)):
                    self.warnings += done.stderr
                    return

    def reader(self):
        """The module that reads what the compiler understood: GCC says it in one way, clang, which
        others call themselves, in another."""
        is_gcc = "Free Software Foundation" in run(*self.cxx, "--version").stdout
        return gimple if is_gcc else clang_tree

    def pin(self, reader, dump):
        """Notes whose addresses the compiler knows of; returns whether there are any."""
        try:
            text = bytes_of(dump).decode("utf-8", "surrogateescape")
            found = addressed(text, self.believed, reader.seen)
        except ValueError as error:
            self.refused.update(dict.fromkeys(self.believed, str(error)))
            return True
        for number, names in found.items():
            self.pinned.setdefault(number, set()).update(names)
        return bool(found)

    def refuse(self, said):
        """Notes which second versions the compiler did not take; returns whether there are any."""
        numbers = {int(number) for number in _SECOND.findall(said)} - set(self.refused)
        for number in numbers:
            place = re.escape(SECOND % (number, "")).replace(">", r"[^>]*>[:\d]* ")
            found = re.search(place + _ERROR, said) or re.search(_ERROR, said)
            self.refused[number] = "the compiler says: " + found.group(1)
        return bool(numbers)


def run(*words, env=None):
    """Runs a command; returns what it printed and said."""
    try:
        return subprocess.run(
            [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, encoding="utf-8", errors="surrogateescape", env=env,
        )  # fmt: skip
    except OSError as error:
        raise CompileError("%s: %s\n" % (words[0], error.strerror)) from None


def of_emulator():
    """The options by which a compiler finds the emulated GPU's headers."""
    return ["-isystem", INCLUDE]


def without_names(flags):
    """Options without those that only matter to the preprocessor, but for the emulator's own."""
    kept, words = [], list(flags)
    while words:
        word = words.pop(0)
        if word in OF_PREPROCESSOR:
            words[:1] = []
        elif not word.startswith(OF_PREPROCESSOR) or word.startswith("-DEMULATOR_"):
            kept.append(word)
    return kept


def precompile(cxx, flags, path, headers=(PRELUDE,)):
    """Writes a header that includes others, and what the compiler makes of it, beside each other.

    Returns whether the compiler could; if not, it reads the header each time.
    """
    write(path, place_mark(path) + "".join("#include <%s>\n" % name for name in headers))
    new = "%s.gch.%d" % (path, os.getpid())
    done = run(*cxx, *of_emulator(), *without_names(flags), "-x", "c++-header", path, "-o", new)
    if done.returncode == 0:
        os.replace(new, path + ".gch")
    return done.returncode == 0


def place_mark(path):
    """The first line of a precompiled header: where it was made."""
    return "// Precompiled as %s\n" % os.path.abspath(path)


def usable(prelude, cxx):
    """A precompiled header, or what it includes where clang would not take it: in a folder that was
    moved or copied since."""
    mark = bytes_of(prelude).partition(b"\n")[0].decode("utf-8", "surrogateescape")
    if mark + "\n" == place_mark(prelude) or "clang" not in run(*cxx, "--version").stdout:
        return prelude
    return PRELUDE


def asks_for_architecture(text):
    """Whether the program's own files name __CUDA_ARCH__."""
    files, open_files = set(), [False]
    for marker in MARKER.finditer(text):
        flags, file = marker.group(3).split(), unquoted(marker.group(2))
        if "1" in flags:
            open_files.append("3" in flags or open_files[-1])
        elif "2" in flags and len(open_files) > 1:
            open_files.pop()
        if not open_files[-1] and not os.path.abspath(file).startswith(INCLUDE + os.sep):
            files.add(file)
    return any(b"__CUDA_ARCH__" in bytes_of(file) for file in files)


def bytes_of(path):
    """What a file holds; nothing for one that is none, as <built-in>."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def write(path, text):
    """Writes a file, under its name only once it is whole, so that make never sees half of it."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=folder, delete=False, encoding="utf-8", errors="surrogateescape", newline=""
    ) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)
