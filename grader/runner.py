"""Grades one submission: lays it out, builds it, runs the checks, keeps every result."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from grader import __version__, build, isolation, sandbox
from grader.checks import CHECKS, Context, Failure
from grader.compiler import excerpt, first_error, last_step
from grader.diagnosis import Diagnosis, Explanation
from grader.files import write_whole
from grader.findings import place_of, quote
from grader.remote import ChildError, Remote, StartError
from grader.rubric import ALWAYS, Row, Rubric, RubricError
from grader.scratch import scratch_folder, sweep
from grader.submission import SubmissionError, load_submission
from grader.wording import explain, tail

#: Version of the report's JSON; a change that breaks readers makes it larger.
SCHEMA = "dlsys-grader-report/1"

PASS, FAIL, SKIPPED, ERROR = "pass", "fail", "skipped", "error"

_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
_KEPT_BUILDS = 12


class GraderError(Exception):
    """The grader or the machine failed; no submission is to blame."""


@dataclass
class Result:
    """The result of one check.

    Attributes:
        check, task, points (what passing is worth), score: as in the rubric.
        status: "pass", "fail" (the student's), "skipped" (an earlier check is needed) or
            "error" (the grader's or the machine's).
        sentence: what is checked.
        message: what is wrong, one sentence.
        details: further lines: traceback, output, compiler error.
        hint: what to look for.
        seconds: wall time.
        facts: what was measured.
        visibility: when a student may see it, as in the rubric.
        findings: what a tool saw the kernels do wrong, see grader.findings.
    """

    check: str
    task: str
    points: float
    score: float
    status: str
    sentence: str
    message: str = ""
    details: list[str] = field(default_factory=list)
    hint: str = ""
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    visibility: str = ALWAYS
    findings: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Report:
    """Everything that grading one submission found. See report.schema.json for the JSON.

    Attributes:
        parts, tasks: number of a part, id of a task -> its name.
        audience: "instructor", or "student" where hidden checks were taken out.
        withheld: visibility -> how many checks were taken out for it.
        withheld_points: what those are worth.
    """

    submission: str
    sha256: str
    profile: str
    title: str
    device: str
    isolation: str
    seed: str
    started: str
    notes: list[str]
    problem: str = ""
    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0
    complete: bool = False
    parts: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    audience: str = "instructor"
    withheld: dict[str, int] = field(default_factory=dict)
    withheld_points: float = 0.0

    @property
    def score(self) -> float:
        """Points reached."""
        return sum(result.score for result in self.results)

    @property
    def points(self) -> float:
        """Points that could be reached."""
        return sum(result.points for result in self.results)

    @property
    def has_errors(self) -> bool:
        """Whether the grader itself failed somewhere."""
        return any(result.status == ERROR for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON types: the attributes, with schema, version, score and points."""
        head = {"schema": SCHEMA, "grader_version": __version__}
        return {**head, **asdict(self), "score": self.score, "points": self.points}

    def write(self, path: Path) -> None:
        """Writes the JSON so that the file is always whole."""
        write_whole(path, json.dumps(self.to_dict(), indent=1) + "\n")


@dataclass(frozen=True)
class Options:
    """How to grade.

    Attributes:
        rubric: the rubric.
        device: "auto", "cuda" or "emulated".
        seed: the run's secret, hex; a new one if empty.
        data: folder of MNIST, or None to search.
        only: names of checks, with what they require; all if empty.
        output: where the JSON is written after every check, or None.
        keep: folder for the submission's tree, kept afterwards, or None.
        isolation: "auto" for the strongest level that works here, or a level.
        on_check: is given what every check is given, before the check runs.
    """

    rubric: Rubric
    device: str = "auto"
    seed: str = ""
    data: Path | None = None
    only: tuple[str, ...] = ()
    output: Path | None = None
    keep: Path | None = None
    isolation: str = "auto"
    on_check: Callable[[Context], None] = lambda context: None


def grade(
    source: Path, options: Options, on_result: Callable[[Result], None] = lambda result: None
) -> Report:
    """Grades a folder or an archive. Every result is passed to on_result when it is there.

    Raises:
        RubricError: the rubric has no check of a name in `only`.
        GraderError: the kit can't be built on this machine, or its device does not work.
    """
    started = time.monotonic()
    sweep()
    rows = _select(options.rubric, options.only)
    report = _empty_report(source, options)
    try:
        submission = load_submission(source, options.rubric.files, build.PRISTINE)
    except SubmissionError as error:
        report.problem = str(error)
        report.results = [_skip(row, "the submission can't be read") for row in rows]
        return _finish(report, options, started)
    report.sha256, report.notes = submission.sha256, list(submission.notes)
    prebuilt = _prebuilt(options.device)
    _check_device(prebuilt)
    explain = Diagnosis(
        submission.taken,
        options.rubric,
        lambda: _prebuilt("emulated", checked=True),
        _view(report, options),
    )
    with explain as diagnosis, _workspace(options.keep) as tree:
        shutil.copytree(prebuilt / "build", tree / "build", dirs_exist_ok=True)
        build.copy_pristine(tree)
        build.lay_over(tree, submission.taken)
        built: _Built | None = None
        for row in rows:
            if built is None and row.name != "build":
                built = _Built(tree)
            result = _run(row, tree, built, report, options, diagnosis, submission.taken)
            report.results.append(result)
            report.device = (built.backend if built else "") or report.device
            report.seconds = time.monotonic() - started
            if options.output:
                report.write(options.output)
            on_result(result)
    return _finish(report, options, started)


def _finish(report: Report, options: Options, started: float) -> Report:
    report.complete = True
    report.seconds = round(time.monotonic() - started, 3)
    if options.output:
        report.write(options.output)
    return report


def _empty_report(source: Path, options: Options) -> Report:
    return Report(
        submission=str(source),
        sha256="",
        profile=options.rubric.profile,
        title=options.rubric.title,
        device=options.device,
        isolation=isolation.choose(options.isolation),
        seed=options.seed or secrets.token_hex(16),
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        notes=[],
        parts={str(part): name for part, name in options.rubric.parts.items()},
        tasks=dict(options.rubric.tasks),
    )


def _select(rubric: Rubric, only: Iterable[str]) -> list[Row]:
    """The rows to run: all, or those named and what they require."""
    rows = {row.name: row for row in rubric.rows}
    wanted: set[str] = set()
    pending = list(only) or list(rows)
    while pending:
        name = pending.pop()
        if name not in rows:
            raise RubricError(f"no check {name!r}; hint: one of {', '.join(rows)}")
        if name not in wanted:
            wanted.add(name)
            pending.extend(rows[name].requires)
    return [row for row in rubric.rows if row.name in wanted]


@contextlib.contextmanager
def _workspace(keep: Path | None) -> Iterator[Path]:
    """A folder for the submission's tree; `keep`, or a temporary one."""
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with scratch_folder() as folder:
        yield folder


def _prebuilt(device: str, checked: bool = False) -> Path:
    """The pristine tree with its own objects built, so that a submission compiles one file."""
    target = build.cache_folder() / build.tree_key(device, checked)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="new-", dir=target.parent))
    try:
        build.copy_pristine(scratch)
        limits = sandbox.Limits(wall=600)
        command = build.make_command(device, checked)
        done = sandbox.run(command, scratch, build.build_environment(), limits)
        if done.rc != 0:
            raise GraderError(f"the kit does not build here:\n{done.output[-2000:].strip()}")
        with contextlib.suppress(OSError):  # somebody else was faster
            scratch.rename(target)
        _forget_old_builds(target.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _forget_old_builds(folder: Path) -> None:
    """Keeps the newest few of the built trees; one that is in use is copied within seconds."""
    done = [path for path in folder.iterdir() if not path.name.startswith("new-")]
    built = sorted(done, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in built[_KEPT_BUILDS:]:
        shutil.rmtree(path, ignore_errors=True)


class _Built:
    """A built tree, held in this process, so that no check can change it for the next one."""

    def __init__(self, tree: Path) -> None:
        self.backend = build.backend_of(tree)
        kept = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
        self._files = {
            path.relative_to(tree): path.read_bytes()
            for path in kept
            if path.relative_to(tree).parts[:2] != ("build", "obj")
        }

    @contextlib.contextmanager
    def copy(self) -> Iterator[Path]:
        """A fresh folder with the tree in it."""
        with _workspace(None) as folder:
            for name, content in self._files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            yield folder

    def holds(self, text: str, names: Iterable[str]) -> bool:
        """Whether one of the files has the text in it."""
        return any(text.encode() in self._files.get(Path(name), b"") for name in names)


def _check_device(tree: Path) -> None:
    """Raises GraderError unless an array goes to the device of the pristine tree and back."""
    limits, paths = sandbox.Limits(wall=60), [str(tree / "python")]
    sent = np.arange(3, dtype=np.float32)
    try:
        with Remote(
            sys.executable, paths, tree, limits, _child_environment(build.backend_of(tree))
        ) as remote:
            nd = remote.import_("dlsys.ndarray")
            got = remote.fetch(nd.array(sent, ctx=nd.gpu(0)).asnumpy())
    except (ChildError, StartError) as error:
        raise GraderError(
            f"the {build.backend_of(tree)} GPU does not work here: {error}"
        ) from error
    if not np.array_equal(got, sent):
        raise GraderError(f"the {build.backend_of(tree)} GPU returns {got} for {sent}")


def _run(
    row: Row,
    tree: Path,
    built: _Built | None,
    report: Report,
    options: Options,
    diagnosis: Diagnosis,
    taken: Mapping[str, bytes],
) -> Result:
    """Runs one check, whatever happens in it."""
    started = time.monotonic()
    passed = {result.check for result in report.results if result.status == PASS}
    missing = [name for name in row.requires if name not in passed]
    if built is None:
        result = _build(row, tree, report, options, taken)
    elif missing and _is_hole(row.task, built, options.rubric):
        result = _result(row, FAIL, message=f"task {row.task} is not written yet")
    elif missing:
        result = _skip(row, f"needs {', '.join(missing)}")
    else:
        with built.copy() as fresh:
            result = _check(row, fresh, built.backend, report, options, diagnosis)
    result.seconds = round(time.monotonic() - started, 3)
    result.score = row.points if result.status == PASS else 0.0
    return result


def _is_hole(task: str, built: _Built, rubric: Rubric) -> bool:
    """Whether the task's hole still stands in the files. It may be unreachable, so this only
    chooses the words for a check that can't run."""
    marks = (f'NotImplementedError("task {task} is not', f'not_written("{task}")')
    return any(built.holds(mark, rubric.files) for mark in marks)


def sentence(name: str) -> str:
    """What a check checks, for the student: the first line of its docstring."""
    if name == "build":
        return "the submission compiles"
    return (CHECKS[name].__doc__ or name).strip().partition("\n")[0]


def _result(row: Row, status: str, **more: Any) -> Result:
    line = sentence(row.name)
    visible = row.visible
    return Result(row.name, row.task, row.points, 0.0, status, line, visibility=visible, **more)


def _skip(row: Row, why: str) -> Result:
    return _result(row, SKIPPED, message=why)


def _view(report: Report, options: Options, *writable: Path) -> isolation.View:
    """What student code sees: its tree, and neither other submissions nor reports."""
    hidden = [Path(report.submission).resolve().parent]
    hidden += [options.output.resolve().parent] if options.output else []
    return isolation.View(report.isolation, writable=writable, hidden=tuple(hidden))


def _build(
    row: Row, tree: Path, report: Report, options: Options, taken: Mapping[str, bytes]
) -> Result:
    """Compiles the submission. An error is the student's: the pristine tree did compile."""
    limits = sandbox.Limits(wall=row.seconds)
    environment = build.build_environment()
    view = _view(report, options, tree / "build")
    done = sandbox.run(build.make_command(options.device), tree, environment, limits, view)
    if done.rc == 0:
        return _result(row, PASS, facts={"backend": build.backend_of(tree)})
    if done.reason == "timeout":
        step = last_step(done.output)
        message = f"the build did not end within {row.seconds:g} s" + (f": {step}" * bool(step))
        return _result(row, FAIL, message=message, details=tail(done.output))
    error = first_error(done.output, taken)
    message = str(error) if error else f"make failed ({done.signal or done.reason}, {done.rc})"
    details = excerpt(done.output) if error else tail(done.output)
    if error and error.file in taken:
        marked = quote(taken, error.file, error.line, around=0)
        # g++ and clang quote the line themselves, nvcc does not.
        known = any(line.partition("| ")[2] in "\n".join(details) for line in marked)
        details = details if known else [*details, *marked]
    return _result(row, FAIL, message=message, details=details)


def _check(
    row: Row, tree: Path, backend: str, report: Report, options: Options, diagnosis: Diagnosis
) -> Result:
    context = Context(
        tree=tree,
        rubric=options.rubric,
        backend=backend,
        seed=report.seed,
        check=row.name,
        seconds=row.seconds,
        data=options.data,
        env=_child_environment(backend),
        view=_view(report, options),
    )
    options.on_check(context)
    try:
        CHECKS[row.name](context)
        return _result(row, PASS, facts=context.facts)
    except (Failure, ChildError) as error:
        result = _result(row, FAIL, **explain(error), facts=context.facts)
        result.facts |= getattr(error, "facts", {})
        return _with_findings(result, diagnosis.explain(context, error))
    except Exception as error:  # the grader's own fault must not end the other checks
        message = f"{type(error).__name__}: {error}"
        return _result(row, ERROR, message=message, details=traceback.format_exc().splitlines())


def _child_environment(backend: str) -> dict[str, str]:
    """What the driver needs of this machine's environment; the rest stays away.

    Without a real GPU, numpy's BLAS gets one thread unless the environment says otherwise: its
    threads wait for each other by spinning, and on cores that others use an epoch of small
    products then takes 20 times as long.
    """
    names = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "EMULATOR_THREADS", *_BLAS_THREADS)
    found = {name: os.environ[name] for name in names if name in os.environ}
    return found if backend == "cuda" else dict.fromkeys(_BLAS_THREADS, "1") | found


def _with_findings(result: Result, explanation: Explanation) -> Result:
    """A failed result with what was found about it, the first finding among its details too."""
    result.findings = explanation.findings
    result.hint = "; ".join(filter(None, (result.hint, explanation.hint)))
    if explanation.facts:
        result.facts["findings"] = explanation.facts
    for found in explanation.findings[:1]:
        result.details.append(": ".join(filter(None, (place_of(found), found["sentence"]))))
    return result
