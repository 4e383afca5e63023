"""Builds the suite for a real GPU, runs it plainly and under compute-sanitizer, keeps the results.

    python3 tests/suite/run_gpu.py OUT

OUT/suite.json gets everything, OUT/gpu.json what tests and tables need: copy it to
tests/suite/gpu.json. Python's own library, nvcc and compute-sanitizer are all it takes.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import manifest

sys.path.insert(0, str(manifest.SUITE.parent.parent / "solution"))

import configure

LIMIT = 40  # seconds for one run; a program that hangs is ended
REPORT_LINES = 14
OPTIONS = {
    "memcheck": ("--leak-check", "full", "--report-api-errors", "explicit"),
    "racecheck": ("--racecheck-report", "all"),
    "initcheck": (),
    "synccheck": (),
}
# `ERROR SUMMARY: 3 errors`, `RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)`
SUMMARY = re.compile(r"=+ (?:ERROR|RACECHECK) SUMMARY: (\d+)")
# Lines that are no report: the tool's greeting, what the program printed, summaries.
NO_REPORT = re.compile(r"COMPUTE-SANITIZER|SUMMARY|Target application returned|^\s*$")


def cublas_flags():
    """What nvcc needs for a program with cuBLAS."""
    roots = configure.cuda_roots()
    library = configure.shared_library(roots, "cublas")
    return [
        f"-I{configure.header_folder(roots, 'cublas_v2.h')}",
        *("-Xlinker", library, "-Xlinker", f"-rpath,{os.path.dirname(library)}"),
    ]


def call(command, limit):
    """Runs a command: its exit status (None if it was ended), its output, its errors, seconds."""
    started = time.monotonic()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # A session of its own, so that what a tool starts is ended with the tool.
    with subprocess.Popen(
        [str(word) for word in command],
        **pipes,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, "", f"no end within {limit:.0f} s", limit
    return process.returncode, out, err, round(time.monotonic() - started, 2)


class Suite:
    """Builds programs into a folder, and runs them."""

    def __init__(self, folder, arch, nvcc, sanitizer, deadline):
        self.folder, self.arch, self.nvcc, self.sanitizer = folder, arch, nvcc, sanitizer
        self.end = time.monotonic() + deadline

    def executable(self, program):
        """Where a program goes."""
        return self.folder / program.name

    def build(self, program):
        """Compiles a program; the compiler's messages, or nothing."""
        flags = ["-std=c++17", "-O1", "-lineinfo", f"-arch={self.arch}"]
        flags += ["-DFIXED"] if program.fixed else []
        try:
            flags += cublas_flags() if program.uses_cublas else []
        except configure.ConfigureError as error:
            return str(error)
        command = [self.nvcc, *flags, program.path, "-o", self.executable(program)]
        status, out, err, _ = call(command, 300)
        return "" if status == 0 else out + err or "nvcc failed"

    def left(self):
        """Seconds until everything has to be done."""
        return self.end - time.monotonic()

    def run(self, program, tool):
        """One run, plainly or under a tool; None if there is no time left."""
        if self.left() < 5:
            return None
        command = [self.executable(program)]
        if tool is not None:
            command = [self.sanitizer, "--tool", tool, *OPTIONS[tool], "--error-exitcode", "9"]
            command += [self.executable(program)]
        status, out, err, seconds = call(command, min(LIMIT, self.left()))
        if tool is None:
            return {"exit": status, "stdout": out, "stderr": err[-2000:], "seconds": seconds}
        return {"exit": status, "seconds": seconds, **reports(out + err, status)}


def reports(text, status):
    """How often a tool reported, and the text of its first report."""
    lines = [line for line in text.splitlines() if line.startswith("=========")]
    # The summaries of leaks and errors count the same; racecheck has one of its own.
    counts = [int(match[1]) for line in lines if (match := SUMMARY.match(line))]
    first = []
    for line in lines:
        said = line.lstrip("=").rstrip()
        if NO_REPORT.search(said):
            if first:
                break
            continue
        first.append(said[1:])
    result = {"reports": max(counts, default=None), "first": "\n".join(first[:REPORT_LINES])}
    if not counts:  # the tool itself failed, or was ended
        result["failed"] = text[-1000:] or f"exit status {status}"
    return result


def results(suite, programs, workers):
    """Everything, by program's name: the build first, then plain runs, then each tool."""
    with ThreadPoolExecutor(workers) as pool:
        built = dict(zip(programs, pool.map(suite.build, programs), strict=True))
        print(f"built in {time.monotonic() - STARTED:.0f} s", flush=True)
        good = [program for program in programs if not built[program]]
        jobs = [(program, tool) for tool in (None, *manifest.TOOLS) for program in good]
        done = dict(zip(jobs, pool.map(lambda job: suite.run(*job), jobs), strict=True))
    found = {}
    for program in programs:
        entry = {"build": built[program], "plain": done.get((program, None))}
        entry["tools"] = {tool: done.get((program, tool)) for tool in manifest.TOOLS}
        found[program.name] = entry
    return found


def shortened(found):
    """What is worth keeping in the repository: output, counts, first lines of reports."""
    short = {}
    for name, entry in found.items():
        plain = entry["plain"] or {"exit": None, "stdout": ""}
        tools = {
            tool: {"reports": run["reports"], "first": run["first"].split("\n")[0]}
            for tool, run in entry["tools"].items()
            if run is not None
        }
        short[name] = {"exit": plain["exit"], "stdout": plain["stdout"], "tools": tools}
    return short


def surprises(program, entry):
    """What is not as the program's comments say, in words."""
    if entry["build"]:
        return ["does not build: " + entry["build"].strip().split("\n")[0]]
    plain, found = entry["plain"], []
    if plain is None:
        return ["was not run: no time was left"]
    if program.correct and plain["exit"] != 0:
        found.append(f"exit status {plain['exit']}")
    if program.correct and "# cuda" in plain["stdout"]:
        found.append("printed " + next(x for x in plain["stdout"].splitlines() if "# cuda" in x))
    for tool, run in entry["tools"].items():
        if run is None or "failed" in run:
            found.append(f"{tool} did not run")
        elif program.correct and run["reports"] and tool not in program.tolerates:
            found.append(f"{tool} reports what is correct: " + run["first"].split("\n")[0])
        elif not program.correct and bool(run["reports"]) != (tool in program.sanitizer):
            said = "reports it: " + run["first"].split("\n")[0] if run["reports"] else "is silent"
            found.append(f"{tool} {said}")
    return found


def print_summary(programs, found):
    """Counts, and each program that was a surprise."""
    count = 0
    for program in programs:
        for surprise in surprises(program, found[program.name]):
            count += 1
            print(f"{program.name}: {surprise}")
    bugs = [program for program in programs if not program.correct]
    for tool in manifest.TOOLS:
        runs = [found[program.name]["tools"][tool] for program in bugs]
        seen = sum(bool(run and run["reports"]) for run in runs)
        print(f"{tool} reports {seen} of {len(bugs)} bugs")
    print(f"{len(programs)} programs, {count} surprises, {time.monotonic() - STARTED:.0f} s")


def build_alone(suite, programs, workers):
    """Builds all programs, and says which fail."""
    with ThreadPoolExecutor(workers) as pool:
        failed = [error for error in pool.map(suite.build, programs) if error]
    print("\n".join(failed) or f"built {len(programs)} programs")
    return 1 if failed else 0


STARTED = time.monotonic()


def main():
    """Builds, runs, writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder for suite.json and gpu.json")
    parser.add_argument("--arch", default="native", help="what nvcc builds for")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--deadline", type=float, default=450, help="seconds for everything")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--build", action="store_true", help="build, and run nothing")
    arguments = parser.parse_args()
    nvcc = configure.find_nvcc() or "nvcc"
    sanitizer = Path(nvcc).with_name("compute-sanitizer")
    sanitizer = sanitizer if sanitizer.exists() else "/usr/local/cuda/bin/compute-sanitizer"
    programs = [p for p in manifest.programs() if arguments.only in p.name]
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(Path(folder), arguments.arch, nvcc, sanitizer, arguments.deadline)
        if arguments.build:
            return build_alone(suite, programs, arguments.jobs)
        found = results(suite, programs, arguments.jobs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, content in (("suite.json", found), ("gpu.json", shortened(found))):
        (arguments.out / name).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    print_summary(programs, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
