"""Writes the measured similarities: an HTML page that shows what pairs share, JSON, and CSV.

Like those of grader.report.html, the page loads nothing, runs nothing, and escapes all text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import median
from typing import Any

import numpy as np
from markupsafe import Markup

from grader import __version__
from grader.base.printable import csv_cell
from grader.report.html import templates
from grader.similarity.fingerprint import TOP, CodePiece, Fingerprint, K, piece_of
from grader.similarity.functions import LEAST, LITTLE, FunctionMatch
from grader.similarity.measure import FAR, HIGH, Likeness, Pair, Similarity, Usual
from grader.similarity.passages import Passage, copied_shares, passages

SCHEMA = "dlsys-grader-similarity/1"

#: Functions that are shown of a pair, and lines of each: enough to look, and a page stays small.
MOST_BLOCKS = 8
MOST_LINES = 60
_COLOURS = 6


@dataclass(frozen=True)
class CodeLine:
    """A line of code; `mark` is the number of its passage, 0 if it is in none."""

    number: int
    text: str
    mark: int
    given: bool

    @property
    def colour(self) -> int:
        """The colour of the mark, from 1."""
        return (self.mark - 1) % _COLOURS + 1 if self.mark else 0


@dataclass(frozen=True)
class FunctionPair:
    """Two functions that share passages.

    Attributes:
        file: path; first, second: names of the functions; task: what is to be written there.
        tokens: how many they share; of: how many the student wrote in each.
        owners: in how many submissions the passages stand, in the median.
        weight: see grader.similarity.measure.
        left, right: lines; cut: whether there are more.
    """

    file: str
    first: str
    second: str
    task: str
    tokens: int
    of: tuple[int, int]
    owners: int
    weight: float
    left: list[CodeLine]
    right: list[CodeLine]
    cut: bool


@dataclass(frozen=True)
class PairView:
    """A pair with what it shares.

    Attributes:
        shares: file -> the share of each one's work in the other's.
        blocks: function pairs; those that make the pair stand out come first.
    """

    pair: Pair
    shares: dict[str, tuple[float, float]]
    blocks: list[FunctionPair]
    more: int


def to_html(
    result: Similarity,
    top: int = 30,
    at_least: float = 0.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> str:
    """The page, with the passages of the `top` pairs."""
    pairs = list(islice(result.pairs(at_least), top))
    views = []
    for done, pair in enumerate(pairs):
        progress(done, len(pairs))
        views.append(view(result, pair))
    progress(len(pairs), len(pairs))
    template = templates(percent=percent, told=function_text).get_template("similarity.html.j2")
    limits = {"little": LITTLE, "least": LEAST, "high": HIGH, "far_away": FAR, "length": K,
              "most_blocks": MOST_BLOCKS, "most_lines": MOST_LINES}  # fmt: skip
    return template.render(result=result, views=views, at_least=at_least, bars=_bars, **limits)


def function_text(match: FunctionMatch) -> str:
    """A function's names in both works and its likeness: "relu – my_relu 98.0 %"."""
    both = match.first if match.first == match.second else f"{match.first} – {match.second}"
    return f"{both} {percent(match.likeness)}"


def percent(value: float) -> str:
    """A share in percent; 100 % only for identical work."""
    return f"{min(value * 100, 99.9) if value < 1 else 100:.{0 if value == 1 else 1}f} %"


def view(result: Similarity, pair: Pair) -> PairView:
    """A pair with its passages: first those in functions that make it stand out, then the
    rarest."""
    shares, blocks = dict[str, tuple[float, float]](), list[FunctionPair]()
    for name in result.files:
        one, two = pair.first.files.get(name), pair.second.files.get(name)
        if one and two and len(one.hashes) and len(two.hashes):
            shares[name] = copied_shares(one, two)
            blocks += _blocks(result, name, one, two)
    telling = {(match.file, match.first, match.second) for match in pair.functions}
    blocks.sort(key=lambda b: ((b.file, b.first, b.second) not in telling, -b.weight))
    return PairView(pair, shares, blocks[:MOST_BLOCKS], len(blocks) - MOST_BLOCKS)


def _blocks(
    result: Similarity, name: str, one: Fingerprint, two: Fingerprint
) -> Iterator[FunctionPair]:
    together: dict[tuple[CodePiece, CodePiece], list[tuple[int, Passage]]] = {}
    for number, passage in enumerate(passages(one, two), 1):
        key = piece_of(one, passage.first), piece_of(two, passage.second)
        together.setdefault(key, []).append((number, passage))
    for (first, second), some in together.items():
        left, cut_left = _lines(one, [(n, p.first, p.length) for n, p in some])
        right, cut_right = _lines(two, [(n, p.second, p.length) for n, p in some])
        hashes = [value for _, passage in some for value in passage.hashes]
        yield FunctionPair(
            name,
            first.name,
            second.name,
            _task(result.tasks[name], one, first),
            sum(passage.length for _, passage in some),
            (_wrote(one, first), _wrote(two, second)),
            round(median(result.owners[name].get(value, 1) for value in hashes)),
            result.weight(name, hashes),
            left,
            right,
            cut_left or cut_right,
        )


def _wrote(file: Fingerprint, piece: CodePiece) -> int:
    return int(np.sum(file.written[piece.start : piece.end]))


def _task(tasks: dict[str, str], file: Fingerprint, piece: CodePiece) -> str:
    """The task of a function, or of the function that names it: a kernel has its launcher's."""
    if piece.name in tasks or piece.name == TOP:
        return tasks.get(piece.name, "")
    lines = file.text.split("\n")
    for other in file.pieces:
        if other.name in tasks:
            body = lines[file.lines[other.start] - 1 : file.lines[other.end - 1]]
            if any(piece.name in line for line in body):
                return tasks[other.name]
    return ""


def _lines(file: Fingerprint, spans: Sequence[tuple[int, int, int]]) -> tuple[list[CodeLine], bool]:
    """(the lines of passages, given as (number, first token, tokens), with one line before and
    after; whether there are too many)."""
    marks: dict[int, int] = {}
    for number, start, length in spans:
        for line in file.lines[start : start + length].tolist():
            marks.setdefault(line, number)
    begin, end = max(1, min(marks) - 1), max(marks) + 1
    own = set(file.lines[file.written].tolist())
    tokens = set(file.lines.tolist())
    text = file.text.split("\n")
    lines = [
        CodeLine(at, text[at - 1].rstrip(), marks.get(at, 0), at in tokens and at not in own)
        for at in range(begin, min(end, len(text), begin + MOST_LINES - 1) + 1)
    ]
    return lines, end - begin >= MOST_LINES


def _bars(usual: Usual, value: float | None = None) -> Markup:
    """A histogram of the class's pairs from 0 to 100 % likeness. Heights are logarithmic, so that a
    few pairs far right are seen. A line marks `value`."""
    most = np.log1p(max(usual.bars, default=1)) or 1.0
    bars = "".join(
        f'<rect x="{4 * step}" y="{30 - height:.1f}" width="3" height="{height:.1f}"/>'
        for step, count in enumerate(usual.bars)
        if (height := 28 * float(np.log1p(count) / most))
    )
    line = "" if value is None else f'<line x1="{200 * value:.1f}" x2="{200 * value:.1f}" y2="30"/>'
    return Markup(
        f'<svg viewBox="0 0 200 31" width="200" height="31" role="img" '
        f'aria-label="pairs by likeness">{bars}{line}</svg>'
    )


# --- JSON and CSV ---------------------------------------------------------------------------------


def to_json(result: Similarity, at_least: float = 0.0) -> str:
    """All pairs with at least that likeness, and what is usual in the class."""
    values = {
        "schema": SCHEMA,
        "grader": __version__,
        "meaning": "a measure of likeness, no verdict",
        "submissions": len(result.works),
        "earlier": len(result.works) - result.this_year,
        "pairs_compared": len(result),
        "usual": {name or "whole": {"pairs": u.pairs, "median": round(u.median, 4),
                                    "spread": round(u.spread, 4)}
                  for name, u in result.usual.items()},
        "unreadable": [{"who": who, "why": why} for who, why in result.unreadable],
        "empty": result.empty,
        "notes": result.notes,
        "pairs": [_values(pair) for pair in result.pairs(at_least)],
    }  # fmt: skip
    return json.dumps(values, indent=1) + "\n"


def _values(pair: Pair) -> dict[str, Any]:
    return {
        "place": pair.place,
        "first": list(pair.first.students),
        "second": list(pair.second.students),
        "second_year": pair.second.year,
        **_numbers(pair.whole),
        "stands_out": pair.stands_out,
        "says_little": pair.says_little,
        "same_student": pair.same_student,
        "identical": pair.identical,
        "files": {name: _numbers(likeness) for name, likeness in pair.files.items()},
        "functions": [
            {
                **asdict(match),
                "likeness": round(match.likeness, 4),
                "shared": round(match.shared, 1),
            }
            for match in pair.functions
        ],
    }


def _numbers(likeness: Likeness) -> dict[str, float | None]:
    return {
        "likeness": round(likeness.value, 4),
        "distance": None if likeness.distance is None else round(likeness.distance, 2),
        "place_in_likeness": likeness.place or None,
        "shared": round(likeness.shared, 1),
    }


_COLUMNS = ("place", "first", "second", "second_year", "likeness", "distance", "shared",
            "stands_out", "says_little", "same_student", "identical", "functions")  # fmt: skip


def to_csv(result: Similarity, at_least: float = 0.0) -> str:
    """A line a pair. An apostrophe precedes what a spreadsheet would take for a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *map(csv_cell, result.files)])
    for pair in result.pairs(at_least):
        whole = _numbers(pair.whole)
        labels = pair.first.label, pair.second.label, pair.second.year
        flags = pair.stands_out, pair.says_little, pair.same_student
        writer.writerow([
            pair.place, *map(csv_cell, labels),
            whole["likeness"], whole["distance"], whole["shared"],
            *("yes" if flag else "" for flag in flags), csv_cell(" ".join(pair.identical)),
            csv_cell("; ".join(map(function_text, pair.functions))),
            *(round(each.value, 4) for each in pair.files.values()),
        ])  # fmt: skip
    return text.getvalue()
