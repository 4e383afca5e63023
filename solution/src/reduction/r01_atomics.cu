/*!
 * \file r01_atomics.cu
 * \brief Rung 1: every thread adds its element to the result atomically.
 *
 * It is right, and reads neighbours. But all additions go to one address, where the memory does one
 * after the other: a million threads wait in one line.
 *
 * in: n floats. out: their sum. grid: a thread an element.
 * cost: 4 n bytes, and n atomics at one word. next: a block adds up first.
 */
#include "../ladder/rung.h"

namespace {

const int kThreads = 256;

__global__ void atomics_kernel(int64_t n, const float* in, float* out) {
  const int64_t i = ladder::element();
  if (i < n) atomicAdd(out, in[i]);
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const int64_t n = rows * columns;
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  ladder::clear(out, on);
  atomics_kernel<<<ladder::blocks_for(n, kThreads), kThreads, 0, on>>>(n, in, out);
  return cudaGetLastError();
}
