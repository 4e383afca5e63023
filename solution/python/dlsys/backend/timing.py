"""When each launch of a program begins and ends: by the clock of a CPU, by events on a GPU."""

import ctypes

import numpy as np

from . import gpu, kernels
from .streams import assigned, needed


class Timer:
    """Launches instructions between two looks at the clock each.

    On a GPU they go to streams of their own, as in a recording, and queue up before the first one
    begins. Parts of a run follow one another on the clock, as if nothing were between them.

    Attributes:
        streams: the stream of each instruction.
        spans: (instructions, 2): begin and end of each in the last run, in microseconds.
    """

    def __init__(self, backend, steps, instructions, place_of, most_streams, threads):
        """
        Args:
            steps: the launches, as C has them.
            place_of: as in streams.needed.
            threads: of the CPU back end.
        """
        self._steps, self._threads, self._on_gpu = steps, threads, backend is gpu
        self._instructions, self._place_of, self._most = instructions, place_of, most_streams
        self.streams = np.zeros(len(instructions), np.int64)
        self.spans = np.zeros((len(instructions), 2))
        self._waits = {}
        (address,) = kernels.kernels(backend, [("timer",)])
        whole, place = ctypes.c_int64, ctypes.c_void_p
        middle = (whole, place, place, whole) if self._on_gpu else (whole,)
        self._function = ctypes.CFUNCTYPE(whole, place, whole, *middle, place)(address)

    def launch(self, first, end):
        """As Program.launch, which it stands in for."""
        steps = ctypes.byref(self._steps, first * ctypes.sizeof(self._steps._type_))
        spans = self.spans[first:end]
        middle = self._assigned(first, end) if self._on_gpu else (self._threads,)
        failed = self._function(steps, end - first, *middle, spans.ctypes.data)
        if first:
            spans += self.spans[:first].max()
        return min(failed, end - first - 1)  # the last one stands for the streams themselves

    def _assigned(self, first, end):
        """(how many streams, that of each, who waits for whom, how many pairs of these)."""
        if (first, end) not in self._waits:
            waits = needed(self._instructions[first:end], self._place_of)
            streams, pairs = assigned(waits, self._most)
            self.streams[first:end] = streams
            self._waits[first, end] = np.array(pairs, np.int64).reshape(-1, 2)
        streams, pairs = self.streams[first:end], self._waits[first, end]
        return int(streams.max()) + 1, streams.ctypes.data, pairs.ctypes.data, len(pairs)
