"""Where the buffers of a program lie: in one arena, each from its first to its last use."""

import bisect

#: A buffer starts at a multiple of so many bytes, as a line of the cache does.
ALIGNMENT = 64


def plan(instructions, apart):
    """Offsets of buffers in an arena, and its size in bytes.

    One walk over the instructions: a buffer takes the smallest free block that holds it, and gives
    it back after its last use.

    Args:
        instructions: in the order of their execution.
        apart: buffers that have memory of their own, as those that are fed and constants have.
    """
    first, last = {}, {}
    for position, instruction in enumerate(instructions):
        for view in instruction.operands:
            buffer = view.buffer
            if buffer.fed is None and buffer.values is None and buffer not in apart:
                first.setdefault(buffer, position)
                last[buffer] = position
    ends = {}
    for buffer, position in last.items():
        ends.setdefault(position, []).append(buffer)
    offsets, arena = {}, _Arena()
    for position, instruction in enumerate(instructions):
        for buffer in dict.fromkeys(view.buffer for view in instruction.operands):
            if first.get(buffer) == position:
                offsets[buffer] = arena.take(rounded(buffer.size))
        for done in ends.get(position, ()):
            arena.give_back(offsets[done], rounded(done.size))
    return offsets, arena.size


def rounded(size):
    """Bytes that a buffer of so many takes."""
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT


class _Arena:
    """Memory that grows at its end. Free blocks that touch are one block."""

    def __init__(self):
        self.size = 0
        self._by_size = []  # (size, offset), sorted
        self._starts, self._ends = {}, {}  # offset -> size; offset behind -> offset

    def take(self, size):
        """The offset of `size` bytes."""
        place = bisect.bisect_left(self._by_size, (size, -1))
        if place < len(self._by_size):
            free, offset = self._by_size[place]
            self._remove(offset, free)
            if free > size:
                self._add(offset + size, free - size)
            return offset
        offset = self._ends.get(self.size, self.size)  # a free block at the end grows
        if offset < self.size:
            self._remove(offset, self.size - offset)
        self.size = offset + size
        return offset

    def give_back(self, offset, size):
        """Frees a block."""
        if offset + size in self._starts:
            behind = self._starts[offset + size]
            self._remove(offset + size, behind)
            size += behind
        if offset in self._ends:
            before = self._ends[offset]
            size += self._starts[before]
            self._remove(before, self._starts[before])
            offset = before
        self._add(offset, size)

    def _add(self, offset, size):
        bisect.insort(self._by_size, (size, offset))
        self._starts[offset] = size
        self._ends[offset + size] = offset

    def _remove(self, offset, size):
        del self._by_size[bisect.bisect_left(self._by_size, (size, offset))]
        del self._starts[offset], self._ends[offset + size]
