"""What a peer takes: PoCL, which runs OpenCL C on the CPU, next to numpy.

    python tests/emulator/pocl_peer.py [cores]         cores: how many may work, 2 if not given

Five kernels as a course's students write them in CUDA, in OpenCL C: a work item is a thread, a
work group a block. Each takes turns with numpy in one process, so that whatever else the machine
does slows both. The inputs are on the device already, and the times are those of a launch and of
waiting for its end. Sizes of products are m x k x n.

Needs pyopencl and PoCL; hint: pip install pyopencl, apt-get install pocl-opencl-icd
"""

import os
import statistics
import sys
import time

ROUNDS = 9
BLOCK = 256

SOURCE = """
__kernel void add(__global const float* a, __global const float* b, __global float* c, int n) {
  int i = get_global_id(0);
  if (i < n) c[i] = a[i] + b[i];
}

__kernel void relu_gradient(__global const float* x, __global const float* g, __global float* out,
                            int n) {
  int i = get_global_id(0);
  if (i < n) out[i] = x[i] > 0 ? g[i] : 0;
}

__kernel void matmul(__global const float* a, __global const float* b, __global float* c, int m,
                     int n, int k) {
  int row = get_global_id(1), column = get_global_id(0);
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

#define TILE 16
__kernel void tiled_matmul(__global const float* a, __global const float* b, __global float* c,
                           int m, int n, int k) {
  __local float as[TILE][TILE], bs[TILE][TILE];
  int x = get_local_id(0), y = get_local_id(1);
  int row = get_group_id(1) * TILE + y, column = get_group_id(0) * TILE + x;
  float sum = 0;
  for (int start = 0; start < k; start += TILE) {
    as[y][x] = row < m && start + x < k ? a[row * k + start + x] : 0;
    bs[y][x] = start + y < k && column < n ? b[(start + y) * n + column] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TILE; ++i) sum += as[y][i] * bs[i][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

#define BLOCK 256
__kernel void softmax(__global const float* in, __global float* out, int columns) {
  __local float cache[BLOCK];
  int t = get_local_id(0);
  __global const float* x = in + get_group_id(0) * columns;
  __global float* y = out + get_group_id(0) * columns;
  float most = -INFINITY;
  for (int i = t; i < columns; i += BLOCK) most = fmax(most, x[i]);
  cache[t] = most;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = BLOCK / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) cache[t] = fmax(cache[t], cache[t + half_size]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  most = cache[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0;
  for (int i = t; i < columns; i += BLOCK) sum += exp(x[i] - most);
  cache[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = BLOCK / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) cache[t] += cache[t + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = cache[0];
  for (int i = t; i < columns; i += BLOCK) y[i] = exp(x[i] - most) / sum;
}
"""


def limit_cores(count):
    """Lets this process, PoCL and numpy's BLAS have so many cores; before they are loaded."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(count)


class Peer:
    """PoCL's device, with the five kernels compiled."""

    def __init__(self):
        import pyopencl

        self.cl = pyopencl
        platforms = [p for p in pyopencl.get_platforms() if "Portable" in p.name]
        if not platforms:
            raise ImportError("PoCL is not among OpenCL's platforms")
        self.name = f"{platforms[0].version}, {platforms[0].get_devices()[0].name}"
        self.context = pyopencl.Context(platforms[0].get_devices()[:1])
        self.queue = pyopencl.CommandQueue(self.context)
        program = pyopencl.Program(self.context, SOURCE).build()
        self.kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}

    def buffer(self, array):
        """A copy of an array on the device."""
        flags = self.cl.mem_flags.READ_WRITE | self.cl.mem_flags.COPY_HOST_PTR
        return self.cl.Buffer(self.context, flags, hostbuf=array)

    def call(self, name, size, group, *arguments):
        """A function that launches a kernel and waits for its end."""
        kernel = self.kernels[name]

        def launch():
            kernel.set_args(*arguments)  # here, since it does not keep buffers alive
            self.cl.enqueue_nd_range_kernel(self.queue, kernel, size, group)
            self.queue.finish()

        return launch

    def read(self, buffer, like):
        """The content of a buffer as an array of the shape of another."""
        import numpy as np

        out = np.empty_like(like)
        self.cl.enqueue_copy(self.queue, out, buffer)
        return out


def up(size, unit):
    """The next multiple of a unit."""
    return (size + unit - 1) // unit * unit


def elementwise(peer, rng):
    """Sum of two matrices, and the gradient of relu."""
    import numpy as np

    n = 4000 * 4000
    a, b = (rng.standard_normal((4000, 4000), dtype="f4") for _ in range(2))
    out, mask = np.empty_like(a), np.empty(a.shape, "?")
    da, db, dc = peer.buffer(a), peer.buffer(b), peer.buffer(out)
    arguments = (da, db, dc, np.int32(n))
    size = (up(n, BLOCK),)

    def where():
        out[...] = np.where(a > 0, b, np.float32(0))

    def product():
        np.greater(a, 0, out=mask)
        np.multiply(mask, b, out=out)

    yield (
        "add 4000x4000",
        peer.call("add", size, (BLOCK,), *arguments),
        dc,
        out,
        [lambda: np.add(a, b, out=out)],
    )
    launch = peer.call("relu_gradient", size, (BLOCK,), *arguments)
    yield "relu gradient 4000x4000", launch, dc, out, [where, product]


def products(peer, rng):
    """Matrix products, plain and tiled."""
    import numpy as np

    for name, kernel, m, n, k in (
        ("matmul 500x700x1000", "matmul", 500, 1000, 700),
        ("tiled matmul 1000x500x2000", "tiled_matmul", 1000, 2000, 500),
    ):
        a, b = rng.standard_normal((m, k), dtype="f4"), rng.standard_normal((k, n), dtype="f4")
        out = np.empty((m, n), "f4")
        dc = peer.buffer(out)
        arguments = (peer.buffer(a), peer.buffer(b), dc, np.int32(m), np.int32(n), np.int32(k))
        launch = peer.call(kernel, (up(n, 16), up(m, 16)), (16, 16), *arguments)
        yield name, launch, dc, out, [lambda a=a, b=b, out=out: np.matmul(a, b, out=out)]


def softmax(peer, rng):
    """Softmax of rows, a work group a row."""
    import numpy as np

    x = rng.standard_normal((400, 1000), dtype="f4")
    out = np.empty_like(x)
    dc = peer.buffer(out)
    launch = peer.call("softmax", (400 * BLOCK,), (BLOCK,), peer.buffer(x), dc, np.int32(1000))

    def of_numpy():
        np.subtract(x, x.max(axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(axis=1, keepdims=True), out=out)

    yield "softmax 400x1000", launch, dc, out, [of_numpy]


def seconds_of(function):
    """How long one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def take_turns(functions):
    """Seconds of each call of each function: one list a function."""
    for function in functions:
        function()  # the first call compiles for its sizes, and touches new memory
    return list(zip(*([seconds_of(f) for f in functions] for _ in range(ROUNDS)), strict=True))


def compare(peer, launch, buffer, out, ways):
    """All times of the peer and of the faster way in numpy; their results must agree."""
    import numpy as np

    times = take_turns([launch, *ways])
    ways[0]()
    np.testing.assert_allclose(peer.read(buffer, out), out, rtol=1e-4, atol=1e-3)
    return times[0], min(times[1:], key=statistics.median)


def measure_all():
    """The peer's name, and by kernel all times of the peer and of numpy."""
    import numpy as np

    peer, rng = Peer(), np.random.default_rng(0)
    found = {}
    for group in (elementwise, products, softmax):
        for name, *what in group(peer, rng):
            found[name] = compare(peer, *what)
    return peer.name, found


def measure():
    """{kernel: (seconds, numpy's seconds)}, medians; ImportError if there is no peer."""
    _, found = measure_all()
    return {name: tuple(statistics.median(t) for t in both) for name, both in found.items()}


def spread(times):
    """'1.23 (1.20-1.31) ms': the median, least and most."""
    middle, least, most = (1000 * f(times) for f in (statistics.median, min, max))
    return f"{middle:8.2f} ({least:.2f}-{most:.2f}) ms"


def main():
    """Prints the table."""
    limit_cores(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    try:
        name, found = measure_all()
    except Exception as error:  # without a driver, pyopencl raises an error of its own
        if not isinstance(error, ImportError) and "PLATFORM" not in str(error):
            raise
        print(f"no peer to measure: {error}; hint: pip install pyopencl, "
              "apt-get install pocl-opencl-icd")  # fmt: skip
        return 0
    print(name)
    print(f"{'':28}{'PoCL':>28}{'numpy':>28}  PoCL / numpy (of the least)")
    for kernel, (ours, numpys) in found.items():
        ratios = [f(ours) / f(numpys) for f in (statistics.median, min)]
        print(f"{kernel:28}{spread(ours):>28}{spread(numpys):>28}", end="")
        print("{:8.2f} ({:.2f})".format(*ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
