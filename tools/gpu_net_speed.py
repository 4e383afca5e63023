"""Times training steps of ResNet-18 on a GPU, beside PyTorch with a CUDA graph and channels last.

    python3 tools/gpu_net_speed.py                  # writes docs/gpu_train_speed.md
    python3 tools/gpu_net_speed.py --print --sizes 32

32 x 32 at batch 128, 224 x 224 at batch 64; SGD with momentum. Products are rounded to TF32, or
convolutions compute in bfloat16. The first losses of both must agree. Both are timed in turn, ten
steps at a time, and kernels of the back end are summed by name. Of 224 x 224, the loss alone is
timed, too: the forward pass of a training, with means and variances of the batch.
"""

import argparse
import itertools
import re
import statistics
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path

import numpy as np

KIT = Path(__file__).resolve().parent.parent
PAGE = KIT / "docs/gpu_train_speed.md"
sys.path[:0] = [str(KIT / name) for name in ("solution/python", "tests/dlsys")]

import torch
from test_models import in_pytorch

import dlsys
from dlsys import autodiff, models, ndarray, nn, ops, optim

#: Numbers -> how far the losses of the first steps may be apart.
NUMBERS = {"tf32": (1e-3, 1e-2, 3e-2), "bf16": (2e-2, 4e-2, 6e-2)}
#: Height and width of an image -> images of a batch, classes.
SIZES = {32: (128, 10), 224: (64, 1000)}
RATE, MOMENTUM = 0.01, 0.9
#: Whose forward pass is timed alone.
FORWARD = 224
_STEPS, _SAMPLES, _KERNELS = 10, 15, 12


def our_step(net, images, labels, numbers, trains=True):
    """A function that makes a step, or only computes its loss, which it gives: an array of the
    GPU."""
    x = ops.variable("x", images.shape)
    y = ops.variable("y", labels.shape, np.int64)
    with nn.autocast("bfloat16" if numbers == "bf16" else None):
        loss, weights = ops.cross_entropy(net(x, train=True), y), net.parameters()
    gpu, updates = ndarray.gpu(0), {}
    if trains:
        updates = optim.sgd(weights, autodiff.gradients(loss, weights), RATE, MOMENTUM)
    step = dlsys.compile(loss, updates, gpu, tf32=True)
    feeds = {x: ndarray.array(images, gpu), y: ndarray.array(labels, gpu, labels.dtype)}
    if not trains:  # then weights are no state of the step
        feeds.update((w, ndarray.array(w.initial.astype(np.float32), gpu)) for w in weights)
    return lambda: step(feeds)


def their_step(net, images, labels, numbers, trains=True):
    """The same of PyTorch: a graph that is replayed, and the losses of the first steps."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True

    def on_gpu(array):
        found = torch.tensor(array, device="cuda")
        by_channel = torch.channels_last if found.dim() == 4 else torch.preserve_format
        return found.contiguous(memory_format=by_channel)

    state = net.state_dict().items()
    parameters = {n: on_gpu(v.astype(np.float32)).requires_grad_() for n, v in state}
    optimiser = torch.optim.SGD(parameters.values(), RATE, momentum=MOMENTUM, foreach=True)
    x, y = on_gpu(images), on_gpu(labels)

    def forward():
        with torch.autocast("cuda", torch.bfloat16, numbers == "bf16", cache_enabled=False):
            found = in_pytorch(torch, net, parameters, x)
        return torch.nn.functional.cross_entropy(found.float(), y)

    def step():
        if not trains:
            with torch.no_grad():
                return forward()
        optimiser.zero_grad(set_to_none=False)
        loss = forward()
        loss.backward()
        optimiser.step()
        return loss

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        losses = [step().item() for _ in range(3)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        step()
    return graph.replay, losses


def milliseconds(step):
    """Of a step, of some in a row."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    first.record()
    for _ in range(_STEPS):
        step()
    torch.cuda.synchronize()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / _STEPS


def kernels_of(step):
    """Lines of the kernels that take the most of a step: milliseconds, launches, name."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(_STEPS):
            step()
        torch.cuda.synchronize()
    times = defaultdict(lambda: [0.0, 0.0])
    for event in found.key_averages():
        name = re.sub(r"^void |dlsys::backend::|[<(].*", "", event.key)
        times[name][0] += event.self_device_time_total / 1e3 / _STEPS
        times[name][1] += event.count / _STEPS
    ordered = sorted(times.items(), key=lambda each: -each[1][0])[:_KERNELS]
    return [f"| {name} | {time:.2f} | {count:.0f} |\n" for name, (time, count) in ordered]


def said(times):
    """Median, half the distance of the quartiles."""
    first, middle, third = statistics.quantiles(times, n=4)
    return f"{middle:.2f} ± {(third - first) / 2:.2f}"


def section(size, numbers, trains=True):
    """(a row of the table, the lines of the kernels)."""
    batch, classes = SIZES[size]
    random = np.random.default_rng(0)
    images = random.normal(size=(batch, 3, size, size)).astype(np.float32)
    labels = random.integers(0, classes, batch)
    nn.seed(0)
    net = models.resnet18(classes, 3, size)
    theirs, losses = their_step(net, images, labels, numbers, trains)
    ours = our_step(net, images, labels, numbers, trains)
    for loss, apart in zip(losses, NUMBERS[numbers], strict=True):
        own = float(ours().asnumpy())
        print(f"losses {own:.5f} and {loss:.5f}")
        assert abs(own - loss) < apart * loss, f"losses {own} and {loss}"
    times = [], []
    for _ in range(_SAMPLES):
        for step, kept in zip((ours, theirs), times, strict=True):
            kept.append(milliseconds(step))
    ratio = statistics.median(times[1]) / statistics.median(times[0])
    row = f"| {size} | {batch} | {numbers} | {said(times[0])} | {said(times[1])} | {ratio:.2f} |\n"
    print(row, flush=True)
    return row, kernels_of(ours)


def page(sizes, numbers):
    """The text of docs/gpu_train_speed.md."""
    found = {each: section(*each) for each in itertools.product(sizes, numbers)}
    forward = [section(FORWARD, each, False)[0] for each in numbers if FORWARD in sizes]
    version = torch.backends.cudnn.version()
    lines = [
        "# Training steps of ResNet-18 on a GPU\n\n",
        f"`tools/gpu_net_speed.py` on {torch.cuda.get_device_name()}, {date.today()}, PyTorch "
        f"{torch.__version__}, cuDNN {version}: forward,\nbackward and update, both in turn in one "
        "process; medians with half the distance of the quartiles. tf32: products\nare rounded to "
        "it; bf16: convolutions, and what lies between them, are of bfloat16. PyTorch replays a "
        "CUDA graph\nof a step in channels last. Kernels begin before those in front of them have "
        "ended, and their time has this wait in it.\n\n",
        "| H = W | batch | numbers | compiled step, ms | PyTorch, ms | ratio |\n"
        "|--:|--:|---|--:|--:|--:|\n",
        *(row for row, _ in found.values()),
    ]
    if forward:
        lines += [
            "\n## The forward pass of a training alone\n\n",
            "| H = W | batch | numbers | compiled, ms | PyTorch, ms | ratio |\n"
            "|--:|--:|---|--:|--:|--:|\n",
            *forward,
        ]
    for (size, kind), (_, kernels) in found.items():
        lines += [f"\n## Kernels of a step of {size} x {size}, {kind}\n\n"]
        lines += ["| kernel | ms | launches |\n|---|--:|--:|\n", *kernels]
    return "".join(lines)


def main():
    """Prints the page, and writes it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--numbers", nargs="+", choices=NUMBERS, default=list(NUMBERS))
    parser.add_argument("--print", action="store_true", help="writes nothing")
    options = parser.parse_args()
    text = page(options.sizes, options.numbers)
    print(text)
    if not options.print:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
