"""Makes the results of a class that never was: students of different strength, by a seed.

python tests/support/simulated.py FOLDER --students 300 --seed 1
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

KIT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(KIT))

from grader.base.files import write_whole  # noqa: E402
from grader.classroom.store import Classbook, Entry, folder_name  # noqa: E402
from grader.course.rubric import load_rubric  # noqa: E402
from grader.grading.runner import sentence  # noqa: E402
from grader.report.model import ERROR, FAIL, PASS, SKIPPED, Report, Result  # noqa: E402

START = datetime(2026, 10, 1, 23, 0, tzinfo=timezone.utc)
GIVEN = ("Ada", "Åsa", "Bo", "Chi", "Dana", "Émile", "Femi", "Giulia", "Hồng", "Иван", "José", "明")
FAMILY = ("Adeyemi", "Berg", "O'Neill", "Ćosić", "Dang", "van der Berg", "Fu", "García", "Li")
#: (message, title of a finding) of failures; the first is the commonest.
FAILURES = (
    ("{check}((33, 40)): 40 of 1,320 elements differ, the first is [32, 0]: got nan, expected 0.3",
     "Out of bounds access to global memory"),
    ("{check}((1025,)): 1,025 of 1,025 elements differ, the first is [0]: got 0, expected 1.5", ""),
    ("{check} did not end within 60 s", ""),
    ("{check}((64, 65)): it differs from run to run", "Race in shared memory"),
)  # fmt: skip


def simulate(folder: Path, students: int, seed: int = 1, profile: str = "speed") -> Classbook:
    """Results in `folder` as `grader batch` leaves them: nine in ten students are graded, the
    others are missing, unreadable, pending or met a fault of the grader."""
    chance = random.Random(seed)
    rubric = load_rubric(profile)
    book = Classbook(
        folder, rubric.title, profile, rubric.digest, rubric.points, "emulated", "auto",
        "submissions", START.isoformat(timespec="seconds"), [],
    )  # fmt: skip
    for number in range(students):
        name = f"{chance.choice(GIVEN)} {chance.choice(FAMILY)}"
        student, kind = f"{10_000 + number}", chance.random()
        entry = Entry(
            student, folder_name(f"{name}-{student}"), name, f"s{student}@example.edu",
            f"s{student}", f"section {number % 4 + 1}",
            source="" if kind < 0.03 else f"submissions/{student}.tar.gz",
            submitted=(START + timedelta(minutes=chance.randrange(-9000, 3000))).isoformat(),
            late=None, attempt=chance.randrange(1, 4),
        )  # fmt: skip
        book.entries.append(entry)
        if kind > 0.05:
            _report(book, entry, rubric, chance, kind < 0.07, kind > 0.98)
    book.write()
    return book


def _report(book, entry, rubric, chance, unreadable, faulty) -> None:
    """Writes one report: who is able passes more, and harder checks are passed by fewer."""
    ability, passed, results = chance.gauss(1.0, 1.2), set(), []
    for place, row in enumerate(rubric.rows):
        missing = [name for name in row.requires if name not in passed]
        able = 1 / (1 + math.exp((place % 7) / 2 - 1.5 - ability))
        result = Result(row.name, row.task, row.points, 0.0, SKIPPED, sentence(row.name))
        result.seconds, result.visibility = round(chance.uniform(0.05, 1.5), 3), row.visible
        if unreadable:
            result.message = "the submission can't be read"
        elif missing:
            result.message = f"needs {', '.join(missing)}"
        elif faulty and place == len(rubric.rows) - 3:
            result.status, result.message = ERROR, "OSError: no space left on device"
        elif row.name == "build" or chance.random() < able:
            result.status, result.score = PASS, row.points
            passed.add(row.name)
        else:
            message, title = chance.choices(FAILURES, (6, 3, 1, 2))[0]
            result.status, result.message = FAIL, message.format(check=row.name)
            result.findings = [{"title": title, "sentence": title}] if title else []
        if row.name.startswith("speed_") and result.status == PASS:
            result.facts = {"speed": {"ratio": round(chance.uniform(0.2, 1.1), 3)}}
        results.append(result)
    report = Report(
        entry.source, f"{chance.getrandbits(256):064x}", rubric.profile, rubric.title, "emulated",
        "bubblewrap", f"{chance.getrandbits(128):032x}", START.isoformat(), [],
        "none of autodiff.py, gpu_op.cu found in it" if unreadable else "", results,
        round(sum(result.seconds for result in results), 3), True,
        {str(part): name for part, name in rubric.parts.items()}, dict(rubric.tasks),
        rubric=rubric.digest,
    )  # fmt: skip
    write_whole(book.report_path(entry), json.dumps(report.to_dict()) + "\n")


def main() -> None:
    """Writes the results that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    book = simulate(options.folder, options.students, options.seed)
    print(f"{len(book.entries)} students in {book.path}")


if __name__ == "__main__":
    main()
