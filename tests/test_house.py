"""The order of the house: imports flow one way, generated files are fresh, facts agree."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import house_sizes
from grader.checks.registry import CHECKS
from grader.course.course import kit_course, known_tasks, load_course, rubric_of, stripped_parts
from grader.course.rubric import load_rubric, profiles
from grader.release import holes
from grader.release.front_matter import cover_of
from slow_tests import FEW, REST, SlowTests, listed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KIT = Path(__file__).resolve().parent.parent


#: Each module may import those before it. Equals stand in one entry.
def imports(path, package):
    """Modules of `package` that a file imports, by their first name below it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = f"{package}.{node.module}" if node.module else package
            names = [base] if node.module else [f"{package}.{a.name}" for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{a.name}" for a in node.names] + [node.module]
        else:
            continue
        for name in names:
            if name.startswith(package + "."):
                found.add(name[len(package) + 1 :].partition(".")[0])
    return found


def rooms():
    """The packages of the grader: name -> folder."""
    found = sorted((KIT / "grader").rglob("__init__.py"))
    return {
        p.parent.relative_to(KIT).as_posix(): p.parent for p in found if p.parent.name != "grader"
    }


@pytest.mark.parametrize("name", sorted(rooms()))
def test_a_room_says_what_it_imports_and_where_to_start(name):
    said = " ".join(
        ast.get_docstring(ast.parse((rooms()[name] / "__init__.py").read_text())).split()
    )
    own = name.split("/")[1]
    used = sorted(
        {room for path in rooms()[name].rglob("*.py") for room in imports(path, "grader")}
        & {other.split("/")[1] for other in rooms()} - {own}
    )
    words = f"{', '.join(used[:-1])} and {used[-1]}" if len(used) > 1 else "".join(used)
    assert f"It imports {words or 'nothing of the grader'}." in said
    start = re.search(r"Start reading in (\w+\.py)\.$", said)
    assert start and (rooms()[name] / start[1]).is_file()


def test_contributing_names_every_room():
    """With the first sentence of its docstring."""
    text = (KIT / "CONTRIBUTING.md").read_text()
    for name, folder in rooms().items():
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
        assert f"| `{name}/` | {said.splitlines()[0]} |" in text, name
    for path in (KIT / "emulator").glob("*/__init__.py"):
        said = ast.get_docstring(ast.parse(path.read_text()))
        assert f"| `emulator/{path.parent.name}/` | {said.splitlines()[0]} |" in text, path
    tested = {path.parent.name for path in (KIT / "tests").glob("*/test_*.py")}
    assert tested <= {name.split("/")[1] for name in rooms()} | {"dlsys", "emulator"}


def test_the_worker_imports_nothing_of_the_grader():
    assert imports(KIT / "grader/student/worker.py", "grader") == set()


@pytest.mark.parametrize("part", sorted(house_sizes.PARTS.keys() - {"tests"}))
def test_every_public_name_has_a_docstring(part):
    assert house_sizes.measured(part).silent == []


def test_a_class_of_the_grader_has_a_name_of_its_own():
    places = {}
    for path in sorted((KIT / "grader").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(KIT).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_module_of_the_grader_has_more_than_450_lines():
    lengths = {p: len(p.read_text().splitlines()) for p in (KIT / "grader").rglob("*.py")}
    assert {path: length for path, length in lengths.items() if length > 450} == {}


def test_the_skeleton_is_fresh():
    course = kit_course()
    rubric = rubric_of(course)
    tasks, cover = known_tasks(course, rubric), cover_of(course, rubric)
    parts = stripped_parts(course, rubric)
    stale = holes.stale(course.solution, course.skeleton, parts, tasks, cover)
    assert stale == [], "hint: run make release"


def test_no_line_of_a_solution_is_in_the_skeleton():
    assert len(holes.solution_lines(KIT / "solution")) > 150
    assert holes.leaks(KIT / "solution", KIT / "assignment") == []


def test_a_release_of_part_2_has_holes_in_two_files_alone(tmp_path):
    holes.release(KIT / "solution", tmp_path / "classic", {2})
    with_holes = {
        path.relative_to(tmp_path / "classic").as_posix()
        for path in (tmp_path / "classic").rglob("*")
        if path.is_file() and "TODO (task" in path.read_text()
    }
    assert with_holes == {"python/dlsys/autodiff.py", "src/gpu_op.cu"}
    text = (tmp_path / "classic/python/dlsys/autodiff.py").read_text()
    assert "task 2.1" in text
    assert "task 1." not in text


def test_every_task_of_the_rubric_has_a_hole_and_a_check():
    rubrics = [load_rubric(name) for name in ("default", "steps", "nets")]
    marked = set()
    for path in (KIT / "solution").rglob("*"):
        if path.suffix in (".py", ".cu") and "build" not in path.parts:
            marked |= set(re.findall(r"BEGIN SOLUTION (\d+\.\d+)", path.read_text()))
    assert marked == {task for rubric in rubrics for task in rubric.tasks}
    for rubric in rubrics:
        assert {row.task for row in rubric.rows if row.task} == set(rubric.tasks)


def test_a_course_knows_the_tasks_of_those_beside_it():
    for course in (
        kit_course(),
        *(load_course(KIT / name) for name in ("steps.toml", "nets.toml")),
    ):
        assert {"1.1", "2.13", "3.4", "4.9"} <= known_tasks(course, rubric_of(course))


def test_a_skeleton_solves_what_was_before_and_nothing_that_comes_later():
    course, steps, nets = (load_course(KIT / f"{n}.toml") for n in ("course", "steps", "nets"))
    assert stripped_parts(course, rubric_of(course)) == {1, 2, 3, 4}
    assert stripped_parts(course, rubric_of(course), [2]) == {2, 3, 4}
    assert stripped_parts(steps, rubric_of(steps)) == {3, 4}
    assert stripped_parts(nets, rubric_of(nets)) == {4}


@pytest.mark.parametrize("profile", profiles())
def test_every_check_of_a_rubric_exists_and_has_a_sentence(profile):
    for row in load_rubric(profile).rows:
        if row.name != "build":
            assert CHECKS[row.name].__doc__


def test_every_check_stands_in_some_rubric():
    rows = [row for profile in profiles() for row in load_rubric(profile).rows]
    assert set(CHECKS) == {row.name for row in rows} - {"build"}


def test_speed_is_asked_for():
    speed = {name for name in CHECKS if name.startswith("speed_")}
    default, more = ({row.name for row in load_rubric(p).rows} for p in ("default", "speed"))
    of_part_3 = {row.name for row in load_rubric("steps").rows} & speed
    assert more - default == speed - of_part_3
    assert of_part_3 == {name for name in speed if "_fast_" in name}
    assert default < more


def test_the_published_points_are_fifteen():
    assert load_rubric("classic").points == 15
    default = load_rubric("default")
    assert sum(row.points for row in default.rows if row.task.startswith("2.")) == 15


def test_students_need_what_the_kit_needs():
    project = tomllib.loads((KIT / "pyproject.toml").read_text())["project"]
    ours = set(project["dependencies"])
    for line in (KIT / "solution/requirements.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            assert line in ours


def test_the_version_is_one():
    from grader import __version__

    project = tomllib.loads((KIT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    assert f"## {__version__}" in (KIT / "CHANGELOG.md").read_text()


def test_what_is_packed_does_not_hold_the_time():
    for folder in ("grader", "solution", "tests"):
        for path in sorted((KIT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "gzip.compress":
                    names = {keyword.arg for keyword in node.keywords}
                    assert "mtime" in names, f"{path}:{node.lineno}: hint: mtime=0"


class Item:
    """A test as pytest collects it."""

    def __init__(self, nodeid, is_core):
        self.nodeid, self.is_core = nodeid, is_core

    def add_marker(self, mark):
        """Forgets it."""

    def get_closest_marker(self, name):
        """A mark, or None."""
        return pytest.mark.core if self.is_core else None


def test_each_test_is_one_of_a_few_or_of_the_rest():
    slow = [name for name in listed() if "::test_" in name]
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    found = {}
    for part in (FEW, REST, None):
        items = [
            Item(f"{name}[{case}]", is_core=number % 5 == 0)
            for number, name in enumerate([*slow, "tests/test_house.py::test_quick"])
            for case in range(22)
        ]
        SlowTests(False, part).pytest_collection_modifyitems(config, items)
        found[part] = [item.nodeid for item in items]
    assert sorted(found[FEW] + found[REST]) == sorted(found[None])
    assert len(found[FEW]) > 22 and len(found[REST]) > len(found[FEW])


def test_pytest_knows_the_slow_tests_when_it_selects():
    words = ["-m", "pytest", "--co", "-q", "-m", "not slow", "tests/test_house.py"]
    said = subprocess.run([sys.executable, *words], cwd=KIT, capture_output=True, text=True).stdout
    names = set(re.findall(r"^tests/.*::\w+", said, re.MULTILINE))
    assert names and names.isdisjoint(listed())


def test_the_slow_tests_exist_and_every_room_has_quick_ones():
    slow = set(listed())
    functions = {
        f"{path.relative_to(KIT).as_posix()}::{node.name}": node
        for path in [KIT / "tests/conftest.py", *(KIT / "tests").rglob("test_*.py")]
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    assert slow - set(functions) == set(), "hint: delete these lines of tests/slow.txt"

    def is_quick(name):
        file = name.partition("::")[0]
        needs = {f"{place}::{arg.arg}" for arg in functions[name].args.args
                 for place in (file, "tests/conftest.py")}  # fmt: skip
        return slow.isdisjoint({name, *needs})

    tests = [name for name in functions if "::test_" in name]
    rooms = {Path(name.partition("::")[0]).parent for name in tests}
    assert rooms - {Path(n.partition("::")[0]).parent for n in tests if is_quick(n)} == set()
