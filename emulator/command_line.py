"""What a command line asks of emucc.py, which understands those of nvcc."""

import os
import re
import shlex

from nvcc_options import WARNINGS, find
from rewrite import CHECKED, LOOPS, THREADS

CUDA, CXX, LINKED = (".cu", ".cuh"), (".cc", ".cpp", ".cxx", ".c"), (".o", ".a", ".so", ".obj")
# Libraries of CUDA: those that there are here are in one, with the emulated GPU itself.
OF_CUDA = re.compile(
    r"(cudart|cudadevrt|cublas|cublasLt|culibos|curand|cufft|cusparse|cusolver|nvrtc)(_static)?"
    r"|cuda|nvToolsExt|nvidia-ml"
)
VERSION = "emucc: the emulated GPU, for programs of CUDA 13\nCuda compilation tools, release 13.0"
# What the preprocessor is asked to write in place of the text.
INSTEAD = {"E": None, "preprocess": None, "M": "M", "generate-dependencies": "M", "MM": "MM",
           "generate-nonsystem-dependencies": "MM"}  # fmt: skip
DEPENDENCIES = {
    "generate-dependencies-with-compile": "MD", "generate-dependency-targets": "MP",
    "generate-nonsystem-dependencies-with-compile": "MMD", "dependency-output": "MF",
    "dependency-target-name": "MT",
}  # fmt: skip


class UsageError(Exception):
    """A command line that is not understood."""


class Told(Exception):
    """What the command line only asks to be told."""


class Options:
    """What a command line asks for."""

    def __init__(self, words):
        self.sources, self.objects, self.flags, self.links, self.dependencies = [], [], [], [], []
        self.output = self.folder = self.language = self.cxx = self.prelude = None
        self.mode, self.arguments = LOOPS, []
        self.only_compile = self.is_shared = self.is_archive = self.links_device = False
        self.keep = self.explain = self.runs = self.is_verbose = self.precompiles = False
        self.only_preprocess = self.is_relocatable = self.counts = False
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

    def take(self, word):
        """Reads one word of the command line, and what belongs to it."""
        if not word.startswith("-") or word == "-":
            return self.file(word)
        option, value = find(word)
        if option is None:
            return (self.links if word.startswith("-Wl,") else self.flags).append(word)
        if option.has_value and not value:
            if not self.words:
                raise UsageError("%s needs a value" % word)
            value = self.words.pop(0)
        if option.effect == "refuse":
            raise UsageError("%s: %s" % (word, option.detail))
        if option.effect == "set":
            setattr(self, option.detail, value if option.has_value else True)
        elif option.effect == "define":
            self.flags.append("-D" + option.detail)
        elif option.effect == "pass":
            self.flags.append(option.detail % value if option.has_value else option.detail)
        elif option.effect == "each":
            self.flags += [word for part in value.split(",") for word in (option.detail, part)]
        elif option.effect == "call":
            getattr(self, option.detail)(option, value)

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

    def search(self, _, value):
        """-L."""
        self.links += ["-L" + part for part in value.split(",")]

    def link(self, _, value):
        """-l."""
        self.links += ["-l" + name for name in value.split(",") if not OF_CUDA.fullmatch(name)]

    def to_compiler(self, _, value):
        """-Xcompiler: a shell splits what follows."""
        self.flags += [word for part in value.split(",") for word in shlex.split(part)]

    def to_linker(self, _, value):
        """-Xlinker."""
        self.links += ["-Wl,%s" % part for part in value.split(",")]

    def depend(self, option, value):
        """The options of the preprocessor that have it write dependencies beside its work."""
        self.dependencies.append("-" + DEPENDENCIES.get(option.name, option.name))
        self.dependencies += [value] if option.has_value else []

    def preprocess(self, option, _):
        """-E, and -M and -MM, which write dependencies in place of the text."""
        self.only_preprocess = True
        self.dependencies += ["-" + INSTEAD[option.name]] if INSTEAD[option.name] else []

    def relocate(self, _, value):
        """-rdc."""
        self.is_relocatable = value == "true"
        self.flags += ["-D__CUDACC_RDC__"] * self.is_relocatable

    def compile_relocatable(self, *_):
        """-dc."""
        self.only_compile = True
        self.relocate(None, "true")

    def default_stream(self, _, value):
        """--default-stream: what is done when a call returns needs no stream of its own."""
        self.flags += ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"] * (value == "per-thread")

    def make_errors(self, _, value):
        """-Werror, of nvcc's kinds; others are the compiler's."""
        for kind in value.split(","):
            word = WARNINGS.get(kind, "-Werror=" + kind)
            self.flags += [word] if word else []

    def read_options(self, _, value):
        """-optf: files of options."""
        for path in value.split(","):
            try:
                with open(path) as file:
                    self.words = shlex.split(file.read()) + self.words
            except OSError as error:
                raise UsageError("%s: %s" % (path, error.strerror)) from error

    def argue(self, _, value):
        """-run-args."""
        self.arguments += value.split(",")

    def run_as(self, option, _):
        """How kernels run."""
        self.mode = THREADS if option.name == "no-loops" else CHECKED
        self.counts = option.name == "count"

    def tell(self, option, _):
        """--version and --help."""
        raise Told(VERSION if option.name in ("V", "version") else "")
