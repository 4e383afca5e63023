"""How a step is executed for feeds of one set of shapes and dtypes: on numpy, or by a program."""

import functools

import numpy as np

from dlsys.autodiff import Executor
from dlsys.backend.planning import Planner
from dlsys.backend.program import Program
from dlsys.backend.updates import check_shape
from dlsys.ndarray import size_of

from .graph import Report
from .passes.in_place import update_in_place


class NumpyRun:
    """The reference: every value by numpy in float64, then all updates."""

    def __init__(self, graph):
        self.graph = graph
        self._executor = Executor(graph.results)
        self._count, self._updates = len(graph.outputs), graph.updates

    def __call__(self, feeds, state):
        """The values of the outputs.

        Args:
            feeds: node -> numpy array.
            state: parameter -> numpy array, which is overwritten.
        """
        found = self._executor.run({**feeds, **state})
        fed = {id(array) for array in (*feeds.values(), *state.values())}
        outputs = [np.array(v) if id(v) in fed else v for v in found[: self._count]]
        news = [np.array(value) for value in found[self._count :]]
        for (parameter, node), new in zip(self._updates.items(), news):
            check_shape(parameter, state[parameter].shape, node, new.shape)
        for parameter, new in zip(self._updates, news):
            state[parameter][...] = new
        return outputs

    def explained(self):
        """Lines on what it does with memory."""
        return ["numpy: a value is dropped after its last reader"]


class DeviceRun:
    """A program of a back end."""

    def __init__(self, graph, limit=None):
        self.graph, self._planner = graph, Planner(limit)
        report = Report("parameters updated in place")
        passes = [functools.partial(update_in_place, report=report), self._planner.order]
        self.program = Program(
            graph.nodes, graph.outputs, graph.kinds, graph.ctx, updates=graph.updates,
            passes=passes, plan=self._planner.place,
        )  # fmt: skip
        graph.reports.append(report)
        self._fed, self._results = None, ()

    def __call__(self, feeds, state):
        """The values of the outputs, as NDArrays that the next run overwrites.

        Args:
            feeds: node -> NDArray.
            state: parameter -> NDArray, which is overwritten.
        """
        last = self._fed
        if last is None or any(last.get(n) is not feeds[n] for n in feeds):
            written = [*state.values(), *self._results]
            copies = {n: a.copyto(a.ctx) for n, a in feeds.items() if _is_among(a, written)}
            self.program.feed({**feeds, **copies, **state})
            self._fed = None if copies else dict(feeds)
        self._results = self.program.run()
        return list(self._results)

    def explained(self):
        """Lines on what the program does with memory."""
        return self._planner.lines()


def _is_among(array, others):
    """Whether an array shares memory with one that the run overwrites."""
    start = array.handle.contents.data or 0
    end = start + size_of(array.shape) * array.dtype.itemsize
    for other in others:
        first = other.handle.contents.data or 0
        if start < first + size_of(other.shape) * other.dtype.itemsize and first < end:
            return True
    return False
