"""A picture of what threads, registers and shared memory do to the occupancy of a launch."""

import dataclasses

from dlsys.pictures.svg import LINE, Canvas

from .limits import MOST_REGISTERS, MOST_THREADS, WARP, occupancy

_WIDTH, _LEFT, _HIGH, _GAP = 424, 44, 84, 54


def picture(launch, on, title):
    """The Svg: a curve for each of the three numbers, which go with the other two as they are."""
    now = occupancy(launch, on)
    canvas = Canvas(_WIDTH, 2 * LINE + 3 * (_HIGH + _GAP) + 8, title)
    canvas.add("text", title, kind="bold", x=8, y=LINE + 2)
    curves = (
        ("threads", "threads a block", range(WARP, MOST_THREADS + 1, WARP), 256),
        ("registers", "registers a thread", range(1, MOST_REGISTERS + 1), 64),
        ("shared", "bytes of shared memory a block", range(0, on.most_shared + 1, 256), 1 << 15),
    )
    for number, (name, words, values, step) in enumerate(curves):
        top = 2 * LINE + number * (_HIGH + _GAP) + 10
        _curve(canvas, top, launch, on, name, words, list(values), step, now)
    return canvas.svg()


def _curve(canvas, top, launch, on, name, words, values, step, now):
    right = _WIDTH - 18
    chosen = getattr(launch, name)

    def x_of(value):
        return _LEFT + (right - _LEFT) * value / values[-1]

    def y_of(share):
        return top + _HIGH * (1 - share)

    for share in (0, 0.5, 1):
        canvas.add("line", kind="thin", x1=_LEFT, x2=right, y1=y_of(share), y2=y_of(share))
        canvas.add("text", "%d %%" % (100 * share), kind="soft", x=_LEFT - 6, y=y_of(share) + 4,
                   text_anchor="end")  # fmt: skip
    for tick in range(0, values[-1] + 1, step):
        said = "%d KB" % (tick >> 10) if name == "shared" else tick
        canvas.add("text", said, kind="soft", x=x_of(tick), y=top + _HIGH + 15,
                   text_anchor="middle")  # fmt: skip
    shares = [occupancy(dataclasses.replace(launch, **{name: each}), on).share for each in values]
    points = ["%.1f %.1f" % (x_of(values[0]), y_of(shares[0]))]
    for value, before, share in zip(values[1:], shares, shares[1:]):
        if share != before or value == values[-1]:
            points += ["%.1f %.1f" % (x_of(value), y_of(each)) for each in (before, share)]
    canvas.add("path", d="M" + "L".join(points), kind="level")
    canvas.add("circle", kind="mark", cx=x_of(chosen), cy=y_of(now.share), r=5,
               hint="{:,} {}: {:.0%}".format(chosen, words, now.share))  # fmt: skip
    canvas.add("text", "{} (here {:,})".format(words, chosen), x=_LEFT, y=top + _HIGH + 31)
