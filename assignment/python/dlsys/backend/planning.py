"""A program's memory, planned with care: the order of its instructions, and where buffers lie."""

from .lives import lives, most_alive
from .memory import plan
from .placing import place, spread
from .rematerialise import MemoryLimitError, fit
from .schedule import orders

#: Bytes up to which the values of a captured program share no memory, so that nothing waits for it.
_MOST_SPREAD = 64 << 20


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
                fitted, self.again = fit(ordered, kept, self.limit)
                return fitted
            except MemoryLimitError as error:
                failed.append((error, self._name, ordered))
        error, self._name, ordered = min(failed, key=lambda each: each[0].least)
        (fitted, self.again), least = _least(ordered, kept, error)
        if least > self.limit:
            raise MemoryLimitError(self.limit, least, error.node, (fitted, self.again))
        return fitted

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
            lines.append(
                "memory limit: %d bytes; computed again: %d" % (self.limit, len(self.again))
            )
        return lines


def _least(instructions, kept, error):
    """(what `fit` returns, bytes) of the fewest bytes that can be had, after it failed.

    Fewer are asked for until there are none. What is tried depends on what is asked for, so that
    the end may lie below a limit that was missed.
    """
    best, least = error.reached, error.least
    while True:
        try:
            best = fit(instructions, kept, least - 1)
            least = place(lives(best[0], kept))[1]
        except MemoryLimitError as error:
            if error.least >= least:
                return best, least
            best, least = error.reached, error.least
