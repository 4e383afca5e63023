/*!
 * \file cublas_types.h
 * \brief Matrices whose numbers have a type that is known at run time.
 */
#ifndef EMULATOR_CUBLAS_TYPES_H_
#define EMULATOR_CUBLAS_TYPES_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "cublas_gemm.h"
#include "cublas_v2.h"

namespace emulator {

/*! \brief Bytes of a number; 0 for types that the emulated GPU has not. */
size_t size_of(cudaDataType type);

/*! \brief A matrix with the distances between two rows and two columns, in elements. */
struct TypedMatrix {
  const void* data;
  cudaDataType type;
  int64_t rows, columns, row_step, column_step;

  bool empty() const { return rows == 0 || columns == 0; }
  /*! \brief Bytes from the first to the last element. */
  size_t span() const;
};

/*! \brief The numbers of a matrix in device memory, by columns, as T is; exact or rounded once. */
template <typename T>
std::vector<T> load(const TypedMatrix& matrix);
/*! \brief The reverse; each number is rounded once. */
template <typename T>
void store(const TypedMatrix& matrix, const std::vector<T>& values);

/*! \brief Tells the checked build what a function reads and writes in a stream: whole matrices. */
void tell_streams(const char* function, cudaStream_t stream,
                  std::initializer_list<TypedMatrix> read, const TypedMatrix& written);

/*! \brief How a product is computed: in which type sums are, and of which type alpha and beta. */
struct Computation {
  bool in_double;
  cudaDataType scale;
};

/*! \brief Finds it; false for what cuBLAS does not have, or not here. */
bool find_computation(cublasComputeType_t compute, cudaDataType A, cudaDataType B, cudaDataType C,
                      Computation* found);

/*! \brief alpha or beta, read where it lies. */
double read_scalar(const void* scalar, cudaDataType type);

/*! \brief D = alpha A B + beta C in T, for matrices that lie as they are multiplied. */
template <typename T>
std::vector<T> multiply(const TypedMatrix& A, const TypedMatrix& B, const TypedMatrix& C,
                        double alpha, double beta);

/*! \brief NOT_SUPPORTED, and a line on stderr that says what is. */
cublasStatus_t not_supported(const char* function, const char* what);

}  // namespace emulator

#endif  // EMULATOR_CUBLAS_TYPES_H_
