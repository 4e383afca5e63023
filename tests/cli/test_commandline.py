"""The command line says what there is, what is wrong, and how to go on."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sample_report
from grader.batch.batch import Running
from grader.bench import built
from grader.cli import main
from grader.grading import prebuilt
from grader.grading.prebuilt import GraderError
from grader.report.html import to_html

KIT = Path(__file__).resolve().parents[2]


def commands():
    parser = main._parser()
    action = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return action.choices


@pytest.mark.parametrize("name", sorted(commands()))
def test_the_help_of_every_command_has_examples_of_it(name):
    examples = commands()[name].format_help().partition("\nexamples:\n")[2]
    assert f"  grader {name}" in examples or f"&& grader {name}" in examples


def test_grader_alone_lists_the_commands(capsys):
    assert main.main([]) == main.USAGE
    said = capsys.readouterr().out
    assert all(f"\n    {name}" in said for name in commands())


@pytest.mark.parametrize("seed", ["zz", "0x5eed", "5e ed"])
def test_a_seed_that_is_not_hexadecimal_is_refused(seed, capsys):
    with pytest.raises(SystemExit) as caught:
        main.main(["grade", str(KIT / "solution"), "--seed", seed])
    assert caught.value.code == main.USAGE
    assert f"{seed!r} is not hexadecimal; hint: 0 to 9 and a to f" in capsys.readouterr().err


def test_a_fresh_release_is_said_to_be_fresh(capsys):
    assert main.main(["release", "--check"]) == main.OK
    assert f"{KIT / 'assignment'} is up to date with " in capsys.readouterr().out


def test_nothing_is_measured_without_a_build(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(built, "SOLUTION", tmp_path)
    assert main.main(["bench", "--output", str(tmp_path / "out")]) == main.USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"grader: {tmp_path}/build/lib/libc_runtime_api.so does not exist")
    assert said.endswith(f"hint: make -C {tmp_path}\n")
    assert not (tmp_path / "out").exists()


def test_a_home_that_can_not_be_written_to_is_named(monkeypatch, tmp_path):
    (tmp_path / "home").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    with pytest.raises(GraderError, match=r"can't be kept in .*/home/.*hint: set XDG_CACHE_HOME"):
        prebuilt.prebuilt("emulated")


def test_the_folder_of_built_trees_is_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert prebuilt.build.cache_folder() == tmp_path / "cache" / "dlsys-kit" / "pristine"


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--json", "r.json"], "finished results are in r.json: the same command continues there"),
     ([], "nothing was kept; hint: with --json FILE the same command continues where it stopped")],
)  # fmt: skip
def test_an_interrupted_grading_says_how_to_go_on(more, said, monkeypatch, tmp_path, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grader.cli.grade.grade", interrupt)
    assert main.main(["grade", str(KIT / "solution"), *more]) == main.GRADER_FAILED
    assert capsys.readouterr().err == f"grader: interrupted; {said}\n"


def test_an_interrupted_class_says_how_to_go_on(monkeypatch, tmp_path, capsys):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Running, "plan", interrupt)
    (tmp_path / "subs" / "s1").mkdir(parents=True)
    words = ["batch", str(tmp_path / "subs"), "--output", str(tmp_path / "results")]
    assert main.main(words) == main.GRADER_FAILED
    assert f"are in {tmp_path}/results: the same command continues" in capsys.readouterr().err


def test_the_folder_that_one_is_in_can_be_graded_and_has_its_name(tmp_path, monkeypatch):
    work = tmp_path / "my-work"
    for name in ("python/dlsys/autodiff.py", "src/gpu_op.cu"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes((KIT / "solution" / name).read_bytes())
    monkeypatch.chdir(work)
    words = ["grade", ".", "--only", "topological_order", "--student"]
    assert main.main([*words, "--html", "../page.html"]) == main.OK
    assert "<title>1 / 1: my-work</title>" in (tmp_path / "page.html").read_text()


def test_nobody_is_told_of_a_file_that_students_lack():
    report = sample_report.report()
    report.results[2].findings = [{"title": "Race", "text": "Race", "tool": "x"}] * 30
    page = to_html(report)
    assert "10 more findings like these are left out" in page
    assert "JSON" not in page


# --- the students' training ---------------------------------------------------------------------


def train(tmp_path, *words):
    """What the script says, on scikit-learn's 1,797 digits."""
    environment = {**os.environ, "DLSYS_OFFLINE": "1", "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("DLSYS_DATA", None)
    return subprocess.run(
        [sys.executable, str(KIT / "solution/tests/mnist_dlsys.py"), "-m", "logreg", *words],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["-b", "5000"],
            "there are only 300 images to validate with; hint: -b 300",
        ),
        (["-b", "0"], "argument -b/--batch_size: 0 is less than 1"),
        (["-e", "0"], "argument -e/--num_epoch: 0 is less than 1"),
        (["-d", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_a_training_that_can_not_be_is_refused_in_a_sentence(words, said, tmp_path):
    done = train(tmp_path, *words)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]


def test_images_that_fill_no_batch_are_told(tmp_path):
    done = train(tmp_path, "-b", "250", "-e", "1")
    assert done.returncode == 0, done.stderr
    assert "images fill no batch of 250: they are left out\n" in done.stdout
    assert "validation set accuracy=" in done.stdout


@pytest.mark.parametrize("source", ["assignment", "solution"])
def test_given_code_compiles_without_a_warning(source, tmp_path):
    words = ["-ccbin", "g++", "-Wall", "-Wfatal-errors", "-Isrc", "-c", "src/gpu_op.cu"]
    done = subprocess.run(
        [sys.executable, KIT / "emulator/emucc.py", *words, "-o", str(tmp_path / "a.o")],
        cwd=KIT / source, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
