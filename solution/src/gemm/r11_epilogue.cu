/*!
 * \file r11_epilogue.cu
 * \brief Rung 11: what follows the product is done before c goes to memory.
 *
 * Before: relu(a b + bias) was a product and a kernel that reads and writes all of c. Now each
 * thread does it on what it has in registers: 8 m n bytes less, and one launch. In compiled steps
 * the statements are generated (python/dlsys/backend/gemm.py): biases, activations, masks, updates.
 *
 * in: a, b of any size; gemm_bias, n numbers, or none. out: c = relu(a b + bias), or a b.
 * grid, cost: as before, and m n additions. next: the tensor cores.
 */
#include "own.cuh"

/*! \brief Where the bias lies; without one c is the product. */
extern "C" const float* gemm_bias;
const float* gemm_bias = nullptr;

namespace {

struct BiasRelu {
  float* c;
  int64_t row;
  const float* bias;
  __device__ void operator()(int m, int n, float value) const {
    c[m * row + n] = bias ? fmaxf(value + bias[n], 0) : value;
  }
};

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const BiasRelu epilogue = {c, n, gemm_bias};
  return ladder::multiply(a, b, epilogue, m, n, k, transposes_a, transposes_b,
                          ladder::parts_of(m, n), stream);
}
