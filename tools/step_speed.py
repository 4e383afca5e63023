"""Times a training step of an MLP on a GPU: rung by rung, beside PyTorch and JAX.

    PYTHONPATH=solution/python python3 tools/step_speed.py              # writes docs/step_speed.md
    PYTHONPATH=solution/python python3 tools/step_speed.py --quick      # without slow compilers

The net is 784-256-100-10 at batch 1,000, all data on the GPU; a step is forward, backward and SGD.
Samples of 50 steps between two synchronisations, all in turn; medians with quartiles. Build first:
make -C solution DEVICE=cuda.
"""

import argparse
import contextlib
import io
import itertools
import json
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np

import dlsys
from dlsys import autodiff, ndarray, ops

KIT = Path(__file__).resolve().parent.parent
LAYERS, BATCH, RATE = (784, 256, 100, 10), 1000, 0.1
STEPS, SAMPLES = 50, 15
GPU = ndarray.gpu(0)
KEPT, PAGE = KIT / "docs/step_speed.json", KIT / "docs/step_speed.md"
#: What each rung adds to the one before.
RUNGS = {
    "one launch after the other": {"fuse": False, "capture": False},
    "captured as a CUDA graph": {"fuse": False, "capture": True},
    "fused": {"fuse": True, "capture": False},
    "fused and captured": {"fuse": True, "capture": True},
}


def values():
    """Images, labels as probabilities, weights and biases."""
    random = np.random.default_rng(0)
    sizes = list(itertools.pairwise(LAYERS))
    weights = [random.normal(0, 1 / np.sqrt(a), (a, b)).astype(np.float32) for a, b in sizes]
    biases = [np.zeros(b, np.float32) for _, b in sizes]
    images = random.random((BATCH, LAYERS[0])).astype(np.float32)
    labels = np.eye(LAYERS[-1], dtype=np.float32)[random.integers(0, LAYERS[-1], BATCH)]
    return images, labels, weights, biases


def our_step(**options):
    """(a function that makes one step, one that says the loss)."""
    images, labels, weights, biases = values()
    x, y = ops.variable("x"), ops.variable("y")
    w = [dlsys.parameter(f"w{i}", each) for i, each in enumerate(weights)]
    b = [dlsys.parameter(f"b{i}", each) for i, each in enumerate(biases)]
    hidden = x
    for i in range(len(w)):
        hidden = hidden @ w[i] + b[i]
        hidden = ops.relu(hidden) if i < len(w) - 1 else hidden
    loss = ops.cross_entropy(hidden, y)
    grads = autodiff.gradients(loss, [*w, *b])
    updates = {p: p - RATE * g for p, g in zip([*w, *b], grads, strict=True)}
    step = dlsys.compile(loss, updates, ctx=GPU, **options)
    feeds = {x: ndarray.array(images, GPU), y: ndarray.array(labels, GPU)}
    return step, (lambda: step(feeds)), (lambda: float(step(feeds).asnumpy()))


def torch_step(kind):
    """The same in PyTorch."""
    import torch

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

    if kind.startswith("compile"):
        forward_backward = torch.compile(forward_backward)

    def step():
        loss, grads = forward_backward(x, y, *params)
        with torch.no_grad():
            torch._foreach_add_(params, grads, alpha=-RATE)
        return loss

    if kind == "eager":
        return step, lambda: float(step().detach())
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    return graph.replay, lambda: (graph.replay(), float(loss.detach()))[1]


def jax_epoch():
    """STEPS steps in JAX, as one compiled loop."""
    import jax
    import jax.numpy as jnp

    images, labels, weights, biases = values()
    x, y = jax.device_put(images), jax.device_put(labels)
    jax.config.update("jax_default_matmul_precision", "highest")

    def loss_of(params, x, y):
        hidden = x
        for i in range(3):
            hidden = hidden @ params[i] + params[3 + i]
            hidden = jax.nn.relu(hidden) if i < 2 else hidden
        return -(y * jax.nn.log_softmax(hidden)).sum(1).mean()

    def one(params, _):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        return [p - RATE * g for p, g in zip(params, grads, strict=True)], loss

    epoch = jax.jit(lambda params, count: jax.lax.scan(one, params, jnp.arange(count))[1],
                    static_argnums=1)  # fmt: skip
    params = [jax.device_put(each) for each in weights + biases]
    losses = [float(each) for each in epoch(params, 5)]
    return lambda: epoch(params, STEPS).block_until_ready(), losses


def seconds_of(function, runs=STEPS):
    """Seconds of one step, of `runs` in a row."""
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(runs):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / STEPS


def measured(quick):
    """Name -> {"us": quartiles, "losses": of the first five steps}, and what `explain` prints."""
    found, functions, runs = {}, {}, {}
    for name, how in RUNGS.items():
        step, functions[name], said = our_step(**how)
        found[name] = {"losses": [said() for _ in range(5)]}
    for kind in ("eager", "CUDA graph", *([] if quick else ["compile and CUDA graph"])):
        name = "PyTorch " + kind
        functions[name], said = torch_step(kind)
        # A graph is made of five steps that have been.
        found[name] = {"losses": [said() for _ in range(5)] if kind == "eager" else []}
    if not quick:
        name = f"JAX, {STEPS} steps a call"
        functions[name], losses = jax_epoch()
        found[name], runs[name] = {"losses": losses}, 1
    times = {name: [] for name in functions}
    for number in range(SAMPLES + 3):
        for name, function in functions.items():
            seconds = seconds_of(function, runs.get(name, STEPS))
            if number >= 3:
                times[name].append(seconds * 1e6)
    for name, each in times.items():
        found[name]["us"] = statistics.quantiles(each, n=4)
    with contextlib.redirect_stdout(io.StringIO()) as text:
        step.explain()
    return found, text.getvalue()


def page(kept):
    """The text of docs/step_speed.md."""
    rows = kept["rows"]
    ours = rows[list(RUNGS)[-1]]
    peers = {name: each for name, each in rows.items() if name not in RUNGS}
    best = min(peers, key=lambda name: peers[name]["us"][1])
    lines = [
        "# Speed of a training step\n\n",
        "`tools/step_speed.py` on {device}, driver {driver}, {date}, PyTorch {torch}.\n".format(
            **kept
        ),
        "784-256-100-10 at batch 1,000, float32, SGD, all data on the GPU; microseconds of a step, "
        f"medians with quartiles\nof {SAMPLES} samples of {STEPS} steps.\n\n",
        "| step | us | quartiles | beside the last rung |\n|---|--:|--:|--:|\n",
    ]
    for name, each in rows.items():
        low, middle, high = each["us"]
        ratio = middle / ours["us"][1]
        lines.append(f"| {name} | {middle:.1f} | {low:.1f} to {high:.1f} | {ratio:.2f} |\n")
    lines.append(
        f"\nThe best peer is {best}: {ours['us'][1] / peers[best]['us'][1]:.2f} of its time. "
        "The target is half of it.\n"
    )
    worst = max(
        abs(a - b)
        for each in rows.values()
        for a, b in zip(each["losses"], ours["losses"])  # noqa: B905
    )
    lines.append(f"Losses of the first five steps differ by {worst:.1e} at most.\n")
    return "".join([*lines, "\n```\n", kept["explained"], "```\n"])


def main():
    """Measures, and writes both files."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="no torch.compile, no JAX")
    options = parser.parse_args()
    said = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    device, driver = subprocess.run(said, capture_output=True, text=True).stdout.split(", ")
    rows, explained = measured(options.quick)
    kept = {
        "device": device, "driver": driver.strip(), "date": date.today().isoformat(),
        "torch": torch.__version__, "rows": rows, "explained": explained,
    }  # fmt: skip
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept))
    print(page(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
