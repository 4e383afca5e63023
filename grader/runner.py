"""Grades one submission: lays it out, builds it, runs the checks, keeps every result."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from grader import build, isolation, sandbox
from grader.checks import CHECKS, Check, Context, Failure, Flag, NotHere, checks_of
from grader.compiler import excerpt, first_error, last_step
from grader.course import Course, kit_course
from grader.diagnosis import Diagnosis, Explanation
from grader.findings import place_of, quote
from grader.pristine import check_device, child_environment, prebuilt, reference
from grader.remote import ChildError
from grader.results import ERROR, FAIL, PASS, SKIPPED, Report, Result
from grader.rubric import Row, Rubric, RubricError
from grader.sandbox import Limits
from grader.scratch import scratch_folder, sweep
from grader.stored import unfinished
from grader.submission import Submission, SubmissionError, load_submission
from grader.symbols import reaching
from grader.wording import explain, tail

_UNCONTAINED = (
    "the submission's code could see files, network and other processes of this machine, with "
    "the rights of whoever graded it; "
    "hint: install bubblewrap, or allow namespaces to ordinary users"
)


@dataclass(frozen=True)
class Options:
    """How to grade.

    Attributes:
        rubric: the rubric.
        course: where the skeleton, the reference and the course's own checks lie.
        device: "auto", "cuda" or "emulated".
        seed: the run's secret, hex; a new one if empty.
        data: folder of MNIST, or None to search.
        only: names of checks, with what they require; all if empty.
        output: where the JSON is written after every check, or None.
        keep: folder for the submission's tree, kept afterwards, or None.
        isolation: "auto" for the strongest level that works here, or a level.
        hidden: folders that student code must not see, beside those of the submission and output.
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
    hidden: tuple[Path, ...] = ()
    on_check: Callable[[Context], None] = lambda context: None
    course: Course = field(default_factory=kit_course)


def grade(
    source: Path | Submission,
    options: Options,
    on_result: Callable[[Result], None] = lambda result: None,
) -> Report:
    """Grades a folder, an archive, or what was read of one. Every result is passed to on_result
    when it is there.

    Where `options.output` holds the report of the same submission and rubric, by a run that was
    interrupted, its results are kept, and its seed.

    Raises:
        RubricError: the rubric has no check of a name in `only`, or names one that is nowhere.
        CourseError: the course's own checks can't be loaded.
        GraderError: the kit can't be built on this machine, or its device does not work.
    """
    started = time.monotonic()
    sweep()
    checks = checks_of(options.course)
    rows = [_with_sentence(row, checks) for row in _select(options.rubric, options.only)]
    report = _empty_report(source, options)
    try:
        with report.timed("reading the submission"):
            submission = _read(source, options)
    except SubmissionError as error:
        report.problem = str(error)
        report.results = [_skip(row, "the submission can't be read") for row in rows]
        return _finish(report, options, started)
    report.sha256, report.notes = submission.sha256, [*report.notes, *submission.notes]
    with _Grading(submission, options, report, checks) as grading:
        for row in rows:
            result = grading.result(row)
            report.results.append(result)
            report.seconds = time.monotonic() - started
            if options.output:
                report.write(options.output)
            on_result(result)
    return _finish(report, options, started)


def _read(source: Path | Submission, options: Options) -> Submission:
    if isinstance(source, Submission):
        return source
    return load_submission(source, options.rubric.files, options.course.skeleton)


class _Grading:
    """One submission, laid out and built. Used in a `with`."""

    def __init__(
        self,
        submission: Submission,
        options: Options,
        report: Report,
        checks: Mapping[str, Check],
    ) -> None:
        self._submission, self._options, self._report = submission, options, report
        self._checks, self._pristine = checks, options.course.skeleton
        self._built: _Built | None = None
        self._kept: dict[str, Result] = {}
        self._view = _view(report, options)
        self._diagnosis = Diagnosis(
            submission.taken,
            options.rubric,
            lambda: prebuilt("emulated", checked=True, source=self._pristine),
            self._view,
            self._pristine,
            checks,
        )
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> _Grading:
        with self._report.timed("building the kit"):
            kit = prebuilt(self._options.device, source=self._pristine)
        with self._report.timed("trying the device"):
            check_device(kit)
        self._kept = self._take_up_unfinished(build.backend_of(kit))
        with self._report.timed("laying out the submission"), contextlib.ExitStack() as stack:
            stack.enter_context(self._diagnosis)
            self._tree = stack.enter_context(_workspace(self._options.keep))
            shutil.copytree(kit / "build", self._tree / "build", dirs_exist_ok=True)
            build.copy_pristine(self._tree, self._pristine)
            build.lay_over(self._tree, self._submission.taken)
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def result(self, row: Row) -> Result:
        """Runs one check, whatever happens in it; or the result that an earlier run has left."""
        started = time.monotonic()
        if row.name == "build":
            result = self._build(row)
        else:
            if self._built is None:
                self._built = _Built(self._tree)
                self._report.device = self._built.backend or self._report.device
            if row.name in self._kept:
                return self._kept[row.name]
            result = self._decide(row, self._built)
        result.seconds = round(time.monotonic() - started, 3)
        return result

    def _take_up_unfinished(self, backend: str) -> dict[str, Result]:
        """The results that an interrupted run has left. Takes its seed over too."""
        earlier = unfinished(self._options.output, self._report)
        if earlier is None or earlier.device != backend:
            return {}
        if self._options.seed not in ("", earlier.seed):
            return {}
        kept = {result.check: result for result in earlier.results if result.status != ERROR}
        self._report.seed = earlier.seed
        self._report.notes.append(f"{len(kept)} results are kept of a run that was interrupted")
        return kept

    def _decide(self, row: Row, built: _Built) -> Result:
        passed = {result.check for result in self._report.results if result.status == PASS}
        missing = [name for name in row.requires if name not in passed]
        if missing and _is_hole(row.task, built, self._options.rubric):
            return _result(row, FAIL, message=f"task {row.task} is not written yet")
        if missing:
            return _skip(row, f"needs {', '.join(missing)}")
        with contextlib.ExitStack() as stack:
            with self._report.timed("copying the built tree"):
                tree = stack.enter_context(built.copy())
            return self._check(row, tree, built)

    def _build(self, row: Row) -> Result:
        """Compiles the submission. An error is the student's: the pristine tree did compile."""
        command = build.make_command(self._options.device)
        view = _view(self._report, self._options, self._tree / "build")
        limits = Limits(wall=row.seconds)
        done = sandbox.run(command, self._tree, build.build_environment(), limits, view)
        if done.rc == 0:
            return _result(row, PASS, facts={"backend": build.backend_of(self._tree)})
        return _build_failure(row, done, self._submission.taken)

    def _check(self, row: Row, tree: Path, built: _Built) -> Result:
        context = Context(
            tree=tree,
            rubric=self._options.rubric,
            backend=built.backend,
            seed=self._report.seed,
            check=row.name,
            seconds=row.seconds,
            data=self._options.data,
            env=child_environment(built.backend),
            reaches=built.reaches,
            view=self._view,
            reference=lambda: reference(self._options.device, self._options.course.solution),
        )
        self._options.on_check(context)
        try:
            self._checks[row.name](context)
            result = _result(row, PASS, facts=context.facts)
            result.score = round(row.points * context.share, 2)
            return result
        except NotHere as why:
            return _result(replace(row, points=0), SKIPPED, message=str(why))
        except Flag as flag:
            return _result(row, ERROR, message=str(flag), facts=context.facts)
        except (Failure, ChildError) as error:
            result = _result(row, FAIL, **explain(error), facts=context.facts)
            result.facts |= getattr(error, "facts", {})
            with self._report.timed("explaining failures"):
                return _with_findings(result, self._diagnosis.explain(context, error))
        except Exception as error:  # the grader's own fault must not end the other checks
            message = f"{type(error).__name__}: {error}"
            return _result(row, ERROR, message=message, details=traceback.format_exc().splitlines())


def _build_failure(row: Row, done: sandbox.Completed, taken: Mapping[str, bytes]) -> Result:
    """What is wrong with a submission that does not compile."""
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


def _finish(report: Report, options: Options, started: float) -> Report:
    report.complete = True
    report.seconds = round(time.monotonic() - started, 3)
    if options.output:
        report.write(options.output)
    return report


def _empty_report(source: Path | Submission, options: Options) -> Report:
    level = isolation.choose(options.isolation)
    path = source.source if isinstance(source, Submission) else source
    return Report(
        submission=str(path),
        sha256="",
        profile=options.rubric.profile,
        title=options.rubric.title,
        device=options.device,
        isolation=level,
        seed=options.seed or secrets.token_hex(16),
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        notes=[_UNCONTAINED] if level == "process" else [],
        parts={str(part): name for part, name in options.rubric.parts.items()},
        tasks=dict(options.rubric.tasks),
        rubric=options.rubric.digest,
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


class _Built:
    """A built tree, held in this process, so that no check can change it for the next one."""

    def __init__(self, tree: Path) -> None:
        self.backend = build.backend_of(tree)
        objects = sorted(tree.glob("build/obj/*/*.cu.o"))
        try:
            self.reaches = tuple(name for obj in objects for name in reaching(obj))
        except ValueError as error:
            self.reaches = (str(error),)
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


def _is_hole(task: str, built: _Built, rubric: Rubric) -> bool:
    """Whether the task's hole still stands in the files. It may be unreachable, so this only
    chooses the words for a check that can't run."""
    marks = (f'NotImplementedError("task {task} is not', f'not_written("{task}")')
    return any(built.holds(mark, rubric.files) for mark in marks)


def sentence(name: str, checks: Mapping[str, Check] = CHECKS) -> str:
    """What a check checks, for the student: the first line of its docstring."""
    if name == "build":
        return "the submission compiles"
    return (checks[name].__doc__ or name).strip().partition("\n")[0]


def _with_sentence(row: Row, checks: Mapping[str, Check]) -> Row:
    """The row with its sentence.

    Raises:
        RubricError: there is no such check.
    """
    if row.name != "build" and row.name not in checks:
        raise RubricError(
            f"the rubric names the check {row.name!r}, which is nowhere defined; hint: `checks` in "
            "the course's file names the files that define more than the kit's"
        )
    return replace(row, sentence=sentence(row.name, checks))


def _result(row: Row, status: str, **more: Any) -> Result:
    score = row.points if status == PASS else 0.0
    line, visible = row.sentence, row.visible
    return Result(row.name, row.task, row.points, score, status, line, visibility=visible, **more)


def _skip(row: Row, why: str) -> Result:
    return _result(row, SKIPPED, message=why)


def _view(report: Report, options: Options, *writable: Path) -> isolation.View:
    """What student code sees: its tree, and neither other submissions nor reports."""
    hidden = [isolation.outermost(Path(report.submission).resolve().parent)]
    hidden += [isolation.outermost(options.output.resolve().parent)] if options.output else []
    hidden += [*options.hidden, *options.course.secrets]
    return isolation.View(report.isolation, writable=writable, hidden=tuple(hidden))


def _with_findings(result: Result, explanation: Explanation) -> Result:
    """A failed result with what was found about it, the first finding among its details too."""
    result.findings = explanation.findings
    result.hint = "; ".join(filter(None, (result.hint, explanation.hint)))
    if explanation.facts:
        result.facts["findings"] = explanation.facts
    for found in explanation.findings[:1]:
        result.details.append(": ".join(filter(None, (place_of(found), found["sentence"]))))
    return result
