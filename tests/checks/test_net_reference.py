"""What part 4 is graded by: convolutions by definition, norms, nets, and their gradients."""

import dataclasses

import numpy as np
import pytest

from grader.checks import residual_nets
from grader.checks.harness import convolution_reference as convolutions
from grader.checks.harness import net_reference as nets
from grader.checks.harness.compare import Failure, verify_told
from grader.checks.harness.convolution_reference import Geometry

PLAN = nets.NetPlan((2, 3), (1, 1), 3, 2, True)


def differences(function, at, step=1e-5):
    """Central differences of a function of an array."""
    found = np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        sides = []
        for sign in (1, -1):
            moved = at.copy()
            moved[index] += sign * step
            sides.append(function(moved))
        found[index] = (sides[0] - sides[1]) / (2 * step)
    return found


def test_a_convolution_by_hand():
    g = Geometry(1, 1, 1, (2, 3), (2, 2), padding=(0, 1))
    x, w = np.arange(6.0).reshape(g.x), np.array([1.0, 10, 100, 1000]).reshape(g.w)
    assert convolutions.convolution(g, x, w).tolist() == [[[[3000, 4310, 5421, 502]]]]


@pytest.mark.parametrize("seed", range(12))
def test_the_gradients_of_a_convolution_are_what_makes_it_linear(seed):
    """sum(grad * conv(x, w)) is sum(x * its gradient for x), and sum(w * its gradient for w)."""
    random = np.random.default_rng(seed)
    g = convolutions.random_geometry(random)
    x, w, grad = (random.normal(size=shape) for shape in (g.x, g.w, g.y))
    total = np.sum(grad * convolutions.convolution(g, x, w))
    assert np.sum(x * convolutions.gradient_of_images(g, w, grad)) == pytest.approx(total)
    assert np.sum(w * convolutions.gradient_of_filters(g, x, grad)) == pytest.approx(total)
    columns = random.normal(size=g.columns)
    folded = np.sum(x * convolutions.col2im(g, columns))
    assert np.sum(columns * convolutions.im2col(g, x)) == pytest.approx(folded)


def test_random_geometries_have_all_that_goes_wrong():
    random = np.random.default_rng(0)
    found = [convolutions.random_geometry(random) for _ in range(60)]
    for name in ("size", "kernel", "stride", "padding", "dilation"):
        assert any(pair[0] != pair[1] for pair in (getattr(g, name) for g in found)), name
    assert {g.groups for g in found} == {1, 2, 3}
    assert any(g.kernel[0] % 2 == 0 for g in found)
    assert all(min(g.out) > 0 for g in found)


def test_what_is_taken_by_mistake_gives_another_result_of_the_same_shape():
    random = np.random.default_rng(1)
    g = Geometry(1, 1, 1, (9, 8), (2, 3), (2, 1), (1, 2), (1, 2))
    x = random.normal(size=g.x)
    right = convolutions.im2col(g, x)
    others = [convolutions.im2col(other, x) for other, _ in convolutions.mistaken(g)]
    assert len(others) == 7
    for other in others:
        assert other.shape == right.shape and not np.array_equal(other, right)


def test_the_gradients_of_a_norm_are_those_of_differences():
    random = np.random.default_rng(2)
    x, weight = random.normal(size=(2, 2, 3, 1)), random.uniform(0.5, 2, 2)
    bias, grad = random.normal(size=2), random.normal(size=x.shape)

    def loss(x, weight, bias):
        unit = nets.normalised(x, x.mean((0, 2, 3)), x.var((0, 2, 3)))
        return np.sum(grad * (unit * nets.by_channel(weight) + nets.by_channel(bias)))

    found = nets.norm_gradients(x, weight, grad)
    wanted = (
        differences(lambda x: loss(x, weight, bias), x),
        differences(lambda weight: loss(x, weight, bias), weight),
        differences(lambda bias: loss(x, weight, bias), bias),
    )
    for got, right in zip(found, wanted, strict=True):
        assert np.allclose(got, right, atol=1e-7)


def test_the_gradient_of_the_largest_of_windows_is_that_of_differences():
    random = np.random.default_rng(4)
    x = random.permutation(2.0 * np.arange(2 * 5 * 6)).reshape(1, 2, 5, 6)
    y, back = nets.max_pool(x)
    assert y.shape == (1, 2, 3, 3)
    assert y[0, 1, 0, 2] == x[0, 1, :2, 3:].max() and y[0, 1, 2, 1] == x[0, 1, 3:, 1:4].max()
    grad = random.normal(size=y.shape)
    wanted = differences(lambda x: np.sum(grad * nets.max_pool(x)[0]), x)
    assert np.allclose(back(grad), wanted, atol=1e-6)


def test_a_step_of_a_net_goes_down_the_gradient_of_differences():
    random = np.random.default_rng(3)
    values = nets.random_parameters(random, PLAN.shapes())
    x, labels = random.normal(size=(3, 2, 4, 3)), np.array([0, 2, 1])
    _, after = nets.step(PLAN, values, x, labels, 1.0)
    for name in ("conv1.weight", "layer2.0.downsample.0.weight", "layer2.0.bn1.bias", "fc.weight"):

        def loss(value, name=name):
            return nets.step(PLAN, {**values, name: value}, x, labels, 0.0)[0]

        slopes = differences(loss, values[name])
        assert np.allclose(values[name] - after[name], slopes, atol=1e-6), name


def test_running_figures_move_and_all_else_that_is_not_learned_stays():
    random = np.random.default_rng(4)
    values = nets.random_parameters(random, PLAN.shapes())
    x = random.normal(size=(3, 2, 4, 3))
    way = nets.Pass(values, train=True)
    way.net(PLAN, x)
    assert way.moved.keys() == {name for name in values if not nets.is_learned(name)}
    before = way.convolution("conv1", x)[0]
    right = 0.9 * values["bn1.running_var"] + 0.1 * before.var((0, 2, 3), ddof=1)
    assert np.allclose(way.moved["bn1.running_var"], right)


def test_the_images_of_the_training_can_be_learned_but_not_looked_up():
    """The nearest image tells the class of a fifth of the others wrongly."""
    random = np.random.default_rng(5)
    x, labels = residual_nets.strokes(random, 320)
    others, wanted = residual_nets.strokes(random, 200)
    apart = ((others[:, None] - x[None]) ** 2).sum((2, 3, 4))
    nearest = np.mean(labels[apart.argmin(1)] == wanted)
    assert nearest < residual_nets._LEAST
    assert x.shape == (320, 1, 10, 12) and set(labels) == {0, 1, 2, 3}


def test_the_hint_is_the_mistake_that_explains_the_most():
    right = np.arange(10.0)
    got = right.copy()
    got[2:] = -1
    half = np.where(np.arange(10) < 7, -1.0, 50.0)
    ways = [(half, "half of it"), (np.full(10, -1.0), "all of it"), (np.zeros(3), "another shape")]
    with pytest.raises(Failure) as failure:
        verify_told(got, right, 0.0, "a call", iter(ways))
    assert failure.value.hint == "all of it"
    with pytest.raises(Failure) as failure:
        verify_told(got, right, 0.0, "a call", [(right + 5, "nothing of it")])
    assert failure.value.hint != "nothing of it"
    with pytest.raises(Failure) as failure:
        verify_told(got.reshape(2, 5), right.reshape(5, 2), 0.0, "a call", ())
    assert "in another order" in failure.value.hint
    with pytest.raises(Failure) as failure:
        verify_told(np.full(10, np.nan), right, 0.0, "a call", ())
    assert failure.value.hint.startswith("NaN comes of 0/0")


def test_a_geometry_in_words():
    g = Geometry(1, 2, 2, (4, 4), (1, 1))
    assert g.words() == "stride 1, no padding"
    assert dataclasses.replace(g, groups=2, stride=(1, 2)).words() == "stride (1, 2), groups 2"
