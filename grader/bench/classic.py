"""Measures the kernels of the assignment and its training of MNIST, for the handout."""

from __future__ import annotations

import ctypes
import importlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlsys import ndarray
from dlsys._base import _LIB

from . import machine
from .built import check_built
from .timing import by_events, timed

#: Seconds that a kernel is timed.
BUDGET = 0.05


@dataclass(frozen=True)
class Bench:
    """One kernel at one size. `work` counts bytes or operations, as `unit` says."""

    name: str
    function: str
    shapes: tuple[tuple[int, ...], ...]
    extra: tuple[Any, ...]
    work: float
    unit: str


@dataclass(frozen=True)
class KernelTime:
    """Microseconds a call: the median, and the quartiles as its spread."""

    name: str
    function: str
    shapes: str
    median: float
    low: float
    high: float
    rate: float
    unit: str


def benchmarks(side: int, matmul: int) -> list[Bench]:
    """The kernels on arrays of side x side, the product on a size of its own, softmax on rows of
    1000."""
    square = (side, side)
    n = float(side * side)
    rows = (side * side // 1000, 1000)
    copies = 8
    tile = (side // copies, side)
    flops = 2.0 * matmul**3
    product = ((matmul, matmul),) * 3
    wide = float(rows[0] * rows[1])
    return [
        Bench("array_set", "DLGpuArraySet", (square,), (ctypes.c_float(1.5),), 4 * n, "GB/s"),
        Bench("broadcast_to", "DLGpuBroadcastTo", (tile, (copies, *tile)), (), 4 * n, "GB/s"),
        Bench("reduce_sum_axis_zero, version 1", "DLGpuReduceSumAxisZeroV1", (square, (side,)), (),
              4 * n, "GB/s"),
        Bench("reduce_sum_axis_zero", "DLGpuReduceSumAxisZero", (square, (side,)), (), 4 * n,
              "GB/s"),
        Bench("matrix_elementwise_add", "DLGpuMatrixElementwiseAdd", (square,) * 3, (), 12 * n,
              "GB/s"),
        Bench("matrix_elementwise_add_by_const", "DLGpuMatrixElementwiseAddByConst", (square,) * 2,
              (ctypes.c_float(2),), 8 * n, "GB/s"),
        Bench("matrix_elementwise_multiply", "DLGpuMatrixElementwiseMultiply", (square,) * 3, (),
              12 * n, "GB/s"),
        Bench("matrix_elementwise_multiply_by_const", "DLGpuMatrixMultiplyByConst", (square,) * 2,
              (ctypes.c_float(2),), 8 * n, "GB/s"),
        Bench("matrix_multiply, version 1", "DLGpuMatrixMultiplyV1", product, (False, False), flops,
              "GFLOP/s"),
        Bench("matrix_multiply", "DLGpuMatrixMultiply", product, (False, False), flops, "GFLOP/s"),
        Bench("matrix_multiply, B transposed", "DLGpuMatrixMultiply", product, (False, True), flops,
              "GFLOP/s"),
        Bench("relu", "DLGpuRelu", (square,) * 2, (), 8 * n, "GB/s"),
        Bench("relu_gradient", "DLGpuReluGradient", (square,) * 3, (), 12 * n, "GB/s"),
        Bench("softmax, version 1", "DLGpuSoftmaxV1", (rows, rows), (), 8 * wide, "GB/s"),
        Bench("softmax", "DLGpuSoftmax", (rows, rows), (), 8 * wide, "GB/s"),
        Bench("softmax_cross_entropy", "DLGpuSoftmaxCrossEntropy", ((1000, 10), (1000, 10), (1,)),
              (), 8e4, "GB/s"),
    ]  # fmt: skip


def _call(case: Bench, arrays: list[Any]) -> Callable[[], None]:
    """A function that launches the case once."""
    handles = [array.handle for array in arrays]
    if "MatrixMultiply" in case.function and len(handles) == 3:
        args = [handles[0], case.extra[0], handles[1], case.extra[1], handles[2]]
    else:
        args = [handles[0], *case.extra, *handles[1:]]
    function = getattr(_LIB, case.function)

    def launch() -> None:
        if function(*args) != 0:
            raise RuntimeError(f"{case.function}: {_LIB.DLGetLastError().decode()}")

    return launch


def measure(case: Bench) -> KernelTime:
    """Times a kernel by events on the device."""
    random = np.random.default_rng(1)
    arrays = [
        ndarray.array(random.uniform(-1, 1, shape).astype(np.float32), ctx=ndarray.gpu(0))
        for shape in case.shapes
    ]
    low, median, high = timed(by_events(_call(case, arrays), _LIB), BUDGET).us
    shapes = " ".join("x".join(map(str, shape)) for shape in case.shapes)
    rate = case.work / median / 1000
    return KernelTime(case.name, case.function, shapes, median, low, high, rate, case.unit)


def _allocations() -> int:
    arrays, raw = ctypes.c_int64(), ctypes.c_int64()
    _LIB.DLGetAllocationCounts(ctypes.byref(arrays), ctypes.byref(raw))
    return arrays.value


def train(epochs: int, more_epochs: int, data: str | None) -> dict[str, Any]:
    """Trains both models on numpy and on the GPU; counts allocations for `epochs` and
    `more_epochs`."""
    mnist = importlib.import_module("mnist_dlsys")
    images = mnist.load_mnist(data)
    small = len(images.train_x) < 10000
    batch, rate = (100, 0.2) if small else (1000, 1.0)
    source = "scikit-learn's digits" if small else "MNIST"
    found: dict[str, Any] = {"source": source, "epochs": epochs, "batch": batch, "rate": rate}

    def run(model: Any, ctx: Any, count: int) -> tuple[float, list[float]]:
        result = mnist.train(model, ctx, images, count, batch, rate, show=lambda text: None)
        return float(result[0]), list(result[1])

    for name, model in (("logreg", mnist.logistic_regression), ("mlp", mnist.mlp)):
        row: dict[str, Any] = {}
        for where, ctx in (("numpy", None), ("gpu", ndarray.gpu(0))):
            accuracy, seconds = run(model, ctx, epochs)
            row[where] = {
                "accuracy": accuracy,
                "epoch_seconds": float(np.median(seconds)),
                "epoch_seconds_spread": [min(seconds), max(seconds)],
            }
        for count in (epochs, more_epochs):
            before = _allocations()
            run(model, ndarray.gpu(0), count)
            row[f"allocations_{count}_epochs"] = _allocations() - before
        row["numpy_over_gpu"] = row["numpy"]["epoch_seconds"] / row["gpu"]["epoch_seconds"]
        found[name] = row
    return found


def bench(folder: Path, data: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Measures everything and writes results.json and results.md into `folder`.

    Raises:
        BenchError: the solution is not built.
    """
    check_built()
    is_real = not ndarray.is_emulated()
    results: dict[str, Any] = {"device": machine.described(_LIB), "kernels": []}
    for case in benchmarks(*((8192, 4096) if is_real else (512, 256))):
        say(case.name)
        results["kernels"].append(asdict(measure(case)))
    say("MNIST")
    results["mnist"] = train(*((10, 30) if is_real else (2, 4)), data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "results.md").write_text(as_markdown(results))
    return results


def as_markdown(results: dict[str, Any]) -> str:
    """The results as a page."""
    lines = ["<!-- generated by `grader bench --only handout`; do not edit -->", "# Measured", ""]
    facts = {name: value for name, value in results["device"].items() if value is not None}
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += [
        "",
        "Kernels: medians with quartiles, by events on the device.",
        "",
    ]
    lines += ["| kernel | shapes | us | quartiles | rate |", "|---|---|---|---|---|"]
    lines += [
        f"| {k['name']} | {k['shapes']} | {k['median']:.1f} | {k['low']:.1f} to {k['high']:.1f} "
        f"| {k['rate']:,.0f} {k['unit']} |"
        for k in results["kernels"]
    ]
    mnist = results["mnist"]
    lines += ["", f"{mnist['source']}, {mnist['epochs']} epochs, batch {mnist['batch']}, "
              f"learning rate {mnist['rate']}:", ""]  # fmt: skip
    lines += ["| model | accuracy numpy | accuracy GPU | epoch numpy | epoch GPU | ratio |"]
    lines += ["|---|---|---|---|---|---|"]
    for name in ("logreg", "mlp"):
        on_numpy, on_gpu = mnist[name]["numpy"], mnist[name]["gpu"]
        lines.append(
            f"| {name} | {on_numpy['accuracy']:.4f} | {on_gpu['accuracy']:.4f} "
            f"| {_spread(on_numpy)} | {_spread(on_gpu)} | {mnist[name]['numpy_over_gpu']:.1f} |"
        )
    lines += [""]
    for name in ("logreg", "mlp"):
        counts = [
            f"{count} in {key.split('_')[1]} epochs"
            for key, count in mnist[name].items()
            if key.startswith("allocations")
        ]
        lines.append(f"Device allocations of {name}: {', '.join(counts)}.")
    return "\n".join(lines) + "\n"


def _spread(row: dict[str, Any]) -> str:
    low, high = row["epoch_seconds_spread"]
    return f"{row['epoch_seconds']:.3f} s ({low:.3f} to {high:.3f})"
