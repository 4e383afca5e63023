"""Builds the programs with nvcc, runs them on a real GPU, and keeps what they printed.

    python3 tests/programs/run_gpu.py OUT

OUT/programs.json gets everything, and OUT/expected.json what each right program printed: copy it
to tests/programs/expected.json. Python's own library and nvcc are all it takes.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import program_manifest

sys.path.insert(0, str(program_manifest.PROGRAMS.parent.parent / "solution"))

import configure

PROGRAMS = program_manifest.PROGRAMS
BUILD_LIMIT, RUN_LIMIT = 300, 40  # seconds
FILES = {"cublas": "libcublas.so", "cublasLt": "libcublasLt.so"}


def driver_library():
    """Path of the driver's library, which often lacks the name that `-lcuda` looks for."""
    try:
        ctypes.CDLL("libcuda.so.1")
        maps = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    return next((line.split()[-1] for line in maps if "/libcuda.so" in line), None)


def library_flags(libraries):
    """What nvcc needs to link them; cuBLAS may be that of the Python package."""
    roots, flags = configure.cuda_roots(), []
    for library in libraries:
        if library == "cuda":
            driver = driver_library()
            stubs = ["-L/usr/local/cuda/lib64/stubs", "-lcuda"]
            flags += ["-Xlinker", driver] if driver else stubs
            continue
        # Both libraries of cuBLAS lie in one folder, and so do their headers.
        folder = os.path.dirname(configure.shared_library(roots, "cublas"))
        path = next(iter(sorted(Path(folder).glob(FILES[library] + "*"))))
        flags += [f"-I{configure.header_folder(roots, 'cublas_v2.h')}"]
        flags += ["-Xlinker", str(path), "-Xlinker", f"-rpath,{folder}"]
    return flags


def call(command, limit):
    """Runs a command: its exit status (124 if it was ended), its output, its errors, seconds."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True, text=True, errors="replace", timeout=limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, "", f"no end within {limit} s", limit
    return done.returncode, done.stdout, done.stderr, round(time.monotonic() - started, 2)


def build(program, folder, nvcc, arch):
    """Compiles a program: the compiler's messages, and whether it failed."""
    try:
        flags = library_flags(program.libraries)
    except configure.ConfigureError as error:
        return {"failed": True, "said": str(error)}
    command = [nvcc, "-std=c++17", "-O2", "-lineinfo", f"-arch={arch}", f"-I{PROGRAMS}"]
    command += [*program.sources, *flags, "-o", folder / program.name]
    status, out, err, seconds = call(command, BUILD_LIMIT)
    return {"failed": status != 0, "said": (out + err)[-3000:], "seconds": seconds}


def run(program, folder):
    """Runs a program."""
    status, out, err, seconds = call([folder / program.name], RUN_LIMIT)
    return {"exit": status, "stdout": out, "stderr": err[-2000:], "seconds": seconds}


def results(programs, folder, options, nvcc):
    """Everything, by program's name: all are built first."""
    with ThreadPoolExecutor(options.jobs) as pool:
        built = list(pool.map(lambda p: build(p, folder, nvcc, options.arch), programs))
    found = {}
    for program, made in zip(programs, built, strict=True):
        found[program.name] = {"build": made}
        if not made["failed"] and not options.build:
            # One after another, twice: what a program prints must not change.
            found[program.name]["runs"] = [run(program, folder) for _ in range(2)]
    return found


def is_right(entry):
    """Whether a program ran twice, ended with 0, and printed the same."""
    runs = entry.get("runs", [])
    return (
        len(runs) == 2
        and runs[0]["stdout"] == runs[1]["stdout"]
        and not any(run["exit"] for run in runs)
    )


def surprises(entry):
    """What is not as it should be, as text."""
    if entry["build"]["failed"]:
        return ["does not build: " + entry["build"]["said"]]
    said = ["nvcc says: " + entry["build"]["said"]] if entry["build"]["said"].strip() else []
    runs = entry.get("runs", [])
    said += [f"exit status {r['exit']}: {r['stdout']}{r['stderr']}" for r in runs if r["exit"]]
    if len({r["stdout"] for r in runs}) > 1:
        said.append("prints something else the second time")
    return said


def main():
    """Builds, runs, writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder for programs.json and expected.json")
    parser.add_argument("--arch", default="native", help="what nvcc builds for")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--build", action="store_true", help="build, and run nothing")
    options = parser.parse_args()
    nvcc = configure.find_nvcc() or "nvcc"
    programs = [p for p in program_manifest.programs() if options.only in p.name]
    with tempfile.TemporaryDirectory() as temporary:
        found = results(programs, Path(temporary), options, nvcc)
    bad = 0
    for name, entry in found.items():
        for text in surprises(entry):
            bad += 1
            print(f"{name}: {text}")
    right = {
        n: e["runs"][0]["stdout"] for n, e in found.items() if e.get("runs") and not surprises(e)
    }
    options.out.mkdir(parents=True, exist_ok=True)
    for name, content in (("programs.json", found), ("expected.json", right)):
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        (options.out / name).write_text(text + "\n")
    print(f"{len(programs)} programs, {len(right)} right, {bad} surprises")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
