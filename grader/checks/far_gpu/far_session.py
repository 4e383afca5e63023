"""A session whose GPU is in another process, so that what its executor does there can be proved.

What the child tells of its counters and of its arrays, the student's Python may have made up, and
an executor that computes with numpy gives the right values. So the child gets a library without a
GPU, and what concerns the GPU is done in a process that holds no code of the student's (see
far_device.py). That process counts what is allocated, and knows of every float that was read from
it by which kernels it was made, of which uploads. The student's own kernels have no part in that:
with them the check is made once more, as a whole.

What a submission could gain by, and what stands against it:

- Uploading what numpy computed, at once or a number at a time: uploads that were not fed show, and
  so do more constants, steps and pieces than a graph has. A table on the GPU from which each number
  is copied shows by the pieces.
- Not using what was fed: every upload that a result is made of is known.
- A plan that is shown, and another that is used: the places where kernels wrote are known.
- Returning what never lay on the GPU: every result has to be one that was read from there.
- Reading what was left in memory: that nobody wrote it is known.
- Sending what is no call, or nothing: the connection ends, and the check fails.
- Having the device hold and do more than it can: there are bounds, and where it dies all the same,
  and not of the reference, the check fails.
- Calling a function of its own library, which is not there: then the check in the child's own
  process, which can be deceived, may still fail it, and if it passes, a person must look.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader.base.printable import plain
from grader.building.tree import FAR
from grader.checks.far_gpu.far_device import ON_CPU
from grader.checks.harness.child import ChildContext, ChildSession
from grader.checks.harness.compare import Array, Failure
from grader.checks.harness.context import GpuWork, Session
from grader.checks.harness.outcomes import Flag
from grader.sandbox.process import Limits
from grader.sandbox.scratch import scratch_folder
from grader.student.remote import ChildError, Remote, StudentError

_LIBRARY = "build/lib/libc_runtime_api.so"
#: How many steps of a result's history may bring a number from the host, for each node of the
#: graph and beside them; how many steps there may be; and in how many pieces something may go in.
_CONSTANTS, _STEPS, _BESIDE = 1, 4, 8
_MOST_PIECES = 32
_LOST = "the GPU does not "  # how far_device.cc says that nobody is there
_PATIENCE = 60.0  # seconds that the device has more than the child
#: What a child may raise although it may be right, and why.
_UNPROVED = {
    "AttributeError": "it needs its own library",
    "DeviceError": "the device that would prove it refuses what its own may take",
}
_HINT = (
    "upload only the feeds, and compute every other node on the GPU, by "
    "node.op.compute(node, inputs, output, use_numpy=False)"
)


class OnCpuError(StudentError):
    """A kernel was given an array of the CPU, as the device itself has seen. On a GPU that fails,
    also where the emulated one lets it pass."""


class DeviceLost(Exception):
    """The process that keeps the GPU failed. This is the machine's fault or the grader's, unless it
    happens for this submission alone."""


class FarSession(ChildSession):
    """A session with its GPU in another process, `device_process`."""

    def __init__(self, device_process: Remote, *session: Any) -> None:
        self._process = device_process
        self._far = device_process.import_("far_device").FarDevice()
        self._fed: set[str] = set()
        super().__init__(*session)

    def serve(self, fd: int) -> None:
        """Starts the device's answers to what comes over a socket."""
        self._far.serve(fd)
        self._ask(None)

    def feed(self, *arrays: Array) -> None:
        """Notes arrays that the check feeds: results may be made of their uploads."""
        self._fed |= {_hash(array) for array in arrays}

    def allocations(self) -> int:
        """Runs what is queued; returns how often device memory has been allocated."""
        self.remote.flush()
        return int(self.state()["allocations"])

    def places(self, result: Array) -> int:
        """The number of places in device memory that launches wrote to for this fetched result."""
        (ways,) = self._ask(self._far.trace([_hash(result)]))
        return max((int(trace["places"]) for trace in ways), default=0)

    def require_made(self, results: Sequence[Array], work: GpuWork) -> None:
        """Raises Failure unless the device's record shows that the work on the GPU made each
        result."""
        traces = self._ask(self._far.trace([_hash(array) for array in results]))
        found = [[self._not_made(trace, work) for trace in ways] for ways in traces]
        reasons = [
            [*ways, "elsewhere: never read from the GPU"][0] for ways in found if "" not in ways
        ]
        if reasons:
            raise Failure(
                f"{work.words}: the executor was made for the GPU but computes on the CPU: "
                f"{len(reasons)} of {len(results)} results come from {reasons[0]}",
                _HINT,
            )

    def state(self) -> dict[str, Any]:
        """What the device says of itself.

        Raises:
            DeviceLost: nothing, or that it has failed.
        """
        state: dict[str, Any] = self._ask(self._far.state())
        if state["crash"]:
            raise DeviceLost(f"the far device has failed: {state['crash']}")
        return state

    def _not_made(self, trace: dict[str, Any], work: GpuWork) -> str:
        """Why a result was not made on the GPU; "" if it was."""
        uploads = set(trace["uploads"])
        if uploads - self._fed:
            return "uploads of what was never fed"
        if trace["constants"] > _CONSTANTS * work.nodes + _BESIDE:
            return f"{trace['constants']} numbers that were sent one by one"
        if trace["pieces"] > _MOST_PIECES:
            return f"{trace['pieces']} pieces that were put together"
        if trace["steps"] > _STEPS * work.nodes + _BESIDE:
            return f"{trace['steps']} steps, where the graph has {work.nodes} nodes"
        if trace["launches"] < work.launches:
            return f"{trace['launches']} launches of a kernel, where {work.launches} are needed"
        if not {_hash(array) for array in work.fed} <= uploads:
            return "the GPU without all that was fed"
        return "memory that nobody wrote" if trace["unwritten"] else ""

    def _ask(self, value: Any) -> Any:
        try:
            return self._process.fetch(value)
        except ChildError as error:
            raise DeviceLost(f"the far device has failed: {error}") from error


@dataclass
class FarContext(ChildContext):
    """A context that proves what an executor does on the GPU, where the machine allows it.

    Attributes:
        far: the library without a GPU, for a session with its GPU in another process; or None.
        on_far_device: whether the last run used such a session.
    """

    far: Path | None = None
    on_far_device: bool = False

    def on_device(self, body: Callable[[Session], None]) -> None:
        """Runs the device part of an executor's check twice: with the GPU in another process, if
        there is a library for that, and then with the same numbers and the submission's own kernels
        in the child.

        Raises:
            OnCpuError: a kernel was given an array of the CPU.
            Flag: the check passes, but nothing proves that the work ran on the GPU.
        """
        note = ""
        if self.far is not None:
            self.on_far_device = True
            try:
                with _far_session(self, self.far) as session:
                    body(session)
            except OnCpuError:
                raise
            except StudentError as error:
                reasons = [_UNPROVED[name] for name in error.types if name in _UNPROVED]
                if not reasons:
                    raise
                note = (
                    "a person must look: it is not proved that the executor computes on the "
                    f"GPU, since {reasons[0]}: {error}"
                )
            self.on_far_device = False
            self.begin()
        super().on_device(body)
        if note:
            raise Flag(plain(note)[:500])


@contextlib.contextmanager
def _far_session(ctx: ChildContext, library: Path) -> Iterator[Session]:
    ours, theirs = socket.socketpair()
    view = dataclasses.replace(ctx.view, readable=(*ctx.view.readable, FAR), budget=None, gpu=None)
    limits = Limits(wall=ctx.seconds + _PATIENCE, cpu=None)
    with contextlib.ExitStack() as stack:
        stack.callback(ours.close)
        stack.callback(theirs.close)
        folder, tree = (stack.enter_context(scratch_folder()) for _ in range(2))
        shutil.copytree(ctx.tree, tree, dirs_exist_ok=True)
        shutil.copyfile(library, tree / _LIBRARY)
        device = Remote(
            *(sys.executable, [str(FAR)], folder, limits, ctx.env),
            view=view, fds=(ours.fileno(),),
        )  # fmt: skip
        stack.enter_context(device)
        env = {**ctx.env, "DLSYS_FAR_DEVICE": str(theirs.fileno())}
        child = stack.enter_context(ctx.start_child(tree, env, (theirs.fileno(),)))
        session = FarSession(device, child, ctx.note, ctx.unimportable)
        session.serve(ours.fileno())
        ours.close()
        theirs.close()
        try:
            yield session
            child.flush()
        except (ChildError, Failure) as error:
            state = session.state()
            trouble = state["trouble"]
            if isinstance(error, StudentError) and (trouble or _LOST in error.message):
                trouble = trouble or "the connection was closed"
                raise Failure(f"the submission broke off its way to the GPU: {trouble}") from error
            if isinstance(error, StudentError) and state["on_cpu"] and _is_on_cpu(error, ctx.tree):
                found = OnCpuError(error.types, error.message, error.traceback, error.doing)
                found.output = error.output
                raise found from error
            raise


def _is_on_cpu(error: StudentError, tree: Path) -> bool:
    """Whether this refusal ended the work, and the submission's launchers do not look where arrays
    lie: those that do may take them from the CPU."""
    source = tree / "src/gpu_op.cu"
    looks = source.is_file() and "device_type" in source.read_text(errors="replace")
    return ON_CPU in error.message and not looks


def _hash(array: Any) -> str:
    return hashlib.sha256(np.asarray(array, np.float32).tobytes()).hexdigest()
