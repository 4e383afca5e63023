"""Builds programs of kernels: by the emulator's own kit, fast and checked, and the oracle."""

import fcntl
import hashlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "emulator")]

import kit as emulator_kit  # noqa: E402

SECONDS = 600  # for one compilation, one run
CHANGED = re.compile(
    r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?(?:error|required from)(.*)$", re.MULTILINE
)


class BuildError(Exception):
    """What a compiler or the emulator's passes said; `lines` are those of the source."""

    def __init__(self, message, lines):
        super().__init__(message)
        self.lines = lines


class Compiler(emulator_kit.Kit):
    """The kit with patience, and with all errors of a file instead of the first."""

    def __init__(self, folder, cxx=None, checked=False):
        super().__init__(folder, cxx, checked=checked)
        self.flags += [f"-I{HERE}"]
        self.kernel_flags = [*self.kernel_flags, "-Wno-fatal-errors", "-w"]

    def call(self, *command, env=None):
        """Runs a command to its end; one that takes too long ends with status 124."""
        command = ["nice", "-n", "5", *[str(word) for word in command]]
        environment = {**emulator_kit.os.environ, **(env or {})}
        try:
            return subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                env=environment,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", "it took too long")

    def program_of(self, text, stem):
        """Builds a .cu text; returns the program's path.

        Raises:
            BuildError: it is refused.
        """
        source = self.folder / f"{stem}.cu"
        source.write_text(text)
        try:
            self.build_program(source)
        except (AssertionError, emulator_kit.compiler.CompileError) as error:
            raise said(str(error), source.name) from None
        return self.folder / stem

    def clean(self, stem):
        """Removes what was built under a name."""
        for path in self.folder.glob(f"{stem}*"):
            if path.stem.split(".")[0] == stem:
                path.unlink()

    def explained(self, stem):
        """How each kernel of a program runs: {kernel: (way, reason)}."""
        said = json.loads((self.folder / f"{stem}.said").read_text())
        return {kernel: (way, reason) for kernel, way, reason in said}


def said(message, name):
    """The error for a compiler's message about a file."""
    lines = [int(number) for path, number, _ in CHANGED.findall(message) if Path(path).name == name]
    return BuildError(message, lines)


def emulator_state():
    """A word that changes with the emulator's sources."""
    digest = hashlib.sha256()
    for path in sorted(emulator_kit.EMULATOR.rglob("*")):
        if path.suffix in (".py", ".h", ".cc") and path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def compiler(folder, cxx=None, checked=False):
    """A compiler whose library is built in a folder, by the process that comes first."""
    stem = "-".join(
        [
            Path(cxx[0]).name if cxx else "default",
            "checked" if checked else "fast",
            emulator_state(),
        ]
    )
    folder = folder / stem
    folder.mkdir(parents=True, exist_ok=True)
    found = Compiler(folder, cxx, checked)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "library_is_built").exists():
            found.build_library()
            found.precompile("cstdio")
            (folder / "library_is_built").touch()
    found.prelude = folder / "prelude.h"
    return found


class Oracle:
    """The compiler of the oracle: plain C++, without the emulator."""

    def __init__(self, folder, cxx=None, flags=("-O0",)):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.cxx = cxx or shlex.split(emulator_kit.toolchain.find_cxx())
        self.flags = ["-std=c++17", *flags, "-w", "-ffp-contract=off", f"-I{HERE}"]

    def program_of(self, text, stem):
        """Builds a C++ text; returns the program's path.

        Raises:
            BuildError: the generator is wrong.
        """
        source, program = self.folder / f"{stem}.oracle.cc", self.folder / f"{stem}.oracle"
        source.write_text(text)
        command = ["nice", "-n", "5", *self.cxx, *self.flags, str(source), "-o", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            raise said(done.stderr, source.name)
        return program
