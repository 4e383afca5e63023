"""Means and deviations of a convolution's channels, gathered while its tiles are in registers.

    y = convolution(x, w); m = mean(y); v = variance(y)      y is written, and not read for m and v

Batch norm reads the value of a convolution twice: for mean and variance, and to norm it. A tile
of the value has the moments of its pixels, and these are much less than the value.
"""

from dlsys.dtypes import FLOAT32

from .fused import FusedReduce
from .hopper_last import LastConvolution

#: Batch, height and width.
_AXES = (0, 2, 3)


def with_moments(instructions, kept):
    """The same program, where sums over what a convolution has just made are its tiles' moments.

    Args:
        instructions: in an order in which they may run.
        kept: buffers that are read after the run.
    """
    makers, found = {}, list(instructions)
    for number, each in enumerate(instructions):
        if type(each) is LastConvolution and each.kind == "value" and each.parts == 1:
            makers[each.output.buffer] = number
        elif isinstance(each, FusedReduce):
            places = (makers[view.buffer] for view in each.inputs if view.buffer in makers)
            place = next(places, None)
            if place is not None and _reads_moments(each, found[place].output):
                if not found[place].gathers:
                    found[place] = found[place].with_moments()
                (moments,) = found[place].scratch
                found[number] = each.from_moments(moments)
    return found


def _reads_moments(reduction, value):
    """Whether it sums up the elements of the value, or their squared distances, and nothing
    else."""
    space = reduction.space
    is_of_channels = (space.shape, tuple(space.axes)) == (value.shape, _AXES)
    if not is_of_channels or reduction.results < len(reduction.outputs):
        return False
    elements = [
        view for view, of_row in
        zip(reduction.inputs, reduction.of_rows[len(reduction.outputs) :]) if not of_row
    ]  # fmt: skip
    if elements != [value]:
        return False
    names = {"@i%d@" % reduction.inputs.index(value)}
    for number, each in enumerate(reduction.statements):
        if each.of_row and not each.way:
            continue
        is_value = _unconverted(each.code) in names and each.dtype == FLOAT32
        if not is_value or each.way not in ("", "sum", "moment"):
            return False
        if not each.way:
            names.add("@v%d@" % number)
    return True


def _unconverted(code):
    """A statement's code without what makes a float of a bfloat16, which changes no number."""
    return code.replace("as<float>(", "").replace(")", "")
