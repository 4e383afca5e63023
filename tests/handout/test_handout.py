"""The handout: all of its commands and examples, the READMEs' too, and what must not be in it."""

import doctest
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from grader.building.tree import copy_files, tree_files, whole_tree
from grader.checks.registry import CHECKS
from grader.classroom.lateness import apply, late_policy
from grader.course.course import kit_course
from grader.course.rubric import NEVER, load_rubric
from grader.handout.chapters import render_markdown
from grader.handout.documents import GUIDE, chapter_files
from grader.release import holes
from grader.sandbox.isolation import LEVELS
from handout_blocks import KIT, blocks, check, environment, parses, problem_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RUBRIC = load_rubric("default")
CHAPTERS = kit_course().handout


def chapters(folder, rubric=RUBRIC):
    """The blocks of each chapter of a folder."""
    for path, _ in chapter_files(folder):
        yield path.name, blocks(path.name, render_markdown(path, rubric))


STUDENTS = dict(chapters(CHAPTERS))
INSTRUCTORS = dict(chapters(GUIDE))
#: Of parts 3 and 4.
LATER = {
    f"{each}/{name}": found
    for each in ("steps", "nets")
    for name, found in chapters(KIT / "handout" / each, load_rubric(each))
}
READMES = {
    "README.md": blocks("README.md", (KIT / "README.md").read_text()),
    "solution/README.md": blocks("solution/README.md", (KIT / "solution/README.md").read_text()),
}


def all_of(*sources, language, mark=None):
    """Blocks of a kind."""
    for source in sources:
        for found in source.values():
            yield from (b for b in found if b.language == language and mark in (None, b.mark))


def shell(text, folder, **more):
    """Runs a block; the first command that fails ends it."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=environment(**more),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout[-3000:]}"
    return done.stdout


def copy(source, target):
    """A source tree, without what was built."""
    copy_files(whole_tree(source), target)
    return target


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A student's folder in which all is written: the solution's, with the files of the text.

    It is built as the text says first of all.
    """
    folder = copy(KIT / "solution", tmp_path_factory.mktemp("student"))
    for block in all_of(STUDENTS, language="python"):
        if block.mark:
            (folder / block.mark.removeprefix("file=")).write_text(block.text)
    shell("make", folder)
    return folder


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """A copy of the kit to run an instructor's commands in."""
    folder = tmp_path_factory.mktemp("kit")
    for name in ("solution", "assignment", "emulator", "grader", "handout", "tests"):
        copy_files({path: KIT / name / path for path in tree_files(KIT / name)}, folder / name)
    for path in KIT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy2(path, folder / path.name)
    scripts = folder / ".venv" / "bin"
    scripts.mkdir(parents=True)
    grader = scripts / "grader"
    grader.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m grader "$@"\n')
    grader.chmod(0o755)
    return folder


# --- every block --------------------------------------------------------------------------------


def test_every_block_says_what_it_is():
    every = (STUDENTS, INSTRUCTORS, LATER, READMES)
    found = [b for s in every for bs in s.values() for b in bs]
    fenced = [b for b in found if not b.place.startswith("README.md")]  # it shows a report
    assert len(fenced) >= 40
    assert [f"{b.place}: {problem_of(b)}" for b in fenced if problem_of(b)] == []


def test_a_block_without_a_mark_is_a_problem():
    (block,) = blocks("x.md", "```sh\nmake\n```\n")
    assert "hint: run or check" in problem_of(block)
    (block,) = blocks("x.md", "```bash run\nmake\n```\n")
    assert "no kind of block" in problem_of(block)


@pytest.mark.parametrize(
    "command",
    ["grader grade work --no-such-option", "make no-such-target", "nosetests tests/test_no.py",
     "wget http://example.org", "python3 -m pip install 'dlsys-kit[nothing]'",
     "srun --gres=gpu:1 bash -c 'make no-such-target'", "make && grader no-such-command"],
)  # fmt: skip
def test_a_command_that_would_not_be_understood_is_found(command, capsys):
    with pytest.raises(AssertionError):
        check(command, KIT / "solution")


def test_python_that_is_shown_parses():
    for block in all_of(STUDENTS, INSTRUCTORS, LATER, language="python"):
        parses(block.text)


# --- commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(STUDENTS))
def test_students_commands_run(name, tree):
    for block in STUDENTS[name]:
        if (block.language, block.mark) == ("sh", "run"):
            shell(block.text, tree)


@pytest.mark.parametrize("name", sorted(INSTRUCTORS))
def test_instructors_commands_run(name, kit):
    for block in INSTRUCTORS[name]:
        if (block.language, block.mark) == ("sh", "run"):
            shell(block.text, kit, PYTHONPATH=str(kit))


def test_students_other_commands_would_be_understood(tree):
    for block in all_of(STUDENTS, LATER, language="sh", mark="check"):
        for command in block.commands:
            check(command, tree)


def test_the_commands_of_the_students_readme_would_be_understood(tree):
    for block in READMES["solution/README.md"]:
        for command in block.commands:
            check(command, tree)


def test_instructors_other_commands_would_be_understood():
    for block in [*all_of(INSTRUCTORS, language="sh", mark="check"), *READMES["README.md"]]:
        for command in block.commands if block.language == "sh" else ():
            check(command, KIT)


def test_the_commands_that_the_students_readme_calls_by_name_work(tree):
    """Those that no chapter runs."""
    shell("nosetests -v tests/test_gpu_op.py\nDLSYS_OFFLINE=1 python3 tests/mnist_dlsys.py -c gpu "
          "-e 1 -m logreg", tree)  # fmt: skip


# --- examples -----------------------------------------------------------------------------------

_DOCTEST = """
import doctest, sys
text = sys.stdin.read()
test = doctest.DocTestParser().get_doctest(text, {}, "chapter", "chapter", 0)
runner = doctest.DocTestRunner(verbose=False)
runner.run(test)
sys.exit(1 if runner.failures else 0)
"""


def run_examples(text, folder):
    """Runs examples as they are typed, in a student's folder; raises AssertionError."""
    assert doctest.DocTestParser().get_examples(text)
    done = subprocess.run(
        [sys.executable, "-c", _DOCTEST], input=text, capture_output=True, text=True, timeout=120,
        cwd=folder, env={k: v for k, v in environment().items() if k != "PYTHONPATH"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", sorted({**STUDENTS, **LATER}))
def test_the_examples_give_what_they_say(name):
    found = {**LATER, **STUDENTS}[name]
    text = "\n".join(b.text for b in found if b.language == "pycon")
    if text:
        run_examples(text, KIT / "solution")


def written_so_far(folder, task):
    """A student's package in which the tasks of part 1 up to 1.`task` are done, and no others."""
    copy(KIT / "solution/python", folder / "python")
    path = folder / "python/dlsys/autodiff.py"
    text = path.read_text()
    for done in range(1, task + 1):
        hole = rf"^ *# BEGIN SOLUTION 1\.{done}\n(.*?)^ *# END SOLUTION\n"
        text = re.sub(hole, r"\1", text, flags=re.S | re.M)
    path.write_text(holes.strip(text, path.name))
    return folder


@pytest.mark.parametrize("task", range(7))
def test_the_examples_of_part_1_need_only_the_tasks_so_far(task, tmp_path):
    """Sections before the heading of task 1.1 need none, those after it task 1.1, and so on."""
    text = render_markdown(CHAPTERS / "20-part-1-autodiff.md.j2", RUBRIC)
    so_far = text.partition(f"\n## Task 1.{task + 1}:")[0]
    examples = [b.text for b in blocks("part 1", so_far) if b.language == "pycon"]
    run_examples("\n".join(examples), written_so_far(tmp_path, task))


def test_the_small_set_is_learned_as_the_chapter_says(tmp_path):
    text = render_markdown(CHAPTERS / "30-part-2-gpu-executor.md.j2", RUBRIC)
    rows = re.findall(r"^\| (logreg|mlp) \| (0\.\d\d) \| (0\.\d\d) \| (0\.\d\d) \|$", text, re.M)
    assert len(rows) == 2
    said = shell("python3 tests/mnist_dlsys.py -c numpy -e 10", KIT / "solution",
                 HOME=str(tmp_path), DLSYS_DATA="")  # fmt: skip
    for (name, *expected), trained in zip(rows, said.split("===")[1:], strict=True):
        assert trained.split()[0] == name
        accuracy = [float(number) for number in re.findall(r"accuracy=(\S+)", trained)]
        got = [accuracy[epoch - 1] for epoch in (1, 3, 10)]
        assert got == pytest.approx([float(number) for number in expected], abs=0.02)


def test_the_experiment_prints_relu(tree):
    assert shell("python3 my_experiment.py", tree).strip() == "[0. 0. 0. 0. 1. 2. 3.]"


@pytest.mark.parametrize(
    "block", [b for b in all_of(STUDENTS, language="cuda") if b.mark], ids=lambda block: block.mark
)
def test_the_kernels_of_the_text_compile(block, tmp_path):
    """What belongs into gpu_op.cu stands behind the first lines of that file."""
    if not any(map(shutil.which, ("g++", "clang++"))):
        pytest.skip("no C++ compiler here")
    emucc = KIT / "emulator/emucc.py"
    source = tmp_path / block.mark.removeprefix("file=")
    given = (KIT / "solution/src/gpu_op.cu").read_text().partition("\n// ----")[0]
    given = given.replace('"./', f'"{KIT}/solution/src/')
    head = given if source.name == "gpu_op.cu" else "#include <cuda_runtime.h>"
    source.write_text(f"{head}\n{block.text}")
    command = [sys.executable, str(emucc), "-c", str(source), "-o", str(tmp_path / "made.o")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- what must not be in it ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "rubric"),
    [
        (CHAPTERS, RUBRIC),
        (GUIDE, RUBRIC),
        *((KIT / "handout" / name, load_rubric(name)) for name in ("steps", "nets")),
    ],
    ids=["chapters", "guide", "steps", "nets"],
)
def test_no_line_of_a_solution_is_in_the_handout(folder, rubric):
    secret = holes.solution_lines(KIT / "solution")
    assert len(secret) > 150
    for path, _ in chapter_files(folder):
        for line in render_markdown(path, rubric).splitlines():
            assert " ".join(line.replace(">>>", "").split()) not in secret, f"{path.name}: {line}"
            for inline in line.split("`")[1::2]:
                assert " ".join(inline.split()) not in secret, f"{path.name}: {inline}"


def test_the_example_of_lateness_is_computed():
    """The table of the guide, by the policy of the block above it."""
    ((toml,), rows) = (
        [b.text for b in all_of(INSTRUCTORS, language="toml") if "[late]" in b.text],
        re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \| (\d+)(?:, .*?)? \|$",
                   render_markdown(GUIDE / "10-a-term.md.j2", RUBRIC), re.M),
    )  # fmt: skip
    raw = tomllib.loads(toml)
    policy = late_policy(raw["late"])
    assert policy.due_for("s1234", raw["due"]) > raw["due"]
    assert len(rows) == 5
    for words, days, spent, score in rows:
        number, unit = re.match(r"(\d+) (minutes|hours|days)", words).groups()
        submitted = raw["due"] + timedelta(**{unit: int(number)})
        left = 0 if "no late days left" in words else policy.late_days
        late = apply(policy, raw["due"], submitted, 20, 25, left)
        assert (late.days, late.spent, late.score) == (int(days), int(spent), float(score)), words


def test_points_and_tasks_are_those_of_the_rubric():
    text = render_markdown(CHAPTERS / "50-tasks-and-points.md.j2", RUBRIC)
    for task, words in RUBRIC.tasks.items():
        assert f"| {task} {words} | `" in text
    for part in RUBRIC.parts:
        points = sum(r.points for r in RUBRIC.rows if r.task.startswith(f"{part}."))
        assert f"## Part {part}, {RUBRIC.parts[part]}: {points:g} points" in text
    for row in RUBRIC.rows:
        assert row.name in text


def test_of_a_hidden_check_students_see_the_points_alone():
    rows = tuple(
        replace(row, visible=NEVER) if row.name == "softmax" else row for row in RUBRIC.rows
    )
    rubric = replace(RUBRIC, rows=rows)
    text = "".join(render_markdown(path, rubric) for path, _ in chapter_files(CHAPTERS))
    sentence = " ".join(CHECKS["softmax"].__doc__.split())
    assert sentence not in text
    assert "`softmax`:" not in text
    assert re.search(r"hidden, now or for good: 1, worth\s+1 points", text)
    assert sentence in render_markdown(CHAPTERS / "50-tasks-and-points.md.j2", RUBRIC)
    assert "hidden, now" not in render_markdown(CHAPTERS / "50-tasks-and-points.md.j2", RUBRIC)


def test_the_report_that_is_explained_is_one_of_the_graders():
    """That of the README, which is made by tools/readme_report.py."""
    made = " ".join((KIT / "README.md").read_text().split())
    shown = [b.text for b in STUDENTS["40-how-to-read-a-report.md.j2"] if b.language == "text"]
    assert len(shown) == 2
    for text in shown:
        assert " ".join(text.split()) in made


def test_the_guide_names_every_level_of_isolation():
    text = render_markdown(GUIDE / "20-trust.md.j2", RUBRIC)
    assert re.findall(r"^\| (\w+) \|", text.split("| level |")[1], re.M)[: len(LEVELS)] == [*LEVELS]


def test_the_chapters_name_every_part_of_the_rubric():
    assert {part for _, part in chapter_files(CHAPTERS) if part} == set(RUBRIC.parts)


@pytest.mark.parametrize(
    ("folder", "others"),
    [(CHAPTERS, {}), (GUIDE, {**load_rubric("steps").parts, **load_rubric("nets").parts})],
)
def test_no_chapter_names_a_part_that_is_not_there(folder, others):
    for path, _ in chapter_files(folder):
        named = re.findall(r"\b[Pp]arts? (\d+)\b", render_markdown(path, RUBRIC))
        assert set(map(int, named)) <= {*RUBRIC.parts, *others}, path.name
