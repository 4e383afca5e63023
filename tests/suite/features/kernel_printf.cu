// feature: printf in kernels, one thread at a time
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void say(int round) {
  if (threadIdx.x == 3 && blockIdx.x == 1)
    printf("round %d, thread %u of %u: %s %.9g %c%%\n", round, threadIdx.x, blockDim.x, "text",
           round + 0.25, 'x');
}

int main() {
  for (int round = 0; round < 3; ++round) {
    say<<<2, 8>>>(round);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    std::printf("host after round %d\n", round);
    std::fflush(stdout);
  }
}
