"""Whole networks: published losses, and loss and gradients beside PyTorch."""

import ctypes

import numpy as np
import pytest

import dlsys
from dlsys import autodiff, models, ndarray, nn, ops
from dlsys._base import _LIB
from dlsys.gradcheck import evaluate
from dlsys.nn import init

LABELS = np.array([0, 5, 1])


def loss_of(net, shape, strength=0.0, train=True):
    """(node of the loss, images, labels)."""
    x, labels = ops.variable("x", shape), ops.variable("labels", shape[:1], np.int64)
    loss = ops.cross_entropy(net(x, train), labels)
    return (loss + nn.l2(net, strength) if strength else loss), x, labels


def linspace(first, last, *shape):
    return init.linspace(first, last)(shape)


def published_mlp():
    net = models.MLP((5, 50, 7))
    first, second = net.layers
    # The published weights are (inputs, outputs).
    first.weight.initial = linspace(-0.7, 0.3, 5, 50).T
    first.bias.initial = linspace(-0.1, 0.9, 50)
    second.weight.initial = linspace(-0.3, 0.4, 50, 7).T
    second.bias.initial = linspace(-0.9, 0.1, 7)
    return net, linspace(-5.5, 4.5, 3, 5)


def published_resnet():
    net = models.simple_resnet(1, 1, 16)
    for node in net.parameters():
        node.initial = linspace(-0.7, 0.3, *node.initial.shape)
    net.fc.weight.initial = linspace(-0.7, 0.3, 16, 10).T
    return net, linspace(-0.2, 0.3, 3, 3, 32, 32)


@pytest.mark.parametrize(
    ("made", "plain", "with_l2"),
    [(published_mlp, 2.994112658, 26.11873099), (published_resnet, 14.975702563, 335.9764923)],
)
@pytest.mark.parametrize("ctx", [None, ndarray.cpu(0)], ids=["numpy", "cpu"])
def test_a_published_loss_is_met(made, plain, with_l2, ctx):
    net, values = made()
    for strength, wanted in ((0.0, plain), (1.0, with_l2)):
        loss, x, labels = loss_of(net, values.shape, strength)
        updates = {p: p for p in net.parameters()}
        step = dlsys.compile(loss, updates, ctx, dtype=np.float64)
        got = step({x: values, labels: LABELS}, as_numpy=True)
        np.testing.assert_allclose(got, wanted, rtol=2e-9)


def test_gradients_of_the_published_nets_are_those_of_finite_differences():
    for made in (published_mlp, published_resnet):
        net, values = made()
        loss, x, labels = loss_of(net, values.shape, 1.0)
        wrt = net.parameters()
        grads = autodiff.gradients(loss, wrt)
        feeds = {x: values, labels: LABELS, **{p: p.initial for p in wrt}}
        random = np.random.default_rng(2)
        ways = {p: random.normal(size=p.initial.shape) for p in wrt}
        slope = sum(
            (g * w).sum() for g, w in zip(evaluate(grads, feeds), ways.values(), strict=True)
        )
        ends = []
        for side in (1e-6, -1e-6):
            there = {**feeds, **{p: feeds[p] + side * way for p, way in ways.items()}}
            ends.append(evaluate([loss], there)[0])
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


NETS = {
    "MLP": (lambda: models.MLP((12, 9, 8, 10)), (4, 3, 2, 2)),
    "resnet14": (models.resnet14, (2, 3, 32, 32)),
    "small ResNet with norms": (lambda: models.ResNet((4, 8), (2, 1)), (3, 3, 32, 32)),
    "small ResNet of large images": (
        lambda: models.ResNet((4, 8), (1, 1), size=64),
        (2, 3, 64, 64),
    ),
    "small VGG": (lambda: models.VGG((4, 0, 6, 6, 0), (9,), size=8), (2, 3, 8, 8)),
}


def in_pytorch(torch, net, parameters, x, buffers=None, train=True):
    """The same network, of PyTorch's functions; with running figures, if they are given."""
    F = torch.nn.functional

    def applied(name, module, x):
        whole = {key: f"{name}.{key}" if name else key for key in module.own()}
        p = {key: parameters[found] for key, found in whole.items() if found in parameters}
        if isinstance(module, nn.Linear):
            return F.linear(x, p["weight"], p["bias"])
        if isinstance(module, nn.Conv2d):
            how = {key: value for key, value in module._how.items() if key != "method"}
            return F.conv2d(x, p["weight"], p.get("bias"), **how)
        if isinstance(module, nn.BatchNorm2d):
            running = [(buffers or {}).get(f"{name}.running_{of}") for of in ("mean", "var")]
            return F.batch_norm(x, *running, p["weight"], p["bias"], training=train)
        if isinstance(module, nn.MaxPool2d):
            how = module._how
            return F.max_pool2d(x, how["kernel"], how["stride"], how["padding"])
        if isinstance(module, nn.ReLU):
            return x.relu()
        return x

    def run(prefix, module, x):
        """A module by its name below `prefix`, its parts in their order."""
        named = dict(module.children())
        inside = {
            n: lambda v, n=n: run(f"{prefix}.{n}" if prefix else n, named[n], v) for n in named
        }
        if not named:
            return applied(prefix, module, x)
        if "conv2" in named:
            skip = inside.get("downsample", lambda v: v)(x)
            keep = lambda v: v  # noqa: E731
            found = inside.get("bn1", keep)(inside["conv1"](x)).relu()
            return (inside.get("bn2", keep)(inside["conv2"](found)) + skip).relu()
        if isinstance(module, nn.Sequential):
            for each in inside.values():
                x = each(x)
            return x
        if isinstance(module, models.MLP):
            x = x.flatten(1)
            *hidden, last = inside.values()
            for each in hidden:
                x = each(x).relu()
            return last(x)
        if isinstance(module, models.VGG):
            return inside["classifier"](inside["features"](x).flatten(1))
        x = inside["conv1"](x)
        x = inside["bn1"](x).relu() if "bn1" in inside else x.relu()
        for name, each in inside.items():
            x = each(x) if name.startswith(("maxpool", "layer")) else x
        return inside["fc"](x.mean((2, 3)))

    return run("", net, x)


@pytest.mark.parametrize("name", NETS)
def test_pytorch_has_the_same_loss_and_gradients(name):
    torch = pytest.importorskip("torch")
    made, shape = NETS[name]
    nn.seed(4)
    net = made()
    random = np.random.default_rng(1)
    values, classes = random.normal(size=shape), random.integers(0, 10, shape[0])
    loss, x, labels = loss_of(net, shape)
    wrt = net.parameters()
    got = evaluate([loss, *autodiff.gradients(loss, wrt)], {
        x: values, labels: classes, **{p: p.initial for p in wrt},
    })  # fmt: skip
    theirs = {n: torch.tensor(v, requires_grad=True) for n, v in net.state_dict().items()}
    logits = in_pytorch(torch, net, theirs, torch.tensor(values))
    wanted = torch.nn.functional.cross_entropy(logits, torch.tensor(classes))
    wanted.backward()
    np.testing.assert_allclose(got[0], wanted.detach(), rtol=1e-12)
    for node, grad in zip(wrt, got[1:], strict=True):
        expected = theirs[node.name].grad
        bound = 1e-11 * (1 + expected.abs().max())
        np.testing.assert_allclose(grad, expected, rtol=0, atol=bound, err_msg=node.name)


def count(net):
    return sum(node.initial.size for node in net.parameters())


def test_networks_have_the_published_numbers_of_parameters():
    assert count(models.resnet14()) == 174_138
    assert count(models.resnet20()) == 272_474
    assert count(models.resnet18(1000, size=224)) == 11_689_512
    assert count(models.vgg11()) == 9_225_610
    assert count(models.simple_vgg()) == 64 * 28 + 16384 * 1024 + 1024 * 257 + 2570 + 256


def test_resnet18_has_the_names_of_torchvision():
    names = set(models.resnet18(1000, size=224).state_dict())
    norm = ("weight", "bias", "running_mean", "running_var")
    wanted = {"conv1.weight", "fc.weight", "fc.bias", *(f"bn1.{part}" for part in norm)}
    for stage in range(1, 5):
        for block in range(2):
            at = f"layer{stage}.{block}"
            for number in (1, 2):
                wanted.add(f"{at}.conv{number}.weight")
                wanted.update(f"{at}.bn{number}.{part}" for part in norm)
            if stage > 1 and block == 0:
                wanted.add(f"{at}.downsample.0.weight")
                wanted.update(f"{at}.downsample.1.{part}" for part in norm)
    assert names == wanted


def test_vgg11_has_the_names_of_torchvision():
    names = {name for name in models.VGG((2, 0, 3, 0), (5, 4), size=8).state_dict()}
    places = ("features.0", "features.3", "classifier.0", "classifier.3", "classifier.6")
    assert names == {f"{place}.{part}" for place in places for part in ("weight", "bias")}


def small_step(ctx):
    """(step of a small net with norms, its feeds)."""
    nn.seed(2)
    net = models.ResNet((2, 4), (1, 1), size=64)
    values = np.random.default_rng(5).normal(size=(3, 3, 64, 64)).astype(np.float32)
    loss, x, labels = loss_of(net, values.shape, 0.01)
    weights = net.parameters()
    updates = dlsys.optim.sgd(weights, autodiff.gradients(loss, weights), 0.05, momentum=0.9)
    return dlsys.compile(loss, {**updates, **net.updates()}, ctx), {x: values, labels: LABELS}


@pytest.mark.parametrize("ctx", [ndarray.cpu(0), ndarray.gpu(0)], ids=["cpu", "gpu"])
def test_a_net_with_norms_trains_on_every_back_end_as_on_numpy(ctx):
    losses = []
    for device in (None, ctx):
        step, feeds = small_step(device)
        losses.append([step(feeds, True) for _ in range(3)])
    assert losses[0][2] < losses[0][0]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)


def test_a_step_asks_for_no_memory_of_the_gpu_after_the_second():
    step, feeds = small_step(ndarray.gpu(0))
    counts = []
    for _ in range(4):
        step(feeds, True)
        arrays, raw = ctypes.c_int64(), ctypes.c_int64()
        _LIB.DLGetAllocationCounts(ctypes.byref(arrays), ctypes.byref(raw))
        counts.append((arrays.value, raw.value))
    assert counts[0][0] > 0
    assert counts[3] == counts[2] == counts[1]
