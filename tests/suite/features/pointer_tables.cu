// feature: tables of device pointers, and a list that is linked on the device
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

__global__ void link(Node* nodes, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  nodes[i].value = i * i;
  nodes[i].next = i + 1 < n ? &nodes[i + 1] : nullptr;
}

__global__ void walk(const Node* head, int** rows, int* out) {
  int sum = 0;
  for (const Node* node = head; node != nullptr; node = node->next) sum += node->value;
  out[threadIdx.x] = sum + rows[threadIdx.x][2];
}

int main() {
  const int n = 10, height = 4, width = 3;
  int values[height * width], host[height];
  for (int i = 0; i < height * width; ++i) values[i] = 1000 * i;
  Node* nodes;
  int *matrix, **table, *rows[height], *out;
  check(cudaMalloc(&nodes, n * sizeof(Node)));
  check(cudaMalloc(&matrix, sizeof values));
  check(cudaMalloc(&table, sizeof rows));
  check(cudaMalloc(&out, sizeof host));
  for (int y = 0; y < height; ++y) rows[y] = matrix + y * width;
  check(cudaMemcpy(matrix, values, sizeof values, cudaMemcpyHostToDevice));
  check(cudaMemcpy(table, rows, sizeof rows, cudaMemcpyHostToDevice));
  link<<<1, 32>>>(nodes, n);
  check(cudaGetLastError());
  walk<<<1, height>>>(nodes, table, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int value : host) std::printf("%d\n", value);
  check(cudaFree(nodes));
  check(cudaFree(matrix));
  check(cudaFree(table));
  check(cudaFree(out));
}
