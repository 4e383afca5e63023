"""Runs the emulated GPU's tests as an arm64 machine does, on any Linux, under qemu-user.

    make arm64-check                           or: python tools/arm64_check.py [pytest's options]

Builds the emulator and the programs of tests/emulator/ for arm64 with each cross compiler that is
here, and runs the tests of test_emulator.py and test_emulator_numbers.py with these programs.

What cannot be seen so:
  - cuBLAS from Python: the library is arm64's, and this Python is not. Those tests are skipped;
    tests/emulator/cublas.cu calls it from a program instead.
  - the order in which an arm64 CPU lets others see its writes: qemu runs on this CPU, which may
    keep a stricter one.
  - pages of 16 or 64 KB: qemu-user has those of the machine that it runs on.
  - protection keys: qemu has none. Device memory is closed to the host by the system, as on any
    CPU without keys.

Where a forked child starts CPU threads, qemu 7.2 may end it with an assertion of its own
(plugins/core.c). That is no error of the emulator; with the BLAS linked it has not happened.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KIT = Path(__file__).resolve().parents[1]
TESTS = KIT / "tests" / "emulator"
SYSROOT = Path("/usr/aarch64-linux-gnu")  # where the cross compiler's package puts its C library
GCC, QEMU = "aarch64-linux-gnu-g++", "qemu-aarch64"
MACHINE_FAILED = 3


def missing():
    """What is to be installed first, in words, or None."""
    absent = [tool for tool in (QEMU, GCC) if shutil.which(tool) is None]
    if not absent:
        return None
    return (
        f"{' and '.join(absent)} not found; hint: apt-get install qemu-user g++-aarch64-linux-gnu"
    )


def runner():
    """The command line in front of an arm64 program."""
    return [QEMU, "-L", str(SYSROOT)]


def compilers():
    """Command lines by name."""
    found = {GCC: [GCC]}
    if importlib.util.find_spec("ziglang"):
        zig = [sys.executable, "-m", "ziglang", "c++", "-target", "aarch64-linux-gnu"]
        found["clang of ziglang"] = zig
    return found


def fetch_blas(folder):
    """Unpacks the arm64 wheel of the BLAS behind cuBLAS."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    target = ["--platform", "manylinux2014_aarch64", "-d", folder]
    subprocess.run([*pip, *target, "scipy-openblas32"], check=True)
    (wheel,) = folder.glob("*.whl")
    shutil.unpack_archive(wheel, folder, "zip")
    # Its Fortran library names libz and calls none of it; cross compilers come without.
    stand_in = folder / "scipy_openblas32" / "lib" / "libz.so.1"
    link = [GCC, "-shared", "-nostdlib", "-Wl,-soname,libz.so.1", "-x", "c", os.devnull]
    subprocess.run([*link, "-o", stand_in], check=True)


def check(cxx, blas, options):
    """Runs the tests with a compiler; True if all hold."""
    # configure.py finds the BLAS as the package that it is.
    env = {**os.environ, "CXX": shlex.join(cxx), "EMULATOR_RUN": shlex.join(runner()),
           "PYTHONPATH": str(blas)}  # fmt: skip
    files = [TESTS / "test_emulator.py", TESTS / "test_emulator_numbers.py"]
    parallel = ["-n", "2"] if importlib.util.find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", "-q", "-r", "fE", *parallel, *options, *files]
    return subprocess.run(command, env=env, cwd=KIT).returncode == 0


def main():
    """Runs all; exits with 0 if all hold, 1 if not, 3 if something is missing."""
    if missing():
        print(f"arm64-check: {missing()}", file=sys.stderr)
        return MACHINE_FAILED
    with tempfile.TemporaryDirectory() as folder:
        try:
            fetch_blas(Path(folder))
        except subprocess.CalledProcessError:
            print("arm64-check: the BLAS for arm64 could not be had, see above", file=sys.stderr)
            return MACHINE_FAILED
        held = {}
        for name, cxx in compilers().items():
            print(f"arm64, built by {name}:", flush=True)
            held[name] = check(cxx, Path(folder), sys.argv[1:])
    for name, good in held.items():
        print(f"arm64, built by {name}: {'all hold' if good else 'some do not hold, see above'}")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
