"""Gradescope: results.json by a strict reader, and the autograder's zip laid out and run."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import sample_report
from grader.building.tree import cache_folder
from grader.cli import main
from grader.grading import prebuilt
from grader.grading.prebuilt import GraderError
from grader.release import holes
from grader.report.audience import student_view
from grader.report.gradescope import failed, to_gradescope
from grader.report.gradescope_zip import Autograder, build_zip
from grader.sandbox import isolation
from grader.sandbox.isolation import UNCONTAINED
from sample_report import result

KIT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DLSYS_DATA") or KIT.parent / "shared" / "data" / "mnist")

FORMATS = {"text", "html", "simple_format", "md", "ansi"}
VISIBILITIES = {"visible", "hidden", "after_due_date", "after_published"}
TOP = {
    "score": (int, float), "execution_time": (int, float), "output": str, "output_format": FORMATS,
    "test_output_format": FORMATS, "test_name_format": FORMATS, "visibility": VISIBILITIES,
    "stdout_visibility": VISIBILITIES, "extra_data": dict, "tests": list,
}  # fmt: skip
TEST = {
    "score": (int, float), "max_score": (int, float), "status": {"passed", "failed"}, "name": str,
    "name_format": FORMATS, "number": str, "output": str, "output_format": FORMATS, "tags": list,
    "visibility": VISIBILITIES, "extra_data": dict,
}  # fmt: skip


def check_types(values, known):
    for name, value in values.items():
        kind = known[name]
        assert value in kind if isinstance(kind, set) else isinstance(value, kind), (name, value)
        assert not isinstance(value, bool), name


def read_results(text):
    """A strict reader of results.json: no unknown key, no wrong type.

    A file without any score is one that the platform shows as a failed autograder, so it must
    say that it is.
    """
    results = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    check_types(results, TOP)
    for test in results.get("tests", []):
        check_types(test, TEST)
        assert all(isinstance(tag, str) for tag in test["tags"])
        assert 0 <= test.get("score", 0) <= test.get("max_score", 0)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", test["name"] + test["output"])
    if "score" not in results:
        assert results["extra_data"]["grader_failed"] is True
        assert not any("score" in test for test in results.get("tests", []))
        assert "no score" in results["output"]
    return results


def honest():
    """All results of the sample in which the grader did not fail itself."""
    return [each for each in sample_report.results() if each.status != "error"]


# --- results.json -------------------------------------------------------------------------------


def test_results_json_has_every_check_with_its_visibility():
    results = read_results(json.dumps(to_gradescope(sample_report.report(honest()))))
    tests = {test["extra_data"]["check"]: test for test in results["tests"]}
    assert results["score"] == sum(test.get("score", 0) for test in tests.values()) == 4
    assert tests["relu"]["visibility"] == "visible"
    assert tests["memory_plan"]["visibility"] == "after_due_date"
    assert tests["softmax_cross_entropy"]["visibility"] == "hidden"
    assert tests["build"]["status"] == "passed" and "score" not in tests["build"]
    assert tests["relu"] | {"score": 0.0, "max_score": 1.0, "status": "failed"} == tests["relu"]
    assert tests["relu"]["number"] == "2.11"
    assert "thread 3 writes 4 bytes" in tests["relu"]["output"]
    assert tests["softmax"]["output"].startswith("not run: needs relu")
    assert results["extra_data"]["seed"] == "5ec4e7"


def test_what_every_student_reads_above_the_tests_tells_of_public_checks_alone():
    output = to_gradescope(sample_report.report(honest()))["output"]
    assert "3 of 5 public checks passed; 1 hidden one is graded after the due date" in output
    assert "Public checks: 4 of 6 points." in output
    assert "5ec4e7" not in output and "memory_plan" not in output


def test_the_graders_own_failure_is_no_zero():
    results = read_results(json.dumps(to_gradescope(sample_report.report())))
    assert "score" not in results
    assert "not your mistake, so there is no score" in results["output"]
    test = next(t for t in results["tests"] if t["extra_data"]["check"] == "array_set")
    assert "status" not in test and "secret" not in test["output"]
    assert results["extra_data"]["errors"] == {"array_set": "OSError: the secret disk is full"}


def test_a_grading_that_was_ended_gives_no_score_and_says_what_may_be_wrong():
    results = read_results(
        json.dumps(to_gradescope(sample_report.report(honest(), complete=False)))
    )
    assert "did not finish" in results["output"]
    assert "not your mistake" not in results["output"]


def test_an_unreadable_submission_scores_zero_and_hears_why():
    report = sample_report.report([result("relu", "skipped")], problem="no file with holes")
    results = read_results(json.dumps(to_gradescope(report)))
    assert results["score"] == 0 and "no file with holes" in results["output"]


def test_the_command_writes_results_json_when_the_grader_fails(tmp_path, monkeypatch, capsys):
    for error in (GraderError("no compiler"), ZeroDivisionError("oops")):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr("grader.cli.grade.grade", fail)
        path = tmp_path / "results.json"
        assert main.main(["grade", str(tmp_path), "--gradescope", str(path)]) == 3
        results = read_results(path.read_text())
        assert str(error) in results["extra_data"]["reason"]
        assert str(error) not in results["output"]
    assert "no compiler" in capsys.readouterr().err


# --- the zip ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("zip") / "autograder.zip"
    build_zip(path, Autograder(data=DATA if DATA.is_dir() else None))
    return path


@pytest.fixture
def root(archive, tmp_path):
    """The folders that the platform documents, with the zip unpacked and the solution handed in."""
    (tmp_path / "autograder" / "submission").mkdir(parents=True)
    folder = tmp_path / "autograder"
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            Path(file.extract(entry, folder / "source")).chmod(entry.external_attr >> 16 & 0o777)
    for name in ("python/dlsys/autodiff.py", "src/gpu_op.cu"):
        shutil.copy(KIT / "solution" / name, folder / "submission")
    (folder / "results").mkdir()
    (folder / "results" / "results.json").write_text('{"score": 1000}')
    metadata = {"id": 1, "created_at": "2026-01-02T03:04:05.678901-08:00", "users": [],
                "submission_method": "upload", "previous_submissions": []}  # fmt: skip
    (folder / "submission_metadata.json").write_text(json.dumps(metadata))
    return folder


def run(root, python=sys.executable):
    """Runs run_autograder there; (results.json as the strict reader has it, what was printed)."""
    environment = {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": str(python)}
    environment["HOME"] = os.environ.get("HOME", "/root")
    environment["XDG_CACHE_HOME"] = str(cache_folder().parent.parent)  # compiled once, not thrice
    done = subprocess.run(
        [str(root / "source" / "run_autograder")],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert [path.name for path in (root / "results").iterdir()] == ["results.json"], done.stdout
    return read_results((root / "results" / "results.json").read_text()), done.stdout


def fake_python(root, code):
    """A program that behaves like Python, but for grading runs `code` (sh) instead."""
    path = root / "python"
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = -c ]; then\n{code}\nfi\nexec "{sys.executable}" "$@"\n'
    )
    path.chmod(0o755)
    return path


def test_the_zip_holds_the_kit_and_no_line_of_a_solution(archive, tmp_path):
    with zipfile.ZipFile(archive) as file:
        names = file.namelist()
        modes = {entry.filename: entry.external_attr >> 16 for entry in file.infolist()}
        file.extractall(tmp_path)
    assert {"setup.sh", "run_autograder", "pyproject.toml", "grader/cli/main.py"} <= set(names)
    assert not [name for name in names if "solution" in name or "__pycache__" in name]
    assert stat.S_IMODE(modes["run_autograder"]) == stat.S_IMODE(modes["setup.sh"]) == 0o755
    assert holes.leaks(KIT / "solution", tmp_path / "assignment", {1, 2}) == []


def test_the_same_kit_makes_the_same_zip(tmp_path):
    for name in ("a.zip", "b.zip"):
        build_zip(tmp_path / name, Autograder())
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_both_scripts_are_bash_and_know_what_was_asked(tmp_path, monkeypatch):
    own = tmp_path / "own rubric.toml"
    shutil.copy(KIT / "grader/course/rubrics/classic.toml", own)
    shutil.copy(KIT / "grader/course/rubrics/default.toml", tmp_path)
    build_zip(tmp_path / "a.zip", Autograder(profile=str(own), minutes=20))
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        file.extractall(tmp_path / "out")
    for name in ("setup.sh", "run_autograder"):
        subprocess.run(["bash", "-n", str(tmp_path / "out" / name)], check=True)
    text = (tmp_path / "out" / "run_autograder").read_text()
    assert "timeout --kill-after=10 1170 " in text
    assert "--profile 'rubric/own rubric.toml'" in text and "--data" not in text
    command = re.search("python\" -c '(.*)'", (tmp_path / "out" / "setup.sh").read_text())[1]
    built = []
    monkeypatch.setattr(prebuilt, "prebuilt", lambda *how, **more: built.append((how, more)))
    monkeypatch.setattr(prebuilt, "far_library", lambda tree: None)
    exec(command, {})
    source = {"source": KIT / "assignment"}
    assert built == [(("emulated",), source), (("emulated",), {"checked": True, **source})]
    assert "python3-venv" in (tmp_path / "out" / "setup.sh").read_text()
    assert "dlsys.data" in (tmp_path / "out" / "setup.sh").read_text()
    assert (tmp_path / "out" / "rubric" / "default.toml").is_file()


def test_the_autograder_gives_the_solution_full_points(root):
    results, printed = run(root)
    assert results.get("score") == 25, printed
    assert {test["status"] for test in results["tests"]} == {"passed"}
    assert results["output"].startswith("All checks passed.")
    assert stat.S_IMODE((root / "submission_metadata.json").stat().st_mode) & 0o077 == 0


def test_an_autograder_without_python_says_so_and_gives_no_score(root):
    results, printed = run(root, "/nowhere/python")
    assert "score" not in results and "tests" not in results
    assert (
        results["extra_data"]["reason"] == "the grader ended by exit code 127 and left no results"
    )
    assert "exit code 127" in printed


def test_an_autograder_whose_kit_is_broken_says_so_and_gives_no_score(root):
    (root / "source" / "assignment" / "Makefile").write_text("all:\n\tfalse\n")
    results, printed = run(root)
    assert "score" not in results
    assert "the kit does not build here" in results["extra_data"]["reason"]
    assert "the kit does not build here" in printed


def test_an_autograder_whose_grader_does_not_start_says_so_and_gives_no_score(root):
    (root / "source" / "grader" / "cli" / "main.py").write_text(
        "raise ImportError('half a file')\n"
    )
    results, printed = run(root)
    assert "score" not in results
    assert "exit code 1 and left no results" in results["extra_data"]["reason"]
    assert "half a file" in printed


def test_an_autograder_that_runs_out_of_time_keeps_what_it_had(root):
    sample_report.report(honest(), complete=False).write(root / "part.json")
    code = 'for a; do case "$a" in */report.json) cp "$(dirname "$0")/part.json" "$a";; esac; done'
    results, printed = run(root, fake_python(root, f"{code}; exit 124"))
    assert "score" not in results and len(results["tests"]) == len(honest())
    assert "did not finish" in results["output"]
    assert "exit code 124" in printed


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("level", ["auto", "process"])
def test_root_grades_and_the_submission_runs_as_another_user(root, level):
    """The platform starts the script as root, and its containers may offer the weakest level."""
    if level != "auto" and (reason := isolation.why_not(level)):
        pytest.skip(reason)
    with open(root / "submission" / "autodiff.py", "a") as file:
        file.write("\nimport os\nraise SystemError(f'users {os.getresuid()} {os.getresgid()}')\n")
    asked = f"--isolation {level} --only topological_order"
    results, printed = run(root, fake_python(root, f'exec "{sys.executable}" "$@" {asked}'))
    said = "\n".join(test["output"] for test in results["tests"])
    found = re.search(r"users \(([\d, ]+)\) \(([\d, ]+)\)", said)
    assert found, printed
    assert "0" not in ", ".join(found.groups()).split(", ")


def test_no_results_of_an_earlier_run_and_none_of_a_submission_stay(root):
    code = 'echo \'{"score": 1000}\' >"$AUTOGRADER_ROOT/results/results.json"; exit 137'
    results, _ = run(root, fake_python(root, code))
    assert (
        results["extra_data"]
        == failed("the grader ended by exit code 137 and left no results")["extra_data"]
    )


def test_weak_containment_is_told_to_instructors_and_not_to_students():
    report = sample_report.report()
    report.notes = [UNCONTAINED, "a note for all"]
    results = to_gradescope(report)
    assert results["extra_data"]["weak_containment"] == UNCONTAINED
    assert "a note for all" in results["output"] and "containment" not in results["output"]
    assert student_view(report).notes == ["a note for all"]
    report.notes = []
    assert "weak_containment" not in to_gradescope(report)["extra_data"]
