// feature: kernels allocate with malloc and new, and later kernels use and free it
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

struct Node {
  int value;
  Node* next;
};
__device__ Node* heads[32];

__global__ void build(int n) {
  Node* head = nullptr;
  for (int i = 0; i < n; ++i) head = new Node{i * static_cast<int>(threadIdx.x), head};
  heads[threadIdx.x] = head;
}

__global__ void add_up(int* out) {
  int sum = 0;
  for (Node* node = heads[31 - threadIdx.x]; node != nullptr; node = node->next) sum += node->value;
  out[threadIdx.x] = sum;
}

__global__ void drop() {
  for (Node* node = heads[threadIdx.x]; node != nullptr;) {
    Node* next = node->next;
    delete node;
    node = next;
  }
}

__global__ void shared_by_a_block(int* out) {
  __shared__ int* table;
  if (threadIdx.x == 0) table = static_cast<int*>(malloc(blockDim.x * sizeof(int)));
  __syncthreads();
  table[threadIdx.x] = threadIdx.x * 2;
  __syncthreads();
  out[threadIdx.x] += table[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) free(table);
}

int main() {
  const int n = 32;
  int *out, host[n];
  check(cudaMalloc(&out, sizeof host));
  build<<<1, n>>>(5);
  add_up<<<1, n>>>(out);
  drop<<<1, n>>>();
  shared_by_a_block<<<1, n>>>(out);
  check(cudaGetLastError());
  check(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 7) std::printf("%d\n", host[i]);
  check(cudaFree(out));
}
