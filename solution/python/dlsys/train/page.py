"""The page of a run: its settings and its curves, in one file that needs nothing else."""

import html
import math

from dlsys.pictures.svg import Canvas, size_said, ticks

_WIDTH, _HEIGHT, _LEFT, _BELOW, _TOP = 680, 260, 48, 30, 26
#: Points of a curve: more can't be told apart.
_MOST_POINTS = 400

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>%(title)s</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px system-ui, sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em; }
td, th { padding: 0.1em 1em 0.1em 0; text-align: left; font-variant-numeric: tabular-nums; }
svg { max-width: 100%%; height: auto; }
</style>
<h1>%(title)s</h1>
<p>%(words)s</p>
%(curves)s
<h2>Epochs</h2>
%(epochs)s
%(layers)s<h2>Memory</h2>
%(memory)s
<h2>Settings</h2>
%(settings)s
</html>
"""


def page(title, words, log, settings):
    """The text of the page.

    Args:
        title, words: what is trained, and on what.
        log: the Log.
        settings: name -> value.
    """
    epochs = log.epochs()
    losses = _means([(line["step"], line["loss"]) for line in log.steps()])
    curves = [curve("loss", "step", {"training": losses})]
    kinds = ("training", "validation")
    of_epochs = {k: [(e["epoch"] + 1, e[k + "_accuracy"]) for e in epochs] for k in kinds}
    curves.append(curve("accuracy", "epoch", of_epochs))
    rows = [_cells_of(line, kinds) for line in epochs]
    return _PAGE % {
        "title": html.escape(title), "words": html.escape(words), "curves": "\n".join(curves),
        "epochs": _table(("epoch", "loss", *kinds), rows),
        "layers": _layers(epochs), "memory": _table((), _memory(epochs[-1])),
        "settings": _table((), [(name, str(value)) for name, value in settings.items()]),
    }  # fmt: skip


def _cells_of(line, kinds):
    accuracies = (line[kind + "_accuracy"] for kind in kinds)
    return (str(line["epoch"] + 1), "%.4f" % line["loss"], *_percents(*accuracies))


def _layers(epochs):
    """A table of the layers' statistics, if there are any: of the last epoch, and what was dead
    after the first one."""
    told = [line["layers"] for line in epochs if "layers" in line]
    if not told:
        return ""
    rows = [
        (name, "%.3g" % mean, "%.3g" % deviation, *_percents(dead, told[0][name][2]))
        for name, (mean, deviation, dead) in told[-1].items()
    ]
    head = ("layer", "mean", "deviation", "dead units", "in the first epoch")
    return "<h2>Layers</h2>\n%s\n" % _table(head, rows)


def _percents(*parts):
    return ["%.1f %%" % (100 * part) for part in parts]


def _memory(line):
    """Rows of what a step holds, and how often it asked for more."""
    said = {"parameters": "parameters and what is kept for them", "values": "other values"}
    rows = [(said[kind], size_said(size)) for kind, size in line["memory"].items()]
    return [*rows, ("allocations in an epoch, behind its first steps", str(line["allocations"]))]


def curve(what, along, lines):
    """A picture of lines, name -> [(x, y)], without what is not finite; both axes begin at 0."""
    lines = {name: [(x, y) for x, y in each if math.isfinite(y)] for name, each in lines.items()}
    canvas = Canvas(_WIDTH, _HEIGHT, "%s by %s" % (what, along))
    points = [point for each in lines.values() for point in each]
    most_x = max((x for x, _ in points), default=1)
    most_y = max((y for _, y in points), default=1) or 1
    right, bottom = _WIDTH - 16, _HEIGHT - _BELOW

    def at(x, y):
        return _LEFT + (right - _LEFT) * x / most_x, bottom - (bottom - _TOP) * y / most_y

    for value in ticks(most_y):
        _, y = at(0, value)
        canvas.add("line", kind="thin", x1=_LEFT, x2=right, y1=y, y2=y)
        canvas.add("text", "%g" % value, kind="soft", x=_LEFT - 6, y=y + 4, text_anchor="end")
    for value in ticks(most_x):
        x, _ = at(value, 0)
        canvas.add("text", "%g" % value, kind="soft", x=x, y=bottom + 16, text_anchor="middle")
    canvas.add("text", "%s by %s" % (what, along), kind="bold", x=_LEFT, y=16)
    for kind, (name, each) in zip(("level", "mark"), lines.items()):
        said = " ".join("%.1f,%.1f" % at(x, y) for x, y in each)
        canvas.add("polyline", kind=kind, points=said, hint=name)
        if each:
            x, y = at(*each[-1])
            canvas.add("text", name, kind="soft halo", x=x - 4, y=y - 6, text_anchor="end")
    return canvas.svg()


def _means(points):
    """So many points, each the mean of its neighbours."""
    size = -(-len(points) // _MOST_POINTS)
    parts = [points[i : i + size] for i in range(0, len(points), max(1, size))]
    return [(part[-1][0], sum(y for _, y in part) / len(part)) for part in parts]


def _table(head, rows):
    lines = [_row("th", head)] if head else []
    return "<table>\n%s\n</table>" % "\n".join([*lines, *(_row("td", row) for row in rows)])


def _row(tag, cells):
    return "<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, html.escape(c), tag) for c in cells)
