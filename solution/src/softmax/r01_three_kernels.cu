/*!
 * \file r01_three_kernels.cu
 * \brief Rung 1: one kernel for the largest values, one for the sums, one for the quotients.
 *
 * As the formula says it: out = exp(in - max) / sum of exp(in - max). Each kernel reads the whole
 * matrix from memory. In the first two a thread has a row, so neighbours read addresses a row
 * apart: of each 32 bytes that are moved, 4 are wanted.
 *
 * in, out: rows x columns. grid: a thread a row, twice; a thread an element.
 * cost: 16 bytes an element, and eight times as much for two of the three reads. next: one kernel.
 */
#include "../ladder/rung.h"

namespace {

const int kThreads = 256;

__global__ void largest_kernel(int64_t rows, int64_t columns, const float* in, float* largest) {
  const int64_t i = ladder::element();
  if (i >= rows) return;
  float found = -INFINITY;
  for (int64_t j = 0; j < columns; ++j) found = fmaxf(found, in[i * columns + j]);
  largest[i] = found;
}

__global__ void sum_kernel(int64_t rows, int64_t columns, const float* in, const float* largest,
                           float* sums) {
  const int64_t i = ladder::element();
  if (i >= rows) return;
  float sum = 0;
  for (int64_t j = 0; j < columns; ++j) sum += expf(in[i * columns + j] - largest[i]);
  sums[i] = sum;
}

__global__ void quotient_kernel(int64_t n, int64_t columns, const float* in, const float* largest,
                                const float* sums, float* out) {
  const int64_t i = ladder::element();
  if (i < n) out[i] = expf(in[i] - largest[i / columns]) / sums[i / columns];
}

/*! \brief Room for two numbers a row; kept for the next call. */
struct Room {
  float* floats = nullptr;
  int64_t rows = 0;

  cudaError_t grow(int64_t to) {
    if (to <= rows) return cudaSuccess;
    cudaFree(floats);
    rows = to;
    return cudaMalloc(&floats, 2 * rows * sizeof(float));
  }
};

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  static Room room;
  const cudaError_t error = room.grow(rows);
  if (error != cudaSuccess) return error;
  float *largest = room.floats, *sums = room.floats + rows;
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  const unsigned blocks = ladder::blocks_for(rows, kThreads);
  largest_kernel<<<blocks, kThreads, 0, on>>>(rows, columns, in, largest);
  sum_kernel<<<blocks, kThreads, 0, on>>>(rows, columns, in, largest, sums);
  quotient_kernel<<<ladder::blocks_for(rows * columns, kThreads), kThreads, 0, on>>>(
      rows * columns, columns, in, largest, sums, out);
  return cudaGetLastError();
}
