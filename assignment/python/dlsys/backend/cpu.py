"""The kernels of the CPU back end, as C++ of a few lines each: src/backend has what they call."""

from dlsys.dtypes import C_NAMES

from . import fused_cpu
from .expressions import WAYS, converted, indented, pointers, signature

#: Which files of src/backend a source includes, and how its name ends.
HEADERS = ("cpu.h", "convolution.h", "steps.h")
SUFFIX = ".cc"
#: Partial results of a reduction that need memory of the program's.
MOST_PARTIAL = 0
#: The method of convolutions that leave the choice.
CONVOLUTION = "shifted"

DRAWS = {"uniform": "UniformDraw", "normal": "NormalDraw", "bernoulli": "BernoulliDraw"}

RUNNER = """extern "C" int64_t %s(const Step* steps, int64_t count, int64_t threads, void* stream) {
  return run(steps, count, threads, stream);
}
"""

TIMER = """#include "timing.h"
extern "C" int64_t %s(const Step* steps, int64_t count, int64_t threads, double* spans) {
  return run_timed(steps, count, threads, spans);
}
"""


def source(name, key):
    """The definition of a function `name` for the key of an instruction."""
    kind, *parts = key
    if kind == "runner":
        return RUNNER % name
    if kind == "timer":
        return TIMER % name
    if kind in ("implicit", "cudnn", "hopper", "last"):
        method = {"hopper": "wgmma", "last": "wgmma"}.get(kind, kind)
        raise NotImplementedError('method %r runs on a GPU alone; hint: "auto"' % method)
    body = fused_cpu.body(*parts) if kind == "fused" else _KINDS[kind](*parts)
    return "%s {\n%s}\n" % (signature(name), body)


def _loads(dtypes, computed, kinds, at):
    """Lines that read the inputs' elements as x0, x1, ...; operand `at` is the first of them."""
    places = {0: "0", 1: "i", "s": "i * steps[%d]"}
    lines = []
    for number, (dtype, kind) in enumerate(zip(dtypes, kinds)):
        place = places[kind] % (number + at) if kind == "s" else places[kind]
        value = "in%d[from[%d] + %s]" % (number, number + at, place)
        lines.append("const T x%d = %s;" % (number, converted(value, dtype, computed)))
    return lines


def _prologue(dtypes, computed, given):
    lines = ["typedef %s T;" % C_NAMES[computed]]
    lines.append(
        "%s* const out = reinterpret_cast<%s*>(data[0]);" % ((C_NAMES[dtypes[0]],) * 2)
    )  # fmt: skip
    for number, dtype in enumerate(dtypes[1:]):
        values = (C_NAMES[dtype], number, C_NAMES[dtype], number + 1)
        lines.append("const %s* const in%d = reinterpret_cast<const %s*>(data[%d]);" % values)
    lines += ["const T p%d = as<T>(number[%d]);" % (i, i) for i in range(given)]
    return lines


def _elementwise(code, dtypes, computed, kinds, given):
    store = {1: "i", 0: "0", "s": "i * steps[0]"}[kinds[0]]
    lines = _prologue(dtypes, computed, given)
    lines += [
        "for_pieces<%d>(n, [=](const int64_t* from, const int64_t* steps, int64_t count) {"
        % len(dtypes),
        "#pragma omp simd",
        "  for (int64_t i = 0; i < count; ++i) {",
        *("    " + line for line in _loads(dtypes[1:], computed, kinds[1:], 1)),
        "    out[from[0] + %s] = %s;"
        % (store, converted("static_cast<T>(%s)" % code, computed, dtypes[0])),
        "  }",
        "});",
        "return 0;",
    ]
    return indented(lines)


def _reduce(kind, code, dtypes, computed, by_rows, kinds):
    lines = _prologue(dtypes, computed, 0)
    lines += [
        "const auto load = [=](const int64_t* from, const int64_t* steps, int64_t i) {",
        *("  " + line for line in _loads(dtypes[1:], computed, kinds, 0)),
        "  return static_cast<T>(%s);" % code,
        "};",
        "const auto store = [=](int64_t at, T value) { out[at] = %s; };"
        % converted("value", computed, dtypes[0]),
        "reduce_%s<%d, T, %s<T>>(n, load, store);"
        % ("rows" if by_rows else "columns", len(dtypes) - 1, WAYS[kind]),
        "return 0;",
    ]
    return indented(lines)


def _rows(kind, dtypes, given):
    numbers = "".join(", number[%d]" % i for i in range(given))
    return "  return %s(%s, n[0], n[1]%s);\n" % (kind, pointers(dtypes), numbers)


def _product(dtypes, _):
    return "  return product<%s>(%s, n);\n" % (C_NAMES[dtypes[0]], pointers(dtypes))


def _gather(dtypes):
    return "  return gather(%s, n);\n" % pointers(dtypes)


def _scatter(dtypes):
    return "  return scatter(%s, n);\n" % pointers(dtypes)


def _fold(dtypes):
    return "  return fold(%s, n);\n" % pointers(dtypes)


def _max_pool(kind, dtypes):
    return "  return max_pool_%s(%s, n);\n" % (kind, pointers(dtypes))


def _convolve(kind, method, dtypes):
    return "  return %s_%s(%s, n);\n" % (method, kind, pointers(dtypes))


def _draw(kind, dtypes):
    computed = "double" if dtypes[0].itemsize == 8 else "float"
    stored = C_NAMES[dtypes[0]]
    arguments = (DRAWS[kind], computed, stored, pointers(dtypes))
    return "  return draw<%s, %s, %s>(%s, n, number);\n" % arguments


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
