"""Times the CPU back end beside numpy and PyTorch: ops and a training step. Writes docs/speed.md.

    python3 tools/ops_speed.py                  all cores, and one
    python3 tools/ops_speed.py --threads 2

All in one run, each figure the median of several runs with the quartiles; a ratio above 1 means
that the back end is faster. PyTorch runs eagerly, without gradients but in the training step, with
as many threads. PyTorch and numpy write to an array that they are given (out=) wherever they take
one, since the back end's results have their memory too. What is compared takes turns in an order
drawn anew; of matrix products each library has its turn alone, with a pause before it: the threads
of numpy's BLAS wait busily. Run it on an idle machine.
"""

import argparse
import itertools
import json
import math
import os
import platform
import random
import statistics
import sys
import time
from datetime import date
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(KIT / "solution/python"))

import numpy as np
import torch

from dlsys import autodiff, ndarray, ops
from dlsys.backend import program

KEPT, PAGE = KIT / "docs/speed.json", KIT / "docs/speed.md"
SHAPES = ((10, 100), (100, 100), (100, 1000), (1000, 1000), (1000, 10000))
MATRICES = (64, 256, 1024, 2048)
LAYERS, BATCH = (784, 256, 100, 10), 1000
CPU = ndarray.cpu(0)
#: Seconds after which the threads of a library sleep.
PAUSE = 0.05


def of_first(function, *more):
    """A function of two arrays that looks at the first alone."""
    return lambda a, b, **to: function(a, *more, **to)


#: Name -> (ours on nodes, numpy's, PyTorch's).
ELEMENTWISE = {
    "add": (lambda a, b: a + b, np.add, torch.add),
    "multiply": (lambda a, b: a * b, np.multiply, torch.mul),
    "divide": (lambda a, b: a / b, np.divide, torch.div),
    "maximum": (ops.maximum, np.maximum, torch.maximum),
    "less": (lambda a, b: a < b, np.less, torch.lt),
    "exp": (of_first(ops.exp), of_first(np.exp), of_first(torch.exp)),
    "log": (of_first(ops.log), of_first(np.log), of_first(torch.log)),
    "tanh": (of_first(ops.tanh), of_first(np.tanh), of_first(torch.tanh)),
    "sqrt": (of_first(ops.sqrt), of_first(np.sqrt), of_first(torch.sqrt)),
    "relu": (of_first(ops.relu), of_first(np.maximum, 0), of_first(torch.clamp_min, 0)),
    "sigmoid": (
        of_first(ops.sigmoid), lambda a, b: 1 / (1 + np.exp(-a)), of_first(torch.sigmoid)
    ),
    "gelu": (of_first(ops.gelu), None, of_first(torch._C._nn.gelu)),
}  # fmt: skip
REDUCTIONS = {
    "sum": (lambda a, b: ops.sum(a), lambda a, b: a.sum(), lambda a, b: a.sum()),
    "sum over columns": (
        lambda a, b: ops.sum(a, 0), lambda a, b: a.sum(0), lambda a, b: a.sum(0)
    ),
    "sum over rows": (lambda a, b: ops.sum(a, 1), lambda a, b: a.sum(1), lambda a, b: a.sum(1)),
    "mean over rows": (
        lambda a, b: ops.mean(a, 1), lambda a, b: a.mean(1), lambda a, b: a.mean(1)
    ),
    "max over columns": (
        lambda a, b: ops.max(a, 0), lambda a, b: a.max(0), lambda a, b: a.amax(0)
    ),
    "max over rows": (lambda a, b: ops.max(a, 1), lambda a, b: a.max(1), lambda a, b: a.amax(1)),
    "variance over rows": (
        lambda a, b: ops.variance(a, 1), lambda a, b: a.var(1),
        lambda a, b: a.var(1, correction=0),
    ),
    "argmax over rows": (
        lambda a, b: ops.argmax(a, 1), lambda a, b: a.argmax(1), lambda a, b: a.argmax(1)
    ),
    "softmax": (lambda a, b: ops.softmax(a), None, of_first(torch.softmax, -1)),
    "logsumexp": (lambda a, b: ops.logsumexp(a, 1), None, lambda a, b: a.logsumexp(1)),
}  # fmt: skip


def timed(functions, seconds=0.25, apart=False):
    """For each function the quartiles of its seconds.

    They take turns; `apart` gives each a turn of many runs, once the threads of others sleep.
    """
    for each in functions:
        each()
        each()
    draw, found = random.Random(0), [[] for _ in functions]
    end = time.perf_counter() + seconds * len(functions)
    while time.perf_counter() < end or len(found[0]) < 7:
        for number in draw.sample(range(len(functions)), len(functions)):
            function, runs = functions[number], 1
            if apart:
                time.sleep(PAUSE)
                function()
                runs = 5
            for _ in range(runs):
                start = time.perf_counter()
                function()
                found[number].append(time.perf_counter() - start)
    return [statistics.quantiles(times, n=4) for times in found]


def into(function, *inputs):
    """A call of a function that writes its result where the first call did, if it takes out=."""
    result = function(*inputs)
    try:
        function(*inputs, out=result)
    except (TypeError, RuntimeError):
        return lambda: function(*inputs)
    return lambda: function(*inputs, out=result)


def op_times(ours, numpys, torchs, arrays, apart=False):
    """Quartiles of seconds: the back end, PyTorch, and numpy or None."""
    names = [ops.variable(f"x{i}") for i in range(len(arrays))]
    node = ours(*names)
    needed = set(autodiff.find_topo_sort([node]))
    executor = autodiff.Executor([node], ctx=CPU)
    feeds = {
        name: ndarray.array(each, CPU)
        for name, each in zip(names, arrays, strict=True)
        if name in needed
    }
    tensors = [torch.from_numpy(each) for each in arrays]
    with torch.no_grad():
        functions = [lambda: executor.run(feeds), into(torchs, *tensors)]
        functions += [into(numpys, *arrays)] if numpys else []
        found = timed(functions, apart=apart)
    return found if numpys else [*found, None]


def step_times():
    """Quartiles of seconds of a training step: the back end, PyTorch."""
    numbers = np.random.default_rng(0)
    sizes = list(itertools.pairwise(LAYERS))
    values = [numbers.normal(0, 1 / math.sqrt(a), (a, b)).astype(np.float32) for a, b in sizes]
    values += [np.zeros(b, np.float32) for _, b in sizes]
    images = numbers.random((BATCH, LAYERS[0])).astype(np.float32)
    labels = numbers.integers(0, LAYERS[-1], BATCH)

    x, y = ops.variable("x"), ops.variable("labels")
    parameters = [ops.variable(f"p{i}") for i in range(len(values))]
    hidden = x
    for i in range(len(sizes)):
        hidden = hidden @ parameters[i] + parameters[len(sizes) + i]
        hidden = ops.relu(hidden) if i < len(sizes) - 1 else hidden
    loss = ops.cross_entropy(hidden, y)
    grads = autodiff.gradients(loss, parameters)
    new = [p - 0.1 * g for p, g in zip(parameters, grads, strict=True)]
    executor = autodiff.Executor([loss, *new], ctx=CPU)
    held = [ndarray.array(each, CPU) for each in values]
    feeds = {x: ndarray.array(images, CPU), y: ndarray.array(labels, CPU, np.int64)}
    feeds.update(zip(parameters, held, strict=True))

    def ours():
        for array, updated in zip(held, executor.run(feeds)[1:], strict=True):
            updated.copyto(array)

    tensors = [torch.from_numpy(each.copy()).requires_grad_() for each in values]
    inputs, targets = torch.from_numpy(images), torch.from_numpy(labels)

    def theirs():
        hidden = inputs
        for i in range(len(sizes)):
            hidden = torch.addmm(tensors[len(sizes) + i], hidden, tensors[i])
            hidden = torch.relu(hidden) if i < len(sizes) - 1 else hidden
        torch.nn.functional.cross_entropy(hidden, targets).backward()
        with torch.no_grad():
            for each in tensors:
                each -= 0.1 * each.grad
                each.grad = None

    return [*timed([ours, theirs], seconds=4), None]


def measured(threads):
    """Name of a row -> quartiles of the back end, PyTorch, numpy."""
    program.set_threads(threads)
    torch.set_num_threads(threads)
    numbers, rows = np.random.default_rng(0), {}
    for shape in SHAPES:
        arrays = [numbers.uniform(0.1, 1, shape).astype(np.float32) for _ in range(2)]
        for name, functions in {**ELEMENTWISE, **REDUCTIONS}.items():
            rows[f"{name} {shape[0]} x {shape[1]}"] = op_times(*functions, arrays)
        print(shape, flush=True)
    for n in MATRICES:
        arrays = [numbers.normal(size=(n, n)).astype(np.float32) for _ in range(2)]
        product = (lambda a, b: a @ b, np.matmul, torch.matmul)
        rows[f"product {n} x {n}"] = op_times(*product, arrays, apart=True)
    rows["training step " + "-".join(map(str, LAYERS))] = step_times()
    return rows


def geometric_mean(rows, names, other):
    """How many times faster the back end is than PyTorch (1) or numpy (2), over some ops."""
    ratios = [
        math.log(times[other][1] / times[0][1])
        for row, times in rows.items()
        if times[other] and any(row.startswith(f"{name} 1") for name in names)
    ]
    return math.exp(sum(ratios) / len(ratios))


def page(kept):
    """The text of docs/speed.md."""
    lines = [
        "# Speed of the CPU back end\n\n",
        f"`tools/ops_speed.py` on {kept['machine']}, {kept['date']}, PyTorch {kept['torch']}, "
        f"numpy {kept['numpy']}.\nTimes are medians in microseconds, with half the distance of the "
        "quartiles; ratios above 1 are in favour of the back end. "
        "Whoever takes one writes to an array\nthat it is given (out=).\n\n",
        "| threads | ops | beside PyTorch | beside numpy |\n|---|---|---|---|\n",
    ]
    for threads, rows in kept["threads"].items():
        for what, names in (("element-wise", ELEMENTWISE), ("reductions", REDUCTIONS)):
            means = [f"{geometric_mean(rows, names, other):.2f}" for other in (1, 2)]
            lines.append(f"| {threads} | {what}, geometric mean | {means[0]} | {means[1]} |\n")
    for threads, rows in kept["threads"].items():
        lines.append(f"\n## {threads} thread{'s' if threads != '1' else ''}\n\n")
        lines.append(
            "| what | back end | PyTorch | numpy | beside PyTorch |\n|---|--:|--:|--:|--:|\n"
        )
        for row, times in rows.items():
            cells = [figure(each) for each in times]
            ratio = times[1][1] / times[0][1]
            lines.append(f"| {row} | {' | '.join(cells)} | {ratio:.2f} |\n")
    return "".join(lines)


def figure(quartiles):
    """Median and half the distance of the quartiles, in microseconds."""
    if not quartiles:
        return ""
    low, middle, high = (each * 1e6 for each in quartiles)
    return f"{middle:,.1f} ± {(high - low) / 2:,.1f}"


def processor():
    """The name of this processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def main():
    """Measures, and writes what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, action="append", help="default: 1, and all cores")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    kept = {
        "machine": f"{cores} cores of {processor()}", "date": date.today().isoformat(),
        "torch": torch.__version__, "numpy": np.__version__, "threads": {},
    }  # fmt: skip
    for threads in options.threads or sorted({1, cores}):
        kept["threads"][str(threads)] = measured(threads)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept))
    print("".join(page(kept).partition("\n## ")[:1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
