"""What the instructions of one kernel loop over: the elements of a shape, or its rows."""

import dataclasses

from dlsys.ndarray import size_of

from .instructions import Elementwise, Reduce, Rows
from .view import broadcast

#: The longest row that the threads of one warp keep in registers.
LONGEST_ROW = 256

#: Functions of rows that fused.py knows how to say in parts.
SAID_IN_PARTS = ("softmax", "log_softmax", "logsumexp", "class_entropy")


@dataclasses.dataclass(frozen=True)
class Space:
    """A shape; with `by_rows`, its last axis is a row, which may be reduced.

    In a space of rows there are values of a whole row, too: their instructions have the shape
    without its last axis, or with 1 for it.
    """

    shape: tuple
    by_rows: bool = False

    def joined(self, other):
        """The space of both together; None if there is none."""
        if self.shape == other.shape:
            return Space(self.shape, self.by_rows or other.by_rows)._possible()
        for one, rows in ((self, other), (other, self)):
            if rows.by_rows and not one.by_rows and rows._is_of_rows(one.shape):
                return rows
        return None

    def _possible(self):
        return self if not self.by_rows or 1 < self.shape[-1] <= LONGEST_ROW else None

    def _is_of_rows(self, shape):
        return shape in (self.shape[:-1], (*self.shape[:-1], 1))

    def takes(self, instruction):
        """Whether the instruction loops over this space, or over its rows."""
        own = space_of(instruction)
        if own is None:
            return False
        return own.shape == self.shape or (self.by_rows and self._is_of_rows(own.shape))

    def is_of_rows(self, instruction, view):
        """Whether an operand of an instruction is one element of each row."""
        if not self.by_rows:
            return False
        if isinstance(instruction, Elementwise):
            return instruction.output.shape != self.shape
        return view.shape != self.shape

    def lies(self, instruction, view):
        """(buffer, dtype, offset, strides along the space): equal for the same elements."""
        if self.is_of_rows(instruction, view):
            rows = self.shape[:-1]
            if view.shape != rows:
                view = _without_ones(view, rows)
            return (view.buffer, view.dtype, view.offset, (*_plain(view.strides, rows), 0))
        view = broadcast(view, self.shape) if isinstance(instruction, Elementwise) else view
        return (view.buffer, view.dtype, view.offset, _plain(view.strides, self.shape))


@dataclasses.dataclass(frozen=True)
class AxesSpace:
    """A shape of which some axes are reduced: what fused reductions loop over.

    There are values of each element, and values of all elements together that differ in reduced
    axes alone: their instructions have the shape without these axes, or with 1 for them.
    """

    shape: tuple
    axes: tuple
    by_rows = False

    @property
    def kept(self):
        """The shape without the reduced axes."""
        return tuple(e for axis, e in enumerate(self.shape) if axis not in self.axes)

    def is_of_kept(self, shape):
        """Whether a shape is that of what is left of the elements."""
        return shape in (
            self.kept, tuple(1 if a in self.axes else e for a, e in enumerate(self.shape))
        )  # fmt: skip

    def is_of_rows(self, instruction, view):
        """Whether an operand of an instruction is one number for all reduced elements."""
        if isinstance(instruction, Elementwise):
            return instruction.output.shape != self.shape
        return view is instruction.output

    def lies(self, instruction, view):
        """As that of Space; along reduced axes, what is one number for all has strides of 0."""
        if self.is_of_rows(instruction, view):
            view = view if view.shape == self.kept else _without_ones(view, self.kept)
            strides = iter(_plain(view.strides, self.kept))
            strides = tuple(0 if a in self.axes else next(strides) for a in range(len(self.shape)))
            return (view.buffer, view.dtype, view.offset, strides)
        view = broadcast(view, self.shape)
        return (view.buffer, view.dtype, view.offset, _plain(view.strides, self.shape))


def _plain(strides, shape):
    """Strides, 0 for an axis of one element."""
    return tuple(0 if extent == 1 else stride for stride, extent in zip(strides, shape))


def _without_ones(view, rows):
    """A view of one element a row in the shape of the rows."""
    kept = [(e, s) for e, s in zip(view.shape, view.strides) if e != 1]
    strides, wanted = [], list(kept)
    for extent in rows:
        if extent == 1:
            strides.append(0)
        elif wanted and wanted[0][0] == extent:
            strides.append(wanted.pop(0)[1])
        else:
            strides.append(0)
    return dataclasses.replace(view, shape=tuple(rows), strides=tuple(strides))


def is_short_row(shape, axes):
    """Whether axes are the last one alone, and it is a row that a warp keeps in registers."""
    return tuple(axes) == (len(shape) - 1,) and 1 < shape[-1] <= LONGEST_ROW


def space_of(instruction):
    """The space of one instruction; None if it is never fused."""
    if type(instruction) is Elementwise:
        shape = instruction.output.shape
        return Space(tuple(shape)) if size_of(shape) else None
    if type(instruction) is Reduce:
        whole = tuple(instruction.whole)
        is_one = size_of(whole) > 0 and is_short_row(whole, instruction.axes)
        return Space(whole, True) if is_one else None
    if type(instruction) is Rows and instruction.kind in SAID_IN_PARTS:
        shape = instruction.inputs[0].shape
        return Space(tuple(shape), True)._possible() if size_of(shape) else None
    return None
