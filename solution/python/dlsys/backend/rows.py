"""Rows of stacked arrays, each where an array that stands alone would lie."""

import dataclasses

from dlsys import ndarray
from dlsys.ndarray import size_of

from .memory import ALIGNMENT, rounded


@dataclasses.dataclass
class Rows:
    """Rows that are copied, from NDArray `start` to NDArray `to`; if they are one, they stay.

    Attributes:
        to_apart, start_apart: bytes from the start of a row to that of the next one.
    """

    to: ndarray.NDArray
    to_apart: int
    start: ndarray.NDArray
    start_apart: int

    def turned(self):
        """The other way round."""
        return Rows(self.start, self.start_apart, self.to, self.to_apart)


def rows_apart(stack, ctx):
    """The way of a stack's rows to where each starts at a multiple of memory.ALIGNMENT.

    Kernels read four elements at once where these start so, and may then add them in another order.
    """
    own, apart = row_bytes(stack), rounded(row_bytes(stack))
    if own == apart and address_of(stack) % ALIGNMENT == 0:
        return Rows(stack, own, stack, own)
    return Rows(ndarray.empty((stack.shape[0] * apart // 4,), ctx), apart, stack, own)


def copies_of_rows(ways, count):
    """What Captured is told of the ways that are copies, of `count` rows each."""
    return [
        (
            address_of(way.to), way.to_apart, address_of(way.start), way.start_apart,
            min(way.to_apart, way.start_apart), count,
        )
        for way in ways
        if way.to is not way.start and min(way.to_apart, way.start_apart)
    ]  # fmt: skip


def row_bytes(stack):
    """The bytes of one row."""
    return size_of(stack.shape[1:]) * stack.dtype.itemsize


def address_of(array):
    """The address of an NDArray's first byte."""
    return array.handle.contents.data or 0
