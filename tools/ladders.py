"""Times the ladders of memory on a GPU, and counts what rungs move on the emulated one.

    python3 tools/ladders.py              # on a GPU: checks and times all rungs
    python3 tools/ladders.py --count      # counts them and those of the GEMM ladder; no GPU needed
    python3 tools/ladders.py --page       # writes the page anew from what is kept

Each writes docs/ladders.json and docs/ladders.md. Timing needs nvcc; PyTorch is timed beside, where
it is installed. Each rung is checked on odd sizes before. The roof is cudaMemcpyDeviceToDevice.
"""

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np

import gemm_rungs
from ladder_rungs import (
    GEMM_MAIN,
    KIT,
    LADDERS,
    ODD,
    build_all,
    code_of,
    cost_of,
    cost_of_rung,
    names,
    rank_correlation,
    says,
    source,
)

KEPT, PAGE = KIT / "docs/ladders.json", KIT / "docs/ladders.md"
GEMM = KIT / "docs/gemm_ladder.json"
#: Rungs of the GEMM ladder that are counted: those that have no tensor cores and no splits.
GEMM_COUNTED, GEMM_SIZE = gemm_rungs.RUNGS[:7], 256
#: Milliseconds of a sample, at least where calls are short; samples; calls of a sample at most.
SAMPLE, SAMPLES, MOST_CALLS = 5.0, 15, 20


def floats(array):
    """An array as C wants it."""
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


def typed(found):
    """The library of a rung, with the types of its functions."""
    size, pointer = ctypes.c_int64, ctypes.POINTER(ctypes.c_float)
    found.rung_values.argtypes = [pointer, pointer, size, size, size]
    found.rung_times.argtypes = [size, size, size, ctypes.c_int, ctypes.c_int, pointer]
    found.copy_times.argtypes = [size, ctypes.c_int, ctypes.c_int, pointer]
    return found


def check(library, ladder, sizes=ODD):
    """Raises RuntimeError where a rung is wrong."""
    random = np.random.default_rng(0)
    for rows, columns in sizes:
        x = random.uniform(-2, 2, (rows, columns)).astype(np.float32)
        right = ladder.right(x.astype(np.float64))
        got = np.full(right.size, np.nan, np.float32)
        error = library.rung_values(floats(x), floats(got), rows, columns, got.size)
        bound = 1e-6 * max(1.0, np.abs(x).sum() if ladder.moved == 1 else 1.0)
        off = np.abs(got - right.ravel()).max()
        if error or not off <= bound:
            raise RuntimeError(f"{rows} x {columns}: error {error}, off by {off:.1e}")


def quartiles(take):
    """Quartiles in microseconds; `take(calls, samples, milliseconds)` times."""
    once = np.zeros(1, np.float32)
    take(1, 1, once)
    about = max(float(once[0]), 1e-4)
    calls = int(min(MOST_CALLS, max(1, SAMPLE / about)))
    times = np.zeros(SAMPLES if about < SAMPLE else 5, np.float32)
    if take(calls, len(times), times):
        raise RuntimeError("a CUDA error")
    return [1e3 * t for t in statistics.quantiles(times.tolist(), n=4)]


def by_torch(ladder):
    """Quartiles of PyTorch's own function, or None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    x = torch.full(ladder.timed, 0.0115, device="cuda")
    y = torch.empty(ladder.timed if ladder.name != "transpose" else ladder.timed[::-1],
                    device="cuda")  # fmt: skip
    calls = {
        "reduction": lambda: torch.sum(x),
        "softmax": lambda: torch.softmax(x, 1, out=y),
        "transpose": lambda: y.copy_(x.t()),
    }
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def take(count, samples, milliseconds):
        for i in range(samples + 1):
            begin.record()
            for _ in range(count):
                calls[ladder.name]()
            end.record()
            end.synchronize()
            milliseconds[i - 1 if i else 0] = begin.elapsed_time(end) / count
        return 0

    return quartiles(take)


def measured(folder):
    """What is timed on this machine's GPU."""
    libraries = {rung: typed(ctypes.CDLL(str(path))) for rung, path in build_all(folder).items()}
    said = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True, text=True,
    ).stdout.strip().split(", ")  # fmt: skip
    found = {"device": said[0], "driver": said[1], "date": date.today().isoformat(),
             "torch": version("torch"), "nvcc": nvcc(), "ladders": {}}  # fmt: skip
    for ladder in LADDERS:
        rows, columns = ladder.timed
        outs, first = ladder.outs(rows, columns), libraries[ladder, ladder.rungs[0]]
        copy = quartiles(lambda *a, first=first, n=rows * columns: first.copy_times(
            n, *a[:2], floats(a[2])))  # fmt: skip
        row = {"copy": copy, "torch": by_torch(ladder), "rungs": {}}
        for file in ladder.rungs:
            one = timed(libraries[ladder, file], ladder, (rows, columns, outs))
            row["rungs"][file] = {"code": code_of(ladder, file), **one}
            said = one.get("failed") or f"{share(ladder, one['us'][1], copy[1]):.2f} of a copy"
            print(f"{ladder.name}/{file}: {said}")
        found["ladders"][ladder.name] = row
    return found


def timed(library, ladder, sizes):
    """A rung's quartiles, after it was checked; or why there are none."""
    try:
        check(library, ladder)
        return {"us": quartiles(lambda *a: library.rung_times(*sizes, *a[:2], floats(a[2])))}
    except RuntimeError as error:
        return {"failed": str(error)}


def version(package):
    """The version of an installed package, or "none"."""
    try:
        return __import__(package).__version__
    except ImportError:
        return "none"


def nvcc():
    """The compiler's version."""
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout
    return said.partition("release ")[2].partition(",")[0]


def counted():
    """The cost of each rung, by ladder and file."""
    with tempfile.TemporaryDirectory() as folder:
        costs = {ladder.name: {} for ladder in LADDERS}
        for ladder, file in names():
            costs[ladder.name][file] = {
                "code": code_of(ladder, file), "cost": cost_of_rung(ladder, file, Path(folder))
            }  # fmt: skip
        costs["gemm"] = {
            rung.name: {"code": gemm_rungs.code_of(rung), "cost": gemm_cost(rung, Path(folder))}
            for rung in GEMM_COUNTED
        }
    return costs


def gemm_cost(rung, folder):
    """The counted cost of a rung of the GEMM ladder."""
    text = f'{rung.lines}#include "{gemm_rungs.SOURCES / rung.file}"\n'
    return cost_of(text + GEMM_MAIN.format(n=GEMM_SIZE), folder)


def share(ladder, us, copy_us):
    """The bandwidth of a rung as a share of a copy's, which moves the matrix twice."""
    return ladder.moved / 2 * copy_us / us


def correlations(kept):
    """Ladder -> rank correlation of costs and times, where both are there."""
    times = {}
    if kept.get("measured"):
        for name, row in kept["measured"]["ladders"].items():
            rungs = row["rungs"].items()
            times[name] = {file: each["us"][1] for file, each in rungs if "us" in each}
    gemm = json.loads(GEMM.read_text())["rows"]
    times["gemm"] = {
        rung.name: gemm[rung.name]["shapes"][0]["us"][1]
        for rung in GEMM_COUNTED
        if "shapes" in gemm[rung.name]
    }
    return {
        name: rank_correlation([kept["counted"][name][r]["cost"] for r in found], [*found.values()])
        for name, found in times.items()
    }


def table(ladder, kept):
    """The lines of a ladder's table."""
    rows, columns = ladder.counted
    timed = (kept.get("measured") or {}).get("ladders", {}).get(ladder.name)
    lines = [f"\n## {ladder.name.capitalize()}\n\n"]
    if timed:
        lines.append("Timed on {} x {} floats; a copy takes {:,.1f} us{}. ".format(
            *ladder.timed, timed["copy"][1], beside(timed["torch"])))  # fmt: skip
    lines.append(f"Counted on {rows} x {columns}.\n\n")
    lines.append(
        "| rung | what | cost | us | quartiles | share of a copy |\n|---|---|--:|--:|--:|--:|\n"
    )
    for file in ladder.rungs:
        code = code_of(ladder, file)
        count, row = kept["counted"][ladder.name][file], (timed or {"rungs": {}})["rungs"].get(file)
        known = [each["code"] for each in (count, row) if each]
        changed = "" if set(known) == {code} else " (changed since)"
        cells = ["", (row or {}).get("failed", ""), ""]
        if row and "us" in row:
            low, middle, high = row["us"]
            cells = [f"{middle:,.1f}", f"{low:,.1f} to {high:,.1f}",
                     f"{share(ladder, middle, timed['copy'][1]):.2f}"]  # fmt: skip
        lines.append(f"| {file}{changed} | {says(source(ladder, file))} | {count['cost']:,} | "
                     f"{' | '.join(cells)} |\n")  # fmt: skip
    return lines


def beside(torch_us):
    """What is said of PyTorch."""
    return f", PyTorch {torch_us[1]:,.1f} us" if torch_us else ""


def page(kept):
    """The text of docs/ladders.md."""
    where = kept.get("measured")
    lines = [
        "# Ladders of memory\n\n",
        "Sums, softmax and transposes, from a naive kernel to one that takes as long as a copy: "
        "lessons in\n`solution/src/reduction/`, `softmax/` and `transpose/`, a rung each; its head "
        "says what changes and why.\n`tools/ladders.py` writes this page. The cost is "
        "counted on the emulated GPU; see `emulator/README.md`.\n",
    ]
    if where:
        lines.append(
            "Times are of {device}, driver {driver}, nvcc {nvcc}, {date}, PyTorch {torch}: medians "
            "with quartiles,\nby events. A share is of the bandwidth of cudaMemcpyDeviceToDevice."
            "\n".format(**where)
        )
    else:
        lines.append("Times are missing: no GPU has been asked yet.\n")
    for ladder in LADDERS:
        lines += table(ladder, kept)
    lines.append(
        "\n## Does the cost rank as the time does?\n\nSpearman's rank correlation of both; of the "
        "[GEMM ladder](gemm_ladder.md) the first\nseven rungs, counted on "
        f"{GEMM_SIZE} x {GEMM_SIZE}.\n\n| ladder | rank correlation |\n|---|--:|\n"
    )
    lines += [f"| {name} | {found:.2f} |\n" for name, found in correlations(kept).items()]
    lines.append("\n| rung of the GEMM ladder | cost |\n|---|--:|\n")
    for rung in GEMM_COUNTED:
        count = kept["counted"]["gemm"][rung.name]
        changed = "" if count["code"] == gemm_rungs.code_of(rung) else " (changed since)"
        lines.append(f"| {rung.name}{changed} | {count['cost']:,} |\n")
    return "".join(lines)


def main():
    """Times or counts, and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", action="store_true", help="count on the emulated GPU")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    parser.add_argument("--build", action="store_true", help="only compile, with nvcc")
    parser.add_argument("--built", type=Path, default=KIT / "build/ladders", help="libraries")
    options = parser.parse_args()
    if options.build:
        build_all(options.built)
        return 0
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"counted": {}, "measured": None}
    if options.count:
        kept["counted"] = counted()
    elif not options.page:
        kept["measured"] = measured(options.built)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept))
    for name, found in correlations(kept).items():
        print(f"{name}: rank correlation of cost and time {found:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
