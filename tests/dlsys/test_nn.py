"""Layers beside PyTorch, names, initial values, files of weights, and the summary."""

import numpy as np
import pytest

import dlsys
from dlsys import autodiff, ndarray, nn, ops
from dlsys.gradcheck import evaluate
from dlsys.nn import init
from dlsys.step.files import FileError

CPU = ndarray.cpu(0)


def numbers(*shape):
    return np.random.default_rng(8).normal(size=shape)


def initial(module):
    """Parameter -> initial value."""
    return {node: node.initial for node in module.named_parameters().values()}


def value_and_gradients(module, values, train):
    """(value, gradient of the input, name -> gradient) of a module, on numpy."""
    x, g = ops.variable("x", values.shape), ops.variable("g")
    found = module(x, train)
    wrt = module.parameters()
    grads = autodiff.gradients(found * g, [x, *wrt])
    feeds = {x: values, **initial(module)}
    feeds[g] = numbers(*evaluate([found], feeds)[0].shape)
    value, *grads = evaluate([found, *grads], feeds)
    return value, grads[0], dict(zip((node.name for node in wrt), grads[1:], strict=True))


def beside_pytorch(module, theirs, values, train=True):
    """Raises unless both have the same value and gradients, with our parameters."""
    torch = pytest.importorskip("torch")
    theirs = theirs(torch).double().train(train)
    ours = {n: torch.tensor(v) for n, v in module.state_dict().items()}
    theirs.load_state_dict(ours, strict=False)
    x = torch.tensor(values, requires_grad=True)
    value = theirs(x)
    value.backward(torch.tensor(numbers(*value.shape)))
    got, of_x, of_parameters = value_and_gradients(module, values, train)
    np.testing.assert_allclose(got, value.detach(), atol=1e-12)
    np.testing.assert_allclose(of_x, x.grad, atol=1e-11)
    expected = {name: each.grad for name, each in theirs.named_parameters()}
    assert of_parameters.keys() == expected.keys()
    for name, grad in expected.items():
        np.testing.assert_allclose(of_parameters[name], grad, atol=1e-11, err_msg=name)
    return theirs


def moved(module):
    """The module, with other parameters than ones and zeros."""
    for number, node in enumerate(module.named_parameters().values()):
        node.initial = np.random.default_rng(number).uniform(0.5, 1.5, node.initial.shape)
    return module


LAYERS = {
    "linear": (lambda: nn.Linear(5, 4), lambda t: t.nn.Linear(5, 4), (3, 5)),
    "conv": (
        lambda: nn.Conv2d(4, 6, 3, 2, 1, groups=2),
        lambda t: t.nn.Conv2d(4, 6, 3, 2, 1, groups=2),
        (2, 4, 5, 6),
    ),
    "batch norm": (lambda: nn.BatchNorm2d(3), lambda t: t.nn.BatchNorm2d(3), (4, 3, 2, 5)),
    "layer norm": (lambda: nn.LayerNorm((3, 4)), lambda t: t.nn.LayerNorm((3, 4)), (2, 5, 3, 4)),
    "group norm": (lambda: nn.GroupNorm(2, 4), lambda t: t.nn.GroupNorm(2, 4), (3, 4, 2, 3)),
    "max pool": (lambda: nn.MaxPool2d(3, 2, 1), lambda t: t.nn.MaxPool2d(3, 2, 1), (2, 3, 6, 5)),
    "average pool": (lambda: nn.AveragePool2d(2), lambda t: t.nn.AvgPool2d(2), (2, 3, 4, 6)),
    "activations": (
        lambda: nn.Sequential(nn.ReLU(), nn.Gelu(), nn.Sigmoid(), nn.Tanh(), nn.Flatten()),
        lambda t: t.nn.Sequential(
            t.nn.ReLU(), t.nn.GELU(), t.nn.Sigmoid(), t.nn.Tanh(), t.nn.Flatten()
        ),
        (2, 3, 4),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_pytorch_has_the_same_value_and_gradients(name):
    ours, theirs, shape = LAYERS[name]
    beside_pytorch(moved(ours()), theirs, numbers(*shape))


def test_running_figures_move_as_those_of_pytorch_and_are_taken_after_training():
    module, values = moved(nn.BatchNorm2d(3)), numbers(4, 3, 2, 5)
    theirs = beside_pytorch(module, lambda torch: torch.nn.BatchNorm2d(3), values)
    x = ops.variable("x", values.shape)
    module(x, train=True)
    updates = module.updates()
    assert list(updates) == [module.running_mean, module.running_var]
    news = evaluate(list(updates.values()), {x: values, **initial(module)})
    for got, wanted in zip(news, (theirs.running_mean, theirs.running_var), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-13)
    beside_pytorch(module, lambda torch: torch.nn.BatchNorm2d(3), values, train=False)


def test_running_figures_follow_the_batches_of_a_step():
    nn.seed(3)
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
    x, values = ops.variable("x", (4, 2, 5, 5)), numbers(4, 2, 5, 5)
    loss = ops.mean(ops.square(net(x, train=True)))
    updates = {p: p for p in net.parameters()} | net.updates()
    on_cpu, on_numpy = (dlsys.compile(loss, updates, ctx) for ctx in (CPU, None))
    for step in (on_cpu, on_numpy):
        for _ in range(3):
            step({x: values})
    got, wanted = (net.state_dict(step) for step in (on_cpu, on_numpy))
    assert set(got) == {
        "0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
    }  # fmt: skip
    assert np.abs(wanted["1.running_mean"]).max() > 0.01
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, atol=1e-5)


def test_dropout_drops_while_training_alone_and_never_the_same():
    module, x = nn.Dropout(0.25), ops.variable("x")
    first, second = module(x, train=True), module(x, train=True)
    drawn = [evaluate([each], {x: np.ones(4000)})[0] for each in (first, second)]
    for values in drawn:
        assert set(np.unique(values)) == {0.0, 1 / 0.75}
        assert abs(values.mean() - 1) < 0.05
    assert (drawn[0] != drawn[1]).any()
    assert module(x) is x
    with pytest.raises(ValueError, match="the rate is 1"):
        nn.Dropout(1)


def test_a_group_norm_says_what_it_lacks():
    with pytest.raises(ValueError, match="5 channels have no 2 equal groups"):
        nn.GroupNorm(2, 5)
    with pytest.raises(ValueError, match="the shape of x is not known"):
        nn.GroupNorm(2, 4)(ops.variable("x"))


DEVIATIONS = {
    "kaiming_normal": (init.kaiming_normal(), np.sqrt(2 / 180)),
    "kaiming_normal of fan-out": (init.kaiming_normal("out"), np.sqrt(2 / 270)),
    "kaiming_uniform": (init.kaiming_uniform(gain=1.0), np.sqrt(1 / 180)),
    "xavier_normal": (init.xavier_normal(), np.sqrt(2 / 450)),
    "xavier_uniform": (init.xavier_uniform(2.0), 2 * np.sqrt(2 / 450)),
    "normal": (init.normal(0.3), 0.3),
    "uniform": (init.uniform(-1, 1), np.sqrt(1 / 3)),
    "scaled": (init.scaled(init.normal(), 0.1), 0.1),
}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_initial_values_have_the_deviation_of_their_rule(name):
    initialiser, deviation = DEVIATIONS[name]
    nn.seed(1)
    values = initialiser((30, 20, 3, 3))
    assert abs(values.std() / deviation - 1) < 0.03
    assert abs(values.mean()) < 0.05 * deviation
    if "uniform" in name:
        assert np.abs(values).max() <= deviation * np.sqrt(3) * 1.000001


def test_one_seed_gives_the_same_values_and_no_two_layers_are_alike():
    nets = []
    for seed in (5, 5, 6):
        nn.seed(seed)
        nets.append(nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Conv2d(6, 6, 1)))
    first, again, other = (list(net.state_dict().values()) for net in nets)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    weights = [values.ravel() for values in (*first, *other) if values.ndim > 1]
    for number, values in enumerate(weights):
        for each in weights[:number]:
            assert not np.isin(values, each).any()


def test_fans_count_what_comes_in_and_what_goes_out():
    assert init.fans((4, 7)) == (7, 4)
    assert init.fans((6, 2, 3, 5)) == (30, 90)
    with pytest.raises(ValueError, match="has no fan"):
        init.fans((3,))
    with pytest.raises(ValueError, match="the fan is 'both'"):
        init.kaiming_normal("both")((3, 4))


def test_equal_distances_and_constants():
    np.testing.assert_allclose(init.linspace(-1, 1)((2, 2)), [[-1, -1 / 3], [1 / 3, 1]])
    assert (init.constant(2.5)((2, 3)) == 2.5).all()


def test_weights_go_through_a_file_to_another_net(tmp_path):
    nn.seed(1)
    first, second = (nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)) for _ in range(2))
    nn.save(tmp_path / "net.safetensors", first.state_dict())
    second.load_state_dict(nn.load(tmp_path / "net.safetensors"))
    for name, values in first.state_dict().items():
        np.testing.assert_array_equal(second.state_dict()[name], values)
    whole = (tmp_path / "net.safetensors").read_bytes()
    (tmp_path / "net.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="is damaged"):
        nn.load(tmp_path / "net.safetensors")


def test_a_state_of_another_net_changes_nothing():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm2d(2))
    before = net.state_dict()
    state = {name: values + 1 for name, values in before.items()}
    with pytest.raises(ValueError, match=r"lacks 0\.bias, and has extra besides"):
        net.load_state_dict({n: v for n, v in {**state, "extra": 1}.items() if n != "0.bias"})
    with pytest.raises(ValueError, match=r"0\.weight has shape \(2, 3\), there it is \(3, 2\)"):
        net.load_state_dict({**state, "0.weight": np.ones((3, 2))})
    for name, values in net.state_dict().items():
        np.testing.assert_array_equal(values, before[name])
    net.load_state_dict({**state, "1.num_batches_tracked": np.array(7)})
    np.testing.assert_array_equal(net.state_dict()["0.bias"], before["0.bias"] + 1)


def test_a_summary_counts_parameters_and_multiply_adds():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Flatten(), nn.Linear(128, 10))
    lines = nn.summary(net, (2, 3, 8, 8)).splitlines()
    assert [line.split()[:2] for line in lines[1:-1]] == [
        ["0", "Conv2d"], ["1", "Flatten"], ["2", "Linear"],
    ]  # fmt: skip
    assert lines[1].split()[2:] == ["2", "x", "8", "x", "4", "x", "4", "224", "6,912", "1"]
    assert lines[-1].split() == ["together", "1,514", "9,472", "2"]


@pytest.mark.parametrize(
    "made",
    [
        lambda: nn.Linear(0, 3),
        lambda: nn.Linear(3, -1),
        lambda: nn.Linear(3.5, 2),
        lambda: nn.Linear("3", 2),
        lambda: nn.Conv2d(0, 4, 3),
        lambda: nn.BatchNorm2d(0),
        lambda: nn.LayerNorm((3, 0)),
    ],
)
def test_a_layer_of_no_size_is_refused(made):
    with pytest.raises(ValueError, match=r"a parameter of shape .*; hint: whole numbers from 1 on"):
        made()


@pytest.mark.parametrize(("channels", "filters", "groups"), [(3, 4, 0), (3, 4, 2), (4, 3, 2)])
def test_groups_that_do_not_divide_are_refused(channels, filters, groups):
    with pytest.raises(ValueError, match=r"have no . equal groups"):
        nn.Conv2d(channels, filters, 3, groups=groups)
    with pytest.raises(ValueError, match=r"have no . equal groups"):
        nn.GroupNorm(groups, 3)
