// bug: two branches of a captured graph meet in one kernel, which waits for one of them alone
// finds: unordered nodes of a graph
// line: MARK
// sanitizer: none
// prints: unrecorded
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void square(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i * i;  // <- bug
}

__global__ void triple(int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3 * i;
}

__global__ void add(const int* x, const int* y, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];  // <- bug
}

int main() {
  const int n = 5000, blocks = (n + 127) / 128;
  int *x, *y, *out;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMalloc(&y, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
  check(cudaDeviceSynchronize());
  cudaStream_t first, second;
  cudaEvent_t fork, squared, done;
  check(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  check(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&squared, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  check(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  check(cudaEventRecord(fork, first));
  check(cudaStreamWaitEvent(second, fork, 0));
  square<<<blocks, 128, 0, second>>>(x, n);  // <- bug
  check(cudaEventRecord(squared, second));
  triple<<<blocks, 128, 0, first>>>(y, n);
#ifdef FIXED
  check(cudaStreamWaitEvent(first, squared, 0));
#endif
  add<<<blocks, 128, 0, first>>>(x, y, out, n);  // <- bug
  check(cudaEventRecord(done, second));
  check(cudaStreamWaitEvent(first, done, 0));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamEndCapture(first, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 4; ++i) check(cudaGraphLaunch(exec, first));
  check(cudaStreamSynchronize(first));
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 999) std::printf("%d\n", host[i]);
#endif
  check(cudaGraphExecDestroy(exec));
  check(cudaGraphDestroy(graph));
  for (cudaEvent_t event : {fork, squared, done}) check(cudaEventDestroy(event));
  check(cudaStreamDestroy(first));
  check(cudaStreamDestroy(second));
  for (int* data : {x, y, out}) check(cudaFree(data));
}
