"""The kernels of the GPU back end, as CUDA C++ of a few lines each: gpu.cuh has what they call."""

from dlsys.dtypes import C_NAMES

from . import fused_gpu, gemm, implicit
from .cpu import DRAWS, RUNNER
from .expressions import WAYS, converted, pointers, signature

#: Which files of src/backend a source includes, and how its name ends.
HEADERS = ("gpu.cuh", "convolution.cuh", "implicit.cuh", "cudnn.cuh", "steps.h")
SUFFIX = ".cu"
#: Partial results of one reduction of 128 columns a block; see kBlocksOfACut in gpu_reduce.cuh.
MOST_PARTIAL = 2048 * 128
#: The method of convolutions that leave the choice.
CONVOLUTION = "im2col"

#: What the host calls beside kernels, and what their library includes.
HOST = {
    "begin_recording": """extern "C" void* %s(int64_t streams, int64_t most_steps) {
  return begin_recording(streams, most_steps);
}
""",
    "record": """extern "C" int64_t %s(
    const Recording* recording, const Step* steps, int64_t count, const int64_t* stream_of,
    const int64_t* waits, int64_t pairs) {
  return recording->launch(steps, count, stream_of, waits, pairs);
}
""",
    "record_rows": """extern "C" int %s(const Recording* recording, void* to, int64_t to_apart,
                   const void* from, int64_t from_apart, int64_t width, int64_t rows) {
  return recording->copy_rows(to, to_apart, from, from_apart, width, rows) ? 0 : -1;
}
""",
    "end_recording": """extern "C" void* %s(Recording* recording, int* spoilt) {
  return end_recording(recording, spoilt);
}
""",
    "replay": """extern "C" int %s(cudaGraphExec_t graph) {
  return cudaGraphLaunch(graph, nullptr) == cudaSuccess ? 0 : -1;
}
""",
    "release": """extern "C" int %s(cudaGraphExec_t graph) {
  return cudaGraphExecDestroy(graph) == cudaSuccess ? 0 : -1;
}
""",
    "make_uploads": """extern "C" void* %s() { return make_uploads(); }
""",
    "fill": """extern "C" int %s(Uploads* uploads, int half, int64_t count, void* const* to,
                   const void* const* from, const int64_t* bytes) {
  return uploads->fill(half, count, to, from, bytes) ? 0 : -1;
}
""",
    "leave": """extern "C" int %s(Uploads* uploads, int half) {
  return uploads->leave(half) ? 0 : -1;
}
""",
    "settle": """extern "C" int %s(Uploads* uploads) { return uploads->settle() ? 0 : -1; }
""",
    "end_uploads": """extern "C" void %s(Uploads* uploads) { delete uploads; }
""",
    "name_device": """extern "C" int %s(char* name, int64_t bytes) {
  cudaDeviceProp found;
  if (cudaGetDeviceProperties(&found, 0) != cudaSuccess) return -1;
  snprintf(name, static_cast<size_t>(bytes), "%%s", found.name);
  return 0;
}
""",
    "pin": """extern "C" void* %s(int64_t bytes) { return pinned(bytes); }
""",
    "unpin": """extern "C" int %s(void* memory) {
  return cudaFreeHost(memory) == cudaSuccess ? 0 : -1;
}
""",
}
_HOST_HEADERS = '#include <cstdio>\n#include "capture.cuh"\n#include "upload.cuh"\n'

#: The function that times launches.
TIMER = """#include "timing.cuh"
extern "C" int64_t %s(const Step* steps, int64_t count, int64_t streams, const int64_t* stream_of,
                      const int64_t* waits, int64_t pairs, double* spans) {
  return launch_timed(steps, count, streams, stream_of, waits, pairs, spans);
}
"""

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
}


def source(name, key):
    """The definition of a launcher `name` for the key of an instruction, and of its kernels."""
    kind, *parts = key
    if kind == "fused":
        return fused_gpu.source(name, *parts)
    if kind == "gemm":
        return gemm.source(name, *parts)
    if kind == "implicit":
        return implicit.source(name, *parts)
    if kind == "cudnn":
        return _launcher(name, "return cudnn(data, n, on);")
    if kind == "host":
        return _HOST_HEADERS + HOST[parts[0]] % name
    if kind == "timer":
        return TIMER % name
    return RUNNER % name if kind == "runner" else _KINDS[kind](name, *parts)


def _launcher(name, *lines):
    return "%s {\n%s}\n" % (
        signature(name, "cudaStream_t on"),
        "".join("  %s\n" % line for line in lines),
    )


def _types(dtypes):
    return [C_NAMES[dtype] for dtype in dtypes]


def _elementwise(name, code, dtypes, computed, kinds, given):
    of_output, *of_inputs = _types(dtypes)
    numbers = range(len(of_inputs))
    values = ", ".join("%s v%d" % (of_inputs[i], i) for i in numbers)
    struct = [
        "struct %s_value {" % name,
        "  typedef %s T;" % C_NAMES[computed],
        *("  T p%d;" % i for i in range(given)),
        "  __device__ %s operator()(%s) const {" % (of_output, values),
        *("    " + line for line in _converted_inputs("v%d", dtypes, computed)),
        "    return %s;" % converted("static_cast<T>(%s)" % code, computed, dtypes[0]),
        "  }",
        "};",
        "",
    ]
    operands = "%s* __restrict__ out" % of_output
    operands += "".join(", const %s* __restrict__ in%d" % (of_inputs[i], i) for i in numbers)
    is_tiled = kinds[0] == 1 and "s" not in kinds
    tiled = _tiles_kernel(name, of_output, of_inputs, kinds[1:], operands) if is_tiled else []
    numbers_of_launch = ", ".join(
        "static_cast<%s_value::T>(number[%d])" % (name, i) for i in range(given)
    )
    launch = [
        "const Loops<%d> loops(n);" % len(dtypes),
        "const int64_t total = loops.size();",
        "if (total == 0) return 0;",
        "const %s_value value = {%s};" % (name, numbers_of_launch),
    ]
    if is_tiled:
        launch += [
            "const Tiles tiles = tiles_of(loops, data, %d);" % _tile(kinds[1:]),
            "if (tiles.count > 0) {",
            "  %s_tiles<<<grid_of(tiles.count), kThreads, 0, on>>>(" % name,
            "      %s, loops, tiles, value);" % pointers(dtypes),
            "  return launched();",
            "}",
        ]
    launch += [
        "%s_kernel<<<blocks_for(total), kThreads, 0, on>>>(" % name,
        "    %s, loops, total, value);" % pointers(dtypes),
        "return launched();",
    ]
    general = _general_kernel(name, len(dtypes), operands)
    return "\n".join([*struct, *general, *tiled]) + _launcher(name, *launch)


def _converted_inputs(value, dtypes, computed):
    """Lines that make x0, x1, ... of the inputs' values, which `value` says how to find."""
    return [
        "const T x%d = %s;" % (i, converted(value.replace("%d", str(i)), dtype, computed))
        for i, dtype in enumerate(dtypes[1:])
    ]


def _general_kernel(name, operands, parameters):
    """Lines of a kernel for operands that lie as they like: a thread for each element."""
    each = ", ".join("in%d[from[%d]]" % (i, i + 1) for i in range(operands - 1))
    return [
        "__global__ void %s_kernel(%s, Loops<%d> loops, int64_t total, %s_value value) {"
        % (name, parameters, operands, name),
        "  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;",
        "  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;",
        "  for (; i < total; i += step) {",
        "    int64_t from[%d] = {};" % operands,
        "    loops.add_offsets(i, from);",
        "    out[from[0]] = value(%s);" % each,
        "  }",
        "}",
        "",
    ]


def _packs(kinds):
    """Packs that a thread reads of each input at once: 64 bytes of floats are on their way."""
    return 4 if sum(kind == 1 for kind in kinds) <= 1 else 2


def _tile(kinds):
    """Elements of a block; 256 threads, 4 elements a pack."""
    return 256 * 4 * _packs(kinds)


def _tiles_kernel(name, of_output, of_inputs, kinds, parameters):
    """Lines of a kernel for rows that lie side by side: a block for each part of a row."""
    starts, reads, packed, single = [], [], [], []
    for i, (of_input, kind) in enumerate(zip(of_inputs, kinds)):
        if kind == 1:
            starts.append("const %s* const x%d = in%d + own.at[%d];" % (of_input, i, i, i + 1))
            read = "if (p < packs) v%d[u] = reinterpret_cast<const Pack<%s>*>(x%d)[p];"
            reads.append(read % (i, of_input, i))
        else:
            starts.append("const %s x%d = in%d[own.at[%d]];" % (of_input, i, i, i + 1))
        packed.append("v%d[u].values[j]" % i if kind == 1 else "x%d" % i)
        single.append("x%d[i]" % i if kind == 1 else "x%d" % i)
    declared = [
        "Pack<%s> v%d[%d];" % (of_input, i, _packs(kinds))
        for i, (of_input, kind) in enumerate(zip(of_inputs, kinds))
        if kind == 1
    ]
    each_pack = [
        "for (int u = 0; u < %d; ++u) {" % _packs(kinds),
        "  const int p = u * kThreads + static_cast<int>(threadIdx.x);",
    ]
    reading = [*each_pack, *("  " + line for line in reads), "}"] if reads else []
    return [
        "__global__ void %s_tiles(%s, Loops<%d> loops, Tiles tiles, %s_value value) {"
        % (name, parameters, len(kinds) + 1, name),
        "  for (int64_t tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {",
        "    const Tile<%d> own(loops, tiles, tile, %d);" % (len(kinds) + 1, _tile(kinds)),
        "    %s* const y = out + own.at[0];" % of_output,
        *("    " + line for line in starts),
        "    const int packs = tiles.packed ? own.count / kPack : 0;",
        "    if (packs > 0) {",
        *("      " + line for line in (*declared, *reading, *each_pack)),
        "        if (p >= packs) continue;",
        "        Pack<%s> result;" % of_output,
        "        for (int j = 0; j < kPack; ++j) result.values[j] = value(%s);" % ", ".join(packed),
        "        reinterpret_cast<Pack<%s>*>(y)[p] = result;" % of_output,
        "      }",
        "    }",
        "    for (int i = packs * kPack + threadIdx.x; i < own.count; i += kThreads)",
        "      y[i] = value(%s);" % ", ".join(single),
        "  }",
        "}",
        "",
    ]


def _reduce(name, kind, code, dtypes, computed, by_rows, kinds):
    of_output, *of_inputs = _types(dtypes)
    of_sum, numbers = C_NAMES[computed], range(len(of_inputs))
    lines = [
        "struct %s_load {" % name,
        "  typedef %s T;" % of_sum,
        "  static constexpr bool kPacks = %s;" % ("false" if "s" in kinds else "true"),
        *("  const %s* __restrict__ in%d;" % (of_inputs[i], i) for i in numbers),
        "  __device__ T operator()(const int64_t* from) const {",
        *("    " + line for line in _converted_inputs("in%d[from[%d]]", dtypes, computed)),
        "    return static_cast<T>(%s);" % code,
        "  }",
        "  __device__ void pack(const int64_t* from, T* values) const {",
        *("    " + line for line in _read_packs(of_inputs, kinds)),
        "    for (int j = 0; j < kPack; ++j) {",
        *("      " + line for line in _converted_inputs("v%d.values[j]", dtypes, computed)),
        "      values[j] = static_cast<T>(%s);" % code,
        "    }",
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
            "return reduce<%s, %s<%s>, %d, %s>(data, n, load, store, partial, on);" % way,
        )
    )


def _read_packs(of_inputs, kinds):
    """Lines that read v0, v1, ...: packs, or one element that is repeated."""
    lines = []
    for i, (of_input, kind) in enumerate(zip(of_inputs, kinds)):
        if kind == 0:
            lines.append("const Repeated<%s> v%d(in%d[from[%d]]);" % (of_input, i, i, i))
        else:
            read = "const auto v%d = *reinterpret_cast<const Pack<%s>*>(in%d + from[%d]);"
            lines.append(read % (i, of_input, i, i))
    return lines


def _rows(name, kind, dtypes, given):
    arguments = pointers(dtypes)
    if kind == "check_indices":
        return _launcher(name, "return check_indices(%s, n[0], n[1], on);" % arguments)
    row, is_reduction = _ROWS[kind]
    if len(dtypes) == 2:  # there is no other input; none is read
        arguments += ", reinterpret_cast<const %s*>(data[1])" % C_NAMES[dtypes[1]]
    numbers = ", ".join("number[%d]" % i if i < given else "0" for i in range(2))
    values = (row.format(C_NAMES[dtypes[1]]), arguments, "1" if is_reduction else "n[1]", numbers)
    return _launcher(name, "return rows<%s>(%s, n[0], n[1], %s, %s, on);" % values)


def _product(name, dtypes, tf32):
    whole = dtypes[0].kind in "iub"
    function = "%sproduct<%s>" % ("whole_" if whole else "", C_NAMES[dtypes[0]])
    more = ", true" if tf32 else ""
    return _launcher(name, "return %s(%s, n, on%s);" % (function, pointers(dtypes), more))


def _gather(name, dtypes):
    return _launcher(name, "return gather(%s, n, on);" % pointers(dtypes))


def _scatter(name, dtypes):
    return _launcher(name, "return scatter(%s, n, on);" % pointers(dtypes))


def _fold(name, dtypes):
    return _launcher(name, "return fold(%s, n, on);" % pointers(dtypes))


def _max_pool(name, kind, dtypes):
    return _launcher(name, "return max_pool_%s(%s, n, on);" % (kind, pointers(dtypes)))


def _convolve(name, kind, method, dtypes):
    if method != "direct":
        raise NotImplementedError(
            'convolutions by method %r run on a CPU alone; hint: "auto" or "implicit"' % method
        )
    return _launcher(name, "return direct_%s(%s, n, on);" % (kind, pointers(dtypes)))


def _draw(name, kind, dtypes):
    computed = "double" if dtypes[0].itemsize == 8 else "float"
    arguments = (DRAWS[kind], computed, C_NAMES[dtypes[0]], pointers(dtypes))
    return _launcher(name, "return draw<%s, %s, %s>(%s, n, number, on);" % arguments)


_KINDS = {
    "elementwise": _elementwise,
    "reduce": _reduce,
    "rows": _rows,
    "product": _product,
    "gather": _gather,
    "scatter": _scatter,
    "fold": _fold,
    "max_pool": _max_pool,
    "convolve": _convolve,
    "draw": _draw,
}
