"""Part 4: batch norm, in training and in inference, its gradients and its running figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.checks.harness import net_reference as reference
from grader.checks.harness.answers import SMALL
from grader.checks.harness.compare import Array, Failure, Mistakes, verify_told
from grader.checks.harness.context import Context, Session
from grader.checks.harness.traits import check, declared

_RANDOM = 8
#: Plain ones, then one image, one row, one column, and few elements, where n and n - 1 differ most.
_SHAPES = ((4, 2, 3, 3), (2, 3, 4, 5), (1, 2, 5, 3), (5, 3, 1, 2), (3, 4, 2, 1), (2, 2, 1, 1))
_AXES = (0, 2, 3)
_FIGURES = ("running_mean", "running_var")
#: Of values around 1. A variance is a sum of squares, and its root is divided by.
_BOUND = 1e-9


class _Case:
    """A norm in the child, and what it is fed."""

    def __init__(self, session: Session, random: np.random.Generator, shape: tuple[int, ...]):
        channels = shape[1]
        self.shape, self.session = shape, session
        self.momentum = float(random.choice([0.1, 0.3, 0.02]))
        self.epsilon = float(random.choice([1e-5, 1e-3, 0.1]))
        scale, offset = random.uniform(0.3, 3, channels), random.uniform(-3, 3, channels)
        self.x = random.normal(0, 1, shape) * reference.by_channel(scale)
        self.x += reference.by_channel(offset)
        self.weight, self.bias = random.uniform(0.5, 2, channels), random.uniform(-1, 1, channels)
        self.mean = random.uniform(-1, 1, channels)
        self.variance = random.uniform(0.2, 3, channels)
        self.norm = session.module("dlsys.nn").BatchNorm2d(
            channels, momentum=self.momentum, epsilon=self.epsilon
        )
        self.node = session.module("dlsys.ops").variable("x", shape)
        said = f"momentum={self.momentum}, epsilon={self.epsilon}"
        self.words = f"BatchNorm2d({channels}, {said}) of x {shape}"

    def fed(self) -> dict[Any, Array]:
        """Values of all that is fed."""
        norm = self.norm
        return {
            self.node: self.x, norm.weight: self.weight, norm.bias: self.bias,
            norm.running_mean: self.mean, norm.running_var: self.variance,
        }  # fmt: skip

    def scaled(self, unit: Array) -> Array:
        """Times weight, plus bias."""
        return unit * reference.by_channel(self.weight) + reference.by_channel(self.bias)

    def by(self, mean: Array, variance: Array) -> Array:
        """The result, by these figures."""
        return self.scaled(reference.normalised(self.x, mean, variance, self.epsilon))


def _cases(ctx: Context, session: Session) -> Iterator[_Case]:
    shapes = list(_SHAPES)
    for _ in range(_RANDOM):
        images, channels, height, width = (int(each) for each in ctx.random.integers(2, 6, 4))
        shapes.append((images, channels, height, width))
    for shape in shapes:
        yield _Case(session, ctx.random, shape)


@check(device=False)
def batch_norm(ctx: Context) -> None:
    """in training batch norm takes mean and variance of each channel over the batch"""
    with ctx.session() as session:
        for case in _cases(ctx, session):
            what = f"{case.words}, train=True"
            with session.remote.doing(what):
                made = case.norm(case.node, train=True)
                got = session.evaluate([made], case.fed(), SMALL)[0]
            right = case.by(case.x.mean(_AXES), case.x.var(_AXES))
            verify_told(got, right, _BOUND, what, _of_training(case))


def _of_training(case: _Case) -> Mistakes:
    x, mean, variance = case.x, case.x.mean(_AXES), case.x.var(_AXES)
    yield (
        case.by(case.mean, case.variance),
        "in training the figures are the batch's, not the running",
    )
    unit = reference.normalised(x, mean, variance, case.epsilon)
    if np.prod(case.shape) > case.shape[1]:
        yield (
            case.by(mean, reference.sample_variance(x)),
            (
                "the batch is normalised by its own variance, the mean of squares; n - 1 is for "
                "the running one"
            ),
        )
    yield case.by(mean, variance - case.epsilon), "epsilon is missing: it is added to the variance"
    by_root = (x - reference.by_channel(mean)) / reference.by_channel(
        np.sqrt(variance) + case.epsilon
    )
    yield case.scaled(by_root), "epsilon is added to the variance, under the root"
    yield unit, "weight and bias are missing"
    yield unit + reference.by_channel(case.bias), "the weight is missing"
    yield unit * reference.by_channel(case.weight), "the bias is missing"
    for axes, words in (
        ((2, 3), "over each image"), ((0, 1, 2, 3), "over all channels"),
        ((1, 2, 3), "over the channels of an image"), ((0,), "over the batch alone"),
    ):  # fmt: skip
        middle, spread = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        yield (
            case.scaled((x - middle) / np.sqrt(spread + case.epsilon)),
            (f"mean and variance are taken {words}: each channel has one, over (0, 2, 3)"),
        )


@check(device=False)
def batch_norm_gradients(ctx: Context) -> None:
    """the gradients of batch norm go through mean and variance, too"""
    with ctx.session() as session:
        for case in _cases(ctx, session):
            if np.prod(case.shape) == case.shape[1] * 2:
                continue  # of two elements the normalised ones are always +1 and -1
            grad = ctx.random.normal(0, 1, case.shape)
            ops, what = session.module("dlsys.ops"), f"gradients of {case.words}, train=True"
            with session.remote.doing(what):
                norm = case.norm
                weights = ops.variable("grad", case.shape)
                loss = ops.sum(norm(case.node, train=True) * weights)
                asked = [case.node, norm.weight, norm.bias]
                found = session.autodiff().gradients(loss, asked)
                nodes = [found[number] for number in range(len(asked))]
                got = session.evaluate(nodes, {**case.fed(), weights: grad}, SMALL)
            right = reference.norm_gradients(case.x, case.weight, grad, case.epsilon)
            for name, value, wanted in zip(("x", "weight", "bias"), got, right, strict=True):
                said = f"{what}, of {name}"
                bound = _BOUND * max(1.0, float(np.abs(wanted).max()))
                mistakes = _of_gradients(case, grad) if name == "x" else ()
                verify_told(value, wanted, bound, said, mistakes)


def _of_gradients(case: _Case, grad: Array) -> Mistakes:
    mean, variance = case.x.mean(_AXES), case.x.var(_AXES)
    scale = reference.by_channel(case.weight / np.sqrt(variance + case.epsilon))
    unit = reference.normalised(case.x, mean, variance, case.epsilon)
    through_mean = reference.by_channel(grad.mean(_AXES))
    through_variance = unit * reference.by_channel((grad * unit).mean(_AXES))
    yield (
        scale * grad,
        (
            "mean and variance are taken for constants: each depends on every x of its channel, "
            "so that no stop_gradient may stand there"
        ),
    )
    yield (
        scale * (grad - through_variance),
        "the mean is taken for a constant: it depends on every x",
    )
    yield (
        scale * (grad - through_mean),
        "the variance is taken for a constant: it depends on every x",
    )


@check(device=False)
def running_figures(ctx: Context) -> None:
    """training moves running mean and variance towards those of the batch, inference does not"""
    with ctx.session() as session:
        for case in _cases(ctx, session):
            what = f"{case.words}, train=True"
            with session.remote.doing(what):
                case.norm(case.node, train=True)
                updates = case.norm.updates()
                _require_two(what, session.remote.len(updates))
                nodes = [updates[case.norm.running_mean], updates[case.norm.running_var]]
                got = session.evaluate(nodes, case.fed(), SMALL)
            for name, value, wanted, mistakes in zip(
                _FIGURES, got, _moved(case), _of_running(case), strict=True
            ):
                verify_told(value, wanted, _BOUND, f"{what}: the new {name}", mistakes)
        _check_kept(ctx, session)


def _require_two(what: str, count: int) -> None:
    if count != len(_FIGURES):
        raise Failure(
            f"{what}: updates() has {count} entries, expected those of {' and '.join(_FIGURES)}",
            "`forward` keeps in self._updates what _moved gives, for training alone",
        )


def _moved(case: _Case) -> tuple[Array, Array]:
    mean, variance = case.x.mean(_AXES), reference.sample_variance(case.x)
    moved = reference.running
    return moved(case.mean, mean, case.momentum), moved(case.variance, variance, case.momentum)


def _of_running(case: _Case) -> tuple[Mistakes, Mistakes]:
    """What is known to go wrong with the mean, and with the variance."""
    new = (case.x.mean(_AXES), reference.sample_variance(case.x))
    found: list[list[tuple[Array, str]]] = []
    for old, batch in zip((case.mean, case.variance), new, strict=True):
        found.append([
            (old, "it stays as it was: training moves it towards the batch's"),
            (batch, "it is the batch's own: the old one keeps 1 - momentum of itself"),
            (reference.running(old, batch, 1 - case.momentum),
             "momentum is the part of the batch in the new figure, 1 - momentum of the old one"),
        ])  # fmt: skip
    biased = reference.running(case.variance, case.x.var(_AXES), case.momentum)
    found[1].insert(0, (biased, (
        "the running variance is that of a sample: the sum of squares over n - 1, n / (n - 1) "
        "times the batch's own"
    )))  # fmt: skip
    return found[0], found[1]


def _check_kept(ctx: Context, session: Session) -> None:
    """A norm that was not called for training has no updates."""
    case = _Case(session, ctx.random, _SHAPES[1])
    what = f"{case.words}, train=False"
    with session.remote.doing(what):
        case.norm(case.node, train=False)
        count = session.remote.len(case.norm.updates())
    if count:
        raise Failure(
            f"{what}: updates() has {count} entries, expected none",
            "inference leaves the running figures as training left them: else what a net says of "
            "an image depends on those that it has seen before",
        )


@check(device=False)
def batch_norm_in_inference(ctx: Context) -> None:
    """in inference batch norm takes the running figures, whatever the batch"""
    with ctx.session() as session:
        for case in _cases(ctx, session):
            what = f"{case.words}, train=False"
            with session.remote.doing(what):
                made = case.norm(case.node, train=False)
                got = session.evaluate([made], case.fed(), SMALL)[0]
            right = case.by(case.mean, case.variance)
            verify_told(got, right, _BOUND, what, _of_inference(case))


def _of_inference(case: _Case) -> Mistakes:
    mean, variance = case.x.mean(_AXES), case.x.var(_AXES)
    running = "in inference the figures are the running ones: a batch may be one image"
    yield case.by(mean, variance), running
    yield case.by(mean, case.variance), f"the mean is the batch's; {running}"
    yield case.by(case.mean, variance), f"the variance is the batch's; {running}"
    yield case.by(*_moved(case)), "the figures are moved before they are used"
    yield (
        case.scaled((case.x - reference.by_channel(case.mean))
                    / reference.by_channel(case.variance + case.epsilon)),
        "the variance has no root: its root is the deviation",
    )  # fmt: skip


CHECKS = declared(globals())
