"""Makes the zip of an autograder for Gradescope, which grades on the emulated GPU there."""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.base.errors import UsageError
from grader.base.files import write_whole
from grader.building.tree import KIT, PRISTINE, tree_files, whole_tree
from grader.course.course import Course, kit_course, rubric_of
from grader.course.rubric import rubric_files
from grader.report.gradescope import failed

#: What setup.sh asks apt-get for; the rest comes from the package index, by pyproject.toml.
PACKAGES = ("bubblewrap", "g++", "make", "python3", "python3-venv")

#: Seconds at the end of the platform's time in which the results are still written.
MARGIN = 30

_TOP = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "course.toml")
_COURSE = "course"  # folder in the zip of a course that is not the kit's own
_TEMPLATES = Path(__file__).parent / "templates"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of zip; without dates the same kit makes the same bytes
# The same in both scripts: what was compiled by setup.sh is found again by these.
_ENVIRONMENT = """\
export PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export HOME="${HOME:-/root}" XDG_CACHE_HOME="${XDG_CACHE_HOME:-$root/cache}"
export PYTHONDONTWRITEBYTECODE=1 EMULATOR_THREADS=1"""


class AutograderError(UsageError):
    """The zip can't be made as asked; the message says why."""


@dataclass(frozen=True)
class Autograder:
    """What the zip should do.

    Attributes:
        profile: another rubric than the course's, by name or as a file; "" for none.
        data: folder with the four files of MNIST to pack; None: setup.sh downloads them.
        minutes: the platform's time for a submission.
        course: whose submissions it grades.
    """

    profile: str = ""
    data: Path | None = None
    minutes: float = 10
    course: Course = field(default_factory=kit_course)


def build_zip(target: Path, how: Autograder) -> list[str]:
    """Writes the zip, whole; returns the names in it.

    Raises:
        RubricError: the rubric can't be read.
        AutograderError: the time is too short, the data folder holds no MNIST, or a file of the
            course lies outside its folder.
        OSError: a file can't be read or written.
    """
    rubric_of(how.course, how.profile)
    if how.minutes * 60 < 2 * MARGIN:
        raise AutograderError(f"{how.minutes:g} minutes are too few; hint: at least 1")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in sorted(_entries(how)):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    write_whole(target, content.getvalue())
    return archive.namelist()


def _entries(how: Autograder) -> Iterator[tuple[str, bytes, int]]:
    """(name, content, mode) of each file. None holds a line of a solution."""
    yield "setup.sh", _script("setup.sh.j2", how), 0o755
    yield "run_autograder", _script("run_autograder.j2", how), 0o755
    for name in _TOP:
        yield name, (KIT / name).read_bytes(), 0o644
    for folder in (KIT / "grader", KIT / "emulator", PRISTINE):
        for path in tree_files(folder):
            yield f"{folder.name}/{path.as_posix()}", (folder / path).read_bytes(), 0o644
    if not how.course.is_kit:
        yield from _course_entries(how.course)
    if how.profile.endswith(".toml"):
        for path in rubric_files(how.profile):
            yield f"rubric/{path.name}", path.read_bytes(), 0o644
    if how.data:
        for path in _mnist_files(how.data):
            yield f"data/{path.name}", path.read_bytes(), 0o644


def _course_entries(course: Course) -> Iterator[tuple[str, bytes, int]]:
    """The course's file, its rubrics, its checks and its skeleton; not its solution."""
    if not course.skeleton.is_dir():
        raise AutograderError(f"{course.skeleton} does not exist; hint: grader release makes it")
    skeleton = whole_tree(course.skeleton).values()
    rubrics = sorted(course.rubric.parent.glob("*.toml"))
    for path in dict.fromkeys((course.path, *rubrics, *course.checks, *skeleton)):
        yield f"{_COURSE}/{_inside(course, path)}", path.read_bytes(), 0o644


def _inside(course: Course, path: Path) -> str:
    """A path relative to the course's folder."""
    try:
        return path.resolve().relative_to(course.folder).as_posix()
    except ValueError:
        raise AutograderError(
            f"{path} lies outside of {course.folder}, whose files are packed; hint: move it there"
        ) from None


def _mnist_files(folder: Path) -> list[Path]:
    found = [path for path in sorted(folder.glob("*-ubyte*")) if path.is_file()]
    if len({path.name.partition(".")[0] for path in found}) != 4:
        raise AutograderError(f"{folder} does not hold the four files of MNIST")
    return found


def _script(template: str, how: Autograder) -> bytes:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    course = how.course
    arguments = json.dumps("emulated") + (f", {json.dumps(_packed(course))}" * (not course.is_kit))
    program = f"from grader.grading.prebuilt import prepare; prepare({arguments})"
    skeleton = "assignment" if course.is_kit else f"{_COURSE}/{_inside(course, course.skeleton)}"
    text = environment.get_template(template).render(
        environment=_ENVIRONMENT,
        packages=" ".join(PACKAGES),
        rubric=_rubric_options(how),
        prepare=shlex.quote(program),
        skeleton=shlex.quote(skeleton),
        wants_mnist=not how.data and bool(rubric_of(course, how.profile).mnist),
        has_data=how.data is not None,
        seconds=round(how.minutes * 60) - MARGIN,
        failed=json.dumps(failed("the grader ended by exit code $code and left no results")),
    )
    return text.encode()


def _packed(course: Course) -> str:
    """The place of a course's file in the zip."""
    return f"{_COURSE}/{course.path.name}"


def _rubric_options(how: Autograder) -> str:
    """The options that tell `grader grade` the course and the rubric."""
    words = [] if how.course.is_kit else ["--course", _packed(how.course)]
    if how.profile.endswith(".toml"):
        words += ["--profile", f"rubric/{Path(how.profile).name}"]
    elif how.profile:
        words += ["--profile", how.profile]
    return shlex.join(words)
