"""Pictures in a report as inline SVG: where an output is wrong, losses, bars of time.

The page styles colours and strokes by class, so that they follow a dark screen and paper. Pictures
hold numbers alone, no text of a submission. Their texts for readers who don't see them are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

_SIDE = 256.0  # of the largest picture, in pixels
_CELL = 22.0  # of the largest cell
_LEFT, _TOP = 46.0, 20.0  # room for the indices
_CELLS = 32
_WIDE, _TALL = 520.0, 130.0  # of a histogram's bars
_STEP = 6  # from cell to cell of a strip
# Where the strokes of a mark lie; the page gives them their width and colour.
_STRIP = {"p": (12,), "f": (8,), "u": (15,), "s": (8,), "e": (2, 14)}


@dataclass(frozen=True)
class MismatchGrid:
    """Where an output is wrong, read with suspicion from facts["mismatch"] of a result."""

    shape: tuple[int, ...]
    rows: int
    columns: int
    cells: list[list[float | None]]

    @property
    def caption(self) -> str:
        """How to read the picture."""
        shape = f"({', '.join(map(str, self.shape))}{',' if len(self.shape) == 1 else ''})"
        if len(self.shape) == 1:
            seen = f"{shape}, folded into lines of {self.columns:,} elements"
        elif len(self.shape) == 2:
            seen = f"{shape}: rows down, columns across"
        else:
            seen = f"{shape}: the last axis across, the others down"
        return f"Where the output of shape {seen}, is wrong. {self._grain}"

    @property
    def _grain(self) -> str:
        down, across = self.rows / len(self.cells), self.columns / len(self.cells[0])
        if down == across == 1:
            return "A cell is one element."
        size = " by ".join(f"{side:,.1f}".removesuffix(".0") for side in (down, across))
        return f"A cell is about {size} elements; the darker, the more of them are wrong."


def read_mismatch(facts: dict[str, Any]) -> MismatchGrid | None:
    """The mismatch in a result's facts, or None if there is none that can be drawn."""
    raw = facts.get("mismatch")
    try:
        sizes = [raw["rows"], raw["columns"], *raw["shape"]]  # type: ignore[index]
        cells = [[None if f is None else float(f) for f in line] for line in raw["cells"]]  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        return None
    if not all(type(size) is int and size > 0 for size in sizes) or len(sizes) < 3:
        return None
    widths = {len(line) for line in cells}
    if len(widths) != 1 or not 1 <= len(cells) <= _CELLS or not 1 <= widths.pop() <= _CELLS:
        return None
    if not all(f is None or 0 <= f <= 1 for line in cells for f in line):
        return None
    return MismatchGrid(tuple(sizes[2:]), sizes[0], sizes[1], cells)


def mismatch_svg(mismatch: MismatchGrid) -> Markup:
    """The picture: a matrix of few cells, wrong ones darker, with the first and last indices."""
    down, across = len(mismatch.cells), len(mismatch.cells[0])
    height, width = min(_CELL, _SIDE / down), min(_CELL, _SIDE / across)
    inner = [*_cells(mismatch, width, height), _grid(down, across, width, height)]
    inner += _labels(mismatch, across * width, down * height)
    return _svg(_LEFT + across * width + 14, _TOP + down * height + 4, "".join(inner))


def _cells(mismatch: MismatchGrid, width: float, height: float) -> Iterator[str]:
    """Rectangles for the cells; neighbours in a row with the same fraction share one."""
    for row, line in enumerate(mismatch.cells):
        column = 0
        for fraction, group in groupby(line):
            count = len(list(group))
            if fraction is not None:
                x, y = _LEFT + column * width, _TOP + row * height
                style = 'class="right"'
                if fraction:
                    style = f'class="bad" fill-opacity="{0.3 + 0.7 * fraction:.2f}"'
                yield (
                    f'<rect x="{x:.2f}" y="{y:.2f}" width="{count * width:.2f}" '
                    f'height="{height:.2f}" {style}/>'
                )
            column += count


def _grid(down: int, across: int, width: float, height: float) -> str:
    right, bottom = _LEFT + across * width, _TOP + down * height
    lines = [f"M{_LEFT:g} {_TOP + i * height:.2f}H{right:.2f}" for i in range(down + 1)]
    lines += [f"M{_LEFT + i * width:.2f} {_TOP:g}V{bottom:.2f}" for i in range(across + 1)]
    return f'<path class="grid" d="{"".join(lines)}"/>'


def _labels(mismatch: MismatchGrid, width: float, height: float) -> Iterator[str]:
    """Indices of the first and the last row and column; of a vector where its lines begin."""
    folded = len(mismatch.shape) == 1
    last_row = (mismatch.rows - 1) * (mismatch.columns if folded else 1)
    yield _label(_LEFT - 5, _TOP + 10, "end", 0)
    if mismatch.rows > 1:
        yield _label(_LEFT - 5, _TOP + max(height - 2, 20), "end", last_row)
    yield _label(_LEFT, _TOP - 6, "start", 0)
    if mismatch.columns > 1 and width > 40:
        yield _label(_LEFT + width, _TOP - 6, "end", mismatch.columns - 1)


def _label(x: float, y: float, anchor: str, number: int) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{number}</text>'


def bar_svg(value: float, largest: float, kind: str) -> Markup:
    """A bar with the length of `value` relative to `largest`, which stretches. `kind` is a class of
    ours."""
    share = 100 * min(max(value / largest, 0.0), 1.0) if largest > 0 else 0.0
    inner = f'<rect class="track" width="100" height="8"/><rect class="{kind}" width="'
    inner += f'{max(share, 0.5 if value > 0 else 0):.2f}" height="8"/>'
    return _svg(100, 8, inner, ' class="bar" preserveAspectRatio="none"')


def losses_svg(losses: Sequence[float]) -> Markup:
    """A line through the losses of the epochs, from 0 up."""
    finite = [float(loss) for loss in losses if math.isfinite(loss)]
    if len(finite) < 2 or max(finite) <= 0:
        return Markup("")
    step = 96 / (len(finite) - 1)
    points = [
        f"{2 + i * step:.1f},{22 - 20 * max(loss, 0) / max(finite):.1f}"
        for i, loss in enumerate(finite)
    ]
    return _svg(100, 24, f'<polyline class="line" points="{" ".join(points)}"/>', ' class="spark"')


def histogram_svg(bins: Sequence[tuple[str, int]], words: str) -> Markup:
    """Bars with their counts; `bins` are (label below, count), `words` say it without a picture."""
    most = max((count for _, count in bins), default=0) or 1
    width = _WIDE / max(len(bins), 1)
    every = math.ceil(len(bins) * 34 / _WIDE)  # so that labels don't touch
    inner = []
    for place, (label, count) in enumerate(bins):
        x, tall = place * width, _TALL * count / most
        y, middle = 18 + _TALL - tall, x + width / 2
        inner.append(
            f'<rect class="time" x="{x + width * 0.08:.1f}" y="{y:.1f}" '
            f'width="{width * 0.84:.1f}" height="{tall:.1f}"/>'
        )
        if count:
            inner.append(_text(middle, y - 4, str(count)))
        last = len(bins) - 1
        if place == last or (place % every == 0 and last - place >= every):
            inner.append(_text(middle, _TALL + 33, label))
    inner.append(f'<path class="axis" d="M0 {18 + _TALL:g}H{_WIDE:g}"/>')
    return _image(_WIDE, _TALL + 38, "".join(inner), "histogram", words)


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>'


def strip_svg(marks: str, words: str) -> Markup:
    """A strip of cells, one a check: "p" passed is low and green, "f" failed is high and red, "u"
    not begun is a line below, "s" not run one in the middle, "e" (the grader failed) is two blocks;
    other letters leave a gap.
    """
    paths, place = {kind: "" for kind in _STRIP}, 0
    for kind, group in groupby(marks):
        number = len(list(group))
        for y in _STRIP.get(kind, ()):
            paths[kind] += f"M{place * _STEP} {y}h{number * _STEP - 1}"
        place += number
    inner = "".join(f'<path class="{kind}" d="{d}"/>' for kind, d in paths.items() if d)
    return _image(place * _STEP, 16, inner, "strip", words)


def _image(width: float, height: float, inner: str, kind: str, words: str) -> Markup:
    """A picture that says something by itself: its words are read out, and shown by a pointer."""
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img"><title>{escape(words)}</title>{inner}</svg>'
    )


def _svg(width: float, height: float, inner: str, more: str = "") -> Markup:
    """The element; what is in it was made of numbers and of our own words."""
    size = f'viewBox="0 0 {width:.6g} {height:.6g}" width="{width:.6g}" height="{height:.6g}"'
    return Markup(f'<svg {size}{more} aria-hidden="true">{inner}</svg>')
