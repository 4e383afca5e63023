"""The order of instructions in which the least memory is alive at once."""

import heapq

from .dependences import after, before
from .lives import is_placed, lives, most_alive
from .memory import rounded

#: How many of the instructions that cost least are looked at with what would follow them.
_LOOKED_AT = 4


def orders(instructions, apart):
    """The instructions in several orders, that with the least memory first.

    Tried are the order as it is, depth-first orders, and two greedy ones: each takes what frees
    most more than it allocates, else what stands first; one of them looks one further ahead.

    Returns:
        A list of (the most bytes alive at once, name of the order, instructions).
    """
    needed = before(instructions)
    sizes = [_sizes(each, apart) for each in instructions]
    found = {
        "as written": range(len(instructions)),
        "depth first": _depth_first(needed, lambda n: n),
        "depth first, last operand first": _depth_first(needed, lambda n: -n),
        "depth first, largest first": _depth_first(needed, lambda n: (-sum(sizes[n].values()), n)),
        "greedy": _greedy(needed, sizes, 1),
        "greedy with look-ahead": _greedy(needed, sizes, _LOOKED_AT),
    }
    listed = []
    for name, order in found.items():
        ordered = [instructions[number] for number in order]
        listed.append((most_alive(lives(ordered, apart))[0], name, ordered))
    return sorted(listed, key=lambda each: each[0])


def _sizes(instruction, apart):
    """Placed buffer -> its bytes, of all that an instruction touches."""
    found = dict.fromkeys(view.buffer for view in instruction.operands)
    return {buffer: rounded(buffer.size) for buffer in found if is_placed(buffer, apart)}


def _depth_first(needed, key):
    """What an instruction needs right before it; `key` says in which order."""
    followers = after(needed)
    order, done = [], set()
    stack = [n for n in reversed(range(len(needed))) if not followers[n]]
    while stack:
        number = stack[-1]
        if number in done:
            stack.pop()
            continue
        missing = sorted((n for n in needed[number] if n not in done), key=key, reverse=True)
        if missing:
            stack += missing
        else:
            done.add(number)
            order.append(stack.pop())
    return order


class _Greedy:
    """Which buffers are alive, and what an instruction would change of that."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.users = {}
        for number, found in enumerate(sizes):
            for buffer in found:
                self.users.setdefault(buffer, set()).add(number)
        self.alive = set()

    def cost(self, number):
        """How many bytes more are alive after it than before."""
        more = 0
        for buffer, size in self.sizes[number].items():
            more += size if buffer not in self.alive else 0
            more -= size if len(self.users[buffer]) == 1 else 0
        return more

    def execute(self, number):
        """Runs it; returns those whose costs have changed."""
        changed = set()
        for buffer in self.sizes[number]:
            is_new = buffer not in self.alive
            self.alive.add(buffer)
            users = self.users[buffer]
            users.discard(number)
            if is_new or len(users) == 1:
                changed |= users
        return changed


def _greedy(needed, sizes, looked_at):
    """Always what costs least; of the `looked_at` best, what is best with its best follower."""
    followers, missing = after(needed), [len(found) for found in needed]
    state, ready = _Greedy(sizes), set()
    heap, current = [], {}

    def offer(number):
        # What frees nothing waits for its turn: it would only lie there.
        more = state.cost(number)
        current[number] = (min(more, 0), number)
        heapq.heappush(heap, current[number])

    for number, count in enumerate(missing):
        if not count:
            ready.add(number)
            offer(number)
    order = []
    while ready:
        number = _chosen(heap, current, ready, looked_at, state, followers, missing)
        ready.discard(number)
        order.append(number)
        changed = state.execute(number) & ready
        for each in followers[number]:
            missing[each] -= 1
            if not missing[each]:
                ready.add(each)
                changed.add(each)
        for each in changed:
            offer(each)
    return order


def _chosen(heap, current, ready, looked_at, state, followers, missing):
    """The best of the first few of the heap; the others go back."""
    best = []
    while heap and len(best) < looked_at:
        entry = heapq.heappop(heap)
        if entry[1] in ready and current[entry[1]] == entry and entry not in best:
            best.append(entry)
    if looked_at == 1:
        return best[0][1]

    def with_follower(entry):
        number = entry[1]
        freed = [n for n in followers[number] if missing[n] == 1]
        next_ones = [state.cost(n) for n in freed]
        # A follower reads what is allocated here, which its own cost counts once more.
        return (min(0, state.cost(number) + min(0, min(next_ones, default=0))), number)

    chosen = min(best, key=with_follower)
    for entry in best:
        if entry is not chosen:
            heapq.heappush(heap, entry)
    return chosen[1]
