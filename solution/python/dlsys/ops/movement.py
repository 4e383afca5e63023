"""Ops that move elements and compute nothing: axes, shapes, parts and wholes."""

import numbers

import numpy as np

from dlsys.autodiff import unbroadcast_op, zeroslike_op

from .base import TensorOp, axes_of


class TransposeOp(TensorOp):
    """The axes in another order; reversed if none is given."""

    keeps_dtype = True
    is_view = True
    label = "Transpose({},{})"
    samples = (((3, 4),), ((2, 3, 5), {"axes": (1, 2, 0)}), ((2, 3, 5), {"axes": (-1, 0, 1)}))

    def __call__(self, x, axes=None):
        return TensorOp.__call__(self, x, axes=None if axes is None else tuple(axes))

    def order(self, node, rank):
        """Which axis comes where."""
        axes = node.attributes["axes"]
        if axes is None:
            return tuple(reversed(range(rank)))
        if len(axes) != rank or len(axes_of(axes, rank)) != rank:
            raise ValueError("axes are %s, of an array of %d dimensions" % (axes, rank))
        return tuple(axis % rank for axis in axes)

    def forward(self, node, x):
        return np.transpose(x, self.order(node, x.ndim))

    def shape(self, node, shape):
        return tuple(shape[axis] for axis in self.order(node, len(shape)))

    def gradient(self, node, grad):
        axes = node.attributes["axes"]
        if axes is None:
            return [transpose_op(grad)]
        return [transpose_op(grad, np.argsort([a % len(axes) for a in axes]).tolist())]


class ReshapeOp(TensorOp):
    """The elements, in their order, in another shape; one extent may be -1."""

    keeps_dtype = True
    label = "Reshape({},{})"
    samples = (((3, 4), {"shape": (2, 6)}), ((2, 3, 4), {"shape": (3, -1)}), ((1,), {"shape": ()}))

    def __call__(self, x, shape):
        shape = (shape,) if isinstance(shape, numbers.Integral) else tuple(shape)
        return TensorOp.__call__(self, x, shape=shape)

    def forward(self, node, x):
        return np.reshape(x, node.attributes["shape"])

    def lower(self, node, build, x):
        return build.reshape(x, self.shape(node, x.shape))

    def shape(self, node, shape):
        wanted, size = node.attributes["shape"], int(np.prod(shape))
        known = int(np.prod([extent for extent in wanted if extent != -1]))
        rest = size // known if known and wanted.count(-1) == 1 else -1
        found = tuple(rest if extent == -1 else extent for extent in wanted)
        if min(found, default=0) < 0 or int(np.prod(found)) != size:
            raise ValueError("%d elements of shape %s don't fit into %s" % (size, shape, wanted))
        return found

    def gradient(self, node, grad):
        return [reshape_like_op(grad, node.inputs[0])]


class ReshapeLikeOp(TensorOp):
    """The elements of g in the shape of x: the gradient of what only changes a shape."""

    label = "ReshapeLike({},{}.shape)"
    samples = (((2, 6), (3, 4)), ((12,), (2, 6)))

    def __call__(self, g, x):
        return TensorOp.__call__(self, g, x)

    def forward(self, node, g, x):
        return np.reshape(g, x.shape)

    def lower(self, node, build, g, x):
        return build.reshape(g, x.shape)

    def shape(self, node, g, x):
        if int(np.prod(g)) != int(np.prod(x)):
            raise ValueError("the elements of shape %s don't fit into %s" % (g, x))
        return x

    def gradient(self, node, grad):
        g, x = node.inputs
        return [reshape_like_op(grad, g), zeroslike_op(x)]

    def infer_dtype(self, node, dtypes):
        return dtypes[0]


class _ShapeOp(TensorOp):
    """Another shape for the same elements, found from that of the input."""

    keeps_dtype = True

    def forward(self, node, x):
        return np.reshape(x, self.shape(node, x.shape))

    def lower(self, node, build, x):
        return build.reshape(x, self.shape(node, x.shape))

    def gradient(self, node, grad):
        return [reshape_like_op(grad, node.inputs[0])]


class FlattenOp(_ShapeOp):
    """All axes from `start` on as one."""

    label = "Flatten({},{})"
    samples = (((3, 4),), ((2, 3, 4), {"start": 1}), ((), {}))

    def __call__(self, x, start=0):
        return TensorOp.__call__(self, x, start=start)

    def shape(self, node, shape):
        start = node.attributes["start"]
        if start:
            (start,) = axes_of(start, len(shape))
        return (*shape[:start], int(np.prod(shape[start:])))


class SqueezeOp(_ShapeOp):
    """Without the axes named, which have one element; without all such if none is named."""

    label = "Squeeze({},{})"
    samples = (((1, 3, 1),), ((1, 3, 1), {"axis": 2}), ((1, 1, 4), {"axis": (0, -2)}))

    def __call__(self, x, axis=None):
        axis = axis if axis is None or isinstance(axis, numbers.Integral) else tuple(axis)
        return TensorOp.__call__(self, x, axis=axis)

    def shape(self, node, shape):
        axis = node.attributes["axis"]
        if axis is None:
            return tuple(extent for extent in shape if extent != 1)
        axes = axes_of(axis, len(shape))
        wrong = [a for a in axes if shape[a] != 1]
        if wrong:
            raise ValueError("axis %d of shape %s has not one element" % (wrong[0], shape))
        return tuple(extent for a, extent in enumerate(shape) if a not in axes)


class ExpandDimsOp(_ShapeOp):
    """A new axis of one element, at `axis` of the result."""

    label = "ExpandDims({},{})"
    samples = (((3, 4), {"axis": 0}), ((3, 4), {"axis": -1}), ((3, 4), {"axis": 1}))

    def __call__(self, x, axis):
        return TensorOp.__call__(self, x, axis=axis)

    def shape(self, node, shape):
        (axis,) = axes_of(node.attributes["axis"], len(shape) + 1)
        return (*shape[:axis], 1, *shape[axis:])


class BroadcastShapeOp(TensorOp):
    """x, repeated until it has a shape."""

    keeps_dtype = True
    is_view = True
    label, name = "Broadcast({},{})", "broadcast_to"
    samples = (((3, 1), {"shape": (2, 3, 4)}), ((), {"shape": (3,)}), ((4,), {"shape": (3, 4)}))

    def __call__(self, x, shape):
        return TensorOp.__call__(self, x, shape=tuple(shape))

    def forward(self, node, x):
        return np.broadcast_to(x, node.attributes["shape"])

    def shape(self, node, shape):
        wanted = node.attributes["shape"]
        padded = (1,) * (len(wanted) - len(shape)) + shape
        if any(a not in (1, b) for a, b in zip(padded, wanted)) or len(padded) > len(wanted):
            raise ValueError("shape %s does not broadcast to %s" % (shape, wanted))
        return wanted

    def gradient(self, node, grad):
        return [unbroadcast_op(grad, node.inputs[0])]


class ConcatenateOp(TensorOp):
    """Arrays one behind the other along an axis that they have."""

    keeps_dtype = True
    label = "Concatenate"
    samples = (((3, 4), (2, 4)), ((2, 3), (2, 1), (2, 4), {"axis": -1}))

    def __call__(self, *arrays, axis=0):
        return TensorOp.__call__(self, *arrays, axis=axis)

    def forward(self, node, *arrays):
        return np.concatenate(arrays, axis=node.attributes["axis"])

    def lower(self, node, build, *arrays):
        whole = build.empty(self.shape(node, *(each.shape for each in arrays)))
        start, axis = 0, node.attributes["axis"]
        for each in arrays:
            end = start + each.shape[axis]
            part = build.part(whole, _along(axis, len(whole.shape), slice(start, end)))
            build.elementwise("a", each, into=part)
            start = end
        return whole

    def shape(self, node, *shapes):
        (axis,) = axes_of(node.attributes["axis"], len(shapes[0]))
        others = {(*s[:axis], -1, *s[axis + 1 :]) for s in shapes}
        if len(others) != 1:
            raise ValueError(
                "shapes %s differ in other axes than %d" % (", ".join(map(str, shapes)), axis)
            )
        return (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])

    def gradient(self, node, grad):
        axis = node.attributes["axis"]
        return [
            part_of_whole_op(grad, *node.inputs, axis=axis, number=i)
            for i in range(len(node.inputs))
        ]


class PartOfWholeOp(TensorOp):
    """What array `number` has of g, which has the shape of all of them, concatenated."""

    label = "PartOfWhole({})"
    samples = (
        ((5, 4), (3, 4), (2, 4), {"axis": 0, "number": 1}),
        ((2, 8), (2, 3), (2, 1), (2, 4), {"axis": 1, "number": 2}),
    )

    def __call__(self, g, *arrays, axis, number):
        return TensorOp.__call__(self, g, *arrays, axis=axis, number=number)

    def forward(self, node, g, *arrays):
        axis, number = node.attributes["axis"], node.attributes["number"]
        start = sum(array.shape[axis] for array in arrays[:number])
        return g[_along(axis, g.ndim, slice(start, start + arrays[number].shape[axis]))]

    def lower(self, node, build, g, *arrays):
        return build.view(lambda array: self.forward(node, array, *arrays), g)

    def shape(self, node, g, *shapes):
        return shapes[node.attributes["number"]]

    def gradient(self, node, grad):
        _, *arrays = node.inputs
        parts = [zeroslike_op(array) for array in arrays]
        whole = list(parts)
        whole[node.attributes["number"]] = grad
        return [concatenate_op(*whole, axis=node.attributes["axis"]), *parts]

    def infer_dtype(self, node, dtypes):
        return dtypes[0]


def _of_view(index):
    """The index, with which numpy makes a view even of one element, and no number."""
    return index if any(each is Ellipsis for each in index) else (*index, Ellipsis)


class IndexOp(TensorOp):
    """x[index], of integers, slices with steps, None and Ellipsis."""

    keeps_dtype = True
    is_view = True
    label = "{}[{}]"
    samples = (
        ((5, 4), {"index": (1,)}),
        ((5, 4), {"index": (slice(None), slice(3, 0, -2))}),
        ((2, 3, 4), {"index": (Ellipsis, None, slice(1, None, 2))}),
    )

    def __call__(self, x, index):
        index = index if isinstance(index, tuple) else (index,)
        wrong = [
            i
            for i in index
            if not (i is None or i is Ellipsis or isinstance(i, (numbers.Integral, slice)))
        ]
        if wrong:
            raise TypeError(
                "an index is an integer, a slice, None or ..., not %r; hint: gather" % (wrong[0],)
            )
        return TensorOp.__call__(self, x, index=index)

    def index(self, shape, index):
        """The index for an array of this shape, from the node's attributes."""
        return index

    def forward(self, node, x):
        return x[_of_view(self.index(x.shape, **node.attributes))]

    def shape(self, node, shape):
        try:
            return np.broadcast_to(0, shape)[self.index(shape, **node.attributes)].shape
        except IndexError as error:
            raise ValueError("%s; the shape is %s" % (error, shape)) from None

    def gradient(self, node, grad):
        return [place_op(grad, node.inputs[0], part_of=self, **node.attributes)]


class SplitOp(IndexOp):
    """Part `number` of x, cut into equal parts along an axis."""

    label = "Split({},{},{},{})"
    samples = (((6, 4), {"parts": 3, "number": 1}), ((2, 6), {"parts": 2, "number": 1, "axis": 1}))

    def __call__(self, x, parts, number, axis=0):
        return TensorOp.__call__(self, x, parts=parts, number=number, axis=axis)

    def index(self, shape, parts, number, axis):
        (axis,) = axes_of(axis, len(shape))
        if shape[axis] % parts:
            raise ValueError("axis %d of shape %s has not %d equal parts" % (axis, shape, parts))
        size = shape[axis] // parts
        return _along(axis, len(shape), slice(number * size, (number + 1) * size))


class PlaceOp(TensorOp):
    """Zeros in the shape of x, with g where `part_of`, an IndexOp, takes its part from."""

    label = "Place({},{})"

    def __call__(self, g, x, part_of, **attributes):
        return TensorOp.__call__(self, g, x, part_of=part_of, **attributes)

    def taken(self, node):
        """The op whose gradient this is, and its attributes."""
        attributes = dict(node.attributes)
        return attributes.pop("part_of"), attributes

    def forward(self, node, g, x):
        op, attributes = self.taken(node)
        found = np.zeros(x.shape, g.dtype)
        found[op.index(x.shape, **attributes)] = g
        return found

    def lower(self, node, build, g, x):
        op, attributes = self.taken(node)
        found = build.elementwise("p0", shape=x.shape, numbers=(0,))
        part = build.part(found, _of_view(op.index(x.shape, **attributes)))
        build.elementwise("a", g, into=part)
        return found

    def shape(self, node, g, x):
        return x

    def gradient(self, node, grad):
        op, attributes = self.taken(node)
        return [op(grad, **attributes), zeroslike_op(node.inputs[1])]

    def infer_dtype(self, node, dtypes):
        return dtypes[0]


class PadOp(TensorOp):
    """x with a border: `widths` are (before, after) for each axis, `value` is what fills it."""

    keeps_dtype = True
    label = "Pad({},{},{})"
    samples = (((3, 4), {"widths": ((1, 2), (0, 3))}), ((4,), {"widths": ((2, 0),), "value": 7.0}))

    def __call__(self, x, widths, value=0):
        widths = tuple((int(before), int(after)) for before, after in widths)
        if any(width < 0 for pair in widths for width in pair):
            raise ValueError("pad: widths are %s; hint: none is below 0" % (widths,))
        return TensorOp.__call__(self, x, widths=widths, value=value)

    def forward(self, node, x):
        widths, value = node.attributes["widths"], node.attributes["value"]
        return np.pad(x.astype(np.result_type(x, value)), widths, constant_values=value)

    def lower(self, node, build, x):
        widths, value = node.attributes["widths"], node.attributes["value"]
        shape = self.shape(node, x.shape)
        found = build.elementwise("p0", shape=shape, numbers=(value,))
        inside = tuple(slice(b, b + extent) for extent, (b, _) in zip(x.shape, widths))
        build.elementwise("a", x, into=build.part(found, inside))
        return found

    def infer_dtype(self, node, dtypes):
        value = np.asarray(node.attributes["value"])
        return super().infer_dtype(node, [*dtypes, np.result_type(dtypes[0], value.dtype)])

    def shape(self, node, shape):
        widths = node.attributes["widths"]
        if len(widths) != len(shape):
            raise ValueError("%d pairs of widths for shape %s" % (len(widths), shape))
        return tuple(b + extent + a for extent, (b, a) in zip(shape, widths, strict=True))

    def gradient(self, node, grad):
        widths = node.attributes["widths"]
        return [index_op(grad, tuple(slice(b, -a if a else None) for b, a in widths))]


def flip_op(x, axis):
    """x with its elements along some axes in reverse; `axis` is one or several, from 0."""
    axes = {axis} if isinstance(axis, numbers.Integral) else set(axis)
    if min(axes) < 0:
        raise ValueError("flip: axis %s; hint: count axes from 0" % (axis,))
    return index_op(
        x, tuple(slice(None, None, -1 if a in axes else 1) for a in range(max(axes) + 1))
    )


def stack_op(*arrays, axis=0):
    """Arrays of one shape, one behind the other along a new axis."""
    return concatenate_op(*(expand_dims_op(array, axis) for array in arrays), axis=axis)


def _along(axis, rank, part):
    """An index that takes a part of one axis, and all of the others."""
    return tuple(part if a == axis % rank else slice(None) for a in range(rank))


transpose_op = TransposeOp()
reshape_op = ReshapeOp()
reshape_like_op = ReshapeLikeOp()
flatten_op = FlattenOp()
squeeze_op = SqueezeOp()
expand_dims_op = ExpandDimsOp()
broadcast_shape_op = BroadcastShapeOp()
concatenate_op = ConcatenateOp()
part_of_whole_op = PartOfWholeOp()
index_op = IndexOp()
split_op = SplitOp()
place_op = PlaceOp()
pad_op = PadOp()
PlaceOp.samples = (
    ((4,), (5, 4), {"part_of": index_op, "index": (1,)}),
    ((2, 3), (2, 6), {"part_of": split_op, "parts": 2, "number": 1, "axis": 1}),
)
