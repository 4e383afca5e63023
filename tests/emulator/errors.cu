// What a GPU refuses, what it reports, and when an error goes away.
#include "check.h"

__global__ void set(int* out) { out[0] = 1; }
__global__ void nothing() {}

static void refused(dim3 grid, dim3 block, size_t shared, cudaError_t wanted) {
  Device<int> out(std::vector<int>(1, 0));
  set<<<grid, block, shared>>>(out.data);
  CHECK(cudaPeekAtLastError() == wanted);
  CHECK(cudaPeekAtLastError() == wanted);
  CHECK(cudaGetLastError() == wanted);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(out.get()[0] == 0);
}

CASE(launches_over_the_limits_are_refused) {
  const cudaError_t invalid = cudaErrorInvalidConfiguration;
  refused(1, 1025, 0, invalid);
  refused(1, dim3(33, 32), 0, invalid);
  refused(1, dim3(1, 1, 65), 0, invalid);
  refused(1, dim3(1, 1025), 0, invalid);
  refused(dim3(1, 65536), 1, 0, invalid);
  refused(dim3(1, 1, 65536), 1, 0, invalid);
  refused(2147483648u, 1, 0, invalid);
  refused(0, 1, 0, invalid);
  refused(dim3(1, 0), 1, 0, invalid);
  refused(1, 0, 0, invalid);
  refused(1, dim3(1, 1, 0), 0, invalid);
}

static bool says(const std::string& text) {
  return std::string(emulator_failure()).find(text) != std::string::npos;
}

CASE(a_refused_launch_is_explained) {
  refused(1, 1025, 0, cudaErrorInvalidConfiguration);
  CHECK(says("errors.cu:") && says("set is launched with 1,025 threads a block"));
  CHECK(says("at most 1,024"));
  refused(0, 1, 0, cudaErrorInvalidConfiguration);
  CHECK(says("a grid of 0 x 1 x 1 blocks"));
  refused(1, 1, 50000, cudaErrorInvalidValue);
  CHECK(says("50,000 bytes of dynamic shared memory; at most 49,152"));
  CHECK(cudaSetDevice(99) != cudaSuccess && !says("shared"));
}

CASE(launches_at_the_limits_are_accepted) {
  for (dim3 block : {dim3(1024), dim3(32, 32), dim3(4, 4, 64), dim3(1, 1024)}) {
    nothing<<<1, block>>>();
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  nothing<<<dim3(1, 65535), 1, 48 * 1024>>>();
  CHECK(cudaGetLastError() == cudaSuccess);
}

const int kTile = 16;

template <int most>
__global__ void __launch_bounds__(most) bounded_template(int* out) { out[threadIdx.x] = 1; }
__launch_bounds__(kTile * 4, 2) __global__ static void bounded(int* out) {
  __shared__ float tile[kTile][kTile + 1];
  __shared__ volatile unsigned char flags[4], more;
  tile[threadIdx.x % kTile][0] = 1;
  flags[threadIdx.x % 4] = more = 0;
  __syncthreads();
  out[threadIdx.x] = 1;
}

template <typename Kernel>
static bool runs(Kernel kernel, int threads) {
  Device<int> out(std::vector<int>(1024, 0));
  kernel<<<3, threads>>>(out.data);
  const cudaError_t error = cudaGetLastError();
  CHECK(error == cudaSuccess || error == cudaErrorInvalidValue);
  CHECK(out.get()[threads - 1] == (error == cudaSuccess) && out.get()[0] == out.get()[threads - 1]);
  return error == cudaSuccess;
}

CASE(more_threads_than_a_kernels_bounds_are_refused) {
  CHECK(runs(bounded, 64) && !runs(bounded, 65));
  CHECK(runs(bounded_template<128>, 128) && !runs(bounded_template<64>, 128));
  cudaFuncAttributes about_bounded, about_set;
  CHECK(cudaFuncGetAttributes(&about_bounded, bounded) == cudaSuccess);
  CHECK(cudaFuncGetAttributes(&about_set, set) == cudaSuccess);
  CHECK(about_bounded.maxThreadsPerBlock == 64 && about_set.maxThreadsPerBlock == 1024);
  CHECK(about_bounded.sharedSizeBytes == 16 * 17 * 4 + 5 && about_set.sharedSizeBytes == 0);
}

CASE(much_dynamic_shared_memory_must_be_asked_for) {
  const int limit = 227 * 1024;
  refused(1, 1, 48 * 1024 + 1, cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(set, cudaFuncAttributeMaxDynamicSharedMemorySize, limit + 1) ==
        cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(set, cudaFuncAttributeMaxDynamicSharedMemorySize, limit) ==
        cudaSuccess);
  Device<int> out(1);
  set<<<1, 1, limit>>>(out.data);
  CHECK(cudaGetLastError() == cudaSuccess && out.get()[0] == 1);
  refused(1, 1, limit + 1, cudaErrorInvalidValue);
}

CASE(an_error_of_one_thread_is_not_anothers) {
  CHECK(cudaMalloc(static_cast<void**>(nullptr), 1) == cudaErrorInvalidValue);
  CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(0) == cudaSuccess);  // success does not clear
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

__global__ void claims(int* out, int limit) {
  out[threadIdx.x] = 1;
  assert(threadIdx.x + blockIdx.x < limit && "too many");
}

CASE(a_failing_assert_stays) {
  Device<int> out(32);
  claims<<<1, 32>>>(out.data, 32);
  CHECK(cudaGetLastError() == cudaSuccess);
  claims<<<3, 32>>>(out.data, 33);
  CHECK(cudaGetLastError() == cudaErrorAssert);
  CHECK(cudaGetLastError() == cudaErrorAssert);
  CHECK(cudaDeviceSynchronize() == cudaErrorAssert);
  void* more;
  int value;
  CHECK(cudaMalloc(&more, 4) == cudaErrorAssert);
  CHECK(cudaMemcpy(&value, out.data, 4, cudaMemcpyDeviceToHost) == cudaErrorAssert);
  nothing<<<1, 1>>>();
  CHECK(cudaPeekAtLastError() == cudaErrorAssert);
}

CASE(an_assert_of_the_host_aborts) { assert(1 + 1 == 3); }

CASE(a_reset_clears_what_stays) {
  Device<int> out(32);
  claims<<<1, 32>>>(out.data, 5);
  CHECK(cudaGetLastError() == cudaErrorAssert);
  CHECK(cudaDeviceReset() == cudaSuccess);
  Device<int> again(32);
  claims<<<1, 32>>>(again.data, 32);
  CHECK(cudaGetLastError() == cudaSuccess && again.get()[31] == 1);
}

CASE(errors_have_names) {
  CHECK(std::string(cudaGetErrorName(cudaErrorIllegalAddress)) == "cudaErrorIllegalAddress");
  CHECK(std::string(cudaGetErrorString(cudaErrorIllegalAddress)) ==
        "an illegal memory access was encountered");
  CHECK(std::string(cudaGetErrorString(cudaErrorInvalidConfiguration)) ==
        "invalid configuration argument");
  CHECK(std::string(cudaGetErrorString(cudaSuccess)) == "no error");
}

CASE(there_is_one_device) {
  int count = 0, device = -1, threads = 0;
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess && count == 1);
  CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
  CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(std::string(properties.name) == "Emulated GPU" && properties.warpSize == 32);
  CHECK(cudaGetDeviceProperties(&properties, 1) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0) == cudaSuccess);
  CHECK(threads == 1024 && cudaThreadSynchronize() == cudaSuccess);
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, set, 256, 0) == cudaSuccess);
  CHECK(blocks == 8);
}

CASE(streams_and_events_work_while_they_live) {
  cudaStream_t stream;
  cudaEvent_t start, end;
  float ms = -1;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  CHECK(cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(start, stream) == cudaSuccess);
  nothing<<<1, 1, 0, stream>>>();
  CHECK(cudaEventRecord(end, stream) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(stream, end, 0) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaSuccess && ms >= 0);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && cudaStreamQuery(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaEventDestroy(start) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  nothing<<<1, 1, 0, stream>>>();
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
}
