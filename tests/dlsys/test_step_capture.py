"""A step's launches as a CUDA graph: the same bits as one after the other, on the emulated GPU too.

CAPTURE_GRAPHS=500 pytest tests/dlsys/test_step_capture.py
"""

import os

import numpy as np
import pytest
import step_graphs
from test_gemm import random_step

import dlsys
from dlsys import autodiff, ndarray, ops
from dlsys.backend import capture, gpu, kernels

COUNT = int(os.environ.get("CAPTURE_GRAPHS", "3"))
GPU = ndarray.gpu(0)


def the_run(step):
    """The only run of a step."""
    (run,) = step._runs.values()
    return run


def layers(seed):
    """A net of random widths under SGD, and its feeds; weights and gradients go side by side."""
    outputs, feeds = random_step(seed)
    return outputs[:1], dict(zip(list(feeds)[2:], outputs[1:], strict=True)), feeds


def captured_bits(case, most_streams=None, **options):
    """(what four runs return and leave, the run), with launches recorded before the third."""
    outputs, updates, feeds = case
    step = dlsys.compile(outputs, updates, GPU, **options)
    fed = {node: values for node, values in feeds.items() if node not in updates}
    for parameter in updates:
        if parameter in feeds:
            step.set(parameter, feeds[parameter])
    first = step_graphs.bits(step, fed)
    if most_streams:
        the_run(step).program.capture(most_streams)
    return (first, step_graphs.bits(step, fed)), the_run(step)


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
def test_random_nets_have_the_same_bits_captured_on_many_streams_and_on_one(fuse):
    used = []
    for seed in range(COUNT):
        case = layers(seed)
        wanted, _ = captured_bits(case, fuse=fuse, capture=False)
        on_streams, run = captured_bits(case, fuse=fuse)
        on_one, single = captured_bits(case, 1, fuse=fuse)
        assert wanted == on_streams == on_one, seed
        assert run.capture == "" and single.program.streams == 1
        used.append(run.program.streams)
    assert max(used) > 1


def test_random_graphs_have_the_same_bits_captured_or_not():
    cases = [step_graphs.training(seed) for seed in range(4000, 4000 + 2 * COUNT)]
    step_graphs.compile_at_once([(*case, ()) for case in cases], GPU)
    captured = 0
    for case in cases:
        wanted, _ = captured_bits(case, fuse=False, passes=(), capture=False)
        got, run = captured_bits(case, fuse=False, passes=())
        assert got == wanted
        captured += run.capture == ""
    assert captured


def test_launches_that_edges_do_not_order_may_come_in_any_order(monkeypatch):
    """The emulated GPU draws an order; without the edges it gives other bits."""
    differ = 0
    for seed in range(COUNT):
        case = layers(seed)
        wanted, _ = captured_bits(case, capture=False)
        with monkeypatch.context() as changed:
            changed.setenv("EMULATOR_SHUFFLE", str(seed + 1))
            assert captured_bits(case)[0] == wanted, seed
            changed.setattr(capture, "needed", lambda found, place_of: [[] for _ in found])
            differ += captured_bits(case)[0] != wanted
    assert differ


def test_explain_says_on_how_many_streams(capsys):
    outputs, updates, feeds = layers(0)
    _, run = captured_bits((outputs, updates, feeds))
    assert f"capture: one call starts all, on {run.program.streams} streams" in run.explained()
    _, run = captured_bits((outputs, updates, feeds), capture=False)
    assert "capture: no, not asked for" in run.explained()


def test_explain_names_what_the_host_waits_for(capsys):
    table, rows = dlsys.parameter("table", np.ones((3, 2))), ops.variable("rows")
    loss = ops.sum(ops.embedding(table, rows) * 2)
    updates = {table: table - autodiff.gradients(loss, [table])[0]}
    feeds = [{rows: np.array(each)} for each in ([0, 1], [2, 2], [1, 0])]
    step, plain = (dlsys.compile(loss, updates, GPU, capture=each) for each in (True, False))
    for each in feeds:
        assert step(each, as_numpy=True) == plain(each, as_numpy=True)
    np.testing.assert_array_equal(step.get(table), plain.get(table))
    step.explain()
    said = capsys.readouterr().out
    assert "capture: 3 calls start all, on " in said
    assert "; the host waits for checks of indices: Embedding(table,rows)" in said
    # Where a limit keeps the check in its place, and nothing is written, one call makes all.
    step = dlsys.compile(loss, {table: table}, GPU, memory_limit=1 << 20)
    for each in feeds:
        step(each)
    step.explain()
    said = capsys.readouterr().out
    assert "capture: one call starts all, on " in said
    assert "; the host waits for checks of indices: Embedding(table,rows)" in said


def test_explain_says_that_nothing_is_recorded_yet(capsys):
    x = ops.variable("x")
    step = dlsys.compile(ops.tanh(x), {}, GPU)
    for said in ("from the second call on", "from the second call on", "one call starts all, on 1"):
        step.explain({x: np.ones(3)})
        assert f"capture: {said}" in capsys.readouterr().out
        step({x: np.ones(3)})


def test_rows_of_one_array_are_read_where_they_are():
    x, images = ops.variable("x"), ndarray.array(np.arange(6.0).reshape(3, 2), GPU)
    step = dlsys.compile(x * 2, {}, GPU)
    for _ in range(3):
        np.testing.assert_array_equal(step({x: images[1:3]}, as_numpy=True), [[4, 6], [8, 10]])
    run = the_run(step)
    assert run.program.is_captured and not run._own
    images[:] = np.ones((3, 2))
    np.testing.assert_array_equal(step({x: images[1:3]}, as_numpy=True), np.full((2, 2), 2))
    images[:] = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(step({x: images[0:2]}, as_numpy=True), [[0, 2], [4, 6]])


def spoiling(monkeypatch, line):
    """Has each kernel of tanh begin with a line."""
    plain = gpu._KINDS["elementwise"]

    def written(name, code, *rest):
        text = plain(name, code, *rest)
        kernels_of_it, launcher = text.split('extern "C"')
        begun = launcher.replace(") {\n", f") {{\n  {line}\n", 1)
        return f'{kernels_of_it}extern "C"{begun}' if "tanh" in code else text

    monkeypatch.setitem(gpu._KINDS, "elementwise", written)
    monkeypatch.setattr(kernels, "_name_of", kernels._name_of.__wrapped__)


@pytest.mark.parametrize(
    "line",
    [
        "void* room; if (cudaMalloc(&room, 4) != cudaSuccess) return -1;\n  cudaFree(room);",
        "void* room; cudaMalloc(&room, 4); cudaFree(room);",
        "cudaDeviceSynchronize();",
        "if (cudaStreamSynchronize(on) != cudaSuccess) return -1;",
    ],
    ids=["allocates", "allocates unchecked", "waits unchecked", "waits for its stream"],
)
def test_a_kernel_that_no_graph_can_hold_is_named_and_the_step_runs_without(monkeypatch, line):
    x, w = ops.variable("x"), dlsys.parameter("w", np.ones(3))
    y = ops.tanh(ops.exp(x * 2) * w) - 1
    feeds = {x: np.linspace(-1, 1, 3)}
    wanted = step_graphs.bits(dlsys.compile(y, {w: y}, GPU, fuse=False), feeds, 4)
    spoiling(monkeypatch, line)
    step = dlsys.compile(y, {w: y}, GPU, fuse=False)
    assert step_graphs.bits(step, feeds, 4) == wanted
    said = "allocates memory or waits for the device while it is recorded"
    assert f"capture: no, Tanh((Exp((x*2))*w)) {said}" in the_run(step).explained()
