"""Batch norm, residual blocks and residual nets in float64: values, and gradients by hand.

Each layer gives its result and a function that takes the gradient back through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from grader.checks.harness import convolution_reference as convolutions
from grader.checks.harness.compare import Array
from grader.checks.harness.convolution_reference import Geometry

EPSILON, MOMENTUM = 1e-5, 0.1
_AXES = (0, 2, 3)

#: Takes a gradient back through a layer.
Back = Callable[[Array], Array]


def by_channel(values: Array) -> Array:
    """(C,) as (1, C, 1, 1)."""
    return values.reshape(1, -1, 1, 1)


def normalised(x: Array, mean: Array, variance: Array, epsilon: float = EPSILON) -> Array:
    """Each channel less its mean, over its deviation; both are (C,)."""
    return (x - by_channel(mean)) / np.sqrt(by_channel(variance) + epsilon)


def norm_gradients(
    x: Array, weight: Array, grad: Array, epsilon: float = EPSILON
) -> tuple[Array, Array, Array]:
    """The gradients of sum(grad * (normalised(x) * weight + bias)) for x, weight and bias, where
    mean and variance are the batch's own."""
    mean, variance = x.mean(_AXES), x.var(_AXES)
    unit = normalised(x, mean, variance, epsilon)
    moved = grad - by_channel(grad.mean(_AXES)) - unit * by_channel((grad * unit).mean(_AXES))
    of_x = moved * by_channel(weight / np.sqrt(variance + epsilon))
    return of_x, (grad * unit).sum(_AXES), grad.sum(_AXES)


def running(old: Array, new: Array, momentum: float = MOMENTUM) -> Array:
    """A running figure, moved towards that of a batch."""
    return (1 - momentum) * old + momentum * new


def sample_variance(x: Array) -> Array:
    """The variance of each channel, as it is estimated from a sample: over n - 1."""
    return np.asarray(x.var(_AXES, ddof=1))


class NetPlan(NamedTuple):
    """A residual net: the filters and the number of blocks of each stage.

    Attributes:
        norm: whether convolutions are followed by a norm of the batch.
        large: whether images are made smaller by 4 at first, as for a `size` of 64.
    """

    filters: tuple[int, ...]
    blocks: tuple[int, ...]
    classes: int
    channels: int
    norm: bool
    large: bool = False

    def words(self) -> str:
        """As it is called."""
        filters, blocks, classes, channels, norm, large = self
        said = ("" if norm else ", norm=False") + (", size=64" if large else "")
        return f"ResNet({filters}, {blocks}, classes={classes}, channels={channels}{said})"

    def stages(self) -> list[tuple[str, int, int, int]]:
        """(name, channels, filters, stride) of each block."""
        found, before = [], self.filters[0]
        for stage, (filters, count) in enumerate(zip(self.filters, self.blocks, strict=True)):
            for number in range(count):
                stride = 2 if stage and not number else 1
                found.append((f"layer{stage + 1}.{number}", before, filters, stride))
                before = filters
        return found

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """name -> shape of each parameter."""
        side = 7 if self.large else 3
        first = (self.filters[0], self.channels, side, side)
        found: dict[str, tuple[int, ...]] = {"conv1.weight": first}
        if self.norm:
            found |= _norm_shapes("bn1", self.filters[0])
        for name, channels, filters, stride in self.stages():
            own = block_shapes(channels, filters, stride, self.norm)
            found |= {f"{name}.{inner}": shape for inner, shape in own.items()}
        last = (self.classes, self.filters[-1])
        return {**found, "fc.weight": last, "fc.bias": last[:1]}


def block_shapes(
    channels: int, filters: int, stride: int, norm: bool
) -> dict[str, tuple[int, ...]]:
    """name -> shape of each parameter of a block."""
    found: dict[str, tuple[int, ...]] = {
        "conv1.weight": (filters, channels, 3, 3), "conv2.weight": (filters, filters, 3, 3),
    }  # fmt: skip
    changes = stride > 1 or channels != filters
    if changes:
        found["downsample.0.weight"] = (filters, channels, 1, 1)
    if norm:
        for name in ("bn1", "bn2", *(["downsample.1"] if changes else [])):
            found |= _norm_shapes(name, filters)
    return found


def _norm_shapes(name: str, channels: int) -> dict[str, tuple[int, ...]]:
    kinds = ("weight", "bias", "running_mean", "running_var")
    return {f"{name}.{kind}": (channels,) for kind in kinds}


def is_learned(name: str) -> bool:
    """Whether a parameter is learned, as running figures are not."""
    return "running" not in name


def random_parameters(
    random: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """Values of parameters: weights that keep the deviation, and norms that are not the usual."""
    found: dict[str, Array] = {}
    for name, shape in shapes.items():
        if len(shape) > 1:
            found[name] = random.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        elif name.endswith(("running_var", "weight")):
            found[name] = random.uniform(0.5, 1.5, shape)
        else:
            found[name] = random.uniform(-0.3, 0.3, shape)
    return found


@dataclass
class Pass:
    """One way through a net.

    Attributes:
        parameters: name -> values.
        train: whether norms take the batch's own figures.
        grads: of what is learned, once the gradient was taken back.
        moved: the new running figures.
    """

    parameters: Mapping[str, Array]
    train: bool
    grads: dict[str, Array] = field(default_factory=dict)
    moved: dict[str, Array] = field(default_factory=dict)

    def convolution(self, name: str, x: Array, stride: int = 1) -> tuple[Array, Back]:
        """A convolution that keeps the size, but for the stride."""
        w = self.parameters[f"{name}.weight"]
        side = w.shape[2] // 2
        g = Geometry(
            len(x), x.shape[1], len(w), x.shape[2:], w.shape[2:], (stride, stride), (side, side)
        )

        def back(grad: Array) -> Array:
            self.grads[f"{name}.weight"] = convolutions.gradient_of_filters(g, x, grad)
            return convolutions.gradient_of_images(g, w, grad)

        return convolutions.convolution(g, x, w), back

    def norm(self, name: str, x: Array) -> tuple[Array, Back]:
        """A norm of the batch; what it gets, if the net has none."""
        if f"{name}.weight" not in self.parameters:
            return x, lambda grad: grad
        weight, bias, mean, variance = (
            self.parameters[f"{name}.{kind}"]
            for kind in ("weight", "bias", "running_mean", "running_var")
        )
        if self.train:
            self.moved[f"{name}.running_mean"] = running(mean, x.mean(_AXES))
            self.moved[f"{name}.running_var"] = running(variance, sample_variance(x))
            mean, variance = x.mean(_AXES), x.var(_AXES)

        def back(grad: Array) -> Array:
            of_x, of_weight, of_bias = norm_gradients(x, weight, grad)
            self.grads[f"{name}.weight"], self.grads[f"{name}.bias"] = of_weight, of_bias
            return of_x

        return normalised(x, mean, variance) * by_channel(weight) + by_channel(bias), back

    def block(self, name: str, x: Array, stride: int) -> tuple[Array, Back]:
        """A residual block; `name` ends in a dot, or is empty."""
        inner, back1 = self._unit(f"{name}conv1", f"{name}bn1", x, stride)
        kept, relu1 = _relu(inner)
        branch, back2 = self._unit(f"{name}conv2", f"{name}bn2", kept, 1)
        way: tuple[Array, Back] = (x, lambda grad: grad)
        if f"{name}downsample.0.weight" in self.parameters:
            way = self._unit(f"{name}downsample.0", f"{name}downsample.1", x, stride)
        y, relu2 = _relu(branch + way[0])

        def back(grad: Array) -> Array:
            grad = relu2(grad)
            return back1(relu1(back2(grad))) + way[1](grad)

        return y, back

    def _unit(self, conv: str, norm: str, x: Array, stride: int) -> tuple[Array, Back]:
        found, of_convolution = self.convolution(conv, x, stride)
        found, of_norm = self.norm(norm, found)
        return found, lambda grad: of_convolution(of_norm(grad))

    def net(self, plan: NetPlan, x: Array) -> tuple[Array, Back]:
        """The logits of a net."""
        found, first = self._unit("conv1", "bn1", x, 2 if plan.large else 1)
        found, relu = _relu(found)
        backs = [first, relu]
        if plan.large:
            found, pool = max_pool(found)
            backs.append(pool)
        for name, _, _, stride in plan.stages():
            found, back = self.block(f"{name}.", found, stride)
            backs.append(back)
        means, size = found.mean((2, 3)), found.shape
        weight, bias = self.parameters["fc.weight"], self.parameters["fc.bias"]

        def back_of_all(grad: Array) -> Array:
            self.grads["fc.weight"], self.grads["fc.bias"] = grad.T @ means, grad.sum(0)
            grad = (grad @ weight)[:, :, None, None] / (size[2] * size[3])
            grad = np.broadcast_to(grad, size)
            for each in reversed(backs):
                grad = each(grad)
            return grad

        return means @ weight.T + bias, back_of_all


def _relu(x: Array) -> tuple[Array, Back]:
    return np.maximum(x, 0), lambda grad: np.where(x > 0, grad, 0)


def max_pool(x: Array) -> tuple[Array, Back]:
    """The largest element of windows of 3 x 3, each 2 after the one before, a border of 1 around
    all. Of equal elements the first one has the gradient."""
    rows, columns = x.shape[2:]
    out = (*x.shape[:2], (rows + 1) // 2, (columns + 1) // 2)
    windows = np.full((*out, 9), -np.inf)
    taps = list(Geometry(1, 1, 1, (rows, columns), (3, 3), (2, 2), (1, 1)).taps())
    for (oh, ow), (i, j), (row, column) in taps:
        windows[:, :, oh, ow, 3 * i + j] = x[:, :, row, column]
    largest = windows.argmax(-1)

    def back(grad: Array) -> Array:
        found = np.zeros(x.shape)
        for (oh, ow), (i, j), (row, column) in taps:
            taken = largest[:, :, oh, ow] == 3 * i + j
            found[:, :, row, column] += np.where(taken, grad[:, :, oh, ow], 0)
        return found

    return windows.max(-1), back


def step(
    plan: NetPlan, parameters: Mapping[str, Array], x: Array, labels: Array, rate: float
) -> tuple[float, dict[str, Array]]:
    """One step of gradient descent: the loss before it, and all parameters after it."""
    way = Pass(parameters, train=True)
    logits, back = way.net(plan, x)
    shifted = logits - logits.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    rows = np.arange(len(labels))
    grad = np.exp(logs)
    grad[rows, labels] -= 1
    back(grad / len(labels))
    after = {name: values - rate * way.grads.get(name, 0.0) for name, values in parameters.items()}
    return -float(logs[rows, labels].mean()), {**after, **way.moved}


def logits_of(plan: NetPlan, parameters: Mapping[str, Array], x: Array) -> Array:
    """The logits by running figures."""
    return Pass(parameters, train=False).net(plan, x)[0]


def accuracy(logits: Array, labels: Sequence[int] | Array) -> float:
    """The part of images whose largest logit is that of their label."""
    return float(np.mean(np.argmax(logits, 1) == np.asarray(labels)))
