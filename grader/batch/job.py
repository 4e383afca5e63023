"""Grades one submission of a class on a worker, which may be another machine.

A worker first describes its site. Later results count only if the site is still the same.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grader.building import tree
from grader.checks.harness.recipe import source_of
from grader.checks.speed import gpu
from grader.course.course import Course, kit_course
from grader.course.rubric import Rubric
from grader.grading.prebuilt import GraderError, prebuilt, prepare
from grader.grading.runner import Options, grade
from grader.report.model import Report
from grader.sandbox import isolation, scratch
from grader.submission.reader import Submission

_REFUSED = (
    "this machine has no isolation: student code would run with your rights; hint: install "
    "bubblewrap (apt-get install bubblewrap), or, if you trust every submission, "
    "--isolation process"
)


@dataclass(frozen=True)
class Site:
    """How a worker describes itself before it gets work.

    Attributes:
        backend: "cuda" or "emulated".
        isolation: the level that it would use.
        grader: digest of the grader's own files.
        data: where its MNIST comes from.
        chain: digest of compilers, interpreter, device and all else that results depend on.
    """

    backend: str
    isolation: str
    grader: str
    data: str
    chain: str


@dataclass(frozen=True)
class GradingJob:
    """A submission to grade, as it travels to a worker."""

    submission: Submission
    rubric: Rubric
    site: Site
    device: str
    isolation: str
    data: Path | None
    hidden: tuple[Path, ...]
    course: Course | None


def look_around(work: tuple[str, str, str, Course | None]) -> Site:
    """Describes this worker for (device, isolation, data, course). Builds the skeleton, so that no
    submission waits for it.

    Raises:
        GraderError: the kit does not build here, or nothing isolates student code.
    """
    device, wanted, data, course = work
    level = _level(wanted)
    backend = tree.backend_of(prebuilt(device, source=skeleton(course)))
    prepare(backend, str(course.path) if course else "")
    found = _data(data)
    chain = _chain_digest(backend, level, found)
    return Site(backend, level, _grader_digest(course), found, chain)


@functools.cache
def _data(folder: str) -> str:
    """Where this worker's MNIST comes from; downloads it if needed."""
    return source_of(Path(folder) if folder else None)


def grade_work(work: GradingJob) -> tuple[Report, str]:
    """(the report on a submission, the process that made it).

    Raises:
        GraderError: this worker's site differs from the first worker's.
    """
    scratch.use_memory()
    if _grader_digest(work.course) != work.site.grader:
        raise GraderError(
            f"{socket.gethostname()} has another version of the grader, the skeleton or the "
            "solution than the batch began with; hint: all machines need the same, and it must "
            "stay as it is while they grade"
        )
    if _level(work.isolation) != work.site.isolation:
        raise GraderError(f"{socket.gethostname()} has another level of isolation")
    found = _data(str(work.data or ""))
    if found != work.site.data:
        raise GraderError(f"{socket.gethostname()} has MNIST from {found}, not {work.site.data}")
    options = Options(
        rubric=work.rubric,
        device=work.site.backend,
        data=work.data,
        isolation=work.site.isolation,
        hidden=work.hidden,
        course=work.course or kit_course(),
    )
    return grade(work.submission, options), f"{socket.gethostname()}:{os.getpid()}"


def _level(wanted: str) -> str:
    level = isolation.choose(wanted)
    if level == "process" and wanted != "process":
        raise GraderError(_REFUSED)
    return level


def skeleton(course: Course | None) -> Path:
    """The skeleton that submissions are laid over. For the kit's own assignment: the one on this
    machine."""
    return (course or kit_course()).skeleton


def _grader_digest(course: Course | None) -> str:
    """Digest of the files that two machines must share: the grader's own, the skeleton's and those
    of the solution, against which speed is measured."""
    digest = hashlib.sha256()
    own = Path(__file__).parents[1]
    roots = [{path: own / path for path in tree.tree_files(own)}]
    roots += [tree.whole_tree(skeleton(course)), tree.whole_tree((course or kit_course()).solution)]
    for files in roots:
        for name, path in files.items():
            digest.update(str(name).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _chain_digest(backend: str, level: str, data: str) -> str:
    """Digest of all that a result depends on besides the submission, the rubric and the grader."""
    known = [backend, level, sys.version, np.__version__, data]
    known += [_version_of(os.environ.get("CXX", "g++")), *tree.build_environment().values()]
    if backend == "cuda":
        known += [_version_of(os.environ.get("NVCC", "nvcc")), gpu.find().properties.name]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def _version_of(command: str) -> str:
    """What a compiler says of its version; "" if there is no such compiler."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        words = [*command.split(), "--version"]
        return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    return ""
