"""A program's launches, recorded as a CUDA graph: many kernels are started by one call."""

import ctypes

import numpy as np

from dlsys._base import _LIB, DeviceError, check_call

from .host import functions
from .instructions import Draw
from .streams import MOST_STREAMS, assigned, needed


class CaptureError(RuntimeError):
    """The launches can't be recorded; the message says which one, and why."""


def refusal(instructions):
    """Why these can't be recorded, in words; "" if they can."""
    for each in instructions:
        if isinstance(each, Draw):
            return "%s draws other numbers in each run, which the host counts" % each.node.name
    return ""


class Captured:
    """A recorded part of a program.

    Attributes:
        streams: the stream of each launch.
        keeps: arrays that it reads and writes, so that they live as long.
    """

    keeps = ()

    def __init__(
        self, steps, first, instructions, place_of, most_streams=MOST_STREAMS,
        before=(), rounds=(0,), behind=(),
    ):  # fmt: skip
        """
        Args:
            steps: the launches of the whole program, as C has them.
            first: the number of the first of these.
            instructions: those that are recorded.
            place_of: as in streams.needed.
            rounds: for each of these they are recorded once, with the operands that they have then.
            before, behind: copies of rows around all, each (to, bytes from row to row there,
                from, bytes from row to row there, bytes of a row, rows).

        Raises:
            CaptureError: CUDA refuses.
        """
        self._graph = None
        self.streams, pairs = assigned(needed(instructions, place_of), most_streams)
        library, count = functions(), len(instructions)
        tables = [np.array(each, np.int64).reshape(-1) for each in (self.streams, pairs)]
        which = (*(each.ctypes.data for each in tables), len(pairs))
        recording = library["begin_recording"](max(self.streams, default=0) + 1, count)

        def copies(rows):
            return all(library["record_rows"](recording, *each) == 0 for each in rows)

        failed = -1 if recording and copies(before) else count
        for _ in rounds if failed < 0 else ():
            own = ctypes.byref(steps, first * ctypes.sizeof(steps._type_))
            failed = library["record"](recording, own, count, *which)
            if failed >= 0:
                break
        if failed < 0 and not copies(behind):
            failed = count
        spoilt = ctypes.c_int()
        self._graph = recording and library["end_recording"](recording, ctypes.byref(spoilt))
        if failed >= 0 or not self._graph:
            name = instructions[failed].node.name if 0 <= failed < count else "a stream"
            why = "allocates memory or waits for the device" if spoilt else "can't be launched"
            raise CaptureError("%s %s while it is recorded" % (name, why))

    def replay(self):
        """Starts all launches, behind what the default stream has to do.

        Raises:
            DeviceError: the GPU refuses, or has failed before.
        """
        if functions()["replay"](self._graph) != 0:
            check_call(_LIB.DLDeviceSynchronize(b"a captured step"))
            raise DeviceError("the launch of a captured step failed")

    def __del__(self):
        if self._graph:
            functions()["release"](self._graph)
