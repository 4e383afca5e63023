"""The rungs of the ladders of memory, how they are built, and what they should give."""

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

KIT = Path(__file__).resolve().parent.parent
SOURCES, EMULATOR = KIT / "solution/src", KIT / "emulator"
COMPILE = ("nvcc", "-std=c++17", "-O3", "-gencode=arch=compute_90,code=sm_90", "-lineinfo",
           "-Xcompiler", "-fPIC", "-shared")  # fmt: skip
MAIN = """
#include <vector>
int main() {{
  std::vector<float> in({rows} * {columns}), out({outs});
  return rung_values(in.data(), out.data(), {rows}, {columns}, {outs});
}}
"""
#: A product of n x n, for rungs of the GEMM ladder.
GEMM_MAIN = """
int main() {{
  float* x;
  cudaMalloc(&x, 3 * {n} * {n} * sizeof(float));
  cudaMemset(x, 0, 3 * {n} * {n} * sizeof(float));
  const int size = {n} * {n};
  const int error = gemm(x, x + size, x + 2 * size, {n}, {n}, {n}, 0, 0, nullptr);
  cudaFree(x);
  return error;
}}
"""
#: Rows and columns that no tile, block or vector divides; some are one row, or one column.
ODD = ((1, 1), (33, 65), (1, 1025), (129, 31), (3, 1024), (70, 2052), (257, 3))


def _softmax(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@dataclasses.dataclass(frozen=True)
class Ladder:
    """A folder of rungs, from slow to fast.

    Attributes:
        rungs: names of files.
        timed, counted: rows and columns, on a GPU and on the emulated one.
        right: the output for an input, in float64.
        moved: how often the matrix is read and written at least.
    """

    name: str
    rungs: tuple[str, ...]
    timed: tuple[int, int]
    counted: tuple[int, int]
    right: Callable
    moved: int

    def outs(self, rows, columns):
        """Elements of the output."""
        return self.right(np.zeros((1, 1))).size if self.moved == 1 else rows * columns


LADDERS = (
    Ladder("reduction", ("r01_atomics", "r02_interleaved", "r03_sequential", "r04_first_add",
                         "r05_shuffles", "r06_vectors"),
           (8192, 8192), (256, 256), lambda x: x.sum(keepdims=True), 1),
    Ladder("softmax", ("r01_three_kernels", "r02_block_a_row", "r03_warp_a_row", "r04_online",
                       "r05_vectors"),
           (65536, 1024), (64, 1024), _softmax, 2),
    Ladder("transpose", ("r01_naive", "r02_coalesced_writes", "r03_shared", "r04_padded",
                         "r05_several", "r06_swizzle"),
           (8192, 8192), (256, 256), np.transpose, 2),
)  # fmt: skip


def names():
    """(ladder, file) of all rungs."""
    return [(ladder, file) for ladder in LADDERS for file in ladder.rungs]


def source(ladder, file):
    """The path of a rung."""
    return SOURCES / ladder.name / f"{file}.cu"


def says(path):
    """What the head of a rung's file says it is."""
    return path.read_text().split("\\brief ")[1].split("\n")[0].partition(": ")[2]


def code_of(ladder, file, read=Path.read_text):
    """A hash of what a rung is compiled from, without comments and white space."""
    paths = [source(ladder, file), *sorted(SOURCES.glob("ladder/*.*"))]
    paths += sorted((SOURCES / ladder.name).glob("*.cuh"))
    code = re.sub(r"/\*.*?\*/|//[^\n]*|\s", "", "\n".join(map(read, paths)), flags=re.DOTALL)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def text_of(ladder, file, more=""):
    """The source of a rung's library, or with `more` of a program."""
    return f'#include "{source(ladder, file)}"\n#include "{SOURCES}/ladder/harness.cuh"\n{more}'


def build_all(folder):
    """Compiles all rungs with nvcc, on all cores; returns (ladder, file) -> path."""
    folder.mkdir(parents=True, exist_ok=True)

    def library(rung):
        ladder, file = rung
        path = folder / f"{ladder.name}_{file}.cu"
        path.write_text(text_of(ladder, file))
        subprocess.run([*COMPILE, path, "-o", path.with_suffix(".so")], check=True)
        return rung, path.with_suffix(".so")

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return dict(pool.map(library, names()))


def cost_of(text, folder):
    """The counted cost of a program, of all of its kernels together."""
    sys.path.insert(0, str(EMULATOR))
    import count_kernels

    path, program = folder / "counted.cu", folder / "counted"
    path.write_text(text)
    emucc = [sys.executable, EMULATOR / "emucc.py", "--count", path, "-o", program]
    subprocess.run(emucc, check=True)
    status, kernels = count_kernels.counted([str(program)])
    if status:
        raise RuntimeError(f"{text.splitlines()[0]}: exit status {status}")
    return sum(numbers["cost"] for numbers in kernels.values())


def cost_of_rung(ladder, file, folder):
    """The counted cost of a rung."""
    rows, columns = ladder.counted
    given = {"rows": rows, "columns": columns, "outs": ladder.outs(rows, columns)}
    return cost_of(text_of(ladder, file, MAIN.format(**given)), folder)


def ranks(values):
    """The place of each value among them, from 1; equal ones share the middle of theirs."""
    values = np.asarray(values)
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return below + (equal + 1) / 2


def rank_correlation(a, b):
    """Spearman's: 1 where both have the same order, -1 where it is turned round."""
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])
