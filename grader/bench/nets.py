"""A training step of a net of three layers: forward, backward and SGD, in each library.

Hidden layers have relu, the loss is cross entropy. All data lie on the device.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dlsys
from dlsys import autodiff, ops

RATE = 0.1
Arrays = list[Any]


@dataclass(frozen=True)
class Net:
    """The sizes of the layers, the inputs first, and the rows of a batch."""

    layers: tuple[int, ...]
    batch: int

    @property
    def name(self) -> str:
        """400-16-16-10."""
        return "-".join(map(str, self.layers))

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(a * b + b for a, b in itertools.pairwise(self.layers))

    @property
    def flops(self) -> float:
        """Of the matrix products of a step; the inputs of the net need no gradient."""
        products = [2.0 * self.batch * a * b for a, b in itertools.pairwise(self.layers)]
        return 3 * sum(products) - products[0]

    def values(self) -> tuple[Any, Any, Arrays, Arrays]:
        """Inputs, labels as probabilities, weights and biases; the same every time."""
        random = np.random.default_rng(0)
        sizes = list(itertools.pairwise(self.layers))
        weights = [random.normal(0, 1 / np.sqrt(a), (a, b)).astype(np.float32) for a, b in sizes]
        biases = [np.zeros(b, np.float32) for _, b in sizes]
        x = random.random((self.batch, self.layers[0]), dtype=np.float32)
        classes = random.integers(0, self.layers[-1], self.batch)
        return x, np.eye(self.layers[-1], dtype=np.float32)[classes], weights, biases


#: By parameter count, at the full batch; and the MLP of the assignment.
BY_PARAMETERS = tuple(
    Net((400, *hidden, 10), 5000) for hidden in ((16, 16), (32, 16), (64, 32), (128, 32), (256, 64))
)
MLP = Net((784, 256, 100, 10), 1000)


def our_step(net: Net, ctx: Any, tf32: bool = False) -> tuple[Any, dict[Any, Any]]:
    """(the compiled step, node -> array that it is fed)."""
    images, labels, weights, biases = net.values()
    x, y = ops.variable("x"), ops.variable("y")
    w = [dlsys.parameter(f"w{i}", each) for i, each in enumerate(weights)]
    b = [dlsys.parameter(f"b{i}", each) for i, each in enumerate(biases)]
    hidden = x
    for i in range(len(w)):
        hidden = hidden @ w[i] + b[i]
        hidden = ops.relu(hidden) if i < len(w) - 1 else hidden
    loss = ops.cross_entropy(hidden, y)
    grads = autodiff.gradients(loss, [*w, *b])
    updates = {p: p - RATE * g for p, g in zip([*w, *b], grads, strict=True)}
    return dlsys.compile(loss, updates, ctx=ctx, tf32=tf32), {x: images, y: labels}


def numpy_step(net: Net) -> Callable[[], float]:
    """The same by hand: its gradients are written out."""
    x, y, weights, biases = net.values()

    def step() -> float:
        layers = [x]
        for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
            hidden = layers[-1] @ w + b
            layers.append(np.maximum(hidden, 0) if i < len(weights) - 1 else hidden)
        scores = layers[-1] - layers[-1].max(1, keepdims=True)
        shares = np.exp(scores)
        sums = shares.sum(1, keepdims=True)
        loss = float((np.log(sums[:, 0]) - (scores * y).sum(1)).mean())
        at_output = (shares / sums - y) / np.float32(net.batch)
        for i in reversed(range(len(weights))):
            of_weights, of_biases = layers[i].T @ at_output, at_output.sum(0)
            if i:
                at_output = (at_output @ weights[i].T) * (layers[i] > 0)
            weights[i] -= RATE * of_weights
            biases[i] -= RATE * of_biases
        return loss

    return step


def torch_step(net: Net, device: str) -> Callable[[], Any]:
    """The same in PyTorch, eagerly."""
    import torch

    images, labels, weights, biases = net.values()
    params = [torch.tensor(each, device=device, requires_grad=True) for each in weights + biases]
    x, y = (torch.tensor(each, device=device) for each in (images, labels))
    count = len(weights)

    def step() -> Any:
        hidden = x
        for i in range(count):
            hidden = torch.addmm(params[count + i], hidden, params[i])
            hidden = torch.relu(hidden) if i < count - 1 else hidden
        loss = torch.nn.functional.cross_entropy(hidden, y)
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            torch._foreach_add_(params, grads, alpha=-RATE)
        return loss.detach()

    return step


def jax_step(net: Net) -> Callable[[], Any]:
    """The same in JAX, as one compiled function."""
    import jax

    images, labels, weights, biases = net.values()
    x, y = jax.device_put(images), jax.device_put(labels)
    params = [jax.device_put(each) for each in weights + biases]
    count = len(weights)

    def loss_of(params: Arrays, x: Any, y: Any) -> Any:
        hidden = x
        for i in range(count):
            hidden = hidden @ params[i] + params[count + i]
            hidden = jax.nn.relu(hidden) if i < count - 1 else hidden
        return -(y * jax.nn.log_softmax(hidden)).sum(1).mean()

    def one(params: Arrays, x: Any, y: Any) -> tuple[Arrays, Any]:
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        return [p - RATE * g for p, g in zip(params, grads, strict=True)], loss

    compiled = jax.jit(one)

    def step() -> Any:
        params[:], loss = compiled(params, x, y)
        return loss

    return step
