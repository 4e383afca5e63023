"""How a step is executed for feeds of one set of shapes and dtypes: on numpy, or by a program."""

import functools

import numpy as np

from dlsys import ndarray
from dlsys.autodiff import Executor
from dlsys.backend.capture import CaptureError
from dlsys.backend.fusion import fuse
from dlsys.backend.gemm import with_products
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
    """A program of a back end.

    Attributes:
        capture: "" where a GPU starts the program by one call; else why it does not, in words.
    """

    def __init__(self, graph, limit=None, fuses=True, captures=True, own_products=None):
        self.graph = graph
        on_gpu = ndarray.is_gpu_ctx(graph.ctx)
        # The emulated GPU runs them thread by thread, a hundred times slower than its cuBLAS.
        own_products = not (on_gpu and ndarray.is_emulated()) if own_products is None else own_products
        self.capture = "not asked for" if not captures else "" if on_gpu else "of a GPU alone"
        self._planner = Planner(limit, spreads=not self.capture)
        report = Report("parameters updated in place")
        passes = [functools.partial(update_in_place, report=report), self._planner.order]
        self._kernels = []
        passes += [self._counted, fuse] if fuses else []
        passes += [with_products] if fuses and on_gpu and own_products else []
        self.program = Program(
            graph.nodes, graph.outputs, graph.kinds, graph.ctx, updates=graph.updates,
            passes=[*passes, self._counted], plan=self._planner.place,
        )  # fmt: skip
        graph.reports.append(report)
        self._fed, self._own, self._runs = None, {}, 0

    def _counted(self, instructions, kept):
        self._kernels.append(len(instructions))
        return instructions

    def __call__(self, feeds, state):
        """The values of the outputs, as NDArrays that the next run overwrites.

        Args:
            feeds: node -> NDArray.
            state: parameter -> NDArray, which is overwritten.
        """
        if self._fed is not None and any(self._fed[n] is not feeds[n] for n in feeds):
            feeds = self._kept_in_place(feeds)
        if self._fed is None or any(self._fed[n] is not feeds[n] for n in feeds):
            self.program.feed({**feeds, **state})
            self._fed, self._runs = dict(feeds), 0
        self._runs += 1
        # The first run makes what a recording must not make, such as the handle of cuBLAS.
        if self._runs == 2 and not self.capture:
            try:
                self.program.capture()
            except CaptureError as error:
                self.capture = str(error)
        return self.program.run()

    def _kept_in_place(self, feeds):
        """Feeds of a captured program, copied to arrays that stay where they are."""
        if self.capture:
            return feeds
        for node, array in feeds.items():
            if node not in self._own:
                self._own[node] = ndarray.empty(array.shape, array.ctx, array.dtype)
            if self._own[node] is not array:
                array.copyto(self._own[node])
        return self._own

    def explained(self):
        """Lines on what the program does with kernels and memory."""
        first, *_, last = self._kernels
        lines = ["fusion: %d instructions became %d kernels" % (first, last)]
        if not self.capture:
            lines.append("capture: one call starts all, on %d streams" % self.program.streams)
        else:
            lines.append("capture: no, %s" % self.capture)
        return [*lines, *self._planner.lines()]

    def sources(self):
        """The text of the kernels."""
        return self.program.sources()
