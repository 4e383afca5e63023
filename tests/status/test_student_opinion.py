"""A student's test that fails by the emulated GPU's fast form alone says that it is not theirs."""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import faulty
from built_trees import build_as
from edits import edit
from grader.building import tree as build

NOSE = str(Path(sys.executable).with_name("nosetests"))
TESTS = "tests/test_gpu_op.py"
RACE = ("  if (i < n) out[i] = in[i % size];",
        "  if (i < n) out[i] = in[i % size];\n"
        "  if (i + 1 < n && threadIdx.x + 1 < blockDim.x) out[i + 1] = 7;")  # fmt: skip


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The solution, built, in a kit whose fast form has a fault; broadcast_to has a race, and
    relu_gradient is wrong."""
    folder = faulty.write(build.REFERENCE, tmp_path_factory.mktemp("faulty") / "work")
    kernels = folder / "src" / "gpu_op.cu"
    wrong = ("in[i] > 0 ? grad[i] : 0;", "in[i] > 0 ? grad[i] : 0.5f;")
    edit(kernels, RACE, wrong)
    build_as(folder)
    make = ["make", "DEVICE=emulated", f"PYTHON={sys.executable}"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True, timeout=600)
    return folder


def run(work, command, **variables):
    names = ("EMULATOR_LOOPS", "EMULATOR_SHUFFLE", "DLSYS_CHECKED", "PYTEST_ADDOPTS")
    env = {name: text for name, text in os.environ.items() if name not in names}
    done = subprocess.run(
        command, cwd=work, env={**env, **variables}, capture_output=True, text=True, timeout=600
    )
    return done.returncode, done.stdout + done.stderr


def pytest_of(test):
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{TESTS}::{test}"]


def test_pytest_says_that_the_emulated_gpu_is_to_blame(work):
    code, said = run(work, pytest_of("test_relu"))
    assert code == 1
    for words in (
        "NotYourMistake", "NOT YOUR MISTAKE", "elements differ", "make check-kernels",
        "src/gpu_op.cu and this output to your instructor", "EMULATOR_LOOPS=0 make test",
        "not your mistake: the emulated GPU is wrong in",
    ):  # fmt: skip
        assert words in said, words
    assert run(work, pytest_of("test_relu"), EMULATOR_LOOPS="0")[0] == 0


def test_nosetests_says_so_too(work):
    code, said = run(work, [NOSE, f"{TESTS}:test_relu"])
    assert code == 1
    assert "NOT YOUR MISTAKE" in said
    assert "elements differ" in said
    code, said = run(work, [NOSE, f"{TESTS}:test_relu_gradient"])
    assert code == 1
    assert "NOT YOUR MISTAKE" not in said


@pytest.mark.parametrize("test", ["test_relu_gradient", "test_broadcast_to"])
def test_a_wrong_kernel_and_a_race_stay_the_students(work, test):
    code, said = run(work, pytest_of(test))
    assert code == 1
    assert "elements differ" in said
    assert "NotYourMistake" not in said


def test_the_whole_suite_tells_which_are_whose(work):
    code, said = run(work, [sys.executable, "-m", "pytest", "-q", TESTS, "-k", "relu or add"])
    assert code == 1
    theirs = said[said.index("the emulated GPU is wrong in") :]
    assert f"{TESTS}::test_relu\n" in theirs
    assert f"{TESTS}::test_matrix_elementwise_add\n" in theirs
    assert f"{TESTS}::test_relu_gradient\n" not in theirs


def test_submit_tells_them_apart(work, tmp_path):
    tree = shutil.copytree(work, tmp_path / "work")
    others = [path for path in (tree / "tests").glob("test_*.py") if path.name != "test_gpu_op.py"]
    for path in others:
        path.unlink()
    tests = 'def test_a():\n    check("relu")\n\n\ndef test_b():\n    check("relu_gradient")\n'
    (tree / TESTS).write_text(f"from .checks import check\n\n\n{tests}")
    spec = importlib.util.spec_from_file_location("submit", tree / "submit.py")
    submit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(submit)
    assert submit.run_tests(str(tree)) == {
        "passed": 0, "failed": 2, "skipped": 0, "not_yours": 1, "failing": ["test_a", "test_b"],
    }  # fmt: skip


@pytest.fixture
def second_opinion(monkeypatch):
    """The module, where any test could be asked about, and whoever is asked fails loudly."""
    monkeypatch.syspath_prepend(str(build.REFERENCE / "tests"))
    module = importlib.import_module("second_opinion")
    for name in ("DLSYS_SECOND_OPINION", "DLSYS_CHECKED", "EMULATOR_LOOPS", "EMULATOR_SHUFFLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "is_emulated", lambda: True)
    monkeypatch.setattr(module, "used_gpu", lambda: True)
    monkeypatch.setattr(module, "passes", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        module.judged(AssertionError("wrong"), [])
    return module


def test_nobody_is_asked_about_what_is_not_written_yet(second_opinion):
    hole = NotImplementedError("task 2.11 is not written yet")
    assert second_opinion.judged(hole, []) is hole


@pytest.mark.parametrize("name", ["DLSYS_SECOND_OPINION", "DLSYS_CHECKED", "EMULATOR_LOOPS"])
def test_nobody_is_asked_twice_nor_where_kernels_run_plainly(second_opinion, monkeypatch, name):
    monkeypatch.setenv(name, "0")
    wrong = AssertionError("wrong")
    assert second_opinion.judged(wrong, []) is wrong


@pytest.mark.parametrize(
    ("runs", "theirs"),
    [
        ([False], False),  # the plain form fails, too
        ([True, True], False),  # alone, the test passes in the fast form
        ([True, False, False], False),  # another order of threads fails
        ([True, False, True], True),
    ],
)
def test_only_the_fast_form_alone_is_blamed(second_opinion, monkeypatch, runs, theirs):
    left = list(runs)
    monkeypatch.setattr(second_opinion, "passes", lambda *_, **__: left.pop(0))
    told = second_opinion.judged(AssertionError("wrong"), [])
    assert isinstance(told, second_opinion.NotYourMistake) == theirs
    assert left == []
