"""Trains MNIST end to end through the submission: accuracy, loss, agreement, allocations, time.

The training loop runs here and drives the child. Labels of the validation images stay here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from grader.build import PRISTINE
from grader.checks.answers import SMALL, require_number
from grader.checks.compare import ROUND, Array, Failure, require_array, verify
from grader.checks.context import Context, Session
from grader.checks.training import turned

_LOADING = threading.Lock()

#: Steps after which predictions on numpy and on the GPU are compared.
COMPARED_STEPS = 3


@dataclass(frozen=True)
class Recipe:
    """What to train on, and how.

    Attributes:
        name: "full", "small" or "digits".
        train_x, train_y: images (N, 784) float32 in [0, 1], labels (N,) int64.
        valid_x, valid_y: the same for validation.
        batch: images a step.
        epochs: passes over the training images.
        learning_rate: for the gradient that the submission computes.
        logreg_accuracy, mlp_accuracy: lowest accuracy that passes.
        source: where the images come from.
    """

    name: str
    train_x: Array
    train_y: Array
    valid_x: Array
    valid_y: Array
    batch: int
    epochs: int
    learning_rate: float
    logreg_accuracy: float
    mlp_accuracy: float
    source: str


def _load(path: str | None) -> Any:
    """MNIST by the kit's own loader, which students have too; never the submission's copy."""
    with _LOADING:  # checks may run in several threads
        return _loaded(path)


def source_of(folder: Path | None) -> str:
    """Where the data is from: the folder, a cache, or what stands in for MNIST."""
    return str(_load(str(folder) if folder else None).source)


@functools.cache
def _loaded(path: str | None) -> Any:
    package = str(PRISTINE / "python")
    if package not in sys.path:
        sys.path.append(package)
    load_mnist = importlib.import_module("dlsys.data").load_mnist
    with contextlib.redirect_stderr(io.StringIO()):  # the report says where the data is from
        return load_mnist(path)


def recipe(ctx: Context, backend: str) -> Recipe:
    """The recipe for a backend: all of MNIST for a real GPU, a random part for the emulated one."""
    data = _load(str(ctx.data) if ctx.data else None)
    is_digits = len(data.train_x) < 10000
    name = "digits" if is_digits else "full" if backend == "cuda" else "small"
    row = ctx.rubric.mnist[name]
    train, valid = np.arange(row["train"]), np.arange(row["valid"])
    if name == "small":
        train = ctx.random.permutation(len(data.train_x))[: row["train"]]
        valid = ctx.random.permutation(len(data.valid_x))[: row["valid"]]
    scale = 1 if ctx.rubric.mnist["loss_is_mean"] else 1 / row["batch"]
    return Recipe(
        name=name,
        train_x=data.train_x[train],
        train_y=data.train_y[train],
        valid_x=data.valid_x[valid],
        valid_y=data.valid_y[valid],
        batch=row["batch"],
        epochs=row["epochs"],
        learning_rate=row["learning_rate"] * scale,
        logreg_accuracy=row["logreg_accuracy"],
        mlp_accuracy=row["mlp_accuracy"],
        source=data.source,
    )


def _one_hot(labels: Array) -> Array:
    return np.eye(10, dtype=np.float32)[labels]


def initial_parameters(model: str) -> list[Array]:
    """The published start: zeros for logreg; normal(scale 0.1) from seed 123 for the MLP."""
    if model == "logreg":
        return [np.zeros((784, 10)), np.zeros(10)]
    random = np.random.RandomState(123)
    shapes: list[tuple[int, ...]] = [(784, 256), (256, 100), (100, 10), (256,), (100,), (10,)]
    return [random.normal(scale=0.1, size=shape) for shape in shapes]


class Trainer:
    """One model in the child, on numpy or on the GPU."""

    def __init__(self, session: Session, model: str, how: Recipe, on_gpu: bool) -> None:
        self.session, self.how, self.on_gpu = session, how, on_gpu
        self.remote = session.remote
        if on_gpu:
            session.device.settle("loading the library")
        self.name = f"{model} on {'the GPU' if on_gpu else 'numpy'}"
        ad = session.autodiff()
        self.x, self.labels = session.variable("X"), session.variable("y_")
        initial = initial_parameters(model)
        self.nodes = [session.variable(f"p{i}") for i in range(len(initial))]
        logits = self._logits(ad)
        loss = ad.softmaxcrossentropy_op(logits, self.labels)
        grads = ad.gradients(loss, self.nodes)
        evaluated = [loss, *[grads[i] for i in range(len(initial))], ad.softmax_op(logits)]
        self.executor = ad.Executor(evaluated, ctx=session.nd.gpu(0) if on_gpu else None)
        place = session.upload if on_gpu else self.remote.put
        self.params = [place(values) for values in initial]
        self.images = self.remote.put(how.train_x)
        self.one_hot = self.remote.put(_one_hot(how.train_y))
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

    def step(self, start: int) -> tuple[Any, Any]:
        """One step on the batch from `start`. Returns proxies of (loss, predictions)."""
        rows = slice(start, start + self.how.batch)
        images, labels = self.images[rows], self.one_hot[rows]
        if self.on_gpu:
            self.x_array[:], self.label_array[:] = images, labels
            images, labels = self.x_array, self.label_array
        feeds = dict(zip(self.nodes, self.params, strict=True))
        results = self.executor.run({self.x: images, self.labels: labels, **feeds})
        rate = self.how.learning_rate
        for i, param in enumerate(self.params):
            grad = results[1 + i]
            if self.on_gpu:
                self.session.gpu_op.matrix_elementwise_multiply_by_const(grad, -rate, grad)
                self.session.gpu_op.matrix_elementwise_add(param, grad, param)
            else:
                self.params[i] = param - rate * grad
        return results[0], results[1 + len(self.params)]

    def value(self, proxy: Any) -> Any:
        """A result here, whatever it is: a loss, or the predictions of a batch."""
        return self.remote.fetch(proxy.asnumpy() if self.on_gpu else proxy, most=SMALL)

    def predictions(self, proxy: Any) -> Array:
        """Those of a batch, in float64.

        Raises:
            Failure: they are something else.
        """
        what = f"{self.name}: the array of predictions"
        found = require_array(self.value(proxy), (self.how.batch, 10), what)
        return found.astype(np.float64)

    def epoch(self, number: int) -> tuple[float, float]:
        """All batches once. Returns (mean loss, seconds of wall time)."""
        losses = []
        started = time.monotonic()
        for start in range(0, len(self.how.train_x) - self.how.batch + 1, self.how.batch):
            with self.remote.doing(
                f"{self.name}, epoch {number + 1} of {self.how.epochs}, images from {start}"
            ):
                loss, _ = self.step(start)
                losses.append(require_number(self.value(loss), f"{self.name}: the loss"))
        if not np.isfinite(losses).all():
            raise Failure(f"the loss is {losses[-1]} in epoch {number}")
        return float(np.mean(losses)), time.monotonic() - started

    def accuracy(self) -> float:
        """Share of the validation images whose most probable class is the label."""
        how, correct = self.how, []
        feeds = dict(zip(self.nodes, self.params, strict=True))
        for start in range(0, len(how.valid_x) - how.batch + 1, how.batch):
            rows = slice(start, start + how.batch)
            # Any labels do: they only enter the loss.
            batch = {self.x: how.valid_x[rows], self.labels: _one_hot(np.zeros(how.batch, int))}
            with self.remote.doing(f"{self.name}, validation, images from {start}"):
                results = self.executor.run({**batch, **feeds}, convert_to_numpy_ret_vals=True)
                predicted = self.remote.fetch(results[1 + len(self.params)], most=SMALL)
            what = f"{self.name}: the array of predictions"
            require_array(predicted, (how.batch, 10), what)
            correct.append(np.argmax(predicted, axis=1) == how.valid_y[rows])
        return float(np.mean(correct))


@contextlib.contextmanager
def _trainer(ctx: Context, model: str, how: Recipe, on_gpu: bool) -> Iterator[Trainer]:
    with ctx.session() as session:
        yield Trainer(session, model, how, on_gpu)


def _train(ctx: Context, trainer: Trainer, model: str, where: str) -> None:
    """Trains; raises unless the loss falls and the accuracy is in its band."""
    how, losses, seconds = trainer.how, [], []
    halfway = trainer.session.device.allocations() if trainer.on_gpu else (0, 0)
    for number in range(how.epochs):
        loss, duration = trainer.epoch(number)
        losses.append(loss)
        seconds.append(duration)
        if trainer.on_gpu and number == how.epochs // 2 - 1:
            halfway = trainer.session.device.allocations()
    if trainer.on_gpu:
        _check_allocations(ctx, trainer, model, halfway)
        trainer.session.device.settle(f"training {model}")
    accuracy = trainer.accuracy()
    wanted = how.logreg_accuracy if model == "logreg" else how.mlp_accuracy
    ctx.facts[f"{model}_{where}"] = {
        "accuracy": round(accuracy, 4),
        "wanted": wanted,
        "losses": [round(loss, 5) for loss in losses],
        "epoch_seconds": round(float(np.median(seconds)), 4),
    }
    if losses[-1] >= losses[0]:
        raise Failure(f"{model} on {where}: the loss does not fall: {losses[0]:.4f} in the first "
                      f"epoch, {losses[-1]:.4f} in the last")  # fmt: skip
    if accuracy < wanted:
        raise Failure(f"{model} on {where}: accuracy {accuracy:.3f} after {how.epochs} epochs, "
                      f"at least {wanted:.3f} was expected")  # fmt: skip


def _check_allocations(ctx: Context, trainer: Trainer, model: str, before: tuple[int, int]) -> None:
    """The second half of the epochs may not allocate what the first half did not need."""
    arrays, raw = (a - b for a, b in zip(trainer.session.device.allocations(), before, strict=True))
    ctx.facts[f"{model}_allocations_in_second_half"] = {"arrays": arrays, "cuda_malloc": raw}
    if arrays > 0 or (raw > 0 and ctx.thorough):
        raise Failure(
            f"{model}: {arrays} arrays, by {raw} calls of cudaMalloc, are allocated in the second "
            f"half of {trainer.how.epochs} epochs, where every shape is known",
            "memory_plan should run only when feed shapes change",
        )
    ctx.require_harmless()


def _describe(ctx: Context, how: Recipe) -> None:
    ctx.facts["recipe"] = {
        "name": how.name,
        "source": how.source,
        "train": len(how.train_x),
        "valid": len(how.valid_x),
        "batch": how.batch,
        "epochs": how.epochs,
        "learning_rate": how.learning_rate,
    }


def mnist_numpy(ctx: Context) -> None:
    """logistic regression and the MLP learn MNIST on numpy"""
    # All of MNIST would show no more, and take most of the time where a GPU does the rest.
    how = recipe(ctx, "emulated" if ctx.thorough else ctx.backend)
    _describe(ctx, how)
    for model in ("logreg", "mlp"):
        with _trainer(ctx, model, how, on_gpu=False) as trainer:
            _train(ctx, trainer, model, "numpy")


def mnist_gpu(ctx: Context) -> None:
    """both learn MNIST on the GPU as on numpy, without new allocations, and faster if it is real"""
    how = recipe(ctx, ctx.backend)
    _describe(ctx, how)
    for model in ("logreg", "mlp"):
        references = _first_predictions(ctx, model, how, on_gpu=False)
        with _trainer(ctx, model, how, on_gpu=True) as trainer:
            _train(ctx, trainer, model, "gpu")
        got = _first_predictions(ctx, model, how, on_gpu=True)
        _compare(model, got, references, _spread(model, how, references))
    if ctx.backend == "cuda":
        _check_speed(ctx, how)


def _first_predictions(ctx: Context, model: str, how: Recipe, on_gpu: bool) -> list[Array]:
    """Predictions for the first batches, each before its step of training."""
    few = slice(COMPARED_STEPS * how.batch)
    how = replace(how, train_x=how.train_x[few], train_y=how.train_y[few])  # to send no more
    with _trainer(ctx, model, how, on_gpu) as trainer:
        return [
            trainer.predictions(trainer.step(step * how.batch)[1]) for step in range(COMPARED_STEPS)
        ]


def _rounding(step: int) -> float:
    """Bound of what rounding does to a prediction after some steps.

    The rounding of float32 in all sums that lead to it, times 8 for the layers and the
    exponential; each step of training adds as much again. Training for longer amplifies rounding
    without bound, so only the first steps are compared.
    """
    work = sum(8 + 2 * np.sqrt(terms) for terms in (784, 256, 100))
    return float(8 * ROUND * work * (1 + 4 * step))


def _spread(model: str, how: Recipe, references: list[Array]) -> list[Array]:
    """How far the first predictions may lie apart because rounding turns a relu."""
    starts = [step * how.batch for step in range(COMPARED_STEPS)]
    rows = [slice(start, start + how.batch) for start in starts]
    batches = [(how.train_x[r], _one_hot(how.train_y[r])) for r in rows]
    unsure = [_rounding(step) for step in range(COMPARED_STEPS)]
    return turned(initial_parameters(model), batches, how.learning_rate, unsure, references)


def _compare(model: str, got: list[Array], expected: list[Array], spread: list[Array]) -> None:
    """Predictions on the GPU against numpy's."""
    for step, (a, b, more) in enumerate(zip(got, expected, spread, strict=True)):
        bound = _rounding(step) + more
        verify(a, b, bound, f"{model}: predictions on the GPU after {step} steps, against numpy")


def _check_speed(ctx: Context, how: Recipe) -> None:
    with _trainer(ctx, "mlp", how, on_gpu=False) as trainer:
        _, on_numpy = trainer.epoch(0)
    on_gpu = cast(float, ctx.facts["mlp_gpu"]["epoch_seconds"])
    ctx.facts["numpy_over_gpu_time"] = round(on_numpy / on_gpu, 2)
    if on_gpu >= on_numpy:
        raise Failure(f"mlp: an epoch takes {on_gpu:.2f} s on the GPU, {on_numpy:.2f} s on numpy")


CHECKS = {check.__name__: check for check in (mnist_numpy, mnist_gpu)}
