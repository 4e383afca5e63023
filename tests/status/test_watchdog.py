"""Kernels that never end are stopped, and the loop is named: in the fast form, thread by thread, in
the checked build and under the students' tests."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys

import pytest

import kit as emulator_kit
from built_trees import build_as
from edits import edit
from grader.building import tree
from test_emulator import cases

SOURCE = emulator_kit.PROGRAMS / "endless.cu"
# The end of the comment in the loop's line, by the case.
LOOPS = {
    "step": "step", "one_thread_of_64": "one thread", "nothing": "nothing", "flag": "flag",
    "barrier": "barrier", "shuffle": "shuffle", "mathematics": "mathematics", "print": "printf",
    "heap": "heap",
}  # fmt: skip
SOON = {"EMULATOR_LAUNCH_SECONDS": "0.5"}
WHO = re.compile(r"block \(\d+, 0, 0\), thread \((\d+), 0, 0\): it did not end, and was stopped")


def line_of(words):
    """The number of the line that ends with a comment."""
    lines = SOURCE.read_text().splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if line.endswith("// endless: " + words))
    return number


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    made = emulator_kit.Kit(tmp_path_factory.mktemp("endless"), checked=True)
    made.build_library()
    made.build_program(SOURCE)
    return made


def test_every_endless_case_is_tried():
    assert set(LOOPS) | {"twice", "many_blocks"} == set(cases("endless"))


def is_named(done, case):
    """Holds what a case printed against where its loop is."""
    assert done.returncode == 0, done.stderr
    thread = WHO.search(done.stderr)
    assert thread, done.stderr
    assert "after 0.5 s of processor time in this loop" in done.stderr
    assert f"endless.cu:{line_of(LOOPS[case])}\n" in done.stderr
    assert f"    > {line_of(LOOPS[case]):5} | " in done.stderr
    assert done.stderr.count("it did not end") == 1
    if case == "one_thread_of_64":
        assert thread.group(1) == "37"


@pytest.mark.parametrize("loops", ["1", "0"])
@pytest.mark.parametrize("case", LOOPS)
def test_an_endless_kernel_is_stopped_and_its_loop_named(kit, case, loops):
    is_named(kit.run("endless", case, EMULATOR_LOOPS=loops, **SOON), case)


@pytest.mark.parametrize("case", LOOPS)
def test_the_checked_build_makes_a_finding_of_it(checked, case, tmp_path):
    path = tmp_path / "findings"
    done = checked.run("endless", case, EMULATOR_FINDINGS=str(path), **SOON)
    is_named(done, case)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    (found,) = (entry for entry in entries if entry["kind"] == "launch timeout")
    assert found["at"]["line"] == line_of(LOOPS[case])
    assert found["detail"] == "after 0.5 s of processor time"


def test_a_grid_of_many_blocks_may_take_longer_than_a_block(kit):
    env = {"EMULATOR_LAUNCH_SECONDS": "0.2", "EMULATOR_LOOPS": "0", "EMULATOR_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = kit.run("endless", "many_blocks", **env)
    assert done.returncode == 0, done.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > 0.4


def test_what_was_stopped_before_gets_a_tenth_of_the_time(kit):
    said = kit.run("endless", "twice", **SOON).stderr
    assert re.findall(r"after (\S+) s of", said) == ["0.5", "0.05"]
    named = kit.run("endless", "nothing", EMULATOR_ENDLESS="other,does_nothing", **SOON).stderr
    assert "after 0.05 s of" in named


def test_no_limit_stops_nothing(kit):
    with pytest.raises(subprocess.TimeoutExpired):
        command = [*kit.runner, str(kit.folder / "endless"), "nothing"]
        subprocess.run(command, env={"EMULATOR_LAUNCH_SECONDS": "0"}, timeout=4)


# What students run.

RELU = ("  if (i < n) out[i] = in[i] < 0 ? 0 : in[i];\n",
        "  for (int64_t j = i; j < n; j = j) {\n    out[i] = in[i];\n  }\n")  # fmt: skip
ADD = "out[i] = a[i] + b[i];"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The solution, built: relu never ends, and the sum of two arrays is written anywhere."""
    folder = tmp_path_factory.mktemp("endless") / "work"
    tree.copy_files(tree.whole_tree(tree.REFERENCE), folder)
    shutil.copy(tree.PRISTINE / ".release.json", folder)
    build_as(folder)
    kernels = folder / "src" / "gpu_op.cu"
    wrong = (ADD, "out[i + (int64_t(1) << 40)] = a[i] + b[i];")
    edit(kernels, RELU, wrong)
    make = ["make", "DEVICE=emulated", f"PYTHON={sys.executable}"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True, timeout=600)
    return folder


def said_by(work, *command):
    """What the students' tests print, within two minutes; kernels get one second."""
    env = {**os.environ, "EMULATOR_LAUNCH_SECONDS": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=work, env=env, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    return done.stdout + done.stderr


WORDS = (
    "DeviceError: relu: the launch timed out and was terminated (CUDA error 702)",
    "emulated GPU: kernel relu_kernel, block (",
    "  for (int64_t j = i; j < n; j = j) {",
    "hint: does each turn change what ends the loop?",
)


def place_of(work, words):
    """`src/gpu_op.cu:341` of a line."""
    lines = (work / "src" / "gpu_op.cu").read_text().splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if words in line)
    return f"src/gpu_op.cu:{number}"


def test_pytest_has_the_words_in_the_exception_and_goes_on(work):
    said = said_by(work, "pytest", "-q", "tests/test_gpu_op.py")
    failures, _, summary = said.rpartition("short test summary info")
    for words in (*WORDS, place_of(work, "j = j")):
        assert "E   " in failures and words in failures, words
    assert place_of(work, "int64_t(1) << 40") in failures
    failed = set(re.findall(r"FAILED tests/test_gpu_op.py::(\w+)", summary))
    assert failed == {"test_relu", "test_matrix_elementwise_add"}


def test_nosetests_does_so_too(work):
    said = said_by(work, "nose", "tests/test_gpu_op.py")
    for words in (*WORDS, place_of(work, "j = j"), place_of(work, "int64_t(1) << 40")):
        assert words in said, words
    assert "failures=2" in said


def test_submit_ends_and_counts_what_failed(work):
    done = subprocess.run(
        [sys.executable, "submit.py", "--check"], cwd=work, capture_output=True, text=True,
        env={**os.environ, "EMULATOR_LAUNCH_SECONDS": "1"}, timeout=300,
    )  # fmt: skip
    assert re.search(r"tests: \d+ passed, 3 failed", done.stdout), done.stdout + done.stderr


REAL = """
from tests import failed_device
from dlsys._base import DeviceError

def reset():
    raise DeviceError("cudaDeviceReset: an illegal memory access was encountered (CUDA error 700)")

failed_device.reset_device = reset
"""


def test_a_device_that_cannot_be_reset_skips_what_comes_later(work):
    (work / "real.py").write_text(REAL)
    env = {"PYTHONPATH": f"{work}:{work / 'python'}"}
    command = [sys.executable, "-m", "pytest", "-p", "real", "-q", "-s", "-rs"]
    done = subprocess.run(
        [*command, "tests/test_gpu_op.py", "-k", "elementwise_add or softmax or relu_gradient"],
        cwd=work, text=True, capture_output=True, timeout=300,
        env={**os.environ, **env, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    (work / "real.py").unlink()
    assert "1 failed" in done.stdout and " skipped" in done.stdout, done.stdout
    reason = "the GPU does not work since test_matrix_elementwise_add, but works in a new process"
    assert reason in done.stdout
