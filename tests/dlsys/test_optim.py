"""Optimisers and schedules beside PyTorch's of the same names, over 50 steps."""

import numpy as np
import pytest

import dlsys
from dlsys import ndarray, ops, optim
from dlsys.autodiff import gradients

torch = pytest.importorskip("torch")

STEPS = 50
ROWS, WIDTHS = 24, (6, 10, 3)
#: Of the largest weight: by numpy in float64, and on a device, where both are float32.
BOUNDS = {"numpy": 1e-14, "cpu": 2e-6, "gpu": 2e-6}
CONTEXTS = {"numpy": None, "cpu": ndarray.cpu(0), "gpu": ndarray.gpu(0)}

OPTIMISERS = {
    "sgd": (optim.sgd, torch.optim.SGD, {"rate": 0.1}, {"lr": 0.1}),
    "decay": (
        optim.sgd, torch.optim.SGD,
        {"rate": 0.1, "weight_decay": 0.05}, {"lr": 0.1, "weight_decay": 0.05},
    ),
    "momentum": (
        optim.sgd, torch.optim.SGD,
        {"rate": 0.05, "momentum": 0.9}, {"lr": 0.05, "momentum": 0.9},
    ),
    "nesterov": (
        optim.sgd, torch.optim.SGD,
        {"rate": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
        {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
    ),
    "adam": (optim.adam, torch.optim.Adam, {"rate": 0.01}, {"lr": 0.01}),
    "adam decay": (
        optim.adam, torch.optim.Adam,
        {"rate": 0.02, "betas": (0.8, 0.99), "epsilon": 1e-6, "weight_decay": 0.1},
        {"lr": 0.02, "betas": (0.8, 0.99), "eps": 1e-6, "weight_decay": 0.1},
    ),
    "adamw": (optim.adamw, torch.optim.AdamW, {"rate": 0.01}, {"lr": 0.01}),
    "adamw decay": (
        optim.adamw, torch.optim.AdamW,
        {"rate": 0.02, "weight_decay": 0.2}, {"lr": 0.02, "weight_decay": 0.2},
    ),
}  # fmt: skip

SCHEDULES = {
    "constant": (lambda: optim.constant(0.1), None),
    "step": (lambda: optim.step_decay(0.1, 7, 0.5), lambda o: _lr.StepLR(o, 7, 0.5)),
    "exponential": (lambda: optim.exponential(0.1, 0.93), lambda o: _lr.ExponentialLR(o, 0.93)),
    "cosine": (
        lambda: optim.cosine(0.1, STEPS, 0.01), lambda o: _lr.CosineAnnealingLR(o, STEPS, 0.01)
    ),
    "warm-up": (lambda: optim.warm_up(0.1, 12, 0.25), lambda o: _lr.LinearLR(o, 0.25, 1.0, 12)),
    "warm-up of a cosine": (
        lambda: optim.warm_up(optim.cosine(0.1, STEPS), 9, 0.1),
        lambda o: _lr.ChainedScheduler(
            [_lr.CosineAnnealingLR(o, STEPS), _lr.LinearLR(o, 0.1, 1.0, 9)]
        ),
    ),
}  # fmt: skip
_lr = torch.optim.lr_scheduler


def arrays():
    """Weights, and a batch for each step."""
    draw = np.random.default_rng(8)
    shapes = [WIDTHS[:2], WIDTHS[1:2], WIDTHS[1:]]
    weights = [draw.normal(size=shape) * 0.4 for shape in shapes]
    batches = [
        (draw.normal(size=(ROWS, WIDTHS[0])), draw.integers(0, WIDTHS[-1], ROWS))
        for _ in range(STEPS)
    ]
    return weights, batches


def ours(ctx, make):
    """Weights after all steps under the updates that `make` gives of (weights, grads)."""
    weights, batches = arrays()
    x, labels = ops.variable("x"), ops.variable("labels")
    nodes = [dlsys.parameter(f"w{i}", values) for i, values in enumerate(weights)]
    hidden = ops.tanh(x @ nodes[0] + nodes[1])
    loss = ops.cross_entropy(hidden @ nodes[2], labels)
    step = dlsys.compile([loss], make(nodes, gradients(loss, nodes)), ctx)
    for images, classes in batches:
        step({x: images, labels: classes})
    return [step.get(node) for node in nodes]


def theirs(is_double, make, every=1, clip=None, schedule=None):
    """The same by PyTorch; `every` so many batches one step, the norm of gradients below `clip`."""
    weights, batches = arrays()
    dtype = torch.float64 if is_double else torch.float32
    tensors = [torch.tensor(values, dtype=dtype, requires_grad=True) for values in weights]
    optimiser = make(tensors)
    schedule = schedule and schedule(optimiser)
    for number, (images, classes) in enumerate(batches):
        hidden = torch.tanh(torch.tensor(images, dtype=dtype) @ tensors[0] + tensors[1])
        loss = torch.nn.functional.cross_entropy(hidden @ tensors[2], torch.tensor(classes))
        (loss / every).backward()
        if (number + 1) % every == 0:
            if clip:
                torch.nn.utils.clip_grad_norm_(tensors, clip)
            optimiser.step()
            optimiser.zero_grad()
        if schedule:
            schedule.step()
    return [tensor.detach().numpy() for tensor in tensors]


def compare(found, expected, bound):
    start, _ = arrays()
    for one, other, before in zip(found, expected, start, strict=True):
        scale = np.abs(other).max()
        assert np.abs(one - other).max() <= bound * scale
        assert np.abs(other - before).max() > 1000 * bound * scale  # there was training


@pytest.mark.parametrize("where", CONTEXTS)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_are_those_of_pytorch(name, where):
    make, torchs, options, torch_options = OPTIMISERS[name]
    found = ours(CONTEXTS[where], lambda p, g: make(p, g, **options))
    expected = theirs(where == "numpy", lambda p: torchs(p, **torch_options))
    compare(found, expected, BOUNDS[where])


@pytest.mark.parametrize("where", ["numpy", "cpu"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_those_of_pytorch(name, where):
    schedule, torchs = SCHEDULES[name]
    found = ours(CONTEXTS[where], lambda p, g: optim.sgd(p, g, schedule(), momentum=0.5))
    expected = theirs(
        where == "numpy", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5), schedule=torchs
    )
    compare(found, expected, BOUNDS[where])


@pytest.mark.parametrize("where", ["numpy", "cpu"])
def test_gradients_are_clipped_by_their_global_norm_as_in_pytorch(where):
    def make(weights, grads):
        return optim.sgd(weights, optim.clip_by_global_norm(grads, 0.4)[0], 0.3)

    def plain(p):
        return torch.optim.SGD(p, lr=0.3)

    found, expected = ours(CONTEXTS[where], make), theirs(where == "numpy", plain, clip=0.4)
    compare(found, expected, BOUNDS[where])
    unclipped = theirs(True, plain)
    assert np.abs(unclipped[0] - expected[0]).max() > 0.01


@pytest.mark.parametrize("where", ["numpy", "cpu"])
@pytest.mark.parametrize("every", [1, 4])
def test_gradients_are_accumulated_as_in_pytorch(where, every):
    def make(weights, grads):
        return optim.accumulate(lambda g: optim.adam(weights, g, 0.02), weights, grads, every)

    found = ours(CONTEXTS[where], make)
    expected = theirs(where == "numpy", lambda p: torch.optim.Adam(p, lr=0.02), every=every)
    compare(found, expected, BOUNDS[where])


@pytest.mark.parametrize("where", ["numpy", "cpu"])
def test_schedules_count_on_and_end_where_they_should(where):
    """The rate itself, as p = 0 - rate * -1 gives it, far behind the 50 steps too."""
    cases = {
        "cosine": (optim.cosine(0.5, 10, 0.1), {0: 0.5, 5: 0.3, 10: 0.1, 1000: 0.1}),
        "step": (optim.step_decay(1.0, 100, 0.1), {99: 1, 100: 0.1, 299: 0.01, 10**6: 0}),
        "exponential": (optim.exponential(2.0, 0.5), {0: 2, 3: 0.25}),
        "table": (optim.table([3.0, 1.0, 2.0]), {0: 3, 1: 1, 2: 2, 3: 2, 2**40: 2}),
        "warm-up": (optim.warm_up(1.0, 4), {0: 0, 1: 0.25, 4: 1, 2**33: 1}),
    }
    for name, (schedule, wanted) in cases.items():
        p = dlsys.parameter("p", 0.0)
        updates = optim.sgd([p], [ops.as_node(-1.0)], schedule)
        step = dlsys.compile([], updates, CONTEXTS[where])
        for count, rate in wanted.items():
            step.set(p, np.array(0.0))
            step.set("sgd.steps", np.array(count))
            step()
            assert step.get(p) == pytest.approx(rate, rel=1e-6), (name, count)
            assert step.get("sgd.steps") == count + 1


def test_a_rate_may_be_fed():
    p, rate = dlsys.parameter("p", 1.0), ops.variable("rate")
    step = dlsys.compile(p, optim.sgd([p], [ops.as_node(1.0)], rate), None)
    step({rate: np.array(0.25)})
    step({rate: np.array(0.5)})
    assert step.get(p) == 0.25


def test_what_an_optimiser_can_not_do_is_told():
    p = dlsys.parameter("p", 1.0)
    with pytest.raises(ValueError, match="1 parameters and 0 gradients"):
        optim.sgd([p], [], 0.1)
    with pytest.raises(ValueError, match="nesterov looks along the momentum, which is 0"):
        optim.sgd([p], [p], 0.1, nesterov=True)
    with pytest.raises(ValueError, match="accumulate: 0 steps; hint: 1 or more"):
        optim.accumulate(lambda grads: {}, [p], [p], 0)
    with pytest.raises(ValueError, match="the factor is 1; hint: above 0, below 1"):
        optim.step_decay(0.1, 5, 1)
