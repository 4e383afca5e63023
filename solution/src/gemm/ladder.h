/*!
 * \file ladder.h
 * \brief What the rungs of the ladder share: the call, and how operands lie.
 *
 * A rung is one file, built as a library of its own (tools/gemm_ladder.py). It computes
 * c = op(a) op(b), c of m x n; op(a) is m x k, op(b) is k x n; all lie row by row, and op
 * transposes where it is told to.
 */
#ifndef DLSYS_GEMM_LADDER_H_
#define DLSYS_GEMM_LADDER_H_

#include <cuda_runtime.h>

#include <cstdint>

/*! \brief The one function of a rung. Returns a cudaError_t. Operands are float, or bfloat16. */
extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream);

namespace ladder {

/*! \brief A matrix as seen by its rows and columns, whichever way it lies. */
struct Matrix {
  const float* data;
  int rows, columns, row, column;  // sizes, then steps to the next row and column

  /*! \brief An element. */
  __device__ float of(int i, int j) const {
    return data[static_cast<int64_t>(i) * row + static_cast<int64_t>(j) * column];
  }

  /*! \brief An element, 0 beyond the edges. */
  __device__ float at(int i, int j) const { return i < rows && j < columns ? of(i, j) : 0; }
};

/*! \brief op(x) of so many rows and columns. */
inline Matrix matrix(const void* x, int rows, int columns, bool transposes) {
  const float* const data = static_cast<const float*>(x);
  if (transposes) return {data, rows, columns, 1, rows};
  return {data, rows, columns, columns, 1};
}

inline int tiles(int size, int tile) { return (size + tile - 1) / tile; }

}  // namespace ladder

#endif  // DLSYS_GEMM_LADDER_H_
