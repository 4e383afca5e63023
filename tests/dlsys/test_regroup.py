"""What a GPU's kernels are made of once more: fused reductions, and values computed again."""

import numpy as np
import pytest

from dlsys import autodiff, dtypes, models, ndarray, nn, ops
from dlsys.backend import program
from dlsys.backend.fused import Fused, FusedReduce
from dlsys.backend.fusion import fuse
from dlsys.backend.instructions import Reduce
from dlsys.backend.regroup import fuse_reductions, join_updates, recompute, spare_reads
from dlsys.step.measuring import traffic

GPU = ndarray.gpu(0)
PASSES = (fuse, recompute, fuse_reductions, spare_reads, join_updates)
CHANNELS = (0, 2, 3)


def run(outputs, feeds, dtype=dtypes.FLOAT32, passes=PASSES, updates=None):
    """(the values, the program)."""
    kinds = {v: (x.shape, dtype) for v, x in feeds.items()}
    order = autodiff.find_topo_sort([*outputs, *(updates or {}).values()])
    made = program.Program(order, outputs, kinds, GPU, updates=updates, passes=passes)
    made.feed({v: ndarray.array(x, GPU, dtype) for v, x in feeds.items()})
    return [value.asnumpy() for value in made.run()], made


def agree(outputs, feeds, passes=PASSES, **more):
    """Runs the outputs as they are and fused; the fused program."""
    plain, _ = run(outputs, feeds, dtypes.FLOAT64, ())
    found, made = run(outputs, feeds, dtypes.FLOAT64, passes, **more)
    for got, expected in zip(found, plain, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)
    for each in made.instructions:
        later = set()  # what is read must not be made by a member further behind
        for member in reversed(getattr(each, "members", ())):
            later.update(view.buffer for view in member.targets)
            assert not later & {view.buffer for view in member.sources}
    return made


def normal(shape, mean=0.0, deviation=1.0, seed=0):
    return np.random.default_rng(seed).normal(mean, deviation, shape)


@pytest.mark.parametrize("passes", [(fuse, fuse_reductions), PASSES])
def test_a_sum_that_nobody_reads_takes_nothing_with_it(passes):
    """As a loss of which only the gradient is wanted, whose shape alone that needs."""
    x, g = ops.variable("x"), ops.variable("g")
    y = ops.relu(x) * 2.0
    outputs = [y, *autodiff.gradients(ops.sum(y * g), [x])]
    made = agree(outputs, {x: normal((4, 12, 6, 13)), g: normal((4, 12, 6, 13), seed=1)}, passes)
    assert not any(isinstance(each, FusedReduce | Reduce) for each in made.instructions)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((9, 5, 7, 9), CHANNELS), ((8, 3, 8, 8), CHANNELS), ((2, 3, 96, 96), CHANNELS),
        ((70, 260), (0,)), ((1100, 128), (0,)), ((3, 1025), (1,)), ((3000,), (0,)),
    ],
)  # fmt: skip
def test_a_variance_keeps_its_digits_far_from_zero_in_one_look(shape, axes):
    """The mean of the squares less the square of the mean would have none left."""
    values = normal(shape, 1000.0).astype(np.float32)
    x = ops.variable("x")
    found, made = run([ops.variance(x, axes), ops.mean(x, axes)], {x: values})
    wide = values.astype(np.float64)
    np.testing.assert_allclose(found[0], wide.var(axes), rtol=1e-4)
    np.testing.assert_allclose(found[1], wide.mean(axes), rtol=5e-7)
    (one,) = made.instructions
    assert isinstance(one, FusedReduce)


def test_a_variance_of_one_element_or_of_equal_ones_is_zero():
    x = ops.variable("x")
    equal = np.broadcast_to(normal(40).astype(np.float32), (9000, 40))
    cases = (np.full((3, 1), 7.0), 1), (np.full((2, 700), 0.1), 1), (equal, 0), (equal.T, 1)
    for values, axis in cases:
        found, _ = run([ops.variance(x, axis)], {x: np.ascontiguousarray(values)})
        np.testing.assert_array_equal(found[0], 0)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_variance_of_large_numbers_is_not_lost(axis):
    """Whose squares no float32 holds."""
    values = np.full((9, 2100) if axis else (2100, 9), 3e20, np.float32)
    x = ops.variable("x")
    found, _ = run([ops.variance(x, axis)], {x: values})
    np.testing.assert_array_equal(found[0], 0)


def normed(residual):
    """(outputs of a norm, relu and their gradient, what is fed)."""
    layer = nn.BatchNorm2d(6)
    names = ("x", "grad", "weight", "bias", *(("beside",) if residual else ()))
    x, grad, layer.weight, layer.bias, *beside = (ops.variable(name) for name in names)
    inner = layer(x, train=True)
    y = ops.relu(inner + beside[0] if residual else inner)
    wanted = [x, layer.weight, layer.bias, *beside]
    loss = ops.sum(y * grad)
    feeds = {x: normal((4, 6, 8, 8), 3.0, 2.0), grad: normal((4, 6, 8, 8), seed=1)}
    feeds.update({layer.weight: normal((6,), 1.0, seed=2), layer.bias: normal((6,), seed=3)})
    feeds.update({each: normal((4, 6, 8, 8), seed=4) for each in beside})
    return [y, *autodiff.gradients(loss, wanted)], feeds


@pytest.mark.parametrize(("residual", "most"), [(False, 8), (True, 13)])
def test_a_norm_reads_an_activation_once_for_all_its_sums_and_once_for_its_values(residual, most):
    """Arrays of the activation's size that are read and written: 25 and more as they were."""
    outputs, feeds = normed(residual)
    made = agree(outputs, feeds)
    sums = [each for each in made.instructions if isinstance(each, (Reduce, FusedReduce))]
    assert len(sums) == 2
    size = 8 * 4 * 6 * 8 * 8
    moved = sum(read + written for read, written in map(traffic, made.instructions))
    assert moved // size <= most


def test_a_norm_gives_the_same_bits_each_time():
    outputs, feeds = normed(True)
    first, _ = run(outputs, feeds)
    again, _ = run(outputs, feeds)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)


def test_sums_of_the_same_array_are_one_kernel_and_what_is_made_of_them_is_in_it():
    x = ops.variable("x")
    mean = ops.mean(x, CHANNELS, True)
    outputs = [ops.sqrt(mean + 3.0), ops.sum(ops.square(x), CHANNELS), ops.max(x, CHANNELS)]
    made = agree(outputs, {x: normal((3, 5, 4, 6))})
    (one,) = made.instructions
    assert isinstance(one, FusedReduce)
    assert len(one.outputs) == 3


def test_what_a_reduction_makes_of_each_element_may_be_wanted_too():
    x = ops.variable("x")
    power = ops.exp(x)
    for shape in ((3, 4, 5, 8), (70, 256), (5, 3)):
        made = agree([power, ops.sum(power, 0), ops.sum(power * x, 0)], {x: normal(shape)})
        (one,) = made.instructions
        assert one.results == 2


def test_sums_that_need_one_another_stay_apart():
    """The second sum reads the first one's result at each element."""
    x = ops.variable("x")
    total = ops.sum(x, CHANNELS, True)
    made = agree([ops.sum(ops.exp(x - total * 0.01), CHANNELS)], {x: normal((2, 3, 4, 5))})
    assert len(made.instructions) == 2


def test_sums_over_other_axes_and_of_other_arrays_stay_apart():
    x, y = ops.variable("x"), ops.variable("y")
    outputs = [ops.sum(x, 0), ops.sum(x, (0, 1)), ops.sum(y, 0)]
    made = agree(outputs, {x: normal((30, 4, 5)), y: normal((30, 4, 5), seed=1)})
    assert len(made.instructions) == 3


def test_a_value_of_one_array_is_computed_again_and_never_written():
    """d is read by an element-wise kernel on each side of a product, which reads it not."""
    x = ops.variable("x")
    d = x - ops.sum(x) * 0.01
    side = ops.exp(d)
    late = ops.tanh(side @ side) * d
    made = agree([late], {x: normal((6, 6))})
    fused_ones = [each for each in made.instructions if type(each) is Fused]
    assert fused_ones
    assert all(len(each.outputs) == 1 for each in fused_ones)
    apart = agree([late], {x: normal((6, 6))}, passes=(fuse,))
    assert any(len(getattr(each, "outputs", ())) == 2 for each in apart.instructions)


def test_a_value_of_two_arrays_is_written_if_two_read_it():
    x, y = ops.variable("x"), ops.variable("y")
    both = ops.exp(x) * y
    product = both @ both
    more = ops.tanh(product) * both
    outputs = [more, ops.tanh(more @ more) * both]
    made = agree(outputs, {x: normal((6, 6)), y: normal((6, 6), seed=1)})
    assert len(made.instructions) == 5


def test_each_norm_of_a_residual_block_has_two_kernels_of_sums():
    nn.seed(0)
    net = models.ResNet((4,), (1,))
    x = ops.variable("x", (2, 3, 8, 8))
    weights = net.parameters()
    loss = ops.mean(ops.square(net(x, train=True)))
    feeds = {x: normal((2, 3, 8, 8)), **{each: np.array(each.initial) for each in weights}}
    made = agree([loss, *autodiff.gradients(loss, weights)], feeds)
    assert not any(getattr(each, "axes", None) == CHANNELS for each in made.instructions)
    sums = [each for each in made.instructions if isinstance(each, FusedReduce)]
    assert sum(each.space.axes == CHANNELS for each in sums) == 6


def test_updates_of_one_shape_are_one_kernel_and_read_the_old_values():
    names = ("v", "w", "x", "y")
    v, w, x, y = (ops.variable(name) for name in names)
    feeds = {node: normal((7,), seed=seed) for seed, node in enumerate((v, w, x, y))}
    updates = {v: v * 0.5 + w, w: w - x * 0.1, x: x * 2.0}
    kinds = {node: (values.shape, dtypes.FLOAT64) for node, values in feeds.items()}
    order = autodiff.find_topo_sort(updates.values())
    made = program.Program(order, [], kinds, GPU, updates=updates, passes=PASSES)
    arrays = {node: ndarray.array(values, GPU, dtypes.FLOAT64) for node, values in feeds.items()}
    made.feed(arrays)
    made.run()
    wanted = (feeds[v] * 0.5 + feeds[w], feeds[w] - feeds[x] * 0.1, feeds[x] * 2, feeds[y])
    for node, expected in zip((v, w, x, y), wanted, strict=True):
        np.testing.assert_allclose(arrays[node].asnumpy(), expected, rtol=1e-14)
    many = {node: node * 0.5 for node in (v, w, x)}
    made = program.Program([*many, *many.values()], [], kinds, GPU, updates=many, passes=PASSES)
    assert len(made.instructions) == 1


def written_early(instructions, kept):
    """A pass: the last instruction, which writes w, comes as soon as all have read w."""
    *others, last = instructions
    w = last.output.buffer
    (place,) = (i for i, each in enumerate(others) if w in (v.buffer for v in each.sources))
    return [*others[: place + 1], last, *others[place + 1 :]]


def test_what_is_overwritten_meanwhile_is_not_read_again():
    """w is updated between the two readers of exp(w): the later one has the old value's."""
    w, v = ops.variable("w"), ops.variable("v")
    old = ops.exp(w)
    feeds = {w: normal((5, 5)), v: normal((5, 5), seed=1)}
    side = ops.tanh(old)
    wanted, passes = [side @ side * old], (written_early, recompute)
    (found,), _ = run(wanted, feeds, dtypes.FLOAT64, passes, updates={w: v})
    power = np.exp(feeds[w])
    np.testing.assert_allclose(found, np.tanh(power) @ np.tanh(power) * power, rtol=1e-12)
