"""Every standard of C++ that nvcc knows: the headers, and kernels."""

import shutil
import subprocess

import pytest

import kit as emulator_kit

INCLUDE = emulator_kit.EMULATOR / "include"
HEADERS = [
    path.relative_to(INCLUDE)
    for path in sorted(INCLUDE.rglob("*.h*"))
    if path.parent.name != "emulator" and "\n#error the emulated" not in path.read_text()
]
STANDARDS = ("11", "14", "17", "20")
PROGRAM = """
#include <cstdio>
struct Pair { int a, b; };
template <int Size> __global__ void turn(int n, const int* in, int* out) {
  __shared__ int tile[Size];
  const int i = blockIdx.x * Size + threadIdx.x;
  tile[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  if (i < n) out[i] = tile[Size - 1 - threadIdx.x] + max(i, 3) - i;
}
__global__ void __launch_bounds__(64) add(Pair by, int n, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += by.a - by.b;
}
int main() {
  int in[64], *data, *out;
  for (int i = 0; i < 64; ++i) in[i] = i;
  cudaMalloc(&data, sizeof in);
  cudaMalloc(&out, sizeof in);
  cudaMemcpy(data, in, sizeof in, cudaMemcpyHostToDevice);
  turn<32><<<2, 32>>>(64, data, out);
  add<<<1, 64>>>(Pair{5, 3}, 64, out);
  cudaMemcpy(in, out, sizeof in, cudaMemcpyDeviceToHost);
  std::printf("%ld %d %d\\n", __cplusplus, in[0], in[63]);
}
"""


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_headers_are_good_for_each_standard(kit, tmp_path, compiler, standard):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    source = tmp_path / "all.cc"
    source.write_text("".join(f"#include <{header}>\n" for header in HEADERS))
    blas = [flag for flag in kit.flags if flag.startswith("-I")]
    command = [compiler, f"-std=c++{standard}", *blas, "-fsyntax-only", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("standard, seen", [("03", "201402"), ("11", "201402"), ("14", "201402"),
                                            ("17", "201703"), ("20", "202002")])  # fmt: skip
def test_kernels_are_compiled_in_each_standard(kit, tmp_path, standard, seen):
    source = tmp_path / "kernels.cu"
    source.write_text(PROGRAM)
    built = kit.emucc("-Xcompiler", "-Wall,-Wextra", f"-std=c++{standard}", "-c", source, "-o",
                      tmp_path / "kernels.o")  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    done = kit.call(kit.link(tmp_path / "kernels.o", tmp_path / "kernels"))
    assert done.stdout == f"{seen} 36 34\n", done.stderr
    said = kit.emucc(f"-std=c++{standard}", "--explain", source).stdout
    assert said.count(" loops") == 2, said
