"""Lines over numbers, and the plane in colours: what a notebook shows of a training."""

import math

from .svg import COLOURS, LINE, Canvas

_LEFT, _RIGHT, _BELOW = 52, 14, 40
#: How the first line is drawn, the second and the third.
_KINDS = ("level", "mark", "edge dashed")


class _Frame:
    """Where numbers lie in a picture."""

    def __init__(self, canvas, top, xs, ys):
        self.canvas, self.top = canvas, top
        self.x, self.y = _range(xs), _range(ys)
        self.right, self.bottom = canvas.width - _RIGHT, canvas.height - _BELOW

    def at(self, x, y):
        """The pixel of a point."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return (
            _LEFT + across * (self.right - _LEFT),
            self.bottom - up * (self.bottom - self.top),
        )

    def parts(self, xs, ys):
        """The parts of a line that lie inside, as lists of pixels."""
        found, is_inside = [], False
        for x, y in zip(xs, ys):
            was_inside, is_inside = is_inside, self.y[0] <= y <= self.y[1]
            if is_inside:
                found += [] if was_inside else [[]]
                found[-1].append(self.at(x, y))
        return found

    def axes(self, x_says, y_says):
        """Five lines each way, with numbers."""
        add = self.canvas.add
        for number in range(5):
            x = self.x[0] + (self.x[1] - self.x[0]) * number / 4
            y = self.y[0] + (self.y[1] - self.y[0]) * number / 4
            across, up = self.at(x, self.y[0])[0], self.at(self.x[0], y)[1]
            add("line", kind="thin", x1=across, x2=across, y1=self.top, y2=self.bottom)
            add("line", kind="thin", x1=_LEFT, x2=self.right, y1=up, y2=up)
            add("text", "%.3g" % x, kind="soft", x=across, y=self.bottom + 14,
                text_anchor="end" if number == 4 else "middle")  # fmt: skip
            add("text", "%.3g" % y, kind="soft", x=_LEFT - 5, y=up + 4, text_anchor="end")
        add("text", x_says, kind="soft", x=self.right, y=self.bottom + 30, text_anchor="end")
        add("text", y_says, kind="soft halo", x=_LEFT + 4, y=self.top + 12)


def curves(title, lines, points=(), x_says="", y_says="", width=420, height=260, y_range=None):
    """A picture of up to three lines.

    Args:
        lines: name -> (xs, ys).
        points: (x, y) that are marked.
        x_says, y_says: what the numbers are.
        y_range: the lowest and the highest y that is shown; all of them if None.
    """
    canvas = Canvas(width, height, title)
    canvas.add("text", title, kind="bold", x=8, y=LINE + 2)
    xs = [x for across, _ in lines.values() for x in across]
    ys = [y for _, up in lines.values() for y in up if math.isfinite(y)]
    frame = _Frame(canvas, 2 * LINE - 4, xs, y_range or ys)
    frame.axes(x_says, y_says)
    for (name, (across, up)), kind in zip(lines.items(), _KINDS):
        parts = frame.parts(across, up)
        if parts:
            d = "".join("M" + "L".join("%.1f %.1f" % place for place in part) for part in parts)
            canvas.add("path", d=d, kind=kind, hint=name)
            x, y = parts[-1][-1]
            canvas.add("text", name, kind="soft halo", x=x - 4, y=max(y - 5, frame.top + 12),
                       text_anchor="end")  # fmt: skip
    for x, y in points:
        across, up = frame.at(x, y)
        canvas.add("circle", kind="mark", cx=across, cy=up, r=5, hint="%.4g, %.4g" % (x, y))
    return canvas.svg()


def plane(title, cells, points, extent=1.0, width=340):
    """A picture of a square of the plane, each cell in the colour of its class, and points in it.

    Args:
        cells: rows of class numbers, the lowest row first.
        points: (x, y, class).
        extent: the square goes from -extent to extent.
    """
    canvas = Canvas(width, width + 2 * LINE, title)
    canvas.add("text", title, kind="bold", x=8, y=LINE + 2)
    top, count = 2 * LINE - 4, len(cells)
    side = (width - 8) / count
    for row, line in enumerate(cells):
        start = 0
        for column in range(1, count + 1):  # a rectangle for each run of cells of one class
            if column == count or line[column] != line[start]:
                canvas.add("rect", kind=COLOURS[int(line[start]) % len(COLOURS)],
                           x=4 + side * start, y=top + side * (count - 1 - row),
                           width=side * (column - start) + 0.4, height=side + 0.4)  # fmt: skip
                start = column
    for x, y, each in points:
        place = [4 + (width - 8) * (1 + v / extent) / 2 for v in (x, -y)]
        canvas.add("circle", kind="box " + COLOURS[int(each) % len(COLOURS)], cx=place[0],
                   cy=place[1] + top - 4, r=3.5)  # fmt: skip
    return canvas.svg()


def _range(values):
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)
