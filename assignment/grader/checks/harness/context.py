"""What a check gets: random inputs, the submission, the settings."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from grader.checks.harness.answers import SMALL, require_int
from grader.checks.harness.call_script import Call
from grader.checks.harness.compare import Array, Failure
from grader.checks.harness.device import Device
from grader.student.proxy import MOST_FETCHED, Opaque, Proxies, Proxy, StudentError

#: Elements, or multiplications of a product, above which what is watched is made smaller; and the
#: most that are left then, which take seconds.
_MOST_WATCHED, _LARGE_WATCHED = 200_000, 3_000_000
_AS_USUAL = 0.25

__all__ = ["Context", "Failure", "GpuWork", "Session", "Settings", "shape_text"]


def _divided(sizes: tuple[int, ...], divisor: int) -> tuple[int, ...]:
    """The sizes, divided and made odd; sizes below 100 stay."""
    return tuple(size // divisor | 1 if size >= 100 else size for size in sizes)


def shape_text(value: Any) -> str:
    """A value in the text of a call: the shape of an array, else the repr."""
    return str(value.shape) if isinstance(value, np.ndarray) else repr(value)


class Settings(Protocol):
    """The part of a rubric that checks use."""

    @property
    def sizes(self) -> str:
        """The sizes of kernels' arrays: "thorough" or "published"."""

    @property
    def mnist(self) -> Mapping[str, Any]:
        """How MNIST is trained."""


class GpuWork(NamedTuple):
    """The work of a graph on the GPU for each of its results.

    Attributes:
        words: what it computes.
        fed: the arrays that it is computed from.
        nodes: the number of nodes that are not fed.
        launches: the fewest launches that can do it.
    """

    words: str
    fed: Sequence[Array]
    nodes: int
    launches: int = 2


class Session:
    """The submission's package in one process.

    Attributes:
        remote: that process, seen from here.
        handles: the number of cuBLAS handles that calls have left so far.
        note: called with the text of every call before it is made.
        ad, nd, gpu_op, gradcheck: proxies of the modules of dlsys.
    """

    def __init__(self, remote: Proxies, note: Callable[[Callable[[], Call]], None]) -> None:
        self.remote = remote
        self.note = note
        self.nd = self.module("dlsys.ndarray")
        self.gpu_op = self.module("dlsys.gpu_op")
        self.gradcheck: Proxy | None = None
        self.ad: Proxy | None = None
        self.handles = 0
        self._device: Device | None = None

    @property
    def device(self) -> Device:
        """The device. Ask for it before `autodiff`, while none of the student's Python has run."""
        if self._device is None:
            self._device = Device(self.remote)
        return self._device

    def autodiff(self) -> Any:
        """The student's module dlsys.autodiff."""
        if self.ad is None:
            self.ad = self.module("dlsys.autodiff")
        return self.ad

    def module(self, name: str) -> Proxy:
        """A module, imported."""
        return self.remote.import_(name)

    def allocations(self) -> int:
        """The number of arrays allocated on the GPU so far."""
        return self.device.allocations()[0]

    def feed(self, *arrays: Array) -> None:
        """Notes arrays that the check may upload. Only a session with a far device uses this."""

    def require_made(self, results: Sequence[Array], work: GpuWork) -> None:
        """Raises Failure if there is evidence that this work did not make a fetched result on the
        GPU. The submission's own process offers none."""

    def places(self, result: Array) -> int:
        """The number of places in device memory that the launches for this fetched result wrote to;
        0 if unknown."""
        return 0

    def variable(self, name: str) -> Any:
        """A placeholder."""
        return self.autodiff().Variable(name=name)

    def upload(self, values: Array) -> Any:
        """A new NDArray on the GPU."""
        self.feed(values)
        return self.nd.array(np.asarray(values, np.float32), ctx=self.nd.gpu(0))

    def evaluate(
        self, nodes: list[Any], feeds: dict[Any, Array], most: int = MOST_FETCHED
    ) -> list[Any]:
        """Values of nodes on numpy, by the kit's own evaluator in the child; at most `most`
        bytes."""
        if self.gradcheck is None:
            self.gradcheck = self.remote.import_("dlsys.gradcheck")
        values = self.remote.fetch(self.gradcheck.evaluate(nodes, feeds), most)
        if not isinstance(values, list) or len(values) != len(nodes):
            raise Failure("the process did not return the values of the graph")
        return values

    def integers(self, proxies: list[Any]) -> list[int]:
        """Fetched ints.

        Raises:
            Failure: one of them is something else.
        """
        values = self.remote.fetch_all(proxies, most=SMALL)
        for proxy, value in zip(proxies, values, strict=True):
            require_int(value, repr(proxy))
        return values

    def sequence(self, proxy: Any, what: str, item: str) -> int:
        """The length of a list or tuple in the child.

        Raises:
            Failure: the value is something else. `what` and `item` name, in the message, what was
                expected.
        """
        builtin = self.remote.builtin
        kinds = (builtin("list"), builtin("tuple"))
        if self.remote.fetch(builtin("isinstance")(proxy, kinds)) is True:
            return self.remote.len(proxy)
        got = self.remote.fetch(proxy)
        kind = got.type_name if isinstance(got, Opaque) else type(got).__name__
        hint = (
            "is `return` missing?" if got is None else f"return a list, one {item} for each input"
        )
        raise Failure(f"{what} is not a list but a {kind}", hint)


@dataclass
class Context(ABC):
    """Everything a check may use.

    Attributes:
        tree: the submission's tree, built.
        rubric: what of the rubric in force a check goes by.
        backend: "cuda", "emulated", or "" if nothing was built.
        seed: the run's secret, hex.
        check: the check's name.
        seconds: wall time for all its children.
        data: folder of MNIST, or None to search for it.
        facts: what the check measured, for the report.
        call: writes down the last call that was made, if the check keeps its calls.
        watched: whether a tool looks at every access: that takes long, so large sizes are
            smaller, and no array may be larger than what it holds.
        tile: sizes are rounded up to its multiples, if it is not 0.
        past: is added to sizes that were rounded up.
        share: of the points that passing is worth; a check may lower it.
        awaited: the text of the call whose output is kept, if it is not "".
        outputs: that output, under "thread_by_thread"; where the forms of the emulated GPU
            disagree, that under "fast" too.
    """

    tree: Path
    rubric: Settings
    backend: str
    seed: str
    check: str
    seconds: float
    data: Path | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    call: Callable[[], Call] | None = None
    watched: bool = False
    tile: int = 0
    past: int = 0
    share: float = 1.0
    awaited: str = ""
    outputs: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begin()

    #: Whether every session is a new process, in which nothing has been called yet.
    new_process: ClassVar[bool] = False
    #: Whether a run that is watched has to look like one that is not, for kernels that ask.
    audited: ClassVar[bool] = False

    @abstractmethod
    def session(self) -> AbstractContextManager[Session]:
        """The submission in a new process, or in this one."""

    def on_device(self, body: Callable[[Session], None]) -> None:
        """Runs the part of a check of an executor that needs the device, in a session."""
        with self.session() as session:
            body(session)

    @abstractmethod
    def require_harmless(self) -> None:
        """Raises Failure if the kernels could change what their process says about itself."""

    def begin(self) -> None:
        """Starts the check's random numbers, or restarts them."""
        digest = hashlib.sha256(f"{self.seed}/{self.check}".encode()).digest()
        self.random = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))

    def keep(self, call: str, output: Array) -> None:
        """Notes the output of a call."""
        if call == self.awaited:
            self.outputs.setdefault("thread_by_thread", output)

    @property
    def thorough(self) -> bool:
        """Whether checks of kernels use many sizes; otherwise the published ones alone."""
        return self.rubric.sizes == "thorough"

    def sized(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes to use in place of `sizes`: the same, unless `watched` or `tile` is set.
        Watched sizes are smaller by a random factor."""
        if self.watched and np.prod(sizes, dtype=np.int64) > _MOST_WATCHED:
            larger = _divided(sizes, int(self.random.integers(2, 9)))
            may = np.prod(larger, dtype=np.int64) <= _LARGE_WATCHED
            sizes = larger if may else _divided(sizes, 13)
        if not self.tile:
            return sizes
        return tuple(-(-size // self.tile) * self.tile + self.past for size in sizes)

    def now_and_then(self) -> bool:
        """Whether to run an expensive part: true at random, in one case of a few, so that no
        submission can count on its absence."""
        return bool(self.random.random() < _AS_USUAL)

    def uniform(self, shape: tuple[int, ...], low: float = -1, high: float = 1) -> Array:
        """Fresh random float32 values."""
        values = self.random.random(shape, dtype=np.float32)
        values *= np.float32(high - low)
        values += np.float32(low)
        return values

    def sizes(self, *largest: int) -> tuple[int, ...]:
        """Fresh random sizes from 2 to each of the given ones, so that no submission can list
        them."""
        return tuple(int(self.random.integers(2, most + 1)) for most in largest)

    def note(self, call: Callable[[], Call]) -> None:
        """Receives the text of every call before it is made."""
        self.call = call


def expect_error(session: Session, value: Any, what: str) -> None:
    """Raises Failure unless fetching `value` raises in the child. The error of an unwritten task
    does not count."""
    try:
        session.remote.fetch(value)
    except StudentError as error:
        if "NotImplementedError" in error.types:
            raise
        return
    raise Failure(f"{what} is accepted, expected an error")
