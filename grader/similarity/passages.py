"""Passages that two fingerprinted files share, and copydetect's shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grader.similarity.fingerprint import (
    Fingerprint,
    K,
    Mask,
    copydetect_print,
    piece_of,
    same_beginning,
)


def copied_shares(one: Fingerprint, two: Fingerprint) -> tuple[float, float]:
    """copydetect's measure: the share of each one's work that the other has too, from 0 to 1.

    It knows nothing of the class. It tells who has all of the other's work, and more.
    """
    from copydetect import compare_files  # type: ignore[import-untyped]
    from copydetect.utils import get_token_coverage  # type: ignore[import-untyped]

    prints = []
    for file in (one, two):
        print_ = copydetect_print(file.symbols)
        print_.hash_idx = {}
        for start, value in zip(file.starts.tolist(), file.hashes.tolist(), strict=True):
            print_.hash_idx.setdefault(value, []).append(start)
        print_.hashes = set(print_.hash_idx)
        print_.token_coverage = max(1, get_token_coverage(print_.hash_idx, K, len(file.symbols)))
        prints.append(print_)
    _, (first, second), _ = compare_files(*prints)
    return min(1.0, float(first)), min(1.0, float(second))


@dataclass(frozen=True)
class Passage:
    """`length` equal tokens in two files, from token `first` of one and `second` of the other.
    `hashes` are those of the fingerprints in it."""

    first: int
    second: int
    length: int
    hashes: tuple[int, ...] = ()


def passages(one: Fingerprint, two: Fingerprint) -> list[Passage]:
    """The passages that two files share, in the order of the first file; no token is in two. Longer
    passages win, then those in functions of the same name."""
    places: dict[int, list[int]] = {}
    for start, value in zip(two.starts.tolist(), two.hashes.tolist(), strict=True):
        places.setdefault(value, []).append(start)
    values = dict(zip(one.starts.tolist(), one.hashes.tolist(), strict=True))
    reach_one, reach_two = _reaches(one), _reaches(two)
    used, found, free = np.zeros(len(two.symbols), bool), list[Passage](), 0
    for start, value in values.items():
        if start < free or value not in places:
            continue
        best = (0, False, 0)
        for other in places[value][:64]:  # a text of one repeated line has thousands
            length = _extent(one, two, start, other, min(reach_one[start], reach_two[other]), used)
            same = piece_of(one, start).name == piece_of(two, other).name
            best = max(best, (length, same, -other))
        length, other = best[0], -best[2]
        if length >= K:
            inside = [values[at] for at in range(start, start + length - K + 1) if at in values]
            found.append(Passage(start, other, length, tuple(inside)))
            used[other : other + length] = True
            free = start + length
    return found


def _reaches(file: Fingerprint) -> dict[int, int]:
    """First token of each fingerprint -> number of tokens to the end of its run in its piece."""
    ends: dict[int, int] = {}
    stop = -1
    piece_ends = np.zeros(len(file.symbols) + 1, np.int64)
    for part in file.pieces:
        piece_ends[part.start : part.end] = part.end
    for start in file.starts.tolist():
        if start >= stop:
            last = int(piece_ends[start])
            gaps = np.flatnonzero(~file.written[start:last])
            stop = start + int(gaps[0]) if len(gaps) else last
        ends[start] = stop - start
    return ends


def _extent(
    one: Fingerprint, two: Fingerprint, start: int, other: int, most: int, used: Mask
) -> int:
    taken = np.flatnonzero(used[other : other + most])
    most = int(taken[0]) if len(taken) else most
    return same_beginning(one.symbols[start : start + most], two.symbols[other : other + most])
