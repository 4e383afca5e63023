"""Grades the reference, a slow submission and cheaters by the checks of speed, on a real GPU.

    python3 tools/speed_check.py [--device cuda] [--output FOLDER]

Prints what was measured. Exit code 1 unless the reference comes out as fast as itself, the slow
one as slower, and every cheater as caught.
"""

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

import catalogue
from grader.checks.speed import checks as speed
from grader.checks.speed import gpu
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import FAIL, PASS

#: The reference against itself: what the two differ by is the error of the measurement.
SAME = (0.9, 1.1)

#: A correct submission that never left the first version of its kernels.
SLOW = catalogue.Mutant(
    "slow",
    "first versions of three kernels",
    "",
    (),
    tuple(
        ("src/gpu_op.cu", find, f"{call}\n{find}")
        for find, call in (
            ("  dim3 block(kWarp, kRowsPerBlock);", "  return DLGpuSoftmaxV1(input, output);"),
            (
                "  dim3 block(kSumColumns, kSumRows);",
                "  return DLGpuReduceSumAxisZeroV1(input, output);",
            ),
            (
                "  int64_t tiles = static_cast<int64_t>(blocks_for(M, kTile)) * "
                "blocks_for(N, kTile);",
                "  return DLGpuMatrixMultiplyV1(matA, transposeA, matB, transposeB, matC);",
            ),
        )
    ),
)
FIRST_VERSIONS = ("speed_matrix_multiply", "speed_softmax", "speed_reduce_sum_axis_zero")


def scored():
    """The rubric of speed with a point for each kernel's speed."""
    rubric = load_rubric("speed")
    rows = [
        dataclasses.replace(row, points=1, zero_ratio=0.25, full_ratio=1.0)
        if row.name in speed.CHECKS
        else row
        for row in rubric.rows
    ]
    return dataclasses.replace(rubric, rows=tuple(rows))


def figures(results):
    """What was measured of the reference, for a file that is kept: nothing of the machine but
    its GPU."""
    measured = {name: dict(result.facts.get("speed", {})) for name, result in results.items()}
    device = {}
    for facts in measured.values():
        device = facts.pop("gpu", device)
    known = {name: value for name, value in device.items() if name not in ("uuid", "bus")}
    return {"date": date.today().isoformat(), "gpu": known, "checks": measured}


def grade_speed(source, device, checks):
    """Check -> result, by the rubric that gives points."""
    report = grade(source, Options(scored(), device, only=tuple(checks)))
    return {result.check: result for result in report.results if result.check in checks}


def show(name, results):
    """A line for each, and whatever was noted."""
    for result in results.values():
        facts = result.facts.get("speed", {})
        words = facts.get("summary") or result.message
        print(f"{name:<10} {result.status:<5} {result.score:g}/{result.points:g}  {words}")
        if result.status != PASS and facts.get("summary"):
            print(f"{'':<10} {result.message}")


def problems_of_the_reference(results):
    """What is wrong when the reference is timed beside itself."""
    wrong = []
    for name, result in results.items():
        ratio = result.facts.get("speed", {}).get("ratio", {}).get("median", 0)
        if result.status != PASS or not SAME[0] <= ratio <= SAME[1]:
            wrong.append(f"{name} of the reference: {result.status}, ratio {ratio:.3f}")
    return wrong


def problems_of_the_slow_one(results):
    """What is wrong when first versions are timed."""
    wrong = []
    for name in FIRST_VERSIONS:
        ratio = results[name].facts.get("speed", {}).get("ratio", {}).get("median", 0)
        if not 0 < ratio < SAME[0] or not results[name].score < 1:
            wrong.append(f"{name} of first versions: ratio {ratio:.3f}")
    return wrong


def main():
    """Runs the checks of speed on the reference, and writes what they found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "emulated"])
    parser.add_argument("--output", type=Path, default=KIT / "reports", metavar="FOLDER")
    options = parser.parse_args()
    speed.BACKENDS = (options.device,)
    for note in gpu.find().notes:
        print(f"note: {note}")
    started = time.monotonic()
    found = grade_speed(KIT / "solution", options.device, speed.CHECKS)
    options.output.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures(found), indent=1) + "\n"
    (options.output / "speed.json").write_text(text)
    print(f"the reference: {sum(r.seconds for r in found.values()):.1f} s in checks of speed, "
          f"{time.monotonic() - started:.1f} s in all")  # fmt: skip
    show("reference", found)
    first = next(iter(found.values())).facts.get("speed", {})
    print(json.dumps(first.get("gpu", {})))
    wrong = problems_of_the_reference(found)
    with tempfile.TemporaryDirectory() as folder:
        slow = grade_speed(catalogue.write(SLOW, Path(folder)), options.device, speed.CHECKS)
    show("slow", slow)
    wrong += problems_of_the_slow_one(slow)
    for mutant in catalogue.mutants():
        if mutant.check in speed.CHECKS:
            with tempfile.TemporaryDirectory() as folder:
                source = catalogue.write(mutant, Path(folder))
                results = grade_speed(source, options.device, [mutant.check])
            show("cheater", results)
            if results[mutant.check].status != FAIL:
                wrong.append(f"{mutant.name} is not caught: {results[mutant.check].status}")
    for line in wrong:
        print(f"wrong: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
