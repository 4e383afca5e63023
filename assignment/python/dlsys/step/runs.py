"""How a step is executed for feeds of one set of shapes and dtypes: on numpy, or by a program."""

import functools

import numpy as np

from dlsys.autodiff import Executor
from dlsys.backend.planning import Planner
from dlsys.backend.program import Program
from dlsys.backend.updates import check_shape
from dlsys.ndarray import size_of

from .graph import Report, listed
from .passes.in_place import update_in_place

#: Functions (instructions, kept buffers) -> instructions, before memory is planned.
INSTRUCTION_PASSES = []


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
        in_place = functools.partial(update_in_place, report=report)
        passes = [*INSTRUCTION_PASSES, in_place, self._planner.order]
        self.program = Program(
            graph.nodes, graph.outputs, graph.kinds, graph.ctx, updates=graph.updates,
            passes=passes, plan=self._planner.place,
        )  # fmt: skip
        graph.reports.append(report)
        self._fed = self._written = None

    def __call__(self, feeds, state):
        """The values of the outputs, as NDArrays that the next run overwrites.

        Args:
            feeds: node -> NDArray.
            state: parameter -> NDArray, which is overwritten.
        """
        if self._written is None:  # These arrays stay where they are.
            written = (*state.values(), *self.program.owned_results())
            self._written = np.array([_range_of(array) for array in written])
        last = self._fed
        if last is None or any(last.get(n) is not feeds[n] for n in feeds):
            copies = {n: a.copyto(a.ctx) for n, a in feeds.items() if self._overwrites(a)}
            self.program.feed({**feeds, **copies, **state})
            self._fed = None if copies else dict(feeds)
        return self.program.run()

    def _overwrites(self, array):
        """Whether a fed array shares memory with a parameter, or with what a run returned."""
        if not self._written.size:
            return False
        start, end = _range_of(array)
        return bool(np.any((self._written[:, 0] < end) & (start < self._written[:, 1])))

    def explained(self):
        """Lines on what the program does with memory."""
        *lines, last = self._planner.lines()
        return [*lines, last + listed(self._planner.again)]


def _range_of(array):
    """The addresses of an array's first byte, and of that behind its last."""
    start = array.handle.contents.data or 0
    return start, start + size_of(array.shape) * array.dtype.itemsize
