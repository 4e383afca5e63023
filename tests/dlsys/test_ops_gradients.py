"""Gradients of gradients of the full set, and the set beside PyTorch where that is installed."""

import numpy as np
import pytest
from test_ops import SAMPLES, applied

from dlsys import autodiff, ops
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
