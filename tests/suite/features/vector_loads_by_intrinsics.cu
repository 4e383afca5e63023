// feature: vectors are loaded by __ldg, __ldcs and by value, and stored through functions
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

template <typename T>
struct alignas(16) Pack {
  T at[16 / sizeof(T)];
};
template <typename T>
__device__ void store(T* to, T value) {
  *to = value;
}
__device__ float4 load(const float* from) { return *reinterpret_cast<const float4*>(from); }

__global__ void by_ldg(const float4* in, float4* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __ldg(in + i);
}
__global__ void by_value(const float* in, float4* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = load(in + 4 * i);
  v.x += 1;
  store(out + i, v);
}
__global__ void by_pack(const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Pack<float> v = *reinterpret_cast<const Pack<float>*>(in + 4 * i);
  for (int k = 0; k < 4; ++k) v.at[k] *= 2;
  *reinterpret_cast<Pack<float>*>(out + 4 * i) = v;
}
__global__ void by_stream(const int4* in, int4* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __stcs(out + i, __ldcs(in + i));
}

int main() {
  const int n = 1024;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  float *a, *b;
  check(cudaMalloc(&a, n * sizeof(float)));
  check(cudaMalloc(&b, n * sizeof(float)));
  check(cudaMemcpy(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  by_ldg<<<2, 128>>>(reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(b));
  by_value<<<2, 128>>>(b, reinterpret_cast<float4*>(a));
  by_pack<<<2, 128>>>(a, b);
  by_stream<<<2, 128>>>(reinterpret_cast<int4*>(b), reinterpret_cast<int4*>(a));
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 100) std::printf("%.9g\n", host[i]);
  check(cudaFree(a));
  check(cudaFree(b));
}
