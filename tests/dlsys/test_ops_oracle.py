"""The full set of ops beside PyTorch: values and gradients. Skipped where that is missing."""

import numpy as np
import pytest

from dlsys import autodiff, ops
from dlsys.gradcheck import evaluate

torch = pytest.importorskip("torch")
F = torch.nn.functional

ANY, ABOVE = (-2.0, 2.0), (0.2, 2.0)
#: What ours is, what PyTorch's is, the shapes of the inputs, and between which numbers they are.
PAIRS = {
    "add": (ops.add, torch.add, [(3, 1), (4,)], ANY),
    "subtract": (lambda a, b: a - b, torch.sub, [(3, 1), (4,)], ANY),
    "multiply": (ops.multiply, torch.mul, [(2, 3), ()], ANY),
    "divide": (lambda a, b: a / b, torch.div, [(3, 4), (4,)], ABOVE),
    "power": (ops.power, torch.pow, [(3, 4), (3, 4)], ABOVE),
    "cube": (lambda x: x**3, lambda x: x**3, [(3, 4)], ANY),
    "two to the": (lambda x: 2.0**x, lambda x: 2.0**x, [(3, 4)], ANY),
    "negate": (lambda x: -x, torch.neg, [(3, 4)], ANY),
    "square": (ops.square, torch.square, [(3, 4)], ANY),
    "sqrt": (ops.sqrt, torch.sqrt, [(3, 4)], ABOVE),
    "rsqrt": (ops.rsqrt, torch.rsqrt, [(3, 4)], ABOVE),
    "exp": (ops.exp, torch.exp, [(3, 4)], ANY),
    "log": (ops.log, torch.log, [(3, 4)], ABOVE),
    "log1p": (ops.log1p, torch.log1p, [(3, 4)], ABOVE),
    "abs": (abs, torch.abs, [(3, 4)], ANY),
    "tanh": (ops.tanh, torch.tanh, [(3, 4)], ANY),
    "clip": (lambda x: ops.clip(x, -1, 0.5), lambda x: x.clip(-1, 0.5), [(3, 4)], ANY),
    "maximum": (ops.maximum, torch.maximum, [(3, 4), (4,)], ANY),
    "minimum": (ops.minimum, torch.minimum, [(3, 4), (4,)], ANY),
    "where": (
        lambda a, b: ops.where(a > b, a * 2, b),
        lambda a, b: torch.where(a > b, a * 2, b),
        [(3, 4), (4,)],
        ANY,
    ),
    "sum": (lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2)), [(2, 3, 4)], ANY),
    "mean": (lambda x: x.mean(1, True), lambda x: x.mean(1, True), [(2, 3, 4)], ANY),
    "variance": (
        lambda x: ops.variance(x, (0, 1), ddof=1),
        lambda x: x.var((0, 1), correction=1),
        [(2, 3, 4)],
        ANY,
    ),
    "max": (lambda x: x.max(-1), lambda x: x.amax(-1), [(3, 4)], ANY),
    "min": (lambda x: x.min(), lambda x: x.amin(), [(3, 4)], ANY),
    "prod": (lambda x: ops.prod(x, 1), lambda x: x.prod(1), [(3, 4)], ANY),
    "logsumexp": (lambda x: ops.logsumexp(x, 0), lambda x: x.logsumexp(0), [(3, 4)], ANY),
    "matmul": (lambda a, b: a @ b, torch.matmul, [(2, 1, 3, 4), (5, 4, 2)], ANY),
    "matmul of a vector": (lambda a, b: a @ b, torch.matmul, [(4,), (5, 4, 2)], ANY),
    "transpose": (
        lambda x: ops.transpose(x, (2, 0, 1)),
        lambda x: x.permute(2, 0, 1),
        [(2, 3, 4)],
        ANY,
    ),
    "T": (lambda x: x.T, lambda x: x.T, [(3, 4)], ANY),
    "reshape": (lambda x: x.reshape(4, -1), lambda x: x.reshape(4, -1), [(2, 6)], ANY),
    "flatten": (lambda x: ops.flatten(x, 1), lambda x: x.flatten(1), [(2, 3, 4)], ANY),
    "squeeze": (lambda x: ops.squeeze(x, 1), lambda x: x.squeeze(1), [(2, 1, 4)], ANY),
    "concatenate": (
        lambda a, b: ops.concatenate(a, b, axis=1),
        lambda a, b: torch.cat((a, b), 1),
        [(2, 3), (2, 1)],
        ANY,
    ),
    "stack": (
        lambda a, b: ops.stack(a, b, axis=1),
        lambda a, b: torch.stack((a, b), 1),
        [(2, 3), (2, 3)],
        ANY,
    ),
    "index": (lambda x: x[1, ::2], lambda x: x[1, ::2], [(3, 5)], ANY),
    "split": (lambda x: ops.split(x, 3, 1, 1), lambda x: x.chunk(3, 1)[1], [(2, 6)], ANY),
    "flip": (lambda x: ops.flip(x, (0, 1)), lambda x: x.flip((0, 1)), [(2, 3)], ANY),
    "pad": (
        lambda x: ops.pad(x, ((1, 2), (0, 3)), 7),
        lambda x: F.pad(x, (0, 3, 1, 2), value=7),
        [(2, 3)],
        ANY,
    ),
    "relu": (ops.relu, torch.relu, [(3, 4)], ANY),
    "leaky_relu": (lambda x: ops.leaky_relu(x, 0.1), lambda x: F.leaky_relu(x, 0.1), [(9,)], ANY),
    "sigmoid": (ops.sigmoid, torch.sigmoid, [(3, 4)], (-50.0, 50.0)),
    "gelu": (ops.gelu, F.gelu, [(3, 4)], ANY),
    "gelu by tanh": (
        lambda x: ops.gelu(x, tanh=True),
        lambda x: F.gelu(x, approximate="tanh"),
        [(9,)],
        ANY,
    ),
    "silu": (ops.silu, F.silu, [(3, 4)], ANY),
    "softplus": (ops.softplus, F.softplus, [(3, 4)], ANY),
    "erf": (ops.erf, torch.erf, [(3, 4)], ANY),
    "softmax": (lambda x: ops.softmax(x, 1), lambda x: x.softmax(1), [(2, 3, 4)], ANY),
    "log_softmax": (ops.log_softmax, lambda x: x.log_softmax(-1), [(3, 4)], (-500.0, 500.0)),
    "mse": (ops.mse, F.mse_loss, [(3, 4), (3, 4)], ANY),
}
CLASSES = np.array([2, 0, 1, 2, 2])
LOSSES = {
    "cross_entropy": (
        lambda x, y: ops.cross_entropy(x, y, smoothing=0.1),
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
    ),
    "its sum": (
        lambda x, y: ops.cross_entropy(x, y, reduction="sum"),
        lambda x, y: F.cross_entropy(x, y, reduction="sum"),
    ),
    "nll": (
        lambda x, y: ops.nll(ops.log_softmax(x), y, "none"),
        lambda x, y: F.nll_loss(x.log_softmax(-1), y, reduction="none"),
    ),
    "gather": (
        lambda x, y: ops.gather(x, ops.expand_dims(y, 1), 1),
        lambda x, y: x.gather(1, y[:, None]),
    ),
    "scatter_add": (
        lambda x, y: ops.scatter_add(x * x, ops.expand_dims(y, 1), x[:, 1:2], 1),
        lambda x, y: (x * x).scatter_add(1, y[:, None], x[:, 1:2]),
    ),
    "embedding": (lambda x, y: ops.embedding(x, y), lambda x, y: F.embedding(y, x)),
    "one_hot": (lambda x, y: x * ops.one_hot(y, 3), lambda x, y: x * F.one_hot(y, 3)),
}


def compared(ours, theirs, arrays, more=()):
    """Our values and gradients, checked against PyTorch's."""
    variables = [autodiff.Variable(name=f"x{i}") for i in range(len(arrays))]
    extra = [autodiff.Variable(name=f"y{i}") for i in range(len(more))]
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    wanted = theirs(*tensors, *map(torch.tensor, more))
    node = ours(*variables, *extra)
    feeds = dict(zip([*variables, *extra], [*arrays, *more], strict=True))
    (value,) = evaluate([node], feeds)
    np.testing.assert_allclose(value, wanted.detach().numpy(), rtol=1e-12, atol=1e-12)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, value.shape)
    wanted.backward(torch.tensor(weights))
    grads = autodiff.gradients(ops.sum(node * ops.constant(weights)), variables)
    for got, tensor in zip(evaluate(grads, feeds), tensors, strict=True):
        np.testing.assert_allclose(got, tensor.grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients_are_those_of_pytorch(name):
    ours, theirs, shapes, domain = PAIRS[name]
    random = np.random.default_rng(5)
    compared(ours, theirs, [random.uniform(*domain, shape) for shape in shapes])


@pytest.mark.parametrize("name", LOSSES)
def test_what_takes_indices_is_that_of_pytorch(name):
    ours, theirs = LOSSES[name]
    compared(ours, theirs, [np.random.default_rng(6).uniform(-2, 2, (5, 3))], [CLASSES])


@pytest.mark.parametrize("name", ["max", "min", "prod"])
def test_ties_and_zeros_have_the_gradients_of_pytorch(name):
    values = np.array([[0.0, 0.0, 3.0], [0.0, 2.0, 3.0], [1.0, 3.0, 3.0]])
    theirs = {"max": torch.amax, "min": torch.amin, "prod": torch.prod}[name]
    compared(lambda x: getattr(ops, name)(x, 1), lambda x: theirs(x, 1), [values])
