// Kernels whose blocks may run side by side as if they were one, and kernels that look like them.
// `all` prints sums of what each writes, for grids and blocks that fit and that do not.
#include "check.h"

__global__ void bracketed(const float* a, float* out, int n) {
  int i = (blockIdx.x * blockDim.x) + threadIdx.x;
  if (i < n) out[i] = 2 * a[i] + i;
}
__global__ void leaves(float* out, int n) {
  unsigned i = threadIdx.x + blockDim.x * blockIdx.x;
  if (i >= n) return;
  out[i] += 1.5f;  // past the end
}
__global__ void one_more(float* out, int n) {
  int i = 1 + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i;
}
__global__ void pairs(float* out, int n) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 1 < n) {
    out[i] = 1;
    out[i + 1] = 2;
  }
}
__global__ void place_in_block(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int t = threadIdx.x;
  if (i < n) out[i] = t;
}
__global__ void of_its_block(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = blockIdx.x;
}
__global__ void chosen(float* out, const float* a, int n) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) out[i] = i % 7 == 0 ? a[i / 2] : -1;
}
__global__ void cycles(float* out, const float* a, int n, int m) {
  long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i % m];
}
__global__ void later(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 3;
  if (i < n) out[i] = sqrtf(i);
}
__global__ void wraps(float* out, int n) {
  short i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 0 && i < n) out[i] = i;
}
template <typename T>
__global__ void typed(T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = T(i);
}
__global__ __launch_bounds__(128) void bounded(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i;
}
__global__ void counted(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&out[i % 5], 1);
}

static std::vector<float> ramp(int n) {
  std::vector<float> values(n);
  for (int i = 0; i < n; ++i) values[i] = i * 37 % 1001 - 500;
  return values;
}
static void show(const std::vector<float>& values) {
  double sum = 0, weighed = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[i], weighed += values[i] * (i % 101);
  std::printf("%zu %.9g %.9g\n", values.size(), sum, weighed);
}

CASE(all) {
  for (int n : {5, 31, 1000, 4096, 33000, 100001})
    for (int block : {1, 32, 100, 256, 1024}) {
      int grid = (n + block - 1) / block;
      Device<float> a(ramp(n)), out(ramp(n));
#define SHOW(kernel, blocks, threads, ...)                \
  kernel<<<blocks, threads>>>(__VA_ARGS__);               \
  CHECK(cudaDeviceSynchronize() == cudaSuccess);          \
  show(out.get())
      SHOW(bracketed, grid, block, a.data, out.data, n);
      SHOW(leaves, grid, block, out.data, n);
      SHOW(leaves, grid + 3, block, out.data, n);
      SHOW(one_more, grid, block, out.data, n);
      SHOW(pairs, grid, block, out.data, n);
      SHOW(place_in_block, grid, block, out.data, n);
      SHOW(of_its_block, grid, block, out.data, n);
      SHOW(chosen, grid, block, out.data, a.data, n);
      SHOW(cycles, grid, block, out.data, a.data, n, n / 3 + 1);
      SHOW(later, grid, block, out.data, n);
      SHOW(wraps, grid < 30000 / block ? grid : 30000 / block, block, out.data, n);
      SHOW(typed, grid, block, out.data, n);
      SHOW(counted, grid, block, out.data, n);
      if (block <= 128) {
        SHOW(bounded, grid, block, out.data, n);
      }
      SHOW(bracketed, dim3(grid, 2), dim3(block / 32 + 1, 4), a.data, out.data, n);
      SHOW(later, dim3(grid, 3), block, out.data, n);
      SHOW(typed, dim3(grid, 1, 2), block, out.data, n);
    }
}

// 100 blocks fit.
CASE(past_the_end) {
  Device<float> out(ramp(25600));
  leaves<<<1 << 20, 256>>>(out.data, 1 << 30);
  std::printf("%d\n", cudaDeviceSynchronize());
}
