"""Decides the rows of a rubric in several threads. A row waits for the rows that it needs.

A child process dies with the thread that started it (see PR_SET_PDEATHSIG in prctl(2)). So one
thread decides a row from start to end, and ends the row's children itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from grader.checks.harness.traits import traits_of
from grader.checks.registry import CHECKS, Check
from grader.course.rubric import Row
from grader.report.model import PASS, Result
from grader.sandbox.cancel import Cancelled, cancelled_by

#: The queues: one of rows that use the device, the build among them; one of rows that use nothing
#: that was built.
DEVICE, BESIDE = "device", "beside"


@dataclass(frozen=True)
class Job:
    """A row to be decided.

    Attributes:
        row: the row of the rubric.
        queue: DEVICE or BESIDE.
        after: names of the rows that must be decided before this one begins.
    """

    row: Row
    queue: str
    after: frozenset[str]


@dataclass(frozen=True)
class JobThread:
    """A thread that decides the jobs of a queue, one after the other. Several may share a queue.

    Attributes:
        queue: the queue whose jobs it takes, in their order.
        wanted: says whether the thread should begin; called in that thread.
    """

    queue: str
    wanted: Callable[[], bool] = lambda: True


def jobs_of(rows: Sequence[Row], backend: str, checks: Mapping[str, Check] = CHECKS) -> list[Job]:
    """One job a row, with the rows that it waits for. A check that measures time runs last, and
    alone."""
    names = [row.name for row in rows]
    traits = {name: traits_of(checks.get(name)) for name in names}
    late: list[str] = []
    for row in rows:
        if backend in traits[row.name].timed or not set(late).isdisjoint(row.requires):
            late.append(row.name)
    early = [name for name in names if name not in late]
    jobs = []
    for row in rows:
        after = set(row.requires)
        if traits[row.name].device and row.name != "build":
            after |= {"build"} & set(names)
        if row.name in late:
            after |= {*early, *late[: late.index(row.name)]}
        queue = DEVICE if traits[row.name].device else BESIDE
        jobs.append(Job(row, queue, frozenset(after)))
    return jobs


class Schedule:
    """The jobs of one submission, and which of them are decided."""

    def __init__(self, jobs: Sequence[Job], decide: Callable[[Row, Schedule], Result]) -> None:
        """A thread of the row's queue calls `decide`. Every name in a job's `after` must be the
        name of a job, without a cycle."""
        self._waiting, self._count = list(jobs), len(jobs)
        self._decide = decide
        self._statuses: dict[str, str] = {}
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._done: SimpleQueue[Result | BaseException] = SimpleQueue()

    @contextlib.contextmanager
    def running(self, threads_wanted: Iterable[JobThread]) -> Iterator[Iterator[Result]]:
        """Starts the threads, and yields the results in the order in which they come.

        Iterating raises what a thread raised. The end of the `with`, on success or on an error,
        cancels the rows that are not decided yet and ends their children.
        """
        threads = [
            threading.Thread(target=self._work, args=(job_thread,)) for job_thread in threads_wanted
        ]
        try:
            for thread in threads:
                thread.start()
            yield self._results()
        finally:
            with self._changed:
                self._stop.set()
                self._changed.notify_all()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()

    def has_decided(self, name: str) -> bool:
        """Whether a row is decided."""
        with self._changed:
            return name in self._statuses

    def passed(self, names: Iterable[str]) -> set[str]:
        """The rows among these that passed. Waits until all of them are decided.

        Raises:
            Cancelled: the schedule was stopped.
        """
        wanted = set(names)
        with self._changed:
            while not wanted <= self._statuses.keys():
                self._wait()
            return {name for name in wanted if self._statuses[name] == PASS}

    def _wait(self) -> None:
        if not self._stop.is_set():
            self._changed.wait()
        if self._stop.is_set():
            raise Cancelled

    def _results(self) -> Iterator[Result]:
        for _ in range(self._count):
            done = self._done.get()
            if isinstance(done, BaseException):
                raise done
            yield done

    def _work(self, job_thread: JobThread) -> None:
        try:
            with cancelled_by(self._stop):
                if not job_thread.wanted():
                    return
                while (job := self._take(job_thread.queue)) is not None:
                    result = self._decide(job.row, self)
                    self._done.put(result)
                    with self._changed:
                        self._statuses[job.row.name] = result.status
                        self._changed.notify_all()
        except BaseException as error:  # the thread that iterates raises it
            self._done.put(error)

    def _take(self, name: str) -> Job | None:
        """Waits for the next job of a queue that may begin; None when the queue has none left."""
        with self._changed:
            while True:
                jobs = [job for job in self._waiting if job.queue == name]
                ready = [job for job in jobs if job.after <= self._statuses.keys()]
                if ready:
                    self._waiting.remove(ready[0])
                if ready or not jobs:
                    return ready[0] if ready else None
                self._wait()
