"""Text that knows how it may be made smaller: what the grammar makes and the shrinker reduces."""

from dataclasses import dataclass


class Node:
    """Pieces of text and nodes, one after another.

    `drop` says that nothing may stand in its place, `simpler` what else may: each keeps the
    program well defined, if it compiles.
    """

    __slots__ = ("drop", "parts", "simpler")

    def __init__(self, *parts, drop=False, simpler=()):
        self.parts, self.drop, self.simpler = list(parts), drop, list(simpler)

    def text(self):
        """What stands in the program."""
        return "".join(p if isinstance(p, str) else p.text() for p in self.parts)

    def __str__(self):
        return self.text()


def statement(*parts):
    """A line that may be left out."""
    return Node(*parts, "\n", drop=True)


def joined(nodes, between=""):
    """Nodes one after another, with a text between them."""
    parts = []
    for node in nodes:
        parts += [between, node] if parts and between else [node]
    return Node(*parts)


@dataclass
class Value:
    """An expression without side effects: its C++ type and the range of its values."""

    node: Node
    type: str
    low: float
    high: float

    def within(self, other):
        """Whether this may stand where `other` stands."""
        return self.type == other.type and other.low <= self.low and self.high <= other.high

    def __str__(self):
        return self.node.text()
