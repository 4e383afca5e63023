"""Which rows of a rubric wait for which, what runs beside what, and how a schedule is cancelled."""

import sys
import threading
import time

import pytest

import catalogue
from grader.checks.harness.traits import traits_of
from grader.checks.registry import CHECKS
from grader.course.rubric import Row, load_rubric
from grader.grading.runner import Options, grade
from grader.grading.schedule import BESIDE, DEVICE, JobThread, Schedule, jobs_of
from grader.report.model import ERROR, FAIL, PASS, Result
from grader.student.remote import Remote

WAIT = 60.0  # seconds for what comes at once, or never


def row(name, *requires):
    return Row(name, "", 1, requires, 60)


def result(row, status=PASS):
    return Result(row.name, "", 1, 1, status, "")


def after(rows, backend="emulated"):
    """name -> the names that it waits for."""
    return {job.row.name: set(job.after) for job in jobs_of(rows, backend)}


TWO = (JobThread(BESIDE), JobThread(DEVICE))


def run(rows, decide, workers=TWO, backend="emulated"):
    with Schedule(jobs_of(rows, backend), decide).running(workers) as results:
        return list(results)


# The jobs.


def test_what_uses_the_device_waits_for_the_build_and_the_rest_does_not():
    waits = after(load_rubric("default").rows)
    off_device = {name for name in waits if not traits_of(CHECKS.get(name)).device}
    assert {"topological_order", "gradient_matmul", "infer_shape", "mnist_numpy"} <= off_device
    assert all(not waits[name] & {"build"} for name in off_device)
    assert all(
        "build" in names for name, names in waits.items() if name not in off_device | {"build"}
    )


def test_a_check_that_requires_the_build_waits_for_it_wherever_it_runs():
    rows = [row("infer_shape", "build"), row("build")]
    assert after(rows)["infer_shape"] == {"build"}
    assert [r.check for r in run(rows, lambda row, schedule: result(row))] == [
        "build",
        "infer_shape",
    ]


@pytest.mark.parametrize("backend", ["cuda", "emulated"])
def test_what_looks_at_the_clock_waits_for_all_else_and_is_alone(backend):
    rows = load_rubric("speed").rows
    speed = [row.name for row in rows if row.name.startswith("speed_")]
    late = ["mnist_gpu", *speed] if backend == "cuda" else speed
    waits = after(rows, backend)
    names = {row.name for row in rows}
    for number, name in enumerate(late):
        assert waits[name] == names - set(late[number:])


def test_what_requires_something_late_is_late_too():
    rows = [row("build"), row("speed_softmax"), row("relu", "speed_softmax"), row("softmax")]
    waits = after(rows)
    assert waits["speed_softmax"] == {"build", "softmax"}
    assert waits["relu"] == {"build", "softmax", "speed_softmax"}


def test_every_rubric_can_be_carried_out():
    for profile in ("default", "classic", "speed"):
        rows = load_rubric(profile).rows
        for backend in ("cuda", "emulated"):
            found = run(rows, lambda row, schedule: result(row), backend=backend)
            assert sorted(r.check for r in found) == sorted(row.name for row in rows)


# The schedule.


def test_two_lanes_run_beside_each_other():
    both = threading.Barrier(2)

    def decide(row, schedule):
        both.wait(WAIT)
        return result(row)

    assert len(run([row("build"), row("infer_shape")], decide)) == 2


def test_two_workers_share_a_lane_unless_one_is_not_wanted():
    threads = set()

    def decide(row, schedule):
        threads.add(threading.get_ident())
        return result(row)

    rows = [row("build"), *(row(f"kernel_{n}") for n in range(20))]
    run(rows, decide, (JobThread(DEVICE), JobThread(DEVICE, lambda: False)))
    assert len(threads) == 1
    both = threading.Barrier(2)

    def meet(row, schedule):
        if row.name != "build":
            both.wait(WAIT)
        return result(row)

    assert len(run(rows, meet, (JobThread(DEVICE), JobThread(DEVICE)))) == 21


def test_results_come_as_soon_as_they_are_there():
    built = threading.Event()

    def decide(row, schedule):
        if row.name == "build":
            assert built.wait(WAIT)
        return result(row)

    with Schedule(jobs_of([row("build"), row("infer_shape")], "emulated"), decide).running(
        (JobThread(BESIDE), JobThread(DEVICE))
    ) as results:
        assert next(results).check == "infer_shape"
        built.set()
        assert next(results).check == "build"


def test_a_row_knows_which_of_those_it_requires_have_passed():
    asked = []

    def decide(row, schedule):
        asked.append(schedule.passed(row.requires))
        return result(row, FAIL if row.name == "second" else PASS)

    rows = [row("first"), row("second"), row("third", "first", "second")]
    run(rows, decide, (JobThread(DEVICE),))
    assert asked[-1] == {"first"}


def test_what_goes_wrong_in_a_lane_ends_the_others_and_is_raised(tmp_path):
    (tmp_path / "work.py").write_text("import time\ndef hang(): time.sleep(1000)\n")
    started = threading.Event()

    def decide(row, schedule):
        if row.name == "build":
            assert started.wait(WAIT)
            raise RuntimeError("no disk")
        with Remote(sys.executable, [str(tmp_path)], tmp_path) as remote:
            remote.import_("work").hang()
            started.set()
            remote.flush()

    before, began = catalogue.children(), time.monotonic()
    with pytest.raises(RuntimeError, match="no disk"):
        run([row("build"), row("infer_shape")], decide)
    assert time.monotonic() - began < WAIT
    assert catalogue.children() - before == set()


def test_rows_that_wait_are_given_up_with_the_rest():
    def decide(row, schedule):
        if row.name == "build":
            raise KeyboardInterrupt
        schedule.passed(["build"])

    with pytest.raises(KeyboardInterrupt):
        run([row("build"), row("infer_shape")], decide)


# In a grading.


def graded(source, **more):
    options = Options(load_rubric("default"), "emulated", **more)
    seen = []
    return grade(source, options, lambda result: seen.append(result.check)), seen


def test_the_first_result_waits_for_no_build_and_the_report_is_in_order(monkeypatch):
    from grader.building import tree

    make = tree.make_command  # it takes longer than a check, whatever else the machine does
    slow = ["sh", "-c", 'sleep 6; exec "$@"', "sh"]
    monkeypatch.setattr(tree, "make_command", lambda *a, **k: [*slow, *make(*a, **k)])
    report, seen = graded(catalogue.KIT / "solution", only=("infer_shape", "relu"))
    assert seen == ["infer_shape", "build", "relu"]
    assert [r.check for r in report.results] == ["build", "infer_shape", "relu"]
    assert report.score == report.points


def edited(folder, name, find, replace):
    mutant = catalogue.Mutant("m", "", "", (), ((name, find, replace),))
    return catalogue.write(mutant, folder)


def test_numpy_code_that_calls_the_library_is_graded_with_it(tmp_path):
    loads = "from . import gpu_op, ndarray\nndarray.empty((3,), ctx=ndarray.gpu(0))\n"
    source = edited(tmp_path, "python/dlsys/autodiff.py", "import numpy as np\n",
                    f"import numpy as np\n{loads}")  # fmt: skip
    report, _ = graded(source, only=("topological_order", "relu"))
    assert {r.check: r.message for r in report.results if r.status != PASS} == {}


def test_a_build_that_fails_for_the_pristine_files_too_is_the_grader_s_error(tmp_path, monkeypatch):
    from grader.building import tree
    from grader.grading import prebuilt

    source = edited(tmp_path, "src/gpu_op.cu", '#include "./c_runtime_api.h"', "#include <none.h>")
    fails, _ = graded(source, only=("build",))
    assert [r.status for r in fails.results] == [FAIL]
    monkeypatch.setattr(prebuilt, "_CURRENT", 3600.0)  # the kit's own tree is not made again
    make = tree.make_command
    monkeypatch.setattr(tree, "make_command", lambda *how: [*make(*how), "CXX=no-such-compiler"])
    report, _ = graded(source, only=("build", "relu"))
    assert [r.status for r in report.results] == [ERROR, "skipped"]
    assert report.results[0].message.startswith("the pristine files do not compile here either")
    assert "no-such-compiler" in "\n".join(report.results[0].details)
