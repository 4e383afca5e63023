"""Before a fail the emulated GPU is asked twice: where its two forms differ, nobody is blamed."""

import dataclasses

import numpy as np
import pytest

import catalogue
import faulty
from grader.building import tree as build
from grader.building.snapshot import Snapshot
from grader.checks.harness.child import ChildContext
from grader.checks.harness.compare import Failure
from grader.checks.registry import CHECKS
from grader.course.rubric import FindingsBudget, OpinionBudget, load_rubric
from grader.explain.second_opinion import Opinion, SecondOpinion, concerns, explains
from grader.grading import verdicts
from grader.grading.replay import replay
from grader.grading.runner import Options, grade
from grader.grading.self_check import with_skeleton
from grader.grading.verdicts import DOES_NOT_BUILD, FORMS_DISAGREE
from grader.report.audience import student_view
from grader.report.gradescope import to_gradescope
from grader.report.model import ERROR, FAIL, PASS, Result
from grader.sandbox.isolation import View
from grader.student.remote import ChildDied, ChildTimeout, ProtocolError, StudentError

pytestmark = pytest.mark.usefixtures("same_builds")

RUBRIC = load_rubric("default")
#: Without the checked build, which takes long; with_opinion is tested with findings.
QUICK = dataclasses.replace(RUBRIC, findings=FindingsBudget(build=0, seconds=0, total=0))
MUTANTS = {mutant.name: mutant for mutant in catalogue.mutants()}
#: Where emulator/compiler.py has what the passes made of a source, and what makes the fast form of
#: the solution's kernels something that does not compile, for no reason that names a kernel.
_MADE = "        return MARKER.sub(self.without_warnings, text)\n"
_BREAKING = """\
        if self.mode == LOOPS and "relu_kernel" in text:
            text += "#error of the passes\\n"
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return faulty.course(tmp_path_factory.mktemp("faulty") / "skeleton")


def edited(folder, *edits):
    """The solution with edits of its kernels."""
    return catalogue.write(
        catalogue.Mutant("edited", "", "relu", (), tuple(("src/gpu_op.cu", *e) for e in edits)),
        folder,
    )


def results(report):
    return {result.check: result for result in report.results}


def test_right_kernels_that_the_fast_form_gets_wrong_are_an_error_of_the_kit(course, tmp_path):
    path = tmp_path / "report.json"
    report = grade(
        build.KIT / "solution",
        Options(RUBRIC, "emulated", only=("relu",), course=course, output=path),
    )
    result = results(report)["relu"]
    assert (result.status, result.score) == (ERROR, 0)
    assert result.message.startswith(FORMS_DISAGREE)
    assert "elements differ" in result.message
    said = "\n".join(result.details)
    assert "fast nan, thread by thread" in said
    assert "relu_kernel" in said
    facts = result.facts["second_opinion"]
    assert facts["thread_by_thread"] == facts["another_order"] == "passed"
    assert "elements differ" in facts["fast_again"]
    assert report.has_errors
    assert "score" not in to_gradescope(report)
    assert "not your mistake" in student_view(report).results[-1].message
    made = replay(path, "relu", tmp_path / "again", course=course)
    assert made.is_same
    with np.load(tmp_path / "again" / "relu.npz") as kept:
        assert np.isnan(kept["fast"]).any()
        assert np.isfinite(kept["thread_by_thread"]).all()


def test_what_needs_a_disputed_check_is_tried_all_the_same(course):
    only = ("matrix_elementwise_add", "memory_plan")
    report = grade(build.KIT / "solution", Options(QUICK, "emulated", only=only, course=course))
    found = results(report)
    assert found["matrix_elementwise_add"].status == ERROR
    assert found["memory_plan"].status in (PASS, ERROR), found["memory_plan"].message


def test_a_wrong_kernel_fails_whatever_the_fast_form_does(course, tmp_path):
    work = catalogue.write(MUTANTS["relu_leaky"], tmp_path)
    report = grade(work, Options(QUICK, "emulated", only=("relu",), course=course))
    result = results(report)["relu"]
    assert result.status == FAIL
    assert "elements differ" in result.facts["second_opinion"]["thread_by_thread"]
    assert "fast_again" not in result.facts["second_opinion"]


def test_a_result_that_another_order_of_threads_changes_is_the_students(course, tmp_path):
    # The next element gets a value that the next thread overwrites, if it comes later.
    line = "  if (i < n) out[i] = in[i % size];"
    more = "\n  if (i + 1 < n && threadIdx.x + 1 < blockDim.x) out[i + 1] = 7;"
    work = edited(tmp_path, (line, line + more))
    report = grade(work, Options(QUICK, "emulated", only=("broadcast_to",), course=course))
    result = results(report)["broadcast_to"]
    assert result.status == FAIL
    assert result.facts["second_opinion"]["thread_by_thread"] == "passed"
    assert "depends on the order in which threads run" in result.hint


def test_what_compiles_without_the_fast_form_alone_is_graded_so(course, monkeypatch, tmp_path):
    """The passes may make something of a kernel that the compiler refuses."""
    broken = tmp_path / "skeleton"
    build.copy_files(build.whole_tree(course.skeleton), broken)
    compiler = broken / "emulator" / "compiler.py"
    text = compiler.read_text()
    assert text.count(_MADE) == 1, f"{compiler} is not as it was; hint: fix the test"
    compiler.write_text(text.replace(_MADE, _BREAKING + _MADE))
    only = ("relu", "broadcast_to")
    work = catalogue.write(MUTANTS["relu_leaky"], tmp_path / "work")
    options = Options(QUICK, "emulated", only=only, course=with_skeleton(course, broken))
    found = results(grade(work, options))
    assert found["build"].status == ERROR
    assert found["build"].message.startswith(DOES_NOT_BUILD)
    assert "of the passes" in found["build"].message
    assert (found["relu"].status, found["broadcast_to"].status) == (FAIL, PASS), found[
        "broadcast_to"
    ].message


def test_the_checked_builds_finding_keeps_the_fail():
    differs = Opinion(True, "", ["[0]: fast 1, thread by thread 2"], {"seconds": 1.0})
    race = [{"kind": "race shared"}]
    harmless = [{"kind": "advice: bank conflict"}, {"kind": "leak"}]
    for findings, status in ((race, FAIL), (harmless, ERROR), ([], ERROR), (harmless + race, FAIL)):
        failed = Result("relu", "2.11", 1, 0, FAIL, "", "wrong", findings=findings)
        judged = verdicts.with_opinion(failed, differs)
        assert (judged.status, judged.score) == (status, 0)
        assert judged.facts["second_opinion"] == {"seconds": 1.0}
        assert explains(findings) == (status == FAIL)


def test_only_what_kernels_can_cause_is_asked_about():
    device = StudentError(("DeviceError", "AssertionError"), "CUDA error", "", "relu")
    python = StudentError(("TypeError",), "no", "", "relu")
    hole = StudentError(("NotImplementedError",), "task 2.11 is not written", "", "relu")
    asked = [Failure("wrong"), device, ChildDied(-11, "relu"), ChildTimeout(3, "relu")]
    for check in ("relu", "memory_plan", "mnist_gpu"):
        assert all(concerns(check, error) for error in asked)
        assert not any(concerns(check, error) for error in (python, hole, ProtocolError("no")))
    for check in ("reverse_walk", "infer_shape", "mnist_numpy", "speed_add", "build"):
        assert not any(concerns(check, error) for error in asked)


def asked(monkeypatch, tmp_path, outcomes, budget=None, **more):
    """The opinion about a failure where further runs end as `outcomes` say."""
    left, runs = list(outcomes), []

    def check(ctx):
        runs.append(ctx.env)
        outcome = left.pop(0)
        if outcome is not None:
            raise outcome

    (tmp_path / "tree").mkdir(exist_ok=True)
    tree = Snapshot(tmp_path / "tree")
    monkeypatch.setitem(CHECKS, "relu", check)
    monkeypatch.setattr(SecondOpinion, "built", lambda self: tree)
    rubric = dataclasses.replace(RUBRIC, second_opinion=budget or OpinionBudget())
    context = ChildContext(tmp_path, rubric, "emulated", "5eed", "relu", 10, env={"A": "1"}, **more)
    second = SecondOpinion({}, rubric, lambda: tmp_path, View())
    opinion = second.about(context, Failure("wrong"), tree)
    assert left == []
    return opinion, runs


def test_a_run_that_fails_thread_by_thread_too_is_the_last(monkeypatch, tmp_path):
    opinion, runs = asked(monkeypatch, tmp_path, [Failure("wrong")])
    assert not opinion.differs
    assert opinion.facts["thread_by_thread"] == "wrong"
    assert runs == [{"A": "1"}]


def test_a_fail_that_does_not_come_again_is_no_difference_of_forms(monkeypatch, tmp_path):
    opinion, _ = asked(monkeypatch, tmp_path, [None, None])
    assert not opinion.differs
    assert opinion.facts["fast_again"] == "passed"


def test_both_forms_run_in_the_same_environment(monkeypatch, tmp_path):
    opinion, runs = asked(monkeypatch, tmp_path, [None, Failure("wrong"), None])
    assert opinion.differs
    assert runs == [{"A": "1"}, {"A": "1"}, {"A": "1", "EMULATOR_SHUFFLE": "7"}]


def test_an_order_that_takes_too_long_is_no_evidence_against_the_student(monkeypatch, tmp_path):
    slow = ChildTimeout(10, "relu")
    assert asked(monkeypatch, tmp_path, [None, Failure("wrong"), slow])[0].differs
    assert not asked(monkeypatch, tmp_path, [None, Failure("wrong"), Failure("no")])[0].differs


def test_kernels_that_reach_into_the_system_are_not_asked_about(monkeypatch, tmp_path):
    opinion, runs = asked(monkeypatch, tmp_path, [], reaches=("dlsym",))
    assert (opinion.differs, runs) == (False, [])
    assert "dlsym" in opinion.facts["note"]


def test_what_hung_in_the_fast_form_gets_little_time(monkeypatch, tmp_path):
    limits = []

    def check(ctx):
        limits.append(ctx.seconds)
        raise ChildTimeout(ctx.seconds, "relu")

    monkeypatch.setitem(CHECKS, "relu", check)
    monkeypatch.setattr(SecondOpinion, "built", lambda self: Snapshot(tmp_path))
    budget = OpinionBudget(seconds=50, hung=3)
    rubric = dataclasses.replace(RUBRIC, second_opinion=budget)
    context = ChildContext(tmp_path, rubric, "emulated", "5eed", "relu", 10)
    second = SecondOpinion({}, rubric, lambda: tmp_path, View())
    for error in (ChildTimeout(10, "relu"), Failure("wrong")):
        assert not second.about(context, error, Snapshot(tmp_path)).differs
    assert limits == [3, 50]


def test_of_launchers_that_do_not_end_one_is_asked_about(monkeypatch, tmp_path):
    asked_about = []

    def check(ctx):
        asked_about.append(ctx.check)
        raise ChildTimeout(ctx.seconds, ctx.check)

    monkeypatch.setattr(SecondOpinion, "built", lambda self: Snapshot(tmp_path))
    second = SecondOpinion({}, RUBRIC, lambda: tmp_path, View())
    for name in ("relu", "softmax"):
        monkeypatch.setitem(CHECKS, name, check)
        context = ChildContext(tmp_path, RUBRIC, "emulated", "5eed", name, 10)
        opinion = second.about(context, ChildTimeout(10, name), Snapshot(tmp_path))
        assert not opinion.differs
    assert asked_about == ["relu"]
    assert opinion.facts["note"] == "a check before did not end thread by thread either"


def test_without_time_nobody_is_asked(monkeypatch, tmp_path):
    opinion, runs = asked(monkeypatch, tmp_path, [], OpinionBudget(total=0))
    assert (opinion.differs, runs) == (False, [])
    assert opinion.facts["note"] == "no time is left of the 0 s for second opinions"


def test_on_a_real_gpu_there_is_one_form_and_no_opinion(tmp_path):
    context = ChildContext(tmp_path, RUBRIC, "cuda", "5eed", "relu", 10)
    second = SecondOpinion({}, RUBRIC, lambda: tmp_path, View())
    assert second.about(context, Failure("wrong"), Snapshot(tmp_path)) == Opinion()


def test_a_second_opinion_that_breaks_is_the_graders_error(monkeypatch, tmp_path):
    monkeypatch.setattr(SecondOpinion, "about", lambda *_: 1 / 0)
    work = catalogue.write(MUTANTS["relu_leaky"], tmp_path)
    result = results(grade(work, Options(QUICK, "emulated", only=("relu",))))["relu"]
    assert result.status == ERROR
    assert "ZeroDivisionError" in result.message
