"""Grades a simulated class, kills the run on the way, and holds the results against the class.

python tools/class_run.py FOLDER --students 300 --device emulated --json handout/class.json
python tools/class_run.py OTHER --workers 2 --device emulated --against FOLDER/results

With --workers a Dask cluster grades, and its workers are killed instead of the run. Options that it
has not itself go to `grader batch`. Prints submissions an hour, the cost of a submission from the
first to the last, and the memory of the parent; exit code 1 if a result was lost, made twice or is
not what the work deserves.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import date, datetime
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

from class_of import make_class
from dask_cluster import Cluster
from grader.classroom.store import GRADED, MISSING, UNREADABLE, Standing, read_classbook

_GROUPS = 6
_PAUSE = 300.0  # seconds; with two at a time something ends within them


class Run:
    """One start of `grader batch`, with the largest memory of its parent."""

    def __init__(self, words: list[str], log: Path) -> None:
        self.started, self.peak = time.monotonic(), 0
        with open(log, "ab") as file:
            self.process = subprocess.Popen(words, cwd=KIT, stdout=file, stderr=file,
                                            start_new_session=True)  # fmt: skip

    def runs(self) -> bool:
        """Whether it still runs; looks at its memory."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            found = re.search(r"VmHWM:\s+(\d+)", status)
            self.peak = max(self.peak, int(found[1]) << 10 if found else 0)
        except OSError:
            pass
        return self.process.poll() is None

    def kill(self) -> None:
        """As the machine's owner may, at any moment."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def journal(results: Path) -> list[dict]:
    """A line for each student whose grading has ended."""
    path = results / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def grade(words: list[str], results: Path, kills: list[int]) -> list[Run]:
    """Runs the batch to its end; kills it each time when so many students have a result."""
    runs = []
    for limit in [*kills, None]:
        runs.append(Run(words, results.parent / "log"))
        while runs[-1].runs():
            if limit is not None and len(journal(results)) >= limit:
                runs[-1].kill()
                print(f"killed when {len(journal(results))} had a result", flush=True)
                break
            time.sleep(0.2)
    return runs


def grade_on_cluster(words: list[str], results: Path, kills: list[int], workers: int) -> list[Run]:
    """Runs the batch once on a Dask cluster; kills a worker each time when so many students have
    a result, and starts another."""
    cluster = Cluster(results.parent, EMULATOR_THREADS="1")
    try:
        working = [cluster.worker() for _ in range(workers)]
        run = Run([*words, "--scheduler", cluster.address], results.parent / "log")
        while run.runs():
            if kills and len(journal(results)) >= kills[0]:
                kills = kills[1:]
                working.pop(0).kill()
                working.append(cluster.worker())
                print(f"a worker was killed when {len(journal(results))} had a result", flush=True)
            time.sleep(0.2)
        return [run]
    finally:
        cluster.stop()


def undeserved(standing: Standing, kind: str) -> str:
    """What is wrong with a student's result, given how the work was made; "" if nothing is."""
    failed = [name for name, o in standing.outcomes.items() if o.status in ("fail", "error")]
    right = {
        "missing": standing.state == MISSING,
        "unreadable": standing.state == UNREADABLE,
        "right": standing.state == GRADED and standing.score == standing.points > 0,
        "skeleton": standing.state == GRADED and standing.score == 0 < standing.points,
        "copy": standing.state == GRADED,
    }.get(kind, standing.state == GRADED and bool(failed))
    if right:
        return ""
    return f"{standing.entry.student}, {kind}: {standing.state}, {standing.score:g} {failed}"


def gaps(lines: list[dict]) -> list[float]:
    """Seconds from one result to the next, without the pause of a class that was put by."""
    ended = [datetime.fromisoformat(line["ended"]).timestamp() for line in lines]
    found = [after - before for before, after in itertools.pairwise(ended)]
    return [gap for gap in found if gap < _PAUSE]


def by_sixths(seconds: list[float]) -> list[float]:
    """The mean of each of some equal groups, in the order given."""
    size = max(1, len(seconds) // _GROUPS)
    groups = [seconds[n : n + size] for n in range(0, len(seconds) - size + 1, size)]
    return [round(sum(group) / len(group), 2) for group in groups]


def main() -> int:
    """Makes, grades and judges the class that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="new, for the class and its results")
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--resume", action="store_true", help="take up what was stopped")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--workers", type=int, help="of a Dask cluster, which is started here")
    parser.add_argument("--against", type=Path, help="results of the same class, to be equal")
    options, more = parser.parse_known_args()
    results, chance = options.folder.resolve() / "results", random.Random(options.seed)
    if not options.resume:
        shutil.rmtree(options.folder, ignore_errors=True)
    kinds = make_class(options.folder, options.students, options.seed)
    words = [sys.executable, "-m", "grader", "batch", str(options.folder.resolve() / "submissions"),
             "--roster", str(options.folder.resolve() / "class.csv"), "-o", str(results),
             "--no-cache", *more]  # fmt: skip
    kills = sorted(chance.sample(range(2, max(3, options.students - 10)), options.kills))
    kills = [] if options.resume else kills
    if options.workers:
        runs = grade_on_cluster(words, results, kills, options.workers)
    else:
        runs = grade(words, results, kills)
    figures, wrong = judge(results, kinds, runs)
    if options.workers:
        figures |= {"workers": options.workers, "kills": 0, "workers_killed": len(kills)}
    if options.against:
        wrong += differences(results, options.against)
    print("\n".join([*wrong, *(f"{name}: {value}" for name, value in figures.items())]))
    if options.json:
        options.json.write_text(json.dumps(figures | {"wrong": wrong}, indent=1) + "\n")
    return 1 if wrong else 0


def judge(results: Path, kinds: dict[str, str], runs: list[Run]) -> tuple[dict, list[str]]:
    """The figures, and what is wrong with the results."""
    lines, book = journal(results), read_classbook(results)
    wrong = [undeserved(s, kinds[s.entry.student]) for s in book.standings()]
    wrong += [f"{s} was graded {n} times"
              for s, n in Counter(line["student"] for line in lines).items() if n > 1]  # fmt: skip
    # What passes from one run to the next, in which the kit is looked at anew, counts too.
    hours = sum(gaps(lines)) / 3600
    figures = {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "students": len(kinds),
        "kinds": dict(Counter(kinds.values())),
        "states": dict(Counter(s.state for s in book.standings())),
        "different": len({line["sha256"] for line in lines}),
        "kills": len(runs) - 1,
        "minutes": round(60 * hours, 1),
        "submissions_an_hour": round((len(lines) - 1) / hours),
        "seconds_a_submission_by_sixths": by_sixths(gaps(lines)),
        # Of like work, since wrong work that never ends takes longer wherever chance has put it.
        "seconds_of_grading_right_work_by_sixths": by_sixths(
            [line["seconds"] for line in lines if kinds[line["student"]] == "right"]
        ),
        "peak_memory_of_the_parent_mb": round(max(run.peak for run in runs) / 1e6),
    }
    return figures, [line for line in wrong if line]


def differences(results: Path, others: Path) -> list[str]:
    """Students whose checks ended otherwise in other results of the same class."""
    pairs = itertools.zip_longest(
        read_classbook(results).standings(), read_classbook(others).standings()
    )
    return [
        f"{a.entry.student}: {a.state} {a.score:g}, elsewhere {b.state} {b.score:g}"
        for a, b in pairs
        if (a.state, {k: (o.status, o.score) for k, o in a.outcomes.items()})
        != (b.state, {k: (o.status, o.score) for k, o in b.outcomes.items()})
    ]


if __name__ == "__main__":
    sys.exit(main())
