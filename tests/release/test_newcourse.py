"""The kit is not tied to its own assignment: a small second one, made by `grader init`.

It gets a second op by hand, as its README says, is released, and grades its solution, its
skeleton and wrong kernels.
"""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from grader.building import tree
from grader.cli import main
from grader.course.course import load_course, rubric_of
from grader.grading.prebuilt import prebuilt
from grader.grading.runner import Options, grade
from grader.grading.self_check import self_check, with_skeleton
from grader.release.new_course import NewCourseError, _before_ops, _with_declaration, start_course

KIT = Path(__file__).resolve().parents[2]
STEP = re.compile(
    r"^(At the end of|Above the line|Below the line) (?:`([^`\n]+)` of )?`(\S+)`:"
    r"\n\n```\w+\n(.*?)```$",
    re.M | re.S,
)


def follow_the_readme(folder):
    """Does by hand what the README says of a second op; returns the files that were changed."""
    changed = []
    for where, line, name, text in STEP.findall((folder / "README.md").read_text()):
        path = folder / name
        content = path.read_text()
        if where == "At the end of":
            content += text
        else:
            (place,) = (row for row in content.split("\n") if row == line)
            both = text + place if where == "Above the line" else f"{place}\n{text.rstrip()}"
            content = content.replace(place, both)
        path.write_text(content)
        changed.append(name)
    return changed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The assignment with its second op, released."""
    made = tmp_path_factory.mktemp("course") / "mine"
    assert main.main(["init", str(made), "--name", "Two kernels"]) == main.OK
    assert len(follow_the_readme(made)) == 8
    assert main.main(["release", "--course", str(made / "course.toml")]) == main.OK
    return made


@pytest.fixture(scope="module")
def course(folder):
    return load_course(folder / "course.toml")


def graded(course, work, **more):
    options = Options(rubric_of(course), "emulated", seed="5eed", course=course, **more)
    return grade(work, options)


def wrong(folder, tmp_path, find, replace):
    """A submission: the solution's file with one thing wrong."""
    text = (folder / "solution/src/gpu_op.cu").read_text()
    assert find in text
    (tmp_path / "gpu_op.cu").write_text(text.replace(find, replace))
    return tmp_path


def test_the_solution_gets_all_points_and_the_skeleton_none(folder, course, capsys):
    words = ["--device", "emulated", "--course", str(folder / "course.toml")]
    assert main.main(["grade", str(folder / "solution"), *words]) == main.OK
    assert "5 / 5\nTwo kernels, profile rubric" in capsys.readouterr().out
    found = graded(course, folder / "assignment")
    assert (found.score, found.points, found.problem) == (0, 5, "")
    messages = {result.check: result.message for result in found.results if result.points}
    assert messages == {
        "scale": "task 1.1 is not written yet",
        "subtract": "task 1.2 is not written yet",
    }


def test_a_wrong_kernel_fails_with_what_differs_and_the_checked_build_explains_it(
    folder, course, tmp_path
):
    work = wrong(folder, tmp_path, "if (i < n) out[i] = factor", "out[i] = factor")
    found = {result.check: result for result in graded(course, work).results}
    assert (found["scale"].status, found["subtract"].status) == ("fail", "pass")
    assert "gpu_op.scale(" in found["scale"].message
    finding = found["scale"].findings[0]
    assert "gpu_op.cu" in finding["file"] and "outside of a buffer" in finding["title"]


def test_another_wrong_kernel_gets_a_hint(folder, course, tmp_path):
    work = wrong(
        folder,
        tmp_path,
        "blocks_for(n, kThreads), kThreads>>>(n, data_of(a)",
        "n / kThreads + 1, kThreads>>>(n - 1, data_of(a)",
    )
    found = {result.check: result for result in graded(course, work, only=("subtract",)).results}
    assert found["subtract"].status == "fail"
    assert "elements differ" in found["subtract"].message
    assert "nan" in found["subtract"].message and found["subtract"].hint


def test_it_is_packed_after_a_self_check_that_really_grades_both(folder, course, capsys):
    archive = folder.parent / "mine.tar.gz"
    words = ["release", "--course", str(folder / "course.toml"), "--archive", str(archive)]
    assert main.main(words) == main.OK
    assert "the skeleton scores 0, the solution has all 5 points" in capsys.readouterr().out
    with tarfile.open(archive) as packed:
        assert "assignment/src/gpu_op.cu" in packed.getnames()
    told = []
    solved = with_skeleton(course, course.solution)
    found = self_check(solved, rubric_of(course), {1}, None, lambda what, result: told.append(what))
    assert found == [
        "the skeleton gets 2 points in the check scale (task 1.1)",
        "the skeleton gets 3 points in the check subtract (task 1.2)",
    ]
    assert told == ["skeleton"] * 3 + ["solution"] * 3


def test_its_handout_has_its_tasks_and_what_is_checked(folder, tmp_path):
    arguments = ["--course", str(folder / "course.toml"), "--html", "--output", str(tmp_path)]
    assert main.main(["handout", *arguments]) == main.OK
    text = (tmp_path / "handout.html").read_text()
    assert "<title>Two kernels</title>" in text and "{{" not in text
    assert "You write 2 kernels" in text and "<td>subtract</td>" in text
    assert "subtract takes one array from another of its shape" in text


def test_the_tests_that_students_run_pass_on_the_solution(course, tmp_path):
    work = tmp_path / "work"
    shutil.copytree(prebuilt("emulated", source=course.skeleton), work)
    shutil.copy(course.solution / "src/gpu_op.cu", work / "src/gpu_op.cu")
    words = [f"PYTHON={sys.executable}", "DEVICE=emulated"]
    done = subprocess.run(["make", "test", *words], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


def test_nothing_of_the_kits_own_exercise_is_in_it(tmp_path):
    start_course(tmp_path / "mine", "Mine", tree.REFERENCE)
    files = [path for path in (tmp_path / "mine").rglob("*") if path.is_file()]
    assert not [path.name for path in files if path.name in ("autodiff.py", "data.py")]
    launchers = {
        name
        for path in files
        if "emulator" not in path.parts
        for name in re.findall(r"DLGpu\w+", path.read_text())
    }
    assert launchers == {"DLGpuScale", "DLGpuSubtract"}  # the second in the README alone
    markers = [path.name for path in files if "BEGIN SOLUTION" in path.read_text()]
    assert sorted(markers) == ["README.md", "gpu_op.cu"]


def test_the_runtime_is_the_kits_as_it_is_now(tmp_path):
    start_course(tmp_path / "mine", "Mine", tree.REFERENCE)
    for name in ("solution/Makefile", "solution/submit.py", "emulator/src/arena.cc"):
        copied = tmp_path / "mine" / name
        assert copied.read_bytes() == (tree.KIT / name).read_bytes()


def test_a_name_in_quotes_stays_a_name(tmp_path):
    start_course(tmp_path / "mine", ' GPU "1" \\ früh ', tree.REFERENCE)
    course = load_course(tmp_path / "mine/course.toml")
    assert course.name == course.title == rubric_of(course).title == 'GPU "1" \\ früh'


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "\x1b[2J"])
def test_a_name_that_is_no_line_is_refused(tmp_path, name, capsys):
    assert main.main(["init", str(tmp_path / "mine"), "--name", name]) == main.USAGE
    assert "is not a line of text" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("folder", [".", "../here"])
def test_the_working_folder_will_do(tmp_path, folder, monkeypatch, capsys):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main.main(["init", folder, "--name", "Here"]) == main.OK
    start_course(tmp_path / "there", "Here", tree.REFERENCE)
    here, there = (sorted(tree.tree_files(tmp_path / each)) for each in ("here", "there"))
    assert here == there
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "there"]
    assert f"{len(here)} files in" in capsys.readouterr().out
    assert Path("course.toml").is_file()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    start_course(tmp_path / "mine", "Mine", tree.REFERENCE)  # an empty one is fine
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NewCourseError, match="is not empty; hint: name another folder"):
        start_course(tmp_path / "mine", "Mine", tree.REFERENCE)
    with pytest.raises(NewCourseError, match="is not a folder"):
        start_course(tmp_path / "mine/README.md", "Mine", tree.REFERENCE)
    with pytest.raises(NewCourseError, match="hint: use a whole copy"):
        start_course(tmp_path / "other", "Mine", tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_runtime_of_another_shape_is_refused_and_not_half_copied():
    with pytest.raises(NewCourseError, match="does not have the form that this version expects"):
        _with_declaration("int DLGpuRelu(void);\n} /* DLSYS_EXTERN_C */\n")
    assert _before_ops("import a\n\n\ndef _b():\n    pass\n\n\ndef c():\n    pass\n").endswith(
        "pass"
    )
