"""What ran when, in a lane for each stream."""

import dataclasses

from .svg import LINE, Canvas, percent, ticks, time_said

_LANE, _BAR = 42, 24
#: The part of the width from which on a bar has words in it.
_WORDY = 0.04


@dataclasses.dataclass
class Bar:
    """Something that ran.

    Attributes:
        lane: the name of its stream.
        begin, end: in microseconds.
        words: what stands in it.
        hint: what is told of it where the mouse rests.
        colour: one of svg.COLOURS.
    """

    lane: str
    begin: float
    end: float
    words: str
    hint: str
    colour: str


def timeline(title, below_title, bars, legend, lines=()):
    """The picture, as wide as its place.

    Args:
        title, below_title: two lines above it.
        bars: Bars; those of a lane don't overlap.
        legend: colour -> what has it.
        lines: words below it.
    """
    lanes = list(dict.fromkeys(bar.lane for bar in bars))
    top = 3 * LINE + 4
    bottom = top + _LANE * len(lanes)
    below = bottom + LINE + 10
    canvas = Canvas("100%", below + LINE * (len(legend) + len(lines)) + 10, title)
    canvas.add("text", title, kind="bold", x=8, y=LINE + 2)
    canvas.add("text", below_title, kind="soft", x=8, y=2 * LINE + 2)
    plot = canvas.add("svg", x=8, y=top, width="97%", height=below - top, overflow="visible")
    whole = max((bar.end for bar in bars), default=0.0)
    _axis(canvas, plot, whole, bottom - top)
    for number, lane in enumerate(lanes):
        y = number * _LANE
        canvas.add("text", lane, kind="soft", into=plot, x=0, y=y + 11)
        for bar in bars:
            if bar.lane == lane:
                _bar(canvas, plot, bar, whole, y + 15)
    _legend(canvas, legend, below)
    for number, line in enumerate(lines):
        canvas.add("text", line, kind="soft", x=8, y=below + LINE * (len(legend) + number + 1))
    return canvas.svg()


def _bar(canvas, plot, bar, whole, y):
    at, width = percent(bar.begin, whole), percent(bar.end - bar.begin, whole)
    # A picture of its own cuts off what does not fit.
    own = canvas.add("svg", hint=bar.hint, into=plot, x=at, y=y, width=width, height=_BAR)
    canvas.add(
        "rect", kind="bar hover " + bar.colour, into=own, width="100%", height=_BAR, rx=2
    )  # fmt: skip
    if bar.end - bar.begin > _WORDY * whole:
        canvas.add("text", bar.words, into=own, x=4, y=16)


def _axis(canvas, plot, whole, y):
    places = ticks(whole)
    for each in places:
        at = percent(each, whole)
        canvas.add("line", kind="thin", into=plot, x1=at, y1=0, x2=at, y2=y + 4)
        if each > 0.94 * whole > 0:
            anchor = "end"
        else:
            anchor = "middle" if each else "start"
        canvas.add("text", time_said(each) if each else "0", kind="soft", into=plot, x=at,
                   y=y + LINE, text_anchor=anchor)  # fmt: skip


def _legend(canvas, legend, y):
    for number, (colour, words) in enumerate(legend.items()):
        line = y + number * LINE
        canvas.add("rect", kind="box " + colour, x=8, y=line + 3, width=12, height=10, rx=2)
        canvas.add("text", words, kind="soft", x=26, y=line + 12)
