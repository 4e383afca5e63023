"""What a step keeps from run to run: the values of parameters, on the device."""

import numpy as np

from dlsys import ndarray
from dlsys.dtypes import FLOAT32, FLOAT64, FLOATS, checked, numbers
from dlsys.ops.base import ShapeError
from dlsys.ops.known import variable

HALVES = FLOATS - {FLOAT32, FLOAT64}


def parameter(name, initial=None, like=None, fill=0.0):
    """A variable with a first value, which a step has from the start.

    Args:
        name: its name; in one step no two are the same.
        initial: the value, an array-like.
        like: instead of it, another variable, whose shape and dtype it has; of halves, float32.
        fill: then all elements.

    Raises:
        TypeError: the value is no array of numbers.
    """
    if like is None:
        initial = np.array(numbers("the first value of " + name, initial))
        kind = np.float64 if initial.dtype in FLOATS else initial.dtype
        node = variable(name, initial.shape, kind)
    else:
        known = getattr(like, "known", None)
        node = variable(name, *known) if known else variable(name)
    node.initial, node.initial_like = initial, (like, fill)
    return node


class State:
    """The values of parameters.

    Attributes:
        arrays: parameter -> numpy array or NDArray, for those that have a value.
    """

    def __init__(self, parameters, ctx, dtype):
        self.arrays = {}
        self._ctx, self._dtype = ctx, None if dtype is None else checked(dtype)
        self._named = {}
        for node in parameters:
            if node.name in self._named:
                raise ValueError(
                    "two parameters are called %s; hint: names tell them apart in files" % node.name
                )
            self._named[node.name] = node
        for node in parameters:
            if getattr(node, "initial", None) is not None:
                self.set(node, node.initial)

    def named(self):
        """name -> parameter, of all."""
        return dict(self._named)

    def found(self, parameter):
        """The parameter that a node or a name means.

        Raises:
            KeyError: there is none.
        """
        node = self._named.get(parameter if isinstance(parameter, str) else parameter.name)
        if node is None or not (isinstance(parameter, str) or parameter is node):
            raise KeyError(
                "%s is no parameter of this step; hint: %s"
                % (parameter, ", ".join(self._named) or "updates had none")
            )
        return node

    def set(self, parameter, value):
        """Copies a value in.

        Raises:
            KeyError: there is no such parameter.
            ShapeError: it has another shape than the parameter.
            TypeError: a fraction for a parameter of whole numbers; no dtype of the device.
        """
        node = self.found(parameter)
        self._place(node, self.taken(node, value))

    def _place(self, node, values):
        if node not in self.arrays:
            on_numpy = self._ctx is None
            made = values.copy() if on_numpy else ndarray.array(values, self._ctx, values.dtype)
            self.arrays[node] = made
        else:
            # An array keeps its place, which programs know.
            self.arrays[node][... if self._ctx is None else slice(None)] = values

    def taken(self, node, value):
        """A value as the numpy array that the parameter would keep; raises as `set` does."""
        is_typed = isinstance(value, ndarray.NDArray)
        values = numbers("the value of " + node.name, value.asnumpy() if is_typed else value)
        shape, dtype = self._kind_of(node)
        if shape is not None and values.shape != shape:
            raise ShapeError("%s has shape %s, the value has %s" % (node.name, shape, values.shape))
        is_fraction = values.dtype in FLOATS
        if dtype is not None and is_fraction and dtype not in FLOATS:
            raise TypeError("%s is of %s, the value of %s" % (node.name, dtype, values.dtype))
        if dtype is None or (node not in self.arrays and is_fraction):
            dtype = self.dtype_of(values.dtype, is_typed)
        return np.array(values, dtype)

    def restored(self, node, values):
        """A value from a file: as `taken`, but of the very dtype.

        Raises:
            ShapeError: shape or dtype differ.
        """
        shape, dtype = self._kind_of(node)
        if node not in self.arrays:
            dtype = values.dtype if self._ctx else self.dtype_of(values.dtype)
        if shape not in (None, values.shape) or dtype != values.dtype:
            raise ShapeError(
                "%s is %s %s, there it is %s %s"
                % (node.name, dtype, shape, values.dtype, values.shape)
            )
        return values

    def restore(self, found):
        """Takes over values, parameter -> what `restored` gave."""
        for node, values in found.items():
            self._place(node, values)

    def dtype_of(self, dtype, is_typed=False):
        """The dtype on this device of numbers that came in another; an NDArray keeps its own."""
        if dtype not in FLOATS:
            return dtype if self._ctx is None else checked(dtype)
        if self._dtype is not None:
            return self._dtype
        if self._ctx is None:
            return FLOAT64
        return FLOAT32 if dtype == FLOAT64 and not is_typed else dtype

    def complete(self):
        """Gives a value to parameters that are like others.

        Raises:
            ValueError: a parameter has none.
        """
        for node in self._named.values():
            if node not in self.arrays:
                like, fill = getattr(node, "initial_like", (None, 0))
                model = self.arrays.get(like)
                if model is None:
                    raise ValueError(
                        "%s has no value; hint: step.set(%s, array)" % ((node.name,) * 2)
                    )
                dtype = FLOAT32 if model.dtype in HALVES else model.dtype
                self._place(node, np.full(model.shape, fill, dtype))

    def kinds(self):
        """parameter -> (shape, dtype)."""
        return {node: (tuple(array.shape), array.dtype) for node, array in self.arrays.items()}

    def numpy_of(self, node):
        """A copy of a value as a numpy array."""
        array = self.arrays[node]
        return array.copy() if self._ctx is None else array.asnumpy()

    def _kind_of(self, node):
        """(shape, dtype) that a value must have, None where anything goes."""
        if node in self.arrays:
            return tuple(self.arrays[node].shape), self.arrays[node].dtype
        known = getattr(node, "known", None)
        return known or (None, None)


def check_feed(node, shape, dtype):
    """Raises ShapeError or TypeError unless a feed is what its variable was said to be."""
    known = getattr(node, "known", None)
    if known is None:
        return
    if shape != known[0]:
        raise ShapeError("%s has shape %s, the feed has %s" % (node.name, known[0], shape))
    if known[1].kind in "iu" and dtype.kind not in "iub":
        raise TypeError("%s is of %s, the feed of %s" % (node.name, known[1], dtype))
