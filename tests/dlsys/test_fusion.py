"""Fused kernels: random graphs with and without fusion, on the CPU and on the emulated GPU."""

import os

import numpy as np
import pytest
from test_backend_graphs import graph

from apart import lay_apart
from dlsys import autodiff, dtypes, ndarray, ops
from dlsys.backend import cpu, gpu, kernels, program
from dlsys.backend.fused import Fused
from dlsys.backend.fusion import fuse
from dlsys.backend.lowering import Lowering
from dlsys.backend.regroup import fuse_reductions, join_updates, recompute, spare_reads
from dlsys.gradcheck import evaluate

COUNT = int(os.environ.get("FUSION_GRAPHS", "30"))
AT_ONCE = 15
CPU, GPU = ndarray.cpu(0), ndarray.gpu(0)
#: What a step does on a device.
PASSES = {cpu: (fuse,), gpu: (fuse, recompute, fuse_reductions, spare_reads, join_updates)}


def fused_instructions(outputs, feeds, back_end, dtype=dtypes.FLOAT64):
    """What a program of the nodes is made of once it is fused."""
    kinds = {v: (x.shape, dtype) for v, x in feeds.items()}
    lowering = Lowering(kinds, dtype, back_end.MOST_PARTIAL)
    for node in autodiff.find_topo_sort(outputs):
        if node not in feeds:
            lowering.lower(node)
    values = [lowering.values[node] for node in outputs]
    handed_out = program._outputs(lowering, values, ())
    found = lowering.instructions
    for each in PASSES[back_end]:
        found = each(found, {view.buffer for view in handed_out})
    return found


def run(outputs, feeds, ctx, passes, dtype):
    """The values of a program of the nodes, and the program."""
    kinds = {v: (x.shape, dtype) for v, x in feeds.items()}
    order = autodiff.find_topo_sort(outputs)
    made = program.Program(order, outputs, kinds, ctx, passes=passes)
    made.feed({v: ndarray.array(x, ctx, dtype) for v, x in feeds.items()})
    return [value.asnumpy() for value in made.run()], made


@pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_random_graphs_have_the_same_values_fused(first, ctx, monkeypatch):
    back_end = gpu if ndarray.is_gpu_ctx(ctx) else cpu
    lay_apart(monkeypatch)
    graphs = [graph(seed) for seed in range(first, min(first + AT_ONCE, COUNT))]
    keys = {}
    for outputs, feeds in graphs:
        made = fused_instructions(outputs, feeds, back_end)
        keys.update(dict.fromkeys(each.key for each in made))
    kernels.kernels(back_end, list(keys))
    count = 0
    for number, (outputs, feeds) in enumerate(graphs):
        got, made = run(outputs, feeds, ctx, PASSES[back_end], dtypes.FLOAT64)
        count += sum(isinstance(each, Fused) for each in made.instructions)
        for node, found, expected in zip(outputs, got, evaluate(outputs, feeds), strict=True):
            expected = np.asarray(expected)
            bound = 1e-9 * (1 + np.abs(expected).max(initial=0))
            np.testing.assert_allclose(
                found, expected, rtol=0, atol=bound, err_msg=f"seed {first + number}, {node}"
            )
    assert count > len(graphs)


def mlp_head(rows, classes):
    """The loss of a last layer, its gradients, and values for what it is fed."""
    random = np.random.default_rng(classes)
    x, bias, y = (ops.variable(name) for name in ("x", "bias", "y"))
    loss = ops.cross_entropy(x + bias, y, smoothing=0.1)
    feeds = {
        x: random.normal(0, 2, (rows, classes)), bias: random.normal(0, 1, classes),
        y: random.dirichlet(np.ones(classes), rows),
    }  # fmt: skip
    return [loss, *autodiff.gradients(loss, [x, bias])], feeds


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])
def test_a_loss_and_its_gradient_are_one_kernel_of_rows(ctx, dtype):
    dtype = dtypes.checked(dtype)
    for rows, classes in ((1, 2), (5, 10), (33, 31), (7, 33), (3, 256)):
        outputs, feeds = mlp_head(rows, classes)
        plain, _ = run(outputs, feeds, ctx, (), dtype)
        got, made = run(outputs, feeds, ctx, (fuse,), dtype)
        kinds = [each for each in made.instructions if isinstance(each, Fused)]
        assert any(each.columns == classes for each in kinds)
        bound = {2: 2e-2, 4: 2e-6, 8: 1e-14}[dtype.itemsize]
        for found, expected in zip(got, plain, strict=True):
            found, expected = (each.astype(np.float64) for each in (found, expected))
            np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def test_a_value_that_others_read_is_written_once_and_only_then():
    x = ops.variable("x")
    inner = ops.tanh(x) * 2.0
    outputs = [inner + 1.0, ops.exp(inner)]
    _, made = run(outputs, {x: np.ones((4, 5))}, CPU, (fuse,), dtypes.FLOAT32)
    (one,) = made.instructions
    assert len(one.outputs) == 2
    _, made = run([*outputs, inner], {x: np.ones((4, 5))}, CPU, (fuse,), dtypes.FLOAT32)
    (one,) = made.instructions
    assert len(one.outputs) == 3


def test_no_group_waits_for_what_waits_for_it():
    """a and c loop over the same elements, but c needs the product of a."""
    x = ops.variable("x")
    a = ops.tanh(x)
    product = a @ a
    c = a + product
    values = np.random.default_rng(0).normal(size=(6, 6))
    (found,), made = run([c], {x: values}, CPU, (fuse,), dtypes.FLOAT64)
    np.testing.assert_allclose(found, np.tanh(values) + np.tanh(values) @ np.tanh(values))
    assert len(made.instructions) == 3


def test_elements_that_a_view_moves_are_read_from_memory():
    x = ops.variable("x")
    moved = ops.exp(ops.flip(ops.tanh(x), 0))
    values = np.random.default_rng(0).normal(size=(5, 3))
    (found,), made = run([moved], {x: values}, CPU, (fuse,), dtypes.FLOAT64)
    np.testing.assert_allclose(found, np.exp(np.tanh(values)[::-1]))
    assert len(made.instructions) == 2
