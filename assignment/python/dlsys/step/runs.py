"""How a step is executed for feeds of one set of shapes and dtypes: on numpy, or by a program."""

import functools

import numpy as np

from dlsys import ndarray
from dlsys.autodiff import Executor
from dlsys.backend import checks
from dlsys.backend.capture import CaptureError
from dlsys.backend.fusion import fuse
from dlsys.backend.gemm import with_products
from dlsys.backend.hopper_last import lay_together
from dlsys.backend.moments import with_moments
from dlsys.backend.planning import Planner
from dlsys.backend.program import Program
from dlsys.backend.regroup import fuse_reductions, join_updates, recompute, spare_reads
from dlsys.backend.rows import address_of
from dlsys.backend.updates import check_shape
from dlsys.ndarray import size_of

from .graph import Report, listed
from .passes.in_place import update_in_place
from .rounds import Rounds

#: Sets of fed arrays that a run remembers.
_MOST_KNOWN = 64


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

    def apart(self, stacks, state):
        """Stacks that no run writes to: copies of those that share memory with the state."""
        kept = state.values()
        return {
            node: each.copy() if any(np.may_share_memory(each, a) for a in kept) else each
            for node, each in stacks.items()
        }

    def rounds(self, stacks, count):
        """None: many runs are made one by one."""
        return None

    def explained(self):
        """Lines on what it does with memory."""
        return ["numpy: a value is dropped after its last reader"]


class DeviceRun:
    """A program of a back end.

    Attributes:
        capture: "" where a GPU starts the program by one call; else why it does not, in words.
    """

    def __init__(self, graph, limit=None, fuses=True, captures=True, stays=None, tf32=False):
        """
        Args:
            stays: tells of an NDArray whether later feeds will lie there again.
            tf32: whether products may be rounded to TF32.
        """
        self.graph, self._stays, self._tf32 = graph, stays or (lambda array: False), tf32
        on_gpu = ndarray.is_gpu_ctx(graph.ctx)
        # The emulated GPU runs them thread by thread, a hundred times slower than its cuBLAS.
        own_products = on_gpu and not ndarray.is_emulated()
        self.capture = "" if captures else "not asked for"
        if not on_gpu:
            self.capture = "of a GPU alone"
        self._make(limit, fuses, fuses and own_products)
        if limit is not None and self.program.peak > limit:
            # A kernel of many values keeps all that it reads until it ends.
            self._make(limit, False, False)
        graph.reports.append(self._report)
        self._rounds = Rounds(self.program)
        self._fed = self._written = None
        self._own, self._has_run = {}, False
        #: Addresses of feeds that were read where they lie.
        self._as_they_lie = set()

    def _make(self, limit, fuses, own_products):
        graph, on_gpu = self.graph, ndarray.is_gpu_ctx(self.graph.ctx)
        self._planner = Planner(limit, spreads=not self.capture)
        self._report, self._kernels = Report("parameters updated in place"), []
        in_place = functools.partial(update_in_place, report=self._report)
        passes = [in_place, self._planner.order, self._counted]
        if fuses:
            # On a GPU checks come first, and so must what they need.
            alone = checks.needed if on_gpu else lambda instructions: ()
            passes.append(lambda each, kept: fuse(each, kept, alone(each)))
        passes += [with_products] if own_products else []
        if fuses and on_gpu:
            passes += [recompute, fuse_reductions, spare_reads, join_updates, with_moments]
        if limit is None:
            passes += [lay_together]  # what is laid early is there for long
        self.program = Program(
            graph.nodes, graph.outputs, graph.kinds, graph.ctx, updates=graph.updates,
            passes=[*passes, self._counted], plan=self._planner.place, tf32=self._tf32,
            checks_first=limit is None,
        )  # fmt: skip

    def _counted(self, instructions, kept):
        self._kernels.append(len(instructions))
        return instructions

    def __call__(self, feeds, state):
        """The values of the outputs, as NDArrays that the next run overwrites.

        Args:
            feeds: node -> NDArray.
            state: parameter -> NDArray, which is overwritten.
        """
        self.feed(feeds, state)
        # The first run makes what a recording must not make, such as the handle of cuBLAS.
        if self._has_run and not self.capture and not self.program.is_captured:
            try:
                self.program.capture()
            except CaptureError as error:
                self.capture = str(error)
        self._has_run = True
        return self.program.run()

    def feed(self, feeds, state):
        """Says what the program computes from; arguments as those of a call."""
        self._know_written(state)
        if self._is_fed(feeds):
            return
        addresses = tuple(address_of(feeds[node]) for node in self.graph.kinds if node in feeds)
        placed = feeds if addresses in self._as_they_lie else self._placed(feeds)
        if not self._is_fed(placed):
            self.program.feed({**placed, **state})
            self._fed = placed
        if all(placed[node] is feeds[node] for node in feeds):
            if len(self._as_they_lie) >= _MOST_KNOWN:
                self._as_they_lie.clear()
            self._as_they_lie.add(addresses)

    @property
    def bound(self):
        """The most bytes of intermediate values that are alive at once."""
        return self._planner.bound

    def apart(self, stacks, state):
        """Stacks that no run writes to: copies of those that share memory with what it writes."""
        self._know_written(state)
        return {n: s.copyto(s.ctx) if self._overwrites(s) else s for n, s in stacks.items()}

    def rounds(self, stacks, count):
        """The stacked values of many runs, by one launch; None where that can't be, or not yet.

        Args:
            stacks: node -> NDArray `(count, *shape)`.
        """
        if self.capture or not self._has_run:
            return None
        return self._rounds.run(stacks, count)

    def _know_written(self, state):
        if self._written is None:  # These arrays stay where they are.
            written = (*state.values(), *self.program.owned_results())
            self._written = np.array([_range_of(array) for array in written])

    def _is_fed(self, feeds):
        return self._fed is not None and all(
            address_of(self._fed[node]) == address_of(feeds[node]) for node in feeds
        )

    def _placed(self, feeds):
        """The feeds where the program may read them.

        What a captured program reads stays where it is: other arrays are copied there, but for
        those that will come again. So is an array that the program overwrites.
        """
        if self._fed is None and not any(map(self._overwrites, feeds.values())):
            return dict(feeds)
        placed, own = {}, {address_of(each): node for node, each in self._own.items()}
        for node, array in feeds.items():  # before one is written that another feed lies in
            if own.get(address_of(array), node) is not node:
                feeds = {**feeds, node: array.copyto(array.ctx)}
        for node, array in feeds.items():
            if (self.capture or self._stays(array)) and not self._overwrites(array):
                placed[node] = array
                continue
            if node not in self._own:
                self._own[node] = ndarray.empty(array.shape, array.ctx, array.dtype)
            placed[node] = array.copyto(self._own[node])
        return placed

    def _overwrites(self, array):
        """Whether a fed array shares memory with a parameter, or with what a run returned."""
        if not self._written.size:
            return False
        start, end = _range_of(array)
        return bool(np.any((self._written[:, 0] < end) & (start < self._written[:, 1])))

    def explained(self):
        """Lines on what the program does with kernels and memory."""
        first, last = self._kernels
        *lines, memory = self._planner.lines()
        return [
            "fusion: %d instructions became %d kernels" % (first, last),
            "capture: " + self._captured_in_words(),
            *lines, memory + listed(self._planner.again),
        ]  # fmt: skip

    def _captured_in_words(self):
        if self.capture:
            return "no, " + self.capture
        if not self.program.is_captured:
            return "from the second call on"
        streams, waits = "on %d streams" % self.program.streams, self.program.waits
        if self._rounds.count:
            streams += "; scan starts %d steps by one call" % self._rounds.count
        if self._rounds.reason:
            streams += "; scan starts one step after the other, " + self._rounds.reason
        calls = self.program.calls
        said = "one call starts all, " if calls == 1 else "%d calls start all, " % calls
        checks = "; the host waits for checks of indices" + listed(waits) if waits else ""
        return said + streams + checks

    def sources(self):
        """The text of the kernels."""
        return self.program.sources()


def _range_of(array):
    """The addresses of an array's first byte, and of that behind its last."""
    start = address_of(array)
    return start, start + size_of(array.shape) * array.dtype.itemsize
