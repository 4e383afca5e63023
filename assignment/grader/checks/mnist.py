"""Training with the submission: each step, accuracy, loss, allocations, time."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import cast

import numpy as np

from grader.checks.harness import unwritten
from grader.checks.harness.compare import Failure
from grader.checks.harness.context import Context, Session
from grader.checks.harness.recipe import Recipe, recipe
from grader.checks.harness.trainer import FIRST_STEPS, Trainer
from grader.checks.harness.traits import check, declared

#: Bytes that a step may copy to the host beside what is asked for: some numbers, not an array.
_MOST_COPIED = 4096
#: Of the time for a training on the emulated GPU, what its steps may take; else there are fewer.
_SHARE = 0.5
#: How far below that of the same steps made by the grader the accuracy of a short training may be.
_NEAR = 0.05


@contextlib.contextmanager
def _trainer(ctx: Context, model: str, how: Recipe, on_gpu: bool) -> Iterator[Trainer]:
    slow = on_gpu and ctx.backend == "emulated"
    with ctx.session() as session:
        yield Trainer(session, model, how, on_gpu, ctx.seconds * _SHARE if slow else math.inf)


def _train(ctx: Context, trainer: Trainer, model: str, where: str) -> None:
    """Trains; raises Failure unless the first and some other steps are right, or all of a short
    training, the loss falls and the accuracy lies within its bounds."""
    how, losses, seconds = trainer.how, [], []
    halfway = trainer.session.device.allocations() if trainer.on_gpu else (0, 0)
    to_host = trainer.bytes_to_host()
    for number in range(how.epochs):
        first = set(range(FIRST_STEPS))
        watched = first if number == 0 else {int(ctx.random.integers(trainer.steps))}
        loss, duration = trainer.epoch(number, watched)
        losses.append(loss)
        seconds.append(duration)
        if trainer.on_gpu and number == how.epochs // 2 - 1:
            halfway = trainer.session.device.allocations()
    if trainer.on_gpu:
        _check_copies(trainer, to_host)
        _check_allocations(ctx, trainer, model, halfway)
        trainer.session.device.finish(f"training {model}")
    accuracy, wanted = trainer.accuracy(), _wanted(ctx, trainer, model)
    ctx.facts[f"{model}_{where}"] = {
        "accuracy": round(accuracy, 4),
        "wanted": wanted,
        "losses": [round(loss, 5) for loss in losses],
        "epoch_seconds": round(float(np.median(seconds)), 4),
    }
    if trainer.is_short:
        all_steps = how.epochs * (len(how.train_x) // how.batch)
        ctx.facts[f"{model}_{where}"] |= {"steps": trainer.made, "of_steps": all_steps}
    if losses[-1] >= losses[0]:
        raise Failure(f"{model} on {where}: the loss does not fall: {losses[0]:.4f} in the first "
                      f"epoch, {losses[-1]:.4f} in the last")  # fmt: skip
    if accuracy < wanted:
        raise Failure(f"{model} on {where}: accuracy {accuracy:.3f} after {how.epochs} epochs, "
                      f"expected at least {wanted:.3f}")  # fmt: skip


def _wanted(ctx: Context, trainer: Trainer, model: str) -> float:
    """The lowest accuracy that passes."""
    how = trainer.how
    if not trainer.is_short:
        return how.logreg_accuracy if model == "logreg" else how.mlp_accuracy
    right = trainer.accuracy_here(1 / how.batch if ctx.rubric.mnist["loss_is_mean"] else 1.0)
    return round(right - _NEAR, 4)


def _check_copies(trainer: Trainer, before: int) -> None:
    """Raises Failure if a step copies what it computes to the host."""
    copied = (trainer.bytes_to_host() - before - trainer.fetched) // trainer.made
    if copied > _MOST_COPIED:
        raise Failure(
            f"{trainer.name}: a step copies {copied:,} bytes to the host without being asked",
            "leave on the GPU what is computed there; asnumpy alone copies to the host",
        )


def _check_allocations(ctx: Context, trainer: Trainer, model: str, before: tuple[int, int]) -> None:
    """Raises Failure if the second half of the epochs allocates more than the first half."""
    arrays, raw = (a - b for a, b in zip(trainer.session.device.allocations(), before, strict=True))
    ctx.facts[f"{model}_allocations_in_second_half"] = {"arrays": arrays, "cuda_malloc": raw}
    if not arrays and raw > 0 and ctx.thorough:
        raise Failure(
            f"{model}: in the second half of {trainer.how.epochs} epochs cudaMalloc is "
            f"called {raw} times, though no new array is needed",
            "a launcher in src/gpu_op.cu, or a function that it calls, allocates memory: "
            "that costs time in every call, and leaks what is never freed",
        )
    if arrays > 0:
        raise Failure(
            f"{model}: the second half of {trainer.how.epochs} epochs allocates {arrays} "
            f"arrays, by {raw} calls of cudaMalloc, though no shape is new",
            "call memory_plan only when the shapes of feeds change",
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


@check(device=False)
def mnist_numpy(ctx: Context) -> None:
    """logistic regression and the MLP learn MNIST on numpy"""
    # All of MNIST would show no more, and take most of the time where a GPU does the rest.
    how = recipe(ctx, "emulated" if ctx.thorough else ctx.backend)
    _describe(ctx, how)
    for model in ("logreg", "mlp"):
        with _trainer(ctx, model, how, on_gpu=False) as trainer:
            try:
                _train(ctx, trainer, model, "numpy")
            except Failure as failure:
                raise unwritten.blame(
                    trainer.session, trainer.asked, trainer.first_fed(), failure
                ) from None


@check(explained=True, timed=("cuda",))
def mnist_gpu(ctx: Context) -> None:
    """both learn MNIST on the GPU, without new allocations, and faster than numpy if it is real"""
    how = recipe(ctx, ctx.backend)
    _describe(ctx, how)
    first = dataclasses.replace(how, train_x=how.train_x[: how.batch])
    ctx.on_device(lambda session: _prove(ctx, session, first))
    for model in ("logreg", "mlp"):
        with _trainer(ctx, model, how, on_gpu=True) as trainer:
            _train(ctx, trainer, model, "gpu")
    if ctx.backend == "cuda":
        _check_speed(ctx, how)


def _prove(ctx: Context, session: Session, how: Recipe) -> None:
    """Runs one step of each model that shows whether the GPU made it."""
    for model in ("logreg", "mlp"):
        Trainer(session, model, how, on_gpu=True).prove(ctx.random)


def _check_speed(ctx: Context, how: Recipe) -> None:
    with _trainer(ctx, "mlp", how, on_gpu=False) as trainer:
        _, on_numpy = trainer.epoch(0)
    on_gpu = cast(float, ctx.facts["mlp_gpu"]["epoch_seconds"])
    ctx.facts["numpy_over_gpu_time"] = round(on_numpy / on_gpu, 2)
    if on_gpu >= on_numpy:
        raise Failure(f"mlp: an epoch takes {on_gpu:.2f} s on the GPU, {on_numpy:.2f} s on numpy")


CHECKS = declared(globals())
