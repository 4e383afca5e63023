"""The earlier versions of the kernels, kept as lessons, compute what the last ones do.

KIT_DEVICE=cuda expects the solution to be built for a real GPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.results import PASS
from grader.rubric import load_rubric
from grader.runner import Options, grade

KIT = Path(__file__).resolve().parent.parent

SCRIPT = """
import sys
sys.path[:0] = ["python", "tests"]
import numpy as np
from dlsys import ndarray
from dlsys._base import _LIB, check_call
from dlsys.autodiff import softmax_func
import tests.test_gpu_op as t

def call(function, *args):
    check_call(getattr(_LIB, function)(*[getattr(a, "handle", a) for a in args]))

for shape in ((1, 1), (33, 31), (1025, 10), (3, 257)):
    x = t.uniform(1, -5, 5, *shape)
    out = t.output(*shape)
    call("DLGpuSoftmaxV1", t.on_gpu(x), out)
    expected = softmax_func(x.astype(np.float64))
    bound = t.sum_bound(shape[1], expected) + t.ROUND * 40 * expected
    t.assert_close(out.asnumpy(), expected, bound)
    out = t.output(shape[1])
    call("DLGpuReduceSumAxisZeroV1", t.on_gpu(x), out)
    wide = x.astype(np.float64)
    t.assert_close(out.asnumpy(), wide.sum(axis=0), t.sum_bound(shape[0], np.abs(wide).sum(axis=0)))
for m, n, k in ((1, 1, 1), (33, 65, 40), (127, 10, 100)):
    for ta in (False, True):
        for tb in (False, True):
            a = t.uniform(2, -1, 1, *((k, m) if ta else (m, k)))
            b = t.uniform(3, -1, 1, *((n, k) if tb else (k, n)))
            out = t.output(m, n)
            call("DLGpuMatrixMultiplyV1", t.on_gpu(a), ta, t.on_gpu(b), tb, out)
            A, B = ((a.T if ta else a).astype(float), (b.T if tb else b).astype(float))
            t.assert_close(out.asnumpy(), A @ B, t.sum_bound(k, np.abs(A) @ np.abs(B)))
print("equal")
"""


@pytest.fixture
def tree(tmp_path):
    """The solution, built."""
    if os.environ.get("KIT_DEVICE") == "cuda":
        return KIT / "solution"
    options = Options(load_rubric("default"), "emulated", only=("build",), keep=tmp_path)
    assert grade(KIT / "solution", options).results[0].status == PASS
    return tmp_path


def test_the_first_versions_of_the_kernels_are_right_too(tree):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tree, capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "equal\n", done.stderr
