"""The largest memory of a batch's parent, with workers that answer at once with simulated results.

python tools/batch_memory.py 300 3000
"""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

import catalogue
from grader.batch import batch
from grader.batch.engine import Engine
from grader.course.rubric import load_rubric
from simulated import simulate


def make_submissions(folder: Path, students: int) -> None:
    """As many different ones, each as large as the solution."""
    for number in range(students):
        for name in catalogue.FILES:
            path = folder / f"s{number}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (KIT / "solution" / name).read_text()
            path.write_text(f"{text}{'#' if name.endswith('.py') else '//'} {number}\n")


def peak(students: int) -> int:
    """Bytes that this process has held at most, after a batch of so many."""
    folder = Path(tempfile.mkdtemp())
    try:
        make_submissions(folder / "submissions", students)
        book = simulate(folder / "simulated", 40)
        report = next(r for e in book.entries if (r := book.report(e)) and not r.has_errors)
        report.notes = []

        def answer(work: batch.GradingJob) -> tuple[object, str]:
            return replace(report, sha256=work.submission.sha256), "here"

        batch.grade_work = answer
        batch.look_around = lambda asked: batch.Site("emulated", "bubblewrap", "", "", "")
        asked = batch.Batch(folder / "submissions", folder / "results", load_rubric("default"))
        with batch.Running(asked) as running:
            here = Engine("here", lambda: ThreadPoolExecutor(2), lambda: 2)
            done = sum(len(each.standings) for each in running.run(running.plan(), here))
        assert done == students, done
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Prints the memory for each number of students, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    for students in map(int, sys.argv[1:] or ["300", "3000"]):
        with context.Pool(1) as pool:
            megabytes = pool.apply(peak, (students,)) / 1e6
        print(f"{students} submissions: {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
