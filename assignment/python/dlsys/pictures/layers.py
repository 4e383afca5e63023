"""Where the nodes of a graph go: each in a layer below what it is computed from.

Long edges pass the layers between by points of their own. The order in a layer is that of the
middles of neighbours (Sugiyama, Tagawa, Toda 1981), and so are the positions.
"""

import dataclasses
import itertools

import numpy as np

_SWEEPS = 12
#: How much harder than a node points of an edge draw one another; and the middle of the picture.
_STRAIGHT, _PULL = 8, 0.2


class _Point(tuple):
    """Where an edge (source, node) passes a layer."""


@dataclasses.dataclass
class Layout:
    """A layered graph.

    Attributes:
        places: node -> (x of its middle, number of its layer).
        routes: (input, node) -> the points (x, layer) of the edge between them.
        width: from the leftmost to the rightmost middle.
        layers: how many there are.
    """

    places: dict
    routes: dict
    width: float
    layers: int


def layered(inputs, width_of, gap, narrow=14):
    """A Layout.

    Args:
        inputs: node -> the nodes that it is computed from; inputs first.
        width_of: node -> its width.
        gap: between two nodes.
        narrow: the width of an edge that passes a layer.
    """
    layer = layers_of(inputs)
    near, routes = _with_points(inputs, layer)
    rows = [[] for _ in range(1 + max(layer.values(), default=-1))]
    for item, number in layer.items():
        rows[number].append(item)
    for sweep in range(_SWEEPS):
        _order(rows, near, layer, -1 if sweep % 2 == 0 else 1)
    widths = {item: width_of[item] if item in width_of else narrow for item in layer}
    x = _positions(rows, near, layer, widths, gap)
    left = min((x[n] - widths[n] / 2 for n in x), default=0)
    right = max((x[n] + widths[n] / 2 for n in x), default=0)
    at = {item: (x[item] - left, layer[item]) for item in layer}
    return Layout(
        {node: at[node] for node in inputs},
        {edge: [at[point] for point in points] for edge, points in routes.items()},
        right - left, len(rows),
    )  # fmt: skip


def layers_of(inputs):
    """node -> its layer: one below the lowest input, or right above the first reader where that
    makes edges shorter."""
    layer, readers = {}, {}
    for node, read in inputs.items():
        layer[node] = 1 + max((layer[each] for each in read), default=-1)
        for each in read:
            readers.setdefault(each, []).append(node)
    for node in reversed(list(inputs)):
        # What has no inputs itself moves with it.
        above = sum(bool(inputs[each]) for each in inputs[node])
        if len(readers.get(node, ())) >= max(1, above):
            layer[node] = min(layer[each] for each in readers[node]) - 1
    return layer


def _with_points(inputs, layer):
    """(item -> its neighbours in the next layers, edge -> the items that it passes)."""
    near, routes = {node: set() for node in inputs}, {}
    for node, read in inputs.items():
        for source in read:
            route = [source]
            for between in range(layer[source] + 1, layer[node]):
                point = _Point((source, node, between))
                layer[point] = between
                near[point] = set()
                route.append(point)
            route.append(node)
            routes[source, node] = route
            for one, other in itertools.pairwise(route):
                near[one].add(other)
                near[other].add(one)
    return near, routes


def _order(rows, near, layer, step):
    """Sorts each row by the middles of neighbours in the row above (-1) or below (1)."""
    for number in range(len(rows)) if step < 0 else reversed(range(len(rows))):
        if not 0 <= number + step < len(rows):
            continue
        place = {item: at / len(rows[number + step]) for at, item in enumerate(rows[number + step])}
        own = {item: at / len(rows[number]) for at, item in enumerate(rows[number])}

        def middle(item):
            found = [place[each] for each in near[item] if each in place]
            return sum(found) / len(found) if found else own[item]

        rows[number].sort(key=middle)


def _positions(rows, near, layer, widths, gap):
    """item -> x: near the middle of its neighbours, in order, with gaps."""
    x = {}
    steps = []
    for row in rows:
        ends = np.cumsum([widths[item] + gap for item in row])
        steps.append(ends - np.array([(widths[item] + gap) / 2 for item in row]))
        x.update(zip(row, steps[-1] - ends[-1] / 2))
    for sweep in range(4 * _SWEEPS):
        side = (-1, 1, 0)[sweep % 3]
        for row, step in zip(rows, steps):
            wanted = np.array([_middle(item, x, near, layer, side) for item in row]) - step
            # No two come too near in one, nor in the other, nor in the mean of both.
            pushed = np.maximum.accumulate(wanted)
            pulled = np.minimum.accumulate(wanted[::-1])[::-1]
            x.update(zip(row, (pushed + pulled) / 2 + step))
    return {item: float(value) for item, value in x.items()}


def _middle(item, x, near, layer, side):
    """The middle of the neighbours above (-1), below (1) or on both sides (0).

    Points of an edge draw one another harder, so that it becomes straight; the middle of the
    picture draws all a little, so that it stays narrow.
    """
    weights = {
        each: _STRAIGHT if isinstance(item, _Point) and isinstance(each, _Point) else 1
        for each in near[item]
        if not side or layer[each] - layer[item] == side
    }
    if not weights:
        return x[item]
    total = sum(weights.values()) + _PULL
    return sum(x[each] * weight for each, weight in weights.items()) / total
