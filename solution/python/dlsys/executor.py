"""Runs a graph: feeds the values, and computes each node from those of its inputs.

`autodiff.Executor` adds what is to be known before: the shapes, and the memory on the GPU.
"""

import importlib

import numpy as np

from . import ndarray
from .dtypes import checked

#: Programs that an executor keeps, each for feeds of other shapes.
_MOST_PROGRAMS = 8


class GraphExecutor:
    """What is given of autodiff.Executor, whose docstring names the attributes."""

    def __init__(self, eval_node_list, topo_order, ctx):
        self.eval_node_list = eval_node_list
        self.ctx = ctx
        self.topo_order = topo_order
        self.node_to_shape_map = None
        self.node_to_arr_map = None
        self.feed_shapes = None
        #: By what it was fed: the programs of a back end that ran last.
        self._programs = {}
        self._last_feeds = self._last_program = None

    def infer_shape(self, feed_shapes):
        """Fills self.node_to_shape_map for every node, the fed ones included."""
        raise NotImplementedError

    def memory_plan(self, feed_shapes):
        """Fills self.node_to_arr_map with an NDArray for every node that is not fed."""
        raise NotImplementedError

    def run(self, feed_dict, convert_to_numpy_ret_vals=False):
        """Computes the values of eval_node_list.

        Args:
            feed_dict: node -> value. On numpy, numpy arrays; on a device, NDArrays, used as
                they are, or numpy arrays, copied there on every run.
            convert_to_numpy_ret_vals: whether to return numpy arrays on a device too.

        Returns:
            A list of values in the order of eval_node_list. NDArrays belong to the executor:
            the next run overwrites them.
        """
        program = self._program_for(feed_dict)
        if program is not None:
            results = program.run()
            return [r.asnumpy() for r in results] if convert_to_numpy_ret_vals else results
        values = self._feed(feed_dict)
        feed_shapes = {node: tuple(value.shape) for node, value in values.items()}
        self._check_all_fed(values)
        if feed_shapes != self.feed_shapes:
            self.feed_shapes = None
            self.infer_shape(feed_shapes)
            if ndarray.is_gpu_ctx(self.ctx):
                self.memory_plan(feed_shapes)
            self.feed_shapes = feed_shapes
        results = self._run_gpu(values) if ndarray.is_gpu_ctx(self.ctx) else self._run_numpy(values)
        if ndarray.is_gpu_ctx(self.ctx) and convert_to_numpy_ret_vals:
            return [value.asnumpy() for value in results]
        return results

    def _feed(self, feed_dict):
        """The fed values, numpy arrays uploaded if this executor is on a GPU."""
        on_gpu = ndarray.is_gpu_ctx(self.ctx)
        values = {}
        for node, value in feed_dict.items():
            if on_gpu and isinstance(value, np.ndarray):
                value = ndarray.array(value, ctx=self.ctx)
            wanted = ndarray.NDArray if on_gpu else np.ndarray
            hint = "ndarray.array(value, ctx)" if on_gpu else "numpy.asarray(value)"
            assert isinstance(
                value, wanted
            ), "feed_dict[%s] is a %s; this executor takes %s; hint: %s" % (
                node, type(value).__name__, wanted.__name__, hint,
            )  # fmt: skip
            assert not on_gpu or value.ctx.device_type == self.ctx.device_type, (
                "feed_dict[%s] lies on %r, this executor runs on %r; hint: value.copyto(ctx)"
                % (node, value.ctx, self.ctx)
            )
            values[node] = value
        return values

    def _takes_back_end(self, feed_dict):
        """Whether a back end runs the graph: on a CPU always, on a GPU if the classic can't."""
        if self.ctx is None:
            return False
        is_new = any(hasattr(node.op, "lower") for node in self.topo_order)
        is_other = any(getattr(v, "dtype", None) != np.float32 for v in feed_dict.values()
                       if isinstance(v, ndarray.NDArray))  # fmt: skip
        return is_new or is_other or not ndarray.is_gpu_ctx(self.ctx)

    def _program_for(self, feed_dict):
        """The program of a back end that computes from these feeds, told of them; or None."""
        last = self._last_feeds
        if last is not None and len(feed_dict) == len(last):
            if all(last.get(node) is value for node, value in feed_dict.items()):
                return self._last_program
        self._last_feeds = None
        check_feeds(feed_dict)
        if not self._takes_back_end(feed_dict):
            return None
        self._check_all_fed(feed_dict)
        needed = set(self.topo_order)
        arrays = {n: self._on_device(n, v) for n, v in feed_dict.items() if n in needed}
        kinds = {node: (array.shape, array.dtype) for node, array in arrays.items()}
        key = tuple(sorted((id(node), *kind) for node, kind in kinds.items()))
        if key not in self._programs:
            if len(self._programs) >= _MOST_PROGRAMS:
                del self._programs[next(iter(self._programs))]
            self._programs[key] = _back_end().Program(
                self.topo_order, self.eval_node_list, kinds, self.ctx
            )
        self._programs[key].feed(arrays)
        if all(isinstance(value, ndarray.NDArray) for value in feed_dict.values()):
            # An array stays where it is: the next run from the same ones need not look again.
            self._last_feeds, self._last_program = dict(feed_dict), self._programs[key]
        return self._programs[key]

    def _on_device(self, node, value):
        """A fed value as an NDArray of this executor's device."""
        if isinstance(value, ndarray.NDArray):
            if value.ctx.device_type != self.ctx.device_type:
                raise TypeError(
                    "feed_dict[%s] lies on %r, this executor runs on %r; hint: value.copyto(ctx)"
                    % (node, value.ctx, self.ctx)
                )
            return value
        try:
            value = np.asarray(value)
            dtype = np.float32 if value.dtype == np.float64 else checked(value.dtype)
        except (TypeError, ValueError) as error:
            said = "feed_dict[%s] is no array of numbers: %s; hint: numpy.asarray(value, float)"
            raise TypeError(said % (node, error)) from None
        if ndarray.is_gpu_ctx(self.ctx):
            return ndarray.array(value, self.ctx, dtype)
        return ndarray.lent(np.ascontiguousarray(value, dtype).reshape(value.shape))

    def _check_all_fed(self, values):
        for node in self.topo_order:
            assert node in values or not node.op.is_fed, "feed_dict has no value for %s" % node

    def _run_gpu(self, values):
        for node in self.topo_order:
            if node not in values:
                output = self.node_to_arr_map[node]
                inputs = [values[i] for i in node.inputs]
                node.op.compute(node, inputs, output, use_numpy=False)
                values[node] = output
        return [values[node] for node in self.eval_node_list]

    def _run_numpy(self, values):
        """As _run_gpu, on new arrays; each is dropped once its last reader has run."""
        readers = {}
        for node in self.topo_order:
            for input_node in node.inputs:
                readers[input_node] = readers.get(input_node, 0) + 1
        evaluated = set(self.eval_node_list)
        for node in self.topo_order:
            if node in values:
                continue
            values[node] = self._computed(node, [values[i] for i in node.inputs])
            for input_node in node.inputs:
                readers[input_node] -= 1
                if readers[input_node] == 0 and input_node not in evaluated:
                    del values[input_node]
        return [values[node] for node in self.eval_node_list]

    def _computed(self, node, inputs):
        """A node's value on numpy, from those of its inputs."""
        dtype = dtype_of(node, [value.dtype for value in inputs])
        if dtype.kind == "f":
            inputs = _with_fractions(node.op, inputs, dtype)
        output = np.empty(self.node_to_shape_map[node], dtype)
        node.op.compute(node, inputs, output, use_numpy=True)
        return output


def _with_fractions(op, values, dtype):
    """What an op computes fractions from, as such: numpy's 3 - 5 of uint8 is 254, of bool an error.

    Indices and labels stay whole.
    """
    whole = {*getattr(op, "indices", ()), *op.labels}
    return [
        value if value.dtype.kind == "f" or number in whole else value.astype(dtype)
        for number, value in enumerate(values)
    ]


def check_feeds(feed_dict):
    """Looks at what is fed before anything is computed from it.

    Raises:
        TypeError: it is no dict of nodes, or a value has no numbers.
        ValueError: a variable was declared with another shape.
    """
    if not isinstance(feed_dict, dict):
        raise TypeError("feed_dict is %r, not a dict; hint: {node: value}" % (feed_dict,))
    for node, value in feed_dict.items():
        if not hasattr(node, "op"):
            raise TypeError(
                "feed_dict has the key %r, which is no node; hint: what Variable returned" % (node,)
            )
        if isinstance(value, np.ndarray) and value.dtype.kind in "cOSUmM":
            said = "feed_dict[%s]: arrays of %s are not for a device; hint: float32"
            raise TypeError(said % (node, value.dtype))
        declared = getattr(node, "known", None) if node.op.is_fed else None
        shape = getattr(value, "shape", None)
        if declared is not None and shape is not None and tuple(shape) != declared[0]:
            said = "feed_dict[%s] has shape %s, the variable was declared with %s; hint: reshape"
            raise ValueError(said % (node, tuple(shape), declared[0]))


def _back_end():
    """dlsys.backend.program, which stands above this module: it needs the ops."""
    return importlib.import_module(".backend.program", __package__)


def dtype_of(node, dtypes):
    """The dtype of a node's value on numpy, from those of its inputs.

    The classic ops know float64 alone.
    """
    infer = getattr(node.op, "infer_dtype", None)
    return infer(node, dtypes) if infer else np.dtype(np.float64)
