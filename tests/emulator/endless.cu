// Kernels that never end, and some that only take long: what the watchdog makes of them.
#include "check.h"

__global__ void forgets_its_step(int n, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = i; k < n; k = k) {  // endless: step
    out[k] = 1;
  }
}

__global__ void one_thread(float* out) {
  int i = threadIdx.x, k = 0;
  while (k < 10) {  // endless: one thread
    if (i != 37) ++k;
    out[i] += 1;
  }
}

__global__ void does_nothing(float* out) {
  out[0] = 1;
  while (true) {  // endless: nothing
  }
}

__global__ void waits_for_a_flag(volatile int* flag, float* out) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {  // endless: flag
    }
  }
  out[threadIdx.x] = 1;
}

__global__ void waits_for_a_barrier(float* out) {
  __shared__ float x[32];
  x[threadIdx.x] = 0;
  while (out[0] == 0) {  // endless: barrier
    x[threadIdx.x] += 1;
    __syncthreads();
  }
}

__global__ void shuffles(float* out) {
  int x = 1;
  do {  // endless: shuffle
    x = __shfl_sync(0xffffffff, x, 0);
  } while (x == 1);
  out[0] = x;
}

__global__ void computes(float* out) {
  float x = out[threadIdx.x];
  while (x < 2) x = expf(sinf(x)) * 0.1f;  // endless: mathematics
  out[0] = x;
}

__global__ void prints() {
  for (;;) printf("");  // endless: printf
}

__global__ void allocates() {
  while (true) {  // endless: heap
    int* p = static_cast<int*>(malloc(4));
    free(p);
  }
}

// The launch ends with error 702, which stays until the device is reset.
template <typename Launch>
static void is_stopped(Launch launch) {
  Device<float> out(std::vector<float>(1 << 16, 0.f));
  launch(out.data);
  CHECK(cudaPeekAtLastError() == cudaErrorLaunchTimeout);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchTimeout);
  CHECK(std::string(emulator_failure()).find("it did not end") != std::string::npos);
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(std::string(emulator_failure()).empty());
  Device<float> again(std::vector<float>(100, 2.f));
  CHECK(again.get()[99] == 2.f);
}

CASE(step) {
  is_stopped([](float* out) { forgets_its_step<<<100, 64>>>(6400, out); });
}
CASE(one_thread_of_64) {
  is_stopped([](float* out) { one_thread<<<1, 64>>>(out); });
}
CASE(nothing) {
  is_stopped([](float* out) { does_nothing<<<2, 32>>>(out); });
}
CASE(flag) {
  is_stopped([](float* out) { waits_for_a_flag<<<2, 64>>>(reinterpret_cast<int*>(out), out); });
}
CASE(barrier) {
  is_stopped([](float* out) { waits_for_a_barrier<<<2, 32>>>(out); });
}
CASE(shuffle) {
  is_stopped([](float* out) { shuffles<<<2, 32>>>(out); });
}
CASE(mathematics) {
  is_stopped([](float* out) { computes<<<2, 32>>>(out); });
}
CASE(print) {
  is_stopped([](float*) { prints<<<2, 32>>>(); });
}
CASE(heap) {
  is_stopped([](float*) { allocates<<<2, 32>>>(); });
}

// What was stopped once gets a tenth of the time.
CASE(twice) {
  for (int i = 0; i < 2; ++i) is_stopped([](float* out) { does_nothing<<<1, 1>>>(out); });
}

__global__ void works(float* out) {
  float x = threadIdx.x;
  for (int k = 0; k < 20000; ++k) x = x * 0.5f + 1;
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

// Each block takes some milliseconds, all together much more than one may.
CASE(many_blocks) {
  Device<float> out(std::vector<float>(512 * 32, 0.f));
  works<<<512, 32>>>(out.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(out.get()[512 * 32 - 1] == 2.f);
}
