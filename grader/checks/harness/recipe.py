"""The recipe for training: which MNIST images, and which hyperparameters."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader.checks.harness.compare import Array
from grader.checks.harness.context import Context

_LOADING = threading.Lock()
# Of the skeleton, which holds the checks or lies beside them.
_ROOT = Path(__file__).resolve().parents[3]
_PYTHON = next(p for p in (_ROOT / "assignment/python", _ROOT / "python") if p.is_dir())


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
    """MNIST, loaded by the kit's own loader, which students have too; never by the submission's
    copy."""
    with _LOADING:  # checks may run in several threads
        return _loaded(path)


def source_of(folder: Path | None) -> str:
    """Where the data comes from: the folder, a cache, or what replaces MNIST."""
    return str(_load(str(folder) if folder else None).source)


@functools.cache
def _loaded(path: str | None) -> Any:
    if str(_PYTHON) not in sys.path:
        sys.path.append(str(_PYTHON))
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


def one_hot(labels: Array) -> Array:
    """(N, 10) float32 for labels (N,)."""
    return np.eye(10, dtype=np.float32)[labels]


def initial_parameters(model: str) -> list[Array]:
    """The published start: zeros for logreg; normal(scale 0.1) from seed 123 for the MLP."""
    if model == "logreg":
        return [np.zeros((784, 10)), np.zeros(10)]
    random = np.random.RandomState(123)
    shapes: list[tuple[int, ...]] = [(784, 256), (256, 100), (100, 10), (256,), (100,), (10,)]
    return [random.normal(scale=0.1, size=shape) for shape in shapes]
