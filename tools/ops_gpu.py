"""Times the GPU back end beside a copy, PyTorch and CuPy on a real GPU. Writes docs/gpu_speed.md.

    PYTHONPATH=solution/python python3 tools/ops_gpu.py
    PYTHONPATH=solution/python python3 tools/ops_gpu.py --check    results alone, on small shapes

Build first: make -C solution DEVICE=cuda. Inputs lie on the GPU; each sample is a loop of launches
between two events, and what is compared takes turns. It needs numpy and torch, no more; CuPy is
timed where there is one. Without an NVIDIA GPU, --check computes on the emulated one.
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

from dlsys import autodiff, ndarray, ops
from dlsys.backend import gpu, kernels, program
from dlsys.backend.lowering import Lowering

try:
    import cupy
    from cupyx.scipy import special
except ImportError:
    cupy = special = None

KIT = Path(__file__).resolve().parent.parent
SHAPE = (16384, 8192)
#: Shapes whose results are compared: packs that fit, packs that don't, rows of all lengths.
CHECKED = ((64, 96), (33, 1001), (1, 7), (2000, 3), (5, 8192), (3, 40001))
#: Launches of a sample, samples of each, and those that are left out.
LAUNCHES, SAMPLES, WARM_UP = 10, 15, 3
#: Seconds after which no other op is begun.
MOST_SECONDS = 50

FUNCTIONAL = torch.nn.functional
#: What is fed, as tensors: a, b, a row, truth values, class indices, probabilities.
NAMES = ("a", "b", "row", "which", "classes", "shares")

#: Name -> (what of NAMES it reads, bytes for each element of a, least share of the copy
#: bandwidth or None, ours on nodes, PyTorch's, CuPy's or None).
OPS = {
    "add": ("a b", 12, 0.95, lambda a, b: a + b, torch.add, "add"),
    "multiply": ("a b", 12, 0.95, lambda a, b: a * b, torch.mul, "multiply"),
    "exp": ("a", 8, 0.95, ops.exp, torch.exp, "exp"),
    "relu": ("a", 8, 0.95, ops.relu, torch.relu, lambda a: cupy.maximum(a, 0)),
    "tanh": ("a", 8, 0.95, ops.tanh, torch.tanh, "tanh"),
    "add a row": ("a row", 8, 0.95, lambda a, row: a + row, torch.add, "add"),
    "where": ("which a b", 13, 0.95, ops.where, torch.where, "where"),
    "sum over columns": (
        "a", 4, 0.9, lambda a: ops.sum(a, 0), lambda a: a.sum(0), lambda a: a.sum(0)
    ),
    "sum over rows": (
        "a", 4, 0.9, lambda a: ops.sum(a, 1), lambda a: a.sum(1), lambda a: a.sum(1)
    ),
    "sum": ("a", 4, None, ops.sum, torch.sum, "sum"),
    "max over rows": (
        "a", 4, None, lambda a: ops.max(a, 1), lambda a: a.amax(1), lambda a: a.max(1)
    ),
    "softmax": (
        "a", 8, 0.9, ops.softmax, lambda a: torch.softmax(a, -1), lambda a: special.softmax(a, -1)
    ),
    "log_softmax": (
        "a", 8, 0.9, ops.log_softmax, lambda a: torch.log_softmax(a, -1),
        lambda a: special.log_softmax(a, -1),
    ),
    "logsumexp": (
        "a", 4, None, lambda a: ops.logsumexp(a, 1), lambda a: a.logsumexp(1),
        lambda a: special.logsumexp(a, 1),
    ),
    "cross entropy": ("a shares", 8, None, ops.cross_entropy, FUNCTIONAL.cross_entropy, None),
    "cross entropy of classes": (
        "a classes", 4, None, ops.cross_entropy, FUNCTIONAL.cross_entropy, None
    ),
}  # fmt: skip
#: How many times faster than PyTorch it has to be.
BESIDE_TORCH = {"cross entropy": 3.0}


def inputs_of(shape, device):
    """Name of NAMES -> a tensor of random numbers."""
    torch.manual_seed(0)
    rows, columns = shape
    return {
        "a": torch.rand(shape, device=device) * 3 - 1,
        "b": torch.rand(shape, device=device) * 3 - 1,
        "row": torch.rand(columns, device=device),
        "which": torch.rand(shape, device=device) < 0.5,
        "classes": torch.randint(columns, (rows,), device=device),
        "shares": torch.rand(shape, device=device).softmax(-1),
    }


def on_gpu(tensor):
    """The tensor as an array of the back end, without a copy where it lies on a real GPU."""
    if tensor.is_cuda:
        return ndarray.from_dlpack(tensor)
    values = tensor.numpy()
    return ndarray.array(values, ndarray.gpu(0), values.dtype)


def programs(tensors):
    """Name of OPS -> a Program that computes it from the tensors, with all kernels compiled."""
    arrays = {name: on_gpu(tensor) for name, tensor in tensors.items()}
    graphs, keys = {}, {}
    for name, (reads, _, _, ours, *_) in OPS.items():
        fed = {ops.variable(each): arrays[each] for each in reads.split()}
        node = ours(*fed)
        order = autodiff.find_topo_sort([node])
        kinds = {variable: (array.shape, array.dtype) for variable, array in fed.items()}
        lowering = Lowering(kinds, np.dtype(np.float32), gpu.MOST_PARTIAL)
        for each in order:
            if each not in fed:
                lowering.lower(each)
        keys.update(dict.fromkeys(each.key for each in lowering.instructions))
        graphs[name] = (order, node, kinds, fed)
    kernels.kernels(gpu, list(keys))
    made = {}
    for name, (order, node, kinds, fed) in graphs.items():
        made[name] = program.Program(order, [node], kinds, ndarray.gpu(0))
        made[name].feed(fed)
    return made


def arguments_of(name, tensors):
    """What an op of OPS reads."""
    return [tensors[each] for each in OPS[name][0].split()]


def check(name, made, tensors):
    """Compares a program's result with PyTorch's in float64.

    Raises:
        SystemExit: they differ.
    """
    (result,) = made.run()
    there = tensors["a"].is_cuda
    got = (torch.from_dlpack(result) if there else torch.from_numpy(result.asnumpy())).double()
    wide = [each.double() if each.is_floating_point() else each
            for each in arguments_of(name, tensors)]  # fmt: skip
    wanted = OPS[name][4](*wide).double()
    bound = 1e-5 * wanted.abs().max().item()
    error = (got - wanted).abs().max().item() if got.shape == wanted.shape else float("nan")
    if not error <= bound:
        sys.exit(f"{name} of {tuple(tensors['a'].shape)} differs by {error:.3g} of {bound:.3g}")


def timed(functions):
    """For each function the quartiles of its seconds; they take turns."""
    found = [[] for _ in functions]
    for number in range(WARM_UP + SAMPLES):
        for seconds, function in zip(found, functions, strict=True):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(LAUNCHES):
                function()
            end.record()
            end.synchronize()
            if number >= WARM_UP:
                seconds.append(start.elapsed_time(end) / 1000 / LAUNCHES)
    return [statistics.quantiles(seconds, n=4) for seconds in found]


def measured():
    """What docs/gpu_speed.json keeps."""
    began = time.monotonic()
    device = torch.device("cuda", 0)
    tensors = inputs_of(SHAPE, device)
    made, rows, copy_to = programs(tensors), {}, torch.empty_like(tensors["a"])
    lent = {name: cupy.from_dlpack(each) for name, each in tensors.items()} if cupy else {}

    def copy():
        copy_to.copy_(tensors["a"])

    with torch.no_grad():
        for name, (reads, size, _, _, torchs, cupys) in OPS.items():
            if time.monotonic() - began > MOST_SECONDS:
                print(f"{name} and what follows: no time left", file=sys.stderr)
                break
            theirs = arguments_of(name, tensors)
            check(name, made[name], tensors)
            functions = [copy, made[name].run, lambda f=torchs, t=theirs: f(*t)]
            if cupy and cupys:
                function = getattr(cupy, cupys) if isinstance(cupys, str) else cupys
                arrays = [lent[each] for each in reads.split()]
                functions.append(lambda f=function, t=arrays: f(*t))
            copied, *times = timed(functions)
            rows[name] = {
                "bytes": size * tensors["a"].numel(), "copy": copied,
                **dict(zip(("ours", "torch", "cupy"), times, strict=False)),
            }  # fmt: skip
            print(name, *(f"{each[1] * 1e6:.1f}" for each in (copied, *times)), "us", flush=True)
    return {
        "device": torch.cuda.get_device_name(0), "driver": driver(),
        "date": date.today().isoformat(), "shape": SHAPE, "copy bytes": 8 * tensors["a"].numel(),
        "python": sys.version.split()[0], "numpy": np.__version__, "torch": torch.__version__,
        "cuda of torch": torch.version.cuda, "cupy": cupy.__version__ if cupy else None,
        "seconds": round(time.monotonic() - began, 1), "ops": rows,
    }  # fmt: skip


def driver():
    """The version of the driver, or a question mark."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "?"
    return (said.split() or ["?"])[0]


def page(kept):
    """The text of docs/gpu_speed.md."""
    copies = [row["copy"][1] for row in kept["ops"].values()]
    bandwidth = kept["copy bytes"] / statistics.median(copies)
    rows, columns = kept["shape"]
    cupys = f", CuPy {kept['cupy']}" if kept["cupy"] else ""
    lines = [
        "# Speed of the GPU back end\n\n",
        f"`tools/ops_gpu.py` on {kept['device']}, driver {kept['driver']}, {kept['date']}, "
        f"PyTorch {kept['torch']}{cupys}.\nArrays of {rows:,} x {columns:,} float32. Times are "
        "medians in microseconds, with half the distance of the quartiles; each is\nthat of "
        f"{LAUNCHES} launches between two events. A copy on the GPU takes turns with them: it "
        f"moves {bandwidth / 1e9:,.0f} GB/s, bytes\nread and written. The share is that of this "
        "bandwidth, over the bytes that an op has to move.\n\n",
        "| op | back end | PyTorch | CuPy | beside PyTorch | share of the copy | target | met |\n",
        "|---|--:|--:|--:|--:|--:|---|---|\n",
    ]
    for name, row in kept["ops"].items():
        cells = [figure(row.get(each)) for each in ("ours", "torch", "cupy")]
        ratio = row["torch"][1] / row["ours"][1]
        share = row["bytes"] / row["ours"][1] / (kept["copy bytes"] / row["copy"][1])
        target, met = judged(name, share, ratio)
        cells += [f"{ratio:.2f}", f"{share:.3f}", target, met]
        lines.append(f"| {name} | {' | '.join(cells)} |\n")
    return "".join(lines)


def judged(name, share, ratio):
    """The target of an op in words, and whether it is met."""
    if name in BESIDE_TORCH:
        least = BESIDE_TORCH[name]
        return f"{least:g} times PyTorch", "yes" if ratio >= least else "no"
    least = OPS[name][2]
    if least is None:
        return "", ""
    return f"{least:g} of the copy", "yes" if share >= least else "no"


def figure(quartiles):
    """Median and half the distance of the quartiles, in microseconds."""
    if not quartiles:
        return ""
    low, middle, high = (each * 1e6 for each in quartiles)
    return f"{middle:,.1f} ± {(high - low) / 2:,.1f}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare results, time nothing")
    parser.add_argument("--folder", type=Path, default=KIT / "docs", help="where the page goes")
    options = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    if options.check:
        for shape in CHECKED:
            tensors = inputs_of(shape, device)
            made = programs(tensors)
            for name in OPS:
                check(name, made[name], tensors)
        print(f"{len(OPS)} ops are right for {len(CHECKED)} shapes")
        return 0
    if device.type != "cuda":
        sys.exit("there is no NVIDIA GPU; hint: --check computes on the emulated one")
    kept = measured()
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "gpu_speed.json").write_text(json.dumps(kept, indent=1) + "\n")
    (options.folder / "gpu_speed.md").write_text(page(kept))
    print(page(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
