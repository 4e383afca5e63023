"""Which instructions must come before which: what other orders compute the same."""

import copy
import dataclasses
import heapq

from .view import View


def buffers_of(instruction):
    """(buffers that it reads, the one that it writes); what is added to is read too.

    Room for partial results is neither: nobody else knows of it.
    """
    reads = dict.fromkeys(view.buffer for view in instruction.sources)
    return list(reads), instruction.output.buffer


def is_check(instruction):
    """Whether it stops the run where an index is out of range."""
    return getattr(instruction, "kind", "") == "check_indices"


def before(instructions):
    """For each instruction the numbers of those that must run before it.

    A buffer's readers come after its writers and before the next writer, as they stand now. What is
    fed is overwritten only when all indices are known to be right.
    """
    needed, writers, readers = [], {}, {}
    checks = {i for i, each in enumerate(instructions) if is_check(each)}
    for number, each in enumerate(instructions):
        reads = dict.fromkeys(view.buffer for view in each.sources)
        writes = dict.fromkeys(view.buffer for view in each.targets)
        found = set()
        for buffer in reads:
            is_given = buffer.fed is not None or buffer.values is not None
            assert is_given or buffer in writers, "%s reads what nobody has written" % each.node
            found.update(writers.get(buffer, ()))
        for buffer in writes:
            found.update(writers.get(buffer, ()), readers.get(buffer, ()))
            if buffer.fed is not None:
                found |= checks
        found.discard(number)
        needed.append(found)
        for buffer in reads:
            readers.setdefault(buffer, []).append(number)
        for buffer in writes:
            writers.setdefault(buffer, []).append(number)
    return needed


def after(needed):
    """The other way round: for each instruction those that must run after it."""
    followers = [[] for _ in needed]
    for number, found in enumerate(needed):
        for each in found:
            followers[each].append(number)
    return followers


def sorted_by_need(needed):
    """The order that is nearest to 0, 1, 2, ...; None if there is none."""
    followers, missing = after(needed), [len(found) for found in needed]
    ready = [number for number, count in enumerate(missing) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for each in followers[number]:
            missing[each] -= 1
            if not missing[each]:
                heapq.heappush(ready, each)
    return order if len(order) == len(needed) else None


def moved(instruction, places):
    """The same instruction on other buffers; itself if it touches none of them.

    Args:
        places: buffer -> the buffer instead of it; those that are not there stay.
    """
    if not any(view.buffer in places for view in instruction.operands):
        return instruction
    made = copy.copy(instruction)
    for name, value in vars(instruction).items():
        if isinstance(value, View):
            setattr(made, name, _moved(value, places))
        elif isinstance(value, tuple) and any(isinstance(each, View) for each in value):
            setattr(made, name, tuple(_moved(each, places) for each in value))
    return made


def _moved(view, places):
    if isinstance(view, View) and view.buffer in places:
        return dataclasses.replace(view, buffer=places[view.buffer])
    return view
