// bug: a product of cuBLAS in one branch of a captured graph reads what a kernel in another writes
// finds: unordered nodes of a graph
// line: MARK
// sanitizer: none
// prints: unrecorded
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i % 7;  // <- bug
}

int main() {
  const int n = 40, size = n * n, blocks = (size + 127) / 128;
  const float one = 1, zero = 0;
  float *a, *b, *c, first = 0;
  check(cudaMalloc(&a, size * sizeof(float)));
  check(cudaMalloc(&b, size * sizeof(float)));
  check(cudaMalloc(&c, size * sizeof(float)));
  check(cudaMemset(a, 0, size * sizeof(float)));
  check(cudaMemset(b, 0, size * sizeof(float)));
  check(cudaDeviceSynchronize());
  cudaStream_t main_stream, side;
  cudaEvent_t fork, filled, done;
  check(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
  check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 1;
  if (cublasSetStream(handle, main_stream) != CUBLAS_STATUS_SUCCESS) return 1;
  check(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeThreadLocal));
  check(cudaEventRecord(fork, main_stream));
  check(cudaStreamWaitEvent(side, fork, 0));
  fill<<<blocks, 128, 0, side>>>(b, size);  // <- bug
  check(cudaEventRecord(filled, side));
  fill<<<blocks, 128, 0, main_stream>>>(a, size);
#ifdef FIXED
  check(cudaStreamWaitEvent(main_stream, filled, 0));
#endif
  if (cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, a, n, b, n,  // <- bug
                  &zero, c, n) != CUBLAS_STATUS_SUCCESS)
    return 1;
  check(cudaEventRecord(done, side));
  check(cudaStreamWaitEvent(main_stream, done, 0));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamEndCapture(main_stream, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphLaunch(exec, main_stream));
  check(cudaStreamSynchronize(main_stream));
  check(cudaMemcpy(&first, c, sizeof(float), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%g\n", first);
#endif
  check(cudaGraphExecDestroy(exec));
  check(cudaGraphDestroy(graph));
  if (cublasDestroy(handle) != CUBLAS_STATUS_SUCCESS) return 1;
  check(cudaEventDestroy(fork));
  check(cudaEventDestroy(filled));
  check(cudaEventDestroy(done));
  check(cudaStreamDestroy(main_stream));
  check(cudaStreamDestroy(side));
  check(cudaFree(a));
  check(cudaFree(b));
  check(cudaFree(c));
}
