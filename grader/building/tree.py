"""Lays out a tree to be built. Runs nothing itself."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from grader import __version__
from grader.course import course

#: The kit: the folder that holds solution/, assignment/, emulator/ and grader/.
KIT = course.KIT
#: What every submission of the kit's own assignment is laid over. It holds no line of a solution.
PRISTINE = KIT / "assignment"
#: Its reference, against which speed is measured.
REFERENCE = KIT / "solution"
#: The library without a GPU: its sources, and those of the kit that go with them.
FAR = KIT / "grader" / "checks" / "far_gpu"
FAR_RUNTIME = ("c_runtime_api.cc", "cpu_device_api.cc", "cuda_check.cc")
#: The library of the build that checks every access, in a tree.
CHECKED_LIBRARY = "build/checked/lib/libc_runtime_api.so"
#: Folders of a tree that only its build needs.
FOR_BUILDING = ("emulator", "src", "tests")
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
_TOOLS = ("g++", "clang++", "c++", "nvcc", "as", "ld")
# Folders that tools leave in a source tree.
_NO_SOURCE = frozenset({"build", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})


def make_command(device: str, checked: bool = False, fast: bool = True) -> list[str]:
    """The command that builds the tree in the current folder. `checked`, and kernels that are not
    `fast` but run thread by thread, need the device "emulated"."""
    command = ["make", f"-j{processors()}", f"DEVICE={device}", f"PYTHON={sys.executable}"]
    command.append("KEEP=0")  # nobody reads what kernels became
    command += [] if fast else ["LOOPS=0"]
    return [*command, "CHECKED=1"] if checked else command


def processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def child_environment(backend: str) -> dict[str, str]:
    """The part of this machine's environment that the driver needs; children get no other.

    The emulated GPU hides device memory from host code at every launch, also on processors without
    protection keys, where it would otherwise do so only now and then.

    Without a real GPU, numpy's BLAS gets one thread unless the environment says otherwise. Its
    threads spin while they wait for each other; on cores that others use, an epoch of small
    products then takes 20 times as long.
    """
    names = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "EMULATOR_THREADS", *BLAS_THREADS)
    found = {name: os.environ[name] for name in names if name in os.environ}
    if backend == "cuda":
        return found
    return {"EMULATOR_PROTECT": "1", **dict.fromkeys(BLAS_THREADS, "1"), **found}


def build_environment() -> dict[str, str]:
    """The variables of this environment that choose the tool chain and find its libraries."""
    names = "CXX NVCC CUDA_HOME CUDA_PATH CUDA_ARCH LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES"
    return {name: os.environ[name] for name in names.split() if name in os.environ}


def backend_of(tree: Path) -> str:
    """What a tree was built for: "cuda" or "emulated"; "" if it was not configured."""
    backend = _configured(tree, "BACKEND")
    return backend if backend.isidentifier() else ""


def compiler_of(tree: Path) -> list[str]:
    """The command of the C++ compiler that built a tree of the kit."""
    return shlex.split(_configured(tree, "CXX"))


def _configured(tree: Path, name: str) -> str:
    config = tree / "build" / "config.mk"
    text = config.read_text() if config.exists() else ""
    match = re.search(rf"^{name} := (.+)$", text, re.M)
    return match[1] if match else ""


def tree_files(root: Path) -> Iterator[Path]:
    """The files of a source tree, relative and sorted, without build output and caches."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and _NO_SOURCE.isdisjoint(parts):
            yield path.relative_to(root)


def emulator_of(root: Path) -> Path:
    """The emulated GPU of a source tree: inside it, as students have it, or beside it, as in the
    kit."""
    inside = root / "emulator"
    return inside if inside.is_dir() else root.parent / "emulator"


def whole_tree(root: Path) -> dict[Path, Path]:
    """A source tree with its emulated GPU, as students get it: relative path -> file, sorted."""
    emulator = emulator_of(root)
    beside = {Path("emulator", path): emulator / path for path in tree_files(emulator)}
    return dict(sorted({**{path: root / path for path in tree_files(root)}, **beside}.items()))


def _to_build(root: Path) -> dict[Path, Path]:
    """The same without the checks that students can run: no submission may see them."""
    return {name: path for name, path in whole_tree(root).items() if name.parts[0] != "grader"}


def cache_folder() -> Path:
    """The folder for built trees of the kit."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base).absolute() / "dlsys-kit" / "pristine"


def tree_key(device: str, checked: bool = False, source: Path = PRISTINE) -> str:
    """A digest of everything that a built tree of the kit depends on."""
    digest = hashlib.sha256(repr((__version__, device, checked, sys.executable)).encode())
    digest.update(repr(sorted(build_environment().items())).encode())
    digest.update(repr((tool_chain(), _processor())).encode())
    for name, path in _to_build(source).items():
        digest.update(str(name).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:24]


def tool_chain() -> list[tuple[str, int, int] | None]:
    """What tells the compilers that configure.py may choose, and what they call, from others, also
    from newer ones in their place."""
    return [_identity(shutil.which(name)) for name in _TOOLS]


def _identity(program: str | None) -> tuple[str, int, int] | None:
    if program is None:
        return None
    path = os.path.realpath(program)
    status = os.stat(path)
    return path, status.st_size, status.st_mtime_ns


@functools.cache
def _processor() -> str:
    """What tells kinds of processors apart; kernels are built for one of them."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        return next((line for line in file if line.startswith(("flags", "Features"))), "")
    return ""


def copy_pristine(target: Path, source: Path = PRISTINE) -> None:
    """Copies the pristine sources, or the reference's, to a new folder."""
    copy_files(_to_build(source), target)


def copy_files(files: Mapping[Path, Path], target: Path) -> None:
    """Copies files to a folder, each to its relative path."""
    for name, path in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target / name)


def copy_built(target: Path, built: Path, leave_out: Collection[Path] = ()) -> None:
    """Copies a built tree of the kit, with its sources, to a folder; without some of its paths.

    Sources keep their times relative to the objects made from them. Otherwise those of a newer
    clone would be younger than the objects, and make would rebuild everything.
    """

    def needless(folder: str, names: list[str]) -> list[str]:
        return [n for n in names if n == "__pycache__" or Path(folder, n) in leave_out]

    shutil.copytree(built, target, ignore=needless, dirs_exist_ok=True)


def lay_over(tree: Path, taken: Mapping[str, bytes]) -> None:
    """Writes a submission's files over the pristine ones, with new times, so that make builds
    them."""
    for name, content in taken.items():
        (tree / name).write_bytes(content)
