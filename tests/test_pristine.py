"""The kit's own builds: what children get of the environment, and which builds are kept."""

import os
import time

from grader import pristine


def test_numpy_gets_one_thread_unless_there_is_a_gpu_or_a_wish(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert pristine.child_environment("emulated")["OPENBLAS_NUM_THREADS"] == "1"
    assert "OPENBLAS_NUM_THREADS" not in pristine.child_environment("cuda")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert pristine.child_environment("emulated")["OPENBLAS_NUM_THREADS"] == "3"


def test_secrets_of_the_environment_stay_away(monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    assert "TOKEN" not in pristine.child_environment("emulated")


def test_old_builds_go_and_those_in_use_or_being_made_stay(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
        used = time.time() - 10_000 * (number + 1)
        os.utime(tmp_path / f"{number:02}", (used, used))
    (tmp_path / "new-x").mkdir()
    os.utime(tmp_path / "new-x", (0, 0))
    os.utime(tmp_path / "19")  # used last
    pristine._forget_old_builds(tmp_path)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"new-x", "19", *(f"{number:02}" for number in range(11))}
