/*!
 * \file fast_row_sum.cu
 * \brief Task 3.6: the sum of every row, at the speed of memory.
 */
#include "./c_runtime_api.h"
#include "./cuda_check.h"

// TODO (task 3.6): your kernels here
int DLGpuFastRowSum(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && output->ndim == 1 && output->shape[0] == input->shape[0],
          "fast_row_sum: the input is " + shape_of(input) + ", the output is " + shape_of(output));
  // TODO (task 3.6): your code here
  return not_written("3.6");
}
