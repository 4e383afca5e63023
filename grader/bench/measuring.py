"""Measures what is asked for, point by point, within a budget of time.

Sizes grow, so that how long a point will take is known from the one before: what would take too
long is left out, and the result says so.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from dlsys import ndarray
from dlsys._base import _LIB

from . import backends, blocks, machine, nets
from .backends import Backend, Inputs
from .built import check_built
from .command import PARTS
from .operations import BY_NAME, OPERATIONS, Operation
from .timing import by_events, by_host, timed

SIZES = (2, 8, 32, 128, 512, 1024, 2048, 4096, 8192)
#: A step is not begun that will take longer, in seconds.
MOST_SECONDS = 1.5

#: The part of the time that is left which nets, and launches, may take before what follows them.
SHARES = {"nets": 0.4, "blocks": 0.2}

#: Is told what comes next, and which part of all is done.
Say = Callable[[str, float], None]


@dataclass(frozen=True)
class Plan:
    """What is measured, and how long that may take.

    Attributes:
        budget: seconds of a point.
        total: seconds of everything.
        block_n: the most rows of arrays in the sweep over threads a block; None: as they are.
    """

    parts: tuple[str, ...] = PARTS
    sizes: tuple[int, ...] = SIZES
    operations: tuple[Operation, ...] = OPERATIONS
    by_parameters: tuple[nets.Net, ...] = nets.BY_PARAMETERS
    mlp: nets.Net = nets.MLP
    budget: float = 0.03
    total: float = 100.0
    most: float = MOST_SECONDS
    block_n: int | None = None


#: In under a minute on two cores without a GPU.
QUICK = Plan(
    sizes=(2, 32, 128, 512),
    operations=tuple(BY_NAME[name] for name in ("matmul", "multiply", "exp", "softmax")),
    by_parameters=nets.BY_PARAMETERS[::2],
    budget=0.02,
    total=45.0,
    most=0.4,
    block_n=64,
)


@dataclass
class Measuring:
    """A measurement on its way."""

    plan: Plan
    say: Say
    began: float = field(default_factory=time.monotonic)
    until: float = math.inf  # when the part that is measured must have ended
    points: list[dict[str, Any]] = field(default_factory=list)
    #: What was timed last.
    last: Backend | None = None

    def run(self) -> dict[str, Any]:
        """All of it; what is kept as JSON."""
        facts = machine.described(_LIB)
        there, missing = backends.found()
        self.say("compiling kernels", 0.0)
        self._prepare(there)
        compiled = time.monotonic() - self.began
        for part in self.plan.parts:
            self._begin(part)
            if part == "nets":
                self._nets(there)
            elif part == "blocks":
                self._blocks()
            else:
                self._operations(there)
        return {
            "kind": "bench",
            "machine": facts,
            "missing": missing,
            "roofs": self._roofs(facts),
            "seconds": round(time.monotonic() - self.began, 1),
            "compiled_seconds": round(compiled, 1),
            "points": self.points,
        }

    def _prepare(self, there: list[Backend]) -> None:
        wanted = [
            (operation, n, gradients)
            for operation in self.plan.operations
            for n in self.plan.sizes
            for gradients in (False, True)
        ]
        steps = [*self.plan.by_parameters, self.plan.mlp]
        for backend in there:
            some = [each for each in wanted if backend.has(each[0], each[1])]
            backend.prepare(
                some if "ops" in self.plan.parts else [],
                steps if "nets" in self.plan.parts else [],
            )

    def _begin(self, part: str) -> None:
        now, is_last = time.monotonic(), part == self.plan.parts[-1]
        left = self.began + self.plan.total - now
        self.until = now + left * (1.0 if is_last else SHARES.get(part, 1.0))

    @property
    def _is_over(self) -> bool:
        return time.monotonic() > self.until

    def _nets(self, there: list[Backend]) -> None:
        for net in (*self.plan.by_parameters, self.plan.mlp):
            for backend in there:
                self.say(f"{net.name}, {backend.name}", self._share)
                self._point(
                    {"what": "net", "layers": net.layers, "batch": net.batch, "flops": net.flops,
                     "parameters": net.parameters, "where": backend.name},
                    backend, partial(backend.net, net), None,
                )  # fmt: skip

    def _operations(self, there: list[Backend]) -> None:
        last: dict[Any, tuple[int, float]] = {}
        for n in self.plan.sizes:
            drawn: dict[Any, Any] = {}
            for backend in there:
                some = [each for each in self.plan.operations if backend.has(each, n)]
                if some:
                    inputs = Inputs(n, backend.convert, drawn)
                    for operation in some:
                        self.say(f"{operation.name} of {n} x {n}, {backend.name}", self._share)
                        for gradients in (False, True):
                            self._operation(backend, operation, inputs, gradients, last)
                    del inputs
                    gc.collect()

    def _operation(
        self, backend: Backend, operation: Operation, inputs: Inputs, gradients: bool,
        last: dict[Any, tuple[int, float]],
    ) -> None:  # fmt: skip
        n, key = inputs.n, (backend.name, operation.name, gradients)
        facts = {
            "what": "operation", "op": operation.name, "n": n, "where": backend.name,
            "direction": "with gradients" if gradients else "forward",
        }  # fmt: skip
        if not gradients:
            facts.update(flops=operation.flops(n), bytes=4 * operation.floats(n))
        expected = None
        if key in last:
            before, took = last[key]
            # Of small arrays threads take most of the time, which does not grow so.
            took *= 1e-6 if before >= 512 else 2.5e-7
            expected = took * (n / before) ** operation.power
        us = self._point(
            facts, backend, lambda: backend.operation(operation, inputs, gradients), expected
        )
        if us is not None:
            last[key] = n, us

    def _point(
        self, facts: dict[str, Any], backend: Backend, make: Callable[[], Any],
        expected: float | None,
    ) -> float | None:  # fmt: skip
        """Times what is made; the first quartile, which a busy machine changes least, in
        microseconds, or None where it was left out."""
        if self._is_over:
            facts["skipped"] = f"no time left of {self.plan.total:g} s; hint: --seconds"
        elif expected is not None and expected > self.plan.most:
            facts["skipped"] = f"a call would take about {expected:.1f} s"
        if "skipped" in facts:
            self.points.append(facts)
            return None
        if backend is not self.last:
            time.sleep(backends.PAUSE)
            self.last = backend
        backend.begin()
        try:
            timing = timed(backend.clock(make()), self.plan.budget)
        except Exception as error:  # of one library; what else there is goes on
            words = " ".join(str(error).split())[:200]
            self.points.append({**facts, "skipped": f"{type(error).__name__}: {words}"})
            return None
        self.points.append({**facts, "clock": backend.clock_name, **asdict(timing)})
        return timing.us[0]

    def _blocks(self) -> None:
        self.say("threads a block", self._share)
        if self._is_over:
            return
        self.points += blocks.points(self.plan.budget / 2, self.plan.block_n)

    @property
    def _share(self) -> float:
        """How much of all is done, about."""
        count = len(self.plan.by_parameters) + 1 if "nets" in self.plan.parts else 0
        if "ops" in self.plan.parts:
            count += len(self.plan.operations) * len(self.plan.sizes) * 2
        return min(1.0, len(self.points) / max(1, count * 5))

    def _roofs(self, facts: dict[str, Any]) -> list[dict[str, Any]]:
        """What bounds every kernel: copies as measured, and operations."""
        return [*self._gpu_roof(facts), *self._cpu_roof()]

    def _gpu_roof(self, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if ndarray.is_emulated():
            return
        n = max(self.plan.sizes)
        a, b = (ndarray.empty((n, n), ndarray.gpu(0)) for _ in range(2))
        timing = timed(by_events(lambda: a.copyto(b), _LIB), self.plan.budget)
        yield {
            "where": "GPU",
            "bytes_a_second": 8e6 * n * n / timing.us[1],
            "flops_a_second": machine.float32_peak(facts),
            "from": "a copy on the GPU, and its float32 lanes at the highest clock",
        }

    def _cpu_roof(self) -> Iterator[dict[str, Any]]:
        """On all cores: numpy's copy, and the fastest product that was timed on a CPU."""
        rates = [
            point["flops"] * 1e6 / point["us"][1]
            for point in self.points
            if point["what"] == "operation" and point.get("flops") and "us" in point
            and ("CPU" in point["where"] or point["where"] == "numpy")
        ]  # fmt: skip
        a = np.ones(1 << (24 if max(self.plan.sizes) > 512 else 22), np.float32)
        b = np.empty_like(a)
        timing = timed(by_host(lambda: np.copyto(b, a)), self.plan.budget)
        yield {
            "where": "CPU",
            "bytes_a_second": 2e6 * a.nbytes / timing.us[1],
            "flops_a_second": max(rates, default=None),
            "from": "a copy by numpy, on one core, and the fastest product that was timed here",
        }


def measured(plan: Plan, say: Say) -> dict[str, Any]:
    """What a plan asks for, as it is kept: {"machine": ..., "points": [...]}.

    A point has the quartiles of a call in microseconds as "us", or says why it was "skipped".

    Raises:
        BenchError: the solution is not built.
    """
    check_built()
    return Measuring(plan, say).run()
