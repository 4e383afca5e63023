"""Measures the solution's kernels and its training of MNIST, and writes the figures.

It runs the solution in this process: that is the kit's own code, never a submission.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from grader import __version__
from grader.base.errors import UsageError
from grader.building.tree import KIT, backend_of

SOLUTION = KIT / "solution"
LIBRARY = "build/lib/libc_runtime_api.so"
WARM_UPS, REPEATS = 3, 21


class BenchError(UsageError):
    """The solution can't be measured; the message says what to do."""


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
class Timing:
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


def _modules() -> tuple[Any, Any, Any]:
    """The solution's ndarray, library and MNIST script."""
    for folder in ("python", "tests"):
        path = str(SOLUTION / folder)
        if path not in sys.path:
            sys.path.insert(0, path)
    names = ("dlsys.ndarray", "dlsys._base", "mnist_dlsys")
    ndarray, base, mnist = (importlib.import_module(name) for name in names)
    return ndarray, base._LIB, mnist


def _call(library: Any, case: Bench, arrays: list[Any]) -> Callable[[], None]:
    """A function that launches the case once."""
    handles = [array.handle for array in arrays]
    if "MatrixMultiply" in case.function and len(handles) == 3:
        args = [handles[0], case.extra[0], handles[1], case.extra[1], handles[2]]
    else:
        args = [handles[0], *case.extra, *handles[1:]]
    function = getattr(library, case.function)

    def launch() -> None:
        if function(*args) != 0:
            raise RuntimeError(f"{case.function}: {library.DLGetLastError().decode()}")

    return launch


def measure(case: Bench, ndarray: Any, library: Any) -> Timing:
    """Times a kernel by events on the device, each repeat by itself."""
    random = np.random.default_rng(1)
    arrays = [
        ndarray.array(random.uniform(-1, 1, shape).astype(np.float32), ctx=ndarray.gpu(0))
        for shape in case.shapes
    ]
    launch = _call(library, case, arrays)
    start, stop, elapsed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
    for event in (start, stop):
        library.cudaEventCreate(ctypes.byref(event))
    for _ in range(WARM_UPS):
        launch()
    times = []
    for _ in range(REPEATS):
        library.cudaEventRecord(start, None)
        launch()
        library.cudaEventRecord(stop, None)
        library.cudaEventSynchronize(stop)
        library.cudaEventElapsedTime(ctypes.byref(elapsed), start, stop)
        times.append(elapsed.value * 1000)
    low, median, high = (float(t) for t in np.percentile(times, [25, 50, 75]))
    shapes = " ".join("x".join(map(str, shape)) for shape in case.shapes)
    rate = case.work / median / 1000
    return Timing(case.name, case.function, shapes, median, low, high, rate, case.unit)


def _allocations(library: Any) -> int:
    arrays, raw = ctypes.c_int64(), ctypes.c_int64()
    library.DLGetAllocationCounts(ctypes.byref(arrays), ctypes.byref(raw))
    return arrays.value


def train(epochs: int, more_epochs: int, data: str | None) -> dict[str, Any]:
    """Trains both models on numpy and on the GPU; counts allocations for `epochs` and
    `more_epochs`."""
    ndarray, library, mnist = _modules()
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
            before = _allocations(library)
            run(model, ndarray.gpu(0), count)
            row[f"allocations_{count}_epochs"] = _allocations(library) - before
        row["numpy_over_gpu"] = row["numpy"]["epoch_seconds"] / row["gpu"]["epoch_seconds"]
        found[name] = row
    return found


def describe_device(library: Any, backend: str) -> dict[str, Any]:
    """The device that ran the kernels, described by pycuda if it is installed."""
    runtime, driver = ctypes.c_int(), ctypes.c_int()
    library.cudaRuntimeGetVersion(ctypes.byref(runtime))
    library.cudaDriverGetVersion(ctypes.byref(driver))
    found: dict[str, Any] = {
        "backend": backend,
        "cuda_runtime": runtime.value,
        "cuda_driver": driver.value,
        "processors": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kit": __version__,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
    }
    found.update(_pycuda_facts() if backend == "cuda" else {"name": "Emulated GPU"})
    return found


def _pycuda_facts() -> dict[str, Any]:
    try:
        driver = importlib.import_module("pycuda.driver")
    except ImportError:
        return {"name": "unknown; hint: python3 -m pip install pycuda"}
    driver.init()
    device = driver.Device(0)
    attribute = driver.device_attribute
    return {
        "name": device.name(),
        "compute_capability": ".".join(map(str, device.compute_capability())),
        "multiprocessors": device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
        "memory_bytes": device.total_memory(),
        "l2_bytes": device.get_attribute(attribute.L2_CACHE_SIZE),
    }


def bench(folder: Path, data: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Measures everything and writes results.json and results.md into `folder`.

    Raises:
        BenchError: the solution is not built.
    """
    if not (SOLUTION / LIBRARY).is_file():
        raise BenchError(f"{SOLUTION / LIBRARY} does not exist; hint: make -C {SOLUTION}")
    backend = backend_of(SOLUTION)
    ndarray, library, _ = _modules()
    side, matmul = (8192, 4096) if backend == "cuda" else (512, 256)
    results: dict[str, Any] = {"device": describe_device(library, backend), "kernels": []}
    for case in benchmarks(side, matmul):
        say(case.name)
        results["kernels"].append(asdict(measure(case, ndarray, library)))
    say("MNIST")
    epochs, more = (10, 30) if backend == "cuda" else (2, 4)
    results["mnist"] = train(epochs, more, data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "results.md").write_text(as_markdown(results))
    return results


def as_markdown(results: dict[str, Any]) -> str:
    """The results as a page."""
    lines = ["<!-- generated by `grader bench`; do not edit -->", "# Measured", ""]
    lines += [f"- {name}: {value}" for name, value in results["device"].items()]
    lines += [
        "",
        f"Kernels: median of {REPEATS} calls, with quartiles, by events on the device.",
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
