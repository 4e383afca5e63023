// Shows: functions of the host in a stream: they check a result when it has come back.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <atomic>
#include "headers/error_check.h"

const int N_workloads = 4;
const int N_elements_per_workload = 1000;

__global__ void incKernel(int *data, int N, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) data[i] += by;
}

struct heterogeneous_workload {
  int id;
  int *h_data, *d_data;
  cudaStream_t stream;
  std::atomic<bool> done;
  bool success;
};

void CUDART_CB myHostFunction(void *userData) {
  heterogeneous_workload *workload = (heterogeneous_workload *)userData;
  workload->success = true;
  for (int i = 0; i < N_elements_per_workload; ++i)
    workload->success &= workload->h_data[i] == i + 3 * workload->id + 1;
  workload->done = true;
}

static void CUDART_CB myStreamCallback(cudaStream_t stream, cudaError_t status, void *data) {
  int *calls = (int *)data;
  if (status == cudaSuccess) ++*calls;
}

int main() {
  heterogeneous_workload workloads[N_workloads];
  const size_t bytes = N_elements_per_workload * sizeof(int);
  for (int w = 0; w < N_workloads; ++w) {
    heterogeneous_workload &load = workloads[w];
    load.id = w;
    load.success = false;
    load.done = false;
    checkCudaErrors(cudaStreamCreate(&load.stream));
    checkCudaErrors(cudaMalloc(&load.d_data, bytes));
    checkCudaErrors(cudaHostAlloc(&load.h_data, bytes, cudaHostAllocPortable));
    for (int i = 0; i < N_elements_per_workload; ++i) load.h_data[i] = i;
  }
  for (heterogeneous_workload &load : workloads) {
    checkCudaErrors(cudaMemcpyAsync(load.d_data, load.h_data, bytes, cudaMemcpyHostToDevice, load.stream));
    incKernel<<<(N_elements_per_workload + 255) / 256, 256, 0, load.stream>>>(load.d_data, N_elements_per_workload, 3 * load.id);
    incKernel<<<(N_elements_per_workload + 255) / 256, 256, 0, load.stream>>>(load.d_data, N_elements_per_workload, 1);
    getLastCudaError("incKernel");
    checkCudaErrors(cudaMemcpyAsync(load.h_data, load.d_data, bytes, cudaMemcpyDeviceToHost, load.stream));
    checkCudaErrors(cudaLaunchHostFunc(load.stream, myHostFunction, &load));
  }
  int calls = 0, failed = 0;
  checkCudaErrors(cudaStreamAddCallback(workloads[0].stream, myStreamCallback, &calls, 0));
  checkCudaErrors(cudaDeviceSynchronize());
  for (heterogeneous_workload &load : workloads) {
    printf("workload %d: %s\n", load.id, load.done && load.success ? "success" : "FAILURE");
    failed += !(load.done && load.success);
    checkCudaErrors(cudaFreeHost(load.h_data));
    checkCudaErrors(cudaFree(load.d_data));
    checkCudaErrors(cudaStreamDestroy(load.stream));
  }
  printf("callback was called %d time(s)\n", calls);
  return failed != 0 || calls != 1;
}
