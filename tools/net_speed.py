"""Times training steps of networks on the CPU back end, beside PyTorch with as many threads.

    python3 tools/net_speed.py           # writes docs/train_speed.md
    python3 tools/net_speed.py --print --threads 1 --samples 5

ResNet-14 at batch 64 and the simple residual net at batch 256, 32 x 32 images, SGD with momentum.
Both are timed in turn; medians with half the distance of the quartiles, and the quickest of each.
What steps allocate behind the first one is counted, too.
"""

import argparse
import platform
import statistics
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np

KIT = Path(__file__).resolve().parent.parent
PAGE = KIT / "docs/train_speed.md"
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


def rows(threads, samples):
    """Cells of each net and number of threads."""
    for name, batch in NETS.items():
        random = np.random.default_rng(0)
        images = random.normal(size=(batch, 3, 32, 32)).astype(np.float32)
        labels = random.integers(0, CLASSES, batch)
        nn.seed(0)
        net = models.BY_NAME[name](images.shape[1:], CLASSES)
        steps = our_step(net, images, labels), their_step(net, images, labels)
        for step in steps:
            step()
        for count in threads:
            program.set_threads(count)
            torch.set_num_threads(count)
            before = ndarray.allocations()
            ours, theirs = timed(steps, samples)
            made = ndarray.allocations() - before
            ratio = statistics.median(theirs) / statistics.median(ours)
            yield (
                name, batch, count, said(ours), said(theirs), f"{ratio:.2f}",
                f"{min(theirs) / min(ours):.2f}", made,
            )  # fmt: skip


def page(found):
    """The text of docs/train_speed.md."""
    head = ("net", "batch", "threads", "back end, ms", "PyTorch, ms", "medians", "quickest")
    head = (*head, "arrays made")
    lines = [
        "# Training steps on a CPU\n\n",
        f"`tools/net_speed.py` on {platform.machine()}, {date.today()}, PyTorch "
        f"{torch.__version__}: forward, backward and\nupdate, both in turn in one process. "
        "Medians with half the distance of the quartiles; PyTorch's time\nover the back end's, "
        "of the medians and of the quickest; arrays that all these steps behind the first\nmade "
        "in memory.\n\n",
        f"| {' | '.join(head)} |\n|---|{'--:|' * (len(head) - 1)}\n",
    ]
    return "".join([*lines, *(f"| {' | '.join(map(str, row))} |\n" for row in found)])


def main():
    """Prints the page, and writes it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--print", action="store_true", help="writes nothing")
    options = parser.parse_args()
    text = page(list(rows(options.threads, options.samples)))
    print(text)
    if not options.print:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
