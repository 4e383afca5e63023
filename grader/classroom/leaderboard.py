"""Writes a leaderboard under pseudonyms, as a page and as JSON.

A pseudonym is a keyed hash of the student's id. Without the key nobody can tell whose it is, not
even by trying all ids of the course; the instructor has the key. The board shows nothing else of a
student but the score and the measured speeds. Somebody who knows another's exact score can still
find the line.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean

from grader.base.files import write_whole
from grader.classroom.page import ClassPageError, fixed
from grader.classroom.store import GRADED, Classbook, Standing
from grader.report.html import environment

#: Characters of a salt below which it could be found by trial.
SHORTEST_SALT = 16

_WORDS = (
    "adder", "badger", "beaver", "bison", "condor", "coot", "crane", "dingo", "dolphin", "eagle",
    "egret", "falcon", "ferret", "finch", "gecko", "heron", "ibex", "jackal", "kestrel", "lemur",
    "lynx", "marten", "newt", "ocelot", "otter", "puffin", "quail", "raven", "seal", "tapir",
    "viper", "wombat",
)  # fmt: skip


@dataclass(frozen=True)
class BoardLine:
    """A line of the board. Equal scores with equal speeds have equal ranks.

    `speeds` are ratios by check, `speed` is their geometric mean, 0 without any.
    """

    rank: int
    pseudonym: str
    score: float
    speeds: dict[str, float]
    speed: float = 0.0


def pseudonyms(students: Iterable[str], salt: str) -> dict[str, str]:
    """Student id -> pseudonym, such as "otter-7f3a91c2". The same salt gives the same pseudonyms.

    Raises:
        ClassPageError: the salt is too short, or two students would share a pseudonym.
    """
    if len(salt) < SHORTEST_SALT:
        raise ClassPageError(
            f"the salt has {len(salt)} characters, fewer than {SHORTEST_SALT}; hint: make one with "
            "python3 -c 'import secrets; print(secrets.token_hex(16))'"
        )
    made = {student: _pseudonym(student, salt) for student in students}
    if len(set(made.values())) < len(made):
        raise ClassPageError("two students would share a pseudonym; hint: take another salt")
    return made


def _pseudonym(student: str, salt: str) -> str:
    """A word chosen by five bits, followed by 32 more in hex."""
    key, message = (text.encode("utf-8", "surrogatepass") for text in (salt, student))
    digest = hmac.new(key, b"leaderboard\0" + message, hashlib.sha256).digest()
    return f"{_WORDS[digest[0] % len(_WORDS)]}-{digest[1:5].hex()}"


def places(standings: Iterable[Standing], names: dict[str, str]) -> list[BoardLine]:
    """The board: graded students with a pseudonym in `names`, the highest score first, then the
    highest speed. Who is equal stands in the order of pseudonyms, which reveals nothing."""
    chosen = [s for s in standings if s.state == GRADED and s.entry.student in names]
    lines = [_line(standing, names[standing.entry.student]) for standing in chosen]
    lines.sort(key=lambda line: (-line.score, -line.speed, line.pseudonym))
    made: list[BoardLine] = []
    for number, line in enumerate(lines, 1):
        tied = bool(made) and (made[-1].score, made[-1].speed) == (line.score, line.speed)
        made.append(replace(line, rank=made[-1].rank if tied else number))
    return made


def _line(standing: Standing, pseudonym: str) -> BoardLine:
    """A line without its rank. Its speed is rounded as it is shown: ties look like ties."""
    speeds = {check: o.ratio for check, o in standing.outcomes.items() if o.ratio > 0}
    speed = round(geometric_mean(speeds.values()), 2) if speeds else 0.0
    return BoardLine(0, pseudonym, standing.score, speeds, speed)


def write_leaderboard(
    book: Classbook,
    standings: Iterable[Standing],
    page: Path,
    salt: str,
    joined: Collection[str] | None,
) -> int:
    """Writes the page, and the same as JSON beside it; returns the number of lines.

    Args:
        joined: ids of the students who agreed to be on the board; None for all.

    Raises:
        ClassPageError: the salt is too short, or nobody of the class joined.
        OSError: a file can't be written.
    """
    students = [e.student for e in book.entries if joined is None or e.student in joined]
    if not students:
        raise ClassPageError("none of those who joined is a student of this class")
    board = places(standings, pseudonyms(students, salt))
    raw = {"title": book.title, "points": book.points, "places": [asdict(each) for each in board]}
    checks = list(dict.fromkeys(check for place in board for check in place.speeds))
    template = environment().get_template("leaderboard.html.j2")
    text = template.render(
        title=book.title, points=book.points, places=board, checks=checks, fixed=fixed
    )
    write_whole(page, text)
    write_whole(page.with_suffix(".json"), json.dumps(raw, indent=1) + "\n")
    return len(board)
