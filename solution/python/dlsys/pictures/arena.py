"""Memory over time: which bytes of an arena hold what, while the instructions of a program run."""

import dataclasses

from .svg import COLOURS, LINE, Canvas, percent, size_said, ticks

_HEIGHT = 320
#: Where a box has words in it: its part of the width, and pixels of its height.
_WORDY, _TALL = 0.06, 14


@dataclasses.dataclass
class Box:
    """A buffer.

    Attributes:
        words, hint: what stands in it, and what is told of it where the mouse rests.
        first, last: from which instruction to which; halves where it takes over, or is taken over.
        offset, size: in bytes.
    """

    words: str
    hint: str
    first: float
    last: float
    offset: int
    size: int


def arena(title, boxes, instructions, size, bound):
    """The picture, as wide as its place: time from left to right, addresses from bottom to top.

    Args:
        boxes: Boxes.
        instructions: the name of each, in their order.
        size: bytes of the arena.
        bound: the most bytes that are alive at once, which no arena for this order goes below.
    """
    count, top = max(1, len(instructions)), 3 * LINE
    canvas = Canvas("100%", top + _HEIGHT + 4 * LINE, title)
    canvas.add("text", title, kind="bold", x=8, y=LINE + 2)
    plot = canvas.add("svg", x=8, y=top, width="97%", height=_HEIGHT, overflow="visible")
    most, scale = max(size, bound, 1), []
    for each in ticks(most, 4):
        y = _HEIGHT * (1 - each / most)
        canvas.add("line", kind="thin", into=plot, x1=0, y1=y, x2="100%", y2=y)
        if y > LINE:  # else it would stand in the title
            scale.append((size_said(each), y))
    for number, box in enumerate(boxes):
        _box(canvas, plot, box, COLOURS[number % len(COLOURS)], count, most)
    _levels(canvas, plot, boxes, count, most)
    for level, kind in ((size, "mark"), (bound, "mark dashed")):
        y = _HEIGHT * (1 - level / most)
        canvas.add("line", kind=kind, into=plot, x1=0, y1=y, x2="100%", y2=y)
    for words, y in scale:
        canvas.add("text", words, kind="soft halo", into=plot, x=0, y=y - 3)
    _ticks_of_instructions(canvas, plot, instructions, count)
    says = "solid red: the arena, %s; dashed: lower bound, %s" % (size_said(size), size_said(bound))
    canvas.add("text", says, kind="soft", x=8, y=2 * LINE + 4)
    canvas.add("text", "instructions, in their order; each box is a buffer", kind="soft",
               x=8, y=top + _HEIGHT + 2 * LINE + 4)  # fmt: skip
    canvas.add("text", "the stepped line: bytes alive at each instruction", kind="soft",
               x=8, y=top + _HEIGHT + 3 * LINE + 4)  # fmt: skip
    return canvas.svg()


def _box(canvas, plot, box, colour, count, most):
    height = _HEIGHT * box.size / most
    y = _HEIGHT * (1 - (box.offset + box.size) / most)
    width = (box.last - box.first) / count
    own = canvas.add(
        "svg", hint=box.hint, into=plot, x=percent(box.first, count), y=y,
        width=percent(box.last - box.first, count), height=max(height, 0.5),
    )  # fmt: skip
    canvas.add(
        "rect", kind="bar hover " + colour, into=own, width="100%", height=max(height, 0.5)
    )  # fmt: skip
    if width > _WORDY and height > _TALL:
        canvas.add("text", box.words, into=own, x=4, y=height / 2 + 4)


def _levels(canvas, plot, boxes, count, most):
    """The bytes that are alive at each instruction; of buffers that take over, the larger."""
    for number in range(count):
        here = [b for b in boxes if b.first < number + 1 and number < b.last]
        alive = {}
        for box in here:
            alive[box.offset] = max(alive.get(box.offset, 0), box.size)
        y = _HEIGHT * (1 - sum(alive.values()) / most)
        at, to = percent(number, count), percent(number + 1, count)
        canvas.add("line", kind="level", into=plot, x1=at, y1=y, x2=to, y2=y)


def _ticks_of_instructions(canvas, plot, instructions, count):
    """A strip below, where each instruction says its name."""
    for number, name in enumerate(instructions):
        canvas.add(
            "rect", kind="bar hover grey", hint="%d: %s" % (number, name), into=plot,
            x=percent(number, count), y=_HEIGHT + 3, width=percent(1, count), height=8,
        )  # fmt: skip
    for each in {int(tick) for tick in ticks(len(instructions) - 1)}:
        canvas.add("text", str(each), kind="soft", into=plot, x=percent(each + 0.5, count),
                   y=_HEIGHT + 24, text_anchor="middle")  # fmt: skip
