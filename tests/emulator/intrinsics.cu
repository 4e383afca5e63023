// Intrinsics: bits of integers, conversions, mathematics, votes and sums of a warp, caches.
#include <math_constants.h>

#include <cfloat>
#include <cmath>

#include "check.h"

__global__ void integer_bits(unsigned* out, unsigned x, unsigned y, long long l) {
  int i = 0;
  out[i++] = __brev(x);
  out[i++] = static_cast<unsigned>(__brevll(l) >> 32);
  out[i++] = __ffsll(l) * 100 + __clzll(l);
  out[i++] = __byte_perm(x, y, 0x7531);
  out[i++] = __byte_perm(x, y, 0xb8c0);  // as 0x3040
  out[i++] = __funnelshift_l(x, y, 40);
  out[i++] = __funnelshift_r(x, y, 4);
  out[i++] = __funnelshift_lc(x, y, 40);
  out[i++] = __funnelshift_rc(x, y, 32);
  out[i++] = __umulhi(x, y);
  out[i++] = __mulhi(static_cast<int>(y), 16);
  out[i++] = __mul24(-3, 5) + __umul24(0x1000002, 3);
  out[i++] = __usad(3, 10, 100) + __sad(-3, 10, 100);
  out[i++] = __dp4a(0x01ff0203, 0x01010101, 10);
  out[i++] = __popcll(0xffffffff00000001ull) * 100 + __clz(0) + __ffs(0);
  out[i++] = static_cast<unsigned>(__umul64hi(1ull << 63, 6));
}

CASE(integers_are_taken_apart_by_bits) {
  Device<unsigned> out(16);
  integer_bits<<<1, 1>>>(out.data, 0x12345678, 0x9abcdef0, 0x0000010000100000ll);
  const unsigned wanted[] = {0x1e6a2c48, 0x00000800, 2123,       0x9ade1256, 0x1278f078, 0xbcdef012,
                             0x01234567, 0x12345678, 0x9abcdef0, 0x0b00ea4e, 0xfffffff9, 0xfffffff7,
                             220,        15,         3332,       3};
  for (int i = 0; i < 16; ++i)
    if (out.get()[i] != wanted[i]) std::printf("%d: %x %x\n", i, out.get()[i], wanted[i]);
  for (int i = 0; i < 16; ++i) CHECK(out.get()[i] == wanted[i]);
}

__global__ void to_integers(const float* in, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i * 5] = __float2int_rn(in[i]);
  out[i * 5 + 1] = __float2int_rz(in[i]);
  out[i * 5 + 2] = __float2int_ru(in[i]);
  out[i * 5 + 3] = __float2int_rd(in[i]);
  out[i * 5 + 4] = static_cast<int>(__float2uint_rn(in[i]));
}

CASE(floats_become_integers_in_four_ways) {
  const std::vector<float> in = {0.5f, 1.5f, -1.5f, 2.25f, 3e9f, -3e9f, NAN, INFINITY};
  const int most = 2147483647, least = -most - 1;
  const int wanted[] = {0,    0,    1,    0,    0,           2,     1,     2,     1,     2,
                        -2,   -1,   -1,   -2,   0,           2,     2,     3,     2,     2,
                        most, most, most, most, -1294967296, least, least, least, least, 0,
                        0,    0,    0,    0,    0,           most,  most,  most,  most,  -1};
  Device<float> from(in);
  Device<int> to(5 * in.size());
  to_integers<<<1, 32>>>(from.data, to.data, in.size());
  for (size_t i = 0; i < 5 * in.size(); ++i) CHECK(to.get()[i] == wanted[i]);
}

__global__ void to_floats(float* out, int x, unsigned u, double d) {
  out[0] = __int2float_rn(x) - 16777216, out[1] = __int2float_rz(x) - 16777216;
  out[2] = __int2float_ru(x) - 16777216, out[3] = __int2float_rd(-x) + 16777216;
  out[4] = __uint2float_rn(u), out[5] = __double2float_rz(d), out[6] = __double2float_ru(d);
  out[7] = __hiloint2double(__double2hiint(d), __double2loint(d)) == d;
  out[8] = __longlong_as_double(__double_as_longlong(d)) == d;
  out[9] = __uint_as_float(__float_as_uint(2.5f)) + __ll2double_rn(7);
}

CASE(integers_and_doubles_become_floats) {
  Device<float> out(10);
  to_floats<<<1, 1>>>(out.data, 16777217, 0xffffffff, 0.1);
  const float below = 0.0999999940395355f, above = 0.1f;
  const float wanted[] = {0, 0, 2, -2, 4294967296.0f, below, above, 1, 1, 9.5f};
  for (int i = 0; i < 10; ++i) CHECK(out.get()[i] == wanted[i]);
}

__global__ void functions(double* out, float x, double d) {
  int i = 0;
  float s, c, sp, cp;
  sincosf(x, &s, &c);
  out[i++] = s, out[i++] = c;
  sincospif(x, &sp, &cp);
  out[i++] = sp, out[i++] = cp;
  __sincosf(x, &s, &c);
  out[i++] = s * s + c * c;
  out[i++] = exp10f(x), out[i++] = cbrtf(x), out[i++] = rcbrtf(8.0f), out[i++] = hypotf(3, 4);
  out[i++] = norm3df(2, 3, 6), out[i++] = norm4df(1, 1, 1, 1), out[i++] = rhypotf(3, 4);
  out[i++] = rnorm3df(2, 3, 6), out[i++] = erfcf(x), out[i++] = normcdff(x);
  out[i++] = normcdfinvf(normcdff(x)), out[i++] = erfinvf(erff(x)), out[i++] = normcdfinv(d);
  out[i++] = sinpi(1e6) + cospi(0.5) + cospif(1.0f), out[i++] = erfinv(1e-12);
  out[i++] = CUDART_PI_F - static_cast<float>(CUDART_PI) + (CUDART_INF_F > FLT_MAX);
  out[i++] = lgammaf(5.0f), out[i++] = j0f(0.0f), out[i++] = erfcinvf(1.0f);
}

CASE(mathematics_has_what_cuda_adds) {
  const int n = 24;
  Device<double> out(n);
  const float x = 0.3f;
  functions<<<1, 1>>>(out.data, x, 1e-10);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  const double pi = 3.14159265358979;
  const double wanted[n] = {std::sin(x),
                            std::cos(x),
                            std::sin(pi * x),
                            std::cos(pi * x),
                            1,
                            std::pow(10, x),
                            std::cbrt(x),
                            0.5,
                            5,
                            7,
                            2,
                            0.2,
                            1 / 7.0,
                            std::erfc(x),
                            std::erfc(-x * std::sqrt(0.5)) / 2,
                            x,
                            x,
                            -6.3613409024040562,
                            -1,
                            8.862269254527580e-13,
                            1,
                            std::log(24.0),
                            1,
                            0};
  std::vector<double> got = out.get();
  for (int i = 0; i < n; ++i)
    CHECK(std::fabs(got[i] - wanted[i]) <= 2e-6 * std::fabs(wanted[i]) + (wanted[i] == 0) * 1e-6);
  CHECK(std::fabs(got[17] / wanted[17] - 1) < 1e-13 && std::fabs(got[19] / wanted[19] - 1) < 1e-13);
}

__global__ void matches(unsigned* out) {
  const unsigned all = 0xffffffff;
  int t = threadIdx.x, same;
  out[t * 5] = __match_any_sync(all, t % 5);
  out[t * 5 + 1] = __match_any_sync(all, t < 16 ? 1ull << 40 : 0ull);
  out[t * 5 + 2] = __match_all_sync(all, t, &same) + same;
  out[t * 5 + 3] = __match_all_sync(all, t / 32 + 0.5, &same);
  if (t % 2) out[t * 5 + 4] = __match_any_sync(0xaaaaaaaa, t % 4);
}

CASE(lanes_with_equal_values_find_each_other) {
  Device<unsigned> out(std::vector<unsigned>(64 * 5, 0));
  matches<<<1, 64>>>(out.data);
  for (int t = 0; t < 64; ++t) {
    unsigned any = 0;
    for (int lane = 0; lane < 32; ++lane) any |= ((t / 32 * 32 + lane) % 5 == t % 5) * (1u << lane);
    CHECK(out.get()[t * 5] == any && out.get()[t * 5 + 2] == 0);
    CHECK(out.get()[t * 5 + 1] == (t < 16 ? 0xffffu : t < 32 ? 0xffff0000u : 0xffffffffu));
    CHECK(out.get()[t * 5 + 3] == 0xffffffff);
    CHECK(out.get()[t * 5 + 4] == (t % 2 == 0 ? 0 : t % 4 == 1 ? 0x22222222u : 0x88888888u));
  }
}

__global__ void reductions(int* out) {
  int t = threadIdx.x, lane = t % 32;
  unsigned half = lane < 16 ? 0x0000ffff : 0xffff0000;
  int* mine = out + 8 * t;
  mine[0] = __reduce_add_sync(half, t - 40);
  mine[1] = __reduce_min_sync(half, t - 40), mine[2] = __reduce_max_sync(half, t - 40);
  mine[3] =
      __reduce_min_sync(half, static_cast<unsigned>(t - 40)) == (t < 32   ? 0u - 40 + t / 16 * 16
                                                                 : t < 48 ? 0u
                                                                          : 8u);
  mine[4] = __reduce_or_sync(half, 1u << lane) == half;
  mine[5] = __reduce_and_sync(half, ~(1u << lane)) == ~half;
  mine[6] = __reduce_xor_sync(half, lane < 17 ? 3u : 5u) == (lane < 16 ? 0u : 6u);
  mine[7] = __reduce_add_sync(half, 0x80000000u + lane) == (lane < 16 ? 120u : 376u);
}

CASE(lanes_reduce_integers) {
  Device<int> out(64 * 8);
  reductions<<<1, 64>>>(out.data);
  for (int t = 0; t < 64; ++t) {
    const int first = t / 16 * 16 - 40;
    std::vector<int> got = out.get();
    CHECK(got[t * 8] == 16 * first + 120);
    CHECK(got[t * 8 + 1] == first && got[t * 8 + 2] == first + 15);
    for (int i = 3; i < 8; ++i) CHECK(got[t * 8 + i] == 1);
  }
}

__device__ __noinline__ int twice(int x) { return 2 * x; }

__global__ void round_twice(const float* x, float* out, double d) {
  out[0] = __fadd_rn(__fmul_rn(x[0], x[1]), x[2]);
  out[1] = __fsub_rn(__fmul_rn(x[0], x[1]), -x[2]);
  out[2] = static_cast<float>(__dadd_rn(__dmul_rn(d, d), -(1 + 0x1p-29)));
  out[3] = static_cast<float>(__dsub_rn(__dmul_rn(d, d), 1 + 0x1p-29));
  out[4] = __fmaf_rn(x[0], x[1], x[2]);
}

// The product is 1 + 2^-11 + 2^-24; rounded it loses the last term, in a fused sum it does not.
CASE(products_that_are_asked_to_round_do) {
  Device<float> in(std::vector<float>{1 + 0x1p-12f, 1 + 0x1p-12f, -(1 + 0x1p-11f)}), out(5);
  round_twice<<<1, 1>>>(in.data, out.data, 1 + 0x1p-30);
  for (int i = 0; i < 4; ++i) CHECK(out.get()[i] == 0);
  CHECK(out.get()[4] == 0x1p-24f);
}

__global__ void odds_and_ends(int* out, long long* l, const float* in, float* copy) {
  clock_t start = clock();
  __nanosleep(10);
  out[0] = twice(threadIdx.x) + (clock() >= start && clock64() > 0);
  atomicAdd_block(out + 1, 1);
  atomicAdd_system(out + 2, 2);
  atomicMin(l, -1ll * threadIdx.x), atomicMax(l + 1, 1ll << threadIdx.x);
  __stcs(copy + threadIdx.x, __ldcg(in + threadIdx.x));
#pragma unroll 4
  for (int i = 0; i < 2; ++i) atomicOr_block(out + 3, 1 << i);
}

CASE(odds_and_ends_are_there) {
  Device<int> out(std::vector<int>(4, 0));
  Device<long long> l(std::vector<long long>(2, 0));
  std::vector<float> in(33, 2.5f);
  Device<float> from(in), to(33);
  odds_and_ends<<<1, 33>>>(out.data, l.data, from.data, to.data);
  CHECK(out.get()[1] == 33 && out.get()[2] == 66 && out.get()[3] == 3 && out.get()[0] % 2 == 1);
  CHECK(l.get()[0] == -32 && l.get()[1] == 1ll << 32 && to.get() == in);
}

__global__ void trap_at(int block) {
  if (blockIdx.x == block) __trap();
}

CASE(a_trap_ends_the_launch) {
  trap_at<<<4, 1>>>(4);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  trap_at<<<4, 1>>>(3);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
}

template <typename T>
__global__ void of_zeros(const T* in, T* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const T a = in[i % 4 / 2], b = in[i % 2];
  out[i] = i < 4 ? min(a, b) : max(a, b);
  out[i + 8] = i < 4 ? fmin(a, b) : fmax(a, b);
  out[i + 16] = i < 4 ? std::fmin(b, a) : std::fmax(b, a);
  out[i + 24] = i < 4 ? fminf(a, b) : fmaxf(a, b);
}

template <typename T>
void zero_is_more_than_minus_zero() {
  Device<T> in(std::vector<T>{0, T(-0.0)}), out(32);
  of_zeros<<<1, 8>>>(in.data, out.data);
  std::vector<T> found = out.get();
  const bool is_minus[] = {false, true, true, true, false, false, false, true};
  for (int i = 0; i < 32; ++i) CHECK(found[i] == 0 && std::signbit(found[i]) == is_minus[i % 8]);
}

CASE(zero_is_more_than_minus_zero) {
  zero_is_more_than_minus_zero<float>();
  zero_is_more_than_minus_zero<double>();
}
