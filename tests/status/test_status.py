"""Students make the grader's checks in their own folder: `make status`, and the tests."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import edits
import mistakes
from grader.building.tree import KIT, copy_files, whole_tree
from grader.release.front_matter import FOR_STUDENTS
from grader.status import child, here, main
from grader.status.here import FAIL, PASS, SKIPPED, Outcome

PY = "python/dlsys/autodiff.py"
CU = "src/gpu_op.cu"
WATCHING = f"watching {PY}, {CU}; Ctrl-C ends\n"


def make(folder, *words):
    command = ["make", "-s", "DEVICE=emulated", f"PYTHON={sys.executable}", *words]
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=600
    )  # fmt: skip


def seen(folder, *words):
    """What `python -m grader.status` prints there."""
    done = subprocess.run(
        [sys.executable, "-m", "grader.status", *words], cwd=folder, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The solution as students would have it, built: a release whose holes are all filled in."""
    return mistakes.student_folder(tmp_path_factory.mktemp("status") / "work")


@pytest.fixture
def work(built, tmp_path):
    return shutil.copytree(built, tmp_path / "work")


def edit(folder, name, find, replace):
    edits.edit(folder / name, (find, replace))


def test_the_checks_of_a_skeleton_need_numpy_alone(built):
    script = (
        "import sys; before = set(sys.modules)\n"
        "import grader.status.main, grader; print(grader.__file__)\n"
        "mine = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(mine - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=built, capture_output=True, text=True, check=True
    )
    file, modules = done.stdout.splitlines()
    assert Path(file) == built / "grader" / "__init__.py"
    assert modules == "['grader', 'numpy']"
    rooms = {f"{room}/{name}.py" for room, names in FOR_STUDENTS.items() for name in names}
    assert {
        path.relative_to(built / "grader").as_posix() for path in (built / "grader").rglob("*.py")
    } == {"__init__.py", *rooms}


def test_right_work_is_done(work):
    said = seen(work, "--quick", "--json", "found.json")
    assert said.count(" done") == 19
    assert "not begun" not in said and "failing" not in said
    assert {each["status"] for each in json.loads((work / "found.json").read_text())} == {PASS}


def test_a_mistake_is_told_once_with_its_cause_and_a_script_that_makes_it_again(work):
    edit(work, PY, "return [unbroadcast_op(output_grad, operand) for",
         "return [-1 * unbroadcast_op(output_grad, operand) for")  # fmt: skip
    said = seen(work, "1.2")
    assert "1.2   gradients of add and multiply                    0/2  failing" in said
    (first,) = [line for line in said.splitlines() if "elements differ" in line]
    assert first.startswith("  gradient of a + b with respect to a")
    assert "again: python3 build/again/gradient_add_multiply.py" in said
    again = subprocess.run(
        [sys.executable, "build/again/gradient_add_multiply.py"], cwd=work, capture_output=True,
        text=True, check=True, timeout=600,
    )  # fmt: skip
    assert "a differs in" in again.stdout
    assert "next: fix 1.2 gradients of add and multiply" in said
    edit(work, PY, "return [-1 * unbroadcast_op(output_grad, operand) for",
         "return [output_grad for")  # fmt: skip
    assert "has shape (6, 4), expected (4,)" in seen(work, "1.2")
    again = subprocess.run(
        [sys.executable, "build/again/gradient_add_multiply.py"], cwd=work, capture_output=True,
        text=True, check=True, timeout=600,
    )  # fmt: skip
    assert "b has shape (6, 4) expected (4,)" in again.stdout
    edit(work, PY, "return [output_grad for", "return [unbroadcast_op(output_grad, operand) for")
    assert "next:" not in seen(work, "1.2")
    assert not (work / "build/again/gradient_add_multiply.py").exists()


def test_a_check_that_fails_leaves_nothing_behind_for_the_next(work):
    plan = "        shapes = self.node_to_shape_map\n"
    broken = "        if ndarray.NDArray.asnumpy is None:\n            raise KeyError(3)\n"
    edit(work, PY, plan, broken + plan)
    script = (
        "from pathlib import Path; from grader.status import here\n"
        "print(*(here.run(name, Path()).status for name in ('memory_plan', 'relu')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=work, capture_output=True, text=True, check=True,
        timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["fail", "pass"]


def test_an_exception_shows_the_students_lines_alone(work):
    edit(work, PY, "    visited = set()\n    topo_order = []", "    raise KeyError(3)")
    said = seen(work, "1.1")
    assert "raised KeyError: 3" in said
    assert f"{PY}:" in said and "in find_topo_sort" in said
    assert "grader/" not in said


def test_a_crash_and_an_endless_loop_cost_one_check(work, monkeypatch):
    start = '        """Equal shapes give that shape; others broadcast: see broadcast_rule."""\n'
    edit(work, PY, start, f"{start}        import os; os._exit(5)\n")
    said = seen(work, "2.1", "relu", "1.1")
    assert "the process ended with exit code 5 while infer_shape ran" in said
    assert "2.11  relu" in said and said.count(" done") == 2
    edit(work, PY, "import os; os._exit(5)", "while True: pass")
    plan = json.loads((work / ".release.json").read_text())
    for row in plan["checks"]:
        row["seconds"] = 2
    (work / ".release.json").write_text(json.dumps(plan))
    monkeypatch.setattr(child, "_START", 30.0)
    row = next(r for r in here.plan_of(work).rows if r.name == "infer_shape")
    (outcome,) = main.outcomes_of(here.plan_of(work), [row], work, {}, "local")
    assert outcome.message == "infer_shape did not end within 2 s"
    assert any("in infer_shape" in line for line in outcome.details)


def test_an_endless_loop_is_told_with_the_students_line(work, monkeypatch):
    edit(work, PY, "    visited = set()\n    topo_order = []", "    while True:\n        pass\n")
    monkeypatch.setattr(here, "PATIENCE", 1.0)
    row = next(r for r in here.plan_of(work).rows if r.name == "topological_order")
    (outcome,) = main.outcomes_of(here.plan_of(work), [row], work, {}, "local")
    assert outcome.message == "topological_order did not end within 1 s"
    assert f'File "{PY}", line ' in outcome.details[0] and "find_topo_sort" in outcome.details[0]
    assert "grader/" not in outcome.text()


def test_ctrl_c_says_where_it_was(work):
    edit(work, PY, "    visited = set()\n    topo_order = []",
         "    print(flush=True)\n    while True:\n        pass\n")  # fmt: skip
    script = (
        "import os, signal, sys, threading\n"
        "from grader.status import child, main\n"
        "look = child.CheckProcess._line\n"
        "def line(self, seconds):\n"
        "    stop = threading.Timer(2, os.killpg, (0, signal.SIGINT))\n"
        "    if seconds != child._START: stop.start()\n"
        "    return look(self, seconds)\n"
        "child.CheckProcess._line = line\n"
        "sys.exit(main.main(['1.1']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=work, capture_output=True, text=True, timeout=120,
        start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 130
    assert "topological_order was interrupted" in done.stderr
    assert f"in {PY}:" in done.stderr and "grader/" not in done.stderr


def test_host_code_that_touches_device_memory_is_told(work):
    launch = "relu_kernel<<<blocks_for(n, kThreads), kThreads>>>(n, data_of(input)"
    edit(work, CU, launch, f"if (*data_of(input) == 12345.f) return 0;\n  {launch}")
    assert make(work).returncode == 0
    said = seen(work, "relu")
    assert "while relu ran: host code touched device memory at" in said
    assert 'File "python/dlsys/gpu_op.py"' in said
    assert "make check-kernels looks at every access" in said


def test_parts_and_quick_go_together(built):
    said = seen(built, "1")
    assert said.count(" done") == 6 and "2.1" not in said
    assert "mnist" not in seen(built, "2.2", "--quick")


def test_an_untouched_skeleton_is_not_begun(tmp_path):
    work = tmp_path / "work"
    copy_files(whole_tree(KIT / "assignment"), work)
    said = seen(work, "--quick")
    assert said.count("not begun") == 19
    assert "next: 1.1 topological order, python/dlsys/autodiff.py:" in said
    assert "nothing is built yet; hint: make" in said
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_autodiff.py"],
        cwd=work, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and "6 skipped" in done.stdout, done.stdout


def test_a_source_that_is_newer_than_the_library_is_told(work):
    os.utime(work / CU)
    words = "src/gpu_op.cu is newer than the library; hint: make, and fix compiler errors first"
    assert here.not_built(work) == words
    said = seen(work, "relu")
    assert said.splitlines()[0].endswith(words)
    assert " waiting" in said


def test_a_new_file_of_the_back_ends_makes_no_library_old(tmp_path):
    """They are compiled when a program needs them: make has nothing to do, and could not help."""
    (tmp_path / "src/backend").mkdir(parents=True)
    library = tmp_path / "build/lib/libc_runtime_api.so"
    library.parent.mkdir(parents=True)
    library.touch()
    os.utime(library, (1, 1))
    assert here.not_built(tmp_path) == ""


def test_make_status_goes_on_where_the_build_breaks(work):
    (work / CU).write_text((work / CU).read_text() + "int broken( {\n")
    done = make(work, "status", "STATUS=1.1 relu")
    assert done.returncode == 0
    assert "gpu_op.cu" in done.stderr + done.stdout
    assert "1.1   topological order                                1/1  done" in done.stdout


def test_one_mistake_takes_few_lines_of_pytest(work):
    edit(work, PY, "    visited = set()\n    topo_order = []", "    return []")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
         "tests/test_autodiff.py"],
        cwd=work, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) <= 15, done.stdout
    assert "has 0 nodes, expected 5" in done.stdout


def test_what_editors_and_github_call_is_there(built):
    targets = set(re.findall(r"^([\w-]+):", (built / "Makefile").read_text(), re.M))
    tasks = json.loads((built / ".vscode/tasks.json").read_text())["tasks"]
    assert {task["args"][0] for task in tasks} <= targets
    launched = json.loads((built / ".vscode/launch.json").read_text())["configurations"]
    named = [word for each in launched for word in each.get("args", []) if word.endswith(".py")]
    assert named and all((built / name).is_file() for name in named)
    container = json.loads((built / ".devcontainer/devcontainer.json").read_text())
    for text in (
        container["postCreateCommand"],
        (built / ".github/workflows/status.yml").read_text(),
    ):
        assert "-r requirements.txt" in text
        assert set(re.findall(r"\bmake (\w+)\b(?!=)", text)) <= targets


def test_what_is_saved_is_looked_at_again(work):
    command = [sys.executable, "-u", "-m", "grader.status", "--watch", "1.1"]
    watching = subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, text=True)
    try:
        assert " done" in "".join(iter(watching.stdout.readline, WATCHING))
        edit(work, PY, "    visited = set()\n    topo_order = []", "    return []")
        assert " failing" in "".join(iter(watching.stdout.readline, WATCHING))
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 0
    finally:
        watching.kill()
        watching.stdout.close()


@pytest.mark.parametrize(
    ("statuses", "is_hole", "expected"),
    [
        ((PASS, PASS), False, main.DONE),
        ((PASS, FAIL), False, main.FAILING),
        ((PASS, FAIL), True, main.NOT_BEGUN),
        ((PASS, SKIPPED), False, main.WAITING),
    ],
)
def test_the_state_of_a_task_follows_from_its_checks(statuses, is_hole, expected):
    rows = [here.PlannedCheck(f"check_{i}", "2.2", 1, (), 60) for i in range(len(statuses))]
    outcomes = {r.name: Outcome(r.name, s) for r, s in zip(rows, statuses, strict=True)}
    holes = {"2.2": "x.py:3"} if is_hole else {}
    assert main.state_of("2.2", rows, outcomes, holes) == expected


def test_a_name_that_is_no_check_is_refused(built):
    done = subprocess.run(
        [sys.executable, "-m", "grader.status", "relo"], cwd=built, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "there is no check, task or part 'relo'; hint: relu\n" in done.stderr
    assert main._unknown("matmul", ["relu", "matrix_multiply", "gradient_matmul"]).endswith(
        "hint: gradient_matmul, matrix_multiply"
    )
    assert main._unknown("?", ["relu", "softmax"]).endswith("hint: relu, softmax")


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / ".release.json").write_text("{}")
    with pytest.raises(here.PlanError, match="KeyError: 'checks'; hint: run this in"):
        here.plan_of(tmp_path)


def test_what_can_not_be_imported_is_told_once(work):
    edit(
        work, PY, "def gradients(output_node, node_list):", "def gradients(output_node, node_list)"
    )
    plan = here.plan_of(work)
    rows = [r for r in plan.rows if r.task.startswith("1.") and not r.requires]
    found = list(main.outcomes_of(plan, rows, work, {}, "local"))
    assert found[0].message.startswith("import dlsys.autodiff raised SyntaxError")
    assert {o.message for o in found[1:]} == {"what it needs can't be imported"}


def told_by_tests(work, *names, more=""):
    """What the tests of students say of checks, one after the other."""
    code = (
        "import unittest\n"
        f"from grader.status import here\n{more}\n"
        "from tests.checks import check\n"
        f"for name in {names}:\n"
        "    try:\n        check(name)\n        print(name, 'passes')\n"
        "    except (AssertionError, unittest.SkipTest) as error:\n"
        "        print(name, type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=work, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(work / "python")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "option", ["-x", "-s"]
)  # in a process of its own, and in that of the tests
def test_python_that_never_ends_is_told_by_the_tests_too(work, option):
    edit(work, PY, "    visited = set()\n    topo_order = []", "    while True:\n        pass\n")
    more = f"here.PATIENCE = 1.0; import sys; sys.argv.append({option!r})"
    said = told_by_tests(work, "topological_order", more=more)
    assert "did not end within 1 s" in said
    assert f"{PY}:" in said if option == "-s" else f'File "{PY}"' in said


def test_a_launcher_that_never_ends_or_crashes_takes_no_other_test_with_it(work):
    text = (work / CU).read_text()
    launch = "relu_kernel<<<blocks_for(n, kThreads), kThreads>>>(n, data_of(input)"
    assert text.count(launch) == 1
    text = text.replace(launch, f"volatile int64_t z = n;\n  while (z > 0) z = n;\n  {launch}")
    body = text.index("{", text.index("int DLGpuMatrixElementwiseAdd(")) + 1
    (work / CU).write_text(text[:body] + "\n  *static_cast<volatile int*>(0) = 1;" + text[body:])
    assert make(work).returncode == 0
    release = work / ".release.json"
    facts = json.loads(release.read_text())
    for row in facts["checks"]:
        row["seconds"] = 2 if row["name"] == "relu" else row["seconds"]
    release.write_text(json.dumps(facts))
    said = told_by_tests(work, "relu", "matrix_elementwise_add", "softmax")
    assert "relu AssertionError relu did not end within 2 s" in said
    assert "matrix_elementwise_add AssertionError the process ended with signal 11" in said
    assert "softmax passes" in said


def test_what_needs_a_check_that_does_not_pass_is_skipped(work):
    edit(work, CU, "relu_kernel<<<blocks_for(n, kThreads)", "relu_kernel<<<n / kThreads")
    assert make(work).returncode == 0
    said = told_by_tests(work, "memory_plan", "relu", "infer_shape")
    assert "memory_plan SkipTest needs relu\n" in said
    assert "relu AssertionError" in said and "infer_shape passes" in said


def test_a_machine_on_which_others_work_is_no_endless_loop():
    """Seconds are those of the process's own processors; who computes nothing does not end."""
    code = "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass\n"
    busy = subprocess.Popen([sys.executable, "-c", code + "input()"], stdin=subprocess.PIPE)
    idle = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        for one, seconds in ((busy, 0.5), (idle, 1.0)):
            clock, started = child._Clock(one.pid), time.monotonic()
            while not clock.passed(seconds):
                assert time.monotonic() - started < 60
                time.sleep(0.01)
    finally:
        for one in (busy, idle):
            one.kill()
            one.communicate()


def test_what_has_no_points_and_fails_after_another_task_follows():
    rows = [
        here.PlannedCheck("gradient", "1.2", 2, (), 20),
        here.PlannedCheck("shapes", "2.1", 1, (), 20),
        here.PlannedCheck("training", "2.1", 0, (), 20),
    ]  # fmt: skip
    found = {"gradient": FAIL, "shapes": PASS, "training": FAIL}
    outcomes = {name: Outcome(name, status, "wrong") for name, status in found.items()}
    assert main.follow(rows, outcomes) == ["training"]
    assert main.state_of("2.1", rows, outcomes, {}) == main.WAITING
    outcomes["gradient"] = Outcome("gradient", PASS)
    assert main.follow(rows, outcomes) == []
    assert main.state_of("2.1", rows, outcomes, {}) == main.FAILING


def test_one_mistake_is_told_once(work):
    right = "return [unbroadcast_op(output_grad, operand) for operand in node.inputs]"
    edit(work, PY, right, right.replace("(output_grad,", "(output_grad * -1,"))
    said = seen(work, "1.2", "mnist_numpy")
    assert said.count("failing") == 1
    assert "wrong for the same reason: mnist_numpy; fix the above first" in said
    assert "make check-kernels" not in said
