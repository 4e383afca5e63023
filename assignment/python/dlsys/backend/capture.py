"""A program's launches, recorded as a CUDA graph: many kernels are started by one call."""

import ctypes

import numpy as np

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
    """

    def __init__(self, steps, first, instructions, place_of, most_streams=MOST_STREAMS):
        """
        Args:
            steps: the launches of the whole program, as C has them.
            first: the number of the first of these.
            instructions: those that are recorded.
            place_of: as in streams.needed.

        Raises:
            CaptureError: CUDA refuses.
        """
        self._graph = None
        waits = needed(instructions, place_of)
        self.streams, pairs = assigned(waits, most_streams)
        stream_of = np.array(self.streams, np.int64)
        flat = np.array(pairs, np.int64).reshape(-1)
        self._library = functions()
        graph, spoilt = ctypes.c_void_p(), ctypes.c_int()
        failed = self._library["record"](
            ctypes.byref(steps, first * ctypes.sizeof(steps._type_)), len(instructions),
            max(self.streams, default=0) + 1, stream_of.ctypes.data, flat.ctypes.data, len(pairs),
            ctypes.byref(spoilt), ctypes.byref(graph),
        )  # fmt: skip
        if failed >= 0:
            name = instructions[failed].node.name if failed < len(instructions) else "a stream"
            why = "allocates memory or waits for the device" if spoilt else "can't be launched"
            raise CaptureError("%s %s while it is recorded" % (name, why))
        self._graph = graph

    def replay(self):
        """Starts all launches, behind what the default stream has to do."""
        return self._library["replay"](self._graph) == 0

    def __del__(self):
        if self._graph is not None:
            self._library["release"](self._graph)
