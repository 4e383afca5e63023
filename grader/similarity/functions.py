"""Functions that two students wrote alike, in files that may share nothing else.

Given functions, common ones and short ones do not count: honest work is full of small functions
that can hardly be written in two ways.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from grader.similarity.fingerprint import TOP, Fingerprint

#: What shares less than the weight of this many rare fingerprints says too little.
LITTLE = 40
#: The least likeness of two functions that is told, and the least mean weight of what they share:
#: that of three or four owners in a class of thirty.
LEAST, _RARE = 0.6, 0.75
#: What the reference has, too, counts less: it may be the natural way.
_NATURAL = 1 / 2
#: Lighter fingerprints are not looked up: too many have them.
_LIGHT = 0.3

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FunctionMatch:
    """A function of one submission that another submission has too.

    Attributes:
        file: path.
        first, second: the function's name in each.
        likeness: from 0 to 1: the shared part, relative to the mean of both.
        shared: the weight of the shared part; less for what the reference has.
    """

    file: str
    first: str
    second: str
    likeness: float
    shared: float


@dataclass(frozen=True)
class _Function:
    """One that is long enough; `hashes` are its fingerprints, each once."""

    work: int
    name: str
    hashes: npt.NDArray[np.int64]


def matches(
    name: str,
    files: Sequence[Fingerprint | None],
    rows: int,
    weigh: Callable[[Sequence[int]], Weights],
    natural: Collection[int],
) -> dict[tuple[int, int], list[FunctionMatch]]:
    """(number of a work, of another) -> the functions that both have, the most telling first.

    Args:
        name: path of the file.
        files: of each work; the first `rows` are this year's and are compared with all.
        weigh: gives the weights of fingerprints.
        natural: fingerprints of the reference.
    """
    functions = list(_functions(files))
    if not functions:
        return {}
    index = _Index(functions, weigh, natural)
    found: dict[tuple[int, int], list[FunctionMatch]] = {}
    for one, function in enumerate(functions):
        if function.work >= rows:
            break
        for number, likeness, shared in index.alike(one):
            other = functions[number]
            match = FunctionMatch(name, function.name, other.name, likeness, shared)
            found.setdefault((function.work, other.work), []).append(match)
    return {pair: _best(some) for pair, some in found.items()}


class _Index:
    """Which functions have a fingerprint, and what it weighs."""

    def __init__(
        self,
        functions: Sequence[_Function],
        weigh: Callable[[Sequence[int]], Weights],
        natural: Collection[int],
    ) -> None:
        self._sizes = np.array([len(each.hashes) for each in functions])
        self._works = np.array([each.work for each in functions])
        # A fingerprint is told from here on by its place among all that there are.
        known, places = np.unique(
            np.concatenate([f.hashes for f in functions]), return_inverse=True
        )
        self._weights = weigh(known.tolist())
        self._less = np.where(np.isin(known, list(natural)), _NATURAL, 1.0) * self._weights
        self._of_function = np.split(places, np.cumsum(self._sizes)[:-1])
        owner = np.repeat(np.arange(len(functions)), self._sizes)
        order = np.argsort(places, kind="stable")
        ends = np.searchsorted(places[order], np.arange(1, len(known)))
        self._owners = np.split(owner[order], ends)

    def alike(self, one: int) -> Iterator[tuple[int, float, float]]:
        """(number, likeness, weight of what is shared) of the functions of later works that are
        like the function `one`."""
        own = self._of_function[one]
        own = own[self._weights[own] >= _LIGHT]
        if self._less[own].sum() < LITTLE:
            return
        lists = [self._owners[value] for value in own.tolist()]
        who = np.concatenate(lists)
        value = np.repeat(own, [len(each) for each in lists])
        later = self._works[who] > self._works[one]
        others, place = np.unique(who[later], return_inverse=True)
        shared = np.bincount(place, self._less[value[later]], len(others))
        number = np.bincount(place, minlength=len(others))
        rare = np.bincount(place, self._weights[value[later]], len(others)) >= _RARE * number
        likeness = number / ((self._sizes[one] + self._sizes[others]) / 2)
        for at in np.flatnonzero((shared >= LITTLE) & rare & (likeness >= LEAST)).tolist():
            yield int(others[at]), float(likeness[at]), float(shared[at])


def _functions(files: Sequence[Fingerprint | None]) -> Iterator[_Function]:
    for work, file in enumerate(files):
        for piece in file.pieces if file else ():
            assert file is not None
            begin, end = np.searchsorted(file.starts, [piece.start, piece.end])
            hashes = np.unique(file.hashes[begin:end])
            if piece.name != TOP and len(hashes) >= LITTLE:
                yield _Function(work, piece.name, hashes)


def _best(some: list[FunctionMatch]) -> list[FunctionMatch]:
    """The best match of each function, the most telling first."""
    by_name = groupby(sorted(some, key=lambda m: (m.first, -m.likeness)), lambda m: m.first)
    best = [next(group) for _, group in by_name]
    return sorted(best, key=lambda match: (-match.shared, match.first))
