/*!
 * \file fast_softmax.cu
 * \brief Task 3.7: softmax of every row, which is read from memory once.
 */
#include "./c_runtime_api.h"
#include "./cuda_check.h"

// TODO (task 3.7): your kernels here
int DLGpuFastSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "fast_softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  // TODO (task 3.7): your code here
  return not_written("3.7");
}
