"""From nodes to instructions: what an op's `lower` is given to make its value of."""

import dataclasses
import functools
import math
import re

import numpy as np

from dlsys.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT32,
    INT64,
    UINT8,
    computed_in,
    promoted,
)
from dlsys.ndarray import size_of

from . import cudnn, hopper, hopper_last, implicit
from .classic import CLASSIC
from .images import Convolve, Fold, MaxPool, bordered_view, parts_of_windows
from .instructions import (
    Draw,
    Elementwise,
    Gather,
    MatrixProduct,
    Reduce,
    Rows,
    steps_of_matrix,
)
from .spaces import is_short_row
from .view import Buffer, Literal, View, broadcast, channels_last_view, new_view

_LETTERS = "abcdefgh"


class Lowering:
    """The instructions for some nodes, and where each node's value will lie.

    Attributes:
        instructions: in the order of their execution.
        values: node -> View or Literal.
        default: the dtype of numbers with a fraction where nothing says another.
    """

    def __init__(self, fed, default=FLOAT32, most_partial=0, choose=None, tf32=False):
        """
        Args:
            fed: node -> (shape, dtype).
            default: see above.
            most_partial: partial results of one reduction for which the back end wants room.
            choose: (node, views of its inputs) -> the method of a convolution that leaves the
                choice.
            tf32: whether products may be rounded to TF32.
        """
        self._most_partial, self._tf32 = most_partial, tf32
        self.choose = choose or (lambda node, inputs: "im2col")
        self.instructions = []
        #: (images, channels, dtype) -> the same with zeros behind, as hopper_last.py lays them.
        self.laid, self._checked = {}, {}
        self.default = default
        self.values = {
            node: new_view(shape, dtype, fed=node) for node, (shape, dtype) in fed.items()
        }
        self._node = None
        self._dtype = default

    def with_nodes(self, nodes):
        """This, after lowering nodes; inputs stand first."""
        for node in nodes:
            self.lower(node)
        return self

    def lower(self, node):
        """Adds what computes a node, whose inputs are done.

        Raises:
            ShapeError, ValueError: the shapes don't fit.
            NotImplementedError: no back end has the op.
        """
        inputs = [self.values[each] for each in node.inputs]
        shape = node.op.infer_shape(node, [each.shape for each in inputs])
        outer = self._node, self._dtype
        self._node, self._dtype = node, self._dtype_of(node, inputs)
        self.values[node] = _rule(node.op)(node, self, *inputs)
        assert self.values[node].shape == shape, "%s is lowered to another shape" % node
        self._node, self._dtype = outer

    def _dtype_of(self, node, inputs):
        """The dtype of a node's value on a device.

        Where numpy has a float64, it is the promoted dtype of the inputs that have a fraction.
        """
        op = node.op
        skipped = {*getattr(op, "indices", ())}
        used = [view.dtype for i, view in enumerate(inputs) if i not in skipped]
        seen = [FLOAT64 if view.dtype in FLOATS else view.dtype for view in inputs]
        found = op.infer_dtype(node, seen) if hasattr(op, "infer_dtype") else FLOAT64
        if found != FLOAT64:
            return np.dtype(found)
        strong = [
            view.dtype
            for i, view in enumerate(inputs)
            if i not in skipped and not isinstance(view, Literal)
        ]
        fractions = [each for each in strong or used if each in FLOATS]
        return promoted(fractions) if fractions else self.default

    # What an op's `lower` may ask for. Inputs are views or literals.

    def constant(self, values):
        """The view of an array that is known, or the literal of a number."""
        values = np.asarray(values)
        dtype = self.default if values.dtype.kind == "f" else values.dtype
        if values.ndim == 0:
            return Literal(values.item(), dtype)
        return new_view(values.shape, dtype, values=np.ascontiguousarray(values, dtype))

    def number(self, value, shape):
        """One number for all elements of the node's value."""
        return Literal(value, self._dtype, shape)

    def known(self, values):
        """The view of an array as it is, a single number too, of its very dtype."""
        return new_view(values.shape, values.dtype, values=np.ascontiguousarray(values))

    def unread(self, shape, dtype, lies):
        """A value of which nobody reads an element; `lies` are its strides, or "literal"."""
        if lies == "literal":
            return Literal(0, dtype, shape)
        return View(Buffer(0), dtype, shape, lies)

    def elementwise(self, code, *inputs, numbers=(), dtype=None, shape=None, into=None):
        """A C expression of a, b, c, ... and of p0, p1, ... for each element.

        Args:
            numbers: p0, p1, ...
            dtype: of the result; that of the node's value if None.
            shape: of the result; that of the inputs, broadcast, if None.
            into: the view to write, if there is one.
        """
        if shape is None:
            shape = np.broadcast_shapes(*(each.shape for each in inputs))
        output = self._new(shape, dtype or self._dtype, inputs) if into is None else into
        names = dict(zip(_LETTERS, inputs))
        # Literals become numbers of the launch, so that one kernel serves them all.
        views, given = [], list(numbers)
        for letter, each in names.items():
            if isinstance(each, Literal):
                code = _renamed(code, letter, "p%d" % len(given))
                given.append(float(each.value))
            else:
                code = _renamed(code, letter, "x%d" % len(views))
                views.append(each)
        computed = self._computed_in(output, inputs)
        code, given = _without_division(code, [float(number) for number in given], computed)
        self.add(Elementwise(output, tuple(views), computed, code, given))
        return output

    def reduce(self, kind, inputs, axes, keepdims=False, code="a", dtype=None):
        """The "sum", "prod", "max" or "min" of an expression of the inputs over axes.

        A GPU has a "moment", too: the sum of squared distances from the mean.
        """
        whole = np.broadcast_shapes(*(each.shape for each in inputs))
        shape = tuple(extent for axis, extent in enumerate(whole) if axis not in axes)
        output = new_view(shape, dtype or self._dtype)
        views = tuple(self.in_memory(each) for each in inputs)
        for number, letter in enumerate(_LETTERS[: len(views)]):
            code = _renamed(code, letter, "x%d" % number)
        computed = computed_in(output.dtype)
        scratch = None
        if self._most_partial:
            # A chunk has 64 elements at least; outputs are cut in groups of 128.
            parts = (size_of(shape) + 127) * max(1, size_of(whole) // max(1, size_of(shape)) // 64)
            words = 3 if kind == "moment" else 1
            scratch = new_view((words * min(parts, self._most_partial),), FLOAT64)
        self.add(Reduce(output, views, kind, code, computed, whole, tuple(axes), scratch))
        if not keepdims:
            return output
        return output.reshaped(tuple(1 if a in axes else e for a, e in enumerate(whole)))

    def squared_distances(self, x, axes, keepdims=False):
        """The sum of squared distances from the mean over axes.

        A GPU looks at each element once, but for short rows, which are in its registers.
        """
        if self._most_partial and not is_short_row(x.shape, axes):
            return self.reduce("moment", (x,), axes, keepdims)
        count = size_of([x.shape[axis] for axis in axes])
        total = self.reduce("sum", (x,), axes, keepdims=True)
        mean = self.elementwise("a / p0", total, numbers=(count,))
        return self.reduce("sum", (x, mean), axes, keepdims, code="(a - b) * (a - b)")

    def rows(self, kind, *inputs, is_reduction=False, indices=None, numbers=()):
        """A function of rows along the last axis, which has one name on all back ends.

        Args:
            kind: its name, as softmax.
            is_reduction: whether it makes one number of a row.
            indices: int64, one for each row, if the function takes such; it is a reduction, then.
            numbers: what else it takes.
        """
        dtype = computed_in(self._dtype)
        of_inputs = None if dtype not in FLOATS else dtype
        dense = [self.dense(each, of_inputs or computed_in(each.dtype)) for each in inputs]
        is_reduction = is_reduction or indices is not None
        shape = dense[0].shape[:-1] if is_reduction else dense[0].shape
        dense += [] if indices is None else [self.dense(indices, INT64)]
        output = new_view(shape, dtype)
        self.add(Rows(output, tuple(dense), kind, tuple(numbers)))
        return self.as_dtype(output, self._dtype)

    def product(self, a, b):
        """a @ b of matrices and batches of them, whose leading axes broadcast."""
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        dtype = computed_in(self._dtype)
        output = new_view((*batch, a.shape[-2], b.shape[-1]), dtype)
        views = []
        for each in (a, b):
            view = self.as_dtype(each, dtype)
            view = view if steps_of_matrix(view) else self.dense(view)
            views.append(broadcast(view, (*batch, *view.shape[-2:])))
        self.add(MatrixProduct(output, tuple(views)))
        return self.as_dtype(output, self._dtype)

    def gather(self, x, indices):
        """x[o, indices[o, k, i], i] of arrays of three axes."""
        output = new_view(indices.shape, self._dtype)
        inputs = (self.dense(x, self._dtype), self.as_dtype(indices, INT64))
        self.add(Gather(output, inputs))
        return output

    def scatter_add(self, x, indices, y):
        """x, with y[o, k, i] added at [o, indices[o, k, i], i]."""
        dtype = computed_in(self._dtype)
        output = self.elementwise("a", x, into=new_view(x.shape, dtype))
        inputs = (self.dense(y, dtype), self.as_dtype(indices, INT64))
        self.add(Gather(output, inputs, adds=True))
        return self.as_dtype(output, self._dtype)

    def checked_indices(self, indices, count):
        """Indices as int64; the run fails if one is not among 0 .. count - 1. A gradient's are
        those of the value."""
        found = self._checked.get((indices, count))
        if found is None:
            found = self.elementwise("nearest(a)", indices, into=new_view(indices.shape, INT64))
            row = found.reshaped((1, size_of(found.shape)))
            operands = (row, self.constant(np.array([count])))
            self.add(Rows(new_view((), BOOL), operands, "check_indices"))
            self._checked[indices, count] = found
        return found

    def windows(self, x, windows, value=0.0):
        """The windows of images with borders of a value, a view (N, C, KH, KW, OH, OW)."""
        return self.view(windows.seen, bordered_view(self, self.in_memory(x), windows, value))

    def fold(self, columns, windows):
        """The sum of what windows (N, C, KH, KW, OH, OW) have of each element of the images."""
        dtype = computed_in(self._dtype)
        output = new_view((*columns.shape[:2], *windows.size), dtype)
        self.add(Fold(output, (self.as_dtype(columns, dtype),), windows))
        return self.as_dtype(output, self._dtype)

    def max_pool(self, kind, shape, windows, *inputs):
        """See the instruction MaxPool; `shape` is that of the output."""
        are_last = any(isinstance(each, View) and each.is_channels_last for each in inputs)
        if not (self._most_partial and are_last and self._dtype in (FLOAT32, BFLOAT16)):
            return self._of_dense(MaxPool, shape, inputs, kind=kind, windows=windows)
        inputs = tuple(self.channels_last(each, self._dtype) for each in inputs)
        if kind == "placed":
            x, g = inputs
            inputs = (g, self._taps_of_largest(x, windows))
        output = channels_last_view(shape, self._dtype)
        self.add(MaxPool(output, inputs, kind, windows, is_last=True))
        return output

    def _taps_of_largest(self, x, windows):
        """Which elements of windows are the largest: who finds their values, finds these, too."""
        found = [
            each for each in self.instructions
            if isinstance(each, MaxPool) and each.is_last
            and each.inputs == (x,) and each.windows == windows
        ]  # fmt: skip
        if not found:
            output = channels_last_view((*x.shape[:2], *windows.out), x.dtype)
            found.append(MaxPool(output, (x,), "value", windows, is_last=True))
            self.add(found[0])
        if not found[0].taps:
            kind = UINT8 if size_of(windows.kernel) <= 256 else INT32
            shape = found[0].output.shape
            found[0].taps = channels_last_view(shape, kind)
        return found[0].taps

    def convolve(self, kind, method, shape, windows, channels, groups, *inputs):
        """See Convolve; `channels` are the numbers of images, channels, filters.

        Raises:
            NotImplementedError: the method can't compute it.
        """
        said = {"kind": kind, "windows": windows, "channels": channels, "groups": groups}
        dtype = computed_in(self._dtype)
        if method == "implicit":
            _refuse(method, implicit.refusal(windows, channels, dtype))
            inputs = implicit.operands(self, kind, groups, *inputs)
            return self._of_dense(implicit.ImplicitConvolution, shape, inputs, **said)
        is_half = bool(BFLOAT16) and self._dtype == BFLOAT16
        if method == "wgmma" and (is_half or (self._tf32 and self._dtype == FLOAT32)):
            _refuse(method, hopper_last.refusal(kind, windows, channels, groups, self._dtype))
            return hopper_last.convolved(
                self, kind, shape, windows, channels, self._dtype, *inputs
            )  # fmt: skip
        if method == "wgmma":
            _refuse(method, hopper.refusal(kind, windows, channels, groups, dtype))
            # Whose lines are those of the result comes first.
            operands = inputs if kind == "data" else inputs[::-1]
            return self._of_dense(hopper.HopperConvolution, shape, operands, **said)
        if method == "cudnn":
            _refuse(method, cudnn.refusal(dtype))
            return self._of_dense(cudnn.CudnnConvolution, shape, inputs, **said)
        if kind == "weights" and self._most_partial:
            said["parts"] = parts_of_windows(windows, channels, groups)
        return self._of_dense(Convolve, shape, inputs, **said, method=method)

    def _of_dense(self, instruction, shape, inputs, **said):
        """An instruction whose operands all lie dense, in the dtype in which it computes."""
        dtype = computed_in(self._dtype)
        output = new_view(shape, dtype)
        self.add(instruction(output, tuple(self.dense(each, dtype) for each in inputs), **said))
        return self.as_dtype(output, self._dtype)

    def draw(self, kind, shape, seed, parameters, next_run):
        """Random numbers; next_run() is the number of each run."""
        output = new_view(shape, self._dtype)
        self.add(
            Draw(output, (), kind=kind, seed=seed, parameters=parameters, next_run=next_run)
        )  # fmt: skip
        return output

    def view(self, function, x):
        """What numpy's `function` sees of x, without a copy."""
        if isinstance(x, Literal):
            shape = function(np.broadcast_to(np.int8(0), x.shape)).shape
            return dataclasses.replace(x, shape=shape)
        return x.seen(function)

    def reshape(self, x, shape):
        """The elements of x in another shape: a view where x lies dense."""
        if isinstance(x, Literal):
            return dataclasses.replace(x, shape=tuple(shape))
        return self.dense(x).reshaped(tuple(shape))

    def as_dtype(self, x, dtype):
        """x in memory, in a dtype."""
        if isinstance(x, Literal) or x.dtype != dtype:
            return self.elementwise("a", x, dtype=dtype)
        return x

    def in_memory(self, x):
        """x; a literal is written out, as one element that is repeated."""
        if not isinstance(x, Literal):
            return x
        one = self.elementwise("a", dataclasses.replace(x, shape=()), dtype=x.dtype)
        return broadcast(one, x.shape)

    def dense(self, x, dtype=None):
        """x in row-major order, in a dtype if one is named; a copy where it is not so."""
        dtype = dtype or x.dtype
        if isinstance(x, View) and x.is_dense and x.dtype == dtype:
            return x
        return self.elementwise("a", x, into=new_view(x.shape, dtype))

    def channels_last(self, x, dtype):
        """Images (N, C, H, W) in a dtype, as (N, H, W, C) lie, from a multiple of 16 bytes on; a
        copy where they don't."""
        made = channels_last_view(x.shape, dtype)
        if (
            isinstance(x, View) and x.strides == made.strides and x.dtype == dtype
            and x.offset * dtype.itemsize % 16 == 0
        ):  # fmt: skip
            return x
        return self.elementwise("a", x, into=made)

    def before_cast(self, x, dtype):
        """What x was rounded from, if it was of a dtype and lies dense; else x, so."""
        for each in reversed(self.instructions):
            if each.output is x:
                found = each.inputs[0] if each.inputs else x
                is_cast = type(each) is Elementwise and each.code == "x0"
                if is_cast and found.is_dense and (found.shape, found.dtype) == (x.shape, dtype):
                    return found
                break
        return self.dense(x, dtype)

    def empty(self, shape, dtype=None):
        """A new view, to be written by elementwise(into=)."""
        return new_view(shape, dtype or self._dtype)

    def part(self, view, index):
        """A part of a view, to be written."""
        return view.seen(lambda array: array[index])

    def _new(self, shape, dtype, inputs):
        """A view for what is made of inputs element by element: it lies as they do."""
        last = (isinstance(each, View) and each.is_channels_last for each in inputs
                if each.shape == tuple(shape))  # fmt: skip
        return channels_last_view(shape, dtype) if any(last) else new_view(shape, dtype)

    def _computed_in(self, output, inputs):
        """The dtype of an expression's variables: that of the result, or what all inputs fit in."""
        if output.dtype in FLOATS:
            return computed_in(output.dtype)
        found = [each.dtype for each in inputs if not isinstance(each, Literal)]
        fractions = any(each.dtype in FLOATS for each in inputs)
        if fractions and not FLOATS.intersection(found):
            found.append(self.default)
        return computed_in(promoted(found or [output.dtype]))

    def add(self, instruction):
        """Adds an instruction, as one of the node that is lowered."""
        instruction.node = self._node
        self.instructions.append(instruction)


def _refuse(method, reason):
    """Raises a NotImplementedError where there is a reason."""
    if reason:
        raise NotImplementedError('method "%s" %s' % (method, reason))


def _rule(op):
    """How an op is lowered: its own method, or the classic set's rule for its class."""
    own = getattr(op, "lower", None)
    if own is None and type(op) not in CLASSIC:
        raise NotImplementedError(
            "%s has no rule for back ends; hint: a TensorOp with `code` or `lower`"
            % type(op).__name__
        )
    return own or CLASSIC[type(op)].__get__(op)


def _without_division(code, given, dtype):
    """The same expression, where a quotient by a power of 2 is a product, which is as exact."""
    divisor = re.search(r" / p(\d+)$", code)
    if divisor and dtype in FLOATS:
        number = int(divisor[1])
        value = given[number]
        is_power = 0 < abs(value) < 2.0**100 and abs(math.frexp(value)[0]) == 0.5
        if is_power and abs(value) > 2.0**-100 and code.count("p%d" % number) == 1:
            code, given[number] = code[: divisor.start()] + " * p%d" % number, 1 / value
    return code, tuple(given)


@functools.lru_cache(10000)
def _renamed(code, old, new):
    """The expression with a variable of one letter renamed."""
    return re.sub(r"\b%s\b" % old, new, code)
