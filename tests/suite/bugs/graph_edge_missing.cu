// bug: a graph made by hand copies a result out, and no edge leads there from the kernel
// finds: unordered nodes of a graph
// line: MARK
// sanitizer: none
// prints: unrecorded
#include <cuda_runtime.h>

#include <cstdio>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void square(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i * i;  // <- bug
}

int main() {
  const int n = 3000, blocks = (n + 127) / 128;
  int *x, *host, count = n;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
  check(cudaMallocHost(&host, n * sizeof(int)));
  check(cudaDeviceSynchronize());
  void* arguments[] = {&x, &count};
  cudaKernelNodeParams kernel = {};
  kernel.func = (void*)square;
  kernel.gridDim = dim3(blocks);
  kernel.blockDim = dim3(128);
  kernel.kernelParams = arguments;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t squared, copied;
  check(cudaGraphCreate(&graph, 0));
  check(cudaGraphAddKernelNode(&squared, graph, nullptr, 0, &kernel));  // <- bug
#ifdef FIXED
  const size_t before = 1;
#else
  const size_t before = 0;
#endif
  check(cudaGraphAddMemcpyNode1D(&copied, graph, &squared, before, host, x,  // <- bug
                                 n * sizeof(int), cudaMemcpyDeviceToHost));
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphLaunch(exec, 0));
  check(cudaDeviceSynchronize());
#ifdef FIXED
  for (int i = 0; i < n; i += 777) std::printf("%d\n", host[i]);
#endif
  check(cudaGraphExecDestroy(exec));
  check(cudaGraphDestroy(graph));
  check(cudaFreeHost(host));
  check(cudaFree(x));
}
