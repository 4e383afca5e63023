"""Where each life lies in the arena, once all are known."""

import numpy as np


def place(found):
    """Offsets of lives, and the size of the arena: the best of some ways.

    Each takes the lives in one order (the largest first, the longest, those of most bytes times
    instructions, the first), and gives each the lowest offset at which nothing that lives at the
    same time lies.

    Returns:
        ({buffer: offset}, bytes).
    """
    ways = (
        lambda life: (-life.size, life.first - life.last, life.first),
        lambda life: (life.first - life.last, -life.size, life.first),
        lambda life: (-life.size * (life.last - life.first + 1), life.first),
        lambda life: (life.first, -life.size),
    )
    best = None
    for way in ways:
        offsets, size = _lowest(sorted(found, key=way))
        if best is None or size < best[1]:
            best = offsets, size
    lies = best[0]
    return {buffer: lies[id(life)] for life in found for buffer in life.buffers}, best[1]


def _lowest(ordered):
    """({id of a life: offset}, bytes) for lives in the order in which they are placed."""
    count = len(ordered)
    first, last, start, end = (np.zeros(count, np.int64) for _ in range(4))
    offsets, size = {}, 0
    for number, life in enumerate(ordered):
        together = (first[:number] <= life.last) & (last[:number] >= life.first)
        starts, ends = start[:number][together], end[:number][together]
        offset = _gap(starts, ends, life.size)
        first[number], last[number] = life.first, life.last
        start[number], end[number] = offset, offset + life.size
        offsets[id(life)] = offset
        size = max(size, offset + life.size)
    return offsets, size


def _gap(starts, ends, size):
    """The lowest offset with room for `size` bytes between what lies there."""
    if not starts.size:
        return 0
    order = np.argsort(starts, kind="stable")
    free = np.concatenate([[0], np.maximum.accumulate(ends[order])])
    room = np.flatnonzero(starts[order] - free[:-1] >= size)
    return int(free[room[0]] if room.size else free[-1])


def spread(found):
    """Offsets of lives that share no memory, for instructions that run side by side; and the size.

    What shares memory waits for one another.
    """
    offsets, size = {}, 0
    for life in found:
        offsets.update(dict.fromkeys(life.buffers, size))
        size += life.size
    return offsets, size
