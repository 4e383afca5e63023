"""Checks of indices: a GPU makes them first, and the host reads them while it goes on."""

import ctypes
import weakref

import numpy as np

from dlsys import dtypes, ndarray
from dlsys._base import _LIB, DeviceError, check_call

from .dependences import is_check
from .host import functions
from .rows import address_of

#: Instructions that checks may need before them; more are left where they are.
_MOST = 32


def needed(instructions):
    """The numbers of checks and of what these need; none where that is much."""
    buffers, found = set(), set()
    for number in reversed(range(len(instructions))):
        each = instructions[number]
        if is_check(each) or buffers.intersection(view.buffer for view in each.written):
            found.add(number)
            buffers.update(view.buffer for view in each.sources)
    return found if len(found) <= _MOST else set()


def first(instructions):
    """The same with checks, and what these need, at the beginning, and how many these are: 0 where
    that is much, or can't be, or there are none."""
    chosen, used = needed(instructions), set()
    for number, each in enumerate(instructions):
        written = {view.buffer for view in each.written}
        if number not in chosen:
            used.update(written, (view.buffer for view in each.sources))
        elif used & written or any(buffer.fed for buffer in written):
            return instructions, 0
    numbered = range(len(instructions))
    order = [*(i for i in numbered if i in chosen), *(i for i in numbered if i not in chosen)]
    return [instructions[number] for number in order], len(chosen)


class Flags:
    """What the checks of a program write, on a GPU.

    Attributes:
        checks: their instructions.
    """

    def __init__(self, instructions, ctx):
        self.checks = [each for each in instructions if is_check(each)]
        self._arrays = [ndarray.empty((), ctx, dtypes.BOOL) for _ in self.checks]
        self._made = None

    def owned(self):
        """Buffer -> array."""
        outputs = (each.output.buffer for each in self.checks)
        return dict(zip(outputs, self._arrays, strict=True))

    def begin(self):
        """Has the host get what the default stream has found when it is where it is now."""
        if self._made is None:
            self._made = functions()["make_look"](len(self.checks))
            self._check(self._made)
            weakref.finalize(self, functions()["end_look"], ctypes.c_void_p(self._made))
            self._from = np.array([address_of(each) for each in self._arrays], np.int64)
        self._check(functions()["begin_look"](self._made, self._from.ctypes.data) == 0)

    def failed(self):
        """The first check that found an index out of range, or None; waits for its flags."""
        found = functions()["seen"](self._made)
        self._check(found)
        flags = ctypes.string_at(found, len(self.checks))
        return next((each for each, flag in zip(self.checks, flags) if not flag), None)

    def _check(self, worked):
        if not worked:
            check_call(_LIB.DLDeviceSynchronize(b"checks of indices"))
            raise DeviceError("the GPU refused %d checks of indices" % len(self.checks))
