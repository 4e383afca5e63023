"""The kernels of the GPU back end, as CUDA C++ of a few lines each: gpu.cuh has what they call."""

from dlsys.dtypes import C_NAMES

from . import fused_gpu, gemm, hopper, hopper_last, implicit, reduce_gpu
from .cpu import DRAWS, RUNNER
from .expressions import pointers, signature

#: Which files of src/backend a source includes, and how its name ends.
HEADERS = ("gpu.cuh", "convolution.cuh", "pooling.cuh", "implicit.cuh", "cudnn.cuh", "steps.h")
SUFFIX = ".cu"
#: Partial results of one reduction of 128 columns a block; see kBlocksOfACut in gpu_reduce.cuh.
MOST_PARTIAL = 1024 * 128
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
    "make_look": """extern "C" void* %s(int64_t count) { return make_look(count); }
""",
    "begin_look": """extern "C" int %s(Look* look, const void* const* from) {
  return look->begin(from) ? 0 : -1;
}
""",
    "seen": """extern "C" const char* %s(Look* look) { return look->end(); }
""",
    "end_look": """extern "C" void %s(Look* look) { delete look; }
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
    if kind == "hopper":
        return hopper.source(name, *parts)
    if kind == "last":
        return hopper_last.source(name, *parts)
    if kind == "lay_weights":
        return hopper_last.source_of_laying(name, *parts)
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
    arguments = pointers(dtypes)
    if kind == "value_last" and len(dtypes) > 2:
        arguments = "%s, reinterpret_cast<%s*>(data[2])" % (
            pointers(dtypes[:2]), C_NAMES[dtypes[2]]
        )  # fmt: skip
    return _launcher(name, "return max_pool_%s(%s, n, on);" % (kind, arguments))


def _convolve(name, kind, method, dtypes):
    if method != "direct":
        raise NotImplementedError(
            'convolutions by method %r run on a CPU alone; hint: "auto" or "implicit"' % method
        )
    more = "data, " if kind == "weights" else ""
    return _launcher(name, "return direct_%s(%s, %sn, on);" % (kind, pointers(dtypes), more))


def _draw(name, kind, dtypes):
    computed = "double" if dtypes[0].itemsize == 8 else "float"
    arguments = (DRAWS[kind], computed, C_NAMES[dtypes[0]], pointers(dtypes))
    return _launcher(name, "return draw<%s, %s, %s>(%s, n, number, on);" % arguments)


_KINDS = {
    "elementwise": fused_gpu.source_of_one,
    "reduce": reduce_gpu.source_of_one,
    "fused_reduce": reduce_gpu.source,
    "rows": _rows,
    "product": _product,
    "gather": _gather,
    "scatter": _scatter,
    "fold": _fold,
    "max_pool": _max_pool,
    "convolve": _convolve,
    "draw": _draw,
}
