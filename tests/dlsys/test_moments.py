"""Means and variances of what a convolution makes, from the moments of its tiles."""

import numpy as np
import pytest
from test_convolution import GPU
from test_hopper_last import NUMBERS
from test_regroup import agree

import dlsys
from dlsys import autodiff, dtypes, ndarray, ops
from dlsys.backend import hopper, program
from dlsys.backend.fused import FusedReduce
from dlsys.backend.fusion import fuse
from dlsys.backend.hopper_last import LastConvolution
from dlsys.backend.instructions import MatrixProduct
from dlsys.backend.lowering import Lowering
from dlsys.backend.moments import with_moments
from dlsys.backend.regroup import fuse_reductions, recompute, spare_reads
from dlsys.backend.view import new_view

CHANNELS = (0, 2, 3)
PASSES = (fuse, recompute, fuse_reductions, spare_reads, with_moments)


def moments_of(values, chunks):
    """(channels, chunks, 3) of values (N, C, H, W): the first chunk is of no element."""
    by_channel = values.transpose(1, 0, 2, 3).reshape(values.shape[1], -1)
    parts = np.array_split(by_channel, chunks - 1, axis=1)
    found = [
        (np.full(len(part), part.shape[1]), part.mean(1), part.shape[1] * part.var(1))
        for part in parts
    ]
    none = np.zeros((len(by_channel), 1, 3))
    return np.concatenate([none, np.moveaxis(found, 2, 0)], axis=1).astype(np.float32)


@pytest.mark.parametrize("chunks", [2, 9, 40, 300])
def test_sums_and_squares_are_those_of_all_moments(chunks):
    values = np.random.default_rng(0).normal(100, 1, (5, 70, 8, 9)).astype(np.float32)
    x = ops.variable("x")
    outputs = [ops.mean(x, CHANNELS), ops.sqrt(ops.variance(x, CHANNELS) + 1e-5)]

    def given(instructions, kept):
        (one,) = instructions
        assert isinstance(one, FusedReduce)
        known = moments_of(values, chunks)
        return [one.from_moments(new_view(known.shape, dtypes.FLOAT32, values=known))]

    order = autodiff.find_topo_sort(outputs)
    kinds = {x: (values.shape, dtypes.FLOAT32)}
    passes = (fuse, fuse_reductions, given)
    made = program.Program(order, outputs, kinds, GPU, passes=passes)
    made.feed({x: ndarray.array(np.zeros(values.shape, np.float32), GPU)})  # which nobody reads
    mean, deviation = (each.asnumpy() for each in made.run())
    wide = values.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(CHANNELS), rtol=5e-7)
    np.testing.assert_allclose(deviation, wide.std(CHANNELS), rtol=1e-4)


def lowered(outputs, fed, dtype, monkeypatch, parts=1):
    """Instructions for a GPU that nobody has here; convolutions have so many parts."""
    monkeypatch.setattr(hopper, "is_emulated", lambda: False)
    monkeypatch.setattr(hopper, "capability", lambda: (9, 0))
    kinds = {node: (shape, dtype) for node, shape in fed.items()}
    order = [node for node in autodiff.find_topo_sort(outputs) if node not in kinds]
    made = Lowering(kinds, default=dtype, most_partial=1 << 17, tf32=True).with_nodes(order)
    found, kept = [], {made.values[each].buffer for each in outputs}
    for each in made.instructions:
        if isinstance(each, LastConvolution):
            each.cut(each.likely(1)[0][0], parts)
        found += each.and_sum() if isinstance(each, LastConvolution) else [each]
    for each in PASSES:
        before = [(instruction, instruction.operands) for instruction in found]
        found = each(found, kept)
        assert all(one.operands == operands for one, operands in before), "others may know it"
    return found


def reduced(y):
    """What batch norm wants of y."""
    return [ops.mean(y, CHANNELS), ops.variance(y, CHANNELS)]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("parts", [1, 2, 4, 5])
def test_a_norm_behind_a_convolution_reads_moments_or_parts(dtype, parts, monkeypatch):
    x, w = ops.variable("x", dtype=dtype), ops.variable("w", dtype=dtype)
    y = ops.conv2d(x, w, padding=1, method="wgmma")
    fed = {x: (4, 16, 8, 8), w: (24, 16, 3, 3)}
    made = lowered([y, *reduced(y)], fed, dtype, monkeypatch, parts)
    (convolution,) = (each for each in made if isinstance(each, LastConvolution))
    (sums,) = (each for each in made if isinstance(each, FusedReduce))
    assert sums.of_moments == convolution.gathers == (parts == 1)
    assert convolution.adds == (parts in (1, 5))
    if parts == 1:
        tiles = convolution._tiles * hopper.boxes_of(convolution._shape[0])
        assert sums.scratch.shape == (24, tiles, 3) == (24, *sums.sizes[:1], 3)
        assert sums.scratch in sums.sources and sums.scratch not in sums.written
        assert sums.scratch in convolution.written
    elif parts < 5:
        values = {convolution.output.buffer}
        assert {view.buffer for view in sums.inputs} == values
        assert len(sums.inputs) == parts and len(sums.outputs) == 3  # it writes the value, too


@pytest.mark.parametrize(
    "outputs",
    [
        lambda y, x: [ops.mean(ops.square(y), CHANNELS)],
        lambda y, x: [ops.mean(y, (0, 2))],
        lambda y, x: [ops.max(y, CHANNELS), ops.mean(y, CHANNELS)],
        lambda y, x: [ops.mean(y[:, :8], CHANNELS)],
        lambda y, x: [ops.mean(y + 1.0, CHANNELS), ops.variance(y, CHANNELS)],
        lambda y, x: [ops.mean(ops.relu(y), CHANNELS)],
        lambda y, x: [ops.mean(y + ops.sum(x), CHANNELS)],
    ],
)
def test_other_sums_read_the_value(outputs, monkeypatch):
    x, w = ops.variable("x"), ops.variable("w")
    y = ops.conv2d(x, w, padding=1, method="wgmma")
    fed = {x: (4, 16, 8, 8), w: (24, 16, 3, 3)}
    made = lowered([y, *outputs(y, x)], fed, dtypes.FLOAT32, monkeypatch)
    assert not any(getattr(each, "of_moments", False) for each in made)
    assert not any(getattr(each, "gathers", False) for each in made)


def test_what_reads_all_that_a_value_is_made_of_does_not_read_it():
    """relu(a * s), which a product wants; what comes behind it reads a, and so makes it again."""
    a, s, w = (ops.variable(name) for name in ("a", "s", "w"))
    shape, random = (64, 48), np.random.default_rng(0)
    y = ops.relu(a * ops.broadcast_to(s, shape))
    total = ops.broadcast_to(ops.sum(y @ w), shape)
    feeds = {a: shape, s: shape[1:], w: (48, 40)}
    feeds = {node: random.normal(size=extents) for node, extents in feeds.items()}
    for behind, reads in ((y * y + a, 1), (y * y, 2)):  # which reads no a, and so would read more
        made = agree([behind * total], feeds, (fuse, recompute, fuse_reductions, spare_reads))
        (product,) = (each for each in made.instructions if isinstance(each, MatrixProduct))
        read = [view.buffer for each in made.instructions for view in each.inputs]
        assert read.count(product.inputs[0].buffer) == reads


@pytest.mark.parametrize("factor", [0.5, None])
def test_what_is_overwritten_where_it_was_read_is_not_read_again(factor):
    """exp(w), and a new w in one kernel: what comes behind it finds the new w alone."""
    found = []
    for ctx in (ndarray.cpu(0), GPU):
        w, v = dlsys.parameter("w", np.full((64, 48), 2.0, np.float32)), ops.variable("v")
        y = ops.exp(w)
        new = y if factor is None else w * factor
        out = y * ops.broadcast_to(ops.sum(y @ v), (64, 48)) * (w if factor is None else new)
        step = dlsys.compile([out], updates={w: new}, ctx=ctx)
        feeds = {v: np.full((48, 40), 1e-4, np.float32)}
        found.append(step(feeds, as_numpy=True)[0])
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_sums_of_numbers_alone_read_nothing():
    x = ops.variable("x")
    total = ops.sum(ops.exp(ops.ones_like(x)), 0)
    step = dlsys.compile([total], ctx=GPU)
    found = step({x: np.ones((300, 40), np.float32)}, as_numpy=True)[0]
    np.testing.assert_allclose(found, np.full(40, 300 * np.exp(1)), rtol=1e-5)
