// Averages, directed rounding, dot products of halves, instructions for dynamic programming.
#include <climits>

#include "check.h"

__global__ void integers(int x, unsigned y, int* out) {
  int i = 0;
  out[i++] = __hadd(x, x - 1) == INT_MAX - 1 && __rhadd(x, x - 1) == INT_MAX;
  out[i++] = __uhadd(y, 1) == 0x80000000u && __urhadd(y, y - 1) == 0xffffffffu;
  out[i++] = __hadd(-3, 0) == -2 && __rhadd(-3, 0) == -1;
  out[i++] = __fns(0x5a, 2, 2) == 4 && __fns(0x5a, 5, -2) == 3 && __fns(0x5a, 6, 1) == 6;
  out[i++] = __fns(1, 0, 0) == 0 && __fns(2, 0, 0) == y && __fns(0x5a, 0, 5) == y;
  out[i++] = __dp2a_lo(0x00020003, 0x04050607, 1) == 34;
  out[i++] = __dp2a_hi(0x0002ffff, 0x04050607, 1) == 4;
  out[i++] = __dp2a_hi(0x0002ffffu, 0xff050607u, 1u) == 65535u * 5 + 2 * 255 + 1;
  out[i++] = __vimax3_s32(3, x, -5) == x && __vimin3_u32(y, 4, 9) == 4;
  out[i++] = __viaddmin_s32(x, 1, 7) == INT_MIN && __viaddmax_u32(y, 1, 7) == 7;
  out[i++] = __vimax_s32_relu(-3, -5) == 0 && __vimax3_s32_relu(-3, 4, -5) == 4;
  out[i++] = __viaddmax_s32_relu(-9, 3, -8) == 0 && __vimin3_s32_relu(5, 4, 6) == 4;
  bool first, other;
  out[i++] = __vibmax_s32(4, 4, &first) == 4 && __vibmin_u32(3, y, &other) == 3 && first && other;
  out[i++] = umax(y, 3) == y && llmin(-3, 4) == -3 && ullmax(y, 1) == y;
}

CASE(of_integers) {
  Device<int> out(14);
  integers<<<1, 1>>>(INT_MAX, 0xffffffffu, out.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(out.get() == std::vector<int>(14, 1));
}

// Each with a constant, too, of which a compiler knows the result.
__global__ void directed(float one, float little, double two, int* out) {
  const float up = 1.0f + FLT_EPSILON, down = 1.0f - FLT_EPSILON / 2;
  const int i = threadIdx.x;
  if (i == 0) out[i] = __fadd_ru(one, little) == up && __fadd_rd(one, little) == one;
  if (i == 1) out[i] = __fadd_rz(one, -little) == down && __fsub_ru(1.0f, 1e-9f) == 1;
  if (i == 2) out[i] = __fdiv_rz(one, 3) < __fdiv_ru(one, 3) && __fdiv_rd(-1, 3) < __fdiv_rz(-1, 3);
  if (i == 3) out[i] = __fsqrt_rd(2) < __fsqrt_ru(2) && __frcp_rd(3) < __frcp_ru(3);
  if (i == 4) out[i] = __fmaf_ru(one, one, little) == up && __fmul_rz(up, up) < __fmul_ru(up, up);
  if (i == 5) out[i] = __dadd_ru(two, 1e-30) > 2 && __dadd_rd(two, 1e-30) == 2;
  if (i == 6) out[i] = __ddiv_rd(1, two + 1) < __ddiv_ru(1, 3) && __drcp_rz(3) == __ddiv_rz(1, 3);
  if (i == 7) out[i] = __dsqrt_rd(two) < __dsqrt_ru(2) && __fma_ru(two, two, 1e-30) > 4;
  if (i == 8) out[i] = __ddiv_rn(1, 4) == 0.25 && __drcp_rn(two) == 0.5 && __dsqrt_rn(4) == two;
  if (i == 9) out[i] = one + little == one && 2.0 + 1e-30 == two;  // to nearest, as before
}

CASE(directed_rounding) {
  Device<int> out(10);
  directed<<<1, 10>>>(1, 1e-9f, 2, out.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(out.get() == std::vector<int>(10, 1));
}

CASE(lengths_and_quantiles) {
  CHECK(std::fabs(norm4d(1, 2, 3, 4) - std::sqrt(30.0)) < 1e-14);
  CHECK(std::fabs(rnorm4d(1, 2, 3, 4) * rnorm3d(2, 3, 6) - 1 / std::sqrt(30.0) / 7) < 1e-15);
  CHECK(std::fabs(std::erfc(erfcinv(0.3)) - 0.3) < 1e-12);
}
