// Shows: a sparse matrix times a vector, CSR, a thread a row and a warp a row.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include "headers/error_check.h"

struct CSRMatrix {
  int rows, cols;
  std::vector<int> rowPtr, colIdx;
  std::vector<float> value;
};

static CSRMatrix randomMatrix(int rows, int cols) {
  CSRMatrix m{rows, cols, {0}, {}, {}};
  unsigned seed = 1;
  for (int r = 0; r < rows; ++r) {
    std::map<int, float> row;
    int count = r % 11 == 0 ? 0 : r % 50;
    for (int i = 0; i < count; ++i) {
      seed = seed * 1103515245u + 12345u;
      row[(seed >> 16) % cols] = static_cast<float>(static_cast<int>(seed >> 28) - 8);
    }
    for (auto& entry : row) {
      m.colIdx.push_back(entry.first);
      m.value.push_back(entry.second);
    }
    m.rowPtr.push_back(static_cast<int>(m.value.size()));
  }
  return m;
}

__global__ void spmv_scalar(int rows, const int* ptr, const int* indices, const float* data,
                            const float* x, float* y) {
  int row = blockDim.x * blockIdx.x + threadIdx.x;
  if (row < rows) {
    float dot = 0;
    int row_start = ptr[row], row_end = ptr[row + 1];
    for (int jj = row_start; jj < row_end; jj++) dot += data[jj] * x[indices[jj]];
    y[row] += dot;
  }
}

__global__ void spmv_vector(int rows, const int* ptr, const int* indices, const float* data,
                            const float* x, float* y) {
  int thread_id = blockDim.x * blockIdx.x + threadIdx.x;
  int row = thread_id / 32;
  int lane = thread_id & 31;
  if (row >= rows) return;  // whole warps
  float sum = 0;
  for (int jj = ptr[row] + lane; jj < ptr[row + 1]; jj += 32) sum += data[jj] * x[indices[jj]];
  for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(~0u, sum, offset);
  if (lane == 0) y[row] += sum;
}

template <typename T>
static T* toDevice(const std::vector<T>& v) {
  T* p;
  checkCudaErrors(cudaMalloc(&p, v.size() * sizeof(T)));
  checkCudaErrors(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

int main() {
  const int rows = 333, cols = 257;
  CSRMatrix m = randomMatrix(rows, cols);
  std::vector<float> x(cols), y(rows, 1.0f), gold(rows, 1.0f);
  for (int i = 0; i < cols; ++i) x[i] = static_cast<float>(i % 6);
  for (int r = 0; r < rows; ++r)
    for (int j = m.rowPtr[r]; j < m.rowPtr[r + 1]; ++j) gold[r] += m.value[j] * x[m.colIdx[j]];

  int* ptr = toDevice(m.rowPtr);
  int* indices = toDevice(m.colIdx);
  float* data = toDevice(m.value);
  float* d_x = toDevice(x);
  int failed = 0;
  for (int version = 0; version < 2; ++version) {
    float* d_y = toDevice(y);
    if (version == 0)
      spmv_scalar<<<(rows + 127) / 128, 128>>>(rows, ptr, indices, data, d_x, d_y);
    else
      spmv_vector<<<(rows * 32 + 127) / 128, 128>>>(rows, ptr, indices, data, d_x, d_y);
    getLastCudaError("spmv");
    std::vector<float> result(rows);
    checkCudaErrors(cudaMemcpy(result.data(), d_y, rows * sizeof(float), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaFree(d_y));
    std::printf("%s: %s\n", version ? "warp a row" : "thread a row", result == gold ? "right" : "wrong");
    failed += result != gold;
  }
  std::printf("%zu non-zeros\n", m.value.size());
  for (void* p : {(void*)ptr, (void*)indices, (void*)data, (void*)d_x}) checkCudaErrors(cudaFree(p));
  return failed;
}
