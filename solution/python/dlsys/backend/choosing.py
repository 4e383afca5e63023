"""Which method a convolution has on a real GPU that was left the choice: measured once a shape."""

import functools
import warnings

import numpy as np

from dlsys import ndarray
from dlsys._base import _LIB, DeviceError, check_call
from dlsys.dtypes import FLOAT32
from dlsys.ndarray import size_of

from . import cudnn, gpu, hopper, implicit, kernels, measured

#: Runs of which the median counts.
_RUNS = 5
#: Methods whose instructions have tiles, and how many of these are tried.
TILED = {
    "implicit": (implicit.ImplicitConvolution, 6), "wgmma": (hopper.HopperConvolution, 3)
}  # fmt: skip
#: As many of the likely tiles as there are.
_ALL = 1 << 30
#: What ends the trial of a method, or of a tile: out of memory, or not a case of cuDNN's.
_FAILURES = NotImplementedError, DeviceError, RuntimeError
#: Multiplications of a convolution that may be as fast by plain loops.
_FEW = 1 << 25
#: The method where nobody may measure.
_UNMEASURED = "implicit"


def chosen(program, ctx, tf32, node, inputs):
    """The fastest method of a convolution or its gradient.

    Args:
        program: the class Program.
        ctx: the device.
        tf32: whether tensor cores may multiply.
        node: whose op it is.
        inputs: the views of its inputs.
    """
    if any(each.dtype != FLOAT32 for each in inputs):
        return gpu.CONVOLUTION
    shapes = [each.shape for each in inputs]
    question = (type(node.op).__name__, sorted(node.attributes.items()), shapes, tf32)
    found = measured.known(*question)
    if found is None and kernels.are_only_asked():
        return _UNMEASURED
    if found is None:
        trials = _Trials(program, ctx, tf32, node, shapes)
        found = trials.times()
        measured.keep(found, *question, is_final=trials.is_final)
    return min(found, key=found.get)


def with_known_tiles(instructions, kept):
    """The same program, where products of convolutions have the tiles that were measured."""
    for each in instructions:
        if _has_tile(each):
            plans = each.likely(_ALL)
            tile, parts = measured.known(*each.question) or plans[0]
            known = tuple(tile), parts  # perhaps of an older version
            each.cut(*(known if known in plans else plans[0]))
    return instructions


class _Trials:
    """Runs of one node, by one method after the other.

    Attributes:
        is_final: whether they would end so again: not where memory was full, or no compiler there.
    """

    def __init__(self, program, ctx, tf32, node, shapes):
        self._program, self._ctx, self._tf32, self._node = program, ctx, tf32, node
        self.is_final = True
        self._fed = {
            each: ndarray.array(np.resize(_numbers(), shape), ctx, FLOAT32)
            for each, shape in zip(node.inputs, shapes)
        }

    def times(self):
        """Method -> microseconds, of those that can compute it."""
        found = {}
        for method in self._methods():
            try:
                found[method] = (self._best_tile if method in TILED else self._time)(method)
            except (kernels.CompileError, DeviceError) as error:
                self.is_final = False
                warnings.warn("method %r was not tried: %s" % (method, error), stacklevel=2)
                check_call(_LIB.DLDeviceSynchronize(b"a trial"))  # a GPU that is gone ends it all
            except _FAILURES:
                continue
        return found or {gpu.CONVOLUTION: 0.0}

    def _methods(self):
        said = self._node.attributes
        (images, _, *size), filters = (self._fed[each].shape for each in self._node.inputs[:2])
        found = ["implicit"]
        # Where most products of the implicit method are with 0, or columns are the images.
        with_zeros = said.get("of") == 0 and said["stride"] != (1, 1)
        if with_zeros or said["groups"] > 1 or filters[2:] == (1, 1):
            found.append("im2col")
        found += ["direct"] if images * size_of(size) * size_of(filters) <= _FEW else []
        return [*found, "wgmma", *([] if cudnn.refusal(FLOAT32) else ["cudnn"])]

    def _best_tile(self, method):
        """The time with the best of the likely tiles, which is kept."""
        if method == "implicit":  # for this and what is asked next, in one go
            kernels.kernels(gpu, implicit.keys(self._tf32))
        (made,) = filter(_has_tile, self._made(method).instructions)
        times, failed, cuts = {}, None, made.likely(TILED[method][1])
        kernels.kernels(gpu, [_as([made], cut)[0].key for cut in cuts])  # in one go
        for cut in cuts:
            try:
                times[cut] = self._time(method, lambda each, kept, cut=cut: _as(each, cut))
            except _FAILURES as error:
                failed = error.with_traceback(None)  # which would hold its memory
                self.is_final &= not isinstance(error, DeviceError)
        if not times:
            raise failed
        best = min(times, key=times.get)
        measured.keep(best, *made.question, is_final=self.is_final)
        return times[best]

    def _made(self, method, *passes):
        node = self._node.op(*self._node.inputs, **{**self._node.attributes, "method": method})
        kinds = {each: (array.shape, FLOAT32) for each, array in self._fed.items()}
        return self._program([node], [node], kinds, self._ctx, passes=passes, tf32=self._tf32)

    def _time(self, method, *passes):
        made = self._made(method, *passes)
        made.feed(self._fed)
        made.run()
        timer, found = made.timer(), []
        for _ in range(_RUNS):
            made.run(timer.launch)
            found.append(timer.spans[:, 1].max() - timer.spans[:, 0].min())
        return float(np.median(found))


def _as(instructions, cut):
    """A pass that has products of convolutions cut so."""
    for each in instructions:
        if _has_tile(each):
            each.cut(*cut)
    return instructions


def _has_tile(instruction):
    return isinstance(instruction, tuple(kind for kind, _ in TILED.values()))


@functools.cache
def _numbers():
    return np.random.default_rng(0).normal(size=1 << 20).astype(np.float32)
