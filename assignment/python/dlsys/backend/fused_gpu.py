"""The GPU back end's form of a fused kernel: a thread for each element, or a warp for each row."""

from dlsys.dtypes import C_NAMES

from .expressions import WAYS, named, signature

_WARP = 32


def source(name, columns, statements, stores, dtypes, of_rows, kinds, given):
    """Kernels and launcher of a Fused, from its key."""
    parts = _Parts(name, columns, statements, stores, dtypes, of_rows, kinds, given)
    lines = parts.of_rows_kernel() if columns else parts.of_elements_kernels()
    return "".join(line + "\n" for line in lines)


class _Parts:
    """The lines of one fused kernel."""

    def __init__(self, name, columns, statements, stores, dtypes, of_rows, kinds, given):
        self._name, self._columns, self._statements = name, columns, statements
        self._stores, self._dtypes, self._of_rows = stores, dtypes, of_rows
        self._kinds, self._given, self._outputs = kinds, given, len(stores)
        self._types = [C_NAMES[dtype] for dtype in dtypes]

    def _pointer(self, number):
        const, word = ("", "out%d" % number)
        if number >= self._outputs:
            const, word = "const ", "in%d" % (number - self._outputs)
        return "%s%s* %s" % (const, self._types[number], word)

    def _parameters(self, *others):
        pointers = [self._pointer(number) for number in range(len(self._dtypes))]
        numbers = ["double p%d" % i for i in range(self._given)]
        return ", ".join([*pointers, *others, *numbers])

    def _arguments(self, *others):
        pointers = [
            "reinterpret_cast<%s*>(data[%d])" % (self._pointer(number).rpartition("*")[0], number)
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
        return [signature(self._name) + " {", *("  " + line for line in lines), "}"]

    def of_elements_kernels(self):
        """Elements that lie dense go by packs of four; for all others places are computed."""
        count, inputs = len(self._dtypes), range(len(self._dtypes) - self._outputs)
        loops = "Loops<%d> loops" % count
        lines = [
            "__global__ void %s_kernel(%s) {"
            % (self._name, self._parameters(loops, "int64_t total")),
            "  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;",
            "  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;",
            "  for (; i < total; i += step) {",
            "    int64_t from[%d] = {};" % count,
            "    loops.add_offsets(i, from);",
            *self._values("    ", ["in%d[from[%d]]" % (i, self._outputs + i) for i in inputs]),
            *("    out%d[from[%d]] = v%d;" % (i, i, v) for i, v in enumerate(self._stores)),
            "  }",
            "}",
            "",
        ]
        start = [
            "const int64_t* rest = n;",
            "const Loops<%d> loops(rest);" % count,
            "const int64_t total = loops.size();",
            "if (total == 0) return 0;",
        ]
        outputs_are_dense = all(kind == 1 for kind in self._kinds[: self._outputs])
        if outputs_are_dense and "s" not in self._kinds:
            lines += self._dense_kernel()
            start += [
                "if (loops.rank == 1 && are_aligned(data, %d)) {" % count,
                "  %s_dense<<<blocks_for((total + kPack - 1) / kPack), kThreads>>>(" % self._name,
                "      %s);" % self._arguments("total"),
                "  return launched();",
                "}",
            ]
        start += [
            "%s_kernel<<<blocks_for(total), kThreads>>>(" % self._name,
            "    %s);" % self._arguments("loops", "total"),
            "return launched();",
        ]
        return lines + self._launcher(*start)

    def _dense_kernel(self):
        inputs = range(len(self._dtypes) - self._outputs)
        is_pack = [self._kinds[self._outputs + i] == 1 for i in inputs]
        reads = [
            "    const auto pack%d = reinterpret_cast<const Pack<%s>*>(in%d)[i];"
            % (i, self._types[self._outputs + i], i)
            for i in inputs
            if is_pack[i]
        ]
        packed = ["pack%d.values[j]" % i if is_pack[i] else "in%d[0]" % i for i in inputs]
        single = ["in%d[%s]" % (i, "last" if is_pack[i] else "0") for i in inputs]
        results = list(enumerate(self._stores))
        return [
            "__global__ void %s_dense(%s) {" % (self._name, self._parameters("int64_t total")),
            "  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;",
            "  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;",
            "  for (int64_t i = thread; i < total / kPack; i += step) {",
            *reads,
            *("    Pack<%s> result%d;" % (self._types[i], i) for i, _ in results),
            "    for (int j = 0; j < kPack; ++j) {",
            *self._values("      ", packed),
            *("      result%d.values[j] = v%d;" % each for each in results),
            "    }",
            *(
                "    reinterpret_cast<Pack<%s>*>(out%d)[i] = result%d;" % (self._types[i], i, i)
                for i, _ in results
            ),
            "  }",
            "  const int64_t last = total / kPack * kPack + thread;",
            "  if (last < total) {",
            *self._values("    ", single),
            *("    out%d[last] = v%d;" % each for each in results),
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
        given = ["rest[%d]" % i for i, kind in enumerate(self._kinds) if kind == "s"]
        return [
            "__global__ void %s_kernel(%s) {"
            % (self._name, self._parameters("Loops<%d> loops" % count, "int64_t rows", *steps)),
            "  const int kColumns = %d, kEach = %d;"
            % (self._columns, -(-self._columns // _WARP)),
            "  const int lane = threadIdx.x % 32;",
            "  const int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / 32);",
            "  int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;",
            "  for (; row < rows; row += warps) {",
            "    int64_t at[%d] = {};" % count,
            "    loops.add_offsets(row, at);",
            *("    " + line for line in lines),
            "  }",
            "}",
            "",
            *self._launcher(
                "const int64_t* rest = n;",
                "const Loops<%d> loops(rest);" % count,
                "const int64_t rows = loops.size();",
                "if (rows == 0) return 0;",
                "%s_kernel<<<blocks_for(rows * 32), kThreads>>>(" % self._name,
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
