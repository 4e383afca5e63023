"""Numpy arrays on their way to a GPU that computes meanwhile; memory that it reads by itself."""

import ctypes
import weakref

import numpy as np

from dlsys import ndarray
from dlsys._base import _LIB, DeviceError, check_call

from .host import functions


class Uploads:
    """Two sets of arrays on the device: one is filled while kernels read the other."""

    def __init__(self, ctx):
        self._ctx, self._half, self._arrays = ctx, 0, ({}, {})
        self._made, self._has_left = None, True

    def fill(self, values):
        """Begins to copy to the device what is a numpy array, beside kernels that still run.

        Args:
            values: key -> dense numpy array, or an NDArray, which is passed through.

        Returns:
            key -> NDArray; its memory is filled again by the call after the next one. The numpy
            arrays are read until `leave` returns.

        Raises:
            DeviceError: the GPU refuses, or has failed before.
        """
        ours = {key: each for key, each in values.items() if isinstance(each, np.ndarray)}
        if not ours:
            return values
        if self._made is None:
            self._make()
        self._check(self._has_left)
        self._half ^= 1
        arrays, count = self._arrays[self._half], len(ours)
        to, sources, sizes = ((ctypes.c_int64 * count)() for _ in range(3))
        for number, (key, each) in enumerate(ours.items()):
            there = arrays.get(key)
            if there is None or (there.shape, there.dtype) != (each.shape, each.dtype):
                there = arrays[key] = ndarray.empty(each.shape, self._ctx, each.dtype)
            to[number] = there.handle.contents.data or 0
            sources[number], sizes[number] = each.ctypes.data, each.nbytes
        self._check(functions()["fill"](self._made, self._half, count, to, sources, sizes) == 0)
        return {key: arrays[key] if key in ours else each for key, each in values.items()}

    def settle(self):
        """Waits until the numpy arrays have been read."""
        if self._made is not None:
            self._check(functions()["settle"](self._made) == 0)

    def leave(self):
        """Says that all that reads what was filled last has been launched, and waits until the
        numpy arrays have been read; fill tells a failure."""
        if self._made is not None:
            self._has_left = functions()["leave"](self._made, self._half) == 0

    def holds(self, array):
        """Whether an NDArray is one of those that are filled again and again."""
        return any(array is each for half in self._arrays for each in half.values())

    def _make(self):
        made = functions()["make_uploads"]()
        self._check(made)
        self._made = ctypes.c_void_p(made)
        weakref.finalize(self, functions()["end_uploads"], self._made)

    def _check(self, worked):
        if not worked:
            check_call(_LIB.DLDeviceSynchronize(b"an upload"))
            raise DeviceError("the GPU refused an upload")


def pinned(values, dtype=None):
    """A copy of an array in memory that a GPU reads by itself: uploads from there need less time.

    Args:
        values: an array-like.
        dtype: of the copy, if it is another; a step's upload from float32 needs no conversion.

    Returns:
        A numpy array. What is cut from it, as `images[first:end]`, lies there too.

    Raises:
        MemoryError: there is no more such memory.
    """
    values = np.asarray(values)
    dtype = np.dtype(dtype or values.dtype)
    size = max(1, values.size * dtype.itemsize)
    address = functions()["pin"](size)
    if not address:
        raise MemoryError("no %d bytes of pinned memory; hint: upload from a plain array" % size)
    memory = (ctypes.c_byte * size).from_address(address)
    # Not at the end of the process, when others may still hold the array.
    weakref.finalize(memory, functions()["unpin"], address).atexit = False
    made = np.ndarray(values.shape, dtype, memory)
    made[...] = values
    return made
