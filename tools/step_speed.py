"""Times a training step of an MLP on a GPU: rung by rung, beside PyTorch and JAX.

    PYTHONPATH=solution/python python3 tools/step_speed.py              # writes docs/step_speed.md
    PYTHONPATH=solution/python python3 tools/step_speed.py --quick      # without compilers that take minutes

The net is 784-256-100-10 at batch 1,000, all data on the GPU; a step is forward, backward and SGD.
Samples of 50 steps between two synchronisations, all in turn; medians with quartiles. Build first:
make -C solution DEVICE=cuda.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import torch

import dlsys
from dlsys import autodiff, ndarray, ops

KIT = Path(__file__).resolve().parent.parent
LAYERS, BATCH, RATE = (784, 256, 100, 10), 1000, 0.1
STEPS, SAMPLES = 50, 15
GPU = ndarray.gpu(0)


def values():
    """Images, labels as probabilities, weights and biases."""
    random = np.random.default_rng(0)
    sizes = list(zip(LAYERS, LAYERS[1:]))
    weights = [random.normal(0, 1 / np.sqrt(a), (a, b)).astype(np.float32) for a, b in sizes]
    biases = [np.zeros(b, np.float32) for _, b in sizes]
    images = random.random((BATCH, LAYERS[0])).astype(np.float32)
    labels = np.eye(LAYERS[-1], dtype=np.float32)[random.integers(0, LAYERS[-1], BATCH)]
    return images, labels, weights, biases


def our_step(**options):
    """(a function that makes one step, one that says the loss)."""
    images, labels, weights, biases = values()
    x, y = ops.variable("x"), ops.variable("y")
    w = [dlsys.parameter("w%d" % i, each) for i, each in enumerate(weights)]
    b = [dlsys.parameter("b%d" % i, each) for i, each in enumerate(biases)]
    hidden = x
    for i in range(len(w)):
        hidden = hidden @ w[i] + b[i]
        hidden = ops.relu(hidden) if i < len(w) - 1 else hidden
    loss = ops.cross_entropy(hidden, y)
    grads = autodiff.gradients(loss, [*w, *b])
    updates = {p: p - RATE * g for p, g in zip([*w, *b], grads)}
    step = dlsys.compile(loss, updates, ctx=GPU, **options)
    feeds = {x: ndarray.array(images, GPU), y: ndarray.array(labels, GPU)}
    return step, (lambda: step(feeds)), (lambda: float(step(feeds).asnumpy()))


def torch_step(kind):
    """The same in PyTorch."""
    images, labels, weights, biases = values()
    params = [torch.tensor(each, device="cuda", requires_grad=True) for each in weights + biases]
    x, y = torch.tensor(images, device="cuda"), torch.tensor(labels, device="cuda")

    def forward_backward(x, y, *params):
        hidden = x
        for i in range(3):
            hidden = torch.addmm(params[3 + i], hidden, params[i])
            hidden = torch.relu(hidden) if i < 2 else hidden
        loss = torch.nn.functional.cross_entropy(hidden, y)
        return loss, torch.autograd.grad(loss, params)

    if kind == "compile":
        forward_backward = torch.compile(forward_backward)

    def step():
        loss, grads = forward_backward(x, y, *params)
        with torch.no_grad():
            torch._foreach_add_(params, grads, alpha=-RATE)
        return loss

    if kind == "eager":
        return step, lambda: float(step())
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    return graph.replay, lambda: (graph.replay(), float(loss))[1]


def sample(function):
    """Seconds of one step, of STEPS in a row."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / STEPS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rungs = {
        "one launch after the other": {"fuse": False, "capture": False},
        "fused": {"fuse": True, "capture": False},
        "captured": {"fuse": False, "capture": True},
        "fused and captured": {"fuse": True, "capture": True},
    }
    functions, losses, steps = {}, {}, {}
    for name, how in rungs.items():
        steps[name], functions[name], said = our_step(**how)
        losses[name] = [said() for _ in range(5)]
    for kind in ("eager", "graph", *([] if options.quick else ["compile"])):
        functions["PyTorch " + kind], said = torch_step(kind)
        losses["PyTorch " + kind] = [said() for _ in range(5)]
    times = {name: [] for name in functions}
    for number in range(SAMPLES + 3):
        for name, function in functions.items():
            seconds = sample(function)
            if number >= 3:
                times[name].append(seconds * 1e6)
    for name, each in times.items():
        low, middle, high = statistics.quantiles(each, n=4)
        print("%-32s %8.1f us (%.1f to %.1f)  %s" % (name, middle, low, high, losses[name]))
    steps["fused and captured"].explain()
    return 0


if __name__ == "__main__":
    sys.exit(main())
