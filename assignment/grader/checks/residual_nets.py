"""Part 4: residual blocks, residual nets, and a training of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from grader.checks.harness import net_reference as reference
from grader.checks.harness.answers import SMALL, require_number, shown
from grader.checks.harness.compare import Array, Failure, Mistakes, verify_told
from grader.checks.harness.context import Context, Session
from grader.checks.harness.net_reference import NetPlan, Pass
from grader.checks.harness.traits import check, declared

#: Of values and gradients around 1 that went through a few layers.
_BOUND = 1e-8
#: channels, filters, stride, norm of blocks: each way through __init__, then random ones.
_BLOCKS = (
    (3, 3, 1, False), (3, 3, 1, True), (2, 3, 1, True), (2, 4, 2, True), (3, 3, 2, False),
    (3, 3, 3, True),
)  # fmt: skip
_RANDOM = 4


def _fed(module: Any, session: Session, what: str, values: Mapping[str, Array]) -> dict[Any, Array]:
    """Proxies of a module's parameters, with values for them.

    Raises:
        Failure: the module has others.
    """
    named = module.named_parameters()
    keys = session.remote.fetch(session.remote.builtin("list")(named), SMALL)
    found = keys if isinstance(keys, list) else []
    names = [name for name in found if isinstance(name, str)]
    missing = [name for name in values if name not in names]
    surplus = [name for name in found if not isinstance(name, str) or name not in values]
    if missing or surplus:
        said = [f"it lacks {_listed(missing)}"] if missing else []
        said += [f"it has {_listed(surplus)} besides"] if surplus else []
        raise Failure(f"{what}: its parameters are not as expected: {', '.join(said)}",
                      _hint_of_names(missing, surplus))  # fmt: skip
    return {named[name]: value for name, value in values.items()}


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(shown, list(names)[:4]))


def _hint_of_names(missing: list[str], surplus: list[Any]) -> str:
    text = " ".join(map(str, [*missing, *surplus]))
    if "downsample" in text:
        return (
            "x goes through a convolution of 1 x 1 where the block changes the number of channels, "
            "or height and width; elsewhere it is added as it is"
        )
    if "bn" in text:
        return "a norm stands behind each convolution if `norm` says so, else none"
    if "bias" in text:
        return "convolutions have no bias here: see _conv"
    return "a parameter's name is where it is: net.layer1 is a Sequential, its first block is 0"


# --- a block ------------------------------------------------------------------------------------


@check(device=False)
def residual_block(ctx: Context) -> None:
    """a BasicBlock is relu(x + norm(conv(relu(norm(conv(x)))))), and changes the shape if told"""
    plans = list(_BLOCKS)
    for _ in range(_RANDOM):
        channels, filters = (int(each) for each in ctx.random.integers(1, 5, 2))
        plans.append((channels, filters, int(ctx.random.integers(1, 4)), True))
    with ctx.session() as session:
        for channels, filters, stride, norm in plans:
            what = f"BasicBlock({channels}, {filters}, stride={stride}, norm={norm})"
            size = tuple(int(each) for each in ctx.random.integers(3, 8, 2))
            x = ctx.random.normal(0, 1, (int(ctx.random.integers(2, 4)), channels, *size))
            shapes = reference.block_shapes(channels, filters, stride, norm)
            values = reference.random_parameters(ctx.random, shapes)
            _check_block(session, what, (channels, filters, stride, norm), x, values)


def _check_block(
    session: Session, what: str, said: tuple[Any, ...], x: Array, values: dict[str, Array]
) -> None:
    with session.remote.doing(what):
        block = session.module("dlsys.models.resnet").BasicBlock(*said)
        fed = _fed(block, session, what, values)
        node = session.module("dlsys.ops").variable("x", x.shape)
        for train in (False, True):
            words = f"{what} of x {x.shape}, train={train}"
            with session.remote.doing(words):
                got = session.evaluate([block(node, train)], {node: x, **fed}, SMALL)[0]
            right = Pass(values, train).block("", x, said[2])[0]
            verify_told(got, right, _BOUND, words, _of_block(values, train, x, said[2]))


def _of_block(values: dict[str, Array], train: bool, x: Array, stride: int) -> Mistakes:
    """Blocks that are wired in another way."""
    way = Pass(values, train)

    def unit(number: int, x: Array, stride: int = 1) -> Array:
        return way.norm(f"bn{number}", way.convolution(f"conv{number}", x, stride)[0])[0]

    inner = np.maximum(unit(1, x, stride), 0)
    branch, kept = unit(2, inner), x
    if "downsample.0.weight" in values:
        bare = way.convolution("downsample.0", x, stride)[0]
        kept = way.norm("downsample.1", bare)[0]
        yield np.maximum(branch + bare, 0), "the convolution of 1 x 1 has a norm behind it, too"
    yield (
        np.maximum(branch + np.maximum(kept, 0), 0),
        "x is added as it is, without a relu of its own",
    )
    yield np.maximum(branch, 0), "x is not added: the block is relu(x + the branch)"
    late = np.maximum(unit(2, np.maximum(unit(1, x), 0), stride) + kept, 0)
    yield late, "the stride is that of the first convolution"
    yield branch + kept, "the last relu is missing: it stands behind the sum"
    yield (
        kept + np.maximum(branch, 0),
        (
            "relu stands before the sum: it is relu(x + branch), not x + relu(branch), which never "
            "gets smaller"
        ),
    )
    yield (
        np.maximum(unit(2, unit(1, x, stride)) + kept, 0),
        ("there is no relu between the two convolutions: they could be one"),
    )
    for other, words in ((not train, "the norms are told another `train` than the block"),):
        yield Pass(values, other).block("", x, stride)[0], words
    swapped = {_exchanged(name): value for name, value in values.items()}
    if all(values[name].shape == value.shape for name, value in swapped.items()):
        yield (
            Pass(swapped, train).block("", x, stride)[0],
            "conv1 and conv2, or their norms, are exchanged",
        )


def _exchanged(name: str) -> str:
    part, _, kind = name.partition(".")
    return f"{ {'bn1': 'bn2', 'bn2': 'bn1'}.get(part, part) }.{kind}"


# --- a net --------------------------------------------------------------------------------------


@check(device=False)
def residual_net(ctx: Context) -> None:
    """a ResNet has the stages and blocks that it is told, and the right logits and gradients"""
    plans = [
        NetPlan((3,), (1,), 4, 2, False),
        NetPlan((2, 4), (1, 1), 3, 1, True),
        _random_plan(ctx.random),
        NetPlan((2, 3, 2, 4), (1, 1, 1, 1), 3, 2, False, large=True),
    ]
    with ctx.session() as session:
        for plan in plans:
            _check_net(session, ctx.random, plan)


def _random_plan(random: np.random.Generator) -> NetPlan:
    """Three stages, of which the second has a block that changes nothing."""
    filters = tuple(int(each) for each in random.choice(np.arange(2, 6), 3, replace=False))
    first, last = (int(each) for each in random.integers(1, 3, 2))
    blocks = (first, 2, last)
    return NetPlan(filters, blocks, int(random.integers(2, 6)), int(random.integers(1, 4)), True)


def _made(session: Session, plan: NetPlan) -> Any:
    filters, blocks, classes, channels, norm, large = plan
    return session.module("dlsys.models").ResNet(
        filters, blocks, classes=classes, channels=channels, norm=norm, size=64 if large else 32
    )


def _check_net(session: Session, random: np.random.Generator, plan: NetPlan) -> None:
    what = plan.words()
    values = reference.random_parameters(random, plan.shapes())
    sides = np.arange(6, 11) * (3 if plan.large else 1)
    size = tuple(int(each) for each in random.choice(sides, 2, replace=False))
    x = random.normal(0, 1, (3, plan.channels, *size))
    grad = random.normal(0, 1, (3, plan.classes))
    with session.remote.doing(what):
        net, ops = _made(session, plan), session.module("dlsys.ops")
        fed = _fed(net, session, what, values)
        node = ops.variable("x", x.shape)
        for train in (False, True):
            words = f"{what} of x {x.shape}, train={train}: the logits"
            with session.remote.doing(words):
                made = net(node, train)
                got = session.evaluate([made], {node: x, **fed}, SMALL)[0]
            right = Pass(values, train).net(plan, x)[0]
            verify_told(got, right, _BOUND, words, _of_net(plan, values, train, x))
        loss = ops.sum(made * ops.constant(grad))
        named = net.named_parameters()
        learned = [name for name in values if reference.is_learned(name)]
        asked = [named[name] for name in learned]
        found = session.autodiff().gradients(loss, asked)
        nodes = [found[number] for number in range(len(asked))]
        grads = session.evaluate(nodes, {node: x, **fed}, SMALL)
    way = Pass(values, train=True)
    way.net(plan, x)[1](grad)
    for name, got in zip(learned, grads, strict=True):
        wanted = way.grads[name]
        bound = _BOUND * max(1.0, float(np.abs(wanted).max()))
        verify_told(got, wanted, bound, f"{what} of x {x.shape}: the gradient of {name}", ())


def _of_net(plan: NetPlan, values: dict[str, Array], train: bool, x: Array) -> Mistakes:
    yield (
        Pass(values, not train).net(plan, x)[0],
        "some modules are told another `train` than the net",
    )
    way = Pass(values, train)
    found = way.norm("bn1", way.convolution("conv1", x, 2 if plan.large else 1)[0])[0]
    for relu, pool, largest, words in (
        (False, True, False, "the relu behind the first convolution is missing"),
        (True, False, False, "self.maxpool, which nets for large images have, is passed over"),
        (True, True, True, "each plane has its mean taken, not its largest"),
    ):
        inner = np.maximum(found, 0) if relu else found
        inner = reference.max_pool(inner)[0] if plan.large and pool else inner
        for name, _, _, stride in plan.stages():
            inner = way.block(f"{name}.", inner, stride)[0]
        last = inner.max((2, 3)) if largest else inner.mean((2, 3))
        yield last @ values["fc.weight"].T + values["fc.bias"], words


# --- a training ---------------------------------------------------------------------------------

_PLAN = NetPlan((6, 12), (1, 1), classes=4, channels=1, norm=True)
_IMAGE, _TRAIN, _VALID, _BATCH, _EPOCHS, _RATE = (10, 12), 320, 160, 32, 8, 0.3
#: Steps at the start that are made here, too; of the others it is one of each epoch.
_FIRST = 3
_DIRECTIONS, _LENGTH, _STROKES, _NOISE = ((1, 0), (0, 1), (1, 1), (1, -1)), 3, 4, 0.2
#: Of the reference over 40 seeds: see tests/checks/test_residual_nets.py.
_LEAST = 0.85


def strokes(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Images of short strokes, (count, 1, H, W), and the direction in which they run: one of four.

    Where they lie is drawn for each image, so that the nearest of other images has mostly strokes
    at the same places, and not of the same direction.
    """
    labels = random.integers(0, len(_DIRECTIONS), count)
    found = random.normal(0, _NOISE, (count, *_IMAGE))
    ends = [side - _LENGTH for side in _IMAGE]
    for image, label in zip(found, labels, strict=True):
        down, across = _DIRECTIONS[label]
        for _ in range(_STROKES):
            row, column = (int(random.integers(end + 1)) for end in ends)
            at = np.arange(_LENGTH)
            rows = row + (at if down else _LENGTH // 2)
            columns = column + (at[::across] if across else _LENGTH // 2)
            image[rows, columns] += 1
    return found[:, None], labels


class _Training:
    """A training in the child, of which this process makes some steps, too."""

    def __init__(self, session: Session, random: np.random.Generator) -> None:
        self.session, self.remote = session, session.remote
        self.x, self.labels = strokes(random, _TRAIN)
        self.values = reference.random_parameters(random, _PLAN.shapes())
        ops, steps = session.module("dlsys.ops"), session.module("dlsys.step")
        self.net = _made(session, _PLAN)
        self._fed = _fed(self.net, session, _PLAN.words(), self.values)
        self.net.load_state_dict(self.values)
        self._images = ops.variable("images", (_BATCH, *self.x.shape[1:]))
        self._classes = ops.variable("labels", (_BATCH,), session.module("numpy").int64)
        loss = ops.cross_entropy(self.net(self._images, train=True), self._classes)
        weights = self.net.parameters()
        grads = session.autodiff().gradients(loss, weights)
        updates = session.module("dlsys.optim").sgd(weights, grads, _RATE)
        updates.update(self.net.updates())
        self._step = steps.compile(loss, updates)
        self._seen = ops.variable("images", (_VALID, *self.x.shape[1:]))
        self._measure = steps.compile(self.net(self._seen), {})

    def step(self, start: int) -> float:
        """Makes a step on the batch that begins there; the loss."""
        batch = slice(start, start + _BATCH)
        fed = {self._images: self.x[batch], self._classes: self.labels[batch]}
        loss = self.remote.fetch(self._step(fed, as_numpy=True), SMALL)
        found = require_number(loss, "the loss")
        if not np.isfinite(found):
            raise Failure(f"training: a loss is {found}")
        return found

    def watched(self, start: int, words: str) -> float:
        """The same; raises a Failure unless loss and parameters are those of the step made here."""
        batch, before = slice(start, start + _BATCH), self.parameters(words)
        loss = self.step(start)
        wanted, after = reference.step(_PLAN, before, self.x[batch], self.labels[batch], _RATE)
        verify_told(np.asarray(loss), np.asarray(wanted), _BOUND, f"{words}: the loss", ())
        for name, got in self.parameters(words).items():
            near = _BOUND * max(1.0, float(np.abs(after[name]).max()))
            verify_told(got, after[name], near, f"{words}: {name} after it", ())
        return loss

    def parameters(self, words: str) -> dict[str, Array]:
        """All values that the step keeps."""
        fetched = self.remote.fetch_all([self._step.get(node) for node in self._fed], SMALL)
        for (name, value), got in zip(self.values.items(), fetched, strict=True):
            if not isinstance(got, np.ndarray) or got.shape != value.shape or got.dtype.kind != "f":
                raise Failure(f"{words}: {name} is {shown(got)}, expected an array {value.shape}")
        return {
            name: np.asarray(got, float) for name, got in zip(self.values, fetched, strict=True)
        }

    def accuracy(self, random: np.random.Generator) -> float:
        """On images that it has not seen, whose labels stay here; the logits must be those that its
        parameters give."""
        x, labels = strokes(random, _VALID)
        kept = {node: self._step.get(node) for node in self._fed}
        logits = self.remote.fetch(self._measure({self._seen: x, **kept}, as_numpy=True), SMALL)
        wanted = reference.logits_of(_PLAN, self.parameters("validation"), x)
        near = _BOUND * max(1.0, float(np.abs(wanted).max()))
        verify_told(logits, wanted, near, f"logits of {_VALID} images after training", ())
        return reference.accuracy(wanted, labels)


@check(device=False)
def net_learns(ctx: Context) -> None:
    """a small ResNet learns to tell strokes by their direction, step by step as it should"""
    with ctx.session() as session:
        with session.remote.doing(f"a training step of {_PLAN.words()}"):
            training = _Training(session, ctx.random)
        losses = []
        for epoch in range(_EPOCHS):
            starts = range(0, _TRAIN, _BATCH)
            watched = {int(ctx.random.integers(len(starts)))} | set(
                range(_FIRST if not epoch else 0)
            )
            for number, start in enumerate(starts):
                words = f"training {_PLAN.words()}, step {number + 1} of epoch {epoch + 1}"
                with session.remote.doing(words):
                    if number in watched:
                        losses.append(training.watched(start, words))
                    else:
                        losses.append(training.step(start))
        accuracy = training.accuracy(ctx.random)
    ctx.facts["training"] = {
        "accuracy": round(accuracy, 4), "wanted": _LEAST, "losses": [losses[0], losses[-1]],
    }  # fmt: skip
    if accuracy < _LEAST:
        raise Failure(
            f"training {_PLAN.words()}: accuracy {accuracy:.3f} after {_EPOCHS} epochs, expected "
            f"at least {_LEAST:.2f}",
            "each step that was compared is right: what happens between them?",
        )


CHECKS = declared(globals())
