"""Trees share with the kit's built tree what no build changes, and can't write to it."""

import os
import sys

import pytest

from grader.building import sharing
from grader.building.snapshot import Snapshot
from grader.building.tree import lay_over
from grader.sandbox import isolation, scratch
from grader.sandbox.isolation import View
from grader.sandbox.process import Limits, run

LEVELS = [level for level in isolation.LEVELS if not isolation.why_not(level)]
SHARED = {
    "emulator/emucc.py": "the kit's",
    "emulator/include/cuda_runtime.h": "header",
    "build/obj/emulated/emulator/error.o": "object",
    "build/obj/emulated/prelude.h.gch": "read once",
}
OWN = {"src/gpu_op.cu": "skeleton", "build/obj/emulated/prelude.h": "header"}


@pytest.fixture
def kit(tmp_path):
    """A built tree of the kit in a folder that no other user may enter, as caches are."""
    folder = tmp_path / "cache" / "kit"
    for name, text in {**SHARED, **OWN}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    (folder / "emulator").chmod(0o700)
    (tmp_path / "cache").chmod(0o700)
    sharing.let_all_read(folder)
    return folder


@pytest.fixture
def tree():
    with scratch.scratch_folder() as folder:
        yield folder


def in_tree(code, tree, kit, level):
    """What a child prints in a tree that was laid out, as a build runs there."""
    view = View(level, writable=(tree / "build",))
    sharing.lay_out(tree, kit, view)
    lay_over(tree, {"src/gpu_op.cu": b"handed in"})
    view = sharing.seeing_shared(view, tree, kit)
    done = run([sys.executable, "-I", "-c", code], tree, limits=Limits(wall=30), view=view)
    assert done.rc == 0, done.output
    return done.output


@pytest.mark.parametrize("level", LEVELS)
def test_a_build_sees_the_whole_tree_with_what_was_handed_in(tree, kit, level):
    names = [*SHARED, *OWN]
    said = in_tree(f"for name in {names}: print(open(name).read())", tree, kit, level)
    wanted = {**SHARED, **OWN, "src/gpu_op.cu": "handed in"}
    assert said.splitlines() == [wanted[name] for name in names]


@pytest.mark.parametrize("level", [each for each in LEVELS if isolation.has_mounts(each)])
def test_a_build_changes_nothing_that_others_share(tree, kit, level):
    code = f"""
import os
for name in {list(SHARED)}:
    for what in (
        lambda: open(name, "w"),
        lambda: os.chmod(name, 0o777),
        lambda: os.utime(name),
        lambda: os.rename(name, name + ".old"),
        lambda: os.unlink(name),
        lambda: open(os.path.dirname(name) + "/new", "w"),
    ):
        try:
            what()
        except OSError:
            continue
        print("changed", name)
os.unlink("build/obj/emulated/new")  # of the tree alone, beside the header
"""
    before = {path: os.stat(path).st_ctime_ns for path in kit.rglob("*")}
    assert in_tree(code, tree, kit, level) == "changed build/obj/emulated/prelude.h.gch\n"
    assert {path: os.stat(path).st_ctime_ns for path in kit.rglob("*")} == before
    assert {name: (kit / name).read_text() for name in SHARED} == SHARED


def test_without_mounts_each_tree_has_a_copy(tree, kit):
    view = View("process")
    sharing.lay_out(tree, kit, view)
    assert {name: (tree / name).read_text() for name in {**SHARED, **OWN}} == {**SHARED, **OWN}
    assert sharing.seeing_shared(view, tree, kit) == view


def test_what_is_shared_is_no_part_of_a_snapshot(tree, kit):
    sharing.lay_out(tree, kit, View("namespaces"))
    snapshot = Snapshot(tree, kit)
    assert not snapshot.holds("the kit's", ["emulator/emucc.py"])
    assert snapshot.holds("skeleton", ["src/gpu_op.cu"])
