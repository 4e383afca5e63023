// feature: functions of the device: recursive, overloaded, inlined, shared with the host; classes
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__host__ __device__ int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
__device__ __forceinline__ int half(int x) { return x / 2; }
__device__ __noinline__ float half(float x) { return 0.5f * x; }

class Counter {
 public:
  __host__ __device__ explicit Counter(int start) : value_(start) {}
  __host__ __device__ Counter& operator+=(int step) {
    value_ += step;
    return *this;
  }
  __host__ __device__ int value() const { return value_; }

 private:
  int value_;
};

__global__ void __launch_bounds__(64) compute(float* out, const float* __restrict__ in, Counter c) {
  int i = threadIdx.x, local[8];
  for (int k = 0; k < 8; ++k) local[k] = (k + i) % 8;
  c += local[(i * 3) % 8];
  switch (i % 4) {
    case 0:
      out[i] = factorial(i % 7);
      break;
    case 1:
      out[i] = half(i) + half(in[i]);
      break;
    default:
      out[i] = c.value();
  }
}

int main() {
  const int n = 64;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i + 0.5f;
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  Counter counter(100);
  counter += factorial(4);
  compute<<<1, n>>>(out, in, counter);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 5) std::printf("%.9g\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}
