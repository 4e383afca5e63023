"""Pictures of a training step: a kernel that has no place, and launches on two streams."""

from __future__ import annotations

from grader.handout.svg import Drawing

#: The launches of the picture of streams: what each waits for. Test and text use them.
WAITS = ((), (0,), (0,), (2,), (1, 3))
#: Their streams, and the waits between two.
STREAMS, EVENTS = (0, 0, 1, 1, 0), ((2, 0), (4, 3))
_BOX, _HEIGHT = 84.0, 34.0


def circle() -> Drawing:
    """A value, a product of it, and what reads both: apart, and with two of them as one kernel."""
    picture = Drawing(600, 252)
    places = {"a = x + 1": (90.0, 40.0), "p = a @ w": (200.0, 112.0), "c = a * p": (90.0, 184.0)}
    for left, title in ((0.0, "three kernels"), (280.0, "a and c as one: no order")):
        picture.text(left + 36, 18, title, "small bold", "start")
        if left:
            picture.rect(left + 36, 30, 108, 198, "roof", 8)
        (ax, ay), (px, py), (cx, cy) = places.values()
        picture.arrow([(left + ax - 24, ay + _HEIGHT), (left + cx - 24, cy)])
        picture.arrow([(left + ax + 24, ay + _HEIGHT), (left + px - 20, py)])
        picture.arrow([(left + px - 20, py + _HEIGHT), (left + cx + 24, cy)])
        for words, (x, y) in places.items():
            kind = "amber" if "@" in words else "blue"
            picture.rect(left + x - _BOX / 2, y, _BOX, _HEIGHT, kind, 5)
            picture.label(left + x, y + _HEIGHT / 2, words, "small")
    picture.text(316, 246, "one arrow leaves the kernel, one comes back", "tiny soft", "start")
    return picture


def streams() -> Drawing:
    """Launches in the lanes of their streams, each behind what it waits for."""
    left, column, lane = 92.0, 104.0, 74.0
    columns: list[int] = []
    for waits in WAITS:
        columns.append(1 + max((columns[each] for each in waits), default=-1))
    picture = Drawing(left + column * (max(columns) + 1) + 8, 2 * lane + 30)

    def at(launch: int) -> tuple[float, float]:
        return left + columns[launch] * column + _BOX / 2, 20 + STREAMS[launch] * lane

    for stream in sorted(set(STREAMS)):
        y = 20 + stream * lane + _HEIGHT / 2
        picture.text(left - 14, y + 4, f"stream {stream}", "small", "end")
        picture.path([(left - 6, y), (picture.width - 8, y)], "thin")
    for launch, other in EVENTS:
        (x0, y0), (x1, y1) = at(other), at(launch)
        down = STREAMS[launch] > STREAMS[other]
        ends = (y0 + _HEIGHT, y1) if down else (y0, y1 + _HEIGHT)
        picture.arrow([(x0 + 20, ends[0]), (x1 - 20, ends[1])])
        picture.label((x0 + x1) / 2 + 24, (ends[0] + ends[1]) / 2, "event", "tiny soft")
    for launch, stream in enumerate(STREAMS):
        x, y = at(launch)
        picture.rect(x - _BOX / 2, y, _BOX, _HEIGHT, ("blue", "green")[stream], 5)
        picture.label(x, y + _HEIGHT / 2, f"launch {launch}", "small")
    picture.text(left - 6, picture.height - 8, "time →", "tiny soft", "start")
    return picture
