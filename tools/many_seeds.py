"""Grades right work with many seeds: nothing of it may fail.

That is the reference, the published-style fixture, and honest hand-ins of eleven styles in honest/.

python tools/many_seeds.py --seeds 200 --jobs 2 --data FOLDER --json seeds.json
python tools/many_seeds.py --seeds 10 --only warps --only tiles --no-training
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import platform
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tests/emulator")]

import kept_builds
import kit as emulator_kit
from grader.building.tree import processors
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import ERROR, FAIL
from grader.sandbox.scratch import use_memory

#: Name -> (profile, folder).
RIGHT = {
    "default": ("default", KIT / "solution"),
    "classic": ("classic", KIT / "tests" / "submissions" / "classic"),
    **{
        folder.name: ("default", folder)
        for folder in sorted((KIT / "tests" / "honest").iterdir())
        if folder.is_dir()
    },
}


def grade_one(
    name: str, seed: int, device: str, data: Path | None, training: bool
) -> tuple[list[str], float]:
    """What did not pass, in words, and how long it took."""
    profile, folder = RIGHT[name]
    rubric = load_rubric(profile)
    only = tuple(row.name for row in rubric.rows if training or not row.name.startswith("mnist"))
    options = Options(rubric, device, seed=f"{seed:08x}", data=data, only=only)
    with kept_builds.kept_builds(with_checked=True):  # a seed changes no build
        report = grade(folder, options)
    wrong = [
        f"{name}, seed {report.seed}: {result.check} is {result.status}: {result.message}"
        for result in report.results
        if result.status in (FAIL, ERROR)
    ]
    return wrong, report.seconds


def main() -> int:
    """Runs what the command line asks for; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200, help="for each of them; default 200")
    parser.add_argument("--first", type=int, default=0, help="number of the first seed")
    parser.add_argument(
        "--only", action="append", choices=list(RIGHT), metavar="NAME",
        help=f"this one alone; may be given again: {', '.join(RIGHT)}",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=processors())
    parser.add_argument("--device", default="emulated", choices=["emulated", "cuda"])
    parser.add_argument("--data", type=Path, help="folder of MNIST")
    parser.add_argument("--no-training", action="store_true", help="leave MNIST out")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so long")
    parser.add_argument("--json", type=Path, help="add the figures to that list of runs")
    options = parser.parse_args()
    # As in a batch: threads of one grading would wait for those of others.
    os.environ.setdefault("EMULATOR_THREADS", str(max(1, processors() // options.jobs)))
    use_memory()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[emulator_kit.KEPT] = folder
        return run(options)


def run(options: argparse.Namespace) -> int:
    """Grades, and prints the figures; they are kept now and then, so that a kill loses few."""
    wrong: list[str] = []
    started, seconds = time.monotonic(), []
    graded: collections.Counter[str] = collections.Counter()
    wanted = options.only or list(RIGHT)
    seeds = range(options.first, options.first + options.seeds)
    jobs = [(name, seed) for seed in seeds for name in wanted]
    profile, folder = RIGHT[wanted[0]]  # builds the kit once
    grade(folder, Options(load_rubric(profile), options.device, only=("build",)))
    console = Console(stderr=True)
    kept, before = options.json, None

    def figures() -> str:
        nonlocal before
        found = {
            "date": date.today().isoformat(),
            "machine": f"{platform.machine()}, {options.jobs} at a time",
            "device": options.device,
            "graded": dict(graded),
            "training": not options.no_training,
            "failures": wrong,
            "seconds": round(time.monotonic() - started, 1),
            "seconds_each": round(sum(seconds) / len(seconds), 1),
        }
        if kept:
            runs = json.loads(kept.read_text()) if kept.exists() else []
            runs = [each for each in runs if each != before]  # what others added stays
            before = json.loads(json.dumps(found))
            new = kept.with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps([*runs, found], indent=1) + "\n")
            new.replace(kept)
        return json.dumps(found, indent=1)

    with Progress(console=console) as progress, ProcessPoolExecutor(options.jobs) as pool:
        task = progress.add_task("grading", total=len(jobs))
        more = (options.device, options.data, not options.no_training)
        futures = {pool.submit(grade_one, *job, *more): job[0] for job in jobs}
        for number, future in enumerate(as_completed(futures), 1):
            found, took = future.result()
            graded[futures[future]] += 1
            wrong += found
            seconds.append(took)
            for line in found:
                console.print(line, markup=False)
            progress.advance(task)
            if number % 20 == 0:
                figures()
                if not console.is_terminal:
                    console.print(f"{number} of {len(jobs)}, {time.monotonic() - started:.0f} s")
            if time.monotonic() - started > options.seconds:
                pool.shutdown(cancel_futures=True)
                break  # what was cancelled never completes
    print(figures())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
