"""The recipes of CONTRIBUTING.md, followed on a copy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sample_report
from grader.building.tree import (
    KIT,
    REFERENCE,
    build_environment,
    copy_built,
    copy_files,
    make_command,
    tree_files,
)
from grader.grading.prebuilt import prebuilt

CHECKS = '''"""Sums."""

from __future__ import annotations

from grader.checks.harness.compare import Failure
from grader.checks.harness.context import Context
from grader.checks.harness.traits import check, declared


@check(device=False)
def sums_have_two_inputs(ctx: Context) -> None:
    """x + y keeps both of its inputs"""
    with ctx.session() as session:
        total = session.variable("x") + session.variable("y")
        if session.remote.len(total.inputs) != 2:
            raise Failure("x + y has not two inputs")


CHECKS = declared(globals())
'''
ROW = """
[[check]]
name = "sums_have_two_inputs"
task = "1.2"
points = 3
seconds = 20
"""

OP = '''"""Activations."""

import numpy as np

from dlsys.autodiff import UnaryOp, relu_op


class SoftsignOp(UnaryOp):
    """x / (1 + |x|)."""

    label = "Softsign({})"
    kernel = "softsign"
    elementwise = True

    def forward(self, node, x):
        return x / (1 + np.abs(x))

    def gradient(self, node, output_grad):
        """1 / (1 + |x|) is 1 - |softsign(x)|."""
        result = softsign_op(*node.inputs)
        rest = 1 + -1 * (relu_op(result) + relu_op(-1 * result))
        return [output_grad * rest * rest]


softsign_op = SoftsignOp()
'''
OP_OF_THE_FULL_SET = '''"""Activations."""

import numpy as np

from .elementwise import FunctionOp, abs_op, divide_op, square_op


class SoftsignOp(FunctionOp):
    """x / (1 + |x|)."""

    label = "Softsign({})"
    code = "a / (1 + absolute(a))"

    def forward(self, node, x):
        return x / (1 + np.abs(x))

    def gradient(self, node, grad):
        return [divide_op(grad, square_op(abs_op(node.inputs[0]) + 1))]


softsign_op = SoftsignOp()
'''
DECLARATION = """
  /*! \\brief output = input / (1 + |input|). */
  int DLGpuSoftsign(const DLArrayHandle input, DLArrayHandle output);
"""
KERNEL = """
__global__ void softsign_kernel(int64_t n, const float* in, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = in[i] / (1 + fabsf(in[i]));
}

int DLGpuSoftsign(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "softsign: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n == 0) return 0;
  softsign_kernel<<<blocks_for(n, kThreads), kThreads>>>(n, data_of(input), data_of(output));
  return launched("softsign");
}
"""

SUBCOMMAND = '''"""`grader score`: the points of a stored report."""

from pathlib import Path

from grader.report.stored import read_report


def add(commands):
    """Adds the command."""
    command = commands.add_parser("score", help="show the points of a stored report")
    command.add_argument("report", type=Path, metavar="FILE")
    command.set_defaults(run=_run)


def _run(options, console):
    report = read_report(options.report)
    console.print(f"{report.score:g} of {report.points:g}")
    return 0
'''
FORM = '''"""Writes a report as a table in Markdown."""

from grader.report.model import Report


def to_markdown(report: Report) -> str:
    """A row a check."""
    rows = [f"| {each.check} | {each.score:g} | {each.points:g} |" for each in report.results]
    return "\\n".join(["| check | score | points |", "|---|---|---|", *rows]) + "\\n"
'''


def passes_tests_of_ops(tree, *names):
    """Tests of tests/dlsys on the package of a tree: whether all pass, and what is printed.

    The first name is that of the file; further ones are options of pytest.
    """
    for name in ("test_ops.py", names[0]):
        (tree / name).write_bytes((KIT / "tests/dlsys" / name).read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", *names],
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree / "python")}, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    return done.returncode == 0, done.stdout


def replaced(path, before, after):
    assert path.read_text().count(before) == 1
    path.write_text(path.read_text().replace(before, after))


def grader_in(folder, *words):
    """What a copy's own command `grader` prints; its exit code must be 0."""
    done = subprocess.run(
        [sys.executable, "-m", "grader", *words], cwd=folder, text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(folder)}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copied(folder, *names):
    """Copies these folders of the kit, without what was built in them."""
    for name in names:
        files = {path: KIT / name / path for path in tree_files(KIT / name)}
        copy_files(files, folder / name)


@pytest.fixture
def stored(tmp_path):
    """A copy of the grader, with the skeleton whose loader it uses, and a report in which relu
    passes and softmax fails."""
    copied(tmp_path, "grader", "assignment")
    results = [sample_report.result("relu", "pass"), sample_report.result("softmax", "fail")]
    sample_report.report(results).write(tmp_path / "report.json")
    return tmp_path


@pytest.fixture
def with_softsign(tmp_path):
    """The solution, built for the emulated GPU, with one op more, in three files."""
    copy_built(tmp_path, prebuilt("emulated", source=REFERENCE))
    (tmp_path / "python/dlsys/ops/softsign.py").write_text(OP)
    end = "\n} /* DLSYS_EXTERN_C */"
    replaced(tmp_path / "src/c_runtime_api.h", end, DECLARATION + end)
    kernels = tmp_path / "src/gpu_op.cu"
    kernels.write_text(kernels.read_text() + KERNEL)
    subprocess.run(
        make_command("emulated"), cwd=tmp_path, check=True, timeout=300,
        env={**os.environ, **build_environment()}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return tmp_path


def test_an_operation_takes_three_files(with_softsign):
    """It is tested without a line more: its shape, its gradient, its kernel."""
    passed, said = passes_tests_of_ops(with_softsign, "test_ops.py")
    assert passed, said
    for claim in (
        "the_result_has_the_inferred_shape",
        "the_gradient_is_that_of_finite_differences",
        "the_gpu_computes_what_numpy_does",
    ):
        assert f"PASSED test_ops.py::test_{claim}[softsign_op-2]" in said
    module = with_softsign / "python/dlsys/ops/softsign.py"
    replaced(module, "output_grad * rest * rest", "output_grad * rest")
    passed, said = passes_tests_of_ops(with_softsign, "test_ops.py")
    assert not passed
    assert "FAILED test_ops.py::test_the_gradient_is_that_of_finite_differences[softsign_op" in said


def test_an_operation_of_the_full_set_takes_one_class(tmp_path):
    """Its value and both gradients are compared with numpy on every back end."""
    copy_built(tmp_path, prebuilt("emulated", source=REFERENCE))
    module = tmp_path / "python/dlsys/ops/softsign.py"
    module.write_text(OP_OF_THE_FULL_SET)
    selected = ("test_backend.py", "-k", "softsign")
    passed, said = passes_tests_of_ops(tmp_path, *selected)
    assert passed, said
    for kind in ("cpu-float32", "cpu-float64", "gpu-float32", "gpu-float64"):
        test = "test_a_back_end_computes_what_numpy_does"
        assert f"PASSED test_backend.py::{test}[{kind}-softsign_op]" in said
    replaced(module, '"a / (1 + absolute(a))"', '"a / (1 + a)"')
    passed, said = passes_tests_of_ops(tmp_path, *selected)
    assert not passed and "4 failed" in said


def test_a_check_takes_two_files(tmp_path):
    """A module of its own and a row: it is found, given to students, and may import its harness."""
    copied(tmp_path, "grader", "emulator", "assignment", "solution")
    for name in ("course.toml", "steps.toml", "nets.toml"):
        (tmp_path / name).write_bytes((KIT / name).read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((KIT / "pyproject.toml").read_bytes())
    (tmp_path / "grader/checks/sums.py").write_text(CHECKS)
    before = "# Seconds for explaining failures of kernels"
    replaced(tmp_path / "grader/course/rubrics/default.toml", before, f"{ROW}\n{before}")
    words = ("grade", "solution", "--only", "sums_have_two_inputs", "--device", "emulated")
    grader_in(tmp_path, *words, "--json", "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    found = {result["check"]: result for result in report["results"]}
    assert found["sums_have_two_inputs"]["score"] == 3
    grader_in(tmp_path, "release")
    given = tmp_path / "assignment/grader/checks/sums.py"
    assert given.read_text() == CHECKS
    packages = ("solution/python", "emulator", ".")
    linted = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(packages)}, capture_output=True, text=True,
    )  # fmt: skip
    assert linted.returncode == 0, linted.stdout


def test_a_subcommand_takes_two_files(stored):
    (stored / "grader/cli/score.py").write_text(SUBCOMMAND)
    main = stored / "grader/cli/main.py"
    replaced(main, "    similarity,\n    submit,\n)", "    score,\n    similarity,\n    submit,\n)")
    replaced(main, "_COMMANDS = (\n", "_COMMANDS = (\n    score,\n")
    assert "show the points of a stored report" in grader_in(stored, "--help")
    assert grader_in(stored, "score", "report.json") == "1 of 2\n"


def test_a_form_of_a_report_takes_three_files(stored):
    (stored / "grader/report/markdown.py").write_text(FORM)
    formats, options = stored / "grader/report/formats.py", stored / "grader/cli/options.py"
    field = "    junit: Path | None = None\n"
    replaced(formats, field, f"{field}    markdown: Path | None = None\n")
    line = "        if self.json:\n"
    more = "        if self.markdown:\n            write_whole(self.markdown, to_markdown(view))\n"
    replaced(formats, line, more + line)
    imported = "from grader.report.model import Report, Result\n"
    replaced(formats, imported, f"from grader.report.markdown import to_markdown\n{imported}")
    option = '    group.add_argument("--junit", type=Path, metavar="FILE", help="JUnit XML")\n'
    replaced(options, option, option + option.replace("junit", "markdown"))
    grader_in(stored, "report", "report.json", "--markdown", "tables/report.md")
    assert "| softmax | 0 | 1 |" in (stored / "tables/report.md").read_text()


def test_a_chapter_takes_one_file(tmp_path):
    copied(tmp_path, "handout/chapters")
    chapters = tmp_path / "handout/chapters"
    (chapters / "25-how-to-debug.md.j2").write_text("# How to debug\n\nRead the first error.\n")
    words = ("handout", "--html", "--chapters", str(chapters), "--output", str(tmp_path))
    grader_in(KIT, *words)
    page = (tmp_path / "handout.html").read_text()
    before, _, after = page.partition("Read the first error.")
    assert "How to work" in before and "How to read a report" in after
