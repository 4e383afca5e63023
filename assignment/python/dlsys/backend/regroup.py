"""What a GPU's kernels are made of once more, so that arrays are read and written less often.

    y = a * s                     y is cheap: whoever reads it reads a, and y is never written
    p = sum(x, (0, 2, 3)); q = sum(x * x, (0, 2, 3)); m = p / n
                                  one kernel, which reads x once

    y = maximum(a * s, 0); ...; z = a * (y > 0 ? g : 0)
                                  z reads a all the same, and so need not read y
    w = w - r * g; b = b - r * h  one kernel, if w and b have one shape

`recompute` does the first, `fuse_reductions` the second, `spare_reads` the third, `join_updates`
the last. All work on what `fuse` has made.
"""

import copy
import dataclasses

from dlsys.ndarray import size_of

from .dependences import after, before, sorted_by_need
from .fused import Fused, fused
from .instructions import Elementwise, Reduce
from .spaces import AxesSpace, Space
from .view import Buffer

#: As in fusion.py; and bytes of the state of a reduction, of which shared memory holds 1024.
_MOST_MEMBERS, _MOST_OPERANDS, _MOST_STATE = 48, 20, 48
#: Elements up to which a launch takes longer than what it does.
_SMALL = 1 << 14


def recompute(instructions, kept):
    """The same program, where readers compute again what costs them no more than to read it.

    A value is computed again by all that read it, or by none: then nobody writes it.

    Args:
        instructions: in an order in which they may run.
        kept: buffers that are read after the run.
    """
    again = _Recomputed(instructions, kept)
    for number in range(len(instructions)):
        again.spread(number)
    return again.in_order(range(len(instructions)))


def fuse_reductions(instructions, kept):
    """The same program, where reductions over the same axes are one kernel if they read the same.

    It makes what it reads, as far as that is made element by element, and goes on with the results;
    arguments as those of `recompute`.
    """
    joined = _Joined(instructions, kept)
    for number in range(len(instructions)):
        joined.join_reads(number)
    for number in range(len(instructions)):
        joined.join_readers(number)
    return joined.emitted()


def spare_reads(instructions, kept):
    """The same program, where nobody reads a value if he reads all large values that it is made of.

    It is made again, element by element; others may read it. Arguments as those of `recompute`.
    """
    spared = _Spared(instructions, kept)
    for number in range(len(instructions)):
        spared.spare(number)
    return spared.in_order(range(len(instructions)))


def join_updates(instructions, kept):
    """The same program, where small instructions for which nobody waits are one kernel.

    Such as updates of parameters of one shape; arguments as those of `recompute`.
    """
    joined = _Joined(instructions, kept)
    joined.join_ends()
    return joined.emitted()


def _parts(instruction):
    """(the instructions that it stands for, what they loop over); (None, None) if it stays."""
    if isinstance(instruction, Fused):
        return (None, None) if instruction.space.by_rows else (
            instruction.members, instruction.space)  # fmt: skip
    if type(instruction) is Elementwise:
        shape = tuple(instruction.output.shape)
        return ((instruction,), Space(shape)) if size_of(shape) else (None, None)
    if type(instruction) is Reduce and instruction.scratch is not None:
        whole, axes = tuple(instruction.whole), tuple(instruction.axes)
        some = size_of([whole[axis] for axis in axes])
        if some > 1 and size_of(whole):
            return (instruction,), AxesSpace(whole, axes)
    return None, None


def _is_given(buffer):
    return buffer.fed is not None or buffer.values is not None


class _Groups:
    """Instructions, in an order in which they may run, each with its members and space.

    Attributes:
        members, spaces: by number; None of what stays as it is.
        readers, writers: buffer -> numbers.
    """

    def __init__(self, instructions, kept):
        self.instructions, self.kept = instructions, kept
        found = [_parts(each) for each in instructions]
        self.members = [each and list(each) for each, _ in found]
        self.spaces = [space for _, space in found]
        self.readers, self.writers, self.changed = {}, {}, set()
        numbered = [each for members in self.members if members for each in members]
        #: Member -> its place among all, of the first where it is part of several.
        self.place = {each: -i for i, each in enumerate(reversed(numbered))}
        for number, each in enumerate(instructions):
            for view in each.sources:
                self.readers.setdefault(view.buffer, set()).add(number)
            for view in each.targets:
                self.writers.setdefault(view.buffer, set()).add(number)

    def in_place(self, members):
        """Members in an order in which they may run."""
        return sorted(members, key=self.place.__getitem__)

    def in_order(self, numbers):
        """The instructions of groups, which may run in this order; none of what nobody reads."""
        read, found = set(self.kept), []
        for number in reversed(numbers):
            made = [self.instructions[number]]
            if number in self.changed:
                made = self._made(self.members[number], self.spaces[number], read)
            for each in reversed(made):
                found.append(each)
                read.update(view.buffer for view in each.sources)
        return found[::-1]

    def _made(self, members, space, read):
        """The instructions that make what somebody reads of a group: one or none; members as they
        are, where no reduction is left for which the group looped so."""
        stored, needed, kept = set(), set(), []
        for each in reversed(members):
            own = {view.buffer for view in each.targets}
            stored |= {b for b in own if b in read or b.fed is not None}
            if own & (stored | needed):
                kept.append(each)
                needed.update(view.buffer for view in each.sources)
        if isinstance(space, AxesSpace) and not any(isinstance(each, Reduce) for each in kept):
            return kept[::-1]  # nobody reads what was reduced
        return [fused(kept[::-1], space, stored)] if stored else []

    def is_read_outside(self, buffer, inside):
        """Whether others than the groups `inside` read what one of them has written."""
        return buffer in self.kept or bool(self.readers.get(buffer, set()) - inside)

    def fits(self, members, space, inside):
        """Whether members may be one kernel: each reads of others only its own elements.

        A reduction writes nothing that is fed: checks of indices need not come first, and no block
        overwrites what another one reads.

        Args:
            members: in an order in which they may run.
            space: what the kernel loops over.
            inside: the groups that they are from.
        """
        made, read, results = {}, {}, set()
        for member in members:
            for view in member.sources:
                lies = space.lies(member, view)
                if made.get(view.buffer, lies) != lies:
                    return False
                if view.buffer in results and not space.is_of_rows(member, view):
                    return False
                if view.buffer not in made:
                    read.setdefault(view.buffer, set()).add(lies)
            for view in member.targets:
                lies = space.lies(member, view)
                if view.buffer in made or read.get(view.buffer, {lies}) != {lies}:
                    return False
                is_over = view.buffer.fed is not None or view.buffer in read
                if is_over and isinstance(space, AxesSpace):
                    return False
                made[view.buffer] = lies
                if space.is_of_rows(member, view):
                    results.add(view.buffer)
        operands = len({lies for each in read.values() for lies in each})
        operands += sum(b.fed is not None or self.is_read_outside(b, inside) for b in made)
        state = sum(
            (3 if each.kind == "moment" else 1) * each.computed_in.itemsize
            for each in members if isinstance(each, Reduce)
        )  # fmt: skip
        return len(members) <= _MOST_MEMBERS and operands <= _MOST_OPERANDS and state <= _MOST_STATE

    def reads_element_by_element(self, buffer, number, reader):
        """Whether a group loops over the elements of a value as the group `number`, its maker."""
        space, its = self.spaces[number], self.spaces[reader]
        if its is None or its.shape != space.shape:
            return False
        (made,) = {
            space.lies(each, view)
            for each in self.members[number] for view in each.targets if view.buffer is buffer
        }  # fmt: skip
        return all(
            its.lies(each, view) == made
            and not (isinstance(its, AxesSpace) and its.is_of_rows(each, view))
            for each in self.members[reader] for view in each.sources if view.buffer is buffer
        )  # fmt: skip

    @staticmethod
    def slice_of(buffer, makers, stays):
        """The members that make a value, of what is stored all the same."""
        found, stack = set(), [buffer]
        while stack:
            maker = makers[stack.pop()]
            found.add(maker)
            for view in maker.sources:
                known = makers.get(view.buffer)
                if known is not None and known not in found and view.buffer not in stays:
                    stack.append(view.buffer)
        return found

    @staticmethod
    def read_of(members):
        """The views that members read of others: each once."""
        own = {view.buffer for each in members for view in each.targets}
        found = (view for each in members for view in each.sources if view.buffer not in own)
        return list({(v.buffer, v.offset, v.strides): v for v in found}.values())

    def count_large(self, buffer, read, reader):
        """How many views a group would read instead of a value that it does not read yet; a few
        numbers for many elements don't count."""
        theirs = {(v.buffer, v.offset) for each in self.members[reader] for v in each.sources}
        sizes = (
            min(view.buffer.size, size_of(view.shape) * view.dtype.itemsize)
            for view in read if (view.buffer, view.offset) not in theirs
        )  # fmt: skip
        return sum(4 * size > buffer.size for size in sizes)

    def stays_until(self, buffer, number, reader):
        """Whether what a group has read or made is still the same where another one may read it."""
        first = number if _is_given(buffer) else number + 1  # a group may overwrite what is fed
        return not any(first <= writer <= reader for writer in self.writers.get(buffer, ()))


class _Recomputed(_Groups):
    """Which values are computed again, by whom."""

    def spread(self, number):
        """Has the readers of a group's values compute them, where that pays."""
        members, space = self.members[number], self.spaces[number]
        given = {v.buffer for each in members or () for v in each.targets if _is_given(v.buffer)}
        if given or not isinstance(space, Space) or not self.fits(members, space, {number}):
            return
        makers = {view.buffer: each for each in members for view in each.targets}
        stays = {b for b in makers if self.is_read_outside(b, {number})}
        wanted = [b for b in makers if b in stays and self._may_vanish(b, number)]
        stays -= set(wanted)
        for buffer in wanted:
            needed = self.slice_of(buffer, makers, stays)
            if self._pays(buffer, needed, number):
                self._move(buffer, needed, number)
            else:
                stays.add(buffer)

    def _may_vanish(self, buffer, number):
        """Whether all that read a value loop over the same elements as who makes it."""
        if buffer in self.kept or _is_given(buffer) or self.writers[buffer] != {number}:
            return False
        others = self.readers[buffer] - {number}
        return all(self.reads_element_by_element(buffer, number, other) for other in others)

    def _pays(self, buffer, needed, number):
        """Whether nobody reads much more than now, and all that is read is still there."""
        read, more = self.read_of(needed), 0
        for reader in self.readers[buffer] - {number}:
            if not all(self.stays_until(each.buffer, number, reader) for each in read):
                return False
            more += max(0, self.count_large(buffer, read, reader) - 1)
            members = self._with(needed, reader)
            if not self.fits(members, self.spaces[reader], {reader}):
                return False
        return more <= 1

    def _with(self, needed, reader):
        """The members of a reader, and those of a slice that it needs then."""
        return self.in_place({*needed, *self.members[reader]})

    def _move(self, buffer, needed, number):
        own = {view.buffer for each in needed for view in each.targets}
        readers = self.readers[buffer] - {number}
        self.readers[buffer] -= readers
        for reader in readers:
            self.members[reader] = self._with(needed, reader)
            for each in needed:
                for view in each.sources:
                    if view.buffer not in own:
                        self.readers.setdefault(view.buffer, set()).add(reader)
        self.changed |= {number, *readers}


class _Spared(_Groups):
    """Which values are made again by one that reads them."""

    def spare(self, number):
        """Has readers of a group's values make them, who read all for it that is large."""
        members, space = self.members[number], self.spaces[number]
        if type(space) is not Space:
            return
        makers = {view.buffer: each for each in members for view in each.targets}
        stays = {b for b in makers if self.is_read_outside(b, {number})}
        for buffer in filter(stays.__contains__, makers):
            if _is_given(buffer) or self.writers[buffer] != {number}:
                continue
            needed = self.slice_of(buffer, makers, stays - {buffer})
            for reader in sorted(self.readers.get(buffer, set()) - {number}):
                if self.reads_element_by_element(buffer, number, reader):
                    self._make_again(buffer, needed, number, reader)

    def _make_again(self, buffer, needed, number, reader):
        read = self.read_of(needed)
        is_there = all(self.stays_until(each.buffer, number, reader) for each in read)
        if not is_there or self.count_large(buffer, read, reader) > 0:
            return
        own = {view.buffer for each in needed for view in each.targets}
        fresh, members = {each: Buffer(each.size) for each in own}, []
        for each in self.in_place({*needed, *self.members[reader]}):
            made = copy.copy(each)
            made.inputs = tuple(_moved(view, fresh) for view in each.inputs)
            made.output = _moved(each.output, fresh) if each in needed else each.output
            self.place[made] = self.place[each]
            members.append(made)
        if self.fits(members, self.spaces[reader], {reader}):
            self.members[reader] = members
            self.readers[buffer].discard(reader)
            for view in read:
                self.readers.setdefault(view.buffer, set()).add(reader)
            self.changed.add(reader)


def _moved(view, fresh):
    """A view of the same elements, of a new buffer if there is one for its own."""
    new = fresh.get(view.buffer)
    return view if new is None else dataclasses.replace(view, buffer=new)


class _Joined(_Groups):
    """Which instructions become one; the group of several has the number of the last to join."""

    def __init__(self, instructions, kept):
        super().__init__(instructions, kept)
        self._needs = before(instructions)
        self._followers = after(self._needs)
        self._of = list(range(len(instructions)))
        self._numbers = [{number} for number in self._of]

    def join_reads(self, number):
        """Joins a reduction with those that read the same array, and with who makes it."""
        if not isinstance(self.spaces[number], AxesSpace):
            return
        size = size_of(self.spaces[number].shape)
        for view in self.instructions[number].sources:
            if 4 * view.buffer.size < size * view.dtype.itemsize:
                continue
            others = {*self.writers.get(view.buffer, ()), *self.readers.get(view.buffer, ())}
            for other in sorted(others):
                own, theirs = self._of[number], self._of[other]
                space, its = self.spaces[own], self.spaces[theirs]
                is_maker = other in self.writers.get(view.buffer, ()) and isinstance(its, Space)
                if own != theirs and (its == space or (is_maker and its.shape == space.shape)):
                    self._join(theirs, own)

    def join_readers(self, number):
        """Joins a reduction with what is made of its results, number by number."""
        own = self._of[number]
        space = self.spaces[own]
        if number != own or not isinstance(space, AxesSpace):
            return
        results = [
            view.buffer for each in self.members[own] for view in each.targets
            if space.is_of_rows(each, view)
        ]  # fmt: skip
        for buffer in results:
            for other in sorted(self.readers.get(buffer, ())):
                theirs = self._of[other]
                its = self.spaces[theirs]
                if theirs != own and type(its) is Space and space.is_of_kept(its.shape):
                    self._join(theirs, own)

    def join_ends(self):
        """Joins small groups of one space behind which none must come."""
        last = {}
        for number, space in enumerate(self.spaces):
            if not isinstance(space, Space) or self._followers[number]:
                continue
            if size_of(space.shape) <= _SMALL:
                if space in last:
                    self._join(last[space], number)
                last[space] = number

    def _join(self, other, own):
        """Makes two groups one, `own`, if that is possible."""
        numbers = self._numbers[other] | self._numbers[own]
        members = self.in_place({*self.members[other], *self.members[own]})
        if not self.fits(members, self.spaces[own], numbers) or self._makes_circle(other, own):
            return
        for number in numbers:
            self._of[number] = own
        self._numbers[own], self._numbers[other] = numbers, set()
        self.members[own], self.members[other] = members, None
        self.spaces[other] = None
        self.changed.add(own)

    def _makes_circle(self, one, two):
        """Whether a way leads out of two groups and back into them."""
        ends = {one, two}
        stack = [group for end in ends for group in self._after(end) if group not in ends]
        seen = set()
        while stack:
            group = stack.pop()
            if group in seen:
                continue
            seen.add(group)
            behind = self._after(group)
            if behind & ends:
                return True
            stack += behind
        return False

    def _after(self, group):
        found = {self._of[n] for number in self._numbers[group] for n in self._followers[number]}
        return found - {group}

    def emitted(self):
        """The instructions, in an order in which they may run."""
        groups = sorted(set(self._of), key=lambda group: min(self._numbers[group]))
        place = {group: i for i, group in enumerate(groups)}
        needs = [set() for _ in groups]
        for number, found in enumerate(self._needs):
            own = place[self._of[number]]
            needs[own].update(place[self._of[each]] for each in found)
            needs[own].discard(own)
        return self.in_order([groups[i] for i in sorted_by_need(needs)])
