"""Right work keeps its points, whatever lies beside it and however it uses its memory."""

import shutil
import threading

import pytest

from edits import edit
from grader.grading.runner import grade
from grader.report.model import PASS
from kit_grading import KIT, options

pytestmark = pytest.mark.usefixtures("same_builds")

PYTHON, KERNELS = "python/dlsys/autodiff.py", "src/gpu_op.cu"
KERNEL = "  if (i < n) out[i] = in[i] < 0 ? 0 : in[i];\n"
LAUNCH = (
    "  relu_kernel<<<blocks_for(n, kThreads), kThreads>>>(n, data_of(input), data_of(output));\n"
)
ALLOCATES = "self.node_to_arr_map[node] = ndarray.empty(shapes[node], self.ctx)"
TOP = "static const int kThreads = 256;\n"


@pytest.fixture
def submission(tmp_path):
    """A function: the solution with other texts in one of its files."""

    def write(file, *edits):
        for folder in ("python", "src"):
            shutil.copytree(KIT / "solution" / folder, tmp_path / "work" / folder)
        edit(tmp_path / "work" / file, *edits)
        return tmp_path / "work"

    return write


def statuses(report):
    return {result.check: (result.status, result.message) for result in report.results}


@pytest.mark.parametrize("allocate", ["cudaMallocManaged", "cudaMallocHost"])
def test_memory_for_both_sides_is_no_wrong_access(submission, allocate):
    """A kernel writes a flag into it, and the launcher reads it."""
    tree = submission(
        KERNELS,
        ("relu_kernel(int64_t n, const float* in, float* out)",
         "relu_kernel(int64_t n, const float* in, float* out, int* done)"),
        (KERNEL, f"{KERNEL}  if (i == 0) *done = 1;\n"),
        (LAUNCH, f"""\
  static int* done = nullptr;
  if (done == nullptr) {allocate}(&done, sizeof(int));
{LAUNCH.replace("));", "), done);")}  cudaDeviceSynchronize();
  if (*done != 1) return -1;
"""),
    )  # fmt: skip
    found = statuses(grade(tree, options(only=("relu",))))
    assert found["relu"] == (PASS, "")


def test_points_for_python_do_not_hang_on_when_the_library_dies(submission):
    """Python alone is asked for what part 1 needs, before the build is done and behind it."""
    dies = "#include <cstdlib>\n__attribute__((constructor)) static void leave() { _Exit(3); }\n"
    tree = submission(KERNELS, (TOP, TOP + dies))
    loaded = threading.Event()

    def behind_the_library(context):
        assert context.check != "topological_order" or loaded.wait(120)

    def told(result):
        if result.check == "array_set":
            loaded.set()

    only = ("build", "topological_order", "reverse_walk", "array_set")
    found = statuses(grade(tree, options(only=only, on_check=behind_the_library), told))
    assert found["array_set"][0] != PASS
    assert found["topological_order"] == found["reverse_walk"] == (PASS, "")
