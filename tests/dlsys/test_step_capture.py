"""A step's launches as a CUDA graph: the same bits as one after the other, on the emulated GPU too.

CAPTURE_GRAPHS=500 pytest tests/dlsys/test_step_capture.py
"""

import os

import pytest
import step_graphs
from test_gemm import random_step

import dlsys
from dlsys import ndarray

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


def test_explain_says_on_how_many_streams(capsys):
    outputs, updates, feeds = layers(0)
    _, run = captured_bits((outputs, updates, feeds))
    assert f"capture: one call starts all, on {run.program.streams} streams" in run.explained()
    _, run = captured_bits((outputs, updates, feeds), capture=False)
    assert "capture: no, not asked for" in run.explained()
