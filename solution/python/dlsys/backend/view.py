"""Where the elements of a value lie: views of buffers, and numbers that need no memory."""

import dataclasses

import numpy as np

from dlsys.ndarray import size_of


class Buffer:
    """Memory of a program, of a fixed number of bytes; `fed` is the node that provides it."""

    def __init__(self, size, fed=None, values=None):
        self.size = size
        self.fed = fed
        #: What a constant holds, as a numpy array.
        self.values = values


@dataclasses.dataclass(frozen=True)
class View:
    """Elements of a buffer: that of index i lies `offset` + sum(i * strides) elements behind."""

    buffer: Buffer
    dtype: np.dtype
    shape: tuple
    strides: tuple
    offset: int = 0

    @property
    def is_whole(self):
        """Whether it is the buffer, in row-major order."""
        return self.is_dense and self.offset == 0

    @property
    def is_dense(self):
        """Whether the elements lie side by side in row-major order."""
        return self.strides == dense_strides(self.shape)

    @property
    def is_channels_last(self):
        """Whether it is images (N, C, H, W) that lie as (N, H, W, C) do."""
        return (
            len(self.shape) == 4 and not self.is_dense
            and self.strides == channels_last_strides(self.shape)
        )  # fmt: skip

    @property
    def fills(self):
        """Whether its elements are the first ones of the buffer, each once, in either order."""
        return self.offset == 0 and (self.is_dense or self.is_channels_last)

    def seen(self, function):
        """The view that `function` makes of it, which does as numpy's functions of arrays do.

        It is numpy that computes shape, strides and offset, on an array that nobody reads.

        Raises:
            TypeError: the function returns no view, but a number or a copy.
        """
        probe = np.ndarray.__new__(
            np.ndarray, (1,) * len(self.shape), np.int8, buffer=np.empty(1, np.int8)
        )
        probe = np.lib.stride_tricks.as_strided(probe, self.shape, self.strides)
        found = function(probe)
        if not isinstance(found, np.ndarray) or (found is not probe and found.base is None):
            raise TypeError("%r is no view of an array" % (found,))
        start = found.__array_interface__["data"][0] - probe.__array_interface__["data"][0]
        return dataclasses.replace(
            self, shape=found.shape, strides=found.strides, offset=self.offset + start
        )

    def reshaped(self, shape):
        """The elements in another shape; only of a dense view."""
        return dataclasses.replace(self, shape=shape, strides=dense_strides(shape))


@dataclasses.dataclass(frozen=True)
class Literal:
    """One number, repeated in a shape."""

    value: float
    dtype: np.dtype
    shape: tuple = ()


def new_view(shape, dtype, **of_buffer):
    """A dense view of a new buffer."""
    size = size_of(shape) * dtype.itemsize
    return View(Buffer(size, **of_buffer), dtype, tuple(shape), dense_strides(shape))


def channels_last_view(shape, dtype):
    """A view (N, C, H, W) of a new buffer, whose channels lie side by side."""
    return dataclasses.replace(new_view(shape, dtype), strides=channels_last_strides(shape))


def channels_last_strides(shape):
    """Strides of images (N, C, H, W) that lie as (N, H, W, C) do."""
    n, h, w, c = dense_strides([shape[axis] for axis in (0, 2, 3, 1)])
    return n, c, h, w


def dense_strides(shape):
    """Strides of row-major order, in elements; 0 where an axis has one element or none."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step if extent > 1 else 0)
        step *= extent
    return tuple(reversed(strides))


def broadcast(view, shape):
    """The view, repeated in a shape."""
    if view.shape == tuple(shape):
        return view
    if isinstance(view, Literal):
        return dataclasses.replace(view, shape=tuple(shape))
    return view.seen(lambda array: np.broadcast_to(array, shape))


def loops_of(shape, all_strides, by=None):
    """The loops of `collapsed`, from the largest step of an operand to its smallest.

    Args:
        by: its strides; those of the first operand if None.
    """
    by = all_strides[0] if by is None else by
    order = sorted(range(len(shape)), key=lambda axis: -abs(by[axis]))
    return collapsed([shape[a] for a in order], [[s[a] for a in order] for s in all_strides])


def collapsed(shape, all_strides):
    """The same loops with as few axes as can be.

    Args:
        shape: extents of the loops, the innermost last.
        all_strides: for each operand, its stride along each axis.

    Returns:
        (extents, strides of each operand); there is at least one axis.
    """
    axes = [axis for axis in zip(shape, *all_strides, strict=True) if axis[0] != 1]
    merged = []
    for extent, *strides in axes:
        if merged and all(
            outer == extent * inner for outer, inner in zip(merged[-1][1:], strides, strict=True)
        ):
            merged[-1] = (merged[-1][0] * extent, *strides)
        else:
            merged.append((extent, *strides))
    merged = merged or [(1, *(0 for _ in all_strides))]
    extents, *strides = zip(*merged, strict=True)
    return extents, strides
