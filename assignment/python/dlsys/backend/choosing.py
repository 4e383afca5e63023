"""Which method a convolution has on a real GPU that was left the choice: measured once a shape.

What may be tried for a program is compiled first, on all processors at once: each trial alone would
wait for a compiler of its own.
"""

import contextlib
import functools
import json
import warnings

import numpy as np

from dlsys import ndarray
from dlsys._base import _LIB, DeviceError, check_call
from dlsys.dtypes import BFLOAT16, FLOAT32
from dlsys.ndarray import size_of

from . import cudnn, gpu, hopper, hopper_last, implicit, kernels, measured
from .windows import Windows

#: Runs of which the median counts.
_RUNS = 5
#: Methods whose instructions have tiles, and how many of these are tried.
TILED = {
    "implicit": (implicit.ImplicitConvolution, 6), "wgmma": (hopper.HopperConvolution, 4)
}  # fmt: skip
#: As many of the likely tiles as there are.
_ALL = 1 << 30
#: What ends the trial of a method, or of a tile: out of memory, or not a case of cuDNN's.
_FAILURES = NotImplementedError, DeviceError, RuntimeError
#: Multiplications of a convolution that may be as fast by plain loops.
_FEW = 1 << 25


class Chooser:
    """Chooses for the convolutions of one program."""

    def __init__(self, program, ctx, tf32):
        """
        Args:
            program: the class Program.
            ctx: the device.
            tf32: whether tensor cores may multiply.
        """
        self._given, self._tf32 = (program, ctx, tf32), tf32
        self._trials = {}

    @property
    def unknown(self):
        """Whether `guess` met one whose methods were never measured."""
        return bool(self._trials)

    def guess(self, node, inputs):
        """The method of a convolution or its gradient: the fastest, or any if none was measured.

        Args:
            node: whose op it is.
            inputs: the views of its inputs.
        """
        if {each.dtype for each in inputs} not in ({FLOAT32}, {BFLOAT16}):
            return gpu.CONVOLUTION
        question = self._question(node, inputs)
        found = measured.known(*question)
        if found is None:
            found = _Trials(*self._given, node, question[2], inputs[0].dtype)
            self._trials[json.dumps(question)] = found
            return found.methods()[0]
        return min(found, key=found.get)

    def compile_all(self):
        """Compiles what trials of the convolutions that it met may run."""
        keys = implicit.keys(self._tf32)
        for each in self._trials.values():
            keys += each.keys()
        try:
            kernels.kernels(gpu, keys)
        except kernels.CompileError:
            return  # each trial says so, and those of other methods go on

    def choose(self, node, inputs):
        """The fastest method, which is measured if nobody has done so yet; arguments as those of
        guess."""
        guess = self.guess(node, inputs)
        question = self._question(node, inputs)
        trials = self._trials.pop(json.dumps(question), None)
        if trials is None:
            return guess
        found = trials.times()
        measured.keep(found, *question, is_final=trials.is_final)
        return min(found, key=found.get)

    def _question(self, node, inputs):
        shapes = [each.shape for each in inputs]
        rounded = self._tf32 if inputs[0].dtype == FLOAT32 else inputs[0].dtype.name
        return type(node.op).__name__, sorted(node.attributes.items()), shapes, rounded


def with_known_tiles(instructions, kept):
    """The same program, where products of convolutions have the tiles that were measured."""
    found = []
    for each in instructions:
        if _has_tile(each):
            plans = each.likely(_ALL)
            tile, parts = measured.known(*each.question) or plans[0]
            known = tuple(tile), parts  # perhaps of an older version
            each.cut(*(known if known in plans else plans[0]))
        found += each.and_sum() if isinstance(each, hopper_last.LastConvolution) else [each]
    return found


class _Trials:
    """Runs of one node, by one method after the other.

    Attributes:
        is_final: whether they would end so again: not where memory was full, or no compiler there.
    """

    def __init__(self, program, ctx, tf32, node, shapes, dtype):
        self._program, self._ctx, self._tf32, self._node = program, ctx, tf32, node
        self._shapes, self._dtype = shapes, dtype
        self.is_final = True

    @functools.cached_property
    def _fed(self):
        return {
            each: ndarray.array(np.resize(_numbers(), shape), self._ctx, self._dtype)
            for each, shape in zip(self._node.inputs, self._shapes)
        }

    def keys(self):
        """Of the kernels that `times` runs."""
        found = []
        for method in self.methods():
            tiled = []

            def look(instructions, kept, tiled=tiled):
                tiled.extend(filter(_has_tile, instructions))
                return instructions

            with contextlib.suppress(*_FAILURES):
                found += kernels.asked_by(functools.partial(self._made, method, tiles=look))
                for made in tiled:
                    cuts = made.likely(TILED[method][1])
                    found += [_as([made], cut)[0].key for cut in cuts]
        return found

    def times(self):
        """Method -> microseconds, of those that can compute it."""
        found = {}
        for method in self.methods():
            try:
                found[method] = (self._best_tile if method in TILED else self._time)(method)
            except (kernels.CompileError, DeviceError) as error:
                self.is_final = False
                warnings.warn("method %r was not tried: %s" % (method, error), stacklevel=2)
                check_call(_LIB.DLDeviceSynchronize(b"a trial"))  # a GPU that is gone ends it all
            except _FAILURES:
                continue
        return found or {gpu.CONVOLUTION: 0.0}

    def methods(self):
        """Those that may be tried; where nobody may measure, it is the first."""
        said = self._node.attributes
        (images, channels, *size), filters = self._shapes[:2]
        is_small = images * size_of(size) * size_of(filters) <= _FEW
        if self._dtype == BFLOAT16 or (self._tf32 and not is_small):
            # Where all have their channels last, none is to be moved, as others would have to be.
            strides = said["stride"], said["padding"], said["dilation"]
            windows = Windows(tuple(size), filters[2:], *strides)
            kind = "weights" if said.get("of") == 1 else "value"
            sizes = (images, channels, filters[0])
            if not hopper_last.refusal(kind, windows, sizes, said["groups"], self._dtype):
                return ["wgmma"]
        if self._dtype == BFLOAT16:
            return [gpu.CONVOLUTION]
        found = ["implicit"]
        # Where most products of the implicit method are with 0, or columns are the images.
        with_zeros = said.get("of") == 0 and said["stride"] != (1, 1)
        if with_zeros or said["groups"] > 1 or filters[2:] == (1, 1):
            found.append("im2col")
        found += ["direct"] if is_small else []
        return [*found, "wgmma", *([] if cudnn.refusal(FLOAT32) else ["cudnn"])]

    def _best_tile(self, method):
        """The time with the best of the likely tiles, which is kept."""
        (made,) = filter(_has_tile, self._made(method, tiles=_as_they_are).instructions)
        times, failed, cuts = {}, None, made.likely(TILED[method][1])
        kernels.kernels(gpu, [_as([made], cut)[0].key for cut in cuts])  # in one go
        for cut in cuts:
            try:
                times[cut] = self._time(method, tiles=lambda each, kept, cut=cut: _as(each, cut))
            except _FAILURES as error:
                failed = error.with_traceback(None)  # which would hold its memory
                self.is_final &= not isinstance(error, DeviceError)
        if not times:
            raise failed
        best = min(times, key=times.get)
        measured.keep(best, *made.question, is_final=self.is_final)
        return times[best]

    def _made(self, method, **tiles):
        node = self._node.op(*self._node.inputs, **{**self._node.attributes, "method": method})
        kinds = {each: (shape, self._dtype) for each, shape in zip(self._node.inputs, self._shapes)}
        return self._program([node], [node], kinds, self._ctx, tf32=self._tf32, **tiles)

    def _time(self, method, **tiles):
        made = self._made(method, **tiles)
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


def _as_they_are(instructions, kept):
    return instructions


def _has_tile(instruction):
    return isinstance(instruction, tuple(kind for kind, _ in TILED.values()))


@functools.cache
def _numbers():
    return np.random.default_rng(0).normal(size=1 << 20).astype(np.float32)
