"""Grading from end to end, on the emulated GPU: the reference, the skeleton, wrong submissions."""

import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from rich.console import Console

import catalogue
import example_reports
import readme_report
from built_trees import build_as
from edits import edit
from grader.building.tree import copy_files, whole_tree
from grader.cli import main
from grader.course.rubric import load_rubric
from grader.grading import origin
from grader.grading.runner import grade
from grader.report.model import FAIL, PASS, SKIPPED
from grader.report.terminal import show_report
from kit_grading import KIT, options, results


@pytest.fixture(scope="module")
def reference():
    return grade(KIT / "solution", options(seed="5eed"))


@pytest.fixture(scope="module")
def skeleton():
    return grade(KIT / "assignment", options())


def test_the_reference_scores_full_points(reference):
    missed = {r.check: r.message for r in reference.results if r.status != PASS}
    assert missed == {}
    assert reference.score == reference.points == 25
    assert reference.complete


def test_the_untouched_skeleton_scores_nothing_in_its_own_tasks(skeleton):
    assert skeleton.score == 0
    assert [r.check for r in skeleton.results if r.task and r.status == PASS] == []


def test_every_task_of_the_skeleton_fails_with_its_own_id(skeleton):
    said = {r.task: r.message for r in skeleton.results if not r.check.startswith("mnist")}
    del said[""]
    assert set(said) == set(load_rubric("default").tasks)
    for task, message in said.items():
        assert message == f"task {task} is not written yet"


def test_what_is_given_passes_in_the_skeleton(skeleton):
    found = results(skeleton)
    assert found["build"].status == PASS
    assert found["softmax_cross_entropy"].status == PASS


def test_part_2_alone_leaves_part_1_solved(tmp_path):
    from grader.release.holes import release

    release(KIT / "solution", tmp_path / "classic", {2})
    checks = [r.name for r in load_rubric("default").rows if r.task.startswith("1.")]
    report = grade(tmp_path / "classic", options(only=tuple(checks)))
    assert report.score == 10


def test_a_solution_in_the_classic_manner_gets_the_published_points():
    report = grade(KIT / "tests/submissions/classic", options("classic"))
    assert {r.check: r.message for r in report.results if r.status != PASS} == {}
    assert report.score == report.points == 15
    assert not any("--profile" in note for note in report.notes)


def test_classic_work_that_writes_nothing_on_numpy_keeps_its_points_for_the_gpu(tmp_path):
    """As the catalogue's numpy_writes_nothing, whose loss is that of the kit's own recipe."""
    shutil.copytree(KIT / "tests/submissions/classic", tmp_path / "work")
    python = tmp_path / "work/python/dlsys/autodiff.py"
    text = python.read_text()
    assert text.count("output_val[:] = ") == 13
    python.write_text(text.replace("output_val[:] = ", "output_val = "))
    only = ("mnist_numpy", "mnist_gpu")
    found = results(grade(tmp_path / "work", options("classic", only=only)))
    assert found["mnist_numpy"].status == FAIL
    assert "on numpy: the output was never written" in found["mnist_numpy"].message
    assert found["mnist_gpu"].message == ""
    assert (found["mnist_gpu"].status, found["mnist_gpu"].score) == (PASS, 2)


def test_classic_work_graded_by_another_rubric_is_told_of_its_own(reference, skeleton):
    """Whoever began with the skeleton, or hands in hardly anything, hears nothing of it."""
    report = grade(KIT / "tests/submissions/classic", options(only=("infer_shape",)))
    assert "--profile classic" in report.notes[-1]
    for other in (reference, skeleton):
        assert not any("--profile" in note for note in other.notes)
    nothing = {"python/dlsys/autodiff.py": b"x = 1\n", "src/gpu_op.cu": b""}
    assert origin.note(nothing, KIT / "assignment", "default") == ""


def test_a_submission_that_deletes_its_files_ends_no_other_check(tmp_path):
    shutil.copytree(KIT / "assignment/python", tmp_path / "python")
    target = tmp_path / "python/dlsys/autodiff.py"
    remove = (
        "import os\nos.remove(os.path.join(os.path.dirname(__file__), '../../src/gpu_op.cu'))\n"
    )
    target.write_text(remove + target.read_text())
    report = grade(tmp_path, options(only=("reverse_walk", "relu")))
    assert {r.status for r in report.results if r.task} == {FAIL}


def test_a_check_that_needs_a_failed_one_is_skipped_not_failed(tmp_path):
    broken = next(m for m in catalogue.mutants() if m.name == "does_not_compile")
    report = grade(catalogue.write(broken, tmp_path), options(only=("relu",)))
    assert results(report)["relu"].status == SKIPPED
    assert "needs build" in results(report)["relu"].message
    assert "src/gpu_op.cu:" in results(report)["build"].message


def test_a_build_that_misses_what_a_changed_header_had_names_the_header(tmp_path):
    for name in ("python/dlsys/autodiff.py", "src/gpu_op.cu", "src/cuda_check.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KIT / "solution" / name, tmp_path / name)
    top = "static const int kThreads = 256;"
    edit(tmp_path / "src/gpu_op.cu", (top, "static const int kThreads = OWN_THREADS;"))
    (tmp_path / "src/cuda_check.h").write_text("#define OWN_THREADS 256\n")
    build = results(grade(tmp_path, options(only=("build",))))["build"]
    assert build.status == FAIL
    assert "OWN_THREADS" in "\n".join([build.message, *build.details])
    assert "the course's own src/cuda_check.h replaces the one that was handed in" in build.hint


def test_other_files_of_a_submission_are_ignored_and_named(tmp_path):
    shutil.copytree(
        KIT / "solution", tmp_path / "work", ignore=shutil.ignore_patterns("build", "__pycache__")
    )
    (tmp_path / "work/python/dlsys/ndarray.py").write_text("raise SystemExit('never run')\n")
    (tmp_path / "work/cheat.py").write_text("1/0\n")
    report = grade(tmp_path / "work", options(only=("topological_order",)))
    assert report.score == 1
    said = " ".join(report.notes)
    assert "ndarray.py" in said
    assert "cheat.py" in said


def test_one_missing_file_leaves_the_tasks_of_the_other(tmp_path):
    target = tmp_path / "python/dlsys"
    target.mkdir(parents=True)
    shutil.copy(KIT / "solution/python/dlsys/autodiff.py", target)
    report = grade(tmp_path, options(only=("topological_order", "relu")))
    found = results(report)
    assert found["topological_order"].status == PASS
    assert found["relu"].message == "task 2.11 is not written yet"
    assert any("gpu_op.cu" in note for note in report.notes)


def test_a_submission_that_cannot_be_read_gets_one_clear_line(tmp_path):
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("../../src/gpu_op.cu")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"bad"))
    report = grade(archive, options())
    assert ".." in report.problem
    assert report.score == 0
    assert {r.status for r in report.results} == {SKIPPED}


def test_the_report_is_written_after_every_check_and_is_whole(tmp_path):
    path = tmp_path / "out" / "report.json"
    seen = []

    def look(result):
        seen.append([r["check"] for r in json.loads(path.read_text())["results"]])

    only = ("topological_order", "gradient_matmul")
    grade(KIT / "solution", options(only=only, output=path), look)
    assert seen == [["topological_order"], ["topological_order", "gradient_matmul"]]
    final = json.loads(path.read_text())
    assert final["schema"] == "dlsys-grader-report/1"
    assert final["complete"] is True
    assert final["score"] == final["points"] == 3
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]


def test_the_terminal_report_shows_parts_total_and_seed(reference):
    text = io.StringIO()
    show_report(Console(file=text, width=100), reference)
    assert "part 1, autodiff" in text.getvalue()
    assert "25 / 25" in text.getvalue()
    assert "seed 5eed" in text.getvalue()
    assert "\x1b[" not in text.getvalue()


def test_exit_codes_tell_how_it_went(capsys):
    assert main.main(["grade", "solution", "--profile", "no-such"]) == main.USAGE
    assert "no rubric 'no-such'; hint:" in capsys.readouterr().err
    assert main.main(["grade", "solution", "--only", "no-such"]) == main.USAGE
    assert main.main(["grade", str(KIT / "no-such-folder")]) == main.USAGE
    assert "no-such-folder does not exist" in capsys.readouterr().err
    assert main.main(["grade", str(KIT / "LICENSE"), "--device", "emulated"]) == main.FELL_SHORT
    assert main.main(["grade", "solution", "--data", "no-such"]) == main.USAGE
    assert main.main(["grade", "solution", "--json", str(KIT / "LICENSE" / "r.json")]) == main.USAGE
    assert main.main(["release", "--part", "7"]) == main.USAGE
    assert "no part 7; hint: one of 1, 2" in capsys.readouterr().err


def test_the_command_line_grades_and_returns_success(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "grader", "grade", "solution", "--device", "emulated",
         "--only", "reverse_walk", "--json", str(tmp_path / "r.json")],
        cwd=KIT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reverse_walk" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["score"] == 4


def test_students_tests_run_under_nose_and_pytest(tmp_path):
    """In a tree of their own, as students have it."""
    work = tmp_path / "work"
    copy_files(whole_tree(KIT / "solution"), work)
    build_as(work)
    subprocess.run(
        ["make", "DEVICE=emulated", f"PYTHON={sys.executable}"], cwd=work, check=True,
        capture_output=True, timeout=600,
    )  # fmt: skip
    nose = subprocess.run(
        [str(Path(sys.executable).with_name("nosetests")), "tests/test_executor.py"],
        cwd=work, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert nose.returncode == 0, nose.stderr
    plain = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/test_autodiff.py"],
        cwd=work, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert plain.returncode == 0, plain.stdout


def test_the_readme_shows_a_real_report():
    shown = readme_report.BLOCK.search(readme_report.README.read_text())
    assert shown, "the README has no block for the report"
    real = readme_report.report_text().rpartition("isolation")[0]
    assert real in shown[0], "hint: run .venv/bin/python tools/readme_report.py"


def test_the_example_reports_of_the_handout_are_what_the_grader_says():
    hint = "hint: run .venv/bin/python tools/example_reports.py"
    assert example_reports.page() == example_reports.PAGE.read_text(), hint
