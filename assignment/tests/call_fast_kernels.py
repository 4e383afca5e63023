"""Calls each kernel of part 3 once, to count what it moves: `make count-kernels`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import numpy as np

from dlsys import gpu_op, ndarray

GPU = ndarray.gpu(0)
#: The sizes that the grader counts on, but for some rows.
CALLS = (
    ("fast_matrix_multiply", ((256, 128), (128, 256)), (256, 256)),
    ("fast_row_sum", ((128, 1024),), (128,)),
    ("fast_softmax", ((128, 1024),), (128, 1024)),
)


def main():
    """Makes the calls; says which are not written yet."""
    random = np.random.default_rng(0)
    for name, inputs, out in CALLS:
        arrays = [ndarray.array(random.random(shape, np.float32), GPU) for shape in inputs]
        try:
            getattr(gpu_op, name)(*arrays, ndarray.empty(out, GPU))
        except NotImplementedError as missing:
            print("%s: %s" % (name, missing))


if __name__ == "__main__":
    main()
