"""Follows one kernel through every pass of the emulated GPU, and writes emulator/one-kernel.md.

python tools/one_kernel.py
"""

import difflib
import sys
import textwrap
from pathlib import Path

KIT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(KIT / "emulator")]

import rewrite
from block_loops.loops import add_loops
from block_loops.program import Program
from cuda_source.tokens import Tokens, apply_edits
from instrument.parameter_names import name_parameters
from instrument.quick_loops import quick_loops
from instrument.vector_copies import show_copies
from layout import laid_out

PAGE = KIT / "emulator" / "one-kernel.md"
KERNEL = """\
// out[b] = the sum of 256 neighbours, of which each thread adds four
__global__ void block_sum(int n, const float* in, float* out) {
  __shared__ float part[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float mine = 0;
  for (int k = 0; k < 4; ++k) mine += 4 * i + k < n ? in[4 * i + k] : 0;
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int width = 32; width > 0; width /= 2) {
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
void sums(int n, const float* in, float* out) { block_sum<<<n / 256, 64>>>(n, in, out); }
"""
HEAD = """\
# One kernel's way through the passes

<!-- made by `python tools/one_kernel.py` -->

The passes only insert text, so a line stays where it is, however long it becomes. Here clang-format
has laid all out, and each step shows what it added to the one before. The macros (`EMULATOR_...`)
and templates are those of `include/emulator`. `emucc.py --keep` leaves what the compiler reads of
any program, laid out in the same way.

## The source

```cuda
{source}```
"""


def section(one, before: str, after: str) -> str:
    """What a pass did, as the lines that are new."""
    module = one.__module__.replace(".", "/") + ".py"
    said = " ".join((one.__doc__ or sys.modules[one.__module__].__doc__).split("\n\n")[0].split())
    head = f"\n## `{one.__name__}` ({module})\n\n{textwrap.fill(said, 100)}\n"
    if before == after:
        return f"{head}\nIt finds nothing here.\n"
    differ = difflib.ndiff(before.splitlines(), after.splitlines(), charjunk=None)
    lines = [line[2:] for line in differ if line.startswith("+ ") and line.strip("+ ")]
    return f"{head}\n```cpp\n" + "\n".join(lines) + "\n```\n"


def page() -> str:
    """The whole page."""
    tokens = Tokens(KERNEL, "sum.cu")
    program = Program(tokens, None, None)
    text, edits = HEAD.format(source=KERNEL), []
    before = laid_out(KERNEL)
    for one in rewrite.PASSES:
        edits += one(tokens)
        after = laid_out(apply_edits(KERNEL, edits))
        text += section(one, before, after)
        before = after
    fast = laid_out(apply_edits(KERNEL, edits + add_loops(program, edits)))
    text += "\n# The fast build\n" + section(add_loops, before, fast)
    text += "\n# The checked build\n"
    for one in (name_parameters, show_copies, quick_loops):
        edits += one(program, edits) if one is quick_loops else one(tokens)
        after = laid_out(apply_edits(KERNEL, edits))
        text += section(one, before, after)
        before = after
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
