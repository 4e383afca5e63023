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
    # TODO (task 3.3): your code here
    raise NotImplementedError("task 3.3 is not written yet")


# TODO (task 3.3): your own functions here


def assigned(waits, most=MOST_STREAMS):
    """The stream of each instruction, and the pairs (instruction, what it waits for elsewhere).

    An instruction goes on where one that it waits for was the last; else to a stream of its own,
    or, if there are too many, to that whose last instruction is the oldest.

    Args:
        waits: for each instruction those that it waits for, as `needed` gives them.
        most: streams, which are numbered from 0.
    """
    # TODO (task 3.4): your code here
    raise NotImplementedError("task 3.4 is not written yet")
