"""A graph as a program of a back end: instructions, memory, kernels; and its runs."""

import ctypes
import functools
import os

import numpy as np

from dlsys import dtypes, ndarray
from dlsys._base import _LIB, DeviceError, check_call
from dlsys.ndarray import size_of

from . import checks, choosing, cpu, gpu, kernels
from .capture import Captured, CaptureError, refusal
from .gemm import with_tf32
from .instructions import Draw
from .lowering import Lowering
from .memory import plan
from .rows import Rows, address_of, copies_of_rows, row_bytes, rows_apart
from .streams import MOST_STREAMS
from .timing import Timer
from .updates import write_back
from .view import Literal, new_view

#: Sets of fed arrays for which the launches stay recorded: two that are filled in turn, and others.
_MOST_CAPTURES = 4


class _Step(ctypes.Structure):
    """One launch, as steps.h has it."""

    _fields_ = [
        ("kernel", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
    ]


class Program:
    """The values of nodes on a device, for feeds of one set of shapes and dtypes.

    Attributes:
        instructions: what a run executes, in this order.
        peak: bytes that its intermediate values take together.
    """

    def __init__(
        self, topo_order, eval_nodes, feeds, ctx, updates=None, passes=(), plan=plan, tf32=False,
        checks_first=True, tiles=choosing.with_known_tiles,
    ):  # fmt: skip
        """
        Args:
            topo_order: every node needed, inputs first.
            eval_nodes: the nodes whose values a run returns.
            feeds: node -> (shape, dtype).
            ctx: the device.
            updates: fed node -> node of its new value, which a run writes into the fed array.
            passes: functions (instructions, kept) -> instructions, called in this order; `kept` are
                the buffers that are read after a run.
            plan: (instructions, buffers with memory of their own) -> (offsets, bytes).
            tf32: whether a GPU may round operands of products to TF32.
            checks_first: whether a GPU checks indices first, for which more memory may be alive.
            tiles: the first of the passes on a GPU: it gives convolutions their tiles.

        Raises:
            ShapeError, TypeError: a node can't be computed from these.
            kernels.CompileError: there is no compiler.
        """
        self.ctx = ctx
        doubles = any(dtype == dtypes.FLOAT64 for _, dtype in feeds.values())
        self.backend = gpu if ndarray.is_gpu_ctx(ctx) else cpu
        default = dtypes.FLOAT64 if doubles else dtypes.FLOAT32
        lowering = self._lowered(topo_order, feeds, default, tf32)
        updates = updates or {}
        written = {lowering.values[node].buffer for node in updates}
        values = [lowering.values[node] for node in eval_nodes]
        self._outputs = _outputs(lowering, values, written)
        write_back(lowering, updates)
        self.instructions = lowering.instructions
        own = [tiles] if self.backend is gpu else []
        for each in (*([with_tf32] if tf32 else []), *own, *passes):
            self.instructions = each(self.instructions, self._kept() | written)
        self._first = 0
        if self.backend is gpu and checks_first:
            self.instructions, self._first = checks.first(self.instructions)
        self._feeds = {node: lowering.values[node] for node in feeds}
        self._aligned = {
            view.buffer.fed for each in self.instructions for view in getattr(each, "images", ())
        }  # fmt: skip
        self._captured, self._captures, self._fed_at = {}, {}, {}
        # Before there is memory: who only asks for kernels takes none.
        functions = kernels.kernels(self.backend, [each.key for each in self.instructions])
        self._lay_out(plan)
        self._load(functions)

    def _lowered(self, topo_order, feeds, default, tf32):
        """Instructions for the nodes. On a real GPU the methods of convolutions that leave the
        choice are measured, once for each shape."""
        nodes = [node for node in topo_order if node not in feeds]
        lowered = functools.partial(
            Lowering, feeds, default, self.backend.MOST_PARTIAL, tf32=tf32
        )  # fmt: skip
        if self.backend is not gpu or ndarray.is_emulated():
            return lowered(lambda node, inputs: self.backend.CONVOLUTION).with_nodes(nodes)
        chooser = choosing.Chooser(Program, self.ctx, tf32)
        found = lowered(chooser.guess).with_nodes(nodes)
        if not chooser.unknown or kernels.are_only_asked():
            return found
        chooser.compile_all()
        return lowered(chooser.choose).with_nodes(nodes)

    def feed(self, arrays):
        """Says what the next runs compute from.

        Args:
            arrays: fed node -> NDArray of the device, which is kept.

        Raises:
            ValueError: one begins where a kernel can't read it.
        """
        for node in self._aligned & arrays.keys():
            if address_of(arrays[node]) % 16:
                raise ValueError(
                    "the array for %s begins at %#x; hint: a copy, at a multiple of 16 bytes"
                    % (node.name, address_of(arrays[node]))
                )
        self._fed = arrays
        for node, places in self._places_of_feeds.items():
            address = address_of(arrays[node])
            if self._fed_at.get(node) != address:
                self._fed_at[node] = address
                self._pointers[places] = self._offsets[places] + address
        self._results = [self._value_of(view, arrays) for view in self._outputs]
        self._key = tuple(self._fed_at.values())
        self._captured = self._captures.get(self._key, {})

    def run(self, launch=None):
        """The values, as NDArrays that the next run overwrites.

        Args:
            launch: what to call instead of `launch`, or of a recording.

        Raises:
            IndexError: an index is out of range.
            DeviceError: the GPU refused a launch.
        """
        for instruction, sizes in self._draws:
            sizes[-1] = instruction.next_run()
        # What an index out of range would change is not written before all are known to be right.
        (_, first), (_, cut), (_, end) = self._parts
        if not self._flags.checks:
            self._run_part(0, end, launch)
            return list(self._results)
        self._run_part(0, first, launch)
        if first > 0:  # the host waits while the GPU goes on
            self._flags.begin()
        self._run_part(first, cut, launch)
        if first == 0:
            self._flags.begin()
        failed = self._flags.failed()
        if failed is not None:
            self._raise_for(failed)
        self._run_part(cut, end, launch)
        return list(self._results)

    @property
    def _parts(self):
        """Checks of indices and what they need; what writes nothing that was fed; and the rest."""
        end = len(self.instructions)
        cut = self._first_write if self._flags.checks else end
        return (0, self._first), (self._first, cut), (cut, end)

    def capture(self, most_streams=MOST_STREAMS):
        """Records the launches, which later runs with the same arrays start by one call.

        Raises:
            CaptureError: they can't be recorded; runs go on without.
        """
        reason = refusal(self.instructions)
        if reason:
            raise CaptureError(reason)
        parts = [part for part in self._parts if part[0] < part[1]]
        self._captured = {
            (first, end): Captured(
                self._steps, first, self.instructions[first:end], self._memory_of, most_streams
            )
            for first, end in parts
        }
        while len(self._captures) >= _MOST_CAPTURES:
            del self._captures[next(iter(self._captures))]
        self._captures[self._key] = self._captured

    def record_rounds(self, stacks, count):
        """Records many runs as one: each reads another row of the stacks.

        Args:
            stacks: fed node -> NDArray, `(count, *shape)`, which stays where it is. What is not
                among them is as in the last run.
            count: how many.

        Returns:
            (what has been captured, its results: NDArrays `(count, *shape)`).

        Raises:
            CaptureError: they can't be recorded.
        """
        waits = ", ".join(self.waits) and "the host waits in each step for checks of indices: "
        reason = refusal(self.instructions) or waits + ", ".join(self.waits)
        if reason:
            raise CaptureError(reason)
        pointers, moves = self._pointers.copy(), np.zeros_like(self._pointers)
        ways_in = [self._read_rows(node, each, moves) for node, each in stacks.items()]
        ways_out = [self._written_rows(view, stacks, count, moves) for view in self._outputs]

        def rounds():
            for number in range(count):
                yield number
                self._pointers += moves

        try:
            captured = Captured(
                self._steps, 0, self.instructions, self._memory_of,
                before=copies_of_rows(ways_in, count), rounds=rounds(),
                behind=copies_of_rows(ways_out, count),
            )  # fmt: skip
        finally:
            self._pointers[:] = pointers
        captured.keeps = (stacks, ways_in, ways_out)
        return captured, [way.to for way in ways_out]

    def _read_rows(self, node, stack, moves):
        """Has the launches read the first row of a stack, and the next one after each move."""
        way = rows_apart(stack, self.ctx)
        places = self._places_of_feeds[node]
        self._pointers[places] = self._offsets[places] + address_of(way.to)
        moves[places] = way.to_apart
        return way

    def _written_rows(self, view, stacks, count, moves):
        """Has the launches write an output to the first row of a new stack, then to the next."""
        fed = view.buffer.fed
        found = ndarray.empty((count, *view.shape), self.ctx, view.dtype)
        if fed is not None:
            return Rows(found, row_bytes(found), stacks[fed], row_bytes(found))
        way = rows_apart(found, self.ctx).turned()
        places = [i for i, each in enumerate(self._views()) if each.buffer is view.buffer]
        self._pointers[places] += address_of(way.start) - self._addresses[view.buffer]
        moves[places] = way.start_apart
        return way

    @property
    def is_captured(self):
        """Whether runs start what was recorded."""
        return bool(self._captured)

    @property
    def calls(self):
        """How many calls start what was recorded."""
        return len(self._captured)

    @property
    def waits(self):
        """The names of the checks of indices that the host waits for in a run."""
        return [instruction.node.name for instruction in self._flags.checks]

    @property
    def offsets(self):
        """Buffer -> where it lies in the arena, of all that lie there."""
        return dict(self._in_arena)

    @property
    def streams(self):
        """How many streams the captured launches use."""
        used = (max(each.streams) + 1 for each in self._captured.values() if each.streams)
        return max(used, default=1)

    def sources(self):
        """The source of the kernels, in the order of their first launch, with their nodes."""
        keys = {}
        for each in self.instructions:
            nodes = getattr(each, "nodes", (each.node,))
            keys.setdefault(each.key, []).append(", ".join(map(str, nodes)))
        return kernels.readable(self.backend, keys)

    def _memory_of(self, buffer):
        """Where a buffer lies: (which memory, its first byte, the byte behind the last)."""
        if buffer in self._in_arena:
            start = self._in_arena[buffer]
            return (None, start, start + buffer.size)
        return (buffer, 0, 1)

    def launch(self, first, end):
        """Launches instructions one after the other.

        Returns:
            The number of the first that failed, counted from `first`; -1 if none did.
        """
        steps = ctypes.byref(self._steps, first * ctypes.sizeof(_Step))
        return self._run(steps, end - first, _threads, None)

    def timer(self, most_streams=1):
        """A Timer, whose `launch` may be given to `run`."""
        return Timer(
            self.backend, self._steps, self.instructions, self._memory_of, most_streams, _threads
        )

    def _run_part(self, first, end, launch):
        captured = None if launch else self._captured.get((first, end))
        if captured is None:
            failed = (launch or self.launch)(first, end) if first < end else -1
            if failed >= 0:
                self._raise_for(self.instructions[first + failed])
        else:
            captured.replay()

    def owned_results(self):
        """The arrays that every run overwrites with values that it returns."""
        return [self._owned[view.buffer] for view in self._outputs if view.buffer.fed is None]

    def _kept(self):
        return {view.buffer for view in self._outputs}

    def _lay_out(self, plan):
        """Gives every buffer memory: constants their own, all others a place in one arena."""
        offsets, self.peak = plan(self.instructions, self._kept())
        self._in_arena = offsets
        self._arena = ndarray.empty((-(-self.peak // 4),), self.ctx)
        self._owned = {}
        for view in self._views():
            buffer = view.buffer
            if buffer.values is not None and buffer not in self._owned:
                self._owned[buffer] = ndarray.array(buffer.values, self.ctx, buffer.values.dtype)
        for view in self._outputs:
            if view.buffer.fed is None:
                self._owned[view.buffer] = ndarray.empty(view.shape, self.ctx, view.dtype)
        self._flags = checks.Flags(self.instructions if self.backend is gpu else [], self.ctx)
        self._owned.update(self._flags.owned())
        arena = address_of(self._arena)
        self._addresses = {buffer: arena + offset for buffer, offset in offsets.items()}
        for buffer, array in self._owned.items():
            self._addresses[buffer] = address_of(array)

    def _views(self):
        return [view for instruction in self.instructions for view in instruction.operands]

    def _load(self, functions):
        """Makes one table of all pointers, and a step of each instruction."""
        views = self._views()
        #: What is added to the address of a fed array; the address itself for all others.
        self._offsets = np.array([view.offset * view.dtype.itemsize for view in views], np.int64)
        self._places_of_feeds = {node: [] for node in self._feeds}
        for place, view in enumerate(views):
            if view.buffer.fed is None:
                self._offsets[place] += self._addresses[view.buffer]
            else:
                self._places_of_feeds[view.buffer.fed].append(place)
        self._pointers = self._offsets.copy()
        self._steps = (_Step * len(self.instructions))()
        self._tables, self._draws, first = [], [], 0
        for step, instruction, function in zip(self._steps, self.instructions, functions):
            sizes = np.array(instruction.sizes, np.int64)
            numbers = np.array(instruction.numbers, np.float64)
            self._tables += [sizes, numbers]
            step.kernel = function
            step.data = self._pointers.ctypes.data + first * self._pointers.itemsize
            step.sizes, step.numbers = sizes.ctypes.data, numbers.ctypes.data
            first += len(instruction.operands)
            if isinstance(instruction, Draw):
                self._draws.append((instruction, sizes))
        writes = (any(v.buffer.fed for v in each.targets) for each in self.instructions)
        self._first_write = next((i for i, is_one in enumerate(writes) if is_one), len(self._steps))
        self._run = kernels.runner(self.backend)

    def _value_of(self, view, arrays):
        if view.buffer.fed is not None:
            return arrays[view.buffer.fed]
        return self._owned[view.buffer]

    def _raise_for(self, instruction):
        node = instruction.node
        if not checks.is_check(instruction):
            check_call(_LIB.DLDeviceSynchronize(node.name.encode()))
            raise DeviceError("the launch of %s failed" % node.name)
        raise IndexError(
            "%s: an index is out of range; %s was made at %s"
            % (node.op.name, node.name, node.made_at)
        )


def _outputs(lowering, values, written):
    """Views of memory that belongs to one evaluated value alone, or that was fed as it is.

    Args:
        written: buffers of fed arrays that the run overwrites.
    """
    taken, outputs = set(written), []
    for value in values:
        if isinstance(value, Literal) or not _can_be_handed_out(lowering, value, taken):
            output = new_view(value.shape, value.dtype)
            lowering.elementwise("a", value, into=output)
            value = output
        if value.buffer.fed is None:
            taken.add(value.buffer)
        outputs.append(value)
    return outputs


def _can_be_handed_out(lowering, value, taken):
    buffer = value.buffer
    if buffer.fed is not None:
        return value is lowering.values[buffer.fed] and buffer not in taken
    fills = value.is_whole and size_of(value.shape) * value.dtype.itemsize == buffer.size
    return fills and buffer.values is None and buffer not in taken


def default_threads():
    """OMP_NUM_THREADS, or the number of processors that this process may use."""
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if said.isdigit() and int(said) > 0:
        return int(said)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


_threads = default_threads()


def threads():
    """How many threads the CPU back end uses."""
    return _threads


def set_threads(count):
    """How many threads the CPU back end uses from now on; results may differ in the last bits.

    Raises:
        ValueError: count is below 1.
    """
    global _threads
    if count < 1:
        raise ValueError("%d threads; hint: 1 or more" % count)
    _threads = count
