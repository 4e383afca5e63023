"""The kit's C functions in the child, and arrays with guard zones around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from grader.checks.harness.compare import Array, Failure
from grader.student.proxy import Proxies, Proxy

#: Zones are a multiple of this, in floats: the output stays aligned as cudaMalloc aligns it.
_UNIT = 64
#: Smallest and largest zone after an output, in floats: a forgotten guard writes some blocks, or
#: some rows of a tile, too many.
_LEAST_AFTER, _MOST_AFTER = 2048, 1 << 16
#: A copy of so many floats keeps a GPU busy while a launch overtakes it, if it can.
_DELAY_FLOATS, _DELAY_COPIES = 1 << 26, 8


class Device:
    """The device of a child. Make it before any of the student's Python is imported.

    ctypes makes a new function object for each item of a library. So later changes to the library's
    attributes, or to functions that others hold, do not reach the functions that this holds.
    """

    def __init__(self, remote: Proxies) -> None:
        self._remote = remote
        ctypes = remote.import_("ctypes")
        library = remote.import_("dlsys._base")._LIB
        self._nd = remote.import_("dlsys.ndarray")
        self._synchronize = library["DLDeviceSynchronize"]
        self._count = library["DLGetAllocationCounts"]
        self._use = library["DLGetDeviceUse"]
        self._message = library["DLGetLastError"]
        self._message.restype = ctypes.c_char_p
        self._counters = [ctypes.c_int64(), ctypes.c_int64()]
        self._references = [ctypes.byref(counter) for counter in self._counters]
        self._busy: list[Proxy] = []

    def synchronize(self) -> Proxy:
        """Waits for every stream. Fetch the result and pass it to `require_clean`."""
        return self._synchronize(b"the device")

    def require_clean(self, code: Any, call: str) -> None:
        """Raises Failure if `code`, as fetched, tells of an error of the device."""
        if type(code) is int and code == 0:
            return
        said = self._remote.fetch(self._message())
        words = said.decode("utf-8", "replace")[:300] if isinstance(said, bytes) else "no message"
        raise Failure(
            f"{call} leaves a CUDA error unread: {words}",
            "check cudaGetLastError after every launch and call of CUDA",
        )

    def finish(self, call: str) -> None:
        """Waits for every stream; raises Failure if the device has an error."""
        with self._remote.doing(call):
            code = self._remote.fetch(self.synchronize())
        self.require_clean(code, call)

    def allocations(self) -> tuple[int, int]:
        """The number of allocations of device memory: (by arrays, by any cudaMalloc)."""
        self._count(*self._references)
        arrays, raw = self._remote.fetch_all([counter.value for counter in self._counters])
        if type(arrays) is not int or type(raw) is not int:
            raise Failure("the process did not return the number of allocations")
        return arrays, raw

    def count_use(self) -> list[Proxy]:
        """Counts what calls have used so far. Fetch it: bytes copied to the host, live cuBLAS
        handles."""
        ctypes = self._remote.import_("ctypes")
        counters = [ctypes.c_int64(), ctypes.c_int64()]
        self._use(*[ctypes.byref(counter) for counter in counters])
        return [counter.value for counter in counters]

    def delay(self) -> None:
        """Keeps the default stream of a real GPU busy for a millisecond; does not wait for it."""
        if not self._busy:
            gpu = self._nd.gpu(0)
            zeros = self._remote.import_("numpy").zeros((_DELAY_FLOATS,), "float32")
            # Copied from, so written: else initcheck tells of every element.
            self._busy = [self._nd.array(zeros, gpu), self._nd.empty((_DELAY_FLOATS,), gpu)]
        for _ in range(_DELAY_COPIES):
            self._busy[0].copyto(self._busy[1])


class Guarded:
    """An array on the device between two guard zones that no kernel may write to.

    Without zones the array is all of its memory, so that a tool sees every access beside it.

    Attributes:
        array: the NDArray, a view into `memory`.
        memory: zone, array and zone as one vector.
        shape: of the array.
        front: number of floats in the zone before it.
        nbytes: of `memory`.
    """

    def __init__(
        self,
        remote: Proxies,
        shape: tuple[int, ...],
        random: np.random.Generator,
        zones: bool = True,
    ) -> None:
        self.shape, self.size = shape, int(np.prod(shape, dtype=np.int64))
        self.front = _UNIT * int(random.integers(1, 9))
        back = min(max(self.size, _LEAST_AFTER), _MOST_AFTER) + _UNIT * int(random.integers(1, 9))
        if not zones:
            self.front = back = 0
        self._total, self._random = self.front + self.size + back, random
        self.nbytes = 4 * self._total
        nd = remote.import_("dlsys.ndarray")
        self.memory = nd.empty((self._total,), ctx=nd.gpu(0))
        self.array = nd.view(self.memory, shape)
        struct = self.array.handle.contents
        struct.data = struct.data + 4 * self.front

    def surround(self, values: Array) -> Array:
        """`values` between zones of fresh random numbers: the contents for `memory`."""
        content, end = np.empty(self._total, np.float32), self.front + self.size
        for zone in (content[: self.front], content[end:]):
            zone[:] = self._random.random(zone.size, np.float32)
        content[self.front : end] = values.reshape(-1)
        return content

    def inside(self, memory: Any, call: str) -> Array:
        """The array's part of the fetched `memory`.

        Raises:
            Failure: what was fetched is no array of this size.
        """
        whole = isinstance(memory, np.ndarray) and memory.dtype == np.float32
        if not whole or memory.shape != (self._total,):
            raise Failure(f"the process did not return the output of {call}")
        return np.asarray(memory[self.front : self.front + self.size].reshape(self.shape))

    def require_intact(self, memory: Array, before: Array, call: str) -> None:
        """Raises Failure if a number in the zones has changed."""
        memory, before, end = memory.view(np.uint32), before.view(np.uint32), self.front + self.size
        behind, front = slice(end, None), slice(self.front)
        for place, where in ((behind, "past the end of"), (front, "before")):
            zone = memory[place] != before[place]
            if zone.any():
                nearest = int(np.argmax(zone[::-1] if where == "before" else zone)) + 1
                count = int(zone.sum())
                elements = "1 element" if count == 1 else f"{count:,} elements"
                raise Failure(
                    f"{call} writes {elements} {where} its output, the nearest {nearest} away",
                    "does every thread compare its index with the number of elements?",
                )


def require_use(counts: list[Any], call: str) -> tuple[int, int]:
    """(bytes copied to the host, handles kept) by a call, from the counts before and after it.

    Raises:
        Failure: `counts`, as fetched, are no counts.
    """
    if any(type(count) is not int for count in counts):
        raise Failure(f"the process did not report what {call} used of the device")
    return counts[2] - counts[0], counts[3] - counts[1]
