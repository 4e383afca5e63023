"""Builds the programs for the emulated GPU, and runs them.

python3 tests/programs/emulated_programs.py [NAME]     the programs whose name contains NAME

Each is run fast, thread by thread and in the checked build; what is not as it should be is
printed. `--keep FOLDER` builds there, and keeps what was built.
"""

import argparse
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import program_manifest

sys.path.insert(0, str(program_manifest.PROGRAMS.parent / "emulator"))

import kit as emulator_kit

sys.path.insert(0, str(emulator_kit.EMULATOR))

from findings import reading as checked_findings

PROGRAMS = program_manifest.PROGRAMS
EXPECTED = PROGRAMS / "expected.json"
THREAD_BY_THREAD = {"EMULATOR_LOOPS": "0"}
# The ways to run what a kit built.
WAYS = {"fast": {"fast": {}, "threads": THREAD_BY_THREAD}, "checked": {"checked": {}}}


@dataclass
class Run:
    """What a run of a program did: its exit status, output, seconds, and findings if checked."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    findings: tuple = ()


class BuildError(Exception):
    """A program does not build; the message is the compiler's."""


class ProgramKit(emulator_kit.Kit):
    """Builds programs of one or several files, each in a folder of its own."""

    def __init__(self, folder, checked=False, sources=PROGRAMS):
        super().__init__(folder, checked=checked)
        self.sources = sources
        self.flags = [*self.flags, "-w", f"-I{sources}"]

    def within(self, folder):
        """The same kit, which builds in another folder."""
        part = copy.copy(self)
        part.folder = folder
        return part

    def build(self, program):
        """Compiles and links a program.

        Raises:
            BuildError: a pass or the compiler refuses it.
        """
        part = self.within(self.folder / program.name)
        shutil.rmtree(part.folder, ignore_errors=True)
        part.folder.mkdir(parents=True)
        try:
            objects = [part.compile_source(source) for source in program.sources]
        except (AssertionError, emulator_kit.compiler.CompileError) as error:
            raise BuildError(str(error)) from None
        target = part.folder / "program"
        done = self.call(*self.cxx, "-o", target, *self.linked(*objects), *self.libraries)
        if done.returncode:
            raise BuildError(done.stderr)

    def compile_source(self, source):
        """The object file of a .cu or .cpp file."""
        # The passes write what they made to other folders; headers lie beside the source.
        self.flags = [*self.flags, f"-I{source.parent}"]
        if source.suffix == ".cu":
            return self.compile_kernels(source)
        return self.compile(source, self.folder / f"{source.stem}.cpp.o")

    def run_program(self, program, **env):
        """Runs a program to its end, and reads its findings if it is of the checked build."""
        found = self.folder / program.name / "findings"
        found.unlink(missing_ok=True)
        if self.checked:
            env["EMULATOR_FINDINGS"] = str(found)
        started = time.monotonic()
        try:
            done = self.call(*self.runner, self.folder / program.name / "program", env=env)
        except subprocess.TimeoutExpired:
            return Run(124, "", "it does not end", time.monotonic() - started)
        seconds = time.monotonic() - started
        run = Run(done.returncode, done.stdout, done.stderr, seconds)
        if self.checked and found.exists():
            run.findings = tuple(checked_findings.read_report(str(found)))
        return run


def expected():
    """What programs print on a real GPU, by name; empty if none ran them yet."""
    return json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}


def wrong_findings(run):
    """The findings that say that something is wrong; advice is none."""
    return [finding for finding in run.findings if not finding.is_advice]


def complaints(program, run, wanted):
    """What is not as it should be about a run of a correct program, as text."""
    said = []
    if run.status:
        said.append(f"exit status {run.status}: {run.stderr.strip()[-300:] or run.stdout[-300:]}")
    if program.name in wanted and run.stdout != wanted[program.name]:
        said.append(f"printed {run.stdout!r}, not {wanted[program.name]!r}")
    for finding in wrong_findings(run):
        if finding.kind in program.provokes:
            continue
        line = f"{Path(finding.at.file).name}:{finding.at.line}" if finding.at else "no line"
        said.append(f"found {finding.kind} ({line}), but it is correct")
    return said


def kits(folder, modes):
    """The kits for some of fast and checked, with their libraries built."""
    made = {}
    for checked in (False, True):
        if ("checked" if checked else "fast") in modes:
            kit = ProgramKit(folder / ("checked" if checked else "fast"), checked)
            if not kit.library.exists():
                kit.build_library()
            made["checked" if checked else "fast"] = kit
    return made


def results(program, made, wanted):
    """(mode, seconds, complaints) of every way to run a program."""
    for name, kit in made.items():
        try:
            kit.build(program)
        except BuildError as error:
            yield name, 0, [f"does not build: {error}"]
            continue
        settings = (
            {"checked": {}} if name == "checked" else {"fast": {}, "threads": THREAD_BY_THREAD}
        )
        for mode, env in settings.items():
            run = kit.run_program(program, **env)
            yield mode, run.seconds, complaints(program, run, wanted)


def main():
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--keep", type=Path, help="where to build, and to keep what was built")
    parser.add_argument("--modes", default="fast,checked")
    parser.add_argument("--verbose", action="store_true", help="say how long each took")
    arguments = parser.parse_args()
    chosen = [p for p in program_manifest.programs() if arguments.name in p.name]
    wanted, bad = expected(), 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        made = kits(folder, arguments.modes.split(","))
        for program in chosen:
            for mode, seconds, said in results(program, made, wanted):
                if arguments.verbose or said:
                    print(f"{program.name}, {mode}: {seconds:.2f} s", *said, sep="\n    ")
                    sys.stdout.flush()
                bad += bool(said)
    print(f"{len(chosen)} programs, {bad} surprises")
    return bad > 0


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
