"""Matrix products that go on with what they have: bias, relu, a mask, an update, sums of columns.

h = maximum(x @ w + b, 0)               one kernel
w = w - rate * (x.T @ g)                one kernel, which writes where w lies
b = b - rate * sum(g, 0)                the same kernel: it reads g anyway
"""

import dataclasses
import functools
import itertools
import json
import os

import numpy as np

from dlsys.dtypes import C_NAMES, FLOAT32, INT32

from .cudnn import CudnnConvolution
from .dependences import sorted_by_need
from .expressions import named, signature
from .fused import Fused, fused
from .hopper import HopperConvolution
from .implicit import ImplicitConvolution
from .instructions import Elementwise, Instruction, MatrixProduct, Reduce, steps_of_matrix
from .spaces import Space
from .view import new_view

#: Multiprocessors that are kept busy, and blocks of each.
_PROCESSORS, _BLOCKS = 132, 4
#: Of K, the least that is worth a part; elements of c that are many; of multiprocessors, the part
#: that large tiles must keep busy.
_LEAST_DEPTH, _MUCH, _LEAST_FILL = 64, 1 << 20, 2 / 3
#: A block's tile: rows, columns, depth of a slice; rows and columns of a thread; slices in flight,
#: blocks of a multiprocessor; how numbers come to their products. See gemm.cuh.
_LARGE, _MIDDLE = (128, 256, 32, 16, 8, 2, 1, "kTurned"), (64, 64, 16, 4, 4, 4, 3)
_SMALL, _NARROW = (64, 32, 16, 4, 4, 4, 4), (32, 32, 32, 4, 4, 4, 4)
#: Rows of c that a grid has room for.
_MOST_ROWS = 65535 * _NARROW[0]


@dataclasses.dataclass(eq=False)
class Gemm(Instruction):
    """a @ b, then statements on each element, and on the sum of each of b's columns.

    Operands are outputs, a, b, what statements read, and room for parts of sums.
    """

    #: A Fused on the elements of the product, which it reads as `product`.
    epilogue: Fused
    product: object
    #: The same for the sums of b's columns, which it reads as `total`; or None.
    sums: Fused
    total: object
    nodes: tuple
    #: Whether tensor cores multiply, as TF32.
    tf32: bool = False

    def __post_init__(self):
        a, b = self.inputs
        (self.m, self.k), self.n = a.shape, b.shape[-1]
        self.steps = [steps_of_matrix(view) for view in (a, b)]
        flips = (self.steps[0][1] != 1, self.steps[1][1] != 1)
        shape = (self.m, self.n, self.k, *flips)
        self.tile, parts = _choice(self.tf32, *shape)
        tiles = _tiles(self.tile, self.m, self.n)
        slices = -(-self.k // self.tile[2])
        self.of_part = -(-slices // max(1, min(parts, slices)))
        self.parts = -(-slices // self.of_part)
        if self.parts == 1:
            self.tile = whole(self.tile)
        self.scratch = ()
        if self.parts > 1:
            floats = self.parts * tiles * (self.tile[0] + 1) * self.tile[1]
            zeros = np.zeros(tiles, INT32)
            counters = new_view(zeros.shape, INT32, values=zeros)
            self.scratch = (new_view((floats,), FLOAT32), counters)

    @property
    def _followers(self):
        """(the Fused, which view it reads of what is computed here)."""
        found = [(self.epilogue, self.product)]
        return [*found, (self.sums, self.total)] if self.sums else found

    @property
    def targets(self):
        return tuple(view for each, _ in self._followers for view in each.outputs)

    @property
    def _read(self):
        """(view, strides along the rows and columns) of what the statements read from memory."""
        return [
            (view, lies)
            for each, own in self._followers
            for view, lies in zip(each.inputs, each.lies[len(each.outputs) :])
            if view.buffer is not own.buffer
        ]

    @property
    def sources(self):
        return (*self.inputs, *(view for view, _ in self._read))

    @property
    def written(self):
        return (*self.targets, *self.scratch)

    @property
    def operands(self):
        return (*self.targets, *self.sources, *self.scratch)

    @property
    def key(self):
        """Tile, how a and b lie, and the statements of both followers."""
        parts = []
        for each, own in self._followers:
            given = each.inputs.index(next(v for v in each.inputs if v.buffer is own.buffer))
            parts.append((each.key, given))
        along_k = (self.steps[0][1] == 1, self.steps[1][1] != 1)
        packs = tuple(
            max(steps) % 4 == 0 or 1 in view.shape for steps, view in zip(self.steps, self.inputs)
        )
        return ("gemm", self.tile, along_k, packs, tuple(parts))

    @property
    def numbers(self):
        return tuple(number for each, _ in self._followers for number in each.given)

    @property
    def sizes(self):
        """m, n, k, steps of lines of a and b, parts, slices of a part; strides of the others."""
        lead = [max(steps) if steps != (1, 1) else 1 for steps in self.steps]
        strides = []
        for each, own in self._followers:
            outputs = len(each.outputs)
            strides += itertools.chain(*each.lies[:outputs])
            for view, lies in zip(each.inputs, each.lies[outputs:]):
                if view.buffer is not own.buffer:
                    strides += lies
        return (self.m, self.n, self.k, *lead, self.parts, self.of_part, *strides)


@functools.cache
def _tuned():
    """What tools/gemm_ladder.py found best.

    Name of a table -> m, n, k, is a transposed, is b -> (tile, parts).
    """
    with open(os.path.join(os.path.dirname(__file__), "gemm_tiles.json")) as file:
        return {
            name: {tuple(shape): (tuple(tile), parts) for shape, tile, parts in rows}
            for name, rows in json.load(file).items()
        }


def _choice(tf32, m, n, k, flips_a, flips_b):
    """A tile and parts of K for a product: as tuned, else enough blocks for a whole GPU."""
    tuned = _tuned()["tf32" if tf32 else "float32"].get((m, n, k, flips_a, flips_b))
    if tuned:
        return tuned
    # A wave of large tiles may leave most of a GPU idle: 5000 x 256 are 40 of them.
    waves = -(-_tiles(_LARGE, m, n) // _PROCESSORS)
    room = waves * _PROCESSORS * _LARGE[0] * _LARGE[1]
    if not tf32 and m * n >= max(_MUCH, _LEAST_FILL * room):
        tile = _LARGE
    elif n <= 32 or m * n <= 1 << 14:
        tile = _NARROW
    else:
        tile = _MIDDLE if m * n >= _MUCH else _SMALL
    blocks = _PROCESSORS * _BLOCKS // _tiles(tile, m, n)
    tile = (*tile, "kTf32") if tf32 else tile
    return tile, max(1, min(blocks, -(-k // _LEAST_DEPTH)))


def whole(tile):
    """The same tile of a product whose K is in one part."""
    return (*(*tile, "kAsTheyLie")[:8], "kWhole")


def _tiles(tile, m, n):
    return -(-m // tile[0]) * -(-n // tile[1])


def with_tf32(instructions, kept):
    """The same program, whose products of float32 are rounded to TF32 on a GPU."""
    for each in instructions:
        if isinstance(each, MatrixProduct) and set(each.dtypes) == {FLOAT32}:
            each.tf32 = True
        if isinstance(each, (ImplicitConvolution, CudnnConvolution, HopperConvolution)):
            each.use_tf32()
    return instructions


def with_products(instructions, kept):
    """The same program, where products go on with what follows them; arguments as those of fuse."""
    return _Merger(instructions, kept).merged()


class _Merger:
    """Which instructions become part of which product."""

    def __init__(self, instructions, kept):
        self._instructions, self._kept = instructions, kept
        self._readers, self._needs = {}, []
        writers, readers = {}, self._readers
        for number, each in enumerate(instructions):
            found = set()
            for view in each.sources:
                found.update(writers.get(view.buffer, ()))
            for view in each.written:
                found.update(writers.get(view.buffer, ()), readers.get(view.buffer, ()))
            for view in each.sources:
                readers.setdefault(view.buffer, []).append(number)
            for view in each.written:
                writers.setdefault(view.buffer, []).append(number)
            self._needs.append(found - {number})
        self._group = list(range(len(instructions)))

    def merged(self):
        """See with_products."""
        made = {}
        for number, each in enumerate(self._instructions):
            if _is_ours(each):
                whole = self._taken(number)
                if whole is not None:
                    made[number] = whole
        return self._in_order(made)

    def _taken(self, number):
        product = self._instructions[number]
        view = product.output
        following = self._only_reader(view, Space(view.shape))
        reduce, after = self._sum_of_columns(product)
        is_narrow = view.shape[1] <= _NARROW[1]  # cuBLAS takes longer for such
        for members in ([following, reduce, after], [following], [] if is_narrow else [None]):
            members = [each for each in members if each is not None]
            if not (members or is_narrow) or self._makes_circle({number, *members}):
                continue
            for each in members:
                self._group[each] = number
            found = [self._instructions[each] for each in members]
            own = following if following in members else None
            epilogue = self._as_fused(own, view, product.node)
            sums = total = None
            if reduce in members and reduce is not None:
                total = self._instructions[reduce].output
                sums = self._as_fused(after, total, self._instructions[reduce].node)
            nodes = (product.node, *(n for e in found for n in getattr(e, "nodes", (e.node,))))
            made = Gemm(view, product.inputs, epilogue, view, sums, total, nodes, product.tf32)
            made.node = found[-1].node if found else product.node
            return made
        return None

    def _as_fused(self, number, view, node):
        """A follower as a Fused; one that keeps the value of the node, if there is none."""
        space = Space(view.shape)
        if number is None:
            copy = Elementwise(view, (view,), FLOAT32, "x0")
            copy.node = node
            return fused([copy], space, {view.buffer})
        each = self._instructions[number]
        if isinstance(each, Fused):
            return each
        return fused([each], space, {each.output.buffer})

    def _only_reader(self, view, space):
        """The number of the one element-wise instruction that reads a value, element by element."""
        readers = set(self._readers.get(view.buffer, ()))
        if len(readers) != 1 or view.buffer in self._kept or view.buffer.fed is not None:
            return None
        (number,) = readers
        each = self._instructions[number]
        if isinstance(each, Fused):
            fits = each.space == space
        else:
            fits = type(each) is Elementwise and each.output.shape == space.shape
        return number if fits and self._group[number] == number and all(
            read.strides == view.strides and read.shape == view.shape and read.offset == 0
            for read in each.inputs if read.buffer is view.buffer
        ) else None  # fmt: skip

    def _sum_of_columns(self, product):
        """(the number of the sum over all rows of b, that of its only reader); None for none."""
        b = product.inputs[1]
        if steps_of_matrix(b)[1] != 1:
            return None, None
        for number in self._readers.get(b.buffer, ()):
            each = self._instructions[number]
            if (
                isinstance(each, Reduce) and each.kind == "sum" and each.code == "x0"
                and each.axes == (0,) and each.inputs == (b,) and self._group[number] == number
                and each.output.dtype == FLOAT32 and each.output.is_whole
            ):  # fmt: skip
                total = each.output
                if len(total.shape) != 1:
                    return None, None
                return number, self._only_reader(total, Space(total.shape))
        return None, None

    def _makes_circle(self, members):
        """Whether a way leads out of the members, and back in."""
        groups = {self._group[each] for each in members}
        inside = {n for n, group in enumerate(self._group) if group in groups}
        followers = {}
        for number, needs in enumerate(self._needs):
            for each in needs:
                followers.setdefault(self._group[each], set()).add(self._group[number])
        stack = [g for m in groups for g in followers.get(m, ()) if g not in groups]
        seen = set()
        while stack:
            group = stack.pop()
            if group in seen:
                continue
            seen.add(group)
            for each in followers.get(group, ()):
                if each in groups or each in inside:
                    return True
                stack.append(each)
        return False

    def _in_order(self, made):
        leaders = sorted(set(self._group))
        place = {group: i for i, group in enumerate(leaders)}
        needs = [set() for _ in leaders]
        for number, found in enumerate(self._needs):
            own = place[self._group[number]]
            needs[own].update(place[self._group[each]] for each in found)
            needs[own].discard(own)
        order = sorted_by_need(needs)
        return [made.get(leaders[i], self._instructions[leaders[i]]) for i in order]


def _is_ours(instruction):
    """Whether a product is one that gemm.cuh computes; for large ones in TF32, cuBLAS takes a fifth
    of its time."""
    if not isinstance(instruction, MatrixProduct) or len(instruction.output.shape) != 2:
        return False
    (m, n), k = instruction.output.shape, instruction.inputs[0].shape[1]
    is_slow = instruction.tf32 and n > _NARROW[1] and m * n >= _MUCH
    fits = min(m, n, k) > 0 and m <= _MOST_ROWS and max(n, k) < 1 << 30
    return set(instruction.dtypes) == {FLOAT32} and fits and not is_slow


def source(name, tile, along_k, packs, parts):
    """Functors, kernel and launcher of a Gemm, from its key."""
    lines, operands, numbers, strides = [], [], 0, 7
    structs = []
    outputs = sum(len(key[3]) for key, _ in parts)
    first_output, first_input = 0, outputs + 2
    for which, (key, given) in zip(("epilogue", "sums"), parts):
        _, _, statements, stores, dtypes, _, _, _, count, _ = key
        others = [i for i in range(len(dtypes) - len(stores)) if i != given]
        places = [first_output + i for i in range(len(stores))]
        places += [first_input + i for i in range(len(others))]
        axes = 2 if which == "epilogue" else 1
        structs.append(
            _functor(name, which, statements, stores, dtypes, given, others, axes, count)
        )
        values = [
            "reinterpret_cast<%s*>(data[%d])" % (
                ("" if i < len(stores) else "const ") + C_NAMES[dtype], place)
            for i, (place, dtype) in enumerate(zip(places, [
                *dtypes[: len(stores)], *(dtypes[len(stores) + o] for o in others)]))
        ]  # fmt: skip
        values += ["n[%d]" % (strides + i) for i in range(axes * len(places))]
        values += ["number[%d]" % (numbers + i) for i in range(count)]
        operands.append("const %s_%s %s = {%s};" % (name, which, which, ", ".join(values)))
        first_output += len(stores)
        first_input += len(others)
        numbers, strides = numbers + count, strides + axes * len(places)
    if len(parts) == 1:
        operands.append("const NoSums sums;")
    block = "Block<%s>" % ", ".join(map(str, tile))
    a_b = ["reinterpret_cast<const float*>(data[%d])" % (outputs + i) for i in range(2)]

    def launch(is_packed):
        how = ", ".join(
            "true" if each else "false" for each in (*along_k, *(p and is_packed for p in packs))
        )
        return [
            "launch_gemm<%s, %s>(" % (block, how),
            "    %s, %s, extents, epilogue, sums, partial, arrived, on);" % tuple(a_b),
        ]

    lines = [
        *operands,
        "const Extents extents = {static_cast<int>(n[0]), static_cast<int>(n[1]),",
        "                         static_cast<int>(n[2]), n[3], n[4], static_cast<int>(n[5]),",
        "                         static_cast<int>(n[6])};",
        "float* const partial = n[5] > 1 ? reinterpret_cast<float*>(data[%d]) : nullptr;"
        % first_input,
        "unsigned* const arrived = n[5] > 1 ? reinterpret_cast<unsigned*>(data[%d]) : nullptr;"
        % (first_input + 1),
    ]
    if any(packs):
        lines += ["if (is_aligned(data[%d]) && is_aligned(data[%d]))" % (outputs, outputs + 1)]
        lines += ["  " + line for line in launch(True)] + ["else"]
        lines += ["  " + line for line in launch(False)]
    else:
        lines += launch(False)
    text = "\n".join(line for struct in structs for line in struct)
    body = "".join("  %s\n" % line for line in [*lines, "return launched();"])
    return "%s\n%s {\n%s}\n" % (text, signature(name, "cudaStream_t on"), body)


def _functor(name, which, statements, stores, dtypes, given, others, axes, count):
    """Lines of the struct that does the statements on one element."""
    outputs = range(len(stores))
    words = {"i%d" % given: "value"}
    members, steps = [], []
    at = "row * row_%s + column * column_%s" if axes == 2 else "column * column_%s"

    def place(word):
        return at % ((word,) * axes)

    for i in outputs:
        members.append("%s* out%d;" % (C_NAMES[dtypes[i]], i))
        steps.append("out%d" % i)
    for i in others:
        members.append("const %s* in%d;" % (C_NAMES[dtypes[len(stores) + i]], i))
        words["i%d" % i] = "in%d[%s]" % (i, place("in%d" % i))
        steps.append("in%d" % i)
    for word in steps:
        members.append("int64_t %scolumn_%s;" % ("row_%s, " % word if axes == 2 else "", word))
    members += ["double p%d;" % i for i in range(count)]
    lines = []
    for i, (code, dtype, _, _) in enumerate(statements):
        type_name = C_NAMES[dtype]
        lines.append("const %s v%d = static_cast<%s>(%s);" % (
            type_name, i, type_name, named(code, words)))  # fmt: skip
        words["v%d" % i] = "v%d" % i
    lines += ["out%d[%s] = v%d;" % (i, place("out%d" % i), value) for i, value in enumerate(stores)]
    row = "int row, " if axes == 2 else ""
    return [
        "struct %s_%s {" % (name, which),
        "  static const bool wanted = true;",
        *("  " + member for member in members),
        "  __device__ void operator()(%sint column, float value) const {" % row,
        *("    " + line for line in lines),
        "  }",
        "};",
        "",
    ]
