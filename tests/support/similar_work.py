"""Students who write the tasks on their own: each chooses a way for each task, by a seed, and
writes it in habits of its own. The ways are in similar_work.toml."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_WAYS = tomllib.loads((Path(__file__).parent / "similar_work.toml").read_text())

_WORDS = """
auto bool break case char const constexpr continue default do double else enum extern false float
for if inline int int32_t int64_t long namespace new nullptr return short signed sizeof static
static_cast std struct switch template true typedef unsigned using void volatile while size_t
__global__ __device__ __shared__ __restrict__ __syncthreads __syncwarp __shfl_xor_sync
__shfl_down_sync __shfl_sync threadIdx blockIdx blockDim gridDim x y z dim3 expf logf fmaxf max min
atomicAdd INFINITY FLT_MAX warpSize shape ndim data_of size_of shape_of same_shape blocks_for
launched REQUIRE define C include
"""
#: What renaming leaves alone: words of C++ and CUDA, and what the kit's headers give.
CUDA_WORDS = frozenset(_WORDS.split())

_BINARY = "const float* a, const float* b"
_ARRAYS = "data_of(matA), data_of(matB)"
#: task -> name, parameters that are arrays, that are numbers, value of an element, arguments.
_ELEMENTWISE = {
    "2.3": ("array_set", "", "float value", "value", "value"),
    "2.4": ("broadcast", "const float* in", "int64_t size", "in[i % size]", "data_of(input), size"),
    "2.6": ("add", _BINARY, "", "a[i] + b[i]", _ARRAYS),
    "2.7": ("add_const", "const float* in", "float c", "in[i] + c", "data_of(input), val"),
    "2.8": ("mul", _BINARY, "", "a[i] * b[i]", _ARRAYS),
    "2.9": ("mul_const", "const float* in", "float c", "in[i] * c", "data_of(input), val"),
    "2.11": ("relu", "const float* in", "", "RELU", "data_of(input)"),
    "2.12": ("relu_grad", "const float* in, const float* g", "", "GRADIENT",
             "data_of(input), data_of(in_grad)"),
}  # fmt: skip


class Habit:
    """One student: chooses a way for each task, and keeps to habits in small things."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.type = chance.choice(("int", "int64_t", "long", "size_t"))
        self.thread = chance.choice((
            "blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x + blockIdx.x * blockDim.x",
            "element_index()", "blockDim.x * blockIdx.x + threadIdx.x",
            "static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x",
        ))  # fmt: skip
        self.threads = chance.choice(("kThreads", "256", "128", "512"))
        self.blocks = chance.choice((
            "blocks_for({n}, {t})", "({n} + {t} - 1) / {t}", "({n} - 1) / {t} + 1",
            "(int)ceil({n} / (float){t})",
        ))  # fmt: skip
        self.body = chance.choice(("if", "return", "braces", "stride"))
        self.launch = chance.randrange(5)
        self.relu = chance.choice(("in[i] > 0 ? in[i] : 0", "in[i] < 0 ? 0 : in[i]",
                                   "fmaxf(in[i], 0.0f)", "in[i] * (in[i] > 0)"))  # fmt: skip
        self.relu_grad = chance.choice(("in[i] > 0 ? g[i] : 0", "(in[i] > 0) * g[i]",
                                        "in[i] <= 0.0f ? 0.0f : g[i]"))  # fmt: skip
        self.out_first = chance.random() < 0.5
        self.way = {task: chance.random() for task in ("2.5", "2.10", "2.13")}
        self.swaps = [swap for swap in SWAPS if chance.random() < 0.4]

    def write(self, task: str, number: int) -> str:
        """The code for hole `number` of a task."""
        code = self._code(task, number)
        for pattern, replacement, share in self.swaps:
            code = re.sub(
                pattern,
                lambda m, r=replacement, s=share: m.expand(r) if self.chance.random() < s else m[0],
                code,
            )
        return code

    def _code(self, task: str, number: int) -> str:
        if task in _ELEMENTWISE:
            return self._launcher(task) if number else self._kernel(task)
        key = f"{task}/{number}"
        if task in self.way:
            ways = _WAYS[key]
            code = self._spelt(ways[int(self.way[task] * len(ways))])
            done = not number or "return launched" in code
            return code if done else code + '  return launched("it");'
        if key == "2.1/0":
            return "return input_shapes[0]"
        return self.chance.choice(_WAYS.get(key, [""]))

    def _spelt(self, code: str) -> str:
        code = code.replace("{type}", self.type).replace("{thread}", self.thread)
        code = re.sub(r"\{blocks:(.*?)\}", lambda m: self._blocks(m[1]), code)
        return code.replace("{threads}", self.threads)

    def _blocks(self, count: str) -> str:
        return self.blocks.replace("{n}", count).replace("{t}", self.threads)

    def _kernel(self, task: str) -> str:
        name, arrays, scalars, value, _ = _ELEMENTWISE[task]
        value = value.replace("RELU", self.relu).replace("GRADIENT", self.relu_grad)
        heads = [f"{self.type} n", arrays, "float* out"]
        if self.out_first:
            heads = ["float* out", arrays, f"{self.type} n"]
        head = ", ".join(part for part in (*heads, scalars) if part)
        index = f"{self.type} i = {self.thread};"
        bodies = {
            "if": f"  {index}\n  if (i < n) out[i] = {value};\n",
            "return": f"  {index}\n  if (i >= n) return;\n  out[i] = {value};\n",
            "braces": f"  const {index}\n  if (n > i) {{\n    out[i] = {value};\n  }}\n",
            "stride": f"  {self.type} step = blockDim.x * gridDim.x;\n"
            f"  for ({index[:-1]}; i < n; i += step) {{\n    out[i] = {value};\n  }}\n",
        }
        return f"__global__ void {name}_kernel({head}) {{\n{bodies[self.body]}}}\n"

    def _launcher(self, task: str) -> str:
        name, _, _, _, arguments = _ELEMENTWISE[task]
        out = "data_of(arr)" if task == "2.3" else "data_of(output)"
        size_of = out.replace("data_of", "size_of")
        arrays = [a for a in arguments.split(", ") if a.startswith("data_of")]
        rest = [a for a in arguments.split(", ") if not a.startswith("data_of")]
        order = [out, *arrays, "n", *rest] if self.out_first else ["n", *arrays, out, *rest]
        blocks, threads, more = self._blocks("n"), self.threads, ", ".join(order)
        call = f"{name}_kernel<<<{blocks}, {threads}>>>({more});"
        ways = (
            f"int64_t n = {size_of};\nif (n == 0) return 0;\n{call}",
            f"{self.type} n = 1;\nfor (int d = 0; d < {out[8:-1]}->ndim; d++)\n"
            f"  n *= {out[8:-1]}->shape[d];\nif (n > 0) {{\n  {call}\n}}",
            f"auto n = {size_of};\nif (!n) {{\n  return 0;\n}}\n{call}",
            f"const {self.type} n = {size_of};\nint blocks = {blocks};\n"
            f"if (blocks < 1) return 0;\n{name}_kernel<<<blocks, {threads}>>>({more});",
            f"int64_t n = {size_of};\ndim3 block({threads});\ndim3 grid({blocks});\n"
            f"if (n > 0) {name}_kernel<<<grid, block>>>({more});",
        )
        size = "int64_t size = size_of(input);\n" if task == "2.4" else ""
        return f'{size}{ways[self.launch]}\nreturn launched("{name}");'


#: Small things that can be written in two ways: (what, how else, at how many of the places).
SWAPS = (
    (r"\+\+(\w+)\)", r"\1++)", 1.0),
    (r"(\w+)\+\+\)", r"\1 += 1)", 1.0),
    (r"(?m)^( *)(\w+) \+= (.*);$", r"\1\2 = \2 + \3;", 0.7),
    (r"(?m)^( *)return \[(\w+) for (\w+) in (\w+)\]$",
     r"\1answer = [\2 for \3 in \4]\n\1return answer", 0.8),
    (r"(\w+)\[node\]", r"\1.get(node)", 0.2),
    (r"if (\w+) not in (\w+):", r"if not \1 in \2:", 0.6),
    (r"(?m)^( *)for (\w+) in (self\.topo_order|node\.inputs):$", r"\1for \2 in list(\3):", 0.4),
    (r"(\w+) < (rows|cols|n|N|K)\b", r"\2 > \1", 0.5),
    (r"float (\w+) = 0;", r"float \1 = 0, unused = 1;", 0.3),
    (r"(\w+) \* (cols|w|N|K|d) \+ (\w+)\]", r"\3 + \2 * \1]", 0.6),
    (r"expf\((.*?) - (\w+)\)", r"expf(-\2 + \1)", 0.5),
)  # fmt: skip
