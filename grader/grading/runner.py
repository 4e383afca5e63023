"""Grades one submission: lays it out, builds it, runs the checks, keeps every result."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from threadpoolctl import threadpool_limits

from grader.building import tree as build
from grader.building.snapshot import Snapshot
from grader.checks.far_gpu.far_session import DeviceLost, FarContext
from grader.checks.harness.child import Unimportable
from grader.checks.harness.compare import Failure
from grader.checks.harness.outcomes import Flag, NotHere
from grader.checks.harness.traits import traits_of
from grader.checks.registry import Check, checks_of
from grader.checks.speed import gpu
from grader.course.course import Course, kit_course
from grader.course.rubric import Row, Rubric, selected
from grader.explain.audit import Auditor
from grader.explain.diagnosis import Diagnosis
from grader.explain.rerun import settings_of
from grader.explain.second_opinion import SecondOpinion
from grader.grading import origin, reach
from grader.grading.checked_builds import checked_builds
from grader.grading.hangs import ENDLESS, Hangs
from grader.grading.ignored_files import with_ignored_files
from grader.grading.prebuilt import check_device, far_library, prebuilt, reference
from grader.grading.schedule import BESIDE, DEVICE, JobThread, Schedule, jobs_of
from grader.grading.submission_build import SubmissionBuild
from grader.grading.verdicts import (
    OF_THE_MACHINE,
    bounded,
    failed,
    is_hole,
    not_understood,
    own_fault,
    result_of,
    sentence,
    skip,
    with_audit,
    with_findings,
    with_opinion,
    with_sentence,
)
from grader.report.model import ERROR, FAIL, PASS, SKIPPED, Report, Result
from grader.report.stored import unfinished
from grader.sandbox import gpu_memory, isolation, usage
from grader.sandbox.alone import Alone
from grader.sandbox.scratch import sweep, workspace
from grader.student import blame, endless
from grader.student.remote import ChildError
from grader.submission.contained_reader import load_contained
from grader.submission.reader import Submission, SubmissionError, with_all

__all__ = ["Options", "grade", "sentence"]

# Of processor time that a submission may use, for each second that its checks may take together.
_CPU_PER_SECOND = 2
_MOST_ON_GPU = 3  # checks at the same time


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
        hidden: folders that student code must not see, beside those of submission, output, data.
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
    on_check: Callable[[FarContext], None] = lambda context: None
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
    rows = [with_sentence(row, checks) for row in selected(options.rubric, options.only)]
    report = _empty_report(source, options)
    try:
        with report.timed("reading the submission"):
            submission = _read(source, options)
    except SubmissionError as error:
        report.problem = str(error)
        report.results = [skip(row, "the submission can't be read") for row in rows]
        return _finish(report, options, started)
    report.sha256, report.notes = submission.sha256, [*report.notes, *submission.notes]
    if options.course.is_kit:
        said = origin.note(submission.taken, options.course.skeleton, options.rubric.profile)
        report.notes += [said] * bool(said) + reach.notes(submission.taken)
    order = [row.name for row in rows].index
    with (
        # BLAS's threads wait for each other by spinning, which takes the cores from the children.
        threadpool_limits(1, "blas"),
        _Grading(submission, options, report, checks, rows) as grading,
        grading.results(rows) as results,
    ):
        for result in results:
            result = bounded(with_ignored_files(result, submission))
            report.results.append(result)
            report.results.sort(key=lambda each: order(each.check))
            report.seconds = time.monotonic() - started
            if options.output:
                report.write(options.output)
            on_result(result)
    return _finish(report, options, started)


def _read(source: Path | Submission, options: Options) -> Submission:
    if not isinstance(source, Submission):
        source = load_contained(source, options.rubric.files, options.course.skeleton)
    return with_all(source, options.rubric.required)


class _Grading:
    """One submission, laid out and built. Used in a `with`."""

    def __init__(
        self,
        submission: Submission,
        options: Options,
        report: Report,
        checks: Mapping[str, Check],
        rows: Sequence[Row],
    ) -> None:
        self._submission, self._options, self._report = submission, options, report
        self._checks, self._pristine = checks, options.course.skeleton
        self._built: Snapshot | None = None
        self._kept: dict[str, Result] = {}
        self._budget = usage.Budget(_CPU_PER_SECOND * sum(row.seconds for row in rows))
        self._view = self._seen()
        self._diagnosis = Diagnosis(
            submission.taken,
            options.rubric,
            lambda: prebuilt("emulated", checked=True, source=self._pristine),
            self._view,
            self._pristine,
            checks,
        )
        self._second = SecondOpinion(
            submission.taken, options.rubric, lambda: self._kit, self._view, checks
        )
        budget = options.rubric.audit
        self._auditor = Auditor(self._diagnosis, budget.seconds, budget.total)
        self._auditing, self._audits_begun = threading.Lock(), False
        self._rows: Sequence[Row] = ()
        self._alone = Alone()
        self._hangs = Hangs()
        self._disputed: set[str] = set()  # checks whose result differs between the GPU's forms
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> _Grading:
        with self._report.timed("building the kit"):
            self._kit = prebuilt(self._options.device, source=self._pristine)
            self._far = far_library(self._kit)
        if self._far is None:
            self._report.notes.append("no far device builds to prove that executors use the GPU")
        self._backend = self._report.device = build.backend_of(self._kit)
        device, view = self._options.device, self._seen
        self._build = SubmissionBuild(
            self._submission, self._pristine, self._kit, device, self._report, view, self._second,
            keeps=self._options.keep is not None,
        )  # fmt: skip
        self._kept = self._take_up_unfinished()
        with self._report.timed("laying out the submission"), contextlib.ExitStack() as stack:
            stack.enter_context(self._diagnosis)
            stack.enter_context(self._second)
            self._tree = stack.enter_context(workspace(self._options.keep))
            self._build.lay_out(self._tree, self._submission.taken)
            self._sources = Snapshot(self._tree, sources_only=True)
            stack.enter_context(self._auditor)
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    @contextlib.contextmanager
    def results(self, rows: Sequence[Row]) -> Iterator[Iterator[Result]]:
        """Decides the rows, and yields the results in the order in which they come."""
        self._rows, jobs = rows, jobs_of(rows, self._backend, self._checks)
        if not any(row.name == "build" for row in rows):
            self._try_device()
            self._built = Snapshot(self._tree, self._pristine)
        with Schedule(jobs, self._result).running(self._workers()) as results:
            yield results

    def _workers(self) -> list[JobThread]:
        """One beside the device. On a real GPU several use it, where it may be shared and there
        are processors for them: most of what a check takes is the start of CUDA."""
        on_device = 1
        if self._backend == "cuda":
            on_device = max(1, min(_MOST_ON_GPU, build.processors() // 2))
        more = [JobThread(DEVICE, gpu.is_shared)] * (on_device - 1)
        return [JobThread(BESIDE, self._device_works), JobThread(DEVICE), *more]

    def _take_up_unfinished(self) -> dict[str, Result]:
        """The results that an interrupted run has left. Takes its seed over too."""
        earlier = unfinished(self._options.output, self._report)
        if earlier is None or earlier.device != self._backend:
            return {}
        if self._options.seed not in ("", earlier.seed):
            return {}
        kept = {result.check: result for result in earlier.results if result.status != ERROR}
        self._report.seed = earlier.seed
        self._report.notes.append(f"{len(kept)} results come from an interrupted run")
        return kept

    def _result(self, row: Row, schedule: Schedule) -> Result:
        """Decides a row, whatever happens in it; or the result that an earlier run has left."""
        if row.name == "build":
            built = self._build.run(row, self._tree)
            self._built = built.tree
            self._disputed |= {row.name} if built.is_disputed else set()
            return built.result
        if row.name in self._kept:
            return self._kept[row.name]
        # What the emulated GPU contradicts itself about keeps nothing from being tried.
        passed = schedule.passed(row.requires) | self._disputed
        missing = [name for name in row.requires if name not in passed]
        if missing and is_hole(row.task, self._sources, self._options.rubric):
            return result_of(row, FAIL, message=f"task {row.task} is not written yet")
        if missing:
            return skip(row, f"needs {', '.join(missing)}")
        if not self._needs_build(row) and any(each.name == "build" for each in self._rows):
            # Without what was built, so that a library that dies takes nothing with it. What fails
            # is made sure of in the built tree: honest code may call the library. But a limit that
            # was met would be met once more.
            result, error = self._check(row, self._sources)
            if result.status in (PASS, SKIPPED) or isinstance(error, ENDLESS):
                return result
            schedule.passed(["build"])
        assert self._built is not None
        return self._check(row, self._built)[0]

    def _device_works(self) -> bool:
        if self._built is None:  # while it is being built
            self._try_device()
        return True

    def _try_device(self) -> None:
        with self._report.timed("trying the device"):
            check_device(self._kit)

    def _seen(self, *writable: Path) -> isolation.View:
        return replace(_view(self._report, self._options, *writable), budget=self._budget)

    def _check(
        self, row: Row, snapshot: Snapshot, is_rerun: bool = False
    ) -> tuple[Result, Exception | None]:
        """The result of a check in a copy of its own, and what it raised. A check whose child was
        killed, or ended by an import, runs once more, with evidence of whose fault that is."""
        started, evidence = time.monotonic(), None
        with contextlib.ExitStack() as stack:
            with self._report.timed("copying the built tree"):
                tree = stack.enter_context(snapshot.copy())
            context = self._context(row, tree, snapshot)
            self._options.on_check(context)
            error: Exception | None = None
            if self._is_audited(row) and snapshot is self._built:
                self._begin_audits()
            try:
                with self._alone.exclusively() if is_rerun else self._alone.beside():
                    evidence = blame.Evidence() if is_rerun else None
                    self._checks[row.name](context)
            except Exception as raised:  # the grader's own fault must not end the other checks
                error = raised
            meter = context.view.gpu
            full = meter is not None and meter.was_full(error)
            chance = full or blame.may_be_chance(error) or isinstance(error, DeviceLost)
            again = chance and not is_rerun
            if error is not None and evidence is not None:
                error = evidence.judged(error)
                error = meter.judged(error) if meter is not None else error
            if not again:
                result = self._judge(row, context, error, snapshot)
                if result.status == PASS and self._is_audited(row):
                    result = with_audit(result, self._auditor.result(row.name))
        if again:
            if full:
                gpu_memory.wait_for_room()
            return self._check(row, snapshot, is_rerun=True)
        result.seconds = round(time.monotonic() - started, 3)
        return result, error

    def _is_audited(self, row: Row) -> bool:
        is_of_kernels = traits_of(self._checks[row.name]).kernels
        return is_of_kernels and self._options.rubric.audit.total > 0

    def _needs_build(self, row: Row) -> bool:
        return traits_of(self._checks.get(row.name)).device

    def _begin_audits(self) -> None:
        """Starts the audits of all checks of kernels in this run; once."""
        with self._auditing:
            if self._audits_begun or self._built is None:
                return
            self._audits_begun = True
            rows = [row for row in self._rows if row.name not in self._kept]
            wanted = [row for row in rows if row.name != "build" and self._is_audited(row)]
            self._auditor.begin([self._context(row, self._tree, self._built) for row in wanted])

    def _context(self, row: Row, tree: Path, snapshot: Snapshot) -> FarContext:
        backend = snapshot.backend or self._backend
        return FarContext(
            tree=tree,
            rubric=self._options.rubric,
            backend=backend,
            seed=self._report.seed,
            check=row.name,
            seconds=self._hangs.seconds(row, self._needs_build(row)),
            data=self._options.data,
            env={**build.child_environment(backend), **endless.environment(self._hangs.kernels)},
            reaches=snapshot.reaches,
            unimportable=self._hangs.unimportable_in(snapshot is self._sources),
            view=self._view if backend != "cuda" else replace(self._view, gpu=gpu_memory.Meter()),
            far=self._far,
            reference=lambda: reference(self._options.device, self._options.course.solution),
            checked=lambda: checked_builds(
                self._submission.taken, self._options.course, self._diagnosis
            ),
        )

    def _unexpected(self, row: Row, context: FarContext, error: Exception) -> Result:
        """The result of a check that raised what none should: a fail if the reference passes with
        the same inputs, since only the child's answers differ then; else the grader's error."""
        fault = own_fault(row, error)
        if isinstance(error, OF_THE_MACHINE) or context.reference is None:
            return fault
        try:
            with self._report.timed("running the reference"), context.reference() as tree:
                own = {"tree": tree, "reaches": (), "call": None, "awaited": "", "far": context.far}
                own["view"] = replace(context.view, budget=None)  # which may be spent
                self._checks[row.name](FarContext(**{**settings_of(context), **own}))
        except Exception:  # then it is not known whose fault it is
            return fault
        return not_understood(row, error)

    def _judge(
        self, row: Row, context: FarContext, error: Exception | None, snapshot: Snapshot
    ) -> Result:
        """The result of a check that raised `error`, or nothing, in a copy of the snapshot."""
        if error is None:
            result = result_of(row, PASS, facts=context.facts)
            result.score = round(row.points * context.share, 2)
            return result
        if isinstance(error, Unimportable):
            return skip(row, str(error))
        if isinstance(error, NotHere):
            return result_of(replace(row, points=0), SKIPPED, message=str(error))
        if isinstance(error, Flag):
            return result_of(row, ERROR, message=str(error), facts=context.facts)
        if not isinstance(error, (Failure, ChildError)):
            return self._unexpected(row, context, error)
        self._hangs.note(row, error, self._needs_build(row), snapshot is self._sources)
        if endless.endless_kernel(error):
            context.env |= endless.environment(self._hangs.kernels)
        on_emulated = self._needs_build(row) and context.backend == "emulated"
        result = failed(row, error, context.facts, on_emulated)
        if context.on_far_device:
            return result  # the submission's kernels had no part in it
        try:
            with self._report.timed("second opinions"):
                opinion = self._second.about(context, error, snapshot)
        except Exception as fault:  # whose fault the failure is, is not known then
            return own_fault(row, fault)
        with self._report.timed("explaining failures"):
            result = with_findings(result, self._diagnosis.explain(context, error))
        result = with_opinion(result, opinion)
        if result.status == ERROR:
            self._disputed.add(row.name)
        return result


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
        submission=os.path.abspath(path),
        sha256="",
        profile=options.rubric.profile,
        title=options.rubric.title,
        device=options.device,
        isolation=level,
        seed=options.seed or secrets.token_hex(16),
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        notes=[isolation.UNCONTAINED] if level == "process" else [],
        parts={str(part): name for part, name in options.rubric.parts.items()},
        tasks=dict(options.rubric.tasks),
        rubric=options.rubric.digest,
    )


def _view(report: Report, options: Options, *writable: Path) -> isolation.View:
    """What student code sees: its tree, and neither other submissions nor reports nor the data."""
    hidden = [isolation.outermost(Path(report.submission).resolve().parent)]
    hidden += [isolation.outermost(options.output.resolve().parent)] if options.output else []
    hidden += [*options.hidden, *options.course.secrets, *filter(None, [options.data])]
    return isolation.View(report.isolation, writable=writable, hidden=tuple(hidden))
