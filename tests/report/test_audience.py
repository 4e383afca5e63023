"""What a student sees of a report: nothing of the machine that graded."""

import sample_report
from grader.building.tree import KIT, cache_folder
from grader.report.audience import student_view
from grader.report.model import FAIL, PASS, Report, Result


def report_with(tmp_path, *details, **facts):
    result = Result("relu", "2.11", 1, 0, FAIL, "relu is right", details=list(details), facts=facts)
    trained = Result("mnist_gpu", "2.2", 2, 2, PASS, "learns", facts={"recipe": facts})
    return Report(
        str(tmp_path / "work"), "", "default", "", "emulated", "process", "", "", [],
        results=[result, trained],
    )  # fmt: skip


def test_paths_of_the_grader_are_not_in_a_students_view(tmp_path):
    lines = [
        f"{cache_folder()}/pristine/0123/emulator/src/launch.cc:12: error: no",
        f"{KIT}/grader/checks/kernels.py:3",
        f"In file included from {tmp_path}/abc/src/gpu_op.cu:5",
        "1/2 of it, and src/gpu_op.cu:31",
    ]
    seen = student_view(report_with(tmp_path, *lines, source=f"{tmp_path}/secret/mnist"))
    assert seen.results[0].details == [
        "src/launch.cc:12: error: no",
        "kernels.py:3",
        "In file included from src/gpu_op.cu:5",
        "1/2 of it, and src/gpu_op.cu:31",
    ]
    assert seen.results[1].facts["recipe"]["source"] == "mnist"


def test_an_instructors_report_keeps_them(tmp_path):
    report = report_with(tmp_path, f"{KIT}/grader", source="digits")
    student_view(report)
    assert report.results[0].details == [f"{KIT}/grader"]


def test_of_folders_in_one_another_the_innermost_is_left_out(tmp_path):
    report = report_with(tmp_path, f"{tmp_path}/my class/smith.tar.gz: no", source="digits")
    report.submission = f"{tmp_path}/my class/smith.tar.gz"
    assert student_view(report).results[0].details == ["smith.tar.gz: no"]


def test_times_of_one_name_add_up(monkeypatch):
    report = sample_report.report([])
    clock = iter([1.0, 3.0, 10.0, 14.5])
    monkeypatch.setattr("grader.report.model.time.monotonic", lambda: next(clock))
    for _ in range(2):
        with report.timed("build"):
            pass
    assert report.timing == {"build": 6.5}
