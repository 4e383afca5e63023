// feature: arrays of char, short, bool and int8, neighbours written by different threads
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(char* c, short* s, bool* b, int8_t* i8, uint16_t* u16, int n) {
  __shared__ char shared[128];
  int i = threadIdx.x;
  shared[i] = static_cast<char>(i);
  __syncthreads();
  if (i >= n) return;
  c[i] = static_cast<char>(shared[127 - i] / 2);
  s[i] = static_cast<short>(-300 * i);
  b[i] = i % 3 == 0;
  i8[i] = static_cast<int8_t>(i - 60);
  u16[i] = static_cast<uint16_t>(i * 600);
}

int main() {
  const int n = 101;
  char* c;
  short* s;
  bool* b;
  int8_t* i8;
  uint16_t* u16;
  check(cudaMalloc(&c, n));
  check(cudaMalloc(&s, n * sizeof(short)));
  check(cudaMalloc(&b, n));
  check(cudaMalloc(&i8, n));
  check(cudaMalloc(&u16, n * sizeof(uint16_t)));
  fill<<<1, 128>>>(c, s, b, i8, u16, n);
  check(cudaGetLastError());
  char host_c[n];
  short host_s[n];
  bool host_b[n];
  int8_t host_i8[n];
  uint16_t host_u16[n];
  check(cudaMemcpy(host_c, c, sizeof host_c, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(host_s, s, sizeof host_s, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(host_b, b, sizeof host_b, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(host_i8, i8, sizeof host_i8, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(host_u16, u16, sizeof host_u16, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 10)
    std::printf("%d %d %d %d %d\n", host_c[i], host_s[i], host_b[i], host_i8[i], host_u16[i]);
  check(cudaFree(c));
  check(cudaFree(s));
  check(cudaFree(b));
  check(cudaFree(i8));
  check(cudaFree(u16));
}
