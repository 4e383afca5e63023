/*!
 * \file r06_vectors.cu
 * \brief Rung 6: four words at a time, and two buffers.
 *
 * Before: each word was read by an instruction of its own, and all waited while the next slice
 * came. Now a thread reads four neighbours at once, from memory (where lines allow it) and from
 * shared memory, and a slice is on its way, in registers, while the one before is multiplied. It
 * goes to the other buffer, so that one barrier a slice is enough.
 *
 * in: a, b of any size. out: c. grid: 128 x 128 elements a block.
 * cost: as before, a quarter of the instructions that read. next: copies that need no registers.
 */
#include "ladder.h"

namespace {

const int kTile = 128, kDepth = 8, kOf = 8;
const int kSide = kTile / kOf, kThreads = kSide * kSide;
static_assert(kTile * kDepth == 4 * kThreads, "a thread reads four of each operand");

/*! \brief Four neighbours of an operand: along K if its lines lie so, else four lines. */
struct Four {
  float x[4];
  int line, k;  // in the slice

  __device__ Four(bool along_k, int thread)
      : line(along_k ? thread / 2 : thread % 32 * 4), k(along_k ? thread % 2 * 4 : thread / 32) {}

  /*! \brief Reads them, of rows of memory that lie `lead` apart. */
  __device__ void read(const float* from, bool along_k, int64_t lead, int first, int at_k,
                       int lines, int depth, bool packs) {
    const int at_line = first + line, at = at_k + k;
    const int left = at_line < lines && at < depth ? (along_k ? depth - at : lines - at_line) : 0;
    const float* const begin = from + (along_k ? at_line * lead + at : at * lead + at_line);
    if (packs && left >= 4) {
      const float4 four = *reinterpret_cast<const float4*>(begin);
      x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
    } else {
      for (int i = 0; i < 4; ++i) x[i] = i < left ? begin[i] : 0;
    }
  }

  /*! \brief Writes them k by k. */
  __device__ void write(bool along_k, float (*to)[kTile]) const {
    for (int i = 0; i < 4; ++i) to[along_k ? k + i : k][along_k ? line : line + i] = x[i];
  }
};

/*! \brief Eight of a row of a slice: two groups of four. */
__device__ inline void take(float (&into)[kOf], const float* row, int at) {
  for (int i = 0; i < kOf; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(row + at * 4 + i / 4 * (kTile / 2));
    into[i] = four.x, into[i + 1] = four.y, into[i + 2] = four.z, into[i + 3] = four.w;
  }
}

template <bool a_along_k, bool b_along_k>
__global__ __launch_bounds__(kThreads) void vectors_kernel(const float* a, const float* b, float* c,
                                                           int m, int n, int k, bool packs) {
  __shared__ __align__(16) float of_a[2][kDepth][kTile], of_b[2][kDepth][kTile];
  const int thread = threadIdx.x, row = thread / kSide, column = thread % kSide;
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  const int64_t lead_a = a_along_k ? k : m, lead_b = b_along_k ? k : n;
  float sum[kOf][kOf] = {};
  Four next_a(a_along_k, thread), next_b(b_along_k, thread);
  int turn = 0;
  for (int first = -kDepth; first < k; first += kDepth) {
    const bool goes_on = first + kDepth < k;
    if (goes_on) {
      next_a.read(a, a_along_k, lead_a, first_row, first + kDepth, m, k, packs);
      next_b.read(b, b_along_k, lead_b, first_column, first + kDepth, n, k, packs);
    }
    if (first >= 0)
      for (int d = 0; d < kDepth; ++d) {
        float x[kOf], y[kOf];
        take(x, of_a[turn ^ 1][d], row);
        take(y, of_b[turn ^ 1][d], column);
        for (int i = 0; i < kOf; ++i)
          for (int j = 0; j < kOf; ++j) sum[i][j] += x[i] * y[j];
      }
    if (goes_on) {
      next_a.write(a_along_k, of_a[turn]);
      next_b.write(b_along_k, of_b[turn]);
    }
    __syncthreads();
    turn ^= 1;
  }
  for (int i = 0; i < kOf; ++i)
    for (int j = 0; j < kOf; ++j) {
      const int at = first_row + row * 4 + i / 4 * (kTile / 2) + i % 4;
      const int to = first_column + column * 4 + j / 4 * (kTile / 2) + j % 4;
      if (at < m && to < n) c[static_cast<int64_t>(at) * n + to] = sum[i][j];
    }
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const dim3 grid(ladder::tiles(n, kTile), ladder::tiles(m, kTile));
  const bool packs = (transposes_a ? m : k) % 4 == 0 && (transposes_b ? k : n) % 4 == 0;
  const float *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  if (transposes_a && transposes_b)
    vectors_kernel<false, true><<<grid, kThreads, 0, on>>>(x, y, c, m, n, k, packs);
  else if (transposes_a)
    vectors_kernel<false, false><<<grid, kThreads, 0, on>>>(x, y, c, m, n, k, packs);
  else if (transposes_b)
    vectors_kernel<true, true><<<grid, kThreads, 0, on>>>(x, y, c, m, n, k, packs);
  else
    vectors_kernel<true, false><<<grid, kThreads, 0, on>>>(x, y, c, m, n, k, packs);
  return cudaGetLastError();
}
