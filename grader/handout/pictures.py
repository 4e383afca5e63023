"""Pictures that show computed or measured data, and the list of all pictures of the handout."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from grader.building.tree import KIT
from grader.handout import kernel_pictures, net_pictures, step_pictures
from grader.handout.memory_graph import Graph, GraphNode, read_graph
from grader.handout.svg import Drawing, layered

MEASURED = KIT / "handout" / "results.json"
GPU_FACTS = KIT / "handout" / "speed.json"
STEPS = KIT / "handout" / "step_speed.json"

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def size_text(count: float) -> str:
    """Bytes in words: "1.02 MB", "40 kB", "4 B"."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:g} B"


@lru_cache(maxsize=1)
def reference_graph() -> Graph:
    """The graph that three pictures show; it is read once."""
    return read_graph()


# --- the graph ------------------------------------------------------------------------------------

_BOX, _HEIGHT, _LAYER = 104.0, 34.0, 58.0


def graph_picture() -> Drawing:
    """The network with its gradients: inputs above, each node below what it reads."""
    graph = reference_graph()
    placed = layered({s.number: s.inputs for s in graph.steps}, _BOX + 12, 14)
    bends = (place for between in placed.bends.values() for place in between)
    width = max(x for x, _ in (*placed.places.values(), *bends)) + _BOX + 8
    picture = Drawing(width, placed.layers * _LAYER + 14)

    def at(place: tuple[float, int]) -> tuple[float, float]:
        return place[0] + _BOX / 2 + 4, 8 + place[1] * _LAYER

    for (source, node), between in placed.bends.items():
        x0, y0 = at(placed.places[source])
        x1, y1 = at(placed.places[node])
        points = [(x0, y0 + _HEIGHT)]
        for x, y in map(at, between):
            points += [(x, y - 4), (x, y + _HEIGHT + 4)]
        picture.arrow([*points, (_landing(x1, points[-1][0]), y1)])
    for step in graph.steps:
        _node(picture, step, *at(placed.places[step.number]), graph.evaluated)
    return picture


def _landing(x: float, source: float) -> float:
    """Where on the upper edge of a box an arrow from `source` ends."""
    return x + max(-36.0, min(36.0, (source - x) / 3))


def _node(
    picture: Drawing, step: GraphNode, x: float, y: float, evaluated: tuple[int, ...]
) -> None:
    kind = "grey" if step.buffer is None else "blue" if step.forward else "amber"
    picture.rect(x - _BOX / 2, y, _BOX, _HEIGHT, kind, 5)
    if step.number in evaluated:
        picture.rect(x - _BOX / 2, y, _BOX, _HEIGHT, "frame", 5)
    picture.label(x, y + 11, f"{step.number}  {step.name}", "small")
    picture.label(x, y + 25, _shape(step.shape), "tiny soft")


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + " × ".join(map(str, shape)) + ")"


# --- memory ---------------------------------------------------------------------------------------

_STEP = 26.0
_LEFT = 214.0


def liveness_picture() -> Drawing:
    """One row for each computed node, from the step that writes it to the last that reads it."""
    graph = reference_graph()
    picture, top = _steps(graph, len(graph.computed), 22)
    for row, step in enumerate(graph.computed):
        y = top + row * 22
        words = f"{step.number}  {step.name} {_shape(step.shape)}"
        picture.text(_LEFT - 8, y + 15, words, "small", "end")
        _bar(picture, graph, step, y + 2, 18)
    return picture


def plan_picture() -> Drawing:
    """One row for each allocation: the nodes that lie in it, one after the other."""
    graph = reference_graph()
    picture, top = _steps(graph, len(graph.buffers), 28)
    for number, size in enumerate(graph.buffers):
        y = top + number * 28
        words = f"buffer {number}: {size_text(size)}"
        picture.text(_LEFT - 8, y + 18, words, "small", "end")
        for step in graph.computed:
            if step.buffer == number:
                _bar(picture, graph, step, y + 2, 24)
    return picture


def _steps(graph: Graph, rows: int, height: float) -> tuple[Drawing, float]:
    """An empty table with a column for each step that computes; returns where its rows begin."""
    picture = Drawing(_LEFT + len(graph.computed) * _STEP + 10, 34 + rows * height + 6)
    picture.text(_LEFT - 8, 18, "step", "small soft", "end")
    for column, step in enumerate(graph.computed):
        x = _LEFT + column * _STEP
        picture.label(x + _STEP / 2, 14, f"{step.number}", "small soft")
        picture.path([(x, 24), (x, 30 + rows * height)], "thin")
    return picture, 28.0


def _bar(picture: Drawing, graph: Graph, step: GraphNode, y: float, height: float) -> None:
    """A bar from the step that writes a node to the last that reads it; to the end if evaluated."""
    columns = [s.number for s in graph.computed]
    kept = step.number in graph.evaluated
    first = columns.index(step.number)
    last = len(columns) - 1 if kept else columns.index(step.last)
    kind = "green" if kept else "blue" if step.forward else "amber"
    width = (last - first + 1) * _STEP
    picture.rect(_LEFT + first * _STEP + 1, y, width - 2, height, kind, 4)
    picture.label(_LEFT + first * _STEP + _STEP / 2, y + height / 2, f"{step.number}", "small")


# --- roofline -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peak:
    """The limits of a GPU, from its clock rates.

    Attributes:
        name: of the GPU.
        bytes_per_second: of its memory: two transfers a clock over the whole bus.
        flops: float32 operations a second: a fused multiply-add counts as two, one a core and
            clock.
    """

    name: str
    bytes_per_second: float
    flops: float

    @property
    def ridge(self) -> float:
        """Operations a byte above which arithmetic is the limit."""
        return self.flops / self.bytes_per_second


@dataclass(frozen=True)
class Point:
    """A measured kernel.

    Attributes:
        intensity: operations for each byte that it must move at least.
        flops: operations a second.
    """

    name: str
    intensity: float
    flops: float


def read_peak(path: Path = GPU_FACTS) -> Peak:
    """The peak of the GPU that handout/speed.json was measured on."""
    gpu = json.loads(path.read_text())["gpu"]
    return Peak(
        name=gpu["name"],
        bytes_per_second=2 * gpu["memory_clock"] * gpu["bus_bits"] / 8,
        flops=2 * gpu["cores"] * gpu["multiprocessors"] * gpu["clock"],
    )


#: Operations a kernel makes for each float of its first operand.
_OPERATIONS = {
    "matrix_elementwise_add": 1, "relu": 1, "reduce_sum_axis_zero": 1, "softmax": 5,
    "reduce_sum_axis_zero, version 1": 1, "softmax, version 1": 5,
}  # fmt: skip


def read_points(path: Path = MEASURED) -> list[Point]:
    """The kernels of handout/results.json whose operations can be counted here."""
    return [p for p in map(_point, json.loads(path.read_text())["kernels"]) if p]


def _point(kernel: dict[str, Any]) -> Point | None:
    """A product makes 2MNK operations; the rest a fixed number an element."""
    shapes = [tuple(map(int, shape.split("x"))) for shape in kernel["shapes"].split()]
    moved = 4 * sum(map(math.prod, shapes))
    if kernel["name"] in ("matrix_multiply", "matrix_multiply, version 1"):
        operations = 2 * shapes[0][0] * shapes[0][1] * shapes[1][1]
    elif kernel["name"] in _OPERATIONS:
        operations = _OPERATIONS[kernel["name"]] * math.prod(shapes[0])
    else:
        return None
    return Point(kernel["name"], operations / moved, operations / (kernel["median"] * 1e-6))


@dataclass(frozen=True)
class _Axes:
    """A field with both axes in powers of ten.

    Attributes:
        left, top, width, height: of the field, in pixels.
        across, up: first and last exponent of each axis.
    """

    left: float
    top: float
    width: float
    height: float
    across: tuple[int, int]
    up: tuple[int, int]

    def at(self, intensity: float, flops: float) -> tuple[float, float]:
        """The place of a point."""
        right = (math.log10(intensity) - self.across[0]) / (self.across[1] - self.across[0])
        high = (math.log10(flops) - self.up[0]) / (self.up[1] - self.up[0])
        return self.left + self.width * right, self.top + self.height * (1 - high)


def roofline_picture() -> Drawing:
    """The bounds by memory and arithmetic at each intensity, and what the kernels reached."""
    peak = read_peak()
    axes = _Axes(64, 26, 540, 340, (-2, 3), (10, 14))
    picture = Drawing(620, 416)
    _field(picture, axes)
    low, high = 10.0 ** axes.across[0], 10.0 ** axes.across[1]
    roof = [(low, low * peak.bytes_per_second), (peak.ridge, peak.flops), (high, peak.flops)]
    picture.path([axes.at(*corner) for corner in roof], "roof")
    x, y = axes.at(high, peak.flops)
    picture.text(x - 4, y + 18, f"arithmetic: {peak.flops / 1e12:.1f} TFLOP/s", "small", "end")
    x, y = axes.at(0.5, 0.5 * peak.bytes_per_second)
    words = f"memory: {peak.bytes_per_second / 1e12:.2f} TB/s"
    picture.text(x - 12, y - 4, words, "small", "end")
    picture.rect(axes.left + axes.width - 268, axes.top + axes.height - 160, 262, 156, "cell")
    points = sorted(read_points(), key=lambda p: (p.intensity, -p.flops))
    for number, point in enumerate(points, 1):
        x, y = axes.at(point.intensity, point.flops)
        picture.circle(x, y, 4.5, "dot")
        picture.text(x + 8, y + 4, f"{number}", "small bold", "start")
        _entry(picture, number, point, axes, len(points))
    return picture


def _entry(picture: Drawing, number: int, point: Point, axes: _Axes, count: int) -> None:
    """A line of the legend, at the lower right of the field."""
    y = axes.top + axes.height - 12 - 18 * (count - number)
    words = f"{number}  {point.name}: {point.flops / 1e9:,.0f}"
    picture.text(axes.left + axes.width - 258, y, words, "small", "start")


def _field(picture: Drawing, axes: _Axes) -> None:
    """Lines and numbers of both axes."""
    bottom, right = axes.top + axes.height, axes.left + axes.width
    for exponent in range(axes.across[0], axes.across[1] + 1):
        x, _ = axes.at(10.0**exponent, 1e10)
        picture.path([(x, axes.top), (x, bottom)], "thin")
        picture.text(x, bottom + 18, f"{10.0**exponent:,g}", "small")
    for exponent in range(axes.up[0], axes.up[1] + 1):
        _, y = axes.at(1, 10.0**exponent)
        picture.path([(axes.left, y), (right, y)], "thin")
        picture.text(axes.left - 8, y + 4, f"{10 ** (exponent - 9):,}", "small", "end")
    picture.text((axes.left + right) / 2, bottom + 40, "operations for each byte moved", "small")
    picture.text(axes.left, axes.top - 10, "GFLOP/s", "small")


#: All pictures by the name that a chapter calls: ![text for the blind](picture:NAME "caption").
PICTURES: dict[str, Callable[[], Drawing]] = {
    "graph": graph_picture,
    "liveness": liveness_picture,
    "plan": plan_picture,
    "grid": kernel_pictures.grid_2d,
    "addresses": kernel_pictures.addresses,
    "reduction": kernel_pictures.reduction,
    "tiles": kernel_pictures.tiles,
    "roofline": roofline_picture,
    "circle": step_pictures.circle,
    "streams": step_pictures.streams,
    "im2col": net_pictures.im2col,
    "receptive": net_pictures.receptive,
    "residual_memory": net_pictures.residual_memory,
}
