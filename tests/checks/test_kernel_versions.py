"""The earlier versions of the kernels, kept as lessons, compute what the last ones do.

KIT_DEVICE=cuda expects the solution to be built for a real GPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import PASS

KIT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
sys.path.insert(0, "python")
import numpy as np
from dlsys import ndarray
from dlsys._base import _LIB, check_call
from dlsys.autodiff import softmax_func
from grader.checks.harness.compare import ROUND, sum_bound, verify

def uniform(seed, *shape):
    return np.random.RandomState(seed).uniform(-5, 5, shape).astype(np.float32)

def on_gpu(values):
    return ndarray.array(values, ctx=ndarray.gpu(0))

def output(*shape):
    return on_gpu(np.full(shape, np.nan, np.float32))

def call(function, *args):
    check_call(getattr(_LIB, function)(*[getattr(a, "handle", a) for a in args]))

for shape in ((1, 1), (33, 31), (1025, 10), (3, 257)):
    x = uniform(1, *shape)
    out = output(*shape)
    call("DLGpuSoftmaxV1", on_gpu(x), out)
    expected = softmax_func(x.astype(np.float64))
    bound = sum_bound(shape[1], expected) + ROUND * 40 * expected
    verify(out.asnumpy(), expected, bound, "softmax")
    out = output(shape[1])
    call("DLGpuReduceSumAxisZeroV1", on_gpu(x), out)
    wide = x.astype(np.float64)
    near = sum_bound(shape[0], np.abs(wide).sum(axis=0))
    verify(out.asnumpy(), wide.sum(axis=0), near, "reduce_sum")
for m, n, k in ((1, 1, 1), (33, 65, 40), (127, 10, 100)):
    for ta in (False, True):
        for tb in (False, True):
            a = uniform(2, *((k, m) if ta else (m, k)))
            b = uniform(3, *((n, k) if tb else (k, n)))
            out = output(m, n)
            call("DLGpuMatrixMultiplyV1", on_gpu(a), ta, on_gpu(b), tb, out)
            A, B = ((a.T if ta else a).astype(float), (b.T if tb else b).astype(float))
            verify(out.asnumpy(), A @ B, sum_bound(k, np.abs(A) @ np.abs(B)), "product")
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
