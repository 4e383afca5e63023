"""The instruction of a fused kernel: statements on values of elements and of rows.

Statements are C with names between two @: @i0@ is an element of the first operand that is read,
@v3@ the value of statement 3. A back end puts its own way to get at them there.
"""

import copy
import dataclasses
import re

from dlsys.dtypes import C_NAMES, FLOAT64

from .expressions import converted
from .instructions import (
    Elementwise,
    Reduce,
    WithOutputs,
    kind_of_stride,
    loops_along,
    runs_by_rows,
)
from .spaces import AxesSpace, Space
from .view import collapsed, loops_of, new_view


@dataclasses.dataclass(frozen=True)
class Statement:
    """One value.

    Attributes:
        code: a C expression.
        dtype: of the value.
        of_row: whether a row has one of it, instead of one an element.
        way: "" or how a row's values of the expression are reduced: "sum", "max", ...
        says: the node that it is of, for a comment.
    """

    code: str
    dtype: object
    of_row: bool = False
    way: str = ""
    says: str = ""


@dataclasses.dataclass(eq=False)
class Fused(WithOutputs):
    """Several instructions as one loop over a space.

    `output` is the first of `outputs`. Operands are the outputs, then the inputs.
    """

    space: Space
    outputs: tuple
    #: For each output the number of the statement whose value it gets.
    stores: tuple
    statements: tuple
    #: For each operand its strides along the space, and whether it is one element of each row.
    lies: tuple
    of_rows: tuple
    given: tuple
    nodes: tuple
    #: The instructions that it stands for.
    members: tuple

    def __post_init__(self):
        shape = self.space.shape
        if self.space.by_rows:
            self.columns = shape[-1]
            self.inner = tuple(strides[-1] for strides in self.lies)
            self.extents, self.strides = collapsed(shape[:-1], [s[:-1] for s in self.lies])
        else:
            self.columns, self.inner = 0, ()
            self.extents, self.strides = loops_of(shape, self.lies)

    @property
    def kinds(self):
        """Of each operand, which innermost stride is compiled in."""
        if self.space.by_rows:
            return tuple(kind_of_stride(stride) for stride in self.inner)
        return tuple(kind_of_stride(strides[-1]) for strides in self.strides)

    @property
    def still(self):
        """Of each operand, whether all rows of the loops share its elements: one axis is inner."""
        if self.space.by_rows or len(self.extents) == 1:
            return (False,) * len(self.dtypes)
        return tuple(not any(strides[:-1]) for strides in self.strides)

    @property
    def _overwrites(self):
        """Whether what it reads is written, too."""
        written = {view.buffer for view in self.outputs}
        return any(view.buffer in written for view in self.inputs)

    @property
    def key(self):
        """All that is compiled in. What comments say of nodes does not count."""
        statements = tuple((s.code, s.dtype, s.of_row, s.way) for s in self.statements)
        return (
            "fused", self.columns, statements, self.stores, self.dtypes, self.of_rows,
            self.kinds, self.still, len(self.given), self._overwrites,
        )  # fmt: skip

    @property
    def numbers(self):
        """p0, p1, ..."""
        return self.given

    @property
    def sizes(self):
        """Rank, extents and strides of the loops; of rows then each operand's innermost stride."""
        strides = (s for each in self.strides for s in each)
        return (len(self.extents), *self.extents, *strides, *self.inner)


@dataclasses.dataclass(eq=False)
class FusedReduce(Fused):
    """Several reductions over the same axes, what is read for them, and what is made of them.

    Its space is an AxesSpace. The first `results` outputs are one number for all elements along the
    axes; then come outputs of each element, and inputs, and room for partial results.
    """

    #: Whether somebody else has gathered what is reduced, and `scratch` holds moments.
    of_moments = False

    def __post_init__(self):
        shape, axes = self.space.shape, self.space.axes
        self.results = sum(self.of_rows[: len(self.outputs)])

        of_inputs = self.lies[len(self.outputs) :]

        def along(chosen, strides):
            return loops_along(chosen, shape, strides, of_inputs)

        kept = [axis for axis in range(len(shape)) if axis not in axes]
        self.kept, self.kept_strides = along(kept, self.lies)
        self.reduced, self.reduced_strides = along(axes, self.lies[self.results :])
        states = [each.scratch.shape[0] // _words(each.kind) for each in self._reductions]
        words = sum(_words(each.kind) for each in self._reductions)
        self.scratch = new_view((max(states) * words,), FLOAT64)

    @property
    def _reductions(self):
        return [each for each in self.members if isinstance(each, Reduce)]

    @property
    def operands(self):
        """Results, other outputs, inputs, scratch."""
        return (*super().operands, self.scratch)

    def from_moments(self, moments):
        """The same of moments, float32 of (outputs, chunks, 3): count, mean, squared distances."""
        made = copy.copy(self)
        made.of_moments, made.scratch = True, moments
        return made

    @property
    def sources(self):
        """The inputs; moments, where these are there."""
        return (*self.inputs, self.scratch) if self.of_moments else self.inputs

    @property
    def written(self):
        """The outputs, and the scratch."""
        return self.outputs if self.of_moments else (*self.outputs, self.scratch)

    @property
    def dtypes(self):
        """Those of outputs and inputs."""
        return tuple(view.dtype for view in super().operands)

    @property
    def by_rows(self):
        """Whether the innermost loop runs along a reduced axis; what all share has no say."""
        numbered = enumerate(self.reduced_strides)
        moving = [i for i, strides in numbered if any(strides)] or range(len(self.reduced_strides))
        kept = [self.kept_strides[i + self.results] for i in moving]
        reduced = [self.reduced_strides[i] for i in moving]
        return runs_by_rows(self.kept, kept, self.reduced, reduced)

    @property
    def kinds(self):
        """Of each operand, which innermost stride is compiled in."""
        inner = self.reduced_strides if self.by_rows else self.kept_strides[self.results :]
        return (*(0 for _ in range(self.results)), *(kind_of_stride(each[-1]) for each in inner))

    @property
    def still(self):
        """Of each operand, whether all reduced elements of a result share its own."""
        moving = (any(strides) for strides in self.reduced_strides)
        return (*(False for _ in range(self.results)), *(not each for each in moving))

    @property
    def key(self):
        """All that is compiled in."""
        statements = tuple((s.code, s.dtype, s.of_row, s.way) for s in self.statements)
        return (
            "fused_reduce", self.by_rows, statements, self.results, self.stores, self.dtypes,
            self.kinds, self.still, len(self.given), self._overwrites, self.of_moments,
        )  # fmt: skip

    @property
    def sizes(self):
        """Of the kept axes rank, extents and strides; the same of the reduced ones, without those
        of results. Chunks of moments come first."""
        kept = (s for each in self.kept_strides for s in each)
        reduced = (s for each in self.reduced_strides for s in each)
        return (
            *([self.scratch.shape[1]] if self.of_moments else []),
            len(self.kept), *self.kept, *kept, len(self.reduced), *self.reduced, *reduced,
        )  # fmt: skip


def _words(kind):
    """Numbers of 8 bytes in which a partial result of a reduction has room."""
    return 3 if kind == "moment" else 1


def fused(members, space, stored):
    """One instruction for several.

    Args:
        members: instructions, in an order in which they may run.
        space: what they loop over.
        stored: buffers that somebody else reads.
    """
    return _Builder(space).built(members, stored)


class _Builder:
    """Gathers operands and statements."""

    def __init__(self, space):
        self._space = space
        self._inputs, self._statements, self._given = {}, [], []
        self._made = {}

    def built(self, members, stored):
        """See fused."""
        outputs = []
        for member in members:
            self._add(member)
            outputs += [(member, view) for view in member.targets if view.buffer in stored]
        reduces = isinstance(self._space, AxesSpace)
        if reduces:  # results first
            outputs.sort(key=lambda each: not self._space.is_of_rows(*each))
        lies = [self._space.lies(*each) for each in outputs]
        of_rows = [self._space.is_of_rows(*each) for each in outputs]
        views = tuple(view for _, view in outputs)
        made = (FusedReduce if reduces else Fused)(
            views[0], tuple(view for view, _, _ in self._inputs.values()), self._space, views,
            tuple(self._made[view.buffer] for view in views), tuple(self._statements),
            (*(each[3] for each in lies), *(each[3] for each in self._inputs)),
            (*of_rows, *(of_row for _, of_row, _ in self._inputs.values())),
            tuple(self._given), tuple(member.node for member in members), tuple(members),
        )  # fmt: skip
        made.node = members[-1].node
        return made

    def _add(self, member):
        values = [self._value(member, view) for view in member.sources]
        first = len(self._given)
        self._given += member.numbers
        self._says, self._of_row = str(member.node), member.output.shape != self._space.shape
        self._dtype = member.output.dtype
        if isinstance(member, Elementwise):
            code = in_statement(member.code, values, member.computed_in, first)
            self._of_row = self._space.is_of_rows(member, member.output)
            self._kept(self._say(code, member.computed_in), member.computed_in)
        elif isinstance(member, Reduce):
            code = in_statement(member.code, values, member.computed_in, first)
            said = self._say(code, member.computed_in, True, member.kind)
            self._kept(said, member.computed_in)
        else:
            getattr(self, "_" + member.kind)(values, first)
        self._made[member.output.buffer] = len(self._statements) - 1

    def _value(self, member, view):
        """(how statements call it, its dtype)."""
        if view.buffer in self._made:
            number = self._made[view.buffer]
            return "@v%d@" % number, self._statements[number].dtype
        lies = self._space.lies(member, view)
        if lies not in self._inputs:
            of_row = self._space.is_of_rows(member, view) or (
                self._space.by_rows and lies[3][-1] == 0
            )
            self._inputs[lies] = (view, of_row, len(self._inputs))
        return "@i%d@" % self._inputs[lies][2], view.dtype

    def _say(self, code, dtype, of_row=None, way=""):
        """Adds a value of a dtype, and then what is kept of it, if that is another dtype."""
        of_row = self._of_row if of_row is None else of_row
        self._statements.append(Statement(code, dtype, of_row, way, self._says))
        name = "@v%d@" % (len(self._statements) - 1)
        return name

    def _kept(self, name, dtype):
        if dtype != self._dtype:
            self._say(converted(name, dtype, self._dtype), self._dtype)

    # Functions of rows, as src/backend has them, in parts.

    def _shifted(self, values, is_safe=False):
        (x, dtype), *_ = values
        most = self._say(x, dtype, True, "max")
        if is_safe:
            most = self._say("{0} - {0} == 0 ? {0} : 0".format(most), dtype, True)
        power = self._say("exp(%s - %s)" % (x, most), dtype, False)
        return x, dtype, most, power, self._say(power, dtype, True, "sum")

    def _softmax(self, values, first):
        _, dtype, _, power, total = self._shifted(values)
        self._say("%s * (1 / %s)" % (power, total), dtype)

    def _log_softmax(self, values, first):
        x, dtype, most, _, total = self._shifted(values)
        total = self._say("log(%s)" % total, dtype, True)
        self._say("%s - %s - %s" % (x, most, total), dtype)

    def _logsumexp(self, values, first):
        _, dtype, most, _, total = self._shifted(values, is_safe=True)
        self._say("log(%s) + %s" % (total, most), dtype)

    def _class_entropy(self, values, first):
        x, dtype, most, _, total = self._shifted(values)
        total = self._say("log(%s)" % total, dtype, True)
        hit = self._say("column == %s ? %s : 0" % (values[1][0], x), dtype, True, "sum")
        said = "-p%d * (%s - %s - %s)" % (first, hit, most, total)
        if self._given[first + 1] != 0:
            everywhere = self._say("%s - %s - %s" % (x, most, total), dtype, True, "sum")
            said += " - p%d * %s" % (first + 1, everywhere)
        self._say(said, dtype)


def in_statement(code, values, computed, first):
    """An expression of x0, x1, ..., of p0, p1, ... and T in a statement's names."""

    def name(match):
        word = match[0]
        if word == "T":
            return C_NAMES[computed]
        number = int(word[1:])
        if word[0] == "p":
            return "%s(p%d)" % (C_NAMES[computed], first + number)
        return converted(*values[number], computed)

    return re.sub(r"\bT\b|\b[px]\d+\b", name, code)
