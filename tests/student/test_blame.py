"""A child that was killed: by whom, as far as the kernel tells."""

import signal
from types import SimpleNamespace

import pytest

from grader.checks.harness.traits import check
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.grading.submission_build import SubmissionBuild
from grader.report.model import ERROR, FAIL, PASS
from grader.sandbox import process
from grader.sandbox.isolation import View
from grader.sandbox.limits import Starved
from grader.student import blame
from grader.student.blame import Evidence, OutOfMemory, was_killed
from grader.student.pipe import ChildDied, ChildExcess
from kit_grading import KIT

MIB = 1 << 20


def killed(memory=10 * MIB, most=100 * MIB):
    error = ChildDied(-signal.SIGKILL, "relu")
    error.memory, error.most_memory = memory, most
    return error


@pytest.fixture
def machine(tmp_path):
    """A machine whose kernel counts what it ended."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/pressure").mkdir()
    (tmp_path / "sys/fs/cgroup/a/b").mkdir(parents=True)
    (tmp_path / "proc/vmstat").write_text("pgfault 7\noom_kill 3\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n")
    some = "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\n"
    (tmp_path / "proc/pressure/memory").write_text(some)
    for folder in ("a", "a/b"):
        (tmp_path / "sys/fs/cgroup" / folder / "memory.events").write_text("oom 1\noom_kill 1\n")
    return tmp_path


def test_only_a_death_by_sigkill_was_a_kill():
    assert was_killed(killed())
    assert not was_killed(ChildDied(-signal.SIGSEGV, "relu"))
    assert not was_killed(ChildDied(None, "relu"))
    assert not was_killed(ChildExcess("memory", 1, "relu"))
    assert not was_killed(None)


def test_a_death_of_which_the_kernel_knows_nothing_stays_the_students(machine):
    error = killed()
    assert Evidence(machine).judged(error) is error


@pytest.mark.parametrize("where", ["proc/vmstat", "sys/fs/cgroup/a/memory.events"])
def test_where_memory_ran_out_around_a_small_child_it_is_the_machines(machine, where):
    evidence = Evidence(machine)
    (machine / where).write_text("oom_kill 5\n")
    found = evidence.judged(killed())
    assert isinstance(found, OutOfMemory)
    assert "the kernel killed" in str(found) and "12.50 %" in str(found)
    assert "10 MiB when last measured, of at most 100 MiB" in str(found)
    assert "hint: grade fewer at a time" in str(found)


def test_a_child_that_took_most_of_what_it_may_filled_the_machine_itself(machine):
    evidence = Evidence(machine)
    (machine / "proc/vmstat").write_text("oom_kill 4\n")
    assert isinstance(evidence.judged(killed(memory=50 * MIB)), OutOfMemory)
    found = evidence.judged(killed(memory=50 * MIB + 1))
    assert isinstance(found, ChildExcess) and found.kind == "memory"
    assert found.limit == 100 * MIB


def test_the_death_of_a_process_beside_the_child_counts_too(machine):
    lost = RuntimeError("the far device has failed")
    lost.__cause__ = killed()
    evidence = Evidence(machine)
    assert evidence.judged(lost) is lost
    (machine / "proc/vmstat").write_text("oom_kill 4\n")
    assert isinstance(evidence.judged(lost), OutOfMemory)


def test_a_system_that_counts_nothing_is_no_evidence(tmp_path):
    error = killed()
    assert Evidence(tmp_path).judged(error) is error


def test_counters_of_the_older_groups_count_too(machine):
    (machine / "proc/self/cgroup").write_text("4:memory:/x\n0::/\n")
    folder = machine / "sys/fs/cgroup/memory/x"
    folder.mkdir(parents=True)
    (folder / "memory.oom_control").write_text("under_oom 0\noom_kill 0\n")
    evidence = Evidence(machine)
    (folder / "memory.oom_control").write_text("under_oom 0\noom_kill 1\n")
    assert isinstance(evidence.judged(killed()), OutOfMemory)


# --- graded -------------------------------------------------------------------------------------


def graded(monkeypatch, *outcomes):
    """The result of a check that ends so, run by run."""
    ran = []

    @check(device=False)
    def ends(context):
        """ends as told"""
        ran.append(context.tree)
        if outcomes[len(ran) - 1] is not None:
            raise outcomes[len(ran) - 1]

    monkeypatch.setattr(
        "grader.grading.runner.checks_of", lambda course: {"topological_order": ends}
    )
    only = ("topological_order",)
    options = Options(rubric=load_rubric("default"), device="emulated", only=only)
    (result,) = (r for r in grade(KIT / "solution", options).results if r.check == only[0])
    assert len(ran) == len(outcomes) and len(set(ran)) == len(ran)
    return result


def test_a_kill_from_outside_costs_no_point(monkeypatch):
    result = graded(monkeypatch, killed(), None)
    assert (result.status, result.score) == (PASS, 1)


def test_who_is_killed_again_fails(monkeypatch):
    result = graded(monkeypatch, killed(), killed())
    assert result.status == FAIL
    assert "signal 9" in result.message


def test_where_memory_ran_out_it_is_an_error_of_the_machine(monkeypatch):
    ended = iter([{"machine": 0}, {"machine": 1}])
    monkeypatch.setattr(blame, "_kills", lambda root: next(ended).items())
    result = graded(monkeypatch, killed(), killed())
    assert result.status == ERROR
    assert "this machine ran out of memory" in result.message


def test_whom_others_kept_from_the_processor_is_asked_once_more_and_never_fails(monkeypatch):
    assert graded(monkeypatch, Starved(400), None).status == PASS
    result = graded(monkeypatch, Starved(400), Starved(500))
    assert result.status == ERROR
    assert "kept this one from the processor for 500 s" in result.message


def test_a_build_that_others_kept_from_the_processor_is_an_error(monkeypatch):
    ran = []

    def starved(*words):
        ran.append(words)
        return process.Completed(None, "SIGKILL", "starved", "make: x\n", 400.0)

    monkeypatch.setattr(process, "run", starved)
    build = SubmissionBuild(SimpleNamespace(taken={}, changed=()), KIT, KIT, "emulated",
                            None, lambda folder: View(), None)  # fmt: skip
    row = next(row for row in load_rubric("default").rows if row.name == "build")
    done = build._make(KIT, row)
    assert len(ran) == 2
    result = build._result(row, KIT, done)
    assert (result.status, result.score) == (ERROR, 0)
    assert "kept from the processor twice" in result.message


def test_another_death_is_not_tried_again(monkeypatch):
    assert graded(monkeypatch, ChildDied(-signal.SIGSEGV, "relu")).status == FAIL
