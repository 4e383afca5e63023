"""A course's file: what it says, what is refused, and that nothing of another course is seen."""

import dataclasses
import json
import shutil
import sys
import zipfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from edits import edit
from grader.building import tree as build
from grader.checks.registry import CHECKS, checks_of
from grader.classroom.lateness import late_policy
from grader.classroom.store import read_classbook
from grader.cli import main
from grader.course.course import ALL, CourseError, kit_course, load_course, rubric_of
from grader.course.rubric import RubricError, load_rubric
from grader.grading.runner import Options, grade
from grader.release.front_matter import PLACE, cover_of, moment
from grader.release.holes import ReleaseError, release
from grader.report.gradescope_zip import Autograder, AutograderError, build_zip
from grader.sandbox import isolation
from grader.sandbox.isolation import View
from grader.sandbox.process import Limits, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KIT = Path(__file__).resolve().parents[2]

COURSE = """
[course]
name = "Systems | learning"
term = "Spring"
contact = "the forum"

[assignment]
title = "Scaling"
rubric = "rubric.toml"
solution = "solution"
skeleton = "skeleton"
parts = [1]
checks = ["checks/own.py"]

[due]
1 = 2026-10-05T23:59:00+02:00
all = "2026-12-01T12:00:00Z"

[late]
percent = 10
"""
RUBRIC = """
title = "Scaling"
description = "One task."
files = ["python/dlsys/autodiff.py"]
sizes = "thorough"
[parts]
1 = "scaling"
[tasks]
"1.1" = "scale"
[[check]]
name = "answers"
task = "1.1"
points = 2.5
"""
OWN = '''"""Own checks."""
from grader.checks import Failure


def answers(ctx):
    """autodiff holds an answer"""
    with ctx.session() as session:
        got = session.remote.fetch(session.autodiff().answer())
        if got != 42:
            raise Failure(f"answer() is {got!r}, 42 was expected")


CHECKS = {"answers": answers}
'''


@pytest.fixture
def path(tmp_path):
    """course.toml of a course whose student code is Python alone, on the kit's runtime."""
    folder = tmp_path / "courses" / "own"
    (folder / "checks").mkdir(parents=True)
    (folder / "course.toml").write_text(COURSE)
    (folder / "rubric.toml").write_text(RUBRIC)
    (folder / "checks/own.py").write_text(OWN)
    return folder / "course.toml"


def fill(course):
    """A solution and its skeleton, on the runtime of the kit."""
    later = [
        Path(f).name for name in ("steps", "nets") for f in load_rubric(name).files
    ]  # with holes
    ignore = shutil.ignore_patterns("build", "__pycache__", ".*", *later)
    shutil.copytree(KIT / "solution", course.solution, ignore=ignore)
    shutil.copytree(KIT / "emulator", course.folder / "emulator", ignore=ignore)
    body = "    # BEGIN SOLUTION 1.1\n    return 40 + 2\n    # END SOLUTION\n"
    (course.solution / "python/dlsys/autodiff.py").write_text(f"def answer():\n{body}")
    (course.solution / "src/gpu_op.cu").write_text('#include "./cuda_check.h"\n')
    (course.solution / "README.md").write_text(f"# Scaling\n\n{PLACE}\n")
    rubric = rubric_of(course)
    release(course.solution, course.skeleton, {1}, set(rubric.tasks), cover_of(course, rubric))
    return rubric


def test_a_course_is_read_with_paths_from_its_folder_and_dates_with_offsets(path):
    course = load_course(path)
    assert (course.name, course.term, course.contact) == (
        "Systems | learning",
        "Spring",
        "the forum",
    )
    assert course.solution == path.parent / "solution"
    assert course.checks == (path.parent / "checks/own.py",)
    summer = timezone(timedelta(hours=2))
    assert course.due_of(1) == datetime(2026, 10, 5, 23, 59, tzinfo=summer)
    assert course.due_of(2) == course.due[ALL] == datetime(2026, 12, 1, 12, tzinfo=timezone.utc)
    assert course.late == {"percent": 10}
    assert course.share_checks is False


def test_without_a_list_of_parts_all_of_the_rubric_are_released():
    rubric = load_rubric("default")
    course = dataclasses.replace(kit_course(), parts=())
    assert course.released(rubric) == (1, 2)
    assert dataclasses.replace(course, parts=(2,)).released(rubric) == (2,)


def test_the_kit_is_a_course_and_its_paths_are_those_of_the_builds():
    course = kit_course()
    assert course.is_kit and course.secrets == ()
    assert (course.skeleton, course.solution) == (build.PRISTINE, build.REFERENCE)
    assert rubric_of(course) == load_rubric("default")
    assert rubric_of(course, "classic") == load_rubric("classic")
    assert checks_of(course) == CHECKS
    assert course.title == load_rubric("default").title


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[course]", "[curse]", "the file has the unknown key 'curse'; hint: one of "),
        ('term = "Spring"', 'tern = "x"', r"\[course\] has the unknown key 'tern'"),
        ('term = "Spring"', "term = 3", "term is 3, expected a string"),
        ('title = "Scaling"', "", "title is missing"),
        ('title = "Scaling"', 'title = " "', "title is ' ', expected a non-empty string"),
        ("parts = [1]", "parts = 1", "parts is 1, expected a list"),
        ("parts = [1]", "parts = [true]", "parts holds True, expected the number of a part"),
        ('checks = ["checks/own.py"]', 'checks = ["checks"]', "the name of a Python file"),
        (
            "1 = 2026",
            "one = 2026",
            r"\[due\] has 'one', expected the number of a part, or all",
        ),
        ("59:00+02:00", "59:00", "has no time and offset; hint: 2026-10-26T23:59:00"),
        ("2026-10-05T23:59:00+02:00", "2026-10-05", "has no time and offset"),
        ("2026-12-01T12:00:00Z", "soon", r"\[due\] all: Invalid isoformat"),
        ("[late]\npercent = 10", "", r"^$"),
        ("[assignment]", "[assignment", "Expected ']'"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_place(path, old, new, said):
    edit(path, (old, new))
    if said == r"^$":
        assert load_course(path).late == {}
        return
    with pytest.raises(CourseError, match=said) as caught:
        load_course(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path, capsys):
    with pytest.raises(CourseError, match=r"can't be read: No such file.*; hint: grader init"):
        load_course(tmp_path / "course.toml")
    (tmp_path / "course.toml").write_bytes(b"\xff\xfe")
    assert main.main(["release", "--course", str(tmp_path / "course.toml")]) == main.USAGE
    assert "grader: " in capsys.readouterr().err


def test_a_part_that_the_rubric_lacks_is_refused(path):
    course = load_course(edit(path, ("parts = [1]", "parts = [3]")))
    with pytest.raises(RubricError, match=r"releases part 3, which .* lacks; hint: one of 1"):
        rubric_of(course)


def test_own_checks_change_the_digest_of_the_rubric(path):
    course = load_course(path)
    before = rubric_of(course).digest
    assert rubric_of(course).digest == before
    edit(course.checks[0], ("got != 42", "got != 43"))
    assert rubric_of(course).digest != before


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\n1 / 0\n", r"own\.py:2: ZeroDivisionError"),
        ("def f(:\n", r"own\.py:1: SyntaxError"),
        ("", "has no table of checks; hint: CHECKS = "),
        ("CHECKS = {'answers': 3}", "expected a function declared by @check"),
        ("CHECKS = {'answers': lambda ctx: None}", "has no docstring; hint: its first line"),
    ],
)
def test_a_file_of_checks_that_cannot_be_used_is_told(path, code, said):
    course = load_course(path)
    course.checks[0].write_text(code)
    with pytest.raises(CourseError, match=said):
        checks_of(course)


def test_two_files_with_the_same_check_are_refused(path):
    course = load_course(path)
    shutil.copy(course.checks[0], path.parent / "again.py")
    twice = dataclasses.replace(course, checks=(*course.checks, path.parent / "again.py"))
    with pytest.raises(CourseError, match=r"again\.py: another file .* has a check 'answers'"):
        checks_of(twice)


def test_a_rubric_that_names_a_check_that_is_nowhere_is_refused(path):
    course = dataclasses.replace(load_course(path), checks=())
    with pytest.raises(RubricError, match="the check 'answers', which is not defined; hint"):
        grade(path.parent, Options(rubric_of(course), course=course))


def test_another_course_is_graded_by_its_own_checks_and_replayed(path, capsys, tmp_path):
    course = load_course(path)
    rubric = fill(course)
    report, wrong = tmp_path / "r.json", tmp_path / "work" / "autodiff.py"
    words = ["--device", "emulated", "--course", str(path)]
    assert main.main(["grade", str(course.solution), *words]) == main.OK
    assert "2.5 / 2.5" in capsys.readouterr().out
    found = grade(course.skeleton, Options(rubric, "emulated", course=course))
    assert [(r.score, r.message) for r in found.results] == [(0, "task 1.1 is not written yet")]
    wrong.parent.mkdir()
    wrong.write_text("def answer():\n    return 41\n")
    argv = ["grade", str(wrong.parent), *words, "--json", str(report)]
    assert main.main(argv) == main.FELL_SHORT
    assert "autodiff holds an answer" in capsys.readouterr().out
    assert json.loads(report.read_text())["results"][0]["message"].startswith("answer() is 41")
    argv = ["replay", str(report), "answers", "--output", str(tmp_path / "replay")]
    assert main.main([*argv, "--course", str(path)]) == main.OK
    assert "the same" in capsys.readouterr().out


# --- what a skeleton says -----------------------------------------------------------------------


def test_the_readme_of_a_skeleton_has_names_dates_and_points(path):
    course = load_course(path)
    fill(course)
    assert (course.skeleton / "README.md").read_text() == (
        "# Scaling\n\nSystems | learning, Spring. Questions: the forum\n\n"
        "| part | points | due |\n|---|---|---|\n"
        "| 1 scaling | 2.5 | 2026-10-05 23:59, UTC+02:00 |\n"
    )


def test_the_manifest_of_a_skeleton_has_points_dates_and_a_release(path):
    course = load_course(path)
    fill(course)
    manifest = json.loads((course.skeleton / ".release.json").read_text())
    assert manifest["points"] == {"1.1": 2.5} and manifest["names"] == {"1.1": "scale"}
    assert manifest["due"] == {"1": "2026-10-05T23:59:00+02:00"}
    assert manifest["files"] == ["python/dlsys/autodiff.py"]
    before = manifest["release"]
    (course.solution / "new.txt").write_text("x")
    rubric = rubric_of(course)
    release(course.solution, course.skeleton, {1}, None, cover_of(course, rubric))
    assert json.loads((course.skeleton / ".release.json").read_text())["release"] != before


def test_a_readme_without_the_place_for_dates_is_refused(path):
    course = load_course(path)
    rubric = fill(course)
    (course.solution / "README.md").write_text("# Scaling\n")
    with pytest.raises(ReleaseError, match=r"README\.md: has no line <!-- course -->"):
        release(course.solution, course.skeleton, {1}, None, cover_of(course, rubric))


def test_without_dates_there_is_no_column_for_them():
    front = cover_of(kit_course(), load_rubric("default"), {2}).front
    assert front.endswith("| part | points |\n|---|---|\n| 2 gpu executor | 15 |")
    assert moment(None) == ""


# --- isolation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [lv for lv in isolation.LEVELS if not isolation.why_not(lv)])
def test_solution_checks_and_rubric_of_another_course_are_not_seen(
    level, path, tmp_path, monkeypatch
):
    if level == "process":
        pytest.skip("it hides nothing")
    course = load_course(path)
    course.solution.mkdir()
    (course.solution / "secret").write_text("42")
    names = [course.solution / "secret", course.checks[0], course.rubric, course.path]
    code = f"import os; print([p for p in {list(map(str, names))} if os.path.exists(p)])"
    tree = tmp_path / "tree"
    tree.mkdir()
    if level == "bubblewrap":  # as if it lay in a folder of the tool chain
        monkeypatch.setenv(isolation.EXTRA_PATHS, str(path.parent.parent))
        isolation.interpreter_paths.cache_clear()
    try:
        view = View(level, hidden=course.secrets)
        done = run([sys.executable, "-c", code], tree, limits=Limits(wall=60), view=view)
    finally:
        monkeypatch.undo()
        isolation.interpreter_paths.cache_clear()
    assert (done.rc, done.output) == (0, "[]\n")


# --- Gradescope ---------------------------------------------------------------------------------


def test_the_autograder_of_a_course_holds_its_skeleton_and_checks_and_no_solution(path, tmp_path):
    course = load_course(path)
    with pytest.raises(AutograderError, match="skeleton does not exist; hint: grader release"):
        build_zip(tmp_path / "a.zip", Autograder(course=course))
    fill(course)
    names = build_zip(tmp_path / "a.zip", Autograder(course=course))
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        script, setup = file.read("run_autograder").decode(), file.read("setup.sh").decode()
        file.extractall(tmp_path / "out")
    assert {"course/course.toml", "course/rubric.toml", "course/checks/own.py"} <= set(names)
    assert not [name for name in names if "solution" in name]
    assert "--course course/course.toml --device emulated" in script
    assert 'prepare("emulated", "course/course.toml")' in setup and "dlsys.data" not in setup
    there = load_course(tmp_path / "out/course/course.toml")
    found = grade(course.solution, Options(rubric_of(there), "emulated", course=there))
    assert found.score == found.points == 2.5


def test_a_course_whose_files_lie_elsewhere_cannot_be_packed(path, tmp_path):
    course = dataclasses.replace(load_course(path), checks=(tmp_path / "own.py",))
    fill(load_course(path))
    shutil.copy(path.parent / "checks/own.py", tmp_path)
    with pytest.raises(AutograderError, match=r"lies outside of .*; hint: move it there"):
        build_zip(tmp_path / "a.zip", Autograder(course=course))


# --- a class ------------------------------------------------------------------------------------


def test_a_class_of_another_course_is_graded_by_its_checks(path, tmp_path, capsys):
    course = load_course(path)
    fill(course)
    for student, source in (("right", course.solution), ("begun", course.skeleton)):
        (tmp_path / "work" / student).mkdir(parents=True)
        shutil.copy(source / "python/dlsys/autodiff.py", tmp_path / "work" / student)
    argv = ["batch", str(tmp_path / "work"), "-o", str(tmp_path / "results"), "--no-cache"]
    main.main([*argv, "--jobs", "1", "--device", "emulated", "--course", str(path)])
    standings = {
        each.entry.student: each for each in read_classbook(tmp_path / "results").standings()
    }
    assert {name: each.score for name, each in standings.items()} == {"right": 2.5, "begun": 0.0}
    assert standings["begun"].outcomes["answers"].message == "task 1.1 is not written yet"


def test_the_late_policy_of_the_file_is_one(path):
    edit(path, ("percent = 10", "percent_a_day = 10\ncutoff_days = 7"))
    policy = late_policy(load_course(path).late)
    assert (policy.percent_a_day, policy.cutoff_days) == (10, 7)
    for line in (KIT / "course.toml").read_text().partition("[late]\n")[2].splitlines():
        late_policy(tomllib.loads(line.removeprefix("# ")))  # each example
