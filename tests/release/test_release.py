"""The skeleton: what stands in for a hole, which markers are refused, and how a tree is swapped."""

import json
import os
import stat

import pytest

from grader.release import holes as module
from grader.release.holes import ReleaseError, leaks, release, solution_lines, stale, strip

PYTHON = '''"""Ops."""

# BEGIN SOLUTION 1.5
def helper_of_mine(value):
    return value + 1
# END SOLUTION


class AddOp:
    def gradient(self, node, output_grad):
        """[g, g]."""
        # BEGIN SOLUTION 1.1
        return [output_grad, output_grad]
        # END SOLUTION

    def infer_shape(self, node, shapes):
        # BEGIN SOLUTION 2.1
        return broadcast_rule(*shapes)
        # END SOLUTION
'''
SKELETON = '''"""Ops."""

# TODO (task 1.5): your own functions here


class AddOp:
    def gradient(self, node, output_grad):
        """[g, g]."""
        # TODO (task 1.1): your code here
        raise NotImplementedError("task 1.1 is not written yet")

    def infer_shape(self, node, shapes):
        # TODO (task 2.1): your code here
        raise NotImplementedError("task 2.1 is not written yet")
'''
CUDA = """#include "a.h"
// BEGIN SOLUTION 2.3
__global__ void fill_kernel(float* out) { out[threadIdx.x] = 1; }
// END SOLUTION

int DLGpuArraySet(DLArrayHandle arr) {
  // BEGIN SOLUTION 2.3
  fill_kernel<<<1, 32>>>(arr->data);
  return check_launch(0);
  // END SOLUTION
}
"""


@pytest.fixture
def source(tmp_path):
    files = {
        "python/dlsys/ops.py": PYTHON,
        "src/gpu_op.cu": CUDA,
        "Makefile": "all:\n\techo built\n",
        ".gitignore": "build/\n",
        "build/lib/x.so": "junk",
        "python/dlsys/__pycache__/ops.pyc": "junk",
        ".pytest_cache/x": "junk",
        ".secret": "junk",
    }
    for name, text in files.items():
        path = tmp_path / "solution" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "solution" / "tool").write_bytes(b"\xff\xfe\0binary")
    (tmp_path / "solution" / "tool").chmod(0o755)
    return tmp_path / "solution"


@pytest.fixture
def target(tmp_path):
    return tmp_path / "assignment"


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- holes -------------------------------------------------------------------------------------


def test_python_holes_become_a_todo_and_a_loud_failure():
    assert strip(PYTHON, "ops.py") == SKELETON


def test_cuda_holes_become_a_todo_and_an_error_code():
    assert strip(CUDA, "gpu_op.cu") == (
        '#include "a.h"\n// TODO (task 2.3): your kernels here\n\n'
        "int DLGpuArraySet(DLArrayHandle arr) {\n"
        '  // TODO (task 2.3): your code here\n  return not_written("2.3");\n}\n'
    )


def test_only_the_given_parts_are_stripped_and_the_others_lose_their_markers():
    text = strip(PYTHON, "ops.py", {2})
    assert "return value + 1" in text and "[output_grad, output_grad]" in text
    assert "broadcast_rule" not in text and "SOLUTION" not in text


def test_no_parts_keeps_all_code():
    assert "broadcast_rule" in strip(PYTHON, "ops.py", set())


def test_adjacent_holes_of_one_task_are_fine():
    hole = "// BEGIN SOLUTION 2.3\nint x;\n// END SOLUTION\n"
    assert strip(hole * 2, "a.h") == "// TODO (task 2.3): your kernels here\n" * 2


def test_a_hole_in_a_makefile_leaves_a_comment_alone():
    text = "all:\n\t# BEGIN SOLUTION 3.1\n\tnvcc x\n\t# END SOLUTION\n"
    assert strip(text, "Makefile") == "all:\n\t# TODO (task 3.1): your lines here\n"


def test_text_without_holes_is_unchanged():
    for text in (
        "",
        "a",
        "a\n",
        "a\r\n\x0cb\r\n",
        "solution = end(begin)\n# the end, a solution\n",
    ):
        assert strip(text, "a.py") == text


def test_windows_line_endings_stay():
    text = "def f():\r\n    # BEGIN SOLUTION 1.1\r\n    x\r\n    # END SOLUTION\r\n"
    assert strip(text, "a.py").count("\r\n") == strip(text, "a.py").count("\n") == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# BEGIN SOLUTION 2.1\n# BEGIN SOLUTION 2.2\n", "a.py:2: BEGIN SOLUTION inside that of"),
        ("x\n# END SOLUTION\n", "a.py:2: END SOLUTION without a BEGIN SOLUTION"),
        ("x\n# BEGIN SOLUTION 2.1\n", "a.py:2: BEGIN SOLUTION 2.1 has no END SOLUTION"),
        ("# BEGIN SOLUTION two\n", "a.py:1: task id two is not part.number"),
        ("# BEGIN SOLUTION 2\n", "a.py:1: task id 2 is not part.number"),
        ("# BEGIN SOLUTION 2.01\n", "a.py:1: task id 2.01 is not part.number"),
        ("# BEGIN SOLUTION 2.9\n", "a.py:1: task 2.9 is unknown; known: 1.1, 2.1, 2.10"),
        ("  # BEGIN SOLUTION 2.1\n# END SOLUTION\n", "a.py:2: END SOLUTION is not indented like"),
    ],
)
def test_a_bad_marker_is_an_error_with_file_and_line(text, said):
    with pytest.raises(ReleaseError) as caught:
        strip(text, "a.py", None, {"2.10", "1.1", "2.1"})
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    "line",
    [
        "# BEGIN SOLUTION",
        "# BEGIN SOLUTIONS 2.1",
        "# Begin Solution 2.1",
        "# begin solution",
        "#BEGIN SOLUTION 2.1",
        "#  BEGIN SOLUTION 2.1",
        "# BEGIN  SOLUTION 2.1",
        "# BEGIN SOLUTION 2.1 ",
        "# BEGIN SOLUTION 2.1: add",
        "# BEGIN_SOLUTION 2.1",
        "# BEGIN SOLUTOIN 2.1",
        "# BEGN SOLUTION 2.1",
        "// BEGIN SOLUTION 2.1",
        "# END SOLUTION 2.1",
        "# END SOLUTION ",
        "# END-SOLUTION",
        "#END SOLUTION",
        "# END SOLUTIONS",
        "# ENDSOLUTION",
        "# END SOLUTON",
        "x = 1  # BEGIN SOLUTION 2.1",
        "/* END SOLUTION */",
    ],
)
def test_what_looks_like_a_marker_and_is_none_is_an_error(line):
    with pytest.raises(
        ReleaseError, match=r"a\.py:2: not a marker, but looks like one: .*; hint: "
    ):
        strip(f"\n{line}\n", "a.py")


@pytest.mark.parametrize("name", ["notes.md", "data.txt", "a.json"])
def test_a_marker_in_a_file_that_is_not_stripped_is_an_error(name):
    with pytest.raises(ReleaseError, match=f"{name}:2: a marker, but this kind of file"):
        strip("x\n# BEGIN SOLUTION 2.1\n", name)


# --- the tree ----------------------------------------------------------------------------------


def test_a_release_holds_what_a_student_needs_and_nothing_more(source, target):
    made = release(source, target)
    assert tree(target).keys() == {path.as_posix() for path in made}
    assert sorted(tree(target)) == [
        *(".gitignore", ".release.json", "Makefile", "python/dlsys/ops.py", "src/gpu_op.cu"),
        "tool",
    ]
    assert (target / "python/dlsys/ops.py").read_text() == SKELETON
    assert (target / "tool").read_bytes() == b"\xff\xfe\0binary"


def test_a_folder_of_lessons_is_left_out(source, target):
    (source / "src/lessons").mkdir(parents=True)
    (source / "src/lessons/first.cu").write_text("int answer;\n")
    (source / "src/lessons/.lessons").touch()
    release(source, target)
    assert not (target / "src/lessons").exists() and (target / "src/gpu_op.cu").exists()


def test_the_manifest_names_parts_and_tasks_in_order(source, target):
    release(source, target)
    manifest = json.loads((target / module.MANIFEST).read_text())
    assert manifest == {"parts": [1, 2], "tasks": ["1.1", "1.5", "2.1", "2.3"]}


def test_file_modes_are_kept(source, target):
    release(source, target)
    assert stat.S_IMODE((target / "tool").stat().st_mode) == 0o755
    mode = stat.S_IMODE((source / "Makefile").stat().st_mode)
    assert stat.S_IMODE((target / "Makefile").stat().st_mode) == mode


def test_two_releases_are_the_same_byte_for_byte(source, target, tmp_path):
    release(source, target)
    release(source, tmp_path / "again")
    release(source, target)
    assert tree(target) == tree(tmp_path / "again")


def test_a_release_replaces_an_older_one_and_leaves_nothing_beside_it(source, target, tmp_path):
    release(source, target)
    (target / "old.txt").write_text("of an older release")
    release(source, target, {2})
    assert "old.txt" not in tree(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["assignment", "solution"]


def test_a_folder_that_is_no_release_is_never_overwritten(source, target):
    target.mkdir()
    release(source, target)  # an empty one is fine
    (target / module.MANIFEST).unlink()
    before = tree(target)
    with pytest.raises(ReleaseError, match=r"is not empty and not a release .*; hint: "):
        release(source, target)
    assert tree(target) == before


def test_a_file_or_a_link_is_no_target(source, target, tmp_path):
    target.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match="is not a folder"):
        release(source, target)


@pytest.mark.parametrize("inner", ["", "inner"])
def test_a_target_inside_the_source_is_refused(source, inner):
    with pytest.raises(ReleaseError, match="lies in the other"):
        release(source, source / inner)
    with pytest.raises(ReleaseError, match="lies in the other"):
        release(source, source.parent)


def test_a_bad_marker_leaves_the_old_release_whole(source, target):
    release(source, target)
    before = tree(target)
    (source / "src/gpu_op.cu").write_text("// BEGIN SOLUTION 2.3\n")
    with pytest.raises(ReleaseError, match=r"src/gpu_op\.cu:1: "):
        release(source, target)
    assert tree(target) == before


@pytest.mark.parametrize("step", [1, 2])
def test_a_failing_swap_leaves_the_old_release_whole(source, target, tmp_path, monkeypatch, step):
    release(source, target)
    before, rename, calls = tree(target), os.rename, []

    def failing(*paths):
        calls.append(paths)
        if len(calls) == step:
            raise OSError("no space left")
        rename(*paths)

    monkeypatch.setattr(module.os, "rename", failing)
    with pytest.raises(OSError, match="no space left"):
        release(source, target, {1})
    assert tree(target) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["assignment", "solution"]


@pytest.mark.parametrize("place", ["link.py", "src/linked"])
def test_a_link_in_the_source_is_an_error(source, target, place):
    (source / place).symlink_to("/etc")
    with pytest.raises(ReleaseError, match=f"{place}: is a link"):
        release(source, target)


def test_a_skeleton_that_does_not_parse_is_an_error(source, target):
    (source / "a.py").write_text("def f():\n# BEGIN SOLUTION 1.1\n    pass\n# END SOLUTION\n")
    with pytest.raises(ReleaseError, match=r"a\.py:\d: the skeleton does not parse: expected an"):
        release(source, target)


def test_an_unknown_task_is_an_error(source, target):
    with pytest.raises(ReleaseError, match=r"task 1\.5 is unknown; known: 1\.1, 2\.1"):
        release(source, target, None, {"1.1", "2.1"})


# --- stale -------------------------------------------------------------------------------------


def test_a_fresh_release_is_not_stale_and_build_output_does_not_count(source, target):
    release(source, target)
    (target / "build").mkdir()
    (target / "build" / "x.so").write_text("built")
    assert stale(source, target) == []


def test_a_stale_release_says_which_files(source, target):
    release(source, target)
    (target / "Makefile").write_text("all:\n")
    (target / "src/gpu_op.cu").unlink()
    (target / "src/new.h").write_text("")
    (target / "tool").chmod(0o644)
    assert stale(source, target) == [
        "Makefile differs",
        "src/gpu_op.cu is missing",
        "src/new.h is extra",
        "tool differs in its executable bit",
    ]


def test_a_release_of_other_parts_is_stale(source, target):
    release(source, target, {1})
    assert stale(source, target, {1}) == []
    assert ".release.json differs" in stale(source, target, {1, 2})


def test_without_a_release_everything_is_missing(source, target):
    assert "Makefile is missing" in stale(source, target)


# --- leaks -------------------------------------------------------------------------------------


def test_solution_lines_are_telling_lines_from_holes_alone(source):
    (source / "other.py").write_text(
        "def broadcast(shapes):\n    return   broadcast_rule(*shapes)\n"
        "# BEGIN SOLUTION 1.6\nx = 1\n# a comment that gives nothing away\n# END SOLUTION\n"
    )
    assert solution_lines(source) == {
        "def helper_of_mine(value):",
        "return value + 1",
        "return [output_grad, output_grad]",
        "__global__ void fill_kernel(float* out) { out[threadIdx.x] = 1; }",
        "fill_kernel<<<1, 32>>>(arr->data);",
        "return check_launch(0);",
    }


def test_a_release_leaks_nothing(source, target):
    release(source, target)
    assert leaks(source, target) == []


def test_a_leak_is_found_with_file_and_line(source, target):
    release(source, target)
    (target / "src/hint.h").write_text("\n    fill_kernel<<<1,  32>>>(arr->data);\n")
    assert leaks(source, target) == [("src/hint.h", 2, "fill_kernel<<<1,  32>>>(arr->data);")]


def test_code_of_parts_that_were_kept_is_no_leak(source, target):
    release(source, target, {1})
    assert leaks(source, target, {1}) == []
    assert leaks(source, target) != []
