"""How far the first steps of two trainings may lie apart that differ by rounding alone.

Rounding decides whether a sum next to 0 passes a relu. Where it does in one training and does not
in the other, the gradients of that image differ by more than any rounding, and so do all later
predictions. The steps are therefore made here too, in float64: once as if all sums that rounding
could turn were positive, once as if they were negative.
"""

from __future__ import annotations

import numpy as np

from grader.checks.compare import Array

#: Several sums may turn, each its own way.
_SAFETY = 4.0


def softmax(x: Array) -> Array:
    """Of each row of a matrix."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def predictions(
    initial: list[Array],
    batches: list[tuple[Array, Array]],
    rate: float,
    unsure: list[float],
    passes: bool,
) -> list[Array]:
    """What the model predicts for each batch (images, one-hot labels), each before its step.

    Args:
        initial: weights of the layers, then their biases.
        rate: what the sum of the images' gradients is multiplied with.
        unsure: of each step, how near to 0 a sum is that rounding could turn.
        passes: whether such a sum passes its relu.
    """
    params = [values.astype(np.float64) for values in initial]
    found = []
    for (images, labels), near in zip(batches, unsure, strict=True):
        probabilities, gradients = _step(params, images, labels, near, passes)
        found.append(probabilities)
        params = [p - rate * g for p, g in zip(params, gradients, strict=True)]
    return found


def _step(
    params: list[Array], images: Array, labels: Array, near: float, passes: bool
) -> tuple[Array, list[Array]]:
    """Predictions, and the gradients summed over the images."""
    layers = len(params) // 2
    values, masks = [images.astype(np.float64)], []
    for layer in range(layers):
        sums = values[-1] @ params[layer] + params[layers + layer]
        mask = np.where(np.abs(sums) <= near, passes, sums > 0)
        masks.append(mask)
        values.append(sums * mask if layer < layers - 1 else sums)
    probabilities = softmax(values[-1])
    weights: list[Array] = []
    biases: list[Array] = []
    back = probabilities - labels
    for layer in reversed(range(layers)):
        weights.insert(0, values[layer].T @ back)
        biases.insert(0, back.sum(axis=0))
        if layer:
            back = (back @ params[layer].T) * masks[layer - 1]
    return probabilities, weights + biases


def turned(
    initial: list[Array],
    batches: list[tuple[Array, Array]],
    rate: float,
    unsure: list[float],
    like: list[Array],
) -> list[Array]:
    """How far predictions may move because sums next to 0 turn: an array for each batch.

    Whether a submission's gradients are those of a mean or of a sum is told by `like`, the
    predictions of a training by it.
    """
    ways = []
    for scale in (1 / len(batches[0][0]), 1.0):
        some, others = (
            predictions(initial, batches, rate * scale, unsure, passes) for passes in (False, True)
        )
        middle = [(a + b) / 2 for a, b in zip(some, others, strict=True)]
        distance = max(np.abs(a - b).max() for a, b in zip(middle, like, strict=True))
        spread = [_SAFETY * np.abs(a - b) for a, b in zip(some, others, strict=True)]
        ways.append((float(distance), spread))
    return min(ways, key=lambda way: way[0])[1]
