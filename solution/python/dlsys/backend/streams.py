"""Which instructions of a program may run side by side, and on which stream each goes.

Two instructions conflict where one writes bytes that the other reads or writes. Of conflicting
ones the first stays first; all others may overlap. Buffers that share memory one after the other
conflict, too.
"""

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
    # BEGIN SOLUTION 3.3
    reads = [{place_of(view.buffer) for view in each.sources} for each in instructions]
    writes = [{place_of(view.buffer) for view in each.written} for each in instructions]
    behind, found = [], []  # all that an instruction waits for, as bits
    for number in range(len(instructions)):
        waits, bits = [], 0
        for other in reversed(range(number)):
            if bits >> other & 1:
                continue
            if (
                _meet(writes[other], reads[number])
                or _meet(writes[other], writes[number])
                or _meet(reads[other], writes[number])
            ):
                waits.append(other)
                bits |= behind[other] | 1 << other
        behind.append(bits)
        found.append(waits[::-1])
    return found
    # END SOLUTION


# BEGIN SOLUTION 3.3
def _meet(one, other):
    return any(
        a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for a in one for b in other
    )  # fmt: skip


# END SOLUTION


def assigned(waits, most=MOST_STREAMS):
    """The stream of each instruction, and the pairs (instruction, what it waits for elsewhere).

    An instruction goes on where one that it waits for was the last; else to a stream of its own,
    or, if there are too many, to that whose last instruction is the oldest.

    Args:
        waits: for each instruction those that it waits for, as `needed` gives them.
        most: streams, which are numbered from 0.
    """
    # BEGIN SOLUTION 3.4
    last, stream_of, pairs = [], [], []
    for number, others in enumerate(waits):
        follows = [stream for stream, tail in enumerate(last) if tail in others]
        if follows:
            stream = follows[0]
        elif not last or len(last) < most:
            stream = len(last)
            last.append(None)
        else:
            stream = min(range(len(last)), key=lambda each: last[each])
        pairs += [(number, other) for other in others if stream_of[other] != stream]
        last[stream] = number
        stream_of.append(stream)
    return stream_of, pairs
    # END SOLUTION
