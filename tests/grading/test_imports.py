"""A module whose import hangs or ends the process is found once, not by every check."""

import dataclasses
import itertools
import shutil

import pytest

from grader.checks.harness import child, trainer
from grader.grading.runner import grade
from grader.report.model import FAIL, PASS, SKIPPED
from grader.student.blame import Evidence, OutOfMemory, ends_imports
from kit_grading import KIT, options, results

pytestmark = pytest.mark.usefixtures("same_builds")

CHECKS = ("topological_order", "gradient_matmul", "reverse_walk", "array_set", "feed_shapes")


@pytest.fixture
def submission(tmp_path):
    """A function: the solution with a line before its autodiff.py, or behind its gpu_op.cu."""

    def write(python="", kernels=""):
        for folder in ("python", "src"):
            shutil.copytree(KIT / "solution" / folder, tmp_path / "work" / folder)
        for name, line in (("python/dlsys/autodiff.py", python), ("src/gpu_op.cu", kernels)):
            path = tmp_path / "work" / name
            text = path.read_text()
            path.write_text(f"{line}\n{text}" if name.endswith(".py") else f"{text}\n{line}\n")
        return tmp_path / "work"

    return write


def graded(tree):
    return results(grade(tree, options(only=CHECKS)))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("while True: pass", "not finished within 1 s: import dlsys.autodiff"),
        ("import os; os._exit(3)", "ended with exit code 3"),
    ],
)
def test_what_a_broken_import_costs_is_one_check(monkeypatch, submission, line, words):
    monkeypatch.setattr(child, "_IMPORT", 1.0)
    found = graded(submission(python=line))
    assert found["array_set"].status == PASS  # imports nothing of it
    failed = [name for name in CHECKS if found[name].status == FAIL]
    assert len(failed) == 1
    assert words in found[failed[0]].message
    skipped = [found[name] for name in CHECKS if found[name].status == SKIPPED]
    assert len(skipped) == 3
    why = [each.message for each in skipped if each.message.startswith("needs dlsys.autodiff")]
    assert len(why) >= 2
    assert all(
        f"whose import failed in the check {failed[0]}: " in text and words in text for text in why
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [("_exit(3);", "exit code 3"), ("for (;;) {}", "within 1 s: import dlsys.ndarray")],
)
def test_a_broken_library_is_loaded_for_one_check(monkeypatch, submission, body, words):
    monkeypatch.setattr(child, "_IMPORT", 1.0)
    end = "#include <unistd.h>\n__attribute__((constructor)) static void leave() { %s }"
    found = graded(submission(kernels=end % body))
    failed = [name for name in CHECKS if found[name].status == FAIL]
    assert len(failed) == 1
    assert words in found[failed[0]].message
    # Checks of Python may have been made while it was being built.
    assert SKIPPED in {found[name].status for name in ("array_set", "feed_shapes")}


@pytest.fixture
def endless(submission):
    """The solution with gradients that never end."""
    tree = submission()
    path = tree / "python/dlsys/autodiff.py"
    path.write_text(f"{path.read_text()}\ndef gradients(*_):\n    while True: pass\n")
    return tree


def test_a_graph_that_is_never_built_does_not_take_the_time_of_a_training(monkeypatch, endless):
    monkeypatch.setattr(trainer, "_SOON", 1.0)
    found = results(grade(endless, options(only=("mnist_numpy",))))
    assert found["mnist_numpy"].message.startswith("not finished within 1 s: autodiff.gradients(")


def test_what_never_ends_is_waited_for_once(endless):
    setup = options(only=("reverse_walk", "mnist_numpy"))
    rows = [dataclasses.replace(row, seconds=8) for row in setup.rubric.rows]
    setup = dataclasses.replace(setup, rubric=dataclasses.replace(setup.rubric, rows=tuple(rows)))
    found = results(grade(endless, setup))
    assert found["reverse_walk"].message.startswith("not finished within 8 s: gradients(")
    assert found["mnist_numpy"].message.startswith("not finished within 2 s: autodiff.gradients(")


def test_an_import_that_fails_once_costs_nothing(monkeypatch, submission):
    counted = itertools.count()
    really = child.ChildSession.module

    def hang_once(self, name):
        module = really(self, name)
        if name == "dlsys.autodiff" and next(counted) == 0:
            error = child.ChildTimeout(20, "import dlsys.autodiff")
            error.importing = name
            raise error
        return module

    monkeypatch.setattr(child.ChildSession, "module", hang_once)
    found = graded(submission())
    assert {name: each.message for name, each in found.items() if each.status != PASS} == {}


def test_an_import_that_raises_fails_every_check_that_needs_it(submission):
    found = graded(submission(python="raise KeyError('mine')"))
    said = {name: found[name].message for name in ("topological_order", "gradient_matmul")}
    assert all("raised KeyError" in text for text in said.values())


def test_a_spent_budget_is_no_fault_of_the_import():
    spent = child.ChildExcess("budget", 100, "import dlsys.autodiff")
    spent.importing = "dlsys.autodiff"
    assert not ends_imports(spent)
    assert not isinstance(Evidence().judged(spent), OutOfMemory)
