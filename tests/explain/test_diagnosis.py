"""Failures of kernels are explained by the checked build, and nothing else is changed by it."""

import dataclasses
import io
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console

import catalogue
from grader.building import tree
from grader.checks import fast_kernels, kernels
from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import Failure
from grader.checks.harness.traits import traits_of
from grader.checks.registry import CHECKS
from grader.course.rubric import FindingsBudget, RubricError, load_rubric
from grader.explain import diagnosis
from grader.explain.diagnosis import Diagnosis, concerns_kernels
from grader.grading import verdicts
from grader.grading.runner import Options, grade
from grader.report.model import FAIL, PASS, Result
from grader.report.terminal import show_report
from grader.sandbox import process
from grader.sandbox.isolation import View
from grader.student.remote import ChildDied, ChildTimeout, StudentError

pytestmark = pytest.mark.usefixtures("same_builds")

RUBRIC = load_rubric("default")
MUTANTS = {mutant.name: mutant for mutant in catalogue.mutants()}


def graded(name, folder, rubric=RUBRIC, more=(), **options):
    """The report on one wrong submission, `more` edits made to it."""
    mutant = MUTANTS[name]
    mutant = dataclasses.replace(mutant, edits=(*mutant.edits, *more))
    only = (mutant.check,)
    return grade(catalogue.write(mutant, folder), Options(rubric, "emulated", only=only, **options))


def line_of(folder, text):
    """The number of the line in the submission's kernels that holds a text."""
    lines = (folder / "src/gpu_op.cu").read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


def test_a_missing_guard_is_found_at_its_line(tmp_path):
    report = graded("add_no_guard", tmp_path)
    result = report.results[-1]
    line = line_of(tmp_path, "out[i] = a[i] + b[i];")
    written = next(found for found in result.findings if "write" in found["kind"])
    assert result.status == FAIL
    assert written["kind"] == "out-of-bounds write global"
    assert (written["file"], written["line"]) == ("src/gpu_op.cu", line)
    assert (written["kernel"], written["block"]) == ("elementwise_add_kernel", [4, 0, 0])
    assert written["thread"] == [1, 0, 0]
    assert "`out`[1025]" in written["sentence"]
    assert f"> {line:4} |   out[i] = a[i] + b[i];" in written["source"]
    assert "if (i < n)" in written["hint"]
    assert result.details[-1] == f"src/gpu_op.cu:{line}: {result.findings[0]['sentence']}"
    assert result.facts["findings"]["note"] == ""
    shown = io.StringIO()
    show_report(Console(file=shown, width=200), report)
    assert f"outside of a buffer in global memory: src/gpu_op.cu:{line}" in shown.getvalue()
    assert shown.getvalue().count(result.findings[0]["sentence"]) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("matmul_no_barrier", "sum += a_tile[threadIdx.y][k]"),
        ("reduce_sum_no_barrier", "partial[threadIdx.y][threadIdx.x] = sum;"),
    ],
)
def test_a_missing_barrier_is_found_as_a_race_with_both_lines(name, text, tmp_path):
    first = graded(name, tmp_path).results[-1].findings[0]
    assert first["kind"] == "race shared"
    assert (first["file"], first["line"]) == ("src/gpu_op.cu", line_of(tmp_path, text))
    assert first["other_file"] == "src/gpu_op.cu"
    assert first["other_line"] != first["line"]
    assert "__syncthreads()" in first["hint"]


def test_kernels_that_only_compute_wrongly_have_no_findings_and_fail_all_the_same(tmp_path):
    result = graded("relu_leaky", tmp_path).results[-1]
    assert (result.status, result.score, result.findings) == (FAIL, 0, [])
    assert result.facts["findings"]["note"] == "nothing was found"


def test_wrong_edges_are_told_by_sizes_that_are_right(tmp_path):
    edit = ("src/gpu_op.cu", "k < kTile; ++k) sum", "k < min(kTile, K - k0); ++k) sum")
    loses = ("src/gpu_op.cu", "k0 < K; k0 += kTile", "k0 + kTile <= K; k0 += kTile")
    mutant = catalogue.Mutant("last_tile", "the last tile is left out", "matrix_multiply", (),
                              (edit, loses))  # fmt: skip
    only = (mutant.check,)
    report = grade(catalogue.write(mutant, tmp_path), Options(RUBRIC, "emulated", only=only))
    hint = report.results[-1].hint
    assert "sizes that are multiples of 32 are right" in hint
    assert "edges guarded" in hint


def test_no_build_is_made_for_what_passes_or_fails_in_python(monkeypatch, tmp_path):
    def refuse(*_):
        raise AssertionError("a checked build was asked for")

    monkeypatch.setattr(Diagnosis, "_build", refuse)
    only = ("relu", "gradient_add_multiply")
    report = grade(tree.KIT / "assignment", Options(RUBRIC, "emulated", only=only))
    assert {r.status for r in report.results if r.task} == {FAIL}
    assert not any("findings" in r.facts for r in report.results)
    report = grade(tree.KIT / "solution", Options(RUBRIC, "emulated", only=only))
    assert {r.status for r in report.results} == {PASS}


def test_an_explanation_that_fails_is_noted_and_changes_no_verdict(monkeypatch, tmp_path):
    monkeypatch.setattr(diagnosis, "read_entries", lambda text: 1 / 0)
    result = graded("relu_leaky", tmp_path).results[-1]
    assert result.status == FAIL
    assert "elements differ" in result.message
    assert result.facts["findings"]["note"] == "ZeroDivisionError: division by zero"


def test_a_checked_build_that_fails_is_noted(tmp_path):
    edit = ("src/gpu_op.cu", "static const int kThreads = 256;",
            "template <typename T>\nconstexpr decltype(&T::template named<int>) in(int);\n"
            "template <typename T>\nconstexpr char in(...);\n"
            "static_assert(sizeof(in<emulator::SharedPlace>(0)) == 1, \"no\");\n"
            "static const int kThreads = 256;")  # fmt: skip
    result = graded("relu_leaky", tmp_path, more=(edit,)).results[-1]
    assert result.status == FAIL
    assert "elements differ" in result.message
    assert result.facts["findings"]["note"].startswith("the checked build failed: src/gpu_op.cu:")


@pytest.mark.parametrize(
    ("code", "note"),
    [
        # Findings of its own making, and files of others.
        ('std::fprintf(f, "{\\"kind\\": \\"leak\\", \\"at\\": {\\"file\\": \\"/etc/passwd\\", '
         '\\"line\\": 1}}\\n");', ""),
        ('for (int i = 0; i < 9000; ++i) std::fprintf(f, "[[[[\\n");', "malformed"),
        ('for (int i = 0; i < 9000000; ++i) std::fputc(0, f);', "malformed"),
        ('std::abort();', "SIGABRT"),
    ],
)  # fmt: skip
def test_findings_that_a_submission_makes_up_harm_nothing(code, note, tmp_path):
    start = (
        "#include <cstdio>\n#include <cstdlib>\n"
        "__attribute__((constructor)) static void forge() {\n"
        '  const char* path = std::getenv("EMULATOR_FINDINGS");\n  if (path == nullptr) return;\n'
        '  FILE* f = std::fopen(path, "a");\n'
        f"  {code}\n  std::fclose(f);\n}}\nstatic const int kThreads = 256;"
    )  # fmt: skip
    edit = ("src/gpu_op.cu", "static const int kThreads = 256;", start)
    result = graded("relu_leaky", tmp_path, more=(edit,)).results[-1]
    assert result.status == FAIL
    assert "elements differ" in result.message
    assert note in result.facts["findings"]["note"]
    for found in result.findings:
        assert found["source"] == []
        assert "root:" not in found["text"]


def test_without_time_nothing_is_built(monkeypatch, tmp_path):
    monkeypatch.setattr(Diagnosis, "_build", lambda *_: 1 / 0)
    rubric = dataclasses.replace(RUBRIC, findings=FindingsBudget(total=0))
    result = graded("add_no_guard", tmp_path, rubric).results[-1]
    assert (result.status, result.findings) == (FAIL, [])
    assert result.facts["findings"]["note"] == "no time is left of the 0 s for explanations"


def test_the_library_is_built_checked_once_for_all_checks(monkeypatch, tmp_path):
    built = []
    plainly = Diagnosis._build
    monkeypatch.setattr(Diagnosis, "_build", lambda *a: built.append(1) or plainly(*a))
    mutants = [MUTANTS["relu_leaky"], MUTANTS["add_no_guard"]]
    edits = tuple(edit for mutant in mutants for edit in mutant.edits)
    both = dataclasses.replace(mutants[0], edits=edits)
    only = tuple(mutant.check for mutant in mutants)
    report = grade(catalogue.write(both, tmp_path), Options(RUBRIC, "emulated", only=only))
    assert [r.status for r in report.results if r.task] == [FAIL, FAIL]
    assert built == [1]


def test_only_failures_of_kernels_are_explained():
    device = StudentError(("DeviceError", "AssertionError"), "CUDA error", "", "relu")
    python = StudentError(("TypeError",), "no", "", "relu")
    hole = StudentError(("NotImplementedError",), "task 2.11 is not written", "", "relu")
    told = [Failure("wrong"), device, ChildDied(-11, "relu")]
    assert all(concerns_kernels("relu", error) for error in told)
    assert not any(concerns_kernels("reverse_walk", error) for error in told)
    silent = [python, hole, ChildTimeout(3, "relu")]
    assert not any(concerns_kernels("relu", error) for error in silent)
    explained = {name for name, check in CHECKS.items() if traits_of(check).explained}
    assert {
        *kernels.CHECKS,
        *fast_kernels.CHECKS,
        "feed_shapes",
        "memory_plan",
        "mnist_gpu",
    } == explained


def context(tmp_path, check="relu"):
    (tmp_path / "tree").mkdir()
    return ChildContext(tmp_path / "tree", RUBRIC, "emulated", "5eed", check, 10)


def compared(monkeypatch, tmp_path, outcomes):
    """The hint for a failure with result "a", where further runs end as `outcomes` say."""
    left = list(outcomes)

    def check(ctx):
        outcome = left.pop(0)
        if outcome is not None:
            raise outcome

    check.traits = traits_of(CHECKS["relu"])
    monkeypatch.setitem(CHECKS, "relu", check)
    explain = Diagnosis({}, RUBRIC, lambda: tmp_path, View())
    return explain._compared(context(tmp_path), Failure("x", "", "a"))


def test_a_result_that_differs_from_run_to_run_is_called_a_race(monkeypatch, tmp_path):
    hint = compared(monkeypatch, tmp_path, [Failure("x", "", "b")])
    assert "differs from run to run" in hint
    assert "race" in hint


def test_a_failure_that_does_not_come_again_is_called_a_race(monkeypatch, tmp_path):
    assert "differs from run to run" in compared(monkeypatch, tmp_path, [None])


def test_the_same_failure_again_is_no_race(monkeypatch, tmp_path):
    same = Failure("x", "", "a")
    assert compared(monkeypatch, tmp_path, [same, same]) == ""


@pytest.mark.parametrize(
    ("beyond", "told"),
    [(Failure("x", "", "c"), True), (None, False)],
    ids=["one more is wrong", "one more is right, too"],
)
def test_edges_are_blamed_only_where_a_larger_size_is_wrong(monkeypatch, tmp_path, beyond, told):
    """All multiples of 32 may be right by chance: the same seed draws other sizes for them."""
    same = Failure("x", "", "a")
    hint = compared(monkeypatch, tmp_path, [same, None, beyond])
    assert ("sizes that are multiples of 32 are right, and one more is wrong" in hint) == told
    assert bool(hint) == told


def test_findings_are_read_by_one_child_at_a_time(monkeypatch, tmp_path):
    """An audit and an explanation may want it at once, and the sandbox gives the tree away."""
    inside, most = [], []

    def run(*_args, **_settings):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.1)
        inside.pop()
        return process.Completed(0, None, "exit", '{"found": [], "more": 0}', 0.1)

    monkeypatch.setattr(diagnosis.process, "run", run)
    monkeypatch.setattr(Diagnosis, "checked_tree", lambda self: tmp_path)
    explain = Diagnosis({}, RUBRIC, lambda: tmp_path, View())
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(explain.resolve, [[{"kind": "race shared"}]] * 4))
    assert results == [([], 0)] * 4
    assert most == [1] * 4


def test_sizes_are_smaller_where_every_access_is_watched(tmp_path):
    ctx = context(tmp_path)
    assert ctx.sized((2000, 3000)) == (2000, 3000)
    ctx.watched = True
    drawn = {ctx.sized((2000, 3000)) for _ in range(50)}
    assert {rows * columns < 3_000_000 and rows % 2 == 1 for rows, columns in drawn} == {True}
    assert len(drawn) > 3, "the size can be foreseen"
    large = {ctx.sized((4000, 9000, 1000)) for _ in range(9)}
    assert large == {(307, 693, 77)}
    assert ctx.sized((1025, 10)) == (1025, 10)
    ctx = dataclasses.replace(ctx, watched=False, tile=32)
    assert ctx.sized((33, 64, 1)) == (64, 64, 32)


def test_the_budget_stands_in_the_rubric(tmp_path):
    assert load_rubric("classic").findings == RUBRIC.findings
    text = (tree.KIT / "grader/course/rubrics/default.toml").read_text()
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(text.replace("[findings]", "[findings]\nunknown = 3"))
    with pytest.raises(RubricError, match="unknown"):
        load_rubric(str(wrong))


def test_a_link_error_fails_the_build_in_words(tmp_path):
    edit = ("src/gpu_op.cu", "static const int kThreads = 256;",
            "float helper(float* x, int n);\nfloat caller(float* x) { return helper(x, 3); }\n"
            "static const int kThreads = 256;")  # fmt: skip
    report = graded("relu_leaky", tmp_path, more=(edit,))
    result = report.results[0]
    assert (result.check, result.status) == ("build", FAIL)
    assert result.message.startswith("`helper(float*, int)` is called but not defined")


def test_a_build_that_does_not_end_says_what_was_compiled():
    printed = "python3 emulator/emucc.py -Isrc -MMD --keep -c src/gpu_op.cu -o gpu_op.cu.o\n"
    ended = process.Completed(None, "SIGKILL", "timeout", printed, 300.0)
    result = verdicts.build_failure(RUBRIC.rows[0], ended, {})
    assert result.message == "the build did not end within 300 s: compiling gpu_op.cu"


def test_the_runner_tells_a_finding_once_among_the_details():
    found = {"file": "src/gpu_op.cu", "line": 3, "sentence": "k races."}
    result = Result("relu", "2.11", 1, 0, FAIL, "")
    told = diagnosis.Explanation([found, found], "a race?", {"note": ""})
    verdicts.with_findings(result, told)
    assert result.details == ["src/gpu_op.cu:3: k races."]
    assert (result.hint, result.facts) == ("a race?", {"findings": {"note": ""}})
