"""Less memory for more work: cheap values are computed again, near their late readers."""

import dataclasses

from .dependences import buffers_of, is_check, moved
from .instructions import Elementwise, Gather, Reduce, Rows
from .lives import is_placed, lives, most_alive
from .placing import place
from .view import Buffer

#: How many values are tried before the memory at one place counts as needed.
_TRIED = 60
#: How many instructions one value may take to be computed again.
_LONGEST = 8


class MemoryLimitError(ValueError):
    """A program does not fit into the memory that it was given.

    Attributes:
        least: the bytes that were reached.
        reached: with what, as `fit` returns it.
        node: where so much is needed.
    """

    def __init__(self, limit, least, node, reached):
        super().__init__(
            "the memory limit is %d bytes; the least that was reached is %d, at %s"
            % (limit, least, node.name)
        )
        self.least, self.node, self.reached = least, node, reached


def fit(instructions, apart, limit):
    """Instructions whose intermediate values take at most `limit` bytes.

    Where most is alive, a value that is read later, not now, is dropped, and computed again right
    before it is read; again, until all fits. Products of matrices, random draws and what several
    instructions write are never computed twice.

    Args:
        instructions: in the order of their execution, which stays.
        apart: buffers that have memory of their own.
        limit: bytes.

    Returns:
        (instructions, the names of nodes that are computed again).

    Raises:
        MemoryLimitError: it can't be done; the message says the least that was reached.
    """
    again, target = [], limit
    while True:
        most, position = most_alive(lives(instructions, apart))
        if most <= target:
            size = place(lives(instructions, apart))[1]
            if size <= limit:
                return instructions, again
            target = most - 1  # There are gaps: less must be alive.
            continue
        found = _better(instructions, apart, target, position)
        if found is None:
            least = place(lives(instructions, apart))[1]
            node = instructions[position].node
            raise MemoryLimitError(limit, least, node, (instructions, again))
        instructions, names = found
        again += names


def _better(instructions, apart, target, position):
    """(instructions that need less above the target, names of what is computed again), or None."""
    program = _Program(instructions, apart)
    best = _excess(instructions, apart, target)
    for buffer in program.idle(position)[:_TRIED]:
        for is_deep in (False, True):
            chain = program.chain(buffer, position, is_deep)
            if chain:
                changed = program.again(chain, buffer, position)
                if _excess(changed, apart, target) < best:
                    return changed, [each.node.name for each in chain]
    return None


def _excess(instructions, apart, target):
    """How much is alive above the target, in bytes times instructions."""
    changes = [0] * (len(instructions) + 1)
    for life in lives(instructions, apart):
        changes[life.first] += life.size
        changes[life.last + 1] -= life.size
    total = alive = 0
    for change in changes:
        alive += change
        total += max(0, alive - target)
    return total


@dataclasses.dataclass
class _Uses:
    """The positions at which a buffer is written, and at which it is touched at all."""

    writes: list
    touched: list


class _Program:
    """Instructions, and where each buffer is used."""

    def __init__(self, instructions, apart):
        self.instructions, self.apart = instructions, apart
        self.uses = {}
        for position, each in enumerate(instructions):
            reads, written = buffers_of(each)
            for buffer in dict.fromkeys([*reads, written]):
                uses = self.uses.setdefault(buffer, _Uses([], []))
                uses.touched.append(position)
            self.uses[written].writes.append(position)

    def idle(self, position):
        """Buffers that hold at a position what is read only later, the largest first."""
        found = []
        for buffer, uses in self.uses.items():
            if is_placed(buffer, self.apart) and position not in uses.touched:
                if uses.touched[0] < position < uses.touched[-1] and self._writer(buffer):
                    found.append(buffer)
        return sorted(found, key=lambda buffer: -buffer.size)

    def _writer(self, buffer):
        """The instruction that makes all of a buffer, if that is cheap; else None."""
        uses = self.uses.get(buffer)
        if uses is None or len(uses.writes) != 1:
            return None
        each = self.instructions[uses.writes[0]]
        is_cheap = isinstance(each, (Elementwise, Reduce, Rows, Gather)) and not is_check(each)
        return each if is_cheap and not getattr(each, "adds", False) else None

    def chain(self, buffer, position, is_deep):
        """What computes a buffer again right before its next reader, or None.

        Args:
            is_deep: whether inputs that are gone by then are computed again too, where that is
                cheap; else they are kept until then. If these take as much, it is None.
        """
        late = self._late(buffer, position)
        chain, wanted, seen, longer = [], [buffer], set(), {}
        while wanted:
            each = wanted.pop()
            if each in seen:
                continue
            seen.add(each)
            writer = self._writer(each)
            made = self.uses[each].writes[0]
            chain.append((made, writer))
            for read in buffers_of(writer)[0]:
                writes = self.uses[read].writes
                if any(made < write < late for write in writes):
                    return None
                if not is_placed(read, self.apart) or read.size == 0 or not writes:
                    continue
                is_gone = self.uses[read].touched[-1] < late
                if is_gone and is_deep and self._writer(read):
                    wanted.append(read)
                elif self.uses[read].touched[-1] < position:
                    longer[read] = read.size
            if len(chain) > _LONGEST or sum(longer.values()) >= buffer.size:
                return None
        return [writer for _, writer in sorted(chain, key=lambda pair: pair[0])]

    def _late(self, buffer, position):
        return next(p for p in self.uses[buffer].touched if p > position)

    def again(self, chain, buffer, position):
        """The instructions with those of the chain once more; late readers read the new buffers."""
        late = self._late(buffer, position)
        places = {each.output.buffer: Buffer(each.output.buffer.size) for each in chain}
        for each in chain:
            for view in each.written[1:]:  # room, of which constants serve both
                if view.buffer.values is None:
                    places[view.buffer] = Buffer(view.buffer.size)
        once_more = [moved(each, places) for each in chain]
        rest = [moved(each, {buffer: places[buffer]}) for each in self.instructions[late:]]
        return [*self.instructions[:late], *once_more, *rest]
