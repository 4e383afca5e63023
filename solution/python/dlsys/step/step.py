"""dlsys.compile: a graph and the updates of its parameters as one step of training."""

import collections.abc
import numbers

import numpy as np

from dlsys import dtypes, ndarray
from dlsys.autodiff import Node, find_topo_sort
from dlsys.backend.uploads import Uploads
from dlsys.ops.base import ShapeError

from . import drawing, files, measuring, rounds
from .graph import Graph, origin, random_nodes
from .passes import PASSES
from .runs import DeviceRun, NumpyRun
from .state import State, check_feed
from .walks import Turns, Walk

#: Programs that a step keeps, each for feeds of other shapes.
_MOST_RUNS = 8


def compile(
    outputs, updates=None, ctx=None, dtype=None, passes=PASSES, memory_limit=None, fuse=True,
    capture=True, tf32=False,
):  # fmt: skip
    """A step: values of nodes, and new values of parameters, computed together.

    Args:
        outputs: the nodes whose values a call returns; a list, or one node.
        updates: parameter, a variable -> the node of its new value. All new values are computed
            from the old ones, and take effect at the end of the call. `{w: w}` keeps w as it is.
        ctx: None is numpy in float64; ndarray.cpu(0), ndarray.gpu(0).
        dtype: of numbers with a fraction that come from numpy; float64 on numpy, else float32.
        passes: what is done to the graph before it runs; they change no bit of a value.
        memory_limit: bytes that intermediate values may take on a device: cheap ones are computed
            again for it. Parameters, feeds and outputs are not counted.
        fuse: whether instructions on the same elements become one kernel, on a device. The C++
            compiler may round a product and a sum once there, so last bits differ.
        capture: whether the launches are recorded on a GPU, and started by one call.
        tf32: whether a GPU may round operands of matrix products to TF32, which has 11 bits where
            float32 has 24, so that its tensor cores multiply them. Elsewhere it changes nothing.

    Raises:
        TypeError: what is updated is no variable, or an output is no node; ctx is no device; the
            limit is no number.
        ValueError: two parameters have one name; the limit is negative.
    """
    return Step(outputs, updates, ctx, dtype, passes, memory_limit, fuse, capture, tf32)


class Step:
    """What `compile` makes. The parameters live on the device between calls.

    Several threads may call it, one after the other; with `as_numpy` each has its own values.
    """

    def __init__(
        self, outputs, updates=None, ctx=None, dtype=None, passes=PASSES, memory_limit=None,
        fuse=True, capture=True, tf32=False,
    ):  # fmt: skip
        self._is_single = isinstance(outputs, Node)
        outputs = [outputs] if self._is_single else list(outputs)
        updates = dict(updates or {})
        _check(outputs, updates, ctx, memory_limit)
        self.ctx = ctx
        self._outputs, self._updates, self._passes = outputs, updates, tuple(passes)
        results = [*outputs, *updates.values()]
        order = find_topo_sort(results)
        self._fed = [node for node in order if node.op.is_fed and node not in updates]
        #: The number of the next run of each random node.
        self._draws = {node: node.runs for node in random_nodes(results)}
        self._limit, self._fuses, self._captures, self._tf32 = memory_limit, fuse, capture, tf32
        self._state = State(list(updates), ctx, dtype)
        self._runs, self._last = {}, None
        self._uploads = Uploads(ctx) if ndarray.is_gpu_ctx(ctx) else None
        self._turns = Turns(self._uploads)

    def __call__(self, feeds=None, as_numpy=False):
        """Runs the step.

        Args:
            feeds: variable -> value, for every variable that is not updated. On a device NDArrays,
                used as they are, or numpy arrays, copied there.
            as_numpy: whether to return numpy arrays on a device too.

        Returns:
            The values of the outputs, as they were given: a list, or one value. NDArrays belong to
            the step: the next call overwrites them.

        Raises:
            ValueError: a feed or the value of a parameter is missing; one too many is fed.
            ShapeError, TypeError: values don't fit.
            IndexError: an index is out of range; no parameter has changed.
        """
        with self._turns.turn():
            return self._given(self._run(self._arrays(feeds or {})), as_numpy)

    def over(self, batches, as_numpy=False):
        """Runs the step for each of some feeds, and yields what a call would return.

        On a GPU the next feeds are taken, and numpy arrays among them copied there, while the step
        computes; so a loop that looks at each value does not wait for copies. Copies from
        `dlsys.pinned` arrays take least time. An array may be used again for the next feeds. Where
        feeds fail, the values of the step before come first, then what they raise.

        Args:
            batches: an iterable of feeds, each as those of a call.
            as_numpy: as that of a call; raises as a call does.
        """
        walk, batches = Walk(), iter(batches)
        while True:
            try:
                feeds = next(batches)
                with self._turns.turn(walk):
                    walk.arrays = self._arrays(feeds)
                    if walk.found is not None:
                        self._uploads.settle()
            except StopIteration:
                break
            except Exception:
                if walk.found is not None:  # that step has been made
                    yield self._given_of(walk, as_numpy)
                raise
            if walk.found is not None:
                yield self._given_of(walk, as_numpy)
            with self._turns.turn(walk):
                arrays, walk.arrays = walk.arrays, None
                walk.found = self._run(arrays)
                # Arrays of the CPU are read where they are.
                given = self._given_of(walk, as_numpy) if self._uploads is None else None
            if given is not None:
                yield given
        if walk.found is not None:
            yield self._given_of(walk, as_numpy)

    def scan(self, feeds=None, count=None, as_numpy=False):
        """Runs the step once for each row of some feeds, as so many calls do.

        On a GPU that has run the step before, one call starts all of them, if the step is recorded
        and draws no random numbers; `explain` says why not. NDArrays are read where they are:
        `images.reshape(-1, 100, 784)` makes batches of what lies on the device.

        Args:
            feeds: variable -> array `(count, *shape)`, for every variable that is not updated.
            count: how many steps, where no variable says it.
            as_numpy: as that of a call.

        Returns:
            The values of the outputs, each `(count, *shape)`, as a call returns them.

        Raises:
            ValueError: the feeds have not all as many rows; there are none.
            IndexError: an index is out of range; the steps before that one have been made.
            ShapeError, TypeError: as a call.
        """
        with self._turns.turn():
            return self._given(self._scanned(feeds or {}, count), as_numpy)

    def _scanned(self, feeds, count):
        stacks = self._arrays(feeds, rows=True)
        count = rounds.count_of(stacks, count)
        self._last = self._run_for(stacks, rows=True)
        stacks = self._last.apart(stacks, self._state.arrays)
        found = self._last.rounds(stacks, count)
        if found is None:
            found = rounds.one_by_one(self._run, stacks, count, self.ctx)
        elif self._uploads is not None:
            self._uploads.leave()
        return found

    def _run(self, arrays):
        """The values of the outputs, a list."""
        try:
            run = self._last = self._run_for(arrays)
            for node in run.random:
                node.runs = self._draws[origin(node)]
            found = run(arrays, self._state.arrays)
        finally:
            if self._uploads is not None:
                self._uploads.leave()
        self._draws.update({origin(node): node.runs for node in run.random})
        return found

    def _given(self, found, as_numpy):
        if as_numpy and self.ctx is not None:
            found = [value.asnumpy() for value in found]
        return found[0] if self._is_single else found

    def _given_of(self, walk, as_numpy):
        """The values that a walk holds, which it then holds no longer."""
        with self._turns.turn(walk):
            found, walk.found = walk.found, None
            return self._given(found, as_numpy)

    @property
    def state(self):
        """name -> array, on the device, of every parameter that has a value.

        The next call overwrites the arrays.
        """
        named = self._state.named()
        return {n: self._state.arrays[p] for n, p in named.items() if p in self._state.arrays}

    def set(self, parameter, array):
        """Copies a value into a parameter, given as a node or by its name.

        Raises:
            KeyError: there is no such parameter.
            ShapeError, TypeError: it has another shape, or a fraction where whole numbers are.
        """
        with self._turns.pause():
            self._state.set(parameter, array)

    def get(self, parameter):
        """A copy of the value of a parameter, as a numpy array.

        Raises:
            KeyError: there is no such parameter.
            ValueError: it has no value.
        """
        node = self._state.found(parameter)
        with self._turns.pause():
            if node not in self._state.arrays:
                self._state.complete()
            return self._state.numpy_of(node)

    def explain(self, feeds=None):
        """Prints what was done to the graph, and why not more.

        Args:
            feeds: as those of a call, which is not made; those of the last call if None.

        Raises:
            ValueError: there was no call yet.
        """
        run = self.run_of(feeds, "explain")
        print("\n".join([*map(str, run.graph.reports), *run.explained()]))

    def sources(self, feeds=None):
        """The source of the kernels that a call runs, as text; feeds as those of explain.

        Raises:
            ValueError: there was no call yet, or the step runs on numpy.
        """
        run = self.run_of(feeds, "sources")
        if self.ctx is None:
            raise ValueError("numpy has no kernels; hint: compile(..., ctx=ndarray.cpu(0))")
        return run.sources()

    def profile(self, feeds=None, runs=20, nvtx=False, streams=None):
        """How long each kernel takes. No parameter changes, and no random draw is used up.

        On a GPU it is timed by events around each launch, on the streams that a recording would
        give it. What a recording replays has smaller gaps between kernels, and takes less time as
        a whole. On a CPU, and on numpy, whose nodes are timed one by one, by the clock.

        Args:
            feeds: as those of a call.
            runs: how many are timed, after one that warms up. On a device, parameters are copied
                before and put back after them.
            nvtx: whether as many runs more follow, each launch in an NVTX range with the names of
                its nodes, for NVIDIA's tools (`nsys profile`).
            streams: how many there are at most. A kernel beside another one waits for room on the
                GPU, and that counts as its time; with 1 each runs alone.

        Returns:
            A profile.Profile, which prints as a table; `svg()` and `save("step.json")` give a
            timeline. NDArrays that a call returned are overwritten.

        Raises:
            ValueError, ShapeError, TypeError, IndexError: as those of a call; runs or streams are
                below 1.
            ImportError: the package nvtx is missing.
        """
        for what, count in (("runs", runs), ("streams", 1 if streams is None else streams)):
            if not (isinstance(count, numbers.Integral) and count >= 1):
                raise ValueError("%s %s; hint: 1 or more, a whole number" % (count, what))
        ranges = measuring.nvtx_ranges() if nvtx else None
        with self._turns.turn():
            arrays = self._arrays(feeds or {})
            self._last = run = self._run_for(arrays)
            if self.ctx is None:
                return measuring.on_numpy(run, arrays, self._state.arrays, runs, ranges)
            return measuring.on_device(run, arrays, self._state.arrays, runs, ranges, streams)

    def memory_svg(self, feeds=None):
        """A picture of which bytes hold what, while a call runs; an Svg. Feeds as those of explain.

        Raises:
            ValueError: there was no call yet, or the step runs on numpy.
        """
        run = self.run_of(feeds, "memory_svg")
        if self.ctx is None:
            raise ValueError("numpy has no plan of memory; hint: compile(..., ctx=ndarray.cpu(0))")
        return drawing.memory(run)

    def save(self, path):
        """Writes all parameters and the numbers of random draws, at once or not at all.

        Raises:
            ValueError: a parameter has no value.
            OSError: the file can't be written.
        """
        with self._turns.pause():
            self._state.complete()
            arrays = {n: self._state.numpy_of(p) for n, p in self._state.named().items()}
            draws = list(self._draws.values())
        files.save(path, arrays, draws)

    def load(self, path):
        """Takes over what `save` wrote; training goes on to the same bits.

        Raises:
            files.FileError: the file is damaged, or is of another step; nothing has changed.
            OSError: it can't be read.
        """
        named = self._state.named()
        arrays, draws = files.load(path, list(named), len(self._draws))
        try:
            found = {node: self._state.restored(node, arrays[n]) for n, node in named.items()}
        except ShapeError as error:
            raise files.FileError("%s is of another step: %s" % (path, error)) from None
        with self._turns.pause():
            self._state.restore(found)
            self._draws = dict(zip(self._draws, draws))

    def run_of(self, feeds=None, asked="explain"):
        """The run for feeds as those of a call, which is not made; that of the last call if None.

        Raises:
            ValueError: there was no call yet; `asked` is the method that the hint names.
        """
        run = self._last
        if feeds is not None:
            with self._turns.turn():
                run = self._run_for(self._arrays(feeds))
        if run is None:
            raise ValueError("nothing has run yet; hint: step.%s(feeds)" % asked)
        return run

    def _arrays(self, feeds, rows=False):
        """The feeds, or stacks with a row for each call, as arrays of the device."""
        if not isinstance(feeds, collections.abc.Mapping):
            kind = type(feeds).__name__
            raise TypeError("feeds are a %s; hint: a dictionary, {variable: value}" % kind)
        missing = [node.name for node in self._fed if node not in feeds]
        if missing:
            is_named = any(isinstance(each, str) for each in feeds)
            hint = "; hint: the keys are variables, not names" if is_named else ""
            raise ValueError("feeds have no value for %s%s" % (", ".join(missing), hint))
        known = set(self._fed)
        surplus = [str(getattr(node, "name", node)) for node in feeds if node not in known]
        if surplus:
            raise ValueError(
                "the step does not read %s; hint: parameters are set by step.set, not fed"
                % ", ".join(surplus)
            )
        found = {node: self._on_device(node, feeds[node], rows) for node in self._fed}
        return found if self._uploads is None else self._uploads.fill(found)

    def _on_device(self, node, value, rows):
        """A feed as the device reads it; on a GPU a numpy array that is still to be copied."""
        is_typed = isinstance(value, ndarray.NDArray)
        if is_typed and self.ctx is None:
            raise TypeError("the feed of %s is an NDArray; this step runs on numpy" % node.name)
        if is_typed and value.ctx.device_type != self.ctx.device_type:
            raise TypeError(
                "the feed of %s lies on %r, this step runs on %r; hint: value.copyto(ctx)"
                % (node.name, value.ctx, self.ctx)
            )
        values = value if is_typed else dtypes.numbers("the feed of " + node.name, value)
        check_feed(node, tuple(values.shape)[rows:], values.dtype)
        if is_typed:
            return value
        # In row-major order: BLAS adds in another order where an array lies otherwise.
        values = np.asarray(values, self._state.dtype_of(values.dtype), order="C")
        if self.ctx is None or self._uploads is not None:
            return values
        return ndarray.lent(values)

    def _run_for(self, arrays, rows=False):
        self._state.complete()
        kinds = {node: (tuple(array.shape)[rows:], array.dtype) for node, array in arrays.items()}
        key = tuple(kinds.values())
        if key not in self._runs:
            if len(self._runs) >= _MOST_RUNS:
                del self._runs[next(iter(self._runs))]
            self._runs[key] = self._made({**kinds, **self._state.kinds()})
        return self._runs[key]

    def _made(self, kinds):
        graph = Graph(self._outputs, self._updates, kinds, self.ctx)
        for each in self._passes:
            graph.reports.append(each(graph))
        run = NumpyRun(graph) if self.ctx is None else self._device_run(graph)
        run.random = random_nodes(graph.results)
        return run

    def _device_run(self, graph):
        stays = self._uploads.holds if self._uploads else None
        return DeviceRun(graph, self._limit, self._fuses, self._captures, stays, self._tf32)


def _check(outputs, updates, ctx, limit):
    if not (ctx is None or isinstance(ctx, ndarray.DLContext)):
        raise TypeError("ctx is %r; hint: None, ndarray.cpu(0) or ndarray.gpu(0)" % (ctx,))
    if limit is not None and not isinstance(limit, numbers.Real):
        raise TypeError("memory_limit is %r; hint: a number of bytes, or None" % (limit,))
    if limit is not None and not limit >= 0:  # nor NaN
        raise ValueError("memory_limit is %s bytes; hint: 0 or more, or None" % limit)
    for node in (*outputs, *updates.values()):
        if not isinstance(node, Node):
            raise TypeError("outputs and new values are nodes, not %r" % (node,))
    for node in updates:
        if not (isinstance(node, Node) and node.op.is_fed):
            raise TypeError("%s is no variable; hint: updates are {variable: new value}" % (node,))
