"""Values that lie with their channels last, on all back ends: layers, reductions, pools, casts."""

import numpy as np
import pytest
from test_convolution import GPU

from dlsys import autodiff, dtypes, models, ndarray, nn, ops, optim
from dlsys.backend import program
from dlsys.backend.fusion import fuse
from dlsys.backend.images import MaxPool
from dlsys.backend.instructions import Elementwise, Reduce
from dlsys.backend.lowering import Lowering
from dlsys.backend.view import channels_last_view, loops_of, new_view
from dlsys.gradcheck import evaluate
from dlsys.step import compile

DEVICES = {"cpu": ndarray.cpu(0), "gpu": GPU}
NUMBERS = (dtypes.BFLOAT16, dtypes.FLOAT32)


@pytest.fixture
def channels_last(monkeypatch):
    """Convolutions whose results lie with their channels last, on any back end."""
    plain = Lowering.convolve

    def convolve(self, kind, method, shape, windows, channels, groups, *inputs):
        found = plain(self, kind, method, shape, windows, channels, groups, *inputs)
        return found if kind == "weights" else self.channels_last(found, found.dtype)

    monkeypatch.setattr(Lowering, "convolve", convolve)


def losses(ctx, method):
    """Of some steps of a small network with norms, pools and a residual."""
    nn.seed(3)
    first, second = (
        nn.Conv2d(channels, 8, 3, padding=1, method=method, bias=None) for channels in (2, 8)
    )
    norms, last = (nn.BatchNorm2d(8), nn.BatchNorm2d(8)), nn.Linear(8, 3)
    net = nn.Sequential(first, second, *norms, last)
    x, y = ops.variable("x", (4, 2, 6, 8), np.float32), ops.variable("y", (4,), np.int64)
    seen = ops.relu(norms[0](first(x, True), True))
    seen = ops.relu(seen + norms[1](second(seen, True), True))
    seen = ops.concatenate(ops.max_pool(seen, 2), ops.average_pool(seen, 2), axis=2)
    loss = ops.cross_entropy(last(ops.global_average_pool(seen), True), y)
    weights = net.parameters()
    updates = optim.sgd(weights, autodiff.gradients(loss, weights), 0.1, 0.9)
    step = compile([loss, seen], updates, ctx)
    random = np.random.default_rng(0)
    fed = {x: random.normal(size=(4, 2, 6, 8)).astype(np.float32), y: np.array([0, 2, 1, 2])}
    return [np.copy(v.asnumpy()) for _ in range(3) for v in step(fed)], step


@pytest.mark.parametrize("device", DEVICES)
def test_a_network_computes_the_same_with_channels_last(device, monkeypatch, request):
    wanted, _ = losses(DEVICES[device], "direct")
    request.getfixturevalue("channels_last")
    got, _ = losses(DEVICES[device], "direct")
    for found, expected in zip(got, wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def test_what_is_made_element_by_element_lies_as_its_input_does(channels_last):
    x, w = (ops.variable(name, (2, 3, 4, 5), np.float32) for name in "xw")
    seen = ops.convolution(x, w, padding=(1, 2), method="direct")
    nodes = autodiff.find_topo_sort([ops.relu(seen * 2.0 + 1.0)])
    fed = {x: ((2, 3, 4, 5), dtypes.FLOAT32), w: ((2, 3, 4, 5), dtypes.FLOAT32)}
    made = Lowering(fed).with_nodes([node for node in nodes if node not in fed])
    *_, last = made.instructions
    assert type(last) is Elementwise
    assert last.output.is_channels_last
    assert last.strides[0][-1] == 1  # its loops go along the channels


def test_a_training_in_bfloat16_learns_as_one_in_float32_does():
    """On the CPU back end; norms and parameters are float32."""
    found = {}
    for dtype in (None, "bfloat16"):
        nn.seed(0)
        net = models.ResNet((8, 16), (1, 1))
        x, y = ops.variable("x", (8, 3, 8, 8), np.float32), ops.variable("y", (8,), np.int64)
        with nn.autocast(dtype):
            logits = net(x, train=True)
        loss, weights = ops.cross_entropy(logits, y), net.parameters()
        updates = optim.sgd(weights, autodiff.gradients(loss, weights), 0.05, 0.9)
        step = compile(loss, updates | net.updates(), ndarray.cpu(0))
        random = np.random.default_rng(1)
        fed = {x: random.normal(size=(8, 3, 8, 8)).astype(np.float32), y: np.arange(8)}
        found[dtype] = [float(step(fed).asnumpy()) for _ in range(6)]
        assert {step.get(each).dtype for each in weights} == {dtypes.FLOAT32}
    np.testing.assert_allclose(found["bfloat16"][:2], found[None][:2], rtol=0.1)
    assert found["bfloat16"] != found[None]
    assert found["bfloat16"][-1] < 0.5 * found["bfloat16"][0]


def test_a_node_is_cast_to_what_has_a_fraction():
    x = ops.variable("x", (3,), np.float32)
    with pytest.raises(TypeError, match="is cast to bfloat16, float16, float32, float64, not"):
        ops.cast(x, "int32")
    (found,) = evaluate([ops.cast(x, "bfloat16")], {x: np.array([1.0, 1.001, 3.14159])})
    assert found.tolist() == [1.0, 1.0, 3.140625]


def test_loops_go_along_memory():
    """From the largest step to the smallest; those of reductions as the inputs lie."""
    assert loops_of((2, 3, 4), [(1, -8, 2), (1, 1, 1)])[0] == (3, 4, 2)
    x = channels_last_view((2, 8, 3, 4), dtypes.FLOAT32)
    made = Reduce(
        new_view((), dtypes.FLOAT32), (x,), "sum", "x0", dtypes.FLOAT32, x.shape, (0, 1, 2, 3)
    )
    assert (made.reduced, list(made.reduced_strides)) == ((192,), [(1,)])


def test_a_cast_that_nobody_reads_is_not_computed():
    w, x = ops.variable("w", (8, 8, 3, 3)), ops.variable("x", (2, 8, 6, 6))
    half = ops.cast(w, "bfloat16")
    fed = {w: ((8, 8, 3, 3), dtypes.FLOAT32), x: ((2, 8, 6, 6), dtypes.FLOAT32)}
    made = Lowering(fed).with_nodes([half, ops.relu(x)])
    (left,) = fuse(made.instructions, {made.instructions[-1].output.buffer})
    assert left is made.instructions[-1]


@pytest.mark.parametrize("channels", [5, 8])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("said", [
    {"kernel": 3, "stride": 2, "padding": 1}, {"kernel": 2}, {"kernel": (2, 3), "stride": (1, 2)},
    {"kernel": (3, 2), "stride": (2, 3), "ceil": True},
])  # fmt: skip
def test_a_gpu_pools_images_as_they_lie(said, dtype, channels):
    """The same bits as where they lie dense, of equal elements and NaN too."""
    random = np.random.default_rng(0)
    images = random.integers(-3, 4, (2, channels, 7, 6)).astype(np.float32)
    images[0, 1, 3, 2], images[1, 0, 0, :2] = np.nan, np.inf
    found = []
    for is_last in (False, True):
        x = ops.variable("x", (2, 7, 6, channels) if is_last else images.shape)
        seen = ops.transpose(x, (0, 3, 1, 2)) if is_last else x
        pooled = ops.max_pool(seen, **said)
        node = ops.sum(pooled * pooled)
        nodes = [pooled, autodiff.gradients(node, [x])[0]]
        fed = np.ascontiguousarray(images.transpose(0, 2, 3, 1)) if is_last else images
        made = program.Program(
            autodiff.find_topo_sort(nodes), nodes, {x: (fed.shape, dtype)}, DEVICES["gpu"]
        )
        made.feed({x: ndarray.array(fed.astype(dtype), DEVICES["gpu"], dtype)})
        value, grad = (each.asnumpy().astype(np.float32) for each in made.run())
        pools = [each for each in made.instructions if isinstance(each, MaxPool)]
        assert [each.is_last for each in pools] == [is_last] * 2
        found.append((value, grad.transpose(0, 3, 1, 2) if is_last else grad))
    for first, second in zip(*found, strict=True):
        np.testing.assert_array_equal(first, second)
