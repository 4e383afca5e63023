// feature: a block whose last warp is not full, with shuffles among the lanes that there are
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const int* in, int* out, int n) {
  int t = threadIdx.x;
  unsigned members = __ballot_sync(t < 32 ? 0xffffffff : (1u << (n - 32)) - 1, 1);
  int lanes = __popc(members), lane = t % 32, value = in[t];
  for (int step = 16; step > 0; step /= 2) {
    int other = __shfl_down_sync(members, value, step);
    if (lane + step < lanes) value += other;
  }
  if (lane == 0) out[t / 32] = value;
}

int main() {
  const int n = 45;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *out, sums[2];
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, sizeof sums));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum<<<1, n>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost));
  std::printf("%d %d\n", sums[0], sums[1]);
  check(cudaFree(in));
  check(cudaFree(out));
}
