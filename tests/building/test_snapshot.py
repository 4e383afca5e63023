"""A built tree is held in memory, unless it is larger than any honest one."""

import pytest

from grader.building import snapshot
from grader.building.snapshot import Snapshot
from grader.building.symbols import SMALL


@pytest.fixture
def tree(tmp_path):
    """A built tree of four files, one of them an object, which no program needs."""
    files = ("src/gpu_op.cu", "python/dlsys/autodiff.py", "build/lib/libc.so", "build/obj/a.o")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    return tmp_path


def copied(held):
    with held.copy() as folder:
        return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_tree_at_its_limits_is_held_whole(tree, monkeypatch):
    monkeypatch.setattr(snapshot, "_LARGEST", 15)
    monkeypatch.setattr(snapshot, "_MOST_FILES", 3)
    held = Snapshot(tree)
    assert (held.fault, held.hint) == ("", "")
    assert held.holds("12345", ["src/gpu_op.cu"])
    assert {"libc.so", "autodiff.py"} <= set(copied(held))


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [
        ("_LARGEST", 14, "what was built takes 15 bytes in 3 files"),
        ("_MOST_FILES", 2, "what was built takes 15 bytes in 3 files"),
        ("_MOST_FILES", 1, "what was built takes 10 bytes in 2 files"),  # the others are not seen
    ],
)
def test_a_tree_beyond_a_limit_is_a_fault_and_nothing_of_it_is_held(
    tree, monkeypatch, limit, most, said
):
    monkeypatch.setattr(snapshot, limit, most)
    held = Snapshot(tree)
    assert (held.fault, held.hint) == (said, SMALL)
    assert not held.holds("12345", ["src/gpu_op.cu"])
    assert copied(held) == []


def test_a_giant_file_is_measured_and_not_read(tree):
    """With the limit as it is. The file has a hole; whoever read it would need the memory."""
    with open(tree / "build" / "table.bin", "wb") as file:
        file.truncate(1 << 40)
    held = Snapshot(tree)
    assert held.fault == f"what was built takes {(1 << 40) + 15:,} bytes in 4 files"


def test_files_without_end_are_not_all_listed(tree, monkeypatch):
    """With the limit as it is: so many files would take a while to make."""
    seen = []

    def endless(_tree, _left_out):
        while True:
            seen.append(1)
            assert len(seen) < 30_000
            yield tree / "src/gpu_op.cu"

    monkeypatch.setattr(snapshot, "_files", endless)
    assert "bytes in 20,001 files" in Snapshot(tree).fault
