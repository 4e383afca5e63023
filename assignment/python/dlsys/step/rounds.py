"""Many steps of one call: each reads another row of stacked feeds."""

import numpy as np

from dlsys import ndarray
from dlsys.backend.capture import CaptureError
from dlsys.backend.rows import address_of

#: Launches of one recording; more take long to record, and memory of the driver.
_MOST_LAUNCHES = 20000


def count_of(stacks, count):
    """How many rows stacks have, or `count`.

    Raises:
        ValueError: not all have as many; there is no row.
    """
    found = {node.name: (tuple(stack.shape) or (0,))[0] for node, stack in stacks.items()}
    if count is not None:
        found["count"] = count
    if len(set(found.values())) > 1:
        each = ", ".join("%s %d" % pair for pair in found.items())
        raise ValueError("not all feeds have as many rows: %s" % each)
    if not found or min(found.values()) < 1:
        raise ValueError("there is no step to make; hint: step.scan(count=10)")
    return found.popitem()[1]


def one_by_one(call, stacks, count, ctx):
    """The values of `count` calls, stacked.

    Args:
        call: feeds of one step -> values.
        stacks: node -> array `(count, *shape)`, of numpy if ctx is None, else of the device.
    """
    rows = {}
    if ctx is not None:  # of its own, so that it lies as arrays do that stand alone
        rows = {n: ndarray.empty(s.shape[1:], ctx, s.dtype) for n, s in stacks.items()}
    results = None
    for number in range(count):
        for node, stack in stacks.items():
            if ctx is None:
                rows[node] = np.asarray(stack[number])
            else:
                stack[number].copyto(rows[node])
        found = call(dict(rows))
        if results is None:
            results = [_stack(value, count, ctx) for value in found]
        for result, value in zip(results, found):
            if ctx is None:
                result[number] = value
            else:
                value.copyto(result[number])
    return results


def _stack(value, count, ctx):
    shape = (count, *value.shape)
    return np.empty(shape, value.dtype) if ctx is None else ndarray.empty(shape, ctx, value.dtype)


class Rounds:
    """The steps of a program that were recorded as one launch.

    Attributes:
        reason: why they were not, in words, or "".
        count: how many the last recording has.
    """

    def __init__(self, program):
        self._program, self._stacks, self._own = program, {}, {}
        self._captured, self.count, self.reason = None, 0, ""

    def run(self, stacks, count):
        """The values, stacked; None where there is no recording, and can be none.

        Args:
            stacks: node -> NDArray `(count, *shape)`, which no run writes to.
        """
        if count * len(self._program.instructions) > _MOST_LAUNCHES:
            self.reason = "more than %d launches" % _MOST_LAUNCHES
            return None
        is_new = count != self.count
        if is_new or not self._are(stacks):
            # A recording knows addresses: from the second time on other arrays are copied to one.
            if not is_new:
                stacks = {node: self._copied(node, each) for node, each in stacks.items()}
            if (is_new or not self._are(stacks)) and not self._record(stacks, count):
                return None
        self._captured.replay()
        return list(self._results)

    def _are(self, stacks):
        return all(address_of(self._stacks[node]) == address_of(stacks[node]) for node in stacks)

    def _copied(self, node, stack):
        own = self._own.get(node)
        if own is None or own.shape != stack.shape:
            own = self._own[node] = ndarray.empty(stack.shape, stack.ctx, stack.dtype)
        return stack.copyto(own)

    def _record(self, stacks, count):
        try:
            self._captured, self._results = self._program.record_rounds(stacks, count)
        except CaptureError as error:
            self.reason = str(error)
            return False
        self._stacks, self.count, self.reason = stacks, count, ""
        return True
