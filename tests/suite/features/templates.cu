// feature: templates of kernels and device functions, of types, numbers and functors
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

struct Square {
  template <typename T>
  __device__ T operator()(T x) const {
    return x * x;
  }
};

struct AddConstant {
  int value;
  template <typename T>
  __device__ T operator()(T x) const {
    return x + static_cast<T>(value);
  }
};

template <typename T, int kRepeat, typename F>
__global__ void map(const T* in, T* out, int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T x = in[i];
#pragma unroll
  for (int k = 0; k < kRepeat; ++k) x = f(x);
  out[i] = x;
}

template <typename T, int kRepeat, typename F>
void show(F f) {
  const int n = 40;
  std::vector<T> host(n);
  for (int i = 0; i < n; ++i) host[i] = static_cast<T>(i % 5);
  T *in, *out;
  check(cudaMalloc(&in, n * sizeof(T)));
  check(cudaMalloc(&out, n * sizeof(T)));
  check(cudaMemcpy(in, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  map<T, kRepeat><<<2, 32>>>(in, out, n, f);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(T), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9) std::printf("%.9g\n", static_cast<double>(host[i]));
  check(cudaFree(in));
  check(cudaFree(out));
}

int main() {
  show<float, 2>(Square());
  show<double, 3>(Square());
  show<int, 1>(AddConstant{7});
  show<long long, 4>(AddConstant{-2});
}
