"""Gradients of gradients of the full set, and the set beside PyTorch where that is installed."""

import numpy as np
import pytest
from test_ops import SAMPLES, applied

from dlsys import autodiff, ops
from dlsys.executor import dtype_of
from dlsys.gradcheck import evaluate, numeric_gradient

NEW = [sample for sample in SAMPLES if type(sample.values[0]).__module__.startswith("dlsys.ops")]


def depends(node, on):
    return on in autodiff.find_topo_sort([node])


@pytest.mark.parametrize(("op", "sample"), NEW)
def test_the_gradient_of_the_gradient_is_that_of_finite_differences(op, sample):
    node, feeds = applied(op, sample)
    fixed = {*op.labels, *op.indices}
    output_grad = autodiff.Variable(name="output_grad")
    random = np.random.default_rng(11)
    feeds = {**feeds, output_grad: random.uniform(0.5, 1.5, evaluate([node], feeds)[0].shape)}
    for number, grad in enumerate(op.gradient(node, output_grad)):
        if number in fixed:
            continue
        weights = random.uniform(0.5, 1.5, evaluate([grad], feeds)[0].shape)
        of_weights = autodiff.Variable(name="weights")
        wrt = [f for i, f in enumerate(feeds) if i not in fixed and depends(grad, f)]
        second = autodiff.gradients(ops.sum(grad * of_weights), wrt)
        got = evaluate(second, {**feeds, of_weights: weights})
        for fed, values in zip(wrt, got, strict=True):
            wanted = numeric_gradient(grad, feeds, fed, weights)
            np.testing.assert_allclose(values, wanted, atol=2e-6 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_, np.float32])
@pytest.mark.parametrize(("op", "sample"), [each for each in NEW if not each.values[0].draws])
def test_the_executor_keeps_all_that_numpy_computes(op, sample, dtype):
    """No value is cut to the dtype of what was fed; fractions of whole numbers are float64."""
    node, feeds = applied(op, sample)
    used = {fed: np.asarray(np.ceil(np.abs(v)), dtype) for fed, v in feeds.items()}
    executor = autodiff.Executor([node])
    if dtype is np.bool_ and getattr(op, "needs_numbers", False):
        with pytest.raises(TypeError, match=f"{op.name} takes numbers, not truth values; hint: "):
            executor.run(used)
        return
    whole = {*getattr(op, "indices", ()), *op.labels}
    dtypes = [each.dtype for each in used.values()]
    is_widened = dtype is not np.float32 and dtype_of(node, dtypes) == np.float64
    exact = [
        v.astype(np.float64) if is_widened and i not in whole else v
        for i, v in enumerate(used.values())
    ]
    wanted = op.forward(node, *exact)
    with np.errstate(all="ignore"):
        (got,) = executor.run(used)
    np.testing.assert_array_equal(got, np.asarray(wanted))
    assert np.can_cast(np.asarray(wanted).dtype, got.dtype, "safe")


def test_a_second_gradient_goes_through_relu():
    product = ops.hessian_vector_product(lambda x: ops.relu(x) * x * x)
    got = product(np.array([-1.0, 2.0, 3.0]), np.ones(3))
    np.testing.assert_allclose(got, [0, 12, 18])
