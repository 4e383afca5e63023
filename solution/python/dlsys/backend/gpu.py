"""The kernels of the GPU back end, as CUDA C++ of a few lines each: gpu.cuh has what they call."""

from dlsys.dtypes import C_NAMES

from . import fused_gpu
from .cpu import DRAWS, RUNNER
from .expressions import WAYS, converted, pointers, signature

#: Which files of src/backend a source includes, and how its name ends.
HEADERS = ("gpu.cuh", "steps.h")
SUFFIX = ".cu"
#: Partial results of one reduction, see kBlocksOfACut in gpu.cuh.
MOST_PARTIAL = 1024 * 32

#: Functions of rows: their classes, and whether they make one element of a row.
_ROWS = {
    "softmax": ("SoftmaxRow<{0}>", False),
    "log_softmax": ("LogSoftmaxRow<{0}>", False),
    "logsumexp": ("LogSumExpRow<{0}>", True),
    "cross_entropy": ("CrossEntropyRow<{0}>", True),
    "class_entropy": ("ClassEntropyRow<{0}>", True),
    "argmax": ("FirstOfRow<{0}, Largest<{0}>>", True),
    "argmin": ("FirstOfRow<{0}, Smallest<{0}>>", True),
    "product_of_others": ("ProductOfOthersRow<{0}>", False),
    "check_indices": ("CheckIndicesRow", True),
}


def source(name, key):
    """The definition of a launcher `name` for the key of an instruction, and of its kernels."""
    kind, *parts = key
    if kind == "fused":
        return fused_gpu.source(name, *parts)
    return RUNNER % name if kind == "runner" else _KINDS[kind](name, *parts)


def _launcher(name, *lines):
    return "%s {\n%s}\n" % (signature(name), "".join("  %s\n" % line for line in lines))


def _types(dtypes):
    return [C_NAMES[dtype] for dtype in dtypes]


def _elementwise(name, code, dtypes, computed, kinds, given):
    names, numbers = {"name": name}, range(len(dtypes) - 1)
    of_output, *of_inputs = _types(dtypes)
    values = ", ".join("%s v%d" % (of_inputs[i], i) for i in numbers)
    loads = [
        "const T x%d = %s;" % (i, converted("v%d" % i, dtypes[i + 1], computed)) for i in numbers
    ]
    struct = [
        "struct %(name)s_value {" % names,
        "  typedef %s T;" % C_NAMES[computed],
        *("  T p%d;" % i for i in range(given)),
        "  __device__ %s operator()(%s) const {" % (of_output, values),
        *("    " + line for line in loads),
        "    return %s;" % converted("static_cast<T>(%s)" % code, computed, dtypes[0]),
        "  }",
        "};",
    ]
    parameters = "".join(", const %s* in%d" % (of_inputs[i], i) for i in numbers)
    each = ", ".join("in%d[from[%d]]" % (i, i + 1) for i in numbers)
    general = [
        "__global__ void %s_kernel(%s* out%s, Loops<%d> loops, int64_t total, %s_value value) {"
        % (name, of_output, parameters, len(dtypes), name),
        "  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;",
        "  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;",
        "  for (; i < total; i += step) {",
        "    int64_t from[%d] = {};" % len(dtypes),
        "    loops.add_offsets(i, from);",
        "    out[from[0]] = value(%s);" % each,
        "  }",
        "}",
    ]
    is_dense = kinds[0] == 1 and "s" not in kinds
    dense = _dense_kernel(name, of_output, of_inputs, kinds[1:], parameters) if is_dense else []
    types = (pointers(dtypes), name)
    start = [
        "const int64_t* rest = n;",
        "const Loops<%d> loops(rest);" % len(dtypes),
        "const int64_t total = loops.size();",
        "if (total == 0) return 0;",
        "const %s_value value = {%s};"
        % (
            name,
            ", ".join("static_cast<%s_value::T>(number[%d])" % (name, i) for i in range(given)),
        ),
    ]
    if is_dense:
        start += [
            "if (loops.rank == 1 && are_aligned(data, %d)) {" % len(dtypes),
            "  %s_dense<<<blocks_for((total + kPack - 1) / kPack), kThreads>>>(" % name,
            "      %s, total, value);" % types[0],
            "  return launched();",
            "}",
        ]
    start += [
        "%s_kernel<<<blocks_for(total), kThreads>>>(" % name,
        "    %s, loops, total, value);" % types[0],
        "return launched();",
    ]
    return "\n".join([*struct, "", *general, "", *dense]) + "\n" + _launcher(name, *start)


def _dense_kernel(name, of_output, of_inputs, kinds, parameters):
    """Lines of a kernel for operands that lie dense or are one element: packs of elements."""
    reads, packed, single = [], [], []
    for i, (of_input, kind) in enumerate(zip(of_inputs, kinds)):
        if kind == 1:
            reads.append(
                "const auto v%d = reinterpret_cast<const Pack<%s>*>(in%d)[i];" % (i, of_input, i)
            )
        packed.append("v%d.values[j]" % i if kind == 1 else "in%d[0]" % i)
        single.append("in%d[%s]" % (i, "last" if kind == 1 else "0"))
    return [
        "__global__ void %s_dense(%s* out%s, int64_t total, %s_value value) {"
        % (name, of_output, parameters, name),
        "  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;",
        "  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;",
        "  for (int64_t i = thread; i < total / kPack; i += step) {",
        *("    " + line for line in reads),
        "    Pack<%s> result;" % of_output,
        "    for (int j = 0; j < kPack; ++j) result.values[j] = value(%s);" % ", ".join(packed),
        "    reinterpret_cast<Pack<%s>*>(out)[i] = result;" % of_output,
        "  }",
        "  const int64_t last = total / kPack * kPack + thread;",
        "  if (last < total) out[last] = value(%s);" % ", ".join(single),
        "}",
        "",
    ]


def _reduce(name, kind, code, dtypes, computed, by_rows, kinds):
    of_output, *of_inputs = _types(dtypes)
    of_sum, numbers = C_NAMES[computed], range(len(of_inputs))
    loads = [
        "const T x%d = %s;" % (i, converted("in%d[from[%d]]" % (i, i), dtypes[i + 1], computed))
        for i in numbers
    ]
    lines = [
        "struct %s_load {" % name,
        "  typedef %s T;" % of_sum,
        *("  const %s* in%d;" % (of_inputs[i], i) for i in numbers),
        "  __device__ T operator()(const int64_t* from) const {",
        *("    " + line for line in loads),
        "    return static_cast<T>(%s);" % code,
        "  }",
        "};",
        "",
        "struct %s_store {" % name,
        "  %s* out;" % of_output,
        "  __device__ void operator()(int64_t at, %s value) const {" % of_sum,
        "    out[at] = %s;" % converted("value", computed, dtypes[0]),
        "  }",
        "};",
        "",
    ]
    way = (of_sum, WAYS[kind], of_sum, len(of_inputs), "true" if by_rows else "false")
    return (
        "\n".join(lines)
        + "\n"
        + _launcher(
            name,
            "const %s_load load = {%s};" % (name, pointers(dtypes, 1)),
            "const %s_store store = {reinterpret_cast<%s*>(data[0])};" % (name, of_output),
            "%s* const partial = reinterpret_cast<%s*>(data[%d]);" % (of_sum, of_sum, len(dtypes)),
            "return reduce<%s, %s<%s>, %d, %s>(n, load, store, partial);" % way,
        )
    )


def _rows(name, kind, dtypes, given):
    row, is_reduction = _ROWS[kind]
    arguments = pointers(dtypes)
    if len(dtypes) == 2:  # there is no other input; none is read
        arguments += ", reinterpret_cast<const %s*>(data[1])" % C_NAMES[dtypes[1]]
    numbers = ", ".join("number[%d]" % i if i < given else "0" for i in range(2))
    values = (row.format(C_NAMES[dtypes[1]]), arguments, "1" if is_reduction else "n[1]", numbers)
    return _launcher(name, "return rows<%s>(%s, n[0], n[1], %s, %s);" % values)


def _product(name, dtypes):
    whole = dtypes[0].kind in "iub"
    function = "%sproduct<%s>" % ("whole_" if whole else "", C_NAMES[dtypes[0]])
    return _launcher(name, "return %s(%s, n);" % (function, pointers(dtypes)))


def _gather(name, dtypes):
    return _launcher(name, "return gather(%s, n);" % pointers(dtypes))


def _scatter(name, dtypes):
    return _launcher(name, "return scatter(%s, n);" % pointers(dtypes))


def _draw(name, kind, dtypes):
    computed = "double" if dtypes[0].itemsize == 8 else "float"
    arguments = (DRAWS[kind], computed, C_NAMES[dtypes[0]], pointers(dtypes))
    return _launcher(name, "return draw<%s, %s, %s>(%s, n, number);" % arguments)


_KINDS = {
    "elementwise": _elementwise,
    "reduce": _reduce,
    "rows": _rows,
    "product": _product,
    "gather": _gather,
    "scatter": _scatter,
    "draw": _draw,
}
