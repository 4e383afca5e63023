// Shows: unified memory with prefetch and advice, and a grid-stride loop.
#include <cuda_runtime.h>
#include <cmath>
#include <iostream>

inline cudaError_t checkCuda(cudaError_t result)
{
  if (result != cudaSuccess) {
    std::cerr << "CUDA Runtime Error: " << cudaGetErrorString(result) << std::endl;
    exit(1);
  }
  return result;
}

// CUDA 13 names places by a struct, before that they were numbers.
static void prefetch(void *ptr, size_t bytes, int device)
{
#if CUDART_VERSION >= 13000
  cudaMemLocation place;
  place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device == cudaCpuDeviceId ? 0 : device;
  checkCuda(cudaMemPrefetchAsync(ptr, bytes, place, 0, 0));
#else
  checkCuda(cudaMemPrefetchAsync(ptr, bytes, device));
#endif
}

static void advise(void *ptr, size_t bytes, cudaMemoryAdvise advice, int device)
{
#if CUDART_VERSION >= 13000
  cudaMemLocation place;
  place.type = cudaMemLocationTypeDevice;
  place.id = device;
  checkCuda(cudaMemAdvise(ptr, bytes, advice, place));
#else
  checkCuda(cudaMemAdvise(ptr, bytes, advice, device));
#endif
}

__global__ void initWith(float num, float *a, int N)
{
  int index = threadIdx.x + blockIdx.x * blockDim.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < N; i += stride) a[i] = num;
}

__global__ void addVectorsInto(float *result, float *a, float *b, int N)
{
  int index = threadIdx.x + blockIdx.x * blockDim.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < N; i += stride) result[i] = a[i] + b[i];
}

int main()
{
  int deviceId, numberOfSMs;
  checkCuda(cudaGetDevice(&deviceId));
  checkCuda(cudaDeviceGetAttribute(&numberOfSMs, cudaDevAttrMultiProcessorCount, deviceId));

  const int N = 1 << 16;
  size_t size = N * sizeof(float);
  float *a, *b, *c;
  checkCuda(cudaMallocManaged(&a, size));
  checkCuda(cudaMallocManaged(&b, size));
  checkCuda(cudaMallocManaged(&c, size));
  advise(a, size, cudaMemAdviseSetReadMostly, deviceId);
  advise(c, size, cudaMemAdviseSetPreferredLocation, deviceId);
  prefetch(a, size, deviceId);
  prefetch(b, size, deviceId);
  prefetch(c, size, deviceId);

  int threadsPerBlock = 256;
  int numberOfBlocks = 2;
  initWith<<<numberOfBlocks, threadsPerBlock>>>(3, a, N);
  initWith<<<numberOfBlocks, threadsPerBlock>>>(4, b, N);
  initWith<<<numberOfBlocks, threadsPerBlock>>>(0, c, N);
  addVectorsInto<<<numberOfBlocks, threadsPerBlock>>>(c, a, b, N);
  checkCuda(cudaGetLastError());
  prefetch(c, size, cudaCpuDeviceId);
  checkCuda(cudaDeviceSynchronize());

  int errors = numberOfSMs < 1;
  for (int i = 0; i < N; i++)
    if (std::fabs(c[i] - 7.0f) > 0) errors++;
  std::cout << (errors ? "FAIL" : "Success! All values calculated correctly.") << std::endl;

  checkCuda(cudaFree(a));
  checkCuda(cudaFree(b));
  checkCuda(cudaFree(c));
  return errors != 0;
}
