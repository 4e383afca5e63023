"""Builds the pristine tree and the reference once for each machine, and tests the device."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from grader.building import tree as build
from grader.building.sharing import let_all_read
from grader.course.course import kit_course, load_course
from grader.grading.emulator_objects import leave_objects, take_objects
from grader.sandbox import gpu_memory, process
from grader.sandbox.scratch import scratch_folder
from grader.student.remote import ChildError, Remote, StartError

_KEPT_BUILDS = 12
_IN_USE = 3600.0  # seconds for which a run may need its tree
_CURRENT = 60.0  # seconds after which make is asked again whether a tree is up to date


class GraderError(Exception):
    """The grader or the machine failed; no submission is to blame."""


def prebuilt(device: str, checked: bool = False, source: Path = build.PRISTINE) -> Path:
    """The pristine tree with its own objects built, so that a submission compiles one file; or
    another source of the kit's own, built whole."""
    if not source.is_dir():
        raise GraderError(f"{source} does not exist; hint: grader release makes a skeleton")
    if device == "auto":
        device = _chosen(os.environ.get("PATH", ""), *sorted(build.build_environment().items()))
    target = build.cache_folder() / build.tree_key(device, checked, source)
    try:
        with contextlib.suppress(FileNotFoundError):
            if _is_current(target, device, checked):
                return target
            _forget(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="new-", dir=target.parent))
    except OSError as error:
        raise GraderError(
            f"the built kit can't be kept in {target.parent}: {error.strerror or error}; "
            "hint: set XDG_CACHE_HOME to a folder that you may write to"
        ) from error
    try:
        build.copy_pristine(scratch, source)
        take_objects(scratch, checked, target.parent)
        limits = process.Limits(wall=600, cpu=None)  # its own code
        command = build.make_command(device, checked)
        done = process.run(command, scratch, build.build_environment(), limits)
        if done.rc != 0:
            raise GraderError(f"the kit does not build here:\n{done.output[-2000:].strip()}")
        leave_objects(scratch, checked)
        let_all_read(scratch)
        with contextlib.suppress(OSError):  # somebody else was faster
            scratch.rename(target)
        _forget_old_builds(target.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


@functools.cache
def _chosen(*_environment: Any) -> str:
    """The device that "auto" means in this environment, so that one build serves both names."""
    with scratch_folder() as folder:
        command = [sys.executable, str(build.PRISTINE / "configure.py"), "build/config.mk"]
        limits = process.Limits(wall=60, cpu=None)  # the kit's own code
        process.run(command, folder, build.build_environment(), limits)
        return build.backend_of(folder) or "auto"


@contextlib.contextmanager
def reference(device: str, source: Path = build.REFERENCE) -> Iterator[Path]:
    """A folder with the built reference, for as long as this is entered."""
    built = prebuilt(device, source=source)
    with scratch_folder() as folder:
        for part in ("python", "build/lib"):
            shutil.copytree(built / part, folder / part)
        yield folder


def far_library(built: Path) -> Path | None:
    """The library without a GPU (see grader/checks/far_gpu/far_device.cc) for a built tree of the
    kit, beside which it is kept; None if it does not build from that tree's sources."""
    own = [build.FAR / name for name in ("far_device.cc", "cuda_runtime.h")]
    sources = [own[0], *(built / "src" / name for name in build.FAR_RUNTIME)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in own)).hexdigest()
    target = built / "build" / "obj" / f"far-{digest[:16]}.so"
    if target.exists():
        return target
    scratch = target.with_name(f"{target.name}.{secrets.token_hex(8)}")
    command = [*build.compiler_of(built), "-std=c++17", "-O2", "-shared", "-fPIC"]
    command += ["-Wl,-z,defs"]  # a function that is missing is missed here, not in a child
    command += [f"-I{build.FAR}", f"-I{built / 'src'}", "-o", str(scratch), *map(str, sources)]
    limits = process.Limits(wall=600, cpu=None)  # the kit's own code
    done = process.run(command, target.parent, build.build_environment(), limits)
    if done.rc != 0:
        scratch.unlink(missing_ok=True)
        return None
    scratch.rename(target)  # at once; somebody else may have been faster
    return target


def prepare(device: str, course_file: str = "") -> None:
    """Builds what the first submission would wait for: the skeleton of the course in a file, or of
    the kit; its checked build; and on a real GPU the reference.

    Raises:
        GraderError: the kit does not build here.
    """
    course = load_course(Path(course_file)) if course_file else kit_course()
    far_library(prebuilt(device, source=course.skeleton))
    prebuilt("emulated", checked=True, source=course.skeleton)
    if device == "cuda":  # speed is measured beside it
        prebuilt(device, source=course.solution)


def _is_current(tree: Path, device: str, checked: bool) -> bool:
    """Whether make would leave a built tree as it is, and notes that it is in use. Its key holds
    the kit's files and the compilers; a header of a library may have been installed anew since.

    Raises:
        FileNotFoundError: there is no such tree.
    """
    if time.time() - tree.stat().st_mtime < _CURRENT:
        return True
    command = [*build.make_command(device, checked), "--question"]
    limits = process.Limits(wall=60, cpu=None)  # the kit's own code
    if process.run(command, tree, build.build_environment(), limits).rc != 0:
        return False
    os.utime(tree)
    return True


def _forget(tree: Path) -> None:
    """Removes a built tree, at once, so that nobody uses what is half removed."""
    gone = Path(tempfile.mkdtemp(prefix="new-", dir=tree.parent))
    try:
        with contextlib.suppress(FileNotFoundError):  # another grader forgets it
            tree.rename(gone)
    finally:
        shutil.rmtree(gone, ignore_errors=True)


def _forget_old_builds(folder: Path) -> None:
    """Removes built trees, except the few used last and all that may be in use now."""
    used = {}
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another grader forgets it
            if not path.name.startswith("new-"):
                used[path] = path.stat().st_mtime
    for path in sorted(used, key=lambda path: used[path], reverse=True)[_KEPT_BUILDS:]:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime >= _IN_USE:
                _forget(path)


def check_device(tree: Path) -> None:
    """Raises GraderError unless an array goes to the device of the pristine tree and back. If
    others have filled a GPU, waits for room first."""
    try:
        _send_and_fetch(tree)
    except GraderError as error:
        if not gpu_memory.Meter().was_full(error):
            raise
        gpu_memory.wait_for_room()
        _send_and_fetch(tree)


def _send_and_fetch(tree: Path) -> None:
    temporary = Path(tempfile.gettempdir())
    if os.statvfs(temporary).f_flag & getattr(os, "ST_NOEXEC", 0):
        raise GraderError(f"no library can be loaded from {temporary}: it is mounted noexec; "
                          "hint: set TMPDIR to another folder")  # fmt: skip
    limits, paths = process.Limits(wall=60), [str(tree / "python")]
    sent = np.arange(3, dtype=np.float32)
    try:
        with Remote(
            sys.executable, paths, tree, limits, build.child_environment(build.backend_of(tree))
        ) as remote:
            nd = remote.import_("dlsys.ndarray")
            got = remote.fetch(nd.array(sent, ctx=nd.gpu(0)).asnumpy())
    except (ChildError, StartError) as error:
        raise GraderError(
            f"the {build.backend_of(tree)} GPU does not work here: {error}"
        ) from error
    if not np.array_equal(got, sent):
        raise GraderError(f"the {build.backend_of(tree)} GPU returns {got} for {sent}")
