"""Decides the rows of a rubric in several threads, each row once those it waits for are decided.

A child of the grader dies with the thread that started it (see PR_SET_PDEATHSIG in prctl(2)). So
a row is decided in one thread from its start to its end, and ends its children itself.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.checks.registry import CHECKS, Check
from grader.checks.traits import traits_of
from grader.course.rubric import Row
from grader.report.model import PASS, Result
from grader.sandbox.cancel import Cancelled, cancelled_by

#: The lanes: of rows that use the device, the build among them; and of those that use nothing that
#: was built.
DEVICE, BESIDE = "device", "beside"


@dataclass(frozen=True)
class Job:
    """A row to be decided.

    Attributes:
        row: of the rubric.
        lane: in which it is decided.
        after: names of the rows that are decided before it begins.
    """

    row: Row
    lane: str
    after: frozenset[str]


@dataclass(frozen=True)
class Worker:
    """A thread that decides the jobs of a lane, one after the other; several may share a lane.

    Attributes:
        lane: whose jobs it takes, in their order.
        wanted: is asked in the thread whether it should begin.
    """

    lane: str
    wanted: Callable[[], bool] = lambda: True


def plan(rows: Sequence[Row], backend: str, checks: Mapping[str, Check] = CHECKS) -> list[Job]:
    """Which rows wait for which. What looks at the clock comes last, and alone."""
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
        lane = DEVICE if traits[row.name].device else BESIDE
        jobs.append(Job(row, lane, frozenset(after)))
    return jobs


class Lanes:
    """Jobs, and what has been decided of them."""

    def __init__(self, jobs: Sequence[Job], decide: Callable[[Row, Lanes], Result]) -> None:
        """`decide` is called in a thread of the row's lane. Every name in `after` is that of a
        job, and there is no circle."""
        self._waiting, self._count = list(jobs), len(jobs)
        self._decide = decide
        self._statuses: dict[str, str] = {}
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._done: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()

    @contextlib.contextmanager
    def running(self, workers: Iterable[Worker]) -> Iterator[Iterator[Result]]:
        """Starts the workers, and yields the results in the order in which they come.

        Iterating raises what a worker raised. At the end of the `with`, however that comes about,
        rows that are not decided yet are given up, and their children ended.
        """
        threads = [threading.Thread(target=self._work, args=(worker,)) for worker in workers]
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
        """Whether a row is decided by now."""
        with self._changed:
            return name in self._statuses

    def passed(self, names: Iterable[str]) -> set[str]:
        """Which of these rows have passed. Waits until all of them are decided.

        Raises:
            Cancelled: nobody waits for the results any more.
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

    def _work(self, worker: Worker) -> None:
        try:
            with cancelled_by(self._stop):
                if not worker.wanted():
                    return
                while (job := self._take(worker.lane)) is not None:
                    result = self._decide(job.row, self)
                    self._done.put(result)
                    with self._changed:
                        self._statuses[job.row.name] = result.status
                        self._changed.notify_all()
        except BaseException as error:  # the thread that iterates raises it
            self._done.put(error)

    def _take(self, lane: str) -> Job | None:
        """The lane's next job that may begin, once there is one; None when none is left."""
        with self._changed:
            while True:
                jobs = [job for job in self._waiting if job.lane == lane]
                ready = [job for job in jobs if job.after <= self._statuses.keys()]
                if ready:
                    self._waiting.remove(ready[0])
                if ready or not jobs:
                    return ready[0] if ready else None
                self._wait()
