// Shows: bitonic sort, one launch for each step over a large array, and one block for a small one.
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>
#include <cuda_runtime.h>

#define ERR(e) if ((e) != cudaSuccess) { printf("error in line %d\n", __LINE__); exit(EXIT_FAILURE); }

__global__ void bitonic_sort_step(float *dev_values, int j, int k)
{
  unsigned int i, ixj; /* Sorting partners: i and ixj */
  i = threadIdx.x + blockDim.x * blockIdx.x;
  ixj = i ^ j;

  /* The threads with the lowest ids sort the array. */
  if ((ixj) > i) {
    if ((i & k) == 0) {
      if (dev_values[i] > dev_values[ixj]) {
        float temp = dev_values[i];
        dev_values[i] = dev_values[ixj];
        dev_values[ixj] = temp;
      }
    }
    if ((i & k) != 0) {
      if (dev_values[i] < dev_values[ixj]) {
        float temp = dev_values[i];
        dev_values[i] = dev_values[ixj];
        dev_values[ixj] = temp;
      }
    }
  }
}

template <typename T>
__device__ inline void compare(T &a, T &b, bool up)
{
  if ((a > b) == up) {
    T t = a;
    a = b;
    b = t;
  }
}

__global__ void bitonic_sort_block(int *values, int n)
{
  extern __shared__ int s[];
  s[threadIdx.x] = threadIdx.x < n ? values[threadIdx.x] : INT_MAX;
  __syncthreads();
  for (unsigned int size = 2; size <= blockDim.x; size <<= 1) {
    for (unsigned int stride = size / 2; stride > 0; stride >>= 1) {
      unsigned int partner = threadIdx.x ^ stride;
      if (partner > threadIdx.x)
        compare(s[threadIdx.x], s[partner], (threadIdx.x & size) == 0);
      __syncthreads();
    }
  }
  if (threadIdx.x < n) values[threadIdx.x] = s[threadIdx.x];
}

void bitonic_sort(float *values, int n)
{
  float *dev_values;
  size_t size = n * sizeof(float);
  ERR(cudaMalloc((void**) &dev_values, size));
  ERR(cudaMemcpy(dev_values, values, size, cudaMemcpyHostToDevice));
  dim3 blocks(n / 128, 1);
  dim3 threads(128, 1);
  for (int k = 2; k <= n; k <<= 1) {
    for (int j = k >> 1; j > 0; j = j >> 1) {
      bitonic_sort_step<<<blocks, threads>>>(dev_values, j, k);
    }
  }
  ERR(cudaGetLastError());
  ERR(cudaMemcpy(values, dev_values, size, cudaMemcpyDeviceToHost));
  ERR(cudaFree(dev_values));
}

static int by_value(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

int main(void)
{
  const int n = 1024, few = 200;
  float values[n], sorted[n];
  for (int i = 0; i < n; ++i) values[i] = sorted[i] = (float)((i * 7919) % 2003);
  bitonic_sort(values, n);
  qsort(sorted, n, sizeof(float), by_value);
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += values[i] != sorted[i];
  printf("1024 floats: %s\n", wrong ? "NOT sorted" : "sorted");

  int numbers[few], *dev, wrong2 = 0;
  long sum = 0;
  for (int i = 0; i < few; ++i) sum += numbers[i] = (i * 37) % 211 - 100;
  ERR(cudaMalloc((void **)&dev, sizeof(numbers)));
  ERR(cudaMemcpy(dev, numbers, sizeof(numbers), cudaMemcpyHostToDevice));
  bitonic_sort_block<<<1, 256, 256 * sizeof(int)>>>(dev, few);
  ERR(cudaGetLastError());
  ERR(cudaMemcpy(numbers, dev, sizeof(numbers), cudaMemcpyDeviceToHost));
  for (int i = 0; i < few; ++i) {
    sum -= numbers[i];
    if (i > 0 && numbers[i] < numbers[i - 1]) ++wrong2;
  }
  wrong2 += sum != 0;
  printf("200 ints: %s\n", wrong2 ? "NOT sorted" : "sorted");
  ERR(cudaFree(dev));
  return wrong + wrong2;
}
