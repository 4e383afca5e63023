"""A graph: a box for each node, below those that it is computed from."""

import dataclasses

from .layers import layered, layers_of
from .svg import BOLD_LETTER, LETTER, LINE, Canvas, shortened

_HEIGHT, _APART, _GAP, _MARGIN = 38, 26, 14, 10
_NARROWEST, _LETTERS = 64, 24
#: Layers between the first reader of a box without inputs and others that it has edges to.
_NEAR = 1


@dataclasses.dataclass
class Box:
    """A node.

    Attributes:
        key: what tells it from others.
        inputs: keys of the nodes that it is computed from.
        words, below: two lines in it.
        hint: what is told of it where the mouse rests.
        colour: one of svg.COLOURS, or "plain".
        is_dashed, is_round: its border, its corners.
    """

    key: object
    inputs: list
    words: str
    below: str = ""
    hint: str = ""
    colour: str = "plain"
    is_dashed: bool = False
    is_round: bool = False


def graph(title, boxes, legend=()):
    """The picture.

    Args:
        boxes: Boxes, each behind its inputs. One without is drawn again near a distant reader.
        legend: (kind of a box: colour and perhaps dashed, what has it).
    """
    boxes = _with_copies(boxes)
    widths = {box.key: _width(box) for box in boxes}
    inputs = {box.key: list(dict.fromkeys(box.inputs)) for box in boxes}
    found = layered(inputs, widths, _GAP)
    legend_width = max((26 + LETTER * len(words) for _, words in legend), default=0)
    width = max(found.width, legend_width, BOLD_LETTER * len(title)) + 2 * _MARGIN
    top = 2 * LINE + _MARGIN if title else _MARGIN
    bottom = top + found.layers * (_HEIGHT + _APART) - _APART + _MARGIN
    canvas = Canvas(width, bottom + LINE * len(legend) + (_MARGIN if legend else 0), title)
    if title:
        canvas.add("text", title, kind="bold", x=_MARGIN, y=LINE + 2)
    left = (width - found.width) / 2

    def at(place):
        return left + place[0], top + place[1] * (_HEIGHT + _APART)

    for route in found.routes.values():
        _edge(canvas, [at(place) for place in route])
    for box in boxes:
        _box(canvas, box, *at(found.places[box.key]), widths[box.key])
    for number, (kind, words) in enumerate(legend):
        line = bottom + number * LINE
        canvas.add("rect", kind="box " + kind, x=_MARGIN, y=line + 3, width=14, height=10, rx=2)
        canvas.add("text", words, kind="soft", x=_MARGIN + 20, y=line + 12)
    return canvas.svg()


def _with_copies(boxes):
    """The same boxes; those without inputs once more for readers that are far from the first."""
    layer = layers_of({box.key: box.inputs for box in boxes})
    leaves = {box.key: box for box in boxes if not box.inputs}
    last, made = {}, {}  # leaf -> (its last copy, layer of that copy's first reader)
    for box in sorted(boxes, key=lambda each: layer[each.key]):
        inputs = []
        for key in box.inputs:
            if key in leaves:
                copy, first = last.get(key, (key, layer[box.key]))
                if layer[box.key] > first + _NEAR:
                    copy, first = (key, box.key), layer[box.key]
                last[key] = copy, first
                made[copy] = dataclasses.replace(leaves[key], key=copy)
                key = copy
            inputs.append(key)
        made[box.key] = dataclasses.replace(box, inputs=inputs)
    return list(made.values())


def _width(box):
    words, below = (len(shortened(line, _LETTERS)) for line in (box.words, box.below))
    return max(_NARROWEST, 14 + max(BOLD_LETTER * words, LETTER * below))


def _edge(canvas, points):
    """A line that leaves and enters boxes upright, with a tip at its end."""
    (x, y), *rest = points
    y += _HEIGHT
    said = "M%.1f %.1f" % (x, y)
    for number, (x2, y2) in enumerate(rest):
        is_last = number == len(rest) - 1
        end = y2 - 5 if is_last else y2
        half = (y + end) / 2
        said += " C%.1f %.1f %.1f %.1f %.1f %.1f" % (x, half, x2, half, x2, end)
        if not is_last:
            said += " V%.1f" % (y2 + _HEIGHT)
        x, y = x2, end if is_last else y2 + _HEIGHT
    canvas.add("path", kind="edge", d=said)
    corners = "%.1f,%.1f %.1f,%.1f %.1f,%.1f" % (x, y + 5, x - 3, y - 1, x + 3, y - 1)
    canvas.add("polygon", kind="tip", points=corners)


def _box(canvas, box, x, y, width):
    kind = "box hover " + box.colour + (" dashed" if box.is_dashed else "")
    group = canvas.add("g", hint=box.hint or None)
    canvas.add("rect", kind=kind, into=group, x=x - width / 2, y=y, width=width, height=_HEIGHT,
               rx=12 if box.is_round else 3)  # fmt: skip
    lines = [(box.words, "bold"), (box.below, "soft")] if box.below else [(box.words, "bold")]
    for number, (words, kind) in enumerate(lines):
        line = y + (16 + 15 * number if box.below else 23)
        canvas.add("text", shortened(words, _LETTERS), kind=kind, into=group, x=x, y=line,
                   text_anchor="middle")  # fmt: skip
