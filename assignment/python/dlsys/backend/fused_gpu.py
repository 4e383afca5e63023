"""The GPU back end's form of a fused kernel: a thread for each element, or a warp for each row."""

from dlsys.dtypes import C_NAMES

from .expressions import WAYS, converted, named, signature
from .fused import in_statement

_WARP, _PACK = 32, 4


def source(name, columns, *parts):
    """Kernels and launcher of a Fused, from its key."""
    parts = _Parts(name, columns, *parts)
    lines = parts.of_rows_kernel() if columns else parts.of_elements_kernels()
    return "".join(line + "\n" for line in lines)


def source_of_one(name, code, dtypes, computed, kinds, given):
    """The same of an Elementwise."""
    statements = tuple((*each, False, "") for each in statements_of(code, dtypes, computed))
    no, stores = (False,) * len(dtypes), (len(statements) - 1,)
    return source(name, 0, statements, stores, dtypes, no, kinds, no, given, False)


def packs_at_once(dtypes):
    """Packs that a thread reads of each of some inputs at once, so that up to 128 bytes are on
    their way; two of a few."""
    size = _PACK * sum(dtype.itemsize for dtype in dtypes)
    least = 2 if len(dtypes) <= 4 else 1
    return next(many for many in (8, 4, 2, 1) if many * size <= 128 or many == least)


def statements_of(code, dtypes, computed):
    """[(code, dtype)] of an instruction that stands alone: what it computes, and that as the dtype
    of its output, the first of `dtypes`."""
    inputs = [("@i%d@" % i, dtype) for i, dtype in enumerate(dtypes[1:])]
    found = [(in_statement(code, inputs, computed, 0), computed)]
    if dtypes[0] != computed:
        found.append((converted("@v0@", computed, dtypes[0]), dtypes[0]))
    return found


class _Parts:
    """The lines of one fused kernel."""

    def __init__(
        self, name, columns, statements, stores, dtypes, of_rows, kinds, still, given, overwrites
    ):
        self._name, self._columns, self._statements = name, columns, statements
        self._stores, self._dtypes, self._of_rows, self._still = stores, dtypes, of_rows, still
        self._kinds, self._given, self._outputs = kinds, given, len(stores)
        self._types = [C_NAMES[dtype] for dtype in dtypes]
        self._apart = "" if overwrites else "__restrict__ "

    def _pointer(self, number):
        const, word = ("", "out%d" % number)
        if number >= self._outputs:
            const, word = "const ", "in%d" % (number - self._outputs)
        return "%s%s* %s%s" % (const, self._types[number], self._apart, word)

    def _parameters(self, *others):
        pointers = [self._pointer(number) for number in range(len(self._dtypes))]
        numbers = ["double p%d" % i for i in range(self._given)]
        return ", ".join([*pointers, *others, *numbers])

    def _arguments(self, *others):
        pointers = [
            "reinterpret_cast<%s*>(data[%d])" % (self._pointer(number).partition("*")[0], number)
            for number in range(len(self._dtypes))
        ]
        numbers = ["number[%d]" % i for i in range(self._given)]
        return ", ".join([*pointers, *others, *numbers])

    def _values(self, indent, elements):
        """Statements on one element; `elements` are the words for those of the inputs."""
        names = dict(zip(("i%d" % i for i in range(len(elements))), elements))
        lines = []
        for i, (code, dtype, _, _) in enumerate(self._statements):
            type_name = C_NAMES[dtype]
            lines.append("%sconst %s v%d = static_cast<%s>(%s);" % (
                indent, type_name, i, type_name, named(code, names)))  # fmt: skip
            names["v%d" % i] = "v%d" % i
        return lines

    def _launcher(self, *lines):
        return [
            signature(self._name, "cudaStream_t on") + " {",
            *("  " + line for line in lines),
            "}",
        ]

    def of_elements_kernels(self):
        """Long rows that lie side by side go by tiles, short ones by lines or by packs, others one
        by one."""
        count = len(self._dtypes)
        tiled = all(kind == 1 for kind in self._kinds[: self._outputs]) and "s" not in self._kinds
        start = [
            "const Loops<%d> loops(n);" % count,
            "const int64_t total = loops.size();",
            "if (total == 0) return 0;",
        ]
        lines = tiled and any(self._still)
        if lines:
            start += [
                "if (go_by_lines(loops, data)) {",
                "  launch_early(%s_lines, blocks_of_lines(loops, %d), kThreads, 0, on,"
                % (self._name, self._at_once),
                "      %s);" % self._arguments("loops"),
                "  return launched();",
                "}",
            ]
        if tiled:
            start += [
                "if (go_by_packs(loops, data, %d)) {" % self._tile,
                "  launch_early(%s_packs, blocks_for(total / kPack), kThreads, 0, on," % self._name,
                "      %s);" % self._arguments("loops", "total"),
                "  return launched();",
                "}",
                "const Tiles tiles = tiles_of(loops, data, %d);" % self._tile,
                "if (tiles.count > 0) {",
                "  launch_early(%s_tiles, grid_of(tiles.count), kThreads, 0, on," % self._name,
                "      %s);" % self._arguments("loops", "tiles"),
                "  return launched();",
                "}",
            ]
        start += [
            "launch_early(%s_kernel, blocks_for(total), kThreads, 0, on," % self._name,
            "    %s);" % self._arguments("loops", "total"),
            "return launched();",
        ]
        tiles = [*self._tiles_kernel(), *self._packs_kernel()] if tiled else []
        lines = self._lines_kernel() if lines else []
        return [*self._general_kernel(), *tiles, *lines, *self._launcher(*start)]

    def _general_kernel(self):
        """A thread for each element, wherever the operands lie."""
        count, outputs = len(self._dtypes), self._outputs
        elements = ["in%d[from[%d]]" % (i, outputs + i) for i in range(count - outputs)]
        return [
            "__global__ void %s_kernel(%s) {"
            % (self._name, self._parameters("Loops<%d> loops" % count, "int64_t total")),
            "  wait_for_predecessor();",
            "  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;",
            "  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;",
            "  for (; i < total; i += step) {",
            "    int64_t from[%d] = {};" % count,
            "    loops.add_offsets(i, from);",
            *self._values("    ", elements),
            *("    out%d[from[%d]] = v%d;" % (i, i, v) for i, v in enumerate(self._stores)),
            "  }",
            "}",
            "",
        ]

    def _packs_kernel(self):
        """A thread for each pack, of rows that are too short for tiles."""
        count, outputs = len(self._dtypes), self._outputs
        reads, elements = [], []
        for i in range(count - outputs):
            of, at = self._types[outputs + i], "from[%d]" % (outputs + i)
            if self._kinds[outputs + i] == 1:
                read = "const Pack<%s> q%d = *reinterpret_cast<const Pack<%s>*>(in%d + %s);"
                reads.append(read % (of, i, of, i, at))
                elements.append("q%d.values[j]" % i)
            else:
                reads.append("const %s q%d = in%d[%s];" % (of, i, i, at))
                elements.append("q%d" % i)
        results = [(i, self._types[i], value) for i, value in enumerate(self._stores)]
        return [
            "__global__ void %s_packs(%s) {"
            % (self._name, self._parameters("Loops<%d> loops" % count, "int64_t total")),
            "  wait_for_predecessor();",
            "  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kPack;",
            "  int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kPack;",
            "  for (; i < total; i += step) {",
            "    int64_t from[%d] = {};" % count,
            "    loops.add_offsets(i, from);",
            *("    " + line for line in reads),
            *("    Pack<%s> result%d;" % (of, i) for i, of, _ in results),
            "    for (int j = 0; j < kPack; ++j) {",
            *self._values("      ", elements),
            *("      result%d.values[j] = v%d;" % (i, value) for i, _, value in results),
            "    }",
            *(
                "    *reinterpret_cast<Pack<%s>*>(out%d + from[%d]) = result%d;" % (of, i, i, i)
                for i, of, _ in results
            ),
            "  }",
            "}",
            "",
        ]

    @property
    def _at_once(self):
        """Rows of which a thread of the kernel by lines reads at once."""
        numbered = list(enumerate(self._dtypes))[self._outputs :]
        return packs_at_once(
            [of for i, of in numbered if self._kinds[i] == 1 and not self._still[i]]
        )

    def _lines_kernel(self):
        """A thread has a pack of every so many rows; what all rows share it reads once."""
        count, outputs, at_once = len(self._dtypes), self._outputs, self._at_once
        still, declared, reads, elements = [], [], [], []
        for number in range(outputs, count):
            i, of, is_pack = number - outputs, self._types[number], self._kinds[number] == 1
            kind = "Pack<%s>" % of if is_pack else of
            column = " + column" if is_pack else ""
            place = "*reinterpret_cast<const Pack<%s>*>(in%d + %%s)" if is_pack else "in%d[%%s]"
            place %= (of, i) if is_pack else i
            if self._still[number]:
                still.append(
                    "const %s q%d = %s;" % (kind, i, place % ("column" if column else "0"))
                )
            else:
                declared.append("%s q%d[%d];" % (kind, i, at_once))
                at = "own * loops.strides[%d][0]%s" % (number, column)
                reads.append("q%d[u] = %s;" % (i, place % at))
            word = "q%d" % i if self._still[number] else "q%d[u]" % i
            elements.append(word + ".values[j]" if is_pack else word)
        results = [(i, self._types[i], value) for i, value in enumerate(self._stores)]
        each = "for (int u = 0; u < %d; ++u) {" % at_once
        return [
            "__global__ void %s_lines(%s) {"
            % (self._name, self._parameters("Loops<%d> loops" % count)),
            "  wait_for_predecessor();",
            "  const int across = static_cast<int>(loops.inner()) / kPack;",
            "  const int column = static_cast<int>(threadIdx.x) % across * kPack;",
            "  const int64_t rows = loops.extents[0];",
            "  const int64_t step = static_cast<int64_t>(gridDim.x) * (kThreads / across);",
            *("  " + line for line in still),
            "  int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / across)",
            "                + threadIdx.x / across;",
            "  for (; row < rows; row += %d * step) {" % at_once,
            *("    " + line for line in declared),
            "#pragma unroll",
            "    " + each,
            "      const int64_t own = row + u * step < rows ? row + u * step : rows - 1;",
            *("      " + line for line in reads),
            "    }",
            "#pragma unroll",
            "    " + each,
            "      const int64_t own = row + u * step;",
            "      if (own >= rows) break;",
            *("      Pack<%s> result%d;" % (of, i) for i, of, _ in results),
            "      for (int j = 0; j < kPack; ++j) {",
            *self._values("        ", elements),
            *("        result%d.values[j] = v%d;" % (i, value) for i, _, value in results),
            "      }",
            *(
                "      *reinterpret_cast<Pack<%s>*>(out%d + own * loops.strides[%d][0] + column) = "
                "result%d;" % (of, i, i, i)
                for i, of, _ in results
            ),
            "    }",
            "  }",
            "}",
            "",
        ]

    @property
    def _packs(self):
        """Packs that a thread reads of each input at once: 64 bytes of floats are on their way."""
        many = sum(kind == 1 for kind in self._kinds[self._outputs :])
        return 4 if many <= 1 else 2 if many <= 4 else 1

    @property
    def _tile(self):
        """Elements of a block; 256 threads, 4 elements a pack."""
        return 256 * 4 * self._packs

    def _tiles_kernel(self):
        """A block for each part of a row."""
        inputs = [
            (i, self._types[self._outputs + i], self._kinds[self._outputs + i] == 1)
            for i in range(len(self._dtypes) - self._outputs)
        ]
        starts, reads, declared, packed, single = [], [], [], [], []
        for i, of_input, is_pack in inputs:
            at = "in%d%s own.at[%d]" % (i, " +" if is_pack else "", self._outputs + i)
            if is_pack:
                starts.append("const %s* const x%d = %s;" % (of_input, i, at))
                read = "if (p < packs) q%d[u] = reinterpret_cast<const Pack<%s>*>(x%d)[p];"
                reads.append(read % (i, of_input, i))
                declared.append("Pack<%s> q%d[%d];" % (of_input, i, self._packs))
            else:
                value = "in%d[own.at[%d]]" % (i, self._outputs + i)
                starts.append("const %s x%d = %s;" % (of_input, i, value))
            packed.append("q%d[u].values[j]" % i if is_pack else "x%d" % i)
            single.append("x%d[i]" % i if is_pack else "x%d" % i)
        results = [(i, self._types[i], value) for i, value in enumerate(self._stores)]
        each_pack = [
            "for (int u = 0; u < %d; ++u) {" % self._packs,
            "  const int p = u * kThreads + static_cast<int>(threadIdx.x);",
        ]
        count = len(self._dtypes)
        return [
            "__global__ void %s_tiles(%s) {"
            % (self._name, self._parameters("Loops<%d> loops" % count, "Tiles tiles")),
            "  wait_for_predecessor();",
            "  for (int64_t tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {",
            "    const Tile<%d> own(loops, tiles, tile, %d);" % (count, self._tile),
            *("    %s* const y%d = out%d + own.at[%d];" % (t, i, i, i) for i, t, _ in results),
            *("    " + line for line in starts),
            "    const int packs = tiles.packed ? own.count / kPack : 0;",
            "    if (packs > 0) {",
            *("      " + line for line in declared),
            *("      " + line for line in each_pack if reads),
            *("        " + line for line in reads),
            *("      }" for _ in each_pack[:1] if reads),
            *("      " + line for line in each_pack),
            "        if (p >= packs) continue;",
            *("        Pack<%s> result%d;" % (type_name, i) for i, type_name, _ in results),
            "        for (int j = 0; j < kPack; ++j) {",
            *self._values("          ", packed),
            *("          result%d.values[j] = v%d;" % (i, value) for i, _, value in results),
            "        }",
            *(
                "        reinterpret_cast<Pack<%s>*>(y%d)[p] = result%d;" % (type_name, i, i)
                for i, type_name, _ in results
            ),
            "      }",
            "    }",
            "    for (int i = packs * kPack + threadIdx.x; i < own.count; i += kThreads) {",
            *self._values("      ", single),
            *("      y%d[i] = v%d;" % (i, value) for i, _, value in results),
            "    }",
            "  }",
            "}",
            "",
        ]

    def of_rows_kernel(self):
        """A warp for each row; a thread has each 32nd element of it in registers."""
        count, outputs = len(self._dtypes), self._outputs
        names, lines = {}, []
        for i, dtype in enumerate(self._dtypes[outputs:]):
            type_name, number = C_NAMES[dtype], outputs + i
            is_one = self._of_rows[number]
            names["i%d" % i] = "e%d" % i if is_one else "e%d[c]" % i
            if is_one:
                lines.append("const %s e%d = in%d[at[%d]];" % (type_name, i, i, number))
            else:
                lines.append("%s e%d[kEach];" % (type_name, i))
                lines += self._each("e%d[c] = in%d[%s];" % (i, i, self._at(number)))
        for i, (code, dtype, of_row, way) in enumerate(self._statements):
            type_name = C_NAMES[dtype]
            said = "static_cast<%s>(%s)" % (type_name, named(code, names))
            names["v%d" % i] = "v%d" % i if of_row else "v%d[c]" % i
            if way:
                kind = "%s<%s>" % (WAYS[way], type_name)
                lines.append("%s w%d = %s::start();" % (type_name, i, kind))
                lines += self._each("w%d = %s::both(w%d, %s);" % (i, kind, i, said))
                lines.append("const %s v%d = of_warp<%s>(w%d);" % (type_name, i, kind, i))
            elif of_row:
                lines.append("const %s v%d = %s;" % (type_name, i, said))
            else:
                lines.append("%s v%d[kEach];" % (type_name, i))
                lines += self._each("v%d[c] = %s;" % (i, said))
        for i, value in enumerate(self._stores):
            word = names["v%d" % value]
            if self._of_rows[i]:
                lines.append("if (lane == 0) out%d[at[%d]] = %s;" % (i, i, word))
            else:
                lines += self._each("out%d[%s] = %s;" % (i, self._at(i), word))
        steps = ["int64_t step%d" % i for i, kind in enumerate(self._kinds) if kind == "s"]
        given = ["n[%d]" % i for i, kind in enumerate(self._kinds) if kind == "s"]
        return [
            "__global__ void %s_kernel(%s) {"
            % (self._name, self._parameters("Loops<%d> loops" % count, "int64_t rows", *steps)),
            "  wait_for_predecessor();",
            "  const int kColumns = %d, kEach = %d;" % (self._columns, -(-self._columns // _WARP)),
            "  const int lane = threadIdx.x % 32;",
            "  const int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / 32);",
            "  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads / 32);",
            "  for (int64_t row = first + threadIdx.x / 32; row < rows; row += warps) {",
            "    int64_t at[%d] = {};" % count,
            "    loops.add_offsets(row, at);",
            *("    " + line for line in lines),
            "  }",
            "}",
            "",
            *self._launcher(
                "const Loops<%d> loops(n);" % count,
                "const int64_t rows = loops.size();",
                "if (rows == 0) return 0;",
                "launch_early(%s_kernel, blocks_for(rows * 32), kThreads, 0, on," % self._name,
                "    %s);" % self._arguments("loops", "rows", *given),
                "return launched();",
            ),
        ]

    def _at(self, number):
        place = {0: "", 1: " + column", "s": " + column * step%d" % number}[self._kinds[number]]
        return "at[%d]%s" % (number, place)

    def _each(self, line):
        """A loop over the elements of a row that a thread has."""
        return [
            "for (int c = 0; c < kEach; ++c) {",
            "  const int column = c * 32 + lane;",
            "  if (column < kColumns) %s" % line,
            "}",
        ]
