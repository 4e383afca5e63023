"""Kernels as loops: they write the same bits as threads that run one by one.

The kernels are those of tests/emulator/loops.cu, and all of solution/src/gpu_op.cu.
"""

import os
import re
import subprocess
import sys

import pytest

import kit as emulator_kit
from grader.course.rubric import load_rubric
from grader.grading.runner import Options, grade
from grader.report.model import PASS


def kernels():
    """The kernels of loops.cu that have a case."""
    text = (emulator_kit.PROGRAMS / "loops.cu").read_text()
    return re.findall(r"^(?:SHOW\(|CASE\(show_)(\w+)", text, re.MULTILINE)


def explained(source):
    """How each kernel of a source runs, as emucc.py says it."""
    done = subprocess.run(
        [sys.executable, emulator_kit.EMULATOR / "emucc.py", "--explain", source],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: how for name, how in (line.split(None, 1) for line in done.stdout.splitlines())}


@pytest.mark.parametrize("kernel", kernels())
def test_loops_write_the_bits_of_threads(kit, kernel):
    outputs = {}
    for loops in ("0", "1"):
        done = kit.run("loops", f"show_{kernel}", EMULATOR_LOOPS=loops, EMULATOR_THREADS="1")
        assert done.returncode == 0, done.stderr
        outputs[loops] = done.stdout
    assert outputs["0"] == outputs["1"]
    values = set(outputs["0"].splitlines()[:4000])
    assert kernel in ("counts",) or len(values) > 1  # it wrote something


CUT, LOOPS = "loops, cut at barriers", "loops"
HOW = {
    "guard_return": LOOPS + ": blocks side by side", "guards_of_two": LOOPS, "wide_index": LOOPS,
    "strides": LOOPS,
    "product": LOOPS + ": in chunks", "flat_product": LOOPS + ": in chunks",
    "shared_tile": CUT + ": in chunks", "pointers_move": CUT + ": in chunks", "tree": CUT,
    "tree_of_while": CUT, "leaves_before_a_barrier": CUT, "whole_blocks_leave": CUT,
    "large_arrays": CUT + ": in chunks", "largest_array": LOOPS + ": in chunks",
    "structs_and_arrays": CUT, "helpers": CUT, "of_namespace": LOOPS, "counts": CUT,
    "hides_a_barrier": CUT, "conditional": LOOPS,
    "parameters_change": LOOPS, "switches": LOOPS, "choices": LOOPS, "all_choose": LOOPS,
    "recursion": "fibers: it calls depth: it calls depth: it calls itself",
    "may_differ": "fibers: the condition around a barrier may differ among threads",
    "breaks_out": "fibers: break or continue in a loop with a barrier",
    "lacks_a_barrier": "fibers: threads may use what others write without a barrier between",
    "takes_a_lambda": "fibers: a lambda",
    "votes": "fibers: it calls __syncthreads_count, which is not known",
    "specialised": "fibers: a specialisation",
    "as_a_value": "fibers: its name is used as a value",
}  # fmt: skip


@pytest.mark.parametrize("kernel", HOW)
def test_it_is_known_which_kernels_become_loops(kit, kernel):
    assert kit.explained("loops")[kernel] == HOW[kernel]


def test_kernels_without_spaces_and_with_bounds_become_loops(tmp_path):
    source = tmp_path / "spaces.cu"
    source.write_text(
        "__global__ void dense(int*x){x[threadIdx.x]=1;}\n"
        "__global__ void __launch_bounds__(64)\nbounded(int*x){if(threadIdx.x)return;*x=1;}\n"
        "template<int n>__launch_bounds__(n,2)__global__ void more(int*x){x[n]=1;}\n"
        "void run(int*x){dense<<<1,1>>>(x);bounded<<<1,1>>>(x);more<3><<<1,1>>>(x);}\n"
    )
    assert explained(source) == {"dense": LOOPS, "bounded": LOOPS, "more": LOOPS}


def test_kernels_of_structs_become_loops(tmp_path):
    source = tmp_path / "structs.cu"
    source.write_text(
        "struct In { float a, b; }; struct Outer { In in; int n; float *out; float3 v; };\n"
        "struct Grid { Outer all[2]; };\n"
        "__device__ float inner(In q, float x) { return q.a * x + q.b; }\n"
        "__global__ void nested(Outer o) { o.out[threadIdx.x] = inner(o.in, threadIdx.x); }\n"
        "__global__ void array(Grid g) { g.all[0].out[threadIdx.x] = g.all[1].in.a; }\n"
        "__global__ void vector(Outer o) { o.out[threadIdx.x] = o.v.x + o.v.y; }\n"
    )
    assert explained(source) == {"nested": LOOPS, "array": LOOPS, "vector": LOOPS}


ORDINARY_OPERATORS = """
struct Buffer {
  float* data;
  Buffer(size_t n);
  Buffer(const Buffer&) = delete;
  Buffer(Buffer&& other) : data(other.data) {}
  Buffer& operator=(Buffer&& other);
};
struct Pair {
  float x, y;
  __device__ Pair operator+(const Pair& o) const { return {x + o.x, y + o.y}; }
  __device__ float& operator[](int i) { return i ? y : x; }
};
__device__ float3 operator+(float3 a, float3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__device__ float3 operator*(const float3& a, float b) { return {a.x * b, a.y * b, a.z * b}; }
__device__ float3& operator+=(float3& a, float3 b) { return a = a + b; }
std::ostream& operator<<(std::ostream& out, const float3& v) { return out << v.x; }
__global__ void vectors(int n, float3* v, float3 by) {
  float3 a = v[threadIdx.x];
  a += by;
  if (threadIdx.x < n) v[threadIdx.x] = a + a * 2.0f;
}
__global__ void pairs(int n, Pair* v) {
  Pair a = v[threadIdx.x];
  __syncthreads();
  v[threadIdx.x] = a + v[n - threadIdx.x];
}
"""


def test_operators_as_courses_have_them_keep_the_fast_form(tmp_path):
    source = tmp_path / "a.cu"
    source.write_text("#include <iostream>\n" + ORDINARY_OPERATORS)
    assert explained(source) == {"vectors": LOOPS, "pairs": LOOPS + ", cut at barriers"}


def test_templates_of_templates_keep_the_fast_form(tmp_path):
    source = tmp_path / "a.cu"
    source.write_text(
        "template<class T> struct Next { __device__ T operator()(T x) const { return x + 1; } };\n"
        "template<template<class> class Op, class... T>\n"
        "__global__ void a(int* p) { p[threadIdx.x] = 1; }\n"
        "template<template<class...> class, class T>\n"
        "__global__ void b(T* p) { p[threadIdx.x] = 1; }\n"
        "template<class T, template<class> class Op = Next>\n"
        "__global__ void c(T* p) { p[threadIdx.x] = 1; }\n"
        "template<class T> class Late { T x; };\n"
        "__global__ void plain(int* p) { p[threadIdx.x] += 1; }\n"
    )
    assert explained(source)["plain"] == LOOPS
    source.write_text(source.read_text().replace("T x;", "T x = threadIdx.x;"))
    assert explained(source)["plain"].startswith("fibers: a class")


LAZY = """
namespace lib {
struct Lazy { __device__ operator int() const { return threadIdx.x; } };
__device__ inline int lane() { return threadIdx.x; }
template <class T> __global__ void fill(T* p, int n) {
  __shared__ int s;
  if (threadIdx.x == 0) s = n;
  __syncthreads();
  p[lane()] += s;
}
template <class T> void run(T* p) { fill<<<1, 64>>>(p, 5); }
static int unused;
}
"""
USES_LAZY = """
#include <cstdio>
#include "lazy.cuh"
__global__ void k(int* p) { lib::Lazy z; int i = z; p[i] = i; }
int main() {
  int* p;
  cudaMallocManaged(&p, 256);
  k<<<1, 64>>>(p);
  lib::run(p);
  cudaDeviceSynchronize();
  printf("%d %d\\n", p[0], p[63]);
}
"""


@pytest.mark.parametrize("place", ["-isystem", "-idirafter", "CPLUS_INCLUDE_PATH", "CPATH"])
def test_headers_of_folders_called_the_systems_are_the_programs_own(tmp_path, kit, place):
    (tmp_path / "inc/inner").mkdir(parents=True)
    (tmp_path / "inc/lazy.cuh").write_text('#include "inner/../../lib.cuh"\n')
    (tmp_path / "lib.cuh").write_text(LAZY)
    (tmp_path / "a.cu").write_text(USES_LAZY.replace('"lazy.cuh"', "<lazy.cuh>"))
    option = ["-Xcompiler", f"{place},{tmp_path}/inc"] * place.startswith("-")
    done = subprocess.run(
        [sys.executable, emulator_kit.EMULATOR / "emucc.py", "-Wall", *option,
         tmp_path / "a.cu", "-o", tmp_path / "a"],
        env={**os.environ, place: f"{tmp_path}/inc"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "unused" not in done.stderr or place == "CPATH"
    assert kit.call(tmp_path / "a").stdout == "5 68\n"


def test_headers_that_an_option_includes_are_the_programs_own(tmp_path, kit):
    (tmp_path / "lib.cuh").write_text(LAZY)
    (tmp_path / "more.cuh").write_text("#pragma once\n#define MORE 1\n")
    (tmp_path / "a.cu").write_text(USES_LAZY.replace('#include "lazy.cuh"\n', ""))
    done = kit.emucc(
        "-include", tmp_path / "lib.cuh", "-include", tmp_path / "more.cuh",
        tmp_path / "a.cu", "-o", tmp_path / "a",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert kit.call(tmp_path / "a").stdout == "5 68\n"


def test_the_kernels_of_the_assignment_become_loops():
    how = explained(emulator_kit.ROOT / "solution/src/gpu_op.cu")
    fibers = {name for name, way in how.items() if way.startswith("fibers")}
    # Lanes exchange values, and thread 0 reads what it wrote, which looks like a lost barrier.
    assert fibers == {"softmax_kernel", "softmax_cross_entropy_kernel"}
    assert how["matrix_multiply_kernel_v1"] == "loops: in chunks"
    assert how["matrix_multiply_kernel"] == "loops, cut at barriers: in chunks"
    assert len(how) > 12


# Every launcher of gpu_op.cu on sizes that fill no block, and the bits that it wrote.
LAUNCHES = """
import hashlib, sys
sys.path[:0] = ["python"]
import numpy as np
from dlsys import gpu_op, ndarray
from dlsys._base import _LIB, check_call

rng = np.random.default_rng(0)
gpu = ndarray.gpu(0)

def given(*shape):
    return ndarray.array(rng.uniform(-3, 3, shape).astype("f4"), gpu)

def show(function, shape, *args):
    out = ndarray.array(np.full(shape, 7, "f4"), gpu)
    if isinstance(function, str):
        check_call(getattr(_LIB, function)(*[getattr(a, "handle", a) for a in args], out.handle))
    else:
        function(*args, out)
    name = function if isinstance(function, str) else function.__name__
    print(name, shape, hashlib.sha256(out.asnumpy().tobytes()).hexdigest())

for shape in ((1, 1), (3, 257), (1025, 10), (33, 31), (129, 500)):
    a, b = given(*shape), given(*shape)
    filled = given(*shape)
    gpu_op.array_set(filled, 1.5)
    print("array_set", shape, hashlib.sha256(filled.asnumpy().tobytes()).hexdigest())
    show(gpu_op.broadcast_to, (5, *shape), a)
    for function in (gpu_op.reduce_sum_axis_zero, "DLGpuReduceSumAxisZeroV1"):
        show(function, shape[1:], a)
    for function in (gpu_op.matrix_elementwise_add, gpu_op.matrix_elementwise_multiply):
        show(function, shape, a, b)
    show(gpu_op.matrix_elementwise_add_by_const, shape, a, 0.3)
    show(gpu_op.matrix_elementwise_multiply_by_const, shape, a, 0.3)
    show(gpu_op.relu, shape, a)
    show(gpu_op.relu_gradient, shape, a, b)
    show(gpu_op.softmax, shape, a)
    show("DLGpuSoftmaxV1", shape, a)
    show(gpu_op.softmax_cross_entropy, (1,), a, b)
for m, n, k in ((1, 1, 1), (33, 65, 40), (127, 10, 100), (64, 48, 32)):
    for ta in (False, True):
        for tb in (False, True):
            a = given(*((k, m) if ta else (m, k)))
            b = given(*((n, k) if tb else (k, n)))
            show(gpu_op.matrix_multiply, (m, n), a, ta, b, tb)
            show("DLGpuMatrixMultiplyV1", (m, n), a, ta, b, tb)
"""


def test_the_kernels_of_the_assignment_write_the_same_bits(tmp_path):
    options = Options(load_rubric("default"), "emulated", only=("build",), keep=tmp_path)
    assert grade(emulator_kit.ROOT / "solution", options).results[0].status == PASS
    outputs = []
    for loops in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", LAUNCHES], cwd=tmp_path, capture_output=True, text=True,
            timeout=120, env={**os.environ, "EMULATOR_LOOPS": loops},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert len(outputs[0].splitlines()) == 5 * 13 + 4 * 4 * 2
    assert outputs[0] == outputs[1]


def test_sums_of_floats_have_the_same_bits(kit):
    outputs = [kit.run("barriers", "print_results", EMULATOR_LOOPS=loops) for loops in "01"]
    assert [done.returncode for done in outputs] == [0, 0]
    assert len(outputs[0].stdout.splitlines()) == 300
    assert outputs[0].stdout == outputs[1].stdout


# --- blocks side by side -------------------------------------------------------------------------

SIDE_BY_SIDE = {"bracketed", "leaves", "chosen", "cycles", "later", "typed", "bounded"}


def test_blocks_side_by_side_write_the_bits_of_threads(kit):
    shown = {
        (loops, threads): kit.run("flat", "all", EMULATOR_LOOPS=loops, EMULATOR_THREADS=threads)
        for loops in "01"
        for threads in "13"
    }
    assert {done.returncode for done in shown.values()} == {0}
    (values,) = {done.stdout for done in shown.values()}
    assert len(set(values.splitlines())) > 100


def test_only_the_thread_s_number_in_the_grid_lets_blocks_run_side_by_side():
    how = explained(emulator_kit.PROGRAMS / "flat.cu")
    assert {name for name in how if "side by side" in how[name]} == SIDE_BY_SIDE
    assert all(way.startswith("loops") for way in how.values())


@pytest.mark.parametrize("threads", ["1", "2"])
def test_of_blocks_side_by_side_the_thread_that_failed_is_named(kit, threads):
    done = kit.run("flat", "past_the_end", EMULATOR_THREADS=threads)
    assert done.stdout == "700\n"
    assert re.search(r"kernel leaves, block \(\d+, 0, 0\), thread \(0, 0, 0\): ", done.stderr)
    if threads == "1":  # which holds 100 blocks
        assert "block (100, 0, 0)" in done.stderr


@pytest.mark.parametrize("use", ["threadIdx.x", "blockIdx.x + 1", "blockDim.x", "gridDim.x"])
def test_the_compiler_refuses_a_flat_kernel_that_asks_for_more(tmp_path, monkeypatch, use):
    """Even if the pass took it for one: the first version then runs thread by thread."""
    source = tmp_path / "more.cu"
    source.write_text(
        "__global__ void more(float* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
        f"if (i < n) out[i] = {use}; }}"
    )
    assert explained(source)["more"] == "loops"
    code = (
        "import sys; sys.path[:0] = [sys.argv[1]]; import emucc; from block_loops import "
        "thread_loops; thread_loops.knows_flat_threads = lambda kernel: True; "
        "sys.exit(emucc.main(['--explain', sys.argv[2]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, emulator_kit.EMULATOR, source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(None, 1)[1].startswith("fibers"), done.stdout
