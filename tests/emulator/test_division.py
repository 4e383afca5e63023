"""An integer that a kernel divides by zero, or the smallest one by -1: a GPU goes on."""

import platform

import pytest

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the CPU goes on by itself"
)
TEXT = """
#include <cstdio>
template <class T> __global__ void divide(const T* x, const T* y, T* out, T* rest) {
  const int i = threadIdx.x;
  out[i] = x[i] / y[i];
  rest[i] = x[i] % y[i];
}
// Where nothing is divided, the result is not used.
__global__ void used(const int* y, int* out) {
  const int i = threadIdx.x, row = 100 / y[i];
  if (y[i] != 0) out[i] = row;
}
template <class T> void show(const char* name, T smallest) {
  T x[4] = {7, 9, smallest, 100}, y[4] = {2, 0, T(-1), 7}, *a, *b, *c, *d;
  cudaMalloc(&a, sizeof x); cudaMalloc(&b, sizeof x); cudaMalloc(&c, sizeof x);
  cudaMalloc(&d, sizeof x);
  cudaMemcpy(a, x, sizeof x, cudaMemcpyHostToDevice);
  cudaMemcpy(b, y, sizeof y, cudaMemcpyHostToDevice);
  divide<<<1, 4>>>(a, b, c, d);
  cudaMemcpy(x, c, sizeof x, cudaMemcpyDeviceToHost);
  cudaMemcpy(y, d, sizeof x, cudaMemcpyDeviceToHost);
  std::printf("%s %lld %lld %d, %lld %lld %lld\\n", name, (long long)x[0], (long long)x[3],
              x[2] == smallest || T(-1) > 0, (long long)y[0], (long long)y[3],
              T(-1) > 0 ? 0 : (long long)y[2]);
}
int main() {
  show<int>("int", -2147483647 - 1);
  show<unsigned>("unsigned", 5);
  show<long long>("long", -9223372036854775807ll - 1);
  show<unsigned long long>("ulong", 5);
  show<short>("short", -32768);
  int y[4] = {5, 0, 4, 0}, out[4] = {}, *a, *b;
  cudaMalloc(&a, sizeof y);
  cudaMalloc(&b, sizeof y);
  cudaMemcpy(a, y, sizeof y, cudaMemcpyHostToDevice);
  cudaMemset(b, 0, sizeof y);
  used<<<1, 4>>>(a, b);
  cudaMemcpy(out, b, sizeof y, cudaMemcpyDeviceToHost);
  std::printf("%d %d %d %d: %s\\n", out[0], out[1], out[2], out[3],
              cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


@pytest.mark.parametrize("loops", ["0", "1"])
def test_a_division_without_a_result_goes_on_as_on_a_gpu(kit, tmp_path, loops):
    source = tmp_path / "divide.cu"
    source.write_text(TEXT)
    program = kit.link(kit.compile_kernels(source), tmp_path / "divide")
    done = kit.call(program, env={"EMULATOR_LOOPS": loops})
    wanted = [f"{name} 3 14 1, 1 2 0" for name in ("int", "unsigned", "long", "ulong", "short")]
    wanted += ["20 0 25 0: cudaSuccess"]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == wanted


def test_a_division_of_the_hosts_ends_it_as_before(kit, tmp_path):
    source = tmp_path / "host.cu"
    source.write_text("int main(int n, char**) { cudaFree(nullptr); return 7 / (n - 1); }\n")
    done = kit.call(kit.link(kit.compile_kernels(source), tmp_path / "host"))
    assert done.returncode == -8
    assert "emulated GPU" not in done.stderr
