"""Where temporary folders lie, and how they go."""

import os
import tempfile
from pathlib import Path

import pytest

from grader.sandbox import isolation, scratch


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The user's folder in what is taken for memory, with room; TMPDIR is not set."""
    monkeypatch.setattr(scratch, "_MEMORY", tmp_path)
    monkeypatch.setattr(scratch, "has_room", lambda: True)
    monkeypatch.setenv("TMPDIR", "unset at the end")
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(tempfile, "tempdir", None)
    return scratch.in_memory()


def test_temporary_folders_lie_in_memory_in_a_folder_that_nobody_else_writes(own):
    before = os.umask(0o077)
    try:
        scratch.use_memory()
    finally:
        os.umask(before)
    scratch.use_memory()  # as a command that another one runs
    with scratch.scratch_folder() as folder:
        assert folder.parent == own
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(own)
    assert own.stat().st_mode & 0o777 == 0o711
    assert list(own.iterdir()) == []


def test_tmpdir_is_obeyed_and_the_folder_in_memory_is_hidden_all_the_same(own, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/mine")
    scratch.use_memory()
    assert os.environ["TMPDIR"] == "/mine"
    monkeypatch.setenv("TMPDIR", "/tmp")
    own.mkdir()
    hidden = [Path(name) for name in isolation._hidden([])]
    assert any(name == own or name in own.parents for name in hidden)


def test_a_folder_that_others_may_write_is_not_used(own):
    own.mkdir()
    own.chmod(0o777)
    scratch.use_memory()
    assert "TMPDIR" not in os.environ
    own.rmdir()
    own.symlink_to("/")
    scratch.use_memory()
    assert "TMPDIR" not in os.environ


def test_what_a_link_in_place_of_the_folder_leads_to_is_not_swept(own, tmp_path):
    left = tmp_path / "theirs/dlsys-scratch-left"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    own.symlink_to(left.parent)
    scratch.use_memory()
    assert left.exists()


def test_what_a_killed_process_left_there_is_swept_wherever_folders_lie_now(own, monkeypatch):
    left = own / "dlsys-scratch-left"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    monkeypatch.setenv("TMPDIR", "/tmp")
    scratch.use_memory()
    assert not left.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_ROOM_IN_MEMORY", 1 << 60),
        ("_MEMORY", Path("/nowhere")),
        ("_MEMORY", Path("/proc")),  # may not be written
    ],
)
def test_memory_without_room_is_not_used(monkeypatch, name, value):
    monkeypatch.setattr(scratch, name, value)
    assert not scratch.has_room()


def test_memory_is_not_used_where_the_end_of_a_session_clears_it(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_ROOM_IN_MEMORY", 0)
    monkeypatch.setattr(scratch, "_MEMORY", tmp_path)
    monkeypatch.setattr(scratch, "_LOGIND", tmp_path)
    monkeypatch.setattr(scratch.os, "getuid", lambda: 1000)
    assert not scratch.has_room()
    monkeypatch.setattr(scratch.os, "getuid", lambda: 999)
    assert scratch.has_room()


def test_a_tree_that_may_not_be_written_is_removed():
    held = scratch.Scratch()
    (held.path / "locked/inside").mkdir(parents=True)
    (held.path / "locked").chmod(0o500)
    held.remove()
    assert not held.path.exists()
