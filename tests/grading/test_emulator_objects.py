"""Trees of the kit share the emulated GPU's objects: made once, and anew where they would
differ."""

import os
import shutil

import pytest

from grader.building import tree as build
from grader.grading import prebuilt
from grader.sandbox import process


@pytest.fixture
def compiled(monkeypatch):
    """Builds a source as prebuilt does, without a compiler; the files that it would compile."""
    run = process.run

    def build_of(source, checked=False):
        steps = []

        def pretending(command, cwd, *more):
            done = run([*command, "--dry-run"], cwd, *more)
            steps.append(done.output)
            for line in done.output.splitlines():
                words = line.split()
                if "-o" in words and "-c" in words:
                    made = cwd / words[words.index("-o") + 1]
                    made.parent.mkdir(parents=True, exist_ok=True)
                    made.write_text(line)
            return done

        monkeypatch.setattr(process, "run", pretending)
        prebuilt.prebuilt("emulated", checked, source)
        monkeypatch.setattr(process, "run", run)
        words = "".join(steps).split()
        return {word for word in words if word.endswith((".cc", ".cu"))}

    return build_of


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A skeleton with its emulated GPU, and a cache that holds nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    build.copy_files(build.whole_tree(build.PRISTINE), tmp_path / "source")
    return tmp_path / "source"


def emulators(compiled):
    return {name for name in compiled if name.startswith("emulator/src/")}


@pytest.mark.parametrize("checked", [False, True])
def test_what_leaves_the_emulated_gpu_as_it_was_compiles_none_of_it(source, compiled, checked):
    first = compiled(source, checked)
    assert emulators(first)
    with open(source / "src" / "gpu_op.cu", "a") as file:
        file.write("// another\n")
    with open(source / "emulator" / "rewrite.py", "a") as file:
        file.write("# another\n")  # which makes kernels, and no object of the emulated GPU
    assert compiled(source, checked) == first - emulators(first)


def test_the_checked_build_has_objects_of_its_own(source, compiled):
    compiled(source)
    assert emulators(compiled(source, True))


@pytest.mark.parametrize(
    "changed", ["emulator/src/error.h", "emulator/include/cuda_runtime.h", "Makefile"]
)
def test_what_an_object_depends_on_makes_all_anew(source, compiled, changed):
    first = compiled(source)
    with open(source / changed, "a") as file:
        file.write("\n")
    assert compiled(source) == first


def test_another_compiler_makes_all_anew(source, compiled, tmp_path, monkeypatch):
    first = compiled(source)
    (tmp_path / "bin").mkdir()
    shutil.copy(shutil.which("sh"), tmp_path / "bin" / "g++")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert compiled(source) == first


def test_an_object_is_not_taken_if_a_librarys_header_is_new_since(source, compiled):
    first = compiled(source)
    header = source.parent / "cblas.h"
    (kept,) = build.cache_folder().iterdir()
    rule = f"build/obj/emulated/emulator/memory.o: {header}\n"
    (kept / "build/obj/emulated/emulator/memory.d").write_text(rule)
    header.touch()
    with open(source / "src" / "gpu_op.cu", "a") as file:
        file.write("// another\n")
    assert compiled(source) == first - emulators(first) | {"emulator/src/memory.cc"}


def test_a_tree_that_is_out_of_date_is_made_anew(source, compiled, monkeypatch):
    first = compiled(source)
    assert compiled(source) == set()
    monkeypatch.setattr(prebuilt, "_is_current", lambda *_: False)
    assert compiled(source) == first
    assert len(list(build.cache_folder().iterdir())) == 1


def test_a_build_that_is_forgotten_meanwhile_is_not_missed(source, compiled):
    first = compiled(source)
    for tree in prebuilt.build.cache_folder().iterdir():
        (tree / "build" / "config.mk").unlink()
    with open(source / "src" / "gpu_op.cu", "a") as file:
        file.write("// another\n")
    assert compiled(source) == first
