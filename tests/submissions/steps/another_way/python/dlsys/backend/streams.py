"""Which instructions of a program may run side by side, and on which stream each goes.

Two instructions conflict where one writes bytes that the other reads or writes. Of conflicting
ones the first stays first; all others may overlap. Buffers that share memory one after the other
conflict, too.
"""

import numpy as np

#: Streams of a program; more gain nothing, since few kernels leave room for another.
MOST_STREAMS = 4
#: Instructions above which all go to one stream: who conflicts with whom is asked for each pair.
_MOST_INSTRUCTIONS = 2000


def needed(instructions, place_of):
    """For each instruction the numbers of those that it waits for, without what these wait for.

    Args:
        instructions: in an order in which they may run.
        place_of: buffer -> (memory, first byte, byte behind the last one).

    Returns:
        Lists of numbers, each in ascending order. Where a waits for b and b for c, a is not
        told to wait for c.
    """
    if len(instructions) > _MOST_INSTRUCTIONS:
        return [[number - 1] if number else [] for number in range(len(instructions))]
    touched = [
        ([place_of(v.buffer) for v in one.sources], [place_of(v.buffer) for v in one.written])
        for one in instructions
    ]
    ends, result = [], []
    for number, now in enumerate(touched):
        direct = {other for other in range(number) if conflict(touched[other], now)}
        behind = set()
        for other in direct:
            behind |= ends[other]
        ends.append(direct | behind)
        result.append(np.array(sorted(direct - behind), dtype=int))
    return result


def overlap(a, b):
    return a[0] == b[0] and max(a[1], b[1]) < min(a[2], b[2])


def conflict(early, late):
    pairs = [(e, l) for e in early[1] for l in late[0] + late[1]]
    pairs += [(e, l) for e in early[0] for l in late[1]]
    return any(overlap(e, l) for e, l in pairs)



def assigned(waits, most=MOST_STREAMS):
    """The stream of each instruction, and the pairs (instruction, what it waits for elsewhere).

    An instruction goes on where one that it waits for was the last; else to a stream of its own,
    or, if there are too many, to that whose last instruction is the oldest.

    Args:
        waits: for each instruction those that it waits for, as `needed` gives them.
        most: streams, which are numbered from 0.
    """
    stream_of = {}
    tails = {}
    events = []
    for number, others in enumerate(waits):
        mine = None
        for other in others:
            if tails[stream_of[other]] == other:
                mine = stream_of[other]
        if mine is None and len(tails) < most:
            mine = len(tails)
        if mine is None:
            mine = sorted(tails, key=tails.get)[0]
        for other in others:
            if stream_of[other] != mine:
                events.append([number, other])
        stream_of[number] = mine
        tails[mine] = number
    return tuple(np.int64(stream_of[n]) for n in range(len(waits))), events
