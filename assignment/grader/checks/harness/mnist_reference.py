"""One training step in float64, to which a submission's step is compared.

Rounding decides whether a sum near 0 passes a relu. If it passes here but not in the submission,
the gradients of that image differ by more than rounding; the bounds include that difference. Each
step starts from the submission's own weights, since training amplifies rounding without bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grader.checks.harness.compare import ROUND, Array

#: Magnitude of the sums in a network at its start, for which the bounds below are made.
_USUAL = 16.0
#: What a gradient may err by, of its largest element: a thousand roundings and more.
_SLACK = 1e-3


@dataclass(frozen=True)
class Step:
    """The right result of a step, and the bounds of its errors.

    Attributes:
        loss: the mean over the images, before the step.
        loss_bound: of the error of the loss.
        predictions: (N, classes), before the step.
        predictions_bound: of the error of each prediction.
        gradients: of the sum of the images' losses, one array a parameter.
        gradients_bounds: arrays of the same shapes.
    """

    loss: float
    loss_bound: float
    predictions: Array
    predictions_bound: float
    gradients: list[Array]
    gradients_bounds: list[Array]


def softmax(x: Array) -> Array:
    """Softmax of each row of a matrix."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def rounding(params: list[Array], images: Array) -> float:
    """The bound of the rounding error of a prediction.

    It is the float32 rounding of all sums that lead to a prediction, times 8 for the layers and the
    exponential, and more if the sums are larger than at the start of training.

    Args:
        params: weights of the layers, then their biases.
        images: (N, pixels).
    """
    layers = len(params) // 2
    work, largest, values = 0.0, 0.0, images.astype(np.float64)
    for weights, biases in zip(params[:layers], params[layers:], strict=True):
        work += 8 + 2 * np.sqrt(len(weights))
        largest = max(largest, float((np.abs(values) @ np.abs(weights) + np.abs(biases)).max()))
        values = np.maximum(values @ weights + biases, 0)
    return float(8 * ROUND * work * max(1.0, largest / _USUAL))


def forward(params: list[Array], images: Array) -> Array:
    """Predictions (N, classes) of a model without a step."""
    return softmax(_layers(params, images)[-1])


def step(params: list[Array], images: Array, labels: Array) -> Step:
    """One step on the batch.

    Args:
        params: weights of the layers, then their biases, in float64.
        images: (N, pixels).
        labels: (N, classes), one-hot.
    """
    near = rounding(params, images)
    sums = _layers(params, images)
    predictions = softmax(sums[-1])
    shifted = sums[-1] - sums[-1].max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    loss = float(-(labels * logs).sum(axis=1).mean())
    gradients, turned = _backward(params, images, sums, predictions - labels, near)
    slack = [_SLACK * float(np.abs(g).max()) + len(images) * near for g in gradients]
    return Step(
        loss=loss,
        loss_bound=4 * near * (1 + abs(loss)),
        predictions=predictions,
        predictions_bound=near,
        gradients=gradients,
        gradients_bounds=[a + b for a, b in zip(turned, slack, strict=True)],
    )


def _layers(params: list[Array], images: Array) -> list[Array]:
    """The sums of each layer before its relu; the last are the logits."""
    layers = len(params) // 2
    sums, values = [], images.astype(np.float64)
    for weights, biases in zip(params[:layers], params[layers:], strict=True):
        sums.append(values @ weights + biases)
        values = np.maximum(sums[-1], 0)
    return sums


def _backward(
    params: list[Array], images: Array, sums: list[Array], back: Array, near: float
) -> tuple[list[Array], list[Array]]:
    """The gradients of the sum over the images, and bounds of their change if rounding moves sums
    within `near` of 0 to the other side of the relu. `back` is the gradient of the logits."""
    layers = len(params) // 2
    grads: list[Array] = [np.empty(0)] * len(params)
    moved = list(grads)
    moves = np.zeros(back.shape)
    for layer in reversed(range(layers)):
        values = np.maximum(sums[layer - 1], 0) if layer else images.astype(np.float64)
        grads[layer], grads[layers + layer] = values.T @ back, back.sum(axis=0)
        moved[layer], moved[layers + layer] = values.T @ moves, moves.sum(axis=0)
        if layer:
            unsure, passes = np.abs(sums[layer - 1]) <= near, sums[layer - 1] > 0
            back, moves = back @ params[layer].T, moves @ np.abs(params[layer]).T
            moves = np.where(unsure, np.abs(back) + moves, moves * passes)
            back = back * passes
    return grads, moved
