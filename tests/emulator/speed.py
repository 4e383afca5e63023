"""Times kernels on the emulated GPU against numpy: python3 tests/emulator/speed.py

Both take turns in one process, on the same cores, and write to memory that was allocated before.
A turn is a few runs in a row, after a pause: numpy's BLAS has threads that spin for a while
after their work and would take a core from whoever runs next. Each figure is the median of a
turn; the best of many short turns counts, since other programs, and other guests of the same
host, may be at work: `typical` says how much longer the middle one of our turns took, and the
last line how much of the cores' time the host gave to others meanwhile (steal). The ratio that a
kernel should keep stands beside it. A second table compares the checked build with the fast one,
by processor time: a run of seconds never has a machine to itself that one of milliseconds has.
"""

import argparse
import ctypes
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import kit as emulator_kit

HERE = Path(__file__).resolve().parent


class Library:
    """speed.cu as a library."""

    def __init__(self, folder, checked=False):
        kit = emulator_kit.Kit(folder, checked=checked)
        kit.build_library()
        start = time.perf_counter()
        self.path = kit.build_shared(HERE / "speed.cu")
        self.build_seconds = time.perf_counter() - start
        self.lib = ctypes.CDLL(str(self.path))
        self.cuda = ctypes.CDLL(str(kit.library))
        self.handle = ctypes.c_void_p()
        self.cuda.cublasCreate(ctypes.byref(self.handle))
        self.allocated = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cuda.cublasDestroy(self.handle)
        for ptr in self.allocated:
            self.cuda.cudaFree(ptr)

    def upload(self, array):
        """A copy of an array on the device."""
        ptr = ctypes.c_void_p()
        size = ctypes.c_size_t(array.nbytes)
        assert self.cuda.cudaMalloc(ctypes.byref(ptr), size) == 0
        self.allocated.append(ptr)
        self.cuda.cudaMemcpy(ptr, ctypes.c_void_p(array.ctypes.data), size, 1)
        return ptr

    def download(self, ptr, like):
        """What is on the device, in the shape of an array."""
        out = np.empty_like(like)
        size = ctypes.c_size_t(out.nbytes)
        assert self.cuda.cudaMemcpy(ctypes.c_void_p(out.ctypes.data), ptr, size, 2) == 0
        return out


def seconds(function, clock):
    """How long a call takes."""
    start = clock()
    function()
    return clock() - start


def turn(function, runs, clock):
    """The median of several runs, after a pause and a run that does not count."""
    time.sleep(0.1)
    function()
    return statistics.median(seconds(function, clock) for _ in range(runs))


def compare(ours, others, runs, rounds, clock=time.perf_counter):
    """The best medians of ours and of numpy's fastest way, and the middle one of ours as a
    multiple of the best."""
    medians = [[turn(f, runs, clock) for f in (ours, *others)] for _ in range(rounds)]
    mine = [row[0] for row in medians]
    return min(mine), min(min(row[1:]) for row in medians), statistics.median(mine) / min(mine)


def processor_time():
    """What the cores have done so far, in ticks: everything, and what the host took (steal)."""
    try:
        ticks = [int(x) for x in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return 0, 0
    return sum(ticks), ticks[7]


def elementwise(library, rng):
    """Sums, and the gradient of relu."""
    a, b, out = (rng.standard_normal((4000, 4000)).astype("f4") for _ in range(3))
    da, db, dout = (library.upload(x) for x in (a, b, out))
    n, mask, zero = a.size, np.empty(a.shape, bool), np.float32(0)

    def gradient():
        np.greater(a, 0, out=mask)
        np.multiply(mask, b, out=out)

    yield ("add 4000x4000", 1.0, lambda: library.lib.run_add(da, db, dout, n),
           [lambda: np.add(a, b, out=out)], dout, out)  # fmt: skip
    yield ("relu gradient 4000x4000", 1.0, lambda: library.lib.run_relu_gradient(da, db, dout, n),
           [gradient, lambda: np.copyto(out, np.where(a > 0, b, zero))], dout, out)  # fmt: skip


def products(library, rng):
    """Products of matrices."""
    for name, target, m, n, k in (
        ("naive", 15, 500, 1000, 700),
        ("flat", 15, 500, 1000, 700),
        ("tiled", 9, 1000, 2000, 500),
    ):
        a, b = (rng.standard_normal(shape).astype("f4") for shape in ((m, k), (k, n)))
        out = np.empty((m, n), "f4")
        da, db, dout = (library.upload(x) for x in (a, b, out))
        run = getattr(library.lib, "run_matmul_" + name)
        yield (f"{name} matmul {m}x{k}x{n}", target,
               lambda run=run, p=(da, db, dout, m, n, k): run(*p),
               [lambda a=a, b=b, out=out: np.matmul(a, b, out=out)], dout, out)  # fmt: skip
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def gemm():
        library.cuda.cublasSgemm(library.handle, 0, 0, n, m, k, ctypes.byref(one), db, n, da, k,
                                 ctypes.byref(zero), dout, n)  # fmt: skip

    yield ("cublasSgemm 1000x500x2000", 1.1, gemm, [lambda: np.matmul(a, b, out=out)], dout, out)


def softmax(library, rng):
    """Softmax, a block a row."""
    x = rng.standard_normal((400, 1000)).astype("f4")
    out = np.empty_like(x)
    dx, dout = library.upload(x), library.upload(out)

    def numpy():
        np.subtract(x, x.max(axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(axis=1, keepdims=True), out=out)

    yield ("softmax 400x1000", 5, lambda: library.lib.run_softmax(dx, dout, 400, 1000), [numpy],
           dout, out)  # fmt: skip


CHECKED_TARGETS = {"add": 50, "naive": 20, "flat": 20}


def checked(fast, slow, rng, rounds):
    """Prints how much longer the checked build takes."""
    print(f"{'':28}{'checked':>10}{'fast':>10}{'ratio':>8}{'target':>8}{'typical':>8}")
    groups = [[*group(fast, rng)] for group in (elementwise, products)]
    for group, twins in zip(groups, (elementwise, products), strict=True):
        for (name, _, ours, *_), (_, _, theirs, *_) in zip(group, twins(slow, rng), strict=True):
            target = CHECKED_TARGETS.get(name.split()[0])
            if target is None:
                continue
            slower, faster, typical = compare(theirs, [ours], 1, rounds, time.process_time)
            ratio = slower / faster
            verdict = "" if ratio <= target else "  too slow"
            print(f"{name:28}{slower * 1e3:>7.0f} ms{faster * 1e3:>7.2f} ms{ratio:>8.1f}"
                  f"{target:>8}{typical:>8.2f}{verdict}")  # fmt: skip


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median is taken")
    parser.add_argument(
        "--rounds",
        type=int,
        default=30,
        help="turns of which the best counts; a sixth for the second table",
    )
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    before = processor_time()
    with tempfile.TemporaryDirectory() as folder, Library(Path(folder)) as library:
        print(f"speed.cu was built in {library.build_seconds:.1f} s")
        print(f"{'':28}{'emulated':>10}{'numpy':>10}{'ratio':>8}{'target':>8}{'typical':>8}")
        for group in (elementwise, products, softmax):
            for name, target, ours, others, ptr, out in group(library, rng):
                mine, numpys, typical = compare(ours, others, arguments.runs, arguments.rounds)
                others[0]()
                ours()
                got = library.download(ptr, out)
                np.testing.assert_allclose(got, out, rtol=1e-3, atol=1e-3, err_msg=name)
                ratio = mine / numpys
                verdict = "" if ratio <= target else "  too slow"
                print(f"{name:28}{mine * 1e3:>7.2f} ms{numpys * 1e3:>7.2f} ms{ratio:>8.2f}"
                      f"{target:>8}{typical:>8.2f}{verdict}")  # fmt: skip
        with tempfile.TemporaryDirectory() as other, Library(Path(other), checked=True) as slow:
            checked(library, slow, rng, -(-arguments.rounds // 6))
    whole, stolen = (y - x for x, y in zip(before, processor_time(), strict=True))
    if whole:
        print(f"steal: {stolen / whole:.0%} of the cores' time")


if __name__ == "__main__":
    main()
