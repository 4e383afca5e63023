"""New values of parameters are written where the old ones lie."""

from dlsys.backend.dependences import (
    after,
    before,
    buffers_of,
    is_check,
    moved,
    sorted_by_need,
)  # fmt: skip
from dlsys.backend.instructions import Elementwise
from dlsys.backend.lives import goes_over


def update_in_place(instructions, kept, report):
    """Spares the copies at the end of a step, where nobody needs the old value any more.

        before                              after
        t = w - 0.1 * g                     loss = sum(w * x)
        loss = sum(w * x)                   w = w - 0.1 * g
        w = t

    It is safe where all readers of the old value can run before the new one is written. Where one
    needs the new value too, where the new value is an output as well, or lies where another
    parameter does, the copy stays: there are two buffers.

    Args:
        instructions: those of a Program, with a copy for each update at their end.
        kept: buffers that are read after a run.
        report: a Report.

    Returns:
        The instructions; those that write parameters stand where they may.
    """
    order = _Order(instructions)
    for number, copy in enumerate(instructions):
        if not _is_copy_into_fed(copy):
            continue
        name = copy.output.buffer.fed.name
        reason = _why_not(copy, order, kept) or order.redirect(number)
        if reason:
            report.leave(reason, name)
        else:
            report.changed.append(name)
    return order.instructions()


def _is_copy_into_fed(instruction):
    is_copy = type(instruction) is Elementwise and instruction.code == "x0"
    return is_copy and instruction.output.buffer.fed is not None and not instruction.given


def _why_not(copy, order, kept):
    view = copy.inputs[0]
    source = view.buffer
    if source in order.places or source.fed is not None or source.values is not None:
        return "the new value is a constant, was fed, or is that of another parameter"
    if source in kept:
        return "the new value is an output too"
    if view.dtype != copy.output.dtype or not view.is_whole or source.size != _bytes(copy.output):
        return "the new value has another dtype, or is part of a larger one"
    return None


def _bytes(view):
    count = view.dtype.itemsize
    for extent in view.shape:
        count *= extent
    return count


class _Order:
    """Instructions and what must run before what, while copies are taken out.

    Attributes:
        places: buffer -> that of the parameter that is written instead.
    """

    def __init__(self, instructions):
        self.places = {}
        self._all, self._gone = list(instructions), set()
        self._followers = [set(found) for found in after(before(instructions))]
        self._writers, self._readers = {}, {}
        for number, each in enumerate(instructions):
            reads, written = buffers_of(each)
            self._writers.setdefault(written, set()).add(number)
            for buffer in reads:
                self._readers.setdefault(buffer, set()).add(number)
        self._checks = {number for number, each in enumerate(instructions) if is_check(each)}

    def redirect(self, number):
        """Takes a copy out, if what it copies can be written where it would go; else says why."""
        copy = self._all[number]
        source, target = copy.inputs[0].buffer, copy.output.buffer
        writers, readers = self._writers[source], self._readers.get(target, set())
        if self._writers[target] != {number}:
            return "it is written twice"
        for each in writers & readers:
            # It may read what it overwrites, element by element.
            if len(writers) > 1 or not goes_over(self._all[each], target):
                return "the new value needs others of the old elements than its own"
        earlier = (readers | self._checks) - writers
        if self._reached(writers, number) & earlier:
            return "the old value is read when the new one is there"
        self._gone.add(number)
        for each in earlier:
            self._followers[each] |= writers
        self.places[source] = target
        return None

    def _reached(self, start, without):
        """All that must run after one of some instructions, but for one copy."""
        found, stack = set(), list(start)
        while stack:
            for each in self._followers[stack.pop()]:
                if each not in found and each not in self._gone and each != without:
                    found.add(each)
                    stack.append(each)
        return found

    def instructions(self):
        """What is left, in an order that is right."""
        if not self._gone:
            return self._all
        needed = [set() for _ in self._all]
        for number, followers in enumerate(self._followers):
            for each in followers if number not in self._gone else ():
                needed[each].add(number)
        order = [number for number in sorted_by_need(needed) if number not in self._gone]
        return [moved(self._all[number], self.places) for number in order]
