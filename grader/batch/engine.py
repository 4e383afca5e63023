"""Runs tasks in other processes, on this machine or on a cluster, behind one interface.

An engine makes an Executor, as in concurrent.futures: a pool of processes on this machine, or the
workers of a Dask cluster (https://docs.dask.org, futures). `run` works with either. No task is lost
with a worker that dies. A cluster runs the task elsewhere. After the death of a local pool, each
task that it ran is run again, alone, so that the one to blame is known.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from grader.base.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")

_PDEATHSIG = 1  # of prctl(2)
_LOOK_AGAIN = 5.0  # seconds, for workers that have come since
_ATTEMPTS = 2  # of a task that was under way when a pool broke, and then alone


class EngineError(UsageError):
    """The engine can't be used; the message says what to do."""


@dataclass(frozen=True)
class Done(Generic[T, R]):
    """The end of a task: a value or an error."""

    task: T
    value: R | None = None
    error: BaseException | None = None


@dataclass
class Engine:
    """Where tasks run.

    Attributes:
        name: in words, for people.
        make: makes the executor; called again after it broke.
        width: says how many tasks the executor takes at a time; workers may come and go.
    """

    name: str
    make: Callable[[], Executor]
    width: Callable[[], int]
    _resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def close(self) -> None:
        """Ends what the engine itself started."""
        self._resources.close()


# --- the engines --------------------------------------------------------------------------------


def local(jobs: int, environment: dict[str, str] | None = None, gpus: int = 0) -> Engine:
    """An engine of processes on this machine, with these variables in their environment. If there
    are GPUs, each process sees one of them."""
    context = multiprocessing.get_context("spawn")  # a copy of a process with threads may hang

    def make() -> Executor:
        turns = context.SimpleQueue()
        for number in range(jobs):
            turns.put(number)
        return ProcessPoolExecutor(jobs, context, _begin, (environment or {}, gpus, turns))

    return Engine(f"{jobs} process{'es' * (jobs != 1)} on this machine", make, lambda: jobs)


def gpus() -> int:
    """The number of NVIDIA GPUs that a process here may see."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return len([name for name in named.split(",") if name])
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def _begin(environment: dict[str, str], gpus: int, turns: Any) -> None:
    """Prepares a process of the pool: it ends with its parent, and silently on Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    os.environ.update(environment)
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = _visible(turns.get() % gpus)


def _visible(number: int) -> str:
    """The name of the GPU with this number, among those that this process may see."""
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return named[number] if number < len(named) else str(number)


def cluster(address: str, gpu: bool = False, retries: int = 2, seconds: float = 20.0) -> Engine:
    """An engine of the workers of a Dask cluster at an address. With `gpu`, a task takes one unit
    of the resource GPU, which workers announce: `dask worker ADDRESS --nthreads 1 --resources
    GPU=1`.

    Raises:
        EngineError: distributed is not installed, or nobody answers at the address.
    """
    distributed = _import("distributed", "cluster")
    try:
        client = distributed.Client(address, timeout=seconds)
    except (OSError, ValueError, TimeoutError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address}: {error or type(error).__name__}; "
            "hint: start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from error
    return _of_client(client, f"the cluster at {address}", gpu, retries)


def slurm(jobs: int, options: dict[str, Any], gpu: bool = False, retries: int = 2) -> Engine:
    """An engine of jobs on a Slurm cluster, one worker a job. `options` are those of
    dask_jobqueue.SLURMCluster; Dask's own configuration gives the others.

    Raises:
        EngineError: dask-jobqueue is not installed, or an option is wrong.
    """
    jobqueue, distributed = _import("dask_jobqueue", "cluster"), _import("distributed", "cluster")
    settings: dict[str, Any] = {"cores": 1, "processes": 1, "memory": "4GB"} | options
    if gpu:
        settings["worker_extra_args"] = ["--resources", "GPU=1"]
    try:
        cluster = jobqueue.SLURMCluster(**settings)
    except (TypeError, ValueError) as error:
        what = " ".join(str(error).split())
        raise EngineError(f"Slurm: {what}; hint: --slurm-option walltime=01:00:00") from error
    cluster.scale(jobs=jobs)
    engine = _of_client(distributed.Client(cluster), f"{jobs} jobs of Slurm", gpu, retries)
    engine._resources.callback(cluster.close)
    return engine


def _of_client(client: Any, name: str, gpu: bool, retries: int) -> Engine:
    """An engine whose tasks wait at the scheduler, a few for each worker."""
    resources = {"GPU": 1} if gpu else None

    def make() -> Executor:
        # Not pure: a task that is given again shall run again.
        executor: Executor = client.get_executor(pure=False, retries=retries, resources=resources)
        return executor

    engine = Engine(name, make, lambda: max(2, 2 * sum(client.nthreads().values())))
    engine._resources.callback(client.close)
    return engine


def _import(name: str, extra: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise EngineError(
            f"{name} is not installed; hint: .venv/bin/python -m pip install 'dlsys-kit[{extra}]'"
        ) from error


# --- running ------------------------------------------------------------------------------------


def run(engine: Engine, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[Done[T, R]]:
    """Runs `function` on every task; yields results as they come, in no order.

    Takes a task only when there is room for it, so that few tasks are in memory. An error in a
    task, or the death of its workers, becomes the result of that task; the others go on.
    """
    pending, suspects = iter(tasks), deque[T]()
    flight: dict[Future[R], T] = {}
    executor = engine.make()
    try:
        while True:
            if not suspects:
                _fill(executor, function, pending, flight, suspects, engine.width())
            if not flight and not suspects:
                return
            if suspects and not flight:
                executor, done = _alone(engine, executor, function, suspects.popleft())
                yield done
                continue
            finished, _ = wait(flight, _LOOK_AGAIN, FIRST_COMPLETED)
            for future in finished:
                task = flight.pop(future)
                if isinstance(_error(future), BrokenProcessPool):
                    suspects.append(task)
                else:
                    yield _done(task, future)
            if suspects:  # a broken pool fails all that was in it
                executor = _again(engine, executor)
    finally:
        _end(executor)


def _fill(
    executor: Executor,
    function: Callable[[T], R],
    pending: Iterator[T],
    flight: dict[Future[R], T],
    suspects: deque[T],
    width: int,
) -> None:
    """Gives the executor tasks until it is full. A task that it can't take, because it broke a
    moment ago, waits with those that broke it."""
    while len(flight) < width and not suspects:
        try:
            task = next(pending)
        except StopIteration:
            return
        try:
            flight[executor.submit(function, task)] = task
        except BrokenProcessPool:
            suspects.append(task)


def _alone(
    engine: Engine, executor: Executor, function: Callable[[T], R], task: T
) -> tuple[Executor, Done[T, R]]:
    """Runs a task with no other beside it. If the process dies, this task is to blame."""
    for _ in range(_ATTEMPTS):
        try:
            future = executor.submit(function, task)
        except BrokenProcessPool:  # it broke before this task, which is not to blame
            executor = _again(engine, executor)
            future = executor.submit(function, task)
        wait([future])
        if not isinstance(_error(future), BrokenProcessPool):
            return executor, _done(task, future)
        executor = _again(engine, executor)
    return executor, Done(task, error=_error(future))


def _again(engine: Engine, executor: Executor) -> Executor:
    _end(executor)
    return engine.make()


def _end(executor: Executor) -> None:
    """Ends the executor. A local pool's tasks end with their processes; Dask's executor cancels its
    own."""
    if isinstance(executor, ProcessPoolExecutor):
        executor.shutdown(wait=False, cancel_futures=True)
    else:
        executor.shutdown(wait=False)


def _error(future: Future[R]) -> BaseException | None:
    """Raises EngineError if no worker will ever run the task."""
    try:
        return future.exception()
    except CancelledError as error:
        raise EngineError("the cluster has dropped its tasks; hint: is it running?") from error


def _done(task: T, future: Future[R]) -> Done[T, R]:
    error = _error(future)
    return Done(task, error=error) if error else Done(task, future.result())
