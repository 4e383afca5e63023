"""Measures how alike each two submissions of a class are, relative to the class as a whole.

Everybody solves the same small tasks, so much is alike without copying. What many students have
counts little: the weight of a fingerprint (grader.similarity.fingerprint) falls from 1, if two
submissions have it, to nearly 0, if all have. The likeness of two submissions is the weight that
they share, relative to the mean weight of what each wrote: 1 for equal work, whatever the names and
the order of functions. Functions are also compared one by one (grader.similarity.functions), since
one alone may be copied.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from grader.building.tree import PRISTINE
from grader.similarity.fingerprint import SimilarityError, Skeleton, fingerprint, skeleton
from grader.similarity.functions import LITTLE, FunctionMatch, matches
from grader.similarity.works import Work, find_works, is_begun, loaded, once
from grader.submission.archive import SubmissionError

#: Likeness of the whole or of a file that stands out, and its distance from what is usual.
HIGH, FAR = 0.9, 4.0
#: A class of fewer pairs does not tell what is usual.
USUAL_PAIRS = 20
#: The least weight, of a fingerprint that everybody has.
_COMMON = 0.05
#: The weights of a smaller class fall as those of one of this size: four are no custom.
_SMALL_CLASS = 20
#: The least spread of likenesses, against which a class of one mould would look odd.
_SPREAD = 0.01
#: Fingerprints that are compared at a time; bounds the memory.
_BLOCK = 2048

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Usual:
    """The usual likeness of this year's pairs: median, and spread (1.4826 times the median absolute
    deviation, which is the standard deviation of a normal distribution). `bars` counts pairs in 50
    steps of likeness."""

    pairs: int
    median: float
    spread: float
    bars: list[int]

    def distance(self, likeness: float) -> float | None:
        """The number of spreads above the median; None if too few pairs tell what is usual."""
        return (likeness - self.median) / self.spread if self.pairs >= USUAL_PAIRS else None


@dataclass(frozen=True)
class Likeness:
    """The likeness of two submissions, or of one file of theirs.

    Attributes:
        value: from 0 to 1.
        distance: from the usual, see Usual.
        place: among all pairs, from 1; 0 if it says little.
        shared: the weight that they share, in fingerprints.
    """

    value: float
    distance: float | None
    place: int
    shared: float

    @property
    def says_little(self) -> bool:
        """Whether they share too little for the value to mean anything."""
        return self.shared < LITTLE

    @property
    def stands_out(self) -> bool:
        """Whether the value is high, and so high for only a few pairs of the class."""
        far = self.distance is None or self.distance >= FAR
        return self.value >= HIGH and far and not self.says_little


@dataclass(frozen=True)
class Pair:
    """Two submissions.

    Attributes:
        place: in the list of pairs, from 1.
        whole: of all files together; files: path -> of one.
        identical: paths of files that are the same byte by byte.
        same_student: whether a student has a part in both, as one who repeats the course.
        functions: that both have, and few others; the most telling first.
    """

    place: int
    first: Work
    second: Work
    whole: Likeness
    files: dict[str, Likeness]
    identical: list[str]
    same_student: bool
    functions: list[FunctionMatch]

    @property
    def says_little(self) -> bool:
        """Whether the likeness says little, of the whole and of each file."""
        return self.whole.says_little and all(each.says_little for each in self.files.values())

    @property
    def stands_out(self) -> bool:
        """Whether the task does not explain the pair: it has identical files, an unusual likeness,
        or functions that few others have."""
        rated = (self.whole, *self.files.values())
        same = any(not self.files[name].says_little for name in self.identical)
        return same or bool(self.functions) or any(each.stands_out for each in rated)


@dataclass
class Similarity:
    """All pairs of a class.

    Attributes:
        works: what was compared, this year's first.
        unreadable: (who, why) of what could not be.
        empty: who wrote nothing that can be compared.
        notes: what else was odd, in sentences.
        usual: path -> what is usual of that file; "" -> of the submissions.
        tasks: path -> name of a function -> its task.
        owners: path -> fingerprint -> number of submissions that have it.
    """

    files: tuple[str, ...]
    works: list[Work]
    unreadable: list[tuple[str, str]]
    empty: list[str]
    notes: list[str]
    usual: dict[str, Usual]
    tasks: dict[str, dict[str, str]]
    owners: dict[str, dict[int, int]]
    _firsts: Places
    _seconds: Places
    _likeness: dict[str, Numbers]
    _shared: dict[str, Numbers]
    _places: dict[str, Places]
    _functions: dict[tuple[int, int], list[FunctionMatch]]

    def __len__(self) -> int:
        return len(self._firsts)

    def pairs(self, at_least: float = 0.0) -> Iterator[Pair]:
        """The pairs with at least that likeness in the whole, a file or a function.

        Pairs that stand out come first, by their best place in the whole, in each file and among
        functions, since one file or function alone may be copied. Pairs that say little come last.
        """
        best = np.min([np.where(p > 0, p, len(self) + 1) for p in self._places.values()], axis=0)
        functions = self._of_functions("likeness")
        most = np.max([*self._likeness.values(), functions], axis=0)
        may = np.flatnonzero(np.max(list(self._likeness.values()), axis=0) >= HIGH).tolist()
        out = functions > 0
        out[may] = [self._pair(0, index).stands_out for index in may]
        for place, index in enumerate(np.lexsort((-self._likeness[""], best, ~out)).tolist(), 1):
            if most[index] >= at_least:
                yield self._pair(place, index)

    def _of_functions(self, figure: str) -> Numbers:
        """The largest `figure` of each pair's functions; 0 for none."""
        return _largest(self._functions, figure, self._firsts, self._seconds)

    @property
    def this_year(self) -> int:
        """The number of this year's works."""
        return sum(not work.year for work in self.works)

    def weight(self, name: str, hashes: Sequence[int]) -> float:
        """The weight of fingerprints of a file, summed."""
        return float(np.sum(_of(self.owners[name], len(self.works), hashes)))

    def _pair(self, place: int, index: int) -> Pair:
        one, two = self.works[self._firsts[index]], self.works[self._seconds[index]]
        return Pair(
            place,
            one,
            two,
            self._one("", index),
            {name: self._one(name, index) for name in self.files},
            [n for n in self.files if n in one.digests and one.digests[n] == two.digests.get(n)],
            bool(set(one.students) & set(two.students)),
            self._functions.get((int(self._firsts[index]), int(self._seconds[index])), []),
        )

    def _one(self, name: str, index: int) -> Likeness:
        value = float(self._likeness[name][index])
        distance = self.usual[name].distance(value)
        shared = float(self._shared[name][index])
        return Likeness(value, distance, int(self._places[name][index]), shared)


# --- reading --------------------------------------------------------------------------------------


def compare(
    folders: Sequence[Path],
    earlier: Sequence[Path],
    files: Sequence[str],
    progress: Callable[[int, int], None] = lambda done, total: None,
    pristine: Path = PRISTINE,
    reference: Path | None = None,
    known: Sequence[Path] = (),
) -> Similarity:
    """Reads this year's submissions and earlier ones, and compares this year's with all.

    Args:
        files: paths of the files with holes in the skeleton, `pristine`.
        progress: is told how many submissions of how many were read.
        reference: a solution. What it has counts less in a function; beside unwritten tasks it
            counts nothing, for an older skeleton gave it.
        known: folders with such files; what they hold counts nothing, as older skeletons.

    Raises:
        SimilarityError: there are fewer than two submissions that can be compared.
    """
    given = {name: _given(pristine, known, name) for name in files}
    natural = {name: _natural(reference, name, given[name]) for name in files}
    works, notes = list[Work](), list[str]()
    for folder, year in [*((f, "") for f in folders), *((f, f.resolve().name) for f in earlier)]:
        more, odd = find_works(folder, year)
        works, notes = works + more, notes + odd
    read, unreadable, empty = list[Work](), list[tuple[str, str]](), list[str]()
    for done, (work, found) in enumerate(loaded(once(works), files, pristine)):
        progress(done, len(works))
        if isinstance(found, SubmissionError):
            unreadable.append((work.label, str(found)))
            continue
        work, cut = _with_prints(work, found.taken, given, pristine)
        notes += [f"{work.label}: {name} is too long; its beginning is compared" for name in cut]
        if is_begun([(print_, given[n], natural[n]) for n, print_ in work.files.items()]):
            read.append(work)
        else:
            empty.append(work.label)
    progress(len(works), len(works))
    if len(read) < 2 or read[0].year:
        raise SimilarityError(
            f"{len(read)} of {len(works)} submissions can be compared, too few; "
            f"{len(unreadable)} can't be read, {len(empty)} hold nothing that a student wrote"
        )
    tasks = {name: each.tasks for name, each in given.items()}
    return _measure(tuple(files), read, unreadable, empty, notes, tasks, natural)


def _with_prints(
    work: Work, taken: Mapping[str, bytes], given: Mapping[str, Skeleton], pristine: Path
) -> tuple[Work, list[str]]:
    """The work with the fingerprints of its files, and of which files these are cut."""
    prints = {n: fingerprint(_decoded(taken[n]), n, given[n]) for n in given if n in taken}
    digests = {n: hashlib.sha256(taken[n]).hexdigest() for n in prints
               if taken[n] != (pristine / n).read_bytes()}  # fmt: skip
    return (
        replace(work, files=prints, digests=digests),
        [name for name, print_ in prints.items() if print_.cut],
    )


def _given(pristine: Path, known: Sequence[Path], name: str) -> Skeleton:
    """The texts of a file that do not count. The tasks are those of `pristine`."""
    others = [folder / name for folder in known if (folder / name).is_file()]
    return skeleton(_given_text(pristine / name), name, [_given_text(path) for path in others])


def _natural(reference: Path | None, name: str, given: Skeleton) -> frozenset[int]:
    """The fingerprints of the reference."""
    if reference is None or not (reference / name).is_file():
        return frozenset()
    return frozenset(fingerprint(_given_text(reference / name), name, given).hashes.tolist())


def _given_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SimilarityError(f"the skeleton lacks {path}: {error.strerror}") from error


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "replace").removeprefix("\ufeff")


# --- measuring ------------------------------------------------------------------------------------


def _measure(
    files: tuple[str, ...],
    works: list[Work],
    unreadable: list[tuple[str, str]],
    empty: list[str],
    notes: list[str],
    tasks: dict[str, dict[str, str]],
    natural: dict[str, frozenset[int]],
) -> Similarity:
    """Compares all pairs. Memory holds the square of the number of works, and a block of
    fingerprints."""
    count, rows = len(works), sum(not work.year for work in works)
    firsts, seconds = np.nonzero(np.arange(rows)[:, None] < np.arange(count)[None, :])
    shared, totals, owners = dict[str, Numbers](), dict[str, Numbers](), dict[str, dict[int, int]]()
    for name in files:
        shared[name], totals[name], owners[name] = _shared_weights(works, name, rows)
    shared[""], totals[""] = sum(shared.values()), sum(totals.values())  # type: ignore[assignment]
    likeness = {n: _proportion(shared[n], totals[n])[firsts, seconds] for n in ("", *files)}
    weights = {name: shared[name][firsts, seconds] for name in likeness}
    usual = {name: _usual(values[seconds < rows]) for name, values in likeness.items()}
    places = {name: _places(likeness[name], weights[name]) for name in likeness}
    functions = dict[tuple[int, int], list[FunctionMatch]]()
    for name in files:
        prints, weigh = [w.files.get(name) for w in works], partial(_of, owners[name], count)
        for pair, some in matches(name, prints, rows, weigh, natural[name]).items():
            functions[pair] = sorted([*functions.get(pair, ()), *some], key=lambda m: -m.shared)
    strength = _largest(functions, "shared", firsts, seconds)
    places["function"] = _places(strength, strength)
    return Similarity(files, works, unreadable, empty, notes, usual, tasks, owners,
                      firsts, seconds, likeness, weights, places, functions)  # fmt: skip


def _largest(
    functions: dict[tuple[int, int], list[FunctionMatch]],
    figure: str,
    firsts: Places,
    seconds: Places,
) -> Numbers:
    """The largest `figure` of the functions of each pair, 0 of none."""
    pairs = zip(firsts.tolist(), seconds.tolist(), strict=True)
    some = (functions.get(pair, ()) for pair in pairs)
    return np.array([max((getattr(m, figure) for m in each), default=0.0) for each in some])


def _places(values: Numbers, shared: Numbers) -> Places:
    """Places from 1, equal for equal values; 0 for pairs that share little."""
    enough = shared >= LITTLE
    ordered = np.sort(values[enough])
    more = len(ordered) - np.searchsorted(ordered, values, side="right")
    return np.where(enough, more + 1, 0).astype(np.int64)


def _shared_weights(
    works: Sequence[Work], name: str, rows: int
) -> tuple[Numbers, Numbers, dict[int, int]]:
    """(weight that each of the first `rows` works shares with each, weight of each, how many
    works have a fingerprint, of those that at least two have)."""
    prints = [np.unique(w.files[name].hashes) if name in w.files else np.zeros(0, np.int64)
              for w in works]  # fmt: skip
    known, index, had = np.unique(np.concatenate(prints), return_inverse=True, return_counts=True)
    who = np.repeat(np.arange(len(works)), [len(each) for each in prints])
    weights = _weights(had, len(works))
    totals = np.bincount(who, weights[index], len(works)).astype(np.float64)
    column = np.cumsum(had > 1) - 1  # among the fingerprints that somebody shares
    kept = had[index] > 1
    who, place, weight = who[kept], column[index[kept]], np.sqrt(weights[index[kept]])
    order = np.argsort(place, kind="stable")
    who, place, weight = who[order], place[order], weight[order]
    shared = np.zeros((rows, len(works)))
    for begin in range(0, int(np.sum(had > 1)), _BLOCK):
        span = slice(*np.searchsorted(place, [begin, begin + _BLOCK]))
        block = np.zeros((len(works), _BLOCK))
        block[who[span], place[span] - begin] = weight[span]
        shared += block[:rows] @ block.T
    many = had > 1
    return shared, totals, dict(zip(known[many].tolist(), had[many].tolist(), strict=True))


def _of(owners: dict[int, int], works: int, hashes: Sequence[int]) -> Numbers:
    """The weights of fingerprints, from how many works have each."""
    return _weights(np.array([owners.get(value, 1) for value in hashes], np.int64), works)


def _weights(had: Places, works: int) -> Numbers:
    """Weights: 1 if two works have it, falling with the logarithm to _COMMON if all have it."""
    most = math.log(max(works, _SMALL_CLASS) / 2)
    return np.maximum(_COMMON, 1 - np.log(np.maximum(had, 2) / 2) / most)


def _proportion(shared: Numbers, totals: Numbers) -> Numbers:
    mean = (totals[: len(shared), None] + totals[None, :]) / 2
    return np.minimum(1.0, (shared / np.maximum(mean, 1e-9)).round(9))  # 1 for the same


def _usual(values: Numbers) -> Usual:
    if not len(values):
        return Usual(0, 0.0, _SPREAD, [0] * 50)
    median = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - median)))
    bars = np.histogram(values, 50, (0.0, 1.0))[0].tolist()
    return Usual(len(values), median, max(spread, _SPREAD), bars)
