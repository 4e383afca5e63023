"""Draws pictures as SVG: shapes, arrows and words, and the positions of a graph's nodes.

Classes give colours. A page styles them, so that they follow a dark screen. A file without such a
page carries the rules itself, see `with_style`: weasyprint's SVG does not see the page.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

#: Rules by class; $name is a colour of the page.
RULES = """
text { fill: $ink; font-family: $font; font-size: 13px; }
.small { font-size: 11px; }
.tiny { font-size: 10px; }
.soft { fill: $soft; }
.bold { font-weight: bold; }
.mono { font-family: $mono; font-size: 12px; }
.box { fill: $card; stroke: $ink; stroke-width: 1; }
.line { fill: none; stroke: $ink; stroke-width: 1.2; }
.thin { fill: none; stroke: $line; stroke-width: 1; }
.dash { fill: none; stroke: $soft; stroke-width: 1; stroke-dasharray: 4 3; }
.tip { fill: $ink; }
.cell { fill: $card; stroke: $line; stroke-width: 1; }
.blue { fill: $blue; stroke: $edge; stroke-width: 1; }
.amber { fill: $amber; stroke: $edge; stroke-width: 1; }
.green { fill: $green; stroke: $edge; stroke-width: 1; }
.violet { fill: $violet; stroke: $edge; stroke-width: 1; }
.grey { fill: $grey; stroke: $edge; stroke-width: 1; }
.frame { fill: none; stroke: $ink; stroke-width: 2; }
.roof { fill: none; stroke: $mark; stroke-width: 2; }
.dot { fill: $mark; }
"""
#: Colours on paper.
PAPER = {
    "ink": "#1b1f24", "soft": "#4d5761", "line": "#b4bcc5", "card": "#ffffff", "edge": "#4d5761",
    "blue": "#cfe3fb", "amber": "#fbe3b8", "green": "#cfeed6", "violet": "#e3d8fb",
    "grey": "#e6e9ec", "mark": "#b3261e",
}  # fmt: skip
FONT = '"DejaVu Sans", "Noto Sans", system-ui, sans-serif'
MONO = '"DejaVu Sans Mono", ui-monospace, monospace'


def rules(colours: Mapping[str, str], prefix: str = "") -> str:
    """The rules with these colours, each selector below `prefix`."""
    text = RULES.replace("$font", FONT).replace("$mono", MONO)
    for name in sorted(colours, key=len, reverse=True):
        text = text.replace(f"${name}", colours[name])
    return "\n".join(prefix + line for line in text.strip().splitlines())


def with_style(svg: str) -> str:
    """The picture with its rules inside, in the colours of paper."""
    head, sign, rest = svg.partition(">")
    return f"{head}{sign}<style>{rules(PAPER)}</style>{rest}"


@dataclass
class Drawing:
    """A picture that grows: sizes are in pixels of a page at 100%, from the top left.

    Attributes:
        width, height: of the picture.
    """

    width: float
    height: float
    _parts: list[str] = field(default_factory=list)

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, r: float = 0
    ) -> None:
        """A rectangle of class `kind`, with corners of radius `r`."""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
            + (f' rx="{r:g}"' if r else "")
            + f' class="{kind}"/>'
        )

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> None:
        """Words whose base line is at `y`; `anchor` is start, middle or end."""
        named = f' class="{kind}"' if kind else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>'
            f"{html.escape(words)}</text>"
        )

    def label(self, x: float, y: float, words: str, kind: str = "") -> None:
        """Words in the middle of a place."""
        size = 10 if "tiny" in kind else 11 if "small" in kind else 13
        self.text(x, y + 0.36 * size, words, kind)

    def path(self, points: Sequence[tuple[float, float]], kind: str = "line") -> None:
        """A line through the points."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{places}" class="{kind}"/>')

    def arrow(self, points: Sequence[tuple[float, float]], kind: str = "line") -> None:
        """A line through the points with a tip at its end."""
        (x0, y0), (x1, y1) = points[-2], points[-1]
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        base_x, base_y = x1 - 7 * dx, y1 - 7 * dy
        self.path([*points[:-1], (base_x, base_y)], kind)
        corners = [(x1, y1), (base_x - 3.5 * dy, base_y + 3.5 * dx),
                   (base_x + 3.5 * dy, base_y - 3.5 * dx)]  # fmt: skip
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        self._parts.append(f'<polygon points="{places}" class="tip"/>')

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        """A disc."""
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{kind}"/>')

    def svg(self, alt: str) -> str:
        """The SVG element, with a text for readers who don't see it."""
        size = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" width="{self.width:.0f}" '
        size += f'height="{self.height:.0f}"'
        said = html.escape(alt, quote=True)
        space = 'xmlns="http://www.w3.org/2000/svg"'
        return f'<svg {space} {size} role="img" aria-label="{said}">{"".join(self._parts)}</svg>'


# --- where the nodes of a graph go ----------------------------------------------------------------

_SWEEPS = 12


@dataclass(frozen=True)
class Layout:
    """The positions of a layered graph.

    Attributes:
        places: node -> (x of its middle, layer from 0 down).
        bends: (input, node) -> the points between them where the edge passes other layers.
    """

    places: dict[int, tuple[float, int]]
    bends: dict[tuple[int, int], list[tuple[float, int]]]

    @property
    def layers(self) -> int:
        """The number of layers."""
        return 1 + max(layer for _, layer in self.places.values())


def layered(inputs: Mapping[int, Sequence[int]], wide: float, narrow: float) -> Layout:
    """Positions for a graph without cycles: each node in a layer below its inputs.

    Args:
        inputs: node -> the nodes that it is computed from; nodes are numbers from 0.
        wide, narrow: distance between two nodes, and to an edge that passes by.
    """
    layer = _layers(inputs)
    neighbours, chains = _with_bends(inputs, layer)
    rows: list[list[int]] = [[] for _ in range(1 + max(layer.values()))]
    for node in sorted(layer):
        rows[layer[node]].append(node)
    for sweep in range(_SWEEPS):
        _order(rows, neighbours, layer, above=sweep % 2 == 0)

    def gap(left: int, right: int) -> float:
        return sum((wide if n in inputs else narrow) / 2 for n in (left, right))

    x = _columns(rows, neighbours, gap)
    places = {node: (x[node], layer[node]) for node in inputs}
    bends = {edge: [(x[n], layer[n]) for n in chain] for edge, chain in chains.items()}
    return Layout(places, bends)


def _layers(inputs: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """One below the lowest input; where that makes edges shorter, right above the first reader."""
    layer: dict[int, int] = {}
    for node in sorted(inputs):  # the numbers follow the order of computation
        layer[node] = 1 + max((layer[i] for i in inputs[node]), default=-1)
    for node in sorted(inputs, reverse=True):
        readers = [layer[reader] for reader, read in inputs.items() if node in read]
        if readers and len(readers) >= len(inputs[node]):
            layer[node] = min(readers) - 1
    return layer


def _with_bends(
    inputs: Mapping[int, Sequence[int]], layer: dict[int, int]
) -> tuple[dict[int, set[int]], dict[tuple[int, int], list[int]]]:
    """Neighbours in the next layer, with a bend in each layer that an edge passes."""
    neighbours: dict[int, set[int]] = {node: set() for node in inputs}
    chains: dict[tuple[int, int], list[int]] = {}
    for node, read in inputs.items():
        for source in read:
            chain = chains.setdefault((source, node), [])
            last = source
            for between in range(layer[source] + 1, layer[node]):
                bend = max(neighbours) + 1
                layer[bend] = between
                neighbours[bend] = {last}
                neighbours[last].add(bend)
                chain.append(bend)
                last = bend
            neighbours[last].add(node)
            neighbours[node].add(last)
    return neighbours, chains


def _order(
    rows: list[list[int]], neighbours: dict[int, set[int]], layer: dict[int, int], above: bool
) -> None:
    """Sorts every row by the middle of its neighbours in the row above, or below."""
    step = -1 if above else 1
    for row in rows if above else reversed(rows):
        place = {node: i for line in rows for i, node in enumerate(line)}

        def middle(node: int, place: dict[int, int] = place) -> float:
            near = [place[n] for n in neighbours[node] if layer[n] == layer[node] + step]
            return sum(near) / len(near) if near else place[node]

        row.sort(key=middle)


_TURNS = 800
_STRAIGHT = 400.0  # how much more a straight line of bends counts than an edge at a node


def _columns(
    rows: list[list[int]], neighbours: dict[int, set[int]], gap: Callable[[int, int], float]
) -> dict[int, float]:
    """The positions in each row: near the middle of the neighbours, in order, at least a gap apart.
    `gap` gives the distance of two items; it is smaller for bends than for nodes."""
    x = {node: 0.0 for row in rows for node in row}
    narrow = min(gap(node, node) for node in x)
    bends = {node for node in x if gap(node, node) == narrow}
    for _ in range(_TURNS):
        for row in rows:
            wanted = [_middle(node, neighbours[node], x, bends) for node in row]
            weights = [_STRAIGHT if node in bends else 1.0 for node in row]
            x.update(zip(row, _apart(row, wanted, weights, gap), strict=True))
    left = min(x.values())
    return {node: value - left for node, value in x.items()}


def _middle(node: int, near: set[int], x: dict[int, float], bends: set[int]) -> float:
    """The middle of the neighbours, where bends pull a bend hardest; an item without any stays."""
    pulls = {n: _STRAIGHT if n in bends and node in bends else 1.0 for n in near}
    if not pulls:
        return x[node]
    return sum(x[n] * pull for n, pull in pulls.items()) / sum(pulls.values())


def _apart(
    row: list[int], wanted: list[float], weights: list[float], gap: Callable[[int, int], float]
) -> list[float]:
    """The positions nearest to the wanted ones that keep order and gaps (isotonic regression)."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + gap(left, right))
    groups: list[tuple[float, float, int]] = []  # mean, weight, how many
    for want, offset, weight in zip(wanted, offsets, weights, strict=True):
        mean, heavy, count = want - offset, weight, 1
        while groups and groups[-1][0] > mean:
            before, weight_before, more = groups.pop()
            mean = (before * weight_before + mean * heavy) / (weight_before + heavy)
            heavy, count = heavy + weight_before, count + more
        groups.append((mean, heavy, count))
    means = [mean for mean, _, count in groups for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
