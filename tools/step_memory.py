"""Peak memory of training steps beside the lower bound and PyTorch's. Writes docs/step_memory.md.

    PYTHONPATH=solution/python python3 tools/step_memory.py          # on a GPU
    PYTHONPATH=solution/python python3 tools/step_memory.py --print  # prints, writes nothing

Bytes of intermediate values and gradients: parameters, feeds and outputs are not counted, in
PyTorch neither. Without an NVIDIA GPU the plans are those of the emulated one, and PyTorch is left
out. Build first: make -C solution DEVICE=cuda.
"""

import argparse
import itertools
import json
import sys
from datetime import date
from pathlib import Path

import numpy as np

import dlsys
from dlsys import autodiff, ndarray, ops
from step_speed import named_device, version_of

KIT = Path(__file__).resolve().parent.parent
KEPT, PAGE = KIT / "docs/step_memory.json", KIT / "docs/step_memory.md"
BATCH, RATE = 1000, 0.1
#: Name -> sizes of a net's layers, or how many diamonds there are, one below the other.
NETS = {
    "MLP 784-256-100-10": (784, 256, 100, 10),
    "MLP of 50 layers of 256": (784, *[256] * 49, 10),
    "ladder of 50 diamonds": 50,
}
#: Column -> options of compile.
WAYS = {
    "no fusion": {"fuse": False, "capture": False},
    "fused": {"capture": False},
    "captured, side by side": {},
}


def weights_of(net):
    """Values of the parameters, float32: matrices, or the one that a ladder starts from."""
    random = np.random.default_rng(0)
    if isinstance(net, int):
        return [random.normal(size=(BATCH, 256)).astype(np.float32)]
    sizes = itertools.pairwise(net)
    return [random.normal(0, a**-0.5, (a, b)).astype(np.float32) for a, b in sizes]


def feeds_of(net):
    """Images and classes, or nothing for a ladder."""
    if isinstance(net, int):
        return []
    random = np.random.default_rng(1)
    images = random.random((BATCH, net[0])).astype(np.float32)
    return [images, np.eye(net[-1], dtype=np.float32)[random.integers(0, net[-1], BATCH)]]


def loss_of(net, weights, fed, function):
    """The loss, in what `function` computes with: dlsys.ops or torch."""
    if isinstance(net, int):
        (x,) = weights
        for _ in range(net):
            x = function.tanh(x) + function.sigmoid(x)
        return function.mean(x)
    x, y = fed
    for number, weight in enumerate(weights):
        x = x @ weight
        x = function.relu(x) if number < len(weights) - 1 else x
    return -function.mean(function.sum(y * function.log_softmax(x, -1), -1))


def our_bytes(net, options):
    """(bytes of intermediate values, lower bound for the order that was chosen)."""
    parameters = [dlsys.parameter(f"w{i}", each) for i, each in enumerate(weights_of(net))]
    values = feeds_of(net)
    fed = [ops.variable(f"fed{i}") for i in range(len(values))]
    loss = loss_of(net, parameters, fed, ops)
    grads = autodiff.gradients(loss, parameters)
    updates = {p: p - RATE * g for p, g in zip(parameters, grads, strict=True)}
    step = dlsys.compile(loss, updates, ctx=ndarray.gpu(0), **options)
    run = step.run_of(dict(zip(fed, values, strict=True)), "tools/step_memory.py")
    return run.program.peak, run.bound


def torch_bytes(net):
    """Bytes that PyTorch's step takes beyond parameters and feeds, at most."""
    import torch

    parameters = [torch.tensor(w, device="cuda", requires_grad=True) for w in weights_of(net)]
    fed = [torch.tensor(each, device="cuda") for each in feeds_of(net)]
    for _ in range(2):  # the first one makes what stays, such as the workspace of cuBLAS
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        grads = torch.autograd.grad(loss_of(net, parameters, fed, torch), parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, grads, alpha=-RATE)
        del grads
    return torch.cuda.max_memory_allocated() - before


def measured():
    """What docs/step_memory.json keeps."""
    rows = {}
    for name, net in NETS.items():
        rows[name] = {way: our_bytes(net, options) for way, options in WAYS.items()}
        if not ndarray.is_emulated():
            rows[name]["PyTorch"] = torch_bytes(net)
    device, driver = named_device()
    return {
        "device": device, "driver": driver, "date": date.today().isoformat(),
        "torch": version_of("torch"), "rows": rows,
    }  # fmt: skip


def size(count):
    """Bytes in MB."""
    return f"{count / 1e6:,.2f}"


def page(kept):
    """The text of docs/step_memory.md."""
    lines = [
        "# Memory of a training step\n\n",
        "`tools/step_memory.py` on {device}, driver {driver}, {date}, PyTorch {torch}.\n".format(
            **kept
        ),
        f"MB of intermediate values and gradients at batch {BATCH:,}, float32, SGD; in brackets "
        "the lower bound\nfor the order of instructions that was chosen: what is alive at once. "
        "Parameters, feeds and outputs\nare not counted. A captured step lets values share no "
        "memory, so that launches run side by side.\n\n",
        f"| net | {' | '.join(WAYS)} | PyTorch eager |\n|---|{'--:|' * len(WAYS)}--:|\n",
    ]
    for name, row in kept["rows"].items():
        cells = [f"{size(row[way][0])} ({size(row[way][1])})" for way in WAYS]
        cells.append(size(row["PyTorch"]) if "PyTorch" in row else "not measured")
        lines.append(f"| {name} | {' | '.join(cells)} |\n")
    return "".join(lines)


def main():
    """Measures, and writes both files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--print", action="store_true", help="write nothing")
    options = parser.parse_args()
    kept = measured()
    if not options.print and not ndarray.is_emulated():
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        PAGE.write_text(page(kept))
    print(page(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
