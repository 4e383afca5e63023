// Loops of which a chunk of threads takes each turn together: their counters grow by 1 along x.
#include <climits>

#include "show.h"

// Whose last turn some threads of a chunk do not take, with sums that depend on the order.
__global__ void sums(const float* a, float* out, int n) {
  int t = threadIdx.x;
  float sum = 0.5f, most = -INFINITY;
  for (int j = t; j < n; j += blockDim.x) {
    float x = a[j] - sum;
    sum = sum * 0.75f + x;
  }
  for (int j = t; j < n; j += blockDim.x) most = fmaxf(most, a[j] - sum);
  out[t] = sum + expf(most / 128);
}

CASE(sums_in_turns) {
  Device<float> a(counted<float>(128)), out(37);
  for (int n : {128, 127, 100, 37, 36, 5, 1, 0}) {
    sums<<<1, 37>>>(a.data, out.data, n);
    show(out);
  }
}

// In place, a row a block, with barriers and the sum of all.
__global__ void rows(float* a, int columns) {
  __shared__ float part[64];
  float* row = a + blockIdx.x * columns;
  float sum = 0;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) {
    const float e = expf(row[j] * 0.01f);
    row[j] = e;
    sum += e;
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  for (int j = threadIdx.x; j < columns; j += blockDim.x) row[j] /= part[0];
}

CASE(rows_in_place) {
  Device<float> a(counted<float>(3 * 150));
  rows<<<3, 64>>>(a.data, 150);
  show(a);
}

// Counters that wrap around, begin below 0, or come twice.
template <typename Counter>
__global__ void bytes(float* out, int limit) {
  float sum = 0;
  for (Counter j = threadIdx.x; j < limit; j += 96) sum = sum * 3 + j;
  out[threadIdx.x] = sum;
}

__global__ void ints(float* out, int begin, unsigned limit, int step) {
  float sum = 0;
  for (int j = begin + threadIdx.x; j < limit; j += step) sum = sum * 3 + j % 64;
  out[threadIdx.x] = sum;
}

__global__ void unsigned_ones(float* out, unsigned begin, unsigned limit, int step) {
  float sum = 0;
  for (unsigned j = begin + threadIdx.x; j < limit; j += step) sum = sum * 3 + j % 64;
  out[threadIdx.x] = sum;
}

__global__ void wide_ones(float* out, unsigned long long begin, unsigned long long limit) {
  float sum = 0;
  for (unsigned long long j = begin + threadIdx.x; j < limit; j += 50) sum = sum * 3 + j % 64;
  out[threadIdx.x] = sum;
}

__global__ void shorts(float* out, int begin, int limit) {
  float sum = 0;
  for (short j = begin + threadIdx.x; j < limit; j += 40) sum = sum * 3 + j % 64;
  out[threadIdx.x] = sum;
}

// Beside an unsigned limit, what is below 0 is the greatest: threads between others have no turn.
__global__ void below_zero(float* out, unsigned limit) {
  unsigned sum = 0;
  for (short j = threadIdx.x - 10; j < limit; j += 4) sum = sum * 3 + j;
  out[threadIdx.x] = sum % 1024;
}

__global__ void remainders(float* out, int limit) {
  float sum = 0;
  for (int j = threadIdx.x % 24; j <= limit; j += 24) sum = sum * 3 + j;
  out[threadIdx.x] = sum;
}

__global__ void fractions(float* out, float limit) {
  float sum = 0;
  for (int j = threadIdx.x; j < limit; j += 1.75f) sum = sum * 1.5f + j;
  for (int j = threadIdx.x; j < limit; j += 9) sum = sum * 1.5f - j;
  out[threadIdx.x] = sum;
}

CASE(counters_that_come_around) {
  Device<float> out(48);
  const int begins[] = {0, -20, -100, INT_MIN};
  for (int begin : begins) {
    ints<<<1, 48>>>(out.data, begin, 200, 1 << 30);
    show(out);
    ints<<<1, 48>>>(out.data, begin < -100 ? -90 : begin, 4000000000u, 1000000007);
    show(out);
  }
  for (unsigned begin : {0u, 4294967290u, 4294967200u, 2147483640u}) {
    unsigned_ones<<<1, 48>>>(out.data, begin, 4000000000u, 1000000007);
    show(out);
    unsigned_ones<<<1, 48>>>(out.data, begin, 30, 1431655765);
    show(out);
  }
  wide_ones<<<1, 48>>>(out.data, 18446744073709551600ull, 130);
  show(out);
  wide_ones<<<1, 48>>>(out.data, 9223372036854775800ull, 9223372036854775900ull);
  show(out);
  shorts<<<1, 48>>>(out.data, 32760, 100);
  show(out);
  shorts<<<1, 48>>>(out.data, -30, 100);
  show(out);
  Device<float> many(300);
  bytes<unsigned char><<<1, 300>>>(many.data, 90);
  show(many);
}

CASE(counters_below_zero) {
  Device<float> out(48);
  below_zero<<<1, 48>>>(out.data, 4294967290u);
  show(out);
}

CASE(counters_that_come_twice) {
  Device<float> out(48);
  remainders<<<1, 48>>>(out.data, 100);
  show(out);
  fractions<<<1, 48>>>(out.data, 60.5f);
  show(out);
}

// Within a loop of the block, and with what each thread keeps.
__global__ void nested(const float* a, float* out, int n, int turns) {
  float sum = 0, product = 1;
  for (int k = 0; k < turns; ++k) {
    const int first = threadIdx.x + k;
    for (int j = first; j < n; j += 7 + k) sum += a[j] * k;
    product = product * 0.5f + sum;
    for (int j = threadIdx.x; j < n; j += blockDim.x) product -= a[j] * 0.125f;
  }
  out[threadIdx.x] = product;
}

CASE(nested_loops) {
  Device<float> a(counted<float>(100)), out(40);
  nested<<<1, 40>>>(a.data, out.data, 100, 3);
  show(out);
}

// Threads that have nothing to do, and rows of a block.
__global__ void rows_of_threads(const float* a, float* out, int n) {
  if (threadIdx.x >= 21) return;
  float sum = 0;
  for (int j = threadIdx.x + threadIdx.y * 2; j < n - threadIdx.y; j += 21) sum += a[j] / (j + 1);
  out[threadIdx.y * 24 + threadIdx.x] = sum;
}

CASE(threads_with_nothing_to_do) {
  Device<float> a(counted<float>(100)), out(72);
  CHECK(cudaMemset(out.data, 0, 72 * sizeof(float)) == cudaSuccess);
  rows_of_threads<<<1, dim3(24, 3)>>>(a.data, out.data, 100);
  show(out);
}

// Whose counter begins with what a function of the program knows of the thread.
__device__ inline size_t first_of_thread() {
  return blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
}

__global__ void from_a_function(const float* a, float* out, size_t n) {
  for (size_t i = first_of_thread(); i < n; i += gridDim.x * blockDim.x) out[i] = a[i] * 2 + 1;
}

CASE(begins_with_a_function) {
  Device<float> a(counted<float>(100)), out(100);
  from_a_function<<<2, 24>>>(a.data, out.data, 100);
  show(out);
}
