"""Times a training step of an MLP on a GPU: rung by rung, beside PyTorch and JAX.

    PYTHONPATH=solution/python python3 tools/step_speed.py              # writes docs/step_speed.md
    PYTHONPATH=solution/python python3 tools/step_speed.py --quick      # without slow compilers

The net is 784-256-100-10 at batch 1,000, all data on the GPU; a step is forward, backward and SGD.
Samples of 50 steps between two synchronisations, all in turn; medians with quartiles. Build first:
make -C solution DEVICE=cuda.
"""

import argparse
import contextlib
import functools
import io
import itertools
import json
import statistics
import subprocess
import sys
import time
from datetime import date
from importlib import metadata
from pathlib import Path

import numpy as np

import dlsys
from dlsys import autodiff, ndarray, ops
from dlsys._base import _LIB

KIT = Path(__file__).resolve().parent.parent
LAYERS, BATCH, RATE = (784, 256, 100, 10), 1000, 0.1
STEPS, SAMPLES, LOSSES = 50, 15, 100
GPU = ndarray.gpu(0)
KEPT, PAGE = KIT / "handout/step_speed.json", KIT / "docs/step_speed.md"
LADDER = KIT / "docs/gemm_ladder.json"
#: m, n, k, transposes of the products that wait for one another: forward, gradients of values, and
#: that of the first weights.
ON_THE_PATH = (
    (1000, 256, 784, 0, 0), (1000, 100, 256, 0, 0), (1000, 10, 100, 0, 0), (1000, 100, 10, 0, 1),
    (1000, 256, 100, 0, 1), (784, 256, 1000, 1, 0),
)  # fmt: skip
TRIED = """
What was tried:

- tiles and parts of K tuned for each shape (`--tune`), and split-K: own products take at most 1.09
  of cuBLAS's time in float32, and some 0.4 of it;
- biases, ReLU, masks, updates and sums of columns in the products: 38 instructions, 11 kernels;
- independent products on streams of their own, in one CUDA graph: from 104 to 79 us;
- tensor cores by `mma.sync`, whose fragments are read without conflicts, not by `mma.h`: in TF32
  from 92 to 75 us. Such short products wait for memory and for barriers, not for arithmetic;
- several steps a call: no gain once a step is one graph, since launches are hidden.
"""
#: Gradients written by hand on the same kernels, as a rung below: options, how steps are made.
BY_HAND = {
    "by hand, one launch after the other": ({"fuse": False, "capture": False}, "by hand"),
    "by hand, fused and captured": ({}, "by hand"),
}
#: What each rung adds to the one before: options of compile, and how STEPS steps are made.
RUNGS = {
    "one launch after the other": ({"fuse": False, "capture": False}, "calls"),
    "captured as a CUDA graph": ({"fuse": False}, "calls"),
    "fused": ({"capture": False}, "calls"),
    "fused and captured": ({}, "calls"),
    f"{STEPS} steps a call": ({}, "scan"),
}
UPLOADED = "fused and captured"
#: The same, where products may be rounded to TF32.
ROUNDED = {
    "fused and captured": ({"tf32": True}, "calls"),
    f"{STEPS} steps a call": ({"tf32": True}, "scan"),
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


def exact_losses():
    """The first losses of the step on numpy, in float64."""
    step, fed = made_step(None)
    return [float(step(fed)) for _ in range(LOSSES)]


def made_step(ctx, way="calls", options=None):
    """(the step, its feeds)."""
    images, labels, weights, biases = values()
    x, y = ops.variable("x"), ops.variable("y")
    w = [dlsys.parameter(f"w{i}", each) for i, each in enumerate(weights)]
    b = [dlsys.parameter(f"b{i}", each) for i, each in enumerate(biases)]
    layers = [x]
    for i in range(len(w)):
        hidden = layers[-1] @ w[i] + b[i]
        layers.append(ops.relu(hidden) if i < len(w) - 1 else hidden)
    loss = ops.cross_entropy(layers[-1], y)
    if way == "by hand":
        grads = gradients_by_hand(layers, w, y)
    else:
        grads = autodiff.gradients(loss, [*w, *b])
    updates = {p: p - RATE * g for p, g in zip([*w, *b], grads, strict=True)}
    return dlsys.compile(loss, updates, ctx=ctx, **(options or {})), {x: images, y: labels}


def our_step(options, way):
    """(the step, a function that makes STEPS steps, its first losses)."""
    step, fed = made_step(GPU, way, options)
    there = {node: ndarray.array(each, GPU) for node, each in fed.items()}
    losses = [float(step(there).asnumpy()) for _ in range(LOSSES)]
    if way == "scan":
        rows = {n: ndarray.array(np.stack([each] * STEPS), GPU) for n, each in fed.items()}
        return step, lambda: step.scan(rows), losses
    if way == "uploads":
        here = {node: dlsys.pinned(each) for node, each in fed.items()}
        return step, lambda: list(step.over(itertools.repeat(here, STEPS))), losses
    return step, lambda: repeated(lambda: step(there)), losses


def gradients_by_hand(layers, weights, y):
    """Nodes of the loss's gradients, of weights and then of biases, without autodiff."""
    at_output = (ops.softmax(layers[-1]) - y) * (1 / BATCH)
    of_weights, of_biases = [], []
    for layer, weight in zip(layers[-2::-1], weights[::-1], strict=True):
        of_weights.insert(0, layer.T @ at_output)
        of_biases.insert(0, ops.sum(at_output, 0))
        at_output = (at_output @ weight.T) * (layer > 0)
    return of_weights + of_biases


def repeated(function):
    """Makes STEPS steps, of a function that makes one."""
    for _ in range(STEPS):
        function()


def torch_step(compiles=False, captures=False, uploads=False, tf32=False):
    """The same in PyTorch: (a function that makes STEPS steps, its first losses)."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = tf32
    images, labels, weights, biases = values()
    params = [torch.tensor(each, device="cuda", requires_grad=True) for each in weights + biases]
    here = [torch.tensor(each).pin_memory() for each in (images, labels)]
    fed = [each.cuda() for each in here]

    def forward_backward(x, y, *params):
        hidden = x
        for i in range(3):
            hidden = torch.addmm(params[3 + i], hidden, params[i])
            hidden = torch.relu(hidden) if i < 2 else hidden
        loss = torch.nn.functional.cross_entropy(hidden, y)
        return loss, torch.autograd.grad(loss, params)

    if compiles:
        forward_backward = torch.compile(forward_backward)

    def step():
        loss, grads = forward_backward(*fed, *params)
        with torch.no_grad():
            torch._foreach_add_(params, grads, alpha=-RATE)
        return loss

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        losses = [float(step().detach()) for _ in range(LOSSES)]
    torch.cuda.synchronize()
    if captures:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        step = graph.replay

    def uploaded():
        for to, each in zip(fed, here, strict=True):
            to.copy_(each, non_blocking=True)
        step()

    return lambda: repeated(uploaded if uploads else step), losses


def jax_epoch(tf32=False):
    """The same in JAX, as one compiled loop; as torch_step."""
    import jax
    import jax.numpy as jnp

    images, labels, weights, biases = values()
    x, y = jax.device_put(images), jax.device_put(labels)
    precision = "tensorfloat32" if tf32 else "highest"
    jax.config.update("jax_default_matmul_precision", precision)

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
    losses = [float(each) for each in epoch(params, LOSSES)]
    return lambda: epoch(params, STEPS).block_until_ready(), losses


def peers(quick):
    """Name -> what makes it: of float32, of TF32, and with an upload in each step."""
    graph = {"captures": True}
    found = {"PyTorch eager": {}, "PyTorch CUDA graph": graph}
    if not quick:
        found["PyTorch compile and CUDA graph"] = {"compiles": True, **graph}
    of_jax = {} if quick else {f"JAX, {STEPS} steps a call": jax_epoch}

    def all_with(others, **more):
        made = {n: functools.partial(torch_step, **how, **more) for n, how in found.items()}
        return {**made, **{n: functools.partial(each, **more) for n, each in others.items()}}

    return all_with(of_jax), all_with(of_jax, tf32=True), all_with({}, uploads=True)


def seconds_of(function):
    """Seconds of one step, of STEPS in a row."""
    _LIB.DLDeviceSynchronize(b"timing")
    begin = time.perf_counter()
    function()
    _LIB.DLDeviceSynchronize(b"timing")
    return (time.perf_counter() - begin) / STEPS


def timed(ours, others):
    """Name -> {"us": quartiles, "losses": the first ones}, or {"failed": why}; and the last of our
    steps."""
    found, functions = {}, {}
    for name, (options, way) in ours.items():
        step, functions[name], losses = our_step(options, way)
        found[name] = {"losses": losses}
    for name, made in others.items():
        try:
            functions[name], losses = made()
            found[name] = {"losses": losses}
        except Exception as error:  # a peer that is not installed, or breaks, is told
            words = " ".join(str(error).split())
            found[name] = {"failed": f"{type(error).__name__}: {words[:160]}"}
    times = {name: [] for name in functions}
    for number in range(SAMPLES + 3):
        for name, function in functions.items():
            seconds = seconds_of(function)
            if number >= 3:
                times[name].append(seconds * 1e6)
    for name, each in times.items():
        found[name]["us"] = statistics.quantiles(each, n=4)
    return found, step


def measured(quick):
    """The rows of float32, of TF32 and with uploads, and what `explain` and `profile` print."""
    there, rounded, uploaded = peers(quick)
    rows, step = timed({**BY_HAND, **RUNGS}, there)
    of_tf32, _ = timed(ROUNDED, rounded)
    uploads, _ = timed({UPLOADED: ({}, "uploads")}, uploaded)
    with contextlib.redirect_stdout(io.StringIO()) as text:
        step.explain()
    profiled, fed = made_step(GPU)
    tables = {"rows": rows, "tf32": of_tf32, "uploads": uploads}
    return {**tables, "explained": text.getvalue(), "profiled": str(profiled.profile(fed))}


def best_peer(rows):
    """(name, median) of the fastest that is not ours; (None, None) if none was measured."""
    ours = {*BY_HAND, *RUNGS}
    times = {name: rows[name]["us"][1] for name in rows if name not in ours and "us" in rows[name]}
    best = min(times, key=times.get, default=None)
    return best, times.get(best)


def table(rows, last, target, exact):
    """A table, what the best peer is, and how far losses are off the exact ones."""
    lines = ["| step | us | quartiles | beside ours |\n|---|--:|--:|--:|\n"]
    for name, each in rows.items():
        if "failed" in each:
            lines.append(f"| {name} | | | not measured: {each['failed']} |\n")
            continue
        low, middle, high = each["us"]
        ratio = middle / rows[last]["us"][1]
        lines.append(f"| {name} | {middle:.1f} | {low:.1f} to {high:.1f} | {ratio:.2f} |\n")
    lines += by_hand_lines(rows)
    best, time = best_peer(rows)
    if best:
        part = rows[last]["us"][1] / time
        lines.append(f"\nThe best peer is {best}: ours takes {part:.2f} of its time, ")
        lines.append(f"and is to take {target}.\n")
    lines.append(f"\nLosses of the first {LOSSES} steps are off those of float64 by at most\n\n")
    for name, each in rows.items():
        if "losses" in each:
            off = np.abs(np.subtract(each["losses"], exact)).max()
            lines.append(f"- {off:.1e}, {name}\n")
    return "".join(lines)


def by_hand_lines(rows):
    """Lines on autodiff beside gradients by hand, where they were measured."""
    if not set(BY_HAND) <= set(rows):
        return []
    plain, fused = (rows[name]["us"][1] for name in BY_HAND)
    derived = rows["fused and captured"]["us"][1]
    return [
        f"\nWith autodiff a step takes {derived / fused:.2f} of the time of one whose gradients "
        "are written by\nhand, both fused and captured, and is to take no more; beside one by hand "
        f"that is launched kernel\nby kernel it is {plain / derived:.1f} times as fast, and is to "
        "be twice.\n",
    ]


def bounds(kept):
    """Lines: how long the products take that wait for one another, and what that leaves."""
    ladder = json.loads(LADDER.read_text())
    found = [
        f"Six of the eight products wait for one another. Alone, on {ladder['device']}, in "
        "microseconds, by\n`tools/gemm_ladder.py`:\n\n| product | float32, own | cuBLAS |"
        " TF32, own | cuBLAS |\n"
        "|---|--:|--:|--:|--:|\n"
    ]
    columns = []
    for rung in ("split-K", "split-K, TF32"):
        shapes = {tuple(each["shape"]): each for each in ladder["rows"][rung]["shapes"]}
        columns += [[shapes[shape][by][1] for shape in ON_THE_PATH] for by in ("us", "cublas")]
    for (m, n, k, *_), *times in zip(ON_THE_PATH, *columns, strict=True):
        cells = " | ".join(f"{time:.1f}" for time in times)
        found.append(f"| {m} x {n} x {k} | {cells} |\n")
    sums = [sum(column) for column in columns]
    found.append(f"| all | {' | '.join(f'{each:.1f}' for each in sums)} |\n\n")
    for kind, rows, path in (("float32", "rows", sums[:2]), ("TF32", "tf32", sums[2:])):
        best, time = best_peer(kept[rows])
        if best is None:
            continue
        half = time / 2
        found.append(
            f"Half of the best peer's time in {kind} is {half:.1f} us; the faster of both columns "
            f"takes {min(path):.1f} us for\nthese products, without the loss, its gradient and "
            "launches.\n"
        )
    return [*found, TRIED]


def page(kept):
    """The text of docs/step_speed.md."""
    return "".join([
        "# Speed of a training step\n\n",
        "`tools/step_speed.py` on {device}, driver {driver}, {date}, PyTorch {torch},\nJAX {jax}. "
        .format(**kept),
        "784-256-100-10 at batch 1,000, float32, SGD, all data on the GPU; microseconds\nof a "
        f"step, medians with quartiles of {SAMPLES} samples of {STEPS} steps.\n\n",
        table(kept["rows"], list(RUNGS)[-1], "half", kept["exact"]),
        "\n## With TF32\n\nProducts may be rounded to TF32: `dlsys.compile(..., tf32=True)`, "
        "and what the peers have\nfor it.\n\n",
        table(kept["tf32"], list(ROUNDED)[-1], "half", kept["exact"]),
        "\n## With an upload in each step\n\nOf images and labels, from pinned memory.\n\n",
        table(kept["uploads"], UPLOADED, "two thirds", kept["exact"]),
        "\n## What keeps a step from half of that\n\n", *bounds(kept),
        "\n## What `profile` says\n\nWith events around each launch, which takes longer than a "
        "replay.\n\n```\n", kept["profiled"], "\n```\n",
        "\n## What `explain` says\n\n```\n", kept["explained"], "```\n",
    ])  # fmt: skip


def named_device():
    """(the GPU, its driver)."""
    if ndarray.is_emulated():
        return "the emulated GPU", "none"
    said = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    device, driver = subprocess.run(said, capture_output=True, text=True).stdout.split(", ")
    return device, driver.strip()


def version_of(package):
    """Of an installed package; "none" if it is not there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def main():
    """Measures, and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="no torch.compile, no JAX")
    parser.add_argument("--page", action="store_true", help="only the page, of what was measured")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(json.loads(KEPT.read_text())))
        return 0
    found = measured(options.quick)
    device, driver = named_device()
    kept = {
        "device": device, "driver": driver, "date": date.today().isoformat(),
        "torch": version_of("torch"), "jax": version_of("jax"), "exact": exact_losses(), **found,
    }  # fmt: skip
    if ndarray.is_emulated():  # which shows that all of it runs, and no speed
        print(page(kept))
        return 0
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept))
    print(page(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
