// Shows: radix sort, one bit a pass: a scan of the predicate gives each key its place.
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define checkCudaErrors(val) check((val), #val, __FILE__, __LINE__)

template <typename T>
void check(T err, const char *const func, const char *const file, const int line)
{
  if (err != cudaSuccess) {
    fprintf(stderr, "CUDA error at: %s : %d\n", file, line);
    fprintf(stderr, "%s %s\n", cudaGetErrorString(err), func);
    exit(1);
  }
}

const unsigned int numThreads = 256;

// Exclusive scan of "the bit is 0" inside of each block, and the sum of each block.
__global__ void scanZeros(const unsigned int *keys, unsigned int *places, unsigned int *blockSums, int n, unsigned int bit)
{
  __shared__ unsigned int warpSums[numThreads / 32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const bool zero = i < n && !(keys[i] >> bit & 1u);
  const unsigned int ballot = __ballot_sync(0xffffffffu, zero);
  const unsigned int before = __popc(ballot & ((1u << lane) - 1));
  if (lane == 0) warpSums[warp] = __popc(ballot);
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned int sum = 0;
    for (int w = 0; w < numThreads / 32; ++w) {
      unsigned int count = warpSums[w];
      warpSums[w] = sum;
      sum += count;
    }
    blockSums[blockIdx.x] = sum;
  }
  __syncthreads();
  if (i < n) places[i] = before + warpSums[warp];
}

__global__ void scanSums(unsigned int *sums, int count, unsigned int *total)
{
  unsigned int running = 0;
  for (int i = 0; i < count; ++i) {
    unsigned int mine = sums[i];
    sums[i] = running;
    running += mine;
  }
  *total = running;
}

__global__ void scatter(const unsigned int *keys, const unsigned int *values, unsigned int *outKeys,
                        unsigned int *outValues, const unsigned int *places, const unsigned int *sums,
                        const unsigned int *zeros, int n, unsigned int bit)
{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned int zerosBefore = sums[blockIdx.x] + places[i];
  const unsigned int place = keys[i] >> bit & 1u ? *zeros + i - zerosBefore : zerosBefore;
  outKeys[place] = keys[i];
  outValues[place] = values[i];
}

int main()
{
  const int n = 3001, blocks = (n + numThreads - 1) / numThreads, bits = 12;
  std::vector<unsigned int> keys(n), values(n), outKeys(n), outValues(n);
  for (int i = 0; i < n; ++i) {
    keys[i] = (i * 2654435761u >> 7) & ((1u << bits) - 1);
    values[i] = i;
  }
  unsigned int *d[6], *d_total;
  for (int i = 0; i < 5; ++i) checkCudaErrors(cudaMalloc(&d[i], n * sizeof(unsigned int)));
  checkCudaErrors(cudaMalloc(&d[5], blocks * sizeof(unsigned int)));
  checkCudaErrors(cudaMalloc(&d_total, sizeof(unsigned int)));
  checkCudaErrors(cudaMemcpy(d[0], keys.data(), n * sizeof(unsigned int), cudaMemcpyHostToDevice));
  checkCudaErrors(cudaMemcpy(d[1], values.data(), n * sizeof(unsigned int), cudaMemcpyHostToDevice));
  for (unsigned int bit = 0; bit < bits; ++bit) {
    scanZeros<<<blocks, numThreads>>>(d[0], d[4], d[5], n, bit);
    scanSums<<<1, 1>>>(d[5], blocks, d_total);
    scatter<<<blocks, numThreads>>>(d[0], d[1], d[2], d[3], d[4], d[5], d_total, n, bit);
    checkCudaErrors(cudaGetLastError());
    std::swap(d[0], d[2]);
    std::swap(d[1], d[3]);
  }
  checkCudaErrors(cudaMemcpy(outKeys.data(), d[0], n * sizeof(unsigned int), cudaMemcpyDeviceToHost));
  checkCudaErrors(cudaMemcpy(outValues.data(), d[1], n * sizeof(unsigned int), cudaMemcpyDeviceToHost));

  std::stable_sort(values.begin(), values.end(), [&](unsigned a, unsigned b) { return keys[a] < keys[b]; });
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += outValues[i] != values[i] || outKeys[i] != keys[values[i]];
  printf("%d keys of %d bits: %d wrong\n", n, bits, wrong);
  for (unsigned int *p : d) checkCudaErrors(cudaFree(p));
  checkCudaErrors(cudaFree(d_total));
  return wrong != 0;
}
