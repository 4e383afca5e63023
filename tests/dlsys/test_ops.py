"""Every op of the package, on the samples that its class states. A new op needs no line here."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from dlsys import autodiff, ndarray
from dlsys.gradcheck import evaluate, numeric_gradient

PACKAGE = Path(autodiff.__file__).parent


def modules():
    """The modules of the package, those of folders in it too."""
    for path in sorted(PACKAGE.rglob("[!_]*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield importlib.import_module(".".join(("dlsys", *parts)))


OPS = {
    name: thing
    for module in modules()
    for name, thing in vars(module).items()
    if isinstance(thing, autodiff.Op) and not thing.is_fed
}
SAMPLES = [
    pytest.param(op, sample, id=f"{name}-{number}")
    for name, op in OPS.items()
    for number, sample in enumerate(op.samples)
]
WITH_KERNELS = [
    each for each in SAMPLES if each.values[0].kernel or "launch" in vars(type(each.values[0]))
]


def applied(op, sample):
    """A node of the op, and values for its inputs, which are new variables."""
    random = np.random.default_rng(len(sample))
    arguments, feeds = list(sample), {}
    keywords = arguments.pop() if isinstance(sample[-1], dict) else {}
    for number, shape in enumerate(arguments):
        if isinstance(shape, tuple):
            arguments[number] = autodiff.Variable(name=f"x{number}")
            feeds[arguments[number]] = values_of(op, number, shape, random)
    return op(*arguments, **keywords), feeds


def values_of(op, number, shape, random):
    """Values for an input: indices, probabilities, or numbers where the op is smooth."""
    is_class = number in op.labels and len(shape) == 1
    if is_class or number in getattr(op, "indices", ()):
        return random.integers(0, 3, shape).astype(float)
    values = random.uniform(*getattr(op, "domain", (-2, 2)), shape)
    return autodiff.softmax_func(values) if number in op.labels and values.ndim == 2 else values


def differentiated(op, node, output_grad):
    """Nodes of the gradients of a node; none where the op says that it has no gradient."""
    try:
        return op.gradient(node, output_grad)
    except NotImplementedError as error:
        assert "has no gradient here" in str(error)
        return []


def subclasses(base):
    for kind in base.__subclasses__():
        yield kind
        yield from subclasses(kind)


def test_every_class_of_ops_has_its_object_and_samples():
    computing = {kind for kind in subclasses(autodiff.Op) if "label" in vars(kind)}
    assert computing == {type(op) for op in OPS.values()}
    assert [name for name, op in OPS.items() if not op.samples] == []


@pytest.mark.parametrize(("op", "sample"), SAMPLES)
def test_the_result_has_the_inferred_shape(op, sample):
    node, feeds = applied(op, sample)
    (value,) = evaluate([node], feeds)
    assert op.infer_shape(node, [values.shape for values in feeds.values()]) == value.shape


@pytest.mark.parametrize(("op", "sample"), SAMPLES)
def test_the_gradient_is_that_of_finite_differences(op, sample):
    node, feeds = applied(op, sample)
    weights = np.random.default_rng(7).uniform(0.5, 1.5, evaluate([node], feeds)[0].shape)
    output_grad = autodiff.Variable(name="output_grad")
    grads = differentiated(op, node, output_grad)
    got = evaluate(grads, {**feeds, output_grad: weights})
    assert len(got) in (0, len(feeds))
    for number, (fed, values) in enumerate(zip(feeds, got, strict=False)):
        wanted = numeric_gradient(node, feeds, fed, weights) * (number not in op.labels)
        assert values.shape == wanted.shape
        np.testing.assert_allclose(values, wanted, atol=1e-6 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize(("op", "sample"), WITH_KERNELS)
def test_the_gpu_computes_what_numpy_does(op, sample):
    """The op and its gradients, on inputs and in memory that the plan may use again."""
    node, feeds = applied(op, sample)
    output_grad = autodiff.Variable(name="output_grad")
    feeds[output_grad] = np.random.default_rng(7).uniform(
        0.5, 1.5, evaluate([node], feeds)[0].shape
    )
    grads = differentiated(op, node, output_grad)
    node.inputs = [fed * 1.0 for fed in node.inputs]
    nodes = [made + 0.0 for made in (node, *grads)]
    feeds = {fed: values.astype(np.float32) for fed, values in feeds.items()}
    expected = autodiff.Executor(nodes).run(dict(feeds))
    executor = autodiff.Executor(nodes, ctx=ndarray.gpu(0))
    for got, wanted in zip(executor.run(feeds, True), expected, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
