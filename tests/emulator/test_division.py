"""An integer that is divided by zero ends a launch in words, where a GPU goes on with any value."""

import platform

import pytest

TEXT = """
#include <cstdio>
__global__ void divide(const int* x, int* out) {
  out[threadIdx.x] = x[0] OPERATOR x[threadIdx.x];
}
int main() {
  int values[3] = {VALUES}, *x, *out;
  cudaMalloc(&x, sizeof values);
  cudaMalloc(&out, sizeof values);
  cudaMemcpy(x, values, sizeof values, cudaMemcpyHostToDevice);
  divide<<<1, 3>>>(x, out);
  std::printf("%d\\n", cudaDeviceSynchronize());
}
"""
CASES = [("/", "7, 2, 0"), ("%", "7, 2, 0"), ("/", "-2147483647 - 1, 2, -1")]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="no such signal")
@pytest.mark.parametrize("loops", ["0", "1"])
@pytest.mark.parametrize("operator, values", CASES)
def test_a_division_without_a_result_ends_the_launch_in_words(
    kit, tmp_path, operator, values, loops
):
    source = tmp_path / "divide.cu"
    source.write_text(TEXT.replace("OPERATOR", operator).replace("VALUES", values))
    program = kit.link(kit.compile_kernels(source), tmp_path / "divide")
    done = kit.call(program, env={"EMULATOR_LOOPS": loops})
    assert (done.returncode, done.stdout) == (0, "719\n"), done.stderr
    assert "kernel divide, block (0, 0, 0), thread (2, 0, 0)" in done.stderr
    assert ": divided an integer by zero, or the smallest integer by -1" in done.stderr
    assert "divide.cu:4" in done.stderr and "hint: " in done.stderr


def test_a_division_of_the_hosts_ends_it_as_before(kit, tmp_path):
    source = tmp_path / "host.cu"
    source.write_text("int main(int n, char**) { cudaFree(nullptr); return 7 / (n - 1); }\n")
    done = kit.call(kit.link(kit.compile_kernels(source), tmp_path / "host"))
    assert done.returncode == (-8 if platform.machine() in ("x86_64", "AMD64") else 0)
    assert "emulated GPU" not in done.stderr
