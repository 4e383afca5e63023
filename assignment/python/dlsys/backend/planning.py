"""A program's memory, planned with care: the order of its instructions, and where buffers lie."""

from .lives import lives, most_alive
from .memory import plan
from .placing import place, spread
from .rematerialise import MemoryLimitError, fit
from .schedule import orders


#: Bytes up to which the values of a captured program share no memory, so that nothing waits for it.
_MOST_SPREAD = 1 << 30


class Planner:
    """What a Program is given to plan well, where `memory.plan` plans fast.

    Args:
        limit: bytes that intermediate values may take; None is no limit.
        spreads: whether instructions run side by side, where that helps.
    """

    def __init__(self, limit=None, spreads=False):
        self.limit, self.spreads = limit, spreads and limit is None
        self.again = []

    def order(self, instructions, kept):
        """The instructions in the best order found, some of them twice if the limit asks for it.

        Raises:
            rematerialise.MemoryLimitError: they don't fit.
        """
        self._fast = plan(instructions, kept)[1]
        found = orders(instructions, kept)
        self._figures = {name: figure for figure, name, _ in found}
        _, self._name, best = found[0]
        return best if self.limit is None else self._fitted(found, kept)

    def _fitted(self, found, kept):
        """Of the first order that fits; values may be computed again in one, not in another."""
        failed = []
        for _, self._name, ordered in found:
            try:
                ordered, self.again = fit(ordered, kept, self.limit)
                return ordered
            except MemoryLimitError as error:
                failed.append((error, ordered))
        error, ordered = min(failed, key=lambda each: each[0].least)
        raise MemoryLimitError(self.limit, _least(ordered, kept, error.least), error.node)

    def place(self, instructions, apart):
        """Offsets of buffers in an arena, and its size, as `memory.plan` gives them."""
        found = lives(instructions, apart)
        offsets, self.peak = place(found)
        if self.spreads:
            apart_offsets, size = spread(found)
            if size <= _MOST_SPREAD:
                offsets, self.peak = apart_offsets, size
        self.bound, _ = most_alive(found)
        self.count = len(instructions)
        self.shared = sum(len(life.buffers) - 1 for life in found)
        return offsets, self.peak

    def lines(self):
        """What was planned, in words."""
        others = ", ".join("%s %d" % each for each in self._figures.items())
        lines = [
            "instructions: %d; order: %s" % (self.count, self._name),
            "  most bytes alive at once: %s" % others,
            "memory: %d bytes; lower bound for this order: %d; in the order as written, by the fast"
            " plan: %d" % (self.peak, self.bound, self._fast),
            "  %d values lie where an input of theirs ended" % self.shared,
        ]
        if self.limit is not None:
            names = ": " + ", ".join(self.again[:6]) if self.again else ""
            lines.append(
                "memory limit: %d bytes; computed again: %d%s"
                % (self.limit, len(self.again), names)
            )
        return lines


def _least(instructions, kept, least):
    """The fewest bytes that can be asked for: fewer are, until they can't be had."""
    while True:
        try:
            fitted, _ = fit(instructions, kept, least - 1)
            least = place(lives(fitted, kept))[1]
        except MemoryLimitError as error:
            if error.least >= least:
                return least
            least = error.least
