"""A recorded result is made again, and its last call is written as a script that shows it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import catalogue
from grader.cli import main
from grader.course.rubric import load_rubric
from grader.grading.replay import ReplayError, replay
from grader.grading.runner import Options, grade
from grader.report.model import FAIL, PASS

pytestmark = pytest.mark.usefixtures("same_builds")

KIT = Path(__file__).resolve().parents[2]


def recorded(name, check, folder):
    """Grades a submission of the catalogue; (its report, the JSON)."""
    mutant = next(m for m in catalogue.mutants() if m.name == name)
    source = catalogue.write(mutant, folder / "work")
    options = Options(
        rubric=load_rubric("default"), device="emulated", only=(check,), output=folder / "r.json"
    )
    return grade(source, options), folder / "r.json"


def run_script(made, folder):
    """What the script prints, run as a student runs it: without the grader."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(made.script), str(made.tree)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "check", "shows"),
    [
        ("replay_by_pointer", "relu", "output differs in"),
        ("writes_after_output", "relu", "zones differs in 1 of"),
        ("relu_writes_its_input", "relu", "a differs in"),
        ("array_set_short", "array_set", "output differs in 1 of 1025 elements\n  [1024] got nan"),
        ("multiply_gradient_swapped", "gradient_add_multiply", "a differs in"),
        ("executors_share_results", "memory_plan", "result_0 differs in"),
    ],
)
def test_a_result_is_made_again_and_its_script_shows_it(name, check, shows, tmp_path):
    report, path = recorded(name, check, tmp_path)
    before = next(r for r in report.results if r.check == check)
    assert before.status == FAIL
    made = replay(path, check, tmp_path / "out")
    assert made.result.message == before.message
    assert made.is_same
    assert made.notes == ()
    assert made.script == tmp_path / "out" / f"{check}.py"
    assert shows in run_script(made, tmp_path)


def test_the_script_of_a_right_submission_shows_no_difference(tmp_path):
    path = tmp_path / "r.json"
    options = Options(load_rubric("default"), "emulated", only=("softmax",), output=path)
    grade(KIT / "solution", options)
    made = replay(path, "softmax", tmp_path / "out", submission=KIT / "solution")
    assert made.result.status == PASS
    said = run_script(made, tmp_path)
    assert "output differs in 0 of 2145 elements" in said
    assert "zones differs in 0 of" in said


def test_the_command_line_says_what_was_and_what_is(tmp_path, capsys):
    _, path = recorded("relu_leaky", "relu", tmp_path)
    out = ["--output", str(tmp_path / "out")]
    assert main.main(["replay", str(path), "relu", *out]) == main.OK
    said = capsys.readouterr().out
    assert "recorded: fail gpu_op.relu((1025,); out (1025,)): " in said
    assert "\nthe same\n" in said
    assert f"python {tmp_path}/out/relu.py {tmp_path}/out/tree" in said


def test_paths_may_be_relative_and_the_working_folder_another(tmp_path, monkeypatch, capsys):
    mutant = next(m for m in catalogue.mutants() if m.name == "relu_leaky")
    catalogue.write(mutant, tmp_path / "work")
    monkeypatch.chdir(tmp_path)
    words = ["grade", "work", "--device", "emulated", "--only", "relu"]
    assert main.main([*words, "--json", "out/r.json", "--keep", "kept"]) == main.FELL_SHORT
    report = json.loads(Path("out/r.json").read_text())
    assert [row["status"] for row in report["results"]] == [PASS, FAIL]
    assert Path("kept/build/lib/libc_runtime_api.so").is_file()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main.main(["replay", "../out/r.json", "relu"]) == main.OK
    said = capsys.readouterr().out
    assert "\nthe same\n" in said
    assert "python replay/relu.py replay/tree" in said
    assert Path("replay/tree/build/lib/libc_runtime_api.so").is_file()
    done = subprocess.run([sys.executable, "replay/relu.py", "replay/tree"], timeout=600,
                          capture_output=True, text=True)  # fmt: skip
    assert "output differs in" in done.stdout, done.stderr


def test_another_submission_is_said_to_be_another(tmp_path, capsys):
    _, path = recorded("relu_leaky", "relu", tmp_path)
    arguments = ["replay", str(path), "relu", "--output", str(tmp_path / "out")]
    assert main.main([*arguments, "--submission", str(KIT / "solution")]) == main.FELL_SHORT
    said = capsys.readouterr().out
    assert "note: the submission is not the one of the report" in said
    assert "now:      pass\nnot the same\n" in said


def test_what_can_not_be_replayed_is_said_in_words(tmp_path, capsys):
    path = tmp_path / "r.json"
    with pytest.raises(ReplayError, match="can't be read"):
        replay(path, "relu", tmp_path)
    path.write_text("[]")
    with pytest.raises(ReplayError, match="is not a report"):
        replay(path, "relu", tmp_path)
    options = Options(load_rubric("default"), "emulated", only=("topological_order",), output=path)
    report = grade(KIT / "solution", options)
    assert report.score == 1
    with pytest.raises(ReplayError, match="no check 'relu'; hint: one of topological_order"):
        replay(path, "relu", tmp_path)
    raw = json.loads(path.read_text())
    path.write_text(json.dumps({**raw, "submission": str(tmp_path / "gone")}))
    assert main.main(["replay", str(path), "topological_order"]) == main.USAGE
    assert "gone does not exist; hint: --submission PATH" in capsys.readouterr().err
