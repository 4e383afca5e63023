"""From when to when the buffers of a program hold something, and which may share memory."""

import dataclasses
import weakref

from .instructions import Elementwise
from .memory import rounded


@dataclasses.dataclass
class Life:
    """Buffers that have one memory, one after the other, from instruction `first` to `last`."""

    buffers: list
    size: int
    first: int
    last: int


def is_placed(buffer, apart):
    """Whether a buffer gets a place in the arena: it is not fed, no constant, and not kept."""
    return buffer.fed is None and buffer.values is None and buffer not in apart


def lives(instructions, apart, shares=True):
    """The lives of all buffers that are placed, by their first use.

    Args:
        instructions: in the order of their execution.
        apart: buffers that have memory of their own.
        shares: whether what an element-wise instruction writes may take the memory of what it
            reads for the last time, element by element.
    """
    found = {}
    for position, instruction in enumerate(instructions):
        for buffer in _facts(instruction)[0]:
            life = found.get(buffer)
            if life is not None:
                life.last = position
            elif is_placed(buffer, apart):
                found[buffer] = Life([buffer], rounded(buffer.size), position, position)
    for position, instruction in enumerate(instructions if shares else ()):
        _share(found, position, instruction)
    return list({id(life): life for life in found.values()}.values())


def _share(found, position, instruction):
    """Joins the life of an output to that of an input which ends here."""
    written = found.get(instruction.output.buffer)
    if written is None or written.first != position:
        return
    for buffer in _facts(instruction)[1]:
        read = found.get(buffer)
        if read is None or read is written or read.last != position or read.first == position:
            continue
        if read.size >= written.size:
            read.buffers += written.buffers
            read.last = written.last
            for each in written.buffers:
                found[each] = read
            return


#: Instruction -> what `_facts` found; plans are compared by the hundred.
_KNOWN = weakref.WeakKeyDictionary()


def _facts(instruction):
    """(the buffers that it touches, those of its inputs over which its output may go)."""
    found = _KNOWN.get(instruction)
    if found is None:
        touched = tuple(dict.fromkeys(view.buffer for view in instruction.operands))
        read = dict.fromkeys(view.buffer for view in instruction.inputs)
        found = touched, tuple(each for each in read if goes_over(instruction, each))
        _KNOWN[instruction] = found
    return found


def goes_over(instruction, buffer):
    """Whether the output may lie where an input lies: element i is read before it is written.

    All views of that buffer must be the output's elements in the output's order.
    """
    output = instruction.output
    if type(instruction) is not Elementwise or not output.fills:
        return False
    size = output.dtype.itemsize
    return all(
        view.strides == output.strides and view.offset == 0 and view.dtype.itemsize == size
        for view in instruction.inputs
        if view.buffer is buffer
    )


def most_alive(found):
    """(the most bytes that are alive at once, the first position where that is so)."""
    changes = {}
    for life in found:
        changes[life.first] = changes.get(life.first, 0) + life.size
        changes[life.last + 1] = changes.get(life.last + 1, 0) - life.size
    most = alive = place = 0
    for position in sorted(changes):
        alive += changes[position]
        if alive > most:
            most, place = alive, position
    return most, place
