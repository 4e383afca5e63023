"""Runs a step under the clock."""

import contextlib
import time

import numpy as np

from dlsys import ndarray
from dlsys.autodiff import Executor
from dlsys.backend import program as programs
from dlsys.backend.instructions import Gather
from dlsys.backend.streams import MOST_STREAMS
from dlsys.ndarray import size_of

from .graph import op_name
from .profile import Kernel, Profile


def nvtx_ranges():
    """A function of a name, which gives a context that NVIDIA's tools show under that name.

    Raises:
        ImportError: the package nvtx is missing.
    """
    try:
        import nvtx
    except ImportError:
        raise ImportError(
            "NVTX ranges need the package nvtx; hint: python3 -m pip install nvtx"
        ) from None
    return lambda name: nvtx.annotate(name, domain="dlsys")


class _ClockedExecutor(Executor):
    """numpy, between two looks at the clock for each node.

    Attributes:
        seen: [(node, bytes read, bytes written, begin, end)] of the last run, in seconds.
        ranges: as in on_numpy.
    """

    def _computed(self, node, inputs):
        with self.ranges(node.name):
            begin = time.perf_counter()
            value = super()._computed(node, inputs)
            end = time.perf_counter()
        read = sum({id(each): each.nbytes for each in inputs}.values())
        self.seen.append((node, read, value.nbytes, begin, end))
        return value


def on_numpy(run, feeds, state, runs, ranges=None):
    """A Profile of the nodes; the updates, which copy what was computed, are not in it.

    Args:
        run: a NumpyRun.
        feeds, state: as in its call; nothing changes.
        runs: how many are timed.
        ranges: name -> a context around what has that name, in as many runs more; None for none.
    """
    executor, found = _ClockedExecutor(run.graph.results), []
    executor.ranges = contextlib.nullcontext
    for number in range(runs + 1):
        executor.seen = []
        executor.run({**feeds, **state})
        if number:  # the first one warms up
            spans = np.array([each[3:] for each in executor.seen]).reshape(-1, 2) * 1e6
            found.append(spans - spans.min(initial=np.inf))
    kernels = [
        (op_name(node), (node.name,), 0, read, written) for node, read, written, *_ in executor.seen
    ]
    if ranges:
        executor.ranges = ranges
        for _ in range(runs):
            with ranges("step"):
                executor.run({**feeds, **state})
    return _profile("numpy", kernels, found)


def on_device(run, feeds, state, runs, ranges=None, streams=None):
    """A Profile of the instructions of a DeviceRun; arguments as those of on_numpy.

    Args:
        streams: how many there are at most; as many as a recording has, if None.
    """
    program, found = run.program, []
    run.feed(feeds, state)
    kept = {node: array.copyto(array.ctx) for node, array in state.items()}
    timer = program.timer(streams or (1 if run.capture else MOST_STREAMS))
    try:
        for number in range(runs + 1):
            program.run(timer.launch)
            if number:  # the first one makes what is made once, such as the handle of cuBLAS
                found.append(timer.spans.copy())
        if ranges:
            for _ in range(runs):
                with ranges("step"):
                    program.run(_in_ranges(program, ranges))
    finally:
        for node, array in kept.items():
            array.copyto(state[node])
    kernels = [
        (kernel_name(each), node_names(each), int(stream), *traffic(each))
        for each, stream in zip(program.instructions, timer.streams)
    ]
    return _profile(_device(run.graph.ctx), kernels, found)


def _in_ranges(program, ranges):
    """Launches one by one, each in a range of the names of its nodes."""

    def launch(first, end):
        for number in range(first, end):
            with ranges(", ".join(node_names(program.instructions[number]))):
                if program.launch(number, number + 1) >= 0:
                    return number - first
        return -1

    return launch


def _device(ctx):
    if not ndarray.is_gpu_ctx(ctx):
        count = programs.threads()
        return "CPU, %d thread%s" % (count, "" if count == 1 else "s")
    return "emulated GPU" if ndarray.is_emulated() else "GPU"


def _profile(where, kernels, spans):
    """A Profile from (name, nodes, stream, read, written) and the spans of each run."""
    spans = np.array(spans).reshape(len(spans), len(kernels), 2)
    wholes = spans[:, :, 1].max(axis=1, initial=0)
    shown = spans[np.argsort(wholes)[len(wholes) // 2]]
    times = spans[:, :, 1] - spans[:, :, 0]
    return Profile(
        where,
        [Kernel(*k, times[:, i], *map(float, shown[i])) for i, k in enumerate(kernels)],
        wholes,
    )


def kernel_name(instruction):
    """What kind of kernel an instruction is, in a word or two."""
    first = instruction.key[0]
    if first == "fused":
        return "fused rows" if instruction.space.by_rows else "fused"
    if first == "fused_reduce":
        return "fused reduce"
    return " ".join(filter(None, (first, getattr(instruction, "kind", ""))))


def node_names(instruction):
    """Names of the nodes whose values an instruction computes, or a part of them."""
    nodes = getattr(instruction, "nodes", (instruction.node,))
    return tuple(dict.fromkeys(str(node) for node in nodes))


def traffic(instruction):
    """(bytes read, bytes written), if each is moved once; what is repeated counts once."""
    chosen = None
    if isinstance(instruction, Gather):  # of the table, what is chosen
        x = instruction.inputs[0]
        chosen = _bytes(x if instruction.adds else instruction.output)
        table = instruction.output.buffer if instruction.adds else x.buffer
    sums = []
    for views in (instruction.sources, instruction.targets):
        found = {}
        for view in {(v.buffer, v.offset, v.shape, v.strides): v for v in views}.values():
            found[view.buffer] = found.get(view.buffer, 0) + _bytes(view)
        if chosen is not None and table in found:
            found[table] = min(found[table], chosen)
        sums.append(sum(min(size, buffer.size) for buffer, size in found.items()))
    return tuple(sums)


def _bytes(view):
    extents = [extent for extent, stride in zip(view.shape, view.strides) if stride or not extent]
    return size_of(extents) * view.dtype.itemsize
