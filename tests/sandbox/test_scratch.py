"""Where temporary folders lie, and how they go."""

import os
import tempfile

import pytest

from grader.sandbox import scratch


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """A folder that is taken for memory, with room; TMPDIR is not set."""
    monkeypatch.setattr(scratch, "memory", lambda: tmp_path)
    monkeypatch.setenv("TMPDIR", "unset at the end")
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_temporary_folders_lie_in_memory_in_a_folder_that_nobody_else_writes(memory):
    scratch.use_memory()
    scratch.use_memory()  # as a command that another one runs
    own = memory / f"dlsys-{os.getuid()}"
    with scratch.scratch_folder() as folder:
        assert folder.parent == own
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(own)
    assert own.stat().st_mode & 0o777 == 0o711
    assert list(own.iterdir()) == []


def test_tmpdir_is_obeyed(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "mine"))
    scratch.use_memory()
    assert os.environ["TMPDIR"] == str(tmp_path / "mine")


def test_a_folder_that_others_may_write_is_not_used(memory):
    own = memory / f"dlsys-{os.getuid()}"
    own.mkdir()
    own.chmod(0o777)
    scratch.use_memory()
    assert "TMPDIR" not in os.environ
    own.rmdir()
    own.symlink_to("/")
    scratch.use_memory()
    assert "TMPDIR" not in os.environ


def test_memory_without_room_is_not_used(monkeypatch):
    monkeypatch.setattr(scratch, "_ROOM_IN_MEMORY", 1 << 60)
    assert scratch.memory() is None
    monkeypatch.setattr(scratch, "_MEMORY", scratch.Path("/nowhere"))
    assert scratch.memory() is None


def test_a_tree_that_may_not_be_written_is_removed():
    held = scratch.Scratch()
    (held.path / "locked/inside").mkdir(parents=True)
    (held.path / "locked").chmod(0o500)
    held.remove()
    assert not held.path.exists()
