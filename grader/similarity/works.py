"""The submissions to compare: where they lie, how they are read, and which hold any own work."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from grader.base.printable import printable
from grader.classroom.store import read_classbook
from grader.similarity.fingerprint import CodePiece, Fingerprint, SimilarityError, Skeleton
from grader.submission.archive import IGNORED, SubmissionError
from grader.submission.contained_reader import Reader
from grader.submission.reader import ARCHIVE_NAMES, Submission

#: What an unwritten function says, in some year's words, in its code or in a comment that may stay
#: when it is written; and the most tokens that it has then beside what is given now.
_HOLES = (
    (re.compile(r"(?mi)^(?!\s*(?:#|//)).*(?:not_?implemented|not_written|assert false)"), 40),
    (re.compile(r"(?i)TODO|your code"), 12),
)


@dataclass(frozen=True)
class Work:
    """One submission: of a student, or of several who handed it in together.

    Attributes:
        label: who, for people.
        students: the ids of the students.
        source: where it lies.
        year: "" for this year's, else the name of the folder it was found in.
        files: path in the skeleton -> what can be compared of it.
        digests: path -> SHA-256 of the file, where it is not the skeleton's.
    """

    label: str
    students: tuple[str, ...]
    source: Path
    year: str = ""
    files: dict[str, Fingerprint] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)


def find_works(path: Path, year: str = "") -> tuple[list[Work], list[str]]:
    """(the submissions of a folder, notes on it). In the results of a class, students who share a
    source are one submission; in another folder, each folder and archive is one.

    Raises:
        SimilarityError: it is no folder, or has no submissions.
        StoredError: the results are damaged.
    """
    if not path.is_dir():
        raise SimilarityError(f"{printable(path)} is not a folder; hint: results, or submissions")
    if (path / "class.json").is_file():
        return _of_results(path, year)
    works, notes = [], []
    for child in sorted(path.iterdir()):
        if child.name.startswith(".") or child.name in IGNORED:
            continue
        if child.is_dir() or child.name.lower().endswith(ARCHIVE_NAMES):
            works.append(Work(child.name, (_student(child.name),), child, year))
        else:
            notes.append(f"passed over: {child.name} in {path} is neither a folder nor an archive")
    if not works:
        raise SimilarityError(f"{printable(path)} holds neither folders nor archives")
    return works, notes


def _student(name: str) -> str:
    for ending in (*ARCHIVE_NAMES, ".tar"):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name


def _of_results(path: Path, year: str) -> tuple[list[Work], list[str]]:
    book, works = read_classbook(path), dict[Path, Work]()
    for entry in book.entries:
        if not entry.source:
            continue
        source = Path(entry.source)
        label = f"{entry.name} ({entry.student})" if entry.name else entry.student
        before = works.get(source.absolute())
        labels = f"{before.label}, {label}" if before else label
        students = (*before.students, entry.student) if before else (entry.student,)
        works[source.absolute()] = Work(labels, students, source, year)
    if not works:
        raise SimilarityError(f"{printable(path)}: nobody of this class handed anything in")
    return list(works.values()), []


def loaded(
    works: Sequence[Work], files: Sequence[str], pristine: Path
) -> Iterator[tuple[Work, Submission | SubmissionError]]:
    """Each work with what was handed in, or the reason why it can't be read."""
    with Reader() as reader:
        for work in works:
            try:
                yield work, reader.load(work.source, files, pristine)
            except SubmissionError as error:
                yield work, error


def once(works: Sequence[Work]) -> list[Work]:
    """Each source once, this year's first, since a folder may be named twice."""
    return list({work.source.resolve(): work for work in reversed(works)}.values())[::-1]


def is_begun(files: Sequence[tuple[Fingerprint, Skeleton, Collection[int]]]) -> bool:
    """Whether a student wrote anything.

    A skeleton of another year does not count as begun, with other words in its holes, or with some
    holes filled as in the reference.

    Args:
        files: (the student's file, the skeleton's, fingerprints of the reference) for each file.
    """
    if not any(len(file.hashes) for file, _, _ in files):
        return False
    missing = [_is_hole(file, part, given) for file, given, _ in files for part in file.pieces
               if part.name in given.tasks]  # fmt: skip
    alone = any(not natural or set(file.hashes.tolist()) - set(natural)
                for file, _, natural in files)  # fmt: skip
    return not missing or (not all(missing) and (alone or not any(missing)))


def _is_hole(file: Fingerprint, part: CodePiece, given: Skeleton) -> bool:
    """Whether a function is not written: it is the skeleton's, or says so and holds little."""
    if file.symbols[part.start : part.end] == given.pieces.get(part.name):
        return True
    lines = file.text.split("\n")[file.lines[part.start] - 1 : file.lines[part.end - 1]]
    own, text = int(np.sum(file.written[part.start : part.end])), "\n".join(lines)
    return any(own < most and words.search(text) for words, most in _HOLES)
