"""SVG that needs nothing else: no script, no font, no page; in light and in dark."""

import math
import string
import xml.etree.ElementTree as ElementTree

#: Pixels of a letter, of a bold one, and of a line.
LETTER, BOLD_LETTER, LINE = 6.4, 7.6, 16

#: Fills of boxes, in this order where they are told apart by colour alone.
COLOURS = ("blue", "amber", "green", "violet", "rose", "teal", "grey")
_LIGHT = ("#cfe3fb", "#fbe3b8", "#cfeed6", "#e3d8fb", "#fbd5dc", "#c5ecec", "#e6e9ec")
_DARK = ("#24476e", "#6b4e12", "#235c33", "#4c3a80", "#73303f", "#1c5959", "#3d444d")
_PAPER = {"ink": "#1b1f24", "soft": "#57606a", "line": "#b4bcc5", "paper": "#ffffff",
          "mark": "#b3261e"}  # fmt: skip
_NIGHT = {"ink": "#e6edf3", "soft": "#9aa4af", "line": "#4b535d", "paper": "#15181d",
          "mark": "#ff8a80"}  # fmt: skip

_RULES = """
.dlsys text { fill: $ink; font: 12px system-ui, "DejaVu Sans", sans-serif; }
.dlsys .soft { fill: $soft; font-size: 11px; }
.dlsys .bold { font-weight: 600; }
.dlsys .paper { fill: $paper; }
.dlsys .box { stroke: $soft; stroke-width: 1; }
.dlsys .bar { stroke: $paper; stroke-width: 0.5; }
.dlsys .plain { fill: $paper; }
.dlsys .dashed { stroke-dasharray: 5 3; }
.dlsys .thin { fill: none; stroke: $line; stroke-width: 1; }
.dlsys .edge { fill: none; stroke: $soft; stroke-width: 1.2; }
.dlsys .tip { fill: $soft; }
.dlsys .mark { fill: none; stroke: $mark; stroke-width: 1.5; }
.dlsys .level { fill: none; stroke: $ink; stroke-width: 1.5; }
.dlsys .halo { paint-order: stroke; stroke: $paper; stroke-width: 3; }
.dlsys .hover:hover { stroke: $ink; stroke-width: 1.5; }
"""


class Svg(str):
    """The text of a picture, which a notebook shows."""

    def _repr_svg_(self):
        return str(self)

    def save(self, path):
        """Writes it to a file.

        Raises:
            OSError: it can't be written.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self + "\n")


class Canvas:
    """A picture that grows; sizes are in pixels, or "50%" of the width."""

    def __init__(self, width, height, says):
        """
        Args:
            width: a number, or "100%" of where it stands.
            says: what the picture shows, for readers who don't see it.
        """
        self.width, self.height = width, height
        self.root = ElementTree.Element(
            "svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "dlsys", "role": "img"}
        )
        self.root.set("aria-label", clean(says))
        self.add("style", _style())
        self.add("rect", kind="paper", width="100%", height="100%")

    def add(self, tag, text=None, hint=None, kind=None, into=None, **attributes):
        """Adds an element.

        Args:
            text: inside of it.
            hint: what is shown when the mouse rests there.
            kind: its classes.
            into: the element that it becomes part of.
            attributes: of SVG; _ stands for -.
        """
        given = {name.replace("_", "-"): _said(value) for name, value in attributes.items()}
        if kind:
            given["class"] = kind
        made = ElementTree.SubElement(self.root if into is None else into, tag, given)
        if hint is not None:
            ElementTree.SubElement(made, "title").text = clean(hint)
        if text is not None:
            made.text = clean(text) if tag != "style" else text
        return made

    def svg(self):
        """The whole picture."""
        self.root.set("width", _said(self.width))
        self.root.set("height", _said(self.height))
        if not isinstance(self.width, str):
            self.root.set("viewBox", "0 0 %s %s" % (_said(self.width), _said(self.height)))
        return Svg(ElementTree.tostring(self.root, encoding="unicode"))


def _style():
    """The rules with the colours of paper, and those of night for who asks for dark pages.

    Without variables of CSS, which many programs that read SVG don't know.
    """
    night = _rules(_NIGHT, _DARK)
    return "%s\n@media (prefers-color-scheme: dark) {\n%s\n}" % (_rules(_PAPER, _LIGHT), night)


def _rules(names, fills):
    boxes = [".dlsys .%s { fill: %s; }" % each for each in zip(COLOURS, fills)]
    return "\n".join([string.Template(_RULES.strip()).substitute(names), *boxes])


def _said(value):
    if isinstance(value, float):
        return ("%.2f" % value).rstrip("0").rstrip(".")
    return str(value)


def clean(text):
    """Without letters that XML can't hold."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in str(text))


def shortened(text, most):
    """The text, or its first letters and an ellipsis: `most` of them in all."""
    text = str(text)
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"


def percent(part, whole):
    """A part of the width."""
    return "%.3f%%" % (100 * part / whole if whole else 0)


def size_said(count):
    """A number of bytes in words."""
    return _in_units(count, ("B", "kB", "MB", "GB"))


def time_said(microseconds):
    """A time in words."""
    return _in_units(microseconds, ("us", "ms", "s"))


def _in_units(value, units):
    *smaller, largest = units
    for unit in smaller:
        if value < 999.5:
            return ("%.0f %s" if value >= 99.5 else "%.3g %s") % (value, unit)
        value /= 1000
    return "%.3g %s" % (value, largest)


def ticks(most, wished=5):
    """Round numbers from 0 to `most`, no more than are wished for beside 0."""
    if most <= 0:
        return [0.0]
    base = 10.0 ** math.floor(math.log10(most / wished))
    step = next(base * each for each in (1, 2, 5, 10) if most / (base * each) <= wished)
    return [step * number for number in range(int(most / step * (1 + 1e-9)) + 1)]
