"""The training loop. It runs here, drives the child, and computes some of the child's steps too.

The labels of the validation images stay here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from grader.checks.harness import mnist_reference
from grader.checks.harness.answers import SMALL
from grader.checks.harness.compare import ROUND, Array, Failure, verify
from grader.checks.harness.context import GpuWork, Session
from grader.checks.harness.device import require_use
from grader.checks.harness.recipe import Recipe, initial_parameters, one_hot

#: Nodes of the graph for each layer of weights, with those of their gradients and of the change.
_NODES_OF_LAYER = 20
_SOON = 10.0  # seconds for what takes none
#: Steps of the first epoch that are compared with those made here, and timed.
FIRST_STEPS = 3


class Trainer:
    """One model in the child, on numpy or on the GPU.

    Attributes:
        name: such as "mlp on the GPU".
        params: proxies of the weights of the layers, then of their biases.
        fetched: bytes that the grader itself fetched from the device.
        made: steps made so far.
        steps: of an epoch.
        is_short: whether they are fewer than the recipe's, and every one is compared.
    """

    def __init__(
        self, session: Session, model: str, how: Recipe, on_gpu: bool, seconds: float = math.inf
    ) -> None:
        """Where the first steps show that all would take more than `seconds`, fewer are made, each
        of them compared with the same step computed here: so much shows no less about a step."""
        self.session, self.how, self.on_gpu, self._seconds = session, how, on_gpu, seconds
        self.steps, self._batches = (len(x) // how.batch for x in (how.train_x, how.valid_x))
        self.is_short, self._took = False, 0.0
        self.remote = session.remote
        if on_gpu:
            session.device.finish("loading the library")
        self.name = f"{model} on {'the GPU' if on_gpu else 'numpy'}"
        ad = session.autodiff()
        self.x, self.labels = session.variable("X"), session.variable("y_")
        initial = initial_parameters(model)
        self.nodes = [session.variable(f"p{i}") for i in range(len(initial))]
        with self.remote.deadline(_SOON):  # what never ends shall not take the time of training
            logits = self._logits(ad)
            loss = ad.softmaxcrossentropy_op(logits, self.labels)
            grads = ad.gradients(loss, self.nodes)
            self.asked = [loss, *[grads[i] for i in range(len(initial))], ad.softmax_op(logits)]
            self.executor = ad.Executor(self.asked, ctx=session.nd.gpu(0) if on_gpu else None)
        place = session.upload if on_gpu else self.remote.put
        self.params = [place(values) for values in initial]
        self._start = initial
        self._initial = list(self.params)
        self.made = 0
        #: How many steps had been made after the last one that was watched, and the weights then.
        self._left = (0, [v.astype(np.float32) if on_gpu else v for v in initial])
        self._shapes = [values.shape for values in initial]
        self._bytes = sum(values.nbytes for values in initial)
        self._scale: float | None = None
        self.fetched = 0
        self.images = self.remote.put(how.train_x)
        self.one_hot = self.remote.put(one_hot(how.train_y))
        if on_gpu:
            self.x_array = session.nd.empty((how.batch, 784), ctx=session.nd.gpu(0))
            self.label_array = session.nd.empty((how.batch, 10), ctx=session.nd.gpu(0))

    def _logits(self, ad: Any) -> Any:
        layers = len(self.nodes) // 2
        value = self.x
        for layer in range(layers):
            product = ad.matmul_op(value, self.nodes[layer])
            value = product + ad.broadcastto_op(self.nodes[layers + layer], product)
            if layer < layers - 1:
                value = ad.relu_op(value)
        return value

    def _fed(self, images: Any, labels: Any, params: list[Any]) -> dict[Any, Any]:
        weights = dict(zip(self.nodes, params, strict=True))
        return {self.x: images, self.labels: labels, **weights}

    def first_fed(self) -> dict[Any, Any]:
        """The arrays that the first step on numpy gets."""
        first = slice(self.how.batch)
        return self._fed(self.images[first], self.one_hot[first], self._initial)

    def bytes_to_host(self) -> int:
        """Bytes copied to the host so far; 0 on numpy."""
        if not self.on_gpu:
            return 0
        counts = self.remote.fetch_all(self.session.device.count_use())
        return require_use([0, 0, *counts], self.name)[0]

    def step(self, start: int) -> tuple[Any, Any]:
        """Makes one step on the batch from `start`; returns proxies of (loss, predictions)."""
        rows = slice(start, start + self.how.batch)
        images, labels = self.images[rows], self.one_hot[rows]
        if self.on_gpu:
            self.x_array[:], self.label_array[:] = images, labels
            images, labels = self.x_array, self.label_array
        results = self.executor.run(self._fed(images, labels, self.params))
        rate = self.how.learning_rate
        for i, param in enumerate(self.params):
            grad = results[1 + i]
            if self.on_gpu:
                self.session.gpu_op.matrix_elementwise_multiply_by_const(grad, -rate, grad)
                self.session.gpu_op.matrix_elementwise_add(param, grad, param)
            else:
                self.params[i] = param - rate * grad
        return results[0], results[1 + len(self.params)]

    def _here(self, proxies: list[Any]) -> list[Array]:
        """Fetched results as arrays of float64.

        Raises:
            Failure: one is no array of numbers.
        """
        sent = [proxy.asnumpy() if self.on_gpu else proxy for proxy in proxies]
        fetched = self.remote.fetch_all(sent, most=SMALL + self._bytes)
        self.fetched += sum(value.nbytes for value in fetched if isinstance(value, np.ndarray))
        for value in fetched:
            if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
                raise Failure("the executor returned no array")
        return [value.astype(np.float64) for value in fetched]

    def _weights(self, words: str) -> list[Array]:
        """The weights before the next step."""
        made, weights = self._left
        if made == self.made:
            return [values.astype(np.float64) for values in weights]
        return self._sound(self._here(self.params), f"before {words}")

    def _sound(self, weights: list[Array], when: str) -> list[Array]:
        for shape, values in zip(self._shapes, weights, strict=True):
            if values.shape != shape or not np.isfinite(values).all():
                what = (
                    f"shape {values.shape}, not {shape}" if values.shape != shape else "NaN or inf"
                )
                raise Failure(f"{self.name}: weights of shape {shape} have {what} {when}")
        return weights

    def epoch(self, number: int, watched: Collection[int] = ()) -> tuple[float, float]:
        """Trains one epoch; compares the steps in `watched` with the same steps computed here.

        Returns:
            (mean loss, seconds of wall time without those steps).

        Raises:
            Failure: a loss is not finite, or a step is wrong.
        """
        losses: list[float] = []
        aside, started = 0.0, time.monotonic()
        while (step := len(losses)) < self.steps:
            words = f"{self.name}, step {step + 1} of epoch {number + 1}"
            with self.remote.doing(words):
                began = self.remote.now()
                losses.append(self._step(step, words, self.is_short or step in watched))
                took = self.remote.now() - began
            aside += took if step in watched and not self.is_short else 0
            self._pace(took)
        if not math.isfinite(sum(losses)):  # numpy would warn, on the terminal of whoever grades
            raise Failure(f"{self.name}: the sum of the losses of epoch {number + 1} is not finite")
        return float(np.mean(losses)), time.monotonic() - started - aside

    def _pace(self, took: float) -> None:
        """Makes the training shorter, once, if the first steps took too long; `took` seconds the
        one that was just made."""
        self._took += took
        if self.made != FIRST_STEPS:
            return
        each, epochs = self._took / FIRST_STEPS, self.how.epochs
        if each * (epochs * self.steps + self._batches) > self._seconds:
            fitting = max(FIRST_STEPS, int(self._seconds / each / (epochs + 1)))
            self.steps, self._batches = min(self.steps, fitting), min(self._batches, fitting)
            self.is_short = True

    def _step(self, step: int, words: str, is_watched: bool) -> float:
        """Makes one step, and returns its loss."""
        start = step * self.how.batch
        before = self._weights(words) if is_watched else []
        loss, predictions = self.step(start)
        self.made += 1
        if not is_watched:
            return self._loss(self._here([loss])[0], words)
        values, predicted, *after = self._here([loss, predictions, *self.params])
        found = self._loss(values, words)
        self._compare(
            start, before, (found, predicted, self._sound(after, f"after {words}")), words
        )
        self._left = (self.made, after)
        return found

    def prove(self, random: np.random.Generator) -> None:
        """Makes a step on the GPU from random weights.

        Raises:
            Failure: the step is wrong, or there is evidence that it was not made on the GPU.
        """
        words = f"{self.name}, a step from random weights"
        first = slice(self.how.batch)
        weights = [random.uniform(-0.1, 0.1, s).astype(np.float32) for s in self._shapes]
        self.params, self._left = [self.session.upload(w) for w in weights], (0, weights)
        fed = [self.how.train_x[first], one_hot(self.how.train_y[first]), *weights]
        self.session.feed(*fed)
        with self.remote.doing(words):
            loss, predictions = self.step(0)
            results = self._here([loss, predictions, *self.params])
        self._loss(results[0], words)
        after = self._sound(results[2:], f"after {words}")
        self._compare(0, self._weights(words), (results[0].item(), results[1], after), words)
        work = GpuWork(words, fed, _NODES_OF_LAYER * (len(weights) // 2), launches=4)
        self.session.require_made([results[0], *after], work)

    def _loss(self, values: Array, words: str) -> float:
        if values.size != 1:
            raise Failure(f"{words}: the loss has shape {values.shape}, expected (1,)")
        if not np.isfinite(values).all():
            raise Failure(
                f"{words}: the loss is {values.item()}, the first loss that is not finite"
            )
        return float(values.item())

    def _compare(
        self, start: int, before: list[Array], got: tuple[float, Array, list[Array]], words: str
    ) -> None:
        """Raises Failure unless a step's results match those of the step computed here."""
        how, rows = self.how, slice(start, start + self.how.batch)
        right = mnist_reference.step(before, how.train_x[rows], one_hot(how.train_y[rows]))
        loss, predictions, after = got
        verify(np.asarray(loss), right.loss, right.loss_bound, f"{words}: the loss")
        verify(predictions, right.predictions, right.predictions_bound, f"{words}: predictions")
        changes = [a - b for a, b in zip(after, before, strict=True)]
        rate = -how.learning_rate * self._scale_of(changes, right)
        for name, change, gradient, bound, old in zip(
            names_of(before), changes, right.gradients, right.gradients_bounds, before, strict=True
        ):
            near = abs(rate) * bound + 8 * ROUND * (1 + np.abs(old).max())
            text = f"{words}: the change of {name} by a batch of {how.batch}"
            verify(change, rate * gradient, near, text)

    def _scale_of(self, changes: list[Array], right: mnist_reference.Step) -> float:
        """The factor of the submission's gradients: that of a mean over the images or of a sum,
        whichever is nearer to its first step."""
        if self._scale is None:
            ways = (1 / self.how.batch, 1.0)
            rate = self.how.learning_rate
            self._scale = min(
                ways,
                key=lambda way: max(
                    float(np.abs(change + rate * way * gradient).max())
                    for change, gradient in zip(changes, right.gradients, strict=True)
                ),
            )
        return self._scale

    def accuracy(self) -> float:
        """The share of the validation images whose most probable class is the label.

        It is computed here from the weights; the submission's predictions must agree.
        """
        how = self.how
        correct: list[Array] = []
        weights = self._sound(self._here(self.params), "after the training")
        for images, labels in self._validation():
            # Any labels do: they only enter the loss.
            feeds = self._fed(images, one_hot(np.zeros(how.batch, int)), self.params)
            words = f"{self.name}, validation, images from {how.batch * len(correct)}"
            with self.remote.doing(words):
                results = self.executor.run(feeds, convert_to_numpy_ret_vals=True)
                predicted = self.remote.fetch(results[1 + len(self.params)], most=SMALL)
            right = mnist_reference.forward(weights, images)
            verify(
                predicted, right, mnist_reference.rounding(weights, images), f"{words}: predictions"
            )
            correct.append(np.argmax(right, axis=1) == labels)
        return float(np.mean(correct))

    def accuracy_here(self, scale: float) -> float:
        """The accuracy after the same steps, all of them made here. `scale` is the factor of the
        gradients of a sum over the images."""
        how, rate = self.how, scale * self.how.learning_rate
        weights = [values.astype(np.float64) for values in self._start]
        for start in [how.batch * step for step in range(self.steps)] * how.epochs:
            rows = slice(start, start + how.batch)
            right = mnist_reference.step(weights, how.train_x[rows], one_hot(how.train_y[rows]))
            weights = [w - rate * g for w, g in zip(weights, right.gradients, strict=True)]
        correct = [
            np.argmax(mnist_reference.forward(weights, images), axis=1) == labels
            for images, labels in self._validation()
        ]
        return float(np.mean(correct))

    def _validation(self) -> Iterator[tuple[Array, Array]]:
        """Images and labels, batch by batch."""
        for start in [self.how.batch * number for number in range(self._batches)]:
            rows = slice(start, start + self.how.batch)
            yield self.how.valid_x[rows], self.how.valid_y[rows]


def names_of(params: list[Array]) -> list[str]:
    """The names of the weights, then of the biases: W1, W2, b1, b2."""
    layers = range(1, len(params) // 2 + 1)
    return [f"{kind}{layer if len(layers) > 1 else ''}" for kind in "Wb" for layer in layers]
