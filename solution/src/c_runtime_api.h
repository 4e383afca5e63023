/*!
 * \file c_runtime_api.h
 * \brief The C interface of the runtime: arrays, copies and kernels.
 *
 * Every function returns 0 on success, -1 on an error and -2 where a body is still to be
 * written; DLGetLastError() has the message. Kernels run asynchronously on the default stream.
 */
#ifndef DLSYS_RUNTIME_C_RUNTIME_API_H_
#define DLSYS_RUNTIME_C_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>

#include "dlarray.h"

/*! \brief An extent or an index. */
typedef int64_t index_t;
typedef DLArray* DLArrayHandle;
/*! \brief A cudaStream_t, or NULL for the default stream. */
typedef void* DLStreamHandle;

DLSYS_EXTERN_C {
  /*! \brief Message of the last error in this thread; never NULL, valid until the next error. */
  const char* DLGetLastError(void);

  /*!
   * \brief Stores a message for DLGetLastError.
   * \param code what to return from the failing function: -1, or -2 for "not written yet".
   * \return code
   */
  int DLSetLastError(const char* message, int code);

  /*! \brief Reads and clears the device's error state. \param what named in the message. */
  int DLDeviceCheck(const char* what);

  /*!
   * \brief Waits for every stream of the device, then does as DLDeviceCheck.
   * \param what named in the message.
   */
  int DLDeviceSynchronize(const char* what);

  /*!
   * \brief Frees all memory of the device, and has it work again after a kernel that failed.
   *
   * The emulated GPU does; a real one works again in a new process alone, which is an error here.
   * Arrays from before may still be given to DLArrayFree, and to nothing else.
   */
  int DLDeviceReset(void);

  /*!
   * \brief Allocates an array, not initialised.
   * \param ndim callers may pass 32 bits: only those are read.
   */
  int DLArrayAlloc(const index_t* shape, index_t ndim, DLContext ctx, DLArrayHandle* out);

  /*! \brief Frees an array; NULL is allowed. */
  int DLArrayFree(DLArrayHandle handle);

  /*! \brief Copies between arrays of the same number of bytes, on any devices. */
  int DLArrayCopyFromTo(DLArrayHandle from, DLArrayHandle to, DLStreamHandle stream);

  /*!
   * \brief How much device memory was asked for since the library was loaded.
   * \param arrays allocations by DLArrayAlloc.
   * \param raw all cudaMalloc calls that succeeded, those by DLArrayAlloc included.
   */
  int DLGetAllocationCounts(int64_t* arrays, int64_t* raw);

  /*!
   * \brief What else of the device and the host was used since the library was loaded.
   * \param to_host bytes that the host could read: copied there by anyone in this library, or of
   *   memory that was made for both sides.
   * \param handles cuBLAS handles that were created here and not destroyed.
   */
  int DLGetDeviceUse(int64_t* to_host, int64_t* handles);

  /*! \brief arr = value. */
  int DLGpuArraySet(DLArrayHandle arr, float value);

  /*! \brief output[i, ...] = input[...]; output.shape = (k,) + input.shape. */
  int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output);

  /*! \brief output[...] = sum over i of input[i, ...]; a vector sums to shape (1,). */
  int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output);

  /*! \brief output = matA + matB, element by element. */
  int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                                DLArrayHandle output);

  /*! \brief output = input + val. */
  int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output);

  /*! \brief output = matA * matB, element by element. */
  int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                     DLArrayHandle output);

  /*! \brief output = input * val. */
  int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output);

  /*! \brief matC = op(matA) op(matB); op transposes where its flag is set. */
  int DLGpuMatrixMultiply(const DLArrayHandle matA, bool transposeA, const DLArrayHandle matB,
                          bool transposeB, DLArrayHandle matC);

  /*! \brief output = max(input, 0). */
  int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output);

  /*! \brief output = in_grad where input > 0, else 0. */
  int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                        DLArrayHandle output);

  /*! \brief Softmax of every row of a matrix. */
  int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output);

  /*! \brief output[0] = mean over rows of -sum(input_b * log(softmax(input_a))). */
  int DLGpuSoftmaxCrossEntropy(const DLArrayHandle input_a, const DLArrayHandle input_b,
                               DLArrayHandle output);

  /*! \brief matC = matA matB. */
  int DLGpuFastMatrixMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle matC);

  /*! \brief output[i] = sum over j of input[i, j]. */
  int DLGpuFastRowSum(const DLArrayHandle input, DLArrayHandle output);

  /*! \brief Softmax of every row of a matrix. */
  int DLGpuFastSoftmax(const DLArrayHandle input, DLArrayHandle output);

} /* DLSYS_EXTERN_C */

#endif /* DLSYS_RUNTIME_C_RUNTIME_API_H_ */
