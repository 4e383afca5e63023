"""What a check is given: random inputs, the submission in a child process, the settings."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from grader.checks.answers import SMALL, require_int
from grader.checks.calls import Call
from grader.checks.compare import Array, Failure
from grader.checks.device import Device
from grader.isolation import View
from grader.remote import MOST_FETCHED, Opaque, Proxy, Remote, StudentError
from grader.rubric import Rubric
from grader.sandbox import Limits

#: Elements, or multiplications of a product, above which a watched call would take seconds.
_MOST_WATCHED = 200_000

__all__ = ["Context", "Failure", "Session", "shape_text"]


def shape_text(value: Any) -> str:
    """A value in the text of a call: the shape of an array, else its repr."""
    return str(value.shape) if isinstance(value, np.ndarray) else repr(value)


class Session:
    """The submission's package in one child process.

    Attributes:
        remote: the child.
        handles: of cuBLAS that calls have left, so far.
        note: is told of every call before it is made, by a function that writes it down.
        ad, nd, gpu_op, gradcheck: proxies of the modules of dlsys.
    """

    def __init__(self, remote: Remote, note: Callable[[Callable[[], Call]], None]) -> None:
        self.remote = remote
        self.note = note
        self.nd = remote.import_("dlsys.ndarray")
        self.gpu_op = remote.import_("dlsys.gpu_op")
        self.gradcheck: Proxy | None = None
        self.ad: Proxy | None = None
        self.handles = 0
        self._device: Device | None = None

    @property
    def device(self) -> Device:
        """The device. First asked for before `autodiff`, so that no Python of the student's
        has run yet."""
        if self._device is None:
            self._device = Device(self.remote)
        return self._device

    def autodiff(self) -> Any:
        """The student's module dlsys.autodiff."""
        if self.ad is None:
            self.ad = self.remote.import_("dlsys.autodiff")
        return self.ad

    def variable(self, name: str) -> Any:
        """A placeholder."""
        return self.autodiff().Variable(name=name)

    def upload(self, values: Array) -> Any:
        """A new NDArray on the GPU."""
        return self.nd.array(np.asarray(values, np.float32), ctx=self.nd.gpu(0))

    def evaluate(
        self, nodes: list[Any], feeds: dict[Any, Array], most: int = MOST_FETCHED
    ) -> list[Any]:
        """Values of nodes on numpy, by the kit's own evaluator in the child: `most` bytes."""
        if self.gradcheck is None:
            self.gradcheck = self.remote.import_("dlsys.gradcheck")
        values = self.remote.fetch(self.gradcheck.evaluate(nodes, feeds), most)
        if not isinstance(values, list) or len(values) != len(nodes):
            raise Failure("the values of the graph did not arrive")
        return values

    def integers(self, proxies: list[Any]) -> list[int]:
        """Fetched ints.

        Raises:
            Failure: one is something else.
        """
        values = self.remote.fetch_all(proxies, most=SMALL)
        for proxy, value in zip(proxies, values, strict=True):
            require_int(value, repr(proxy))
        return values

    def sequence(self, proxy: Any, what: str, item: str) -> int:
        """The length of a list or tuple in the child.

        Raises:
            Failure: it is something else; `what` and `item` say what was expected of what.
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
        raise Failure(f"{what} is no list but a {kind}", hint)


@dataclass
class Context:
    """Everything a check may use.

    Attributes:
        tree: the student's tree, built.
        rubric: the rubric in force.
        backend: "cuda", "emulated", or "" if nothing was built.
        seed: the run's secret, hex.
        check: the check's name.
        seconds: wall time for all its children.
        data: folder of MNIST, or None to search for it.
        env: environment of the children.
        view: what they see beside their tree.
        facts: what the check measured, for the report.
        call: writes down the last call that was made, if the check keeps its calls.
        watched: whether a tool looks at every access: that takes long, so large sizes are
            smaller, and no array may be larger than what it holds.
        tile: sizes are rounded up to its multiples, if it is not 0.
        past: is added to sizes that were rounded up.
        reaches: what the kernels call to get at the system or at the process itself.
        wrap, fds: of every child, see `Remote`.
        reference: a folder with the reference, built, for as long as it is entered.
        share: of the points that passing is worth; a check may lower it.
        awaited: the text of the call whose output is kept, if it is not "".
        outputs: that output, under "thread_by_thread"; where the forms of the emulated GPU
            disagree, that under "fast" too.
    """

    tree: Path
    rubric: Rubric
    backend: str
    seed: str
    check: str
    seconds: float
    data: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    view: View = field(default_factory=View)
    facts: dict[str, Any] = field(default_factory=dict)
    call: Callable[[], Call] | None = None
    watched: bool = False
    tile: int = 0
    past: int = 0
    wrap: tuple[str, ...] = ()
    reaches: tuple[str, ...] = ()
    fds: tuple[int, ...] = ()
    reference: Callable[[], contextlib.AbstractContextManager[Path]] | None = None
    share: float = 1.0
    awaited: str = ""
    outputs: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(f"{self.seed}/{self.check}".encode()).digest()
        self.random = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))

    def require_harmless(self) -> None:
        """Raises Failure if the kernels could change what their process tells of itself."""
        if self.reaches:
            raise Failure(
                f"the kernels call {', '.join(self.reaches)}: that reaches into the system, and "
                "what their process tells of itself can't be believed",
                "kernels and launchers need nothing of the system",
            )

    def keep(self, call: str, output: Array) -> None:
        """Is told what came of a call."""
        if call == self.awaited:
            self.outputs.setdefault("thread_by_thread", output)

    @property
    def thorough(self) -> bool:
        """Whether kernels are checked on many sizes, or on the published ones alone."""
        return self.rubric.sizes == "thorough"

    def sized(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes to use instead of `sizes`: the same, unless `watched` or `tile` is set."""
        if self.watched and np.prod(sizes, dtype=np.int64) > _MOST_WATCHED:
            sizes = tuple(size // 13 | 1 if size >= 100 else size for size in sizes)
        if not self.tile:
            return sizes
        return tuple(-(-size // self.tile) * self.tile + self.past for size in sizes)

    def uniform(self, shape: tuple[int, ...], low: float = -1, high: float = 1) -> Array:
        """Fresh random float32 values."""
        return self.random.uniform(low, high, shape).astype(np.float32)

    def sizes(self, *largest: int) -> tuple[int, ...]:
        """Fresh random sizes from 2 to the largest of each: nobody can have them in a list."""
        return tuple(int(self.random.integers(2, most + 1)) for most in largest)

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """The submission in a new child process."""
        limits = Limits(wall=self.seconds, cpu=None)  # BLAS may keep many cores busy
        paths = [str(self.tree / "python")]
        started = Remote(
            *(sys.executable, paths, self.tree, limits, self.env),
            view=self.view, wrap=self.wrap, fds=self.fds,
        )  # fmt: skip
        with started as remote:
            yield Session(remote, self._note)

    def _note(self, call: Callable[[], Call]) -> None:
        self.call = call


def expect_error(session: Session, value: Any, what: str) -> None:
    """Raises Failure unless fetching `value` raises in the child.

    A hole of the assignment is not the error that is expected.
    """
    try:
        session.remote.fetch(value)
    except StudentError as error:
        if "NotImplementedError" in error.types:
            raise
        return
    raise Failure(f"{what} is accepted; an error was expected")
