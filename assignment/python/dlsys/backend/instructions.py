"""What a program is made of. Each instruction writes one output view, from input views.

An instruction says what its kernel is (`key`: all that is compiled into it), and what a launch is
told: `sizes`, whole numbers, and `numbers`. A back end writes the kernel of a key as source.
"""

import dataclasses

import numpy as np

from dlsys.ndarray import size_of

from .view import View, broadcast, collapsed, loops_of


@dataclasses.dataclass(eq=False)
class Instruction:
    """The base of all: operands are the output, then the inputs."""

    output: View
    inputs: tuple

    #: Of which node it computes the value or a part of it.
    node = None

    @property
    def operands(self):
        """The views, as a launch gets them."""
        return (self.output, *self.inputs)

    @property
    def sources(self):
        """The views that it reads."""
        return self.inputs

    @property
    def targets(self):
        """The views that it writes its results to."""
        return (self.output,)

    @property
    def written(self):
        """The views that it writes."""
        return self.targets

    @property
    def numbers(self):
        """Numbers that the kernel is given at each launch."""
        return ()

    @property
    def dtypes(self):
        """Those of the operands."""
        return tuple(view.dtype for view in self.operands)


class WithOutputs(Instruction):
    """One with several `outputs`, of which `output` is the first."""

    @property
    def operands(self):
        """The outputs, then the inputs."""
        return (*self.outputs, *self.inputs)

    @property
    def targets(self):
        """The outputs."""
        return self.outputs


def kind_of_stride(stride):
    """What is compiled in of a stride: 0, 1, or that it is another."""
    return stride if stride in (0, 1) else "s"


@dataclasses.dataclass(eq=False)
class Elementwise(Instruction):
    """Each element of the output by a C expression of those of the inputs, a, b, c, and p0, p1."""

    #: The dtype of the expression's variables.
    computed_in: np.dtype
    code: str
    given: tuple = ()

    def __post_init__(self):
        self.inputs = tuple(broadcast(view, self.output.shape) for view in self.inputs)
        strides = [view.strides for view in self.operands]
        self.extents, self.strides = loops_of(self.output.shape, strides)

    @property
    def key(self):
        """The expression, dtypes, and which strides of the innermost loop are 0 or 1."""
        inner = tuple(kind_of_stride(strides[-1]) for strides in self.strides)
        return ("elementwise", self.code, self.dtypes, self.computed_in, inner, len(self.given))

    @property
    def numbers(self):
        """p0, p1, ..."""
        return self.given

    @property
    def sizes(self):
        """Rank, extents, strides of each operand."""
        return (len(self.extents), *self.extents, *(s for each in self.strides for s in each))


@dataclasses.dataclass(eq=False)
class Reduce(Instruction):
    """For each element of the output the sum, product, max or min of an expression over axes.

    The inputs have the shape of `whole`; the output has its axes that are not in `axes`.
    """

    kind: str
    code: str
    #: The dtype of the expression's variables and of the sum.
    computed_in: np.dtype
    whole: tuple
    axes: tuple
    #: Room for partial results, where the back end wants any.
    scratch: View = None

    def __post_init__(self):
        self.inputs = tuple(broadcast(view, self.whole) for view in self.inputs)
        kept = [axis for axis in range(len(self.whole)) if axis not in self.axes]

        of_inputs = [view.strides for view in self.inputs]

        def along(axes, strides):
            return loops_along(axes, self.whole, strides, of_inputs)

        of_output = np.zeros(len(self.whole), int)
        of_output[kept] = self.output.strides
        self.kept, self.kept_strides = along(kept, [of_output.tolist(), *of_inputs])
        self.reduced, self.reduced_strides = along(self.axes, of_inputs)

    @property
    def operands(self):
        """Output, inputs, scratch."""
        return (*super().operands, *([self.scratch] if self.scratch else []))

    @property
    def written(self):
        """The output, and the scratch."""
        return (self.output, *([self.scratch] if self.scratch else []))

    @property
    def dtypes(self):
        """Those of the output and the inputs."""
        return tuple(view.dtype for view in super().operands)

    @property
    def by_rows(self):
        """Whether the innermost loop runs along a reduced axis, and not along a kept one."""
        return runs_by_rows(self.kept, self.kept_strides[1:], self.reduced, self.reduced_strides)

    @property
    def key(self):
        """Kind, expression, dtypes, the order of the loops and the innermost strides."""
        by_rows = self.by_rows
        inner = self.reduced_strides if by_rows else self.kept_strides[1:]
        kinds = tuple(kind_of_stride(strides[-1]) for strides in inner)
        return ("reduce", self.kind, self.code, self.dtypes, self.computed_in, by_rows, kinds)

    @property
    def sizes(self):
        """Of the kept axes rank, extents and all strides; of the reduced ones the same."""
        kept = (s for each in self.kept_strides for s in each)
        reduced = (s for each in self.reduced_strides for s in each)
        return (
            len(self.kept), *self.kept, *kept, len(self.reduced), *self.reduced, *reduced
        )  # fmt: skip


def loops_along(axes, shape, strides, of_inputs):
    """Loops over some axes of a reduction, in the order in which the inputs lie.

    Args:
        axes: of `shape`.
        strides: of each operand, along all axes.
        of_inputs: those of the inputs.
    """
    by = [sum(abs(each[a]) for each in of_inputs) for a in axes]
    return loops_of([shape[a] for a in axes], [[s[a] for a in axes] for s in strides], by)


def runs_by_rows(kept, kept_strides, reduced, reduced_strides):
    """Whether the innermost loop of a reduction should run along a reduced axis.

    Args:
        kept, reduced: extents of the loops along those axes.
        kept_strides, reduced_strides: of what is read, along them.
    """
    rows = sum(strides[-1] in (0, 1) for strides in reduced_strides)
    columns = sum(strides[-1] in (0, 1) for strides in kept_strides)
    is_short = reduced[-1] == 1 or (kept[-1] >= 8 and columns > rows)
    return rows >= columns and not is_short


@dataclasses.dataclass(eq=False)
class Rows(Instruction):
    """A function of whole rows, such as softmax: inputs and output are dense, (rows, columns).

    The output, and indices among the inputs, may have one element a row. `kind` names a function
    of cpu.h and a class of gpu.py.
    """

    kind: str
    given: tuple = ()

    @property
    def key(self):
        """The kind, dtypes, how many numbers."""
        return ("rows", self.kind, self.dtypes, len(self.given))

    @property
    def numbers(self):
        """What the function takes beside rows."""
        return self.given

    @property
    def sizes(self):
        """Numbers of rows and columns of the first input."""
        columns = self.inputs[0].shape[-1]
        return (size_of(self.inputs[0].shape[:-1]), columns)


@dataclasses.dataclass(eq=False)
class MatrixProduct(Instruction):
    """output = a @ b of batches of matrices: each lies in rows or in columns."""

    #: Whether a GPU may round operands of float32 to TF32, for its tensor cores.
    tf32: bool = False

    @property
    def key(self):
        """Dtypes, and whether TF32 is wanted."""
        return ("product", self.dtypes, self.tf32)

    @property
    def sizes(self):
        """m, n, k; steps of a and b; rank, extents and strides of the batch."""
        a, b = self.inputs
        (m, k), n = a.shape[-2:], b.shape[-1]
        batch = self.output.shape[:-2]
        strides = [view.strides[:-2] for view in self.operands]
        extents, strides = collapsed(batch, strides)
        return (
            m, n, k, *steps_of_matrix(a), *steps_of_matrix(b),
            len(extents), *extents, *(s for each in strides for s in each),
        )  # fmt: skip


def steps_of_matrix(view):
    """(from row to row, from column to column), one of them 1; None if it lies in no lines."""
    (rows, columns), (row, column) = view.shape[-2:], view.strides[-2:]
    if 0 in (rows, columns):  # nobody reads it
        return (max(columns, 1), 1)
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return (row, 1)
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return (1, column)
    return None


@dataclasses.dataclass(eq=False)
class Gather(Instruction):
    """output[o, k, i] = x[o, indices[o, k, i], i]; x and output are dense.

    With `adds`, the reverse: output[o, indices[o, k, i], i] += x[o, k, i].
    """

    adds: bool = False

    @property
    def sources(self):
        """The inputs; where it adds, the output too."""
        return (*self.inputs, self.output) if self.adds else self.inputs

    @property
    def key(self):
        """Which way, and dtypes."""
        return ("scatter" if self.adds else "gather", self.dtypes)

    @property
    def sizes(self):
        """Extents of the indices, how many elements they choose from, strides of the indices."""
        indices = self.inputs[1]
        chosen_from = (self.output if self.adds else self.inputs[0]).shape[1]
        return (*indices.shape, chosen_from, *indices.strides)


@dataclasses.dataclass(eq=False)
class Draw(Instruction):
    """Random numbers of a run: "uniform", "normal" or "bernoulli", with two parameters."""

    kind: str = ""
    seed: int = 0
    parameters: tuple = ()
    #: Returns the number of this run, which counts up.
    next_run: object = None

    @property
    def key(self):
        """The kind and the dtype."""
        return ("draw", self.kind, self.dtypes)

    @property
    def numbers(self):
        """The parameters."""
        return self.parameters

    @property
    def sizes(self):
        """How many, the seed as a signed number, and a place for the number of the run."""
        seed = self.seed - (1 << 64) if self.seed >= 1 << 63 else self.seed
        return (size_of(self.output.shape), seed, 0)
