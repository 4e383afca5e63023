"""Builds the suite for the emulated GPU, and runs it.

python3 tests/suite/emulated.py [NAME]    prints what each program whose name contains NAME does
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import manifest

sys.path.insert(0, str(manifest.SUITE.parent / "emulator"))

import kit as emulator_kit

# Read once for all programs, since reading these takes longer than all the rest.
HEADERS = ("cstdio", "vector")


class SuiteKit(emulator_kit.Kit):
    """The emulator's library and the suite's programs, built in a folder."""

    def __init__(self, folder):
        super().__init__(folder)
        # What a bug does wrong, and what a feature does on purpose, is no news from the compiler.
        self.kernel_flags += ["-O1", "-w"]

    def build_program(self, program):
        """A bug, its twin or a feature."""
        executable = self.folder / program.name
        fixed = ["-DFIXED"] if program.fixed else []
        compiled = self.compile_kernels(program.path, program.name, *fixed)
        done = self.call(*self.cxx, "-o", executable, *self.linked(compiled), *self.libraries)
        assert done.returncode == 0, done.stderr

    def run(self, program, **env):
        """Runs a program to its end."""
        return self.call(self.folder / program.name, env=env)


def built(kit, programs):
    """A kit with its library and programs."""
    kit.build_library()
    kit.precompile(*HEADERS)
    with ThreadPoolExecutor() as pool:
        list(pool.map(kit.build_program, programs))
    return kit


def main():
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="")
    arguments = parser.parse_args()
    programs = [program for program in manifest.programs() if arguments.name in program.name]
    with tempfile.TemporaryDirectory() as folder:
        kit = built(SuiteKit(Path(folder)), programs)
        for program in programs:
            done = kit.run(program)
            print(f"--- {program.name}: exit status {done.returncode}")
            print(done.stdout + done.stderr, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
