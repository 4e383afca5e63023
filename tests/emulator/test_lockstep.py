"""The compiler warns of code that needs the lanes of a warp in step, and of no other."""

import shutil
import subprocess

import pytest

import kit
import rewrite
from cuda_source.lockstep import warn_of_lockstep
from cuda_source.refusals import device_bodies
from cuda_source.tokens import Tokens


def warned(source):
    """The line, from 1, of each warning."""
    tokens = Tokens(source)
    edits = warn_of_lockstep(tokens, device_bodies(tokens))
    return [source.count("\n", 0, edit.start) + 1 for edit in edits]


UNROLLED = """\
__device__ void last_warp({volatile}float* s, int t) {{
  if (blockDim.x > 32) s[t] += s[t + 32];{barrier}
  s[t] += s[t + 16];{barrier}
  s[t] += s[t + 8];{barrier}
}}
"""
LOOP = """\
__global__ void sum(float* out) {{
  {volatile}__shared__ float s[64];
  int t = threadIdx.x;
  for (int o = 16; o > 0; o >>= 1) {{
    s[t] = s[t] + s[t + o];{barrier}
  }}
}}
"""


@pytest.mark.parametrize(
    ("source", "volatile", "line"),
    [(UNROLLED, "volatile ", 2), (UNROLLED, "", 2), (LOOP, "volatile ", 5)],
)
def test_steps_without_a_barrier_are_warned_of_at_the_first(source, volatile, line):
    assert warned(source.format(volatile=volatile, barrier="")) == [line]
    for barrier in (" __syncwarp();", " __syncthreads();", " cg::sync(tile);"):
        assert warned(source.format(volatile=volatile, barrier=barrier)) == []


@pytest.mark.parametrize(
    "body",
    [
        "volatile float* v = s; v[t] = sum = sum + v[t + 32]; v[t] = sum = sum + v[t + 16];",
        "volatile int* v = s; v[t] = min(v[t], v[t + 2]); v[t] = min(v[t], v[t + 1]);",
        "__shared__ volatile int v[64]; for (int o = 1; o < 32; o *= 2)"
        " { int x = v[t - o]; v[t] += x; }",
        "extern volatile __shared__ int v[]; while (o /= 2) if (t < o) v[t] += v[t + o];",
    ],
)
def test_other_forms_of_it(body):
    assert warned(f"__global__ void k(int* s, int t, int o) {{ {body} }}") == [1]


@pytest.mark.parametrize(
    "body",
    [
        "volatile int* v = s; for (int i = 1; i < n; i++) v[i] += v[i - 1];",
        "volatile int* v = s; v[0] += v[1]; v[1] += v[2];",
        "volatile int* v = s; v[t] += v[t + 1];",
        "volatile int* v = s; for (int o = 16; o; o /= 2)"
        " { int x = v[t + o]; __syncwarp(); v[t] += x; __syncwarp(); }",
        "for (int o = 16; o; o /= 2) s[t] += s[t + o];",
        "s[t] += s[t + 1]; s[t] += s[t + 2]; s[t] += s[t + 3];",
        "s[t] = a[t + 32]; s[t] = a[t + 16]; s[t] = a[t + 8];",
    ],
)
def test_what_one_thread_may_do_alone_is_not_warned_of(body):
    assert warned(f"__global__ void k(int* s, int* a, int t, int n) {{ {body} }}") == []


def test_host_code_is_not_warned_of():
    assert warned("void f(volatile int* v, int t) { v[t] += v[t + 2]; v[t] += v[t + 1]; }") == []


@pytest.mark.parametrize("cxx", ["g++", "clang++"])
def test_the_compiler_names_the_line(tmp_path, cxx):
    if shutil.which(cxx) is None:
        pytest.skip(f"there is no {cxx}")
    source = UNROLLED.format(volatile="volatile ", barrier="")
    plain = tmp_path / "sum.cc"
    plain.write_text(rewrite.rewrite(source, "sum.cu")[0])
    command = [cxx, "-std=c++17", f"-I{kit.EMULATOR / 'include'}", "-include", "cuda_runtime.h"]
    command += ["-fsyntax-only", plain]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: ") == 1
    assert "sum.cu:2:" in done.stderr and "__syncwarp()" in done.stderr
