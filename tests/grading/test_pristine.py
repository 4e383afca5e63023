"""The kit's own builds: what children get of the environment, and which builds are kept."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.building import tree as build
from grader.grading import prebuilt


def test_numpy_gets_one_thread_unless_there_is_a_gpu_or_a_wish(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert build.child_environment("emulated")["OPENBLAS_NUM_THREADS"] == "1"
    assert "OPENBLAS_NUM_THREADS" not in build.child_environment("cuda")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert build.child_environment("emulated")["OPENBLAS_NUM_THREADS"] == "3"


def test_secrets_of_the_environment_stay_away(monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    assert "TOKEN" not in build.child_environment("emulated")


def test_nobodys_environment_opens_the_memory_of_the_emulated_gpu(monkeypatch):
    monkeypatch.setenv("EMULATOR_PROTECT", "0")
    assert build.child_environment("emulated")["EMULATOR_PROTECT"] == "1"


def test_old_builds_go_and_those_in_use_or_being_made_stay(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
        used = time.time() - 10_000 * (number + 1)
        os.utime(tmp_path / f"{number:02}", (used, used))
    (tmp_path / "new-x").mkdir()
    os.utime(tmp_path / "new-x", (0, 0))
    os.utime(tmp_path / "19")  # used last
    prebuilt._forget_old_builds(tmp_path)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"new-x", "19", *(f"{number:02}" for number in range(11))}


def test_two_graders_may_forget_old_builds_at_the_same_time(tmp_path, monkeypatch):
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
        used = time.time() - 10_000 * (number + 1)
        os.utime(tmp_path / f"{number:02}", (used, used))
    of_path, looked_at = Path.stat, []

    def stat(path, **options):
        """The first three are there when the folder is read, and the other grader's by now."""
        if path.parent == tmp_path and len(looked_at) < 3 and path not in looked_at:
            looked_at.append(path)
            path.rmdir()
        return of_path(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    prebuilt._forget_old_builds(tmp_path)
    kept = {path.name for path in tmp_path.iterdir()}
    monkeypatch.undo()
    assert len(looked_at) == 3
    gone = {path.name for path in looked_at}
    assert kept == set(sorted({f"{number:02}" for number in range(20)} - gone)[:12])


def test_the_kit_is_not_built_again_for_a_submission_from_a_newer_clone(tmp_path, monkeypatch):
    """The cache goes by content; make goes by time."""
    kit = prebuilt.prebuilt("emulated")
    clone = tmp_path / "clone"
    build.copy_pristine(clone)
    for path in build.tree_files(clone):
        os.utime(clone / path)  # now, and so after the kit was built
    monkeypatch.setattr(build, "PRISTINE", clone)
    assert prebuilt.prebuilt("emulated", source=clone) == kit
    tree = tmp_path / "tree"
    build.copy_built(tree, kit)
    build.lay_over(tree, {"src/gpu_op.cu": b"// handed in\n"})
    command = [*build.make_command("emulated"), "--dry-run"]
    steps = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout
    compiled = set(re.findall(r"\S+\.(?:cc|cu)\b(?!\.o)", steps))
    assert {Path(name).name for name in compiled} == {"gpu_op.cu"}
    assert "--precompile" not in steps  # the emulated GPU's headers


def test_a_librarys_header_that_was_installed_anew_makes_a_tree_out_of_date(tmp_path):
    """Its key knows nothing of it, and each submission would renew what it may not write."""
    tree = tmp_path / "tree"
    shutil.copytree(prebuilt.prebuilt("emulated"), tree)
    header, objects = tmp_path / "cblas.h", tree / "build/obj/emulated"
    header.touch()
    os.utime(header, (0, 0))
    with open(objects / "emulator" / "cublas_handle.d", "a") as file:
        file.write(f"build/obj/emulated/emulator/cublas_handle.o: {header}\n")

    def is_current():
        os.utime(tree, (0, 0))
        return prebuilt._is_current(tree, "emulated", False)

    assert is_current()
    assert time.time() - tree.stat().st_mtime < 60  # in use
    header.touch()
    assert prebuilt._is_current(tree, "emulated", False)  # make was asked a moment ago
    assert not is_current()
    with pytest.raises(FileNotFoundError):
        prebuilt._is_current(tmp_path / "none", "emulated", False)


def test_a_kit_is_built_anew_for_another_compiler_and_not_for_another_path(tmp_path, monkeypatch):
    before = build.tree_key("emulated")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "compute-sanitizer").touch()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert build.tree_key("emulated") == before
    compiler = tmp_path / "bin" / "g++"
    shutil.copy(shutil.which("sh"), compiler)
    another = build.tree_key("emulated")
    os.utime(compiler, (0, 0))  # as if it had been renewed in its place
    assert len({before, another, build.tree_key("emulated")}) == 3


@pytest.mark.parametrize("cxx", ["g++", "clang++"])
def test_headers_that_were_precompiled_serve_in_a_copy_of_the_tree(tmp_path, cxx):
    """The built tree is gone, or lies elsewhere, when a submission is compiled in a copy."""
    if not shutil.which(cxx):
        pytest.skip(f"no {cxx} here")
    emulator = build.KIT / "emulator"
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.cu").write_text("__global__ void k(float* p) { p[threadIdx.x] = 1; }\n")
    words = [sys.executable, emulator / "emucc.py", "-ccbin", cxx, "--prelude", "out/prelude.h"]
    subprocess.run([*words, "--precompile"], cwd=tmp_path / "tree", check=True)
    assert (tmp_path / "tree/out/prelude.h.gch").stat().st_size > 1 << 20
    (tmp_path / "tree").rename(tmp_path / "copy")
    done = subprocess.run(
        [*words, "-c", "a.cu", "-o", "a.o"], cwd=tmp_path / "copy", capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
