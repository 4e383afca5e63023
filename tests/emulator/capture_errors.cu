// What a capture forbids: the error of the call, what becomes of the capture, and the error at its
// end. Each line is what an H100 with CUDA 13.0 prints, too, but for the launch of too many threads,
// which it answers by error 1.
#include <cstring>
#include <thread>

#include "check.h"

__global__ void touch(float* data) { data[threadIdx.x] = 1; }

static cudaStream_t blocking, free_one, other;
static cudaEvent_t event, outside;
static float *data, host[32];

static const char* status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) return "cannot be told";
  return status == cudaStreamCaptureStatusNone     ? "none"
         : status == cudaStreamCaptureStatusActive ? "active"
                                                   : "invalidated";
}

static void tell(const char* what, cudaError_t error, cudaStream_t stream) {
  std::printf("%s: %s, capture %s", what, cudaGetErrorName(error), status_of(stream));
  cudaGraph_t graph = nullptr;
  const cudaError_t at_end = cudaStreamEndCapture(stream, &graph);
  std::printf(", end %s, %s\n", cudaGetErrorName(at_end),
              graph != nullptr ? "a graph" : "no graph");
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
}

// Captures a kernel, makes a call, and tells how it went.
template <typename Call>
static void during(const char* what, cudaStreamCaptureMode mode, cudaStream_t stream, Call call) {
  CHECK(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
  touch<<<1, 32, 0, stream>>>(data);
  tell(what, call(), stream);
}

static void prepare() {
  CHECK(cudaStreamCreate(&blocking) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaEventCreate(&event) == cudaSuccess && cudaEventCreate(&outside) == cudaSuccess);
  CHECK(cudaMalloc(&data, sizeof host) == cudaSuccess);
  CHECK(cudaEventRecord(outside, other) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

static const cudaStreamCaptureMode kGlobal = cudaStreamCaptureModeGlobal,
                                   kLocal = cudaStreamCaptureModeThreadLocal,
                                   kRelaxed = cudaStreamCaptureModeRelaxed;

static cudaError_t allocate() {
  void* ptr = nullptr;
  const cudaError_t error = cudaMalloc(&ptr, 100);
  if (error == cudaSuccess) cudaFree(ptr);
  return error;
}

// Calls on another thread.
template <typename Call>
static cudaError_t elsewhere(Call call) {
  cudaError_t error;
  std::thread([&] {
    error = call();
    cudaGetLastError();
  }).join();
  return error;
}

CASE(print_waits) {
  prepare();
  during("stream synchronize", kGlobal, free_one, [] { return cudaStreamSynchronize(free_one); });
  during("stream query", kRelaxed, free_one, [] { return cudaStreamQuery(free_one); });
  during("device synchronize", kRelaxed, free_one, [] { return cudaDeviceSynchronize(); });
  during("event synchronize", kGlobal, free_one, [] {
    cudaEventRecord(event, free_one);
    return cudaEventSynchronize(event);
  });
  during("event query", kGlobal, free_one, [] {
    cudaEventRecord(event, free_one);
    return cudaEventQuery(event);
  });
  during("event query of another stream's", kGlobal, free_one,
         [] { return cudaEventQuery(outside); });
  during("event query of another stream's, relaxed", kRelaxed, free_one,
         [] { return cudaEventQuery(outside); });
}

CASE(print_modes) {
  prepare();
  during("malloc, global", kGlobal, free_one, allocate);
  during("malloc, thread-local", kLocal, free_one, allocate);
  during("malloc, relaxed", kRelaxed, free_one, allocate);
  during("malloc elsewhere, global", kGlobal, free_one, [] { return elsewhere(allocate); });
  during("malloc elsewhere, thread-local", kLocal, free_one, [] { return elsewhere(allocate); });
  during("malloc in relaxed mode of the thread", kGlobal, free_one, [] {
    cudaStreamCaptureMode mode = kRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    const cudaError_t error = allocate();
    cudaThreadExchangeStreamCaptureMode(&mode);
    return error;
  });
  during("memcpy that waits, global", kGlobal, free_one,
         [] { return cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost); });
}

CASE(print_default_stream) {
  prepare();
  during("kernel in the default stream, blocking", kRelaxed, blocking, [] {
    touch<<<1, 32>>>(data);
    return cudaGetLastError();
  });
  during("kernel in the default stream, non-blocking", kRelaxed, free_one, [] {
    touch<<<1, 32>>>(data);
    return cudaGetLastError();
  });
  during("memcpy that waits, blocking", kRelaxed, blocking,
         [] { return cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost); });
  during("memset in the default stream, blocking", kRelaxed, blocking,
         [] { return cudaMemsetAsync(data, 0, sizeof host, 0); });
  during("is the default stream capturing, blocking", kRelaxed, blocking, [] {
    cudaStreamCaptureStatus status;
    return cudaStreamIsCapturing(0, &status);
  });
  std::printf("capture of the default stream: %s\n",
              cudaGetErrorName(cudaStreamBeginCapture(0, kGlobal)));
  cudaGetLastError();
}

CASE(print_forks) {
  prepare();
  during("wait for an event from outside", kGlobal, free_one,
         [] { return cudaStreamWaitEvent(free_one, outside, 0); });
  during("work that is not joined", kGlobal, free_one, [] {
    cudaEventRecord(event, free_one);
    cudaStreamWaitEvent(other, event, 0);
    touch<<<1, 32, 0, other>>>(data);
    return cudaGetLastError();
  });
  during("end in the wrong stream", kGlobal, free_one, [] {
    cudaEventRecord(event, free_one);
    cudaStreamWaitEvent(other, event, 0);
    cudaGraph_t graph;
    return cudaStreamEndCapture(other, &graph);
  });
  during("end on the wrong thread", kGlobal, free_one, [] {
    return elsewhere([] {
      cudaGraph_t graph;
      return cudaStreamEndCapture(free_one, &graph);
    });
  });
  during("begin twice", kGlobal, free_one,
         [] { return cudaStreamBeginCapture(free_one, kGlobal); });
  during("work after an error", kGlobal, free_one, [] {
    cudaStreamSynchronize(free_one);
    cudaGetLastError();
    touch<<<1, 32, 0, free_one>>>(data);
    return cudaGetLastError();
  });
  during("two captures in one", kRelaxed, free_one, [] {
    cudaStreamBeginCapture(other, kRelaxed);
    cudaEventRecord(event, other);
    const cudaError_t error = cudaStreamWaitEvent(free_one, event, 0);
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(other, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return error;
  });
  cudaGraph_t graph;
  std::printf("end without a begin: %s\n", cudaGetErrorName(cudaStreamEndCapture(other, &graph)));
  cudaGetLastError();
}

CASE(print_captured_events) {
  prepare();
  during("time between captured events", kGlobal, free_one, [] {
    cudaEventRecord(event, free_one);
    return cudaSuccess;
  });
  float milliseconds;
  std::printf("query after the capture: %s\n", cudaGetErrorName(cudaEventQuery(event)));
  std::printf("time after the capture: %s\n",
              cudaGetErrorName(cudaEventElapsedTime(&milliseconds, event, event)));
  cudaGetLastError();
  cudaEventRecord(event, free_one);
  std::printf("query once it is recorded again: %s\n",
              cudaGetErrorName(cudaEventSynchronize(event)));
  std::printf("external record outside: %s\n",
              cudaGetErrorName(cudaEventRecordWithFlags(event, free_one, cudaEventRecordExternal)));
  cudaGetLastError();
}

CASE(print_others) {
  prepare();
  during("callback", kRelaxed, free_one, [] {
    return cudaStreamAddCallback(free_one, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 0);
  });
  during("free of what was allocated outside", kRelaxed, free_one, [] {
    void* ptr;
    cudaMallocAsync(&ptr, 100, other);
    return cudaFreeAsync(ptr, free_one);
  });
  during("launch of too many threads", kRelaxed, free_one, [] {
    touch<<<1, 4096, 0, free_one>>>(data);
    return cudaGetLastError();
  });
}
