"""A step of training that is made here accepts what rounding does to it, and no more."""

import contextlib
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from grader.checks.harness import mnist_reference
from grader.checks.harness.compare import Failure, verify
from grader.checks.harness.recipe import initial_parameters, one_hot
from grader.checks.harness.trainer import Trainer, names_of


def batch(seed=3, rows=50):
    """Images that are mostly black, and labels."""
    random = np.random.default_rng(seed)
    dark = random.random((rows, 784)) < 0.2
    images = random.uniform(0, 1, (rows, 784)).astype(np.float32) * dark
    return images, one_hot(random.integers(10, size=rows))


def step_in(precision, params, images, labels):
    """Predictions and gradients of a step whose products are of this precision."""
    layers = len(params) // 2
    low = [p.astype(precision) for p in params]
    values, sums = [images.astype(precision)], []
    for weights, biases in zip(low[:layers], low[layers:], strict=True):
        sums.append(values[-1] @ weights + biases)
        values.append(np.maximum(sums[-1], 0))
    odds = np.exp(sums[-1] - sums[-1].max(axis=1, keepdims=True))
    predictions = odds / odds.sum(axis=1, keepdims=True)
    back, grads = predictions - labels.astype(precision), [None] * len(params)
    for layer in reversed(range(layers)):
        grads[layer], grads[layers + layer] = values[layer].T @ back, back.sum(axis=0)
        if layer:
            back = (back @ low[layer].T) * (sums[layer - 1] > 0)
    return predictions, grads


def differs(got, right):
    """Names of what is out of its bound."""
    predictions, grads = got
    pairs = [(predictions, right.predictions, right.predictions_bound)]
    pairs += zip(grads, right.gradients, right.gradients_bounds, strict=True)
    names = ["predictions", *names_of(grads)]
    return [
        name
        for name, (a, b, bound) in zip(names, pairs, strict=True)
        if not (np.abs(a.astype(np.float64) - b) <= bound).all()
    ]


@pytest.mark.parametrize("seed", range(10))
def test_a_step_in_float32_is_within_its_bounds(seed):
    params = initial_parameters("mlp")
    images, labels = batch(seed)
    right = mnist_reference.step(
        [p.astype(np.float32).astype(float) for p in params], images, labels
    )
    assert differs(step_in(np.float32, params, images, labels), right) == []


def test_a_step_in_half_precision_is_not():
    params = initial_parameters("mlp")
    images, labels = batch()
    right = mnist_reference.step(params, images, labels)
    assert "predictions" in differs(step_in(np.float16, params, images, labels), right)


@pytest.mark.parametrize("model", ["logreg", "mlp"])
def test_the_gradients_are_those_of_the_loss(model):
    random = np.random.default_rng(1)
    params = [p + random.normal(scale=0.01, size=p.shape) for p in initial_parameters(model)]
    images, labels = batch(rows=7)
    right = mnist_reference.step(params, images, labels)
    for number, gradient in enumerate(right.gradients):
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        losses = []
        for sign in (1, -1):
            moved = [p.copy() for p in params]
            moved[number][place] += sign * 1e-6
            losses.append(mnist_reference.step(moved, images, labels).loss)
        slope = (losses[0] - losses[1]) / 2e-6 * len(images)
        assert slope == pytest.approx(gradient[place], rel=1e-4)


def test_no_gradient_and_one_of_another_scale_are_out_of_bounds():
    params = initial_parameters("mlp")
    images, labels = batch()
    right = mnist_reference.step(params, images, labels)
    for factor in (0, -1, 0.98, 1.02):
        wrong = [factor * gradient for gradient in right.gradients]
        assert differs((right.predictions, wrong), right) == names_of(params)


def test_a_relu_that_rounding_turns_is_allowed_for_and_no_more():
    """Two sums are 0 but for rounding, and what they add to a gradient cancels if both turn."""
    random = np.random.default_rng(5)
    params = [random.normal(scale=0.5, size=s) for s in ((6, 8), (8, 3), (8,), (3,))]
    images, labels = random.uniform(0, 1, (4, 6)), np.eye(3)[[0, 1, 2, 0]]
    params[2][2] = -images[1] @ params[0][:, 2] + 1e-9
    right = mnist_reference.step(params, images, labels)
    params[2][2] -= 2e-9
    turned = mnist_reference.step(params, images, labels)
    moved = np.abs(turned.gradients[0] - right.gradients[0])
    assert moved.max() > 1e-2
    for got, want, bound in zip(
        turned.gradients, right.gradients, right.gradients_bounds, strict=True
    ):
        verify(got, want, bound, "the other way")
    params[2][2] -= 0.01
    right = mnist_reference.step(params, images, labels)
    with pytest.raises(Failure):
        verify(turned.gradients[0], right.gradients[0], right.gradients_bounds[0], "far from 0")


def test_larger_weights_round_to_a_larger_error():
    images, _ = batch()
    params = initial_parameters("mlp")
    assert mnist_reference.rounding([100 * p for p in params], images) > mnist_reference.rounding(
        params, images
    )


def epoch_of(*losses):
    """The mean loss of an epoch of steps that have these losses."""
    trainer, left = Trainer.__new__(Trainer), list(losses)
    trainer.remote = SimpleNamespace(doing=lambda _: contextlib.nullcontext(), now=lambda: 0.0)
    trainer.name, trainer.steps, trainer.is_short = "mlp on numpy", len(losses), False
    trainer._pace = lambda took: None
    trainer._step = lambda step, words, is_watched: trainer._loss(np.array([left.pop(0)]), words)
    return trainer.epoch(0)[0]


def test_losses_are_finite_each_and_in_sum():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # on the terminal of whoever grades
        assert epoch_of(3.0, 1.0) == 2
        with pytest.raises(Failure, match="step 2 of epoch 1: the loss is nan, the first loss"):
            epoch_of(3.0, np.nan)
        with pytest.raises(Failure, match="the sum of the losses of epoch 1 is not finite"):
            epoch_of(1e308, 1e308)
