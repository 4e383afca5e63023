"""What graphs cost on a CPU beside PyTorch's eager autograd. Writes docs/graph_costs.md and .json.

    PYTHONPATH=solution/python python3 tools/graph_costs.py
    PYTHONPATH=solution/python python3 tools/graph_costs.py --nodes 100 1000

A chain is y = f(f(... x)); a ladder is made of diamonds, y = f(y) + g(y). Building,
differentiating, planning and running are timed apart, in microseconds of a processor for each node
of the forward graph; so is what PyTorch does: the forward pass, which builds its graph, and
backward. Arrays have 16 elements, so that the graph is what costs. Each figure is the least of
some runs, of the largest graphs that of one.
"""

import argparse
import gc
import json
import platform
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import torch

from dlsys import autodiff, ndarray, ops
from dlsys.backend import program

KIT = Path(__file__).resolve().parent.parent
NODES = (100, 10_000, 100_000)
SIZE = 16
CPU = ndarray.cpu(0)
PARTS = ("build", "differentiate", "plan", "run", "PyTorch forward", "PyTorch backward")
#: How many times longer a node of the largest graph may take than one of the middle one.
MOST_GROWTH = 2.0


def chain(x, count, tanh):
    """`count` nodes, one after the other."""
    for _ in range(count):
        x = tanh(x)
    return x


def ladder(x, count, tanh):
    """count / 3 diamonds: of each value two are made, and added."""
    for _ in range(count // 3):
        x = tanh(x) + x * 0.5
    return x


def seconds(function):
    """(how long it took, what it returned); the garbage collector waits meanwhile."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    result = function()
    took = time.process_time() - start
    gc.enable()
    return took, result


def ours(shape_of, count):
    """Seconds of each of the first four PARTS."""
    values = np.full(SIZE, 0.1, np.float32)
    x = ops.variable("x", (SIZE,))
    build, y = seconds(lambda: shape_of(x, count, ops.tanh))
    differentiate, (grad,) = seconds(lambda: autodiff.gradients(ops.sum(y), [x]))
    executor = autodiff.Executor([y, grad], ctx=CPU)
    feeds = {x: ndarray.array(values, CPU)}
    plan, _ = seconds(lambda: executor.run(feeds))
    runs = [seconds(lambda: executor.run(feeds)) for _ in range(3)]
    run, results = min(runs, key=lambda each: each[0])
    return (build, differentiate, plan - run, run), [each.asnumpy() for each in results]


def theirs(shape_of, count):
    """Seconds of PyTorch's forward and backward pass."""
    x = torch.full((SIZE,), 0.1, requires_grad=True)
    forward, y = seconds(lambda: shape_of(x, count, torch.tanh))
    backward, _ = seconds(lambda: y.sum().backward())
    return (forward, backward), [y.detach().numpy(), x.grad.numpy()]


def measured(shape_of, count):
    """Microseconds a node for each of PARTS, the least of several runs.

    Raises:
        SystemExit: the two compute different values.
    """
    found = []
    for _ in range(10 if count <= 1000 else 3 if count <= 10_000 else 1):
        own, values = ours(shape_of, count)
        other, wanted = theirs(shape_of, count)
        for got, expected in zip(values, wanted, strict=True):
            if not np.allclose(got, expected, rtol=1e-3, atol=1e-6):
                sys.exit(f"{shape_of.__name__} of {count}: {got} is not {expected}")
        found.append((*own, *other))
    return [min(times) / count * 1e6 for times in zip(*found, strict=True)]


def page(kept):
    """The text of docs/graph_costs.md."""
    lines = [
        "# What graphs cost\n\n",
        f"`tools/graph_costs.py` on {kept['machine']}, {kept['date']}, PyTorch {kept['torch']}, "
        "one thread.\nMicroseconds of a processor for each node of the forward graph; `run` is "
        "forward and backward\ntogether. Planning is done once for each set of shapes: shapes are "
        "inferred, ops lowered, and\nmemory planned.\n\n",
        "| graph | nodes | " + " | ".join(PARTS) + " |\n|---|--:|" + "--:|" * len(PARTS) + "\n",
    ]
    for name, rows in kept["graphs"].items():
        for count, row in rows.items():
            cells = " | ".join(f"{each:.2f}" for each in row)
            lines.append(f"| {name} | {int(count):,} | {cells} |\n")
    return "".join(lines)


def grown(kept):
    """Sentences about parts whose cost a node grows with the graph."""
    found = []
    for name, rows in kept["graphs"].items():
        counts = sorted(rows, key=int)
        if len(counts) < 2:
            continue
        for part, before, after in zip(PARTS, rows[counts[-2]], rows[counts[-1]], strict=True):
            if after > MOST_GROWTH * before:
                found.append(f"{name}, {part}: {before:.2f} us a node grow to {after:.2f}")
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    parser.add_argument("--folder", type=Path, default=KIT / "docs", help="where the page goes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    program.set_threads(1)
    kept = {
        "machine": platform.machine(), "date": date.today().isoformat(),
        "torch": torch.__version__, "graphs": {},
    }  # fmt: skip
    for shape_of in (chain, ladder):
        rows = kept["graphs"][shape_of.__name__] = {}
        for count in options.nodes:
            rows[str(count)] = measured(shape_of, count)
            print(
                shape_of.__name__, count, *(f"{each:.2f}" for each in rows[str(count)]), flush=True
            )
    (options.folder / "graph_costs.json").write_text(json.dumps(kept, indent=1) + "\n")
    (options.folder / "graph_costs.md").write_text(page(kept))
    print(page(kept), *grown(kept), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
