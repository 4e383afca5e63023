"""A grader that is killed at any moment: what it has written is whole, and the next run goes on."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import ERROR, PASS
from grader.report.stored import read_report

KIT = Path(__file__).resolve().parents[2]
CHECKS = ("topological_order", "gradient_matmul", "gradient_add_multiply", "reverse_walk", "relu")
KILLS = 20


def command(output):
    words = [sys.executable, "-m", "grader", "grade", str(KIT / "solution"), "--json", str(output)]
    words += ["--device", "emulated"]
    return [*words, *(word for check in CHECKS for word in ("--only", check))]


def options(output, **more):
    return Options(load_rubric("default"), "emulated", only=CHECKS, output=output, **more)


def interrupt(output, seconds):
    """Starts a run and kills it after some time, or returns its exit code if it is faster."""
    process = subprocess.Popen(
        command(output), cwd=KIT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def test_results_survive_twenty_kills_and_the_last_run_has_them_all(tmp_path):
    output, delays = tmp_path / "report.json", random.Random(4)
    seed = ""
    for _ in range(KILLS):
        ended = interrupt(output, delays.uniform(0.3, 6.0))
        if not output.exists():
            continue
        report = read_report(output)  # it is whole
        assert seed in ("", report.seed)
        found = {result.check: result.status for result in report.results}
        assert set(found.values()) == {PASS}
        seed = report.seed
        assert report.complete or ended is None
        if report.complete:  # even if it was killed on its way out
            output.unlink()
            seed = ""
    report = grade(KIT / "solution", options(output))
    assert {result.check: result.status for result in report.results} == dict.fromkeys(
        ("build", *sorted(CHECKS, key=[row.name for row in load_rubric("default").rows].index)),
        PASS,
    )
    assert read_report(output).complete


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """The report of a run that ended after its third check."""
    output = tmp_path_factory.mktemp("interrupted") / "report.json"

    class Killed(Exception):
        pass

    seen = []

    def stop(result):
        seen.append(result)
        if len(seen) == 3:
            raise Killed

    with pytest.raises(Killed):
        grade(KIT / "solution", options(output), stop)
    return output.read_text()


def rerun(tmp_path, text, **more):
    output = tmp_path / "report.json"
    output.write_text(text)
    ran = []
    report = grade(
        more.pop("source", KIT / "solution"),
        options(output, on_check=lambda context: ran.append(context.check), **more),
    )
    return report, ran


def test_finished_checks_are_not_run_again(tmp_path, interrupted):
    report, ran = rerun(tmp_path, interrupted)
    done = {result["check"] for result in json.loads(interrupted)["results"]}
    assert set(ran) == set(CHECKS) - done
    assert report.score == report.points
    assert any("come from an interrupted run" in note for note in report.notes)


def test_an_error_of_the_grader_is_tried_again(tmp_path, interrupted):
    text = interrupted.replace('"status": "pass"', f'"status": "{ERROR}"')
    _, ran = rerun(tmp_path, text)
    assert set(ran) == set(CHECKS)


@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ('"rubric": "', '"rubric": "0'),
        ('"sha256": "', '"sha256": "0'),
        ('"schema": "', '"schema": "0'),
    ],
)
def test_results_of_something_else_are_not_taken_over(tmp_path, interrupted, find, replace):
    assert find in interrupted
    _, ran = rerun(tmp_path, interrupted.replace(find, replace))
    assert set(ran) == set(CHECKS)


def test_another_seed_is_another_run(tmp_path, interrupted):
    report, ran = rerun(tmp_path, interrupted, seed="abcd")
    assert (report.seed, set(ran)) == ("abcd", set(CHECKS))


def test_a_file_that_is_no_report_is_replaced(tmp_path):
    report, ran = rerun(tmp_path, "{")
    assert (report.complete, set(ran)) == (True, set(CHECKS))
