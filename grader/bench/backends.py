"""What is compared: how each library makes a call of an operation, or a step of a net.

JAX has to be told before its import that it isn't alone on a GPU.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dlsys
from dlsys import autodiff, ndarray, ops
from dlsys._base import _LIB
from dlsys.backend import cpu, gpu, kernels, program

from . import nets
from .built import gpu_name
from .charts import BASE, TF32
from .machine import cores
from .nets import Net
from .operations import Operation
from .timing import Clock, Run, by_events, by_host

#: JAX compiles for each shape, so that it is timed at fewer.
JAX_SIZES = frozenset({128, 1024, 4096})
#: Seconds after which the threads of a library sleep, that wait busily for more.
PAUSE = 0.05

#: (operation, n, whether gradients are computed too).
Wanted = tuple[Operation, int, bool]


class Inputs:
    """a, b and g, the gradient that comes from above, of n x n; g of n where that is the result."""

    def __init__(self, n: int, convert: Callable[[Any], Any], drawn: dict[Any, Any]) -> None:
        """`drawn` keeps the arrays of numpy for who comes next."""
        self.n, self._convert, self._drawn, self._made = n, convert, drawn, dict[Any, Any]()

    def of(self, operation: Operation) -> list[Any]:
        """What it reads."""
        return [self._one(name, 2) for name in "ab"[: operation.inputs]]

    def above(self, operation: Operation) -> Any:
        """The gradient of its result."""
        return self._one("g", operation.rank)

    def _one(self, name: str, rank: int) -> Any:
        key = (name, rank, self.n)
        if key not in self._drawn:
            random = np.random.default_rng(ord(name))
            self._drawn[key] = random.random((self.n,) * rank, np.float32)
        if key not in self._made:
            self._made[key] = self._convert(self._drawn[key])
        return self._made[key]


@dataclass
class Backend:
    """A library on a device.

    Attributes:
        clock: makes the clock of a call.
        clock_name: events or host.
        operation: (operation, inputs, whether gradients too) -> a call.
        net: a step of a net, as a call.
        convert: a numpy array as the library has it.
        prepare: is called before anything is timed, with all that will be.
        sizes: of operations; None for all.
        operations: their names; None for all.
    """

    name: str
    clock: Callable[[Run], Clock]
    clock_name: str
    operation: Callable[[Operation, Inputs, bool], Run]
    net: Callable[[Net], Run]
    convert: Callable[[Any], Any] = lambda values: values
    prepare: Callable[[list[Wanted], list[Net]], None] = lambda wanted, nets: None
    #: Is called before it is timed.
    begin: Callable[[], None] = lambda: None
    sizes: frozenset[int] | None = field(default=None)
    operations: frozenset[str] | None = field(default=None)

    def has(self, operation: Operation, n: int) -> bool:
        """Whether it is timed there."""
        by_name = self.operations is None or operation.name in self.operations
        return by_name and (self.sizes is None or n in self.sizes)


def _our_operation(
    operation: Operation, gradients: bool, ctx: Any, tf32: bool
) -> tuple[Any, list[Any], Any | None]:
    """(the compiled step, the variables that it reads, that of the gradient from above)."""
    variables = [ops.variable(name) for name in "ab"[: operation.inputs]]
    y = operation.ours(*variables)
    if not gradients:
        return dlsys.compile(y, ctx=ctx, tf32=tf32), variables, None
    above = ops.variable("g")
    grads = autodiff.gradients(ops.sum(y * above), variables)
    return dlsys.compile([y, *grads], ctx=ctx, tf32=tf32), variables, above


def _ours(name: str, ctx: Any, threads: int, tf32: bool = False) -> Backend:
    """Of the solution; with `tf32` what has products alone."""
    on_gpu = ndarray.is_gpu_ctx(ctx)

    def operation(each: Operation, inputs: Inputs, gradients: bool) -> Run:
        step, variables, above = _our_operation(each, gradients, ctx, tf32)
        feeds = dict(zip(variables, inputs.of(each), strict=True))
        if above is not None:
            feeds[above] = inputs.above(each)
        return lambda: step(feeds)

    def net(each: Net) -> Run:
        step, fed = nets.our_step(each, ctx, tf32)
        there = {node: ndarray.array(values, ctx) for node, values in fed.items()}
        return lambda: step(there)

    def prepare(wanted: list[Wanted], steps: list[Net]) -> None:
        keys: dict[Any, None] = {}
        for each, n, gradients in wanted:
            step, variables, above = _our_operation(each, gradients, ctx, tf32)
            feeds = {v: ndarray.empty((n, n), ctx) for v in variables}
            if above is not None:
                feeds[above] = ndarray.empty(each.shape(n), ctx)
            keys.update(dict.fromkeys(kernels.asked_by(lambda s=step, f=feeds: s.run_of(f))))
            if n >= 4096:  # what was laid out for it is large
                gc.collect()
        for each_net in steps:
            step, fed = nets.our_step(each_net, ctx, tf32)
            there = {node: ndarray.empty(values.shape, ctx) for node, values in fed.items()}
            keys.update(dict.fromkeys(kernels.asked_by(lambda s=step, f=there: s.run_of(f))))
        kernels.kernels(gpu if on_gpu else cpu, list(keys))

    return Backend(
        name,
        (lambda run: by_events(run, _LIB)) if on_gpu else by_host,
        "events" if on_gpu else "host",
        operation,
        net,
        lambda values: ndarray.array(values, ctx),
        prepare,
        lambda: program.set_threads(threads),
        operations=frozenset({"matmul"}) if tf32 else None,
    )


def _numpy() -> Backend:
    def operation(each: Operation, inputs: Inputs, gradients: bool) -> Run:
        given = inputs.of(each)
        if gradients:
            above = inputs.above(each)

            def both() -> list[Any]:
                y = each.numpy(np, *given)
                return [y, *each.gradients(above, y, *given)]

            return both
        out = each.numpy(np, *given)
        return lambda: each.numpy(np, *given, out=out)

    return Backend("numpy", by_host, "host", operation, nets.numpy_step)


def _torch() -> Backend:
    import torch

    on_gpu = torch.cuda.is_available()
    device = "cuda" if on_gpu else "cpu"
    wait = torch.cuda.synchronize if on_gpu else lambda: None

    def operation(each: Operation, inputs: Inputs, gradients: bool) -> Run:
        given = inputs.of(each)
        if gradients:
            above = inputs.above(each)
            leaves = [tensor.detach().requires_grad_() for tensor in given]

            def both() -> list[Any]:
                y = each.torch(torch, *leaves)
                return [y.detach(), *torch.autograd.grad(y, leaves, above)]

            return both

        def forward() -> Any:
            with torch.no_grad():
                return each.torch(torch, *given)

        return forward

    def clock(run: Run) -> Clock:
        if on_gpu and not ndarray.is_emulated():
            return by_events(run, _LIB)
        return by_host(run, wait)

    return Backend(
        f"PyTorch, {'GPU' if on_gpu else 'CPU'}",
        clock,
        "events" if on_gpu and not ndarray.is_emulated() else "host",
        operation,
        lambda net: nets.torch_step(net, device),
        lambda values: torch.from_numpy(values).to(device),
    )


def _jax() -> Backend:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
    last: list[Any] = [None]

    def keeping(function: Callable[..., Any], *given: Any) -> Run:
        """Its calls wait for nothing; the clock waits for the last result."""

        def run() -> Any:
            last[0] = function(*given)
            return last[0]

        return run

    def operation(each: Operation, inputs: Inputs, gradients: bool) -> Run:
        given = inputs.of(each)
        if not gradients:
            return keeping(jax.jit(lambda *arrays: each.jax(jax, *arrays)), *given)

        def both(above: Any, *arrays: Any) -> list[Any]:
            y, pull = jax.vjp(lambda *of: each.jax(jax, *of), *arrays)
            return [y, *pull(above)]

        return keeping(jax.jit(both), inputs.above(each), *given)

    on = "CPU" if jax.devices()[0].platform == "cpu" else "GPU"
    return Backend(
        f"JAX, {on}",
        lambda run: by_host(run, lambda: jax.block_until_ready(last[0])),
        "host",
        operation,
        lambda net: keeping(nets.jax_step(net)),
        jax.device_put,
        sizes=JAX_SIZES,
    )


def found() -> tuple[list[Backend], dict[str, str]]:
    """(what there is here, what matters most first; name -> why it isn't there)."""
    count, missing = cores(), dict[str, str]()
    there = [_ours(gpu_name(), ndarray.gpu(0), count), _ours(BASE, ndarray.cpu(0), 1)]
    if not ndarray.is_emulated():
        there.append(_ours(TF32, ndarray.gpu(0), count, tf32=True))
    for name, make in (("PyTorch", _torch), ("JAX", _jax)):
        try:
            there.append(make())
        except Exception as error:  # not installed, or broken: the page says so
            missing[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    if count > 1:
        there.append(_ours("all CPU cores", ndarray.cpu(0), count))
    return [*there, _numpy()], missing
