"""Right work keeps its points, whatever lies beside it and however it uses its memory."""

import dataclasses
import shutil
import threading

import pytest

import catalogue
from edits import edit
from grader.grading.runner import grade
from grader.report.model import FAIL, PASS
from kit_grading import KIT, options, results

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


#: Some hundred milliseconds in each launch: half of 12 s is too little for the shortest training,
#: and enough for the first steps, on a machine three times as fast or slow.
SLOW = "  for (volatile int i = 0; i < 150'000'000; ++i) {\n  }\n"


def graded_in_little_time(tree, seconds):
    """The result of `mnist_gpu`, which may take so long and is asked once."""
    setup = options(only=("mnist_gpu",))
    brief = catalogue.Mutant("slow", "", "mnist_gpu", (), (), seconds=seconds)
    rubric = brief.rubric(setup.rubric, opinion=False)
    return results(grade(tree, dataclasses.replace(setup, rubric=rubric)))["mnist_gpu"]


def test_slow_kernels_train_in_fewer_steps_each_of_them_compared(submission):
    found = graded_in_little_time(submission(KERNELS, (LAUNCH, SLOW + LAUNCH)), 12)
    assert found.status == PASS, found.message
    assert 12 <= found.facts["mlp_gpu"]["steps"] < found.facts["mlp_gpu"]["of_steps"]
    assert "steps" not in found.facts["logreg_gpu"]


def test_no_step_of_slow_kernels_may_be_wrong(submission):
    """One of the last of the short training, and none of those that a long one compares first."""
    wrong = "  static int calls = 0;\n  float sign = ++calls == 22 ? -1.0f : 1.0f;\n"
    tree = submission(
        KERNELS,
        ("relu_kernel(int64_t n, const float* in, float* out)",
         "relu_kernel(int64_t n, const float* in, float* out, float sign)"),
        (KERNEL, KERNEL.replace("in[i];", "sign * in[i];")),
        (LAUNCH, SLOW + wrong + LAUNCH.replace("));", "), sign);")),
    )  # fmt: skip
    found = graded_in_little_time(tree, 12)
    assert found.status == FAIL
    assert "mlp on the GPU, step " in found.message


def test_kernels_that_are_too_slow_are_told_that_slow_is_not_wrong(submission):
    tree = submission(KERNELS, (LAUNCH, SLOW.replace("150", "2'000") + LAUNCH))
    found = graded_in_little_time(tree, 6)
    assert "not finished within 6 s: mlp on the GPU, step" in found.message
    assert "right and still too slow on the emulated GPU" in found.hint
