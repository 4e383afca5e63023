"""Times training steps of networks on the CPU back end, beside PyTorch with as many threads.

    python3 tools/net_speed.py [--threads 1 2] [--samples 15]

ResNet-14 at batch 64 and the simple residual net at batch 256, 32 x 32 images, SGD with momentum.
Both are timed in turn; medians with half the distance of the quartiles, and the quickest of each.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT / name) for name in ("solution/python", "tests/dlsys")]

import torch
from test_models import in_pytorch

import dlsys
from dlsys import autodiff, models, ndarray, nn, ops, optim
from dlsys.backend import program

#: Name in models.BY_NAME -> images of a batch.
NETS = {"resnet14": 64, "simple": 256}
RATE, MOMENTUM, CLASSES = 0.01, 0.9, 10


def our_step(net, images, labels):
    """A function that makes a step and gives its loss."""
    x = ops.variable("x", images.shape)
    y = ops.variable("y", labels.shape, np.int64)
    loss, weights = ops.cross_entropy(net(x, train=True), y), net.parameters()
    updates = optim.sgd(weights, autodiff.gradients(loss, weights), RATE, MOMENTUM)
    step = dlsys.compile(loss, updates, ndarray.cpu(0))
    return lambda: float(step({x: images, y: labels}, as_numpy=True))


def their_step(net, images, labels):
    """The same of PyTorch."""
    parameters = {
        name: torch.tensor(values, dtype=torch.float32, requires_grad=True)
        for name, values in net.state_dict().items()
    }
    optimiser = torch.optim.SGD(parameters.values(), RATE, momentum=MOMENTUM)
    x, y = torch.tensor(images), torch.tensor(labels)

    def step():
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(in_pytorch(torch, net, parameters, x), y)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def timed(steps, samples):
    """Milliseconds of each step, in turn, after losses that agree."""
    for _ in range(3):
        ours, theirs = (step() for step in steps)
        assert abs(ours - theirs) < 1e-3 * theirs, f"losses {ours} and {theirs}"
    found = [[], []]
    for _ in range(samples):
        for step, times in zip(steps, found, strict=True):
            start = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - start))
    return found


def said(times):
    """Median, half the distance of the quartiles, the quickest."""
    first, middle, third = statistics.quantiles(times, n=4)
    return f"{middle:.1f} ± {(third - first) / 2:.1f}, quickest {min(times):.1f}"


def main():
    """Prints a row for each net and number of threads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samples", type=int, default=15)
    options = parser.parse_args()
    print("| net | threads | back end, ms | PyTorch, ms | medians | quickest |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, batch in NETS.items():
        random = np.random.default_rng(0)
        images = random.normal(size=(batch, 3, 32, 32)).astype(np.float32)
        labels = random.integers(0, CLASSES, batch)
        nn.seed(0)
        net = models.BY_NAME[name](images.shape[1:], CLASSES)
        steps = our_step(net, images, labels), their_step(net, images, labels)
        for threads in options.threads:
            program.set_threads(threads)
            torch.set_num_threads(threads)
            ours, theirs = timed(steps, options.samples)
            ratio = statistics.median(theirs) / statistics.median(ours)
            cells = (name, threads, said(ours), said(theirs), f"{ratio:.2f}")
            print(
                "|", " | ".join(map(str, cells)), f"| {min(theirs) / min(ours):.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
