// Numbers of 16 bits. A test writes a file of operands, a kernel works on them, and the test
// compares the file of results: bit by bit, as 16 bits each.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.h"

template <typename T>
static std::vector<T> read_operands() {
  std::FILE* file = std::fopen(std::getenv("OPERANDS"), "rb");
  CHECK(file != nullptr);
  std::fseek(file, 0, SEEK_END);
  std::vector<T> values(std::ftell(file) / sizeof(T));
  std::rewind(file);
  CHECK(std::fread(values.data(), sizeof(T), values.size(), file) == values.size());
  std::fclose(file);
  return values;
}

template <typename T>
static void write_results(const Device<T>& results) {
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  std::FILE* file = std::fopen(std::getenv("RESULTS"), "wb");
  std::vector<T> values = results.get();
  CHECK(std::fwrite(values.data(), sizeof(T), values.size(), file) == values.size());
  std::fclose(file);
}

__global__ void round_floats(const float* in, int n, unsigned short* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned short* mine = out + 8 * i;
  mine[0] = __half_as_ushort(__float2half(in[i]));
  mine[1] = __half_as_ushort(__float2half_rz(in[i]));
  mine[2] = __half_as_ushort(__float2half_ru(in[i]));
  mine[3] = __half_as_ushort(__float2half_rd(in[i]));
  mine[4] = __bfloat16_as_ushort(__float2bfloat16(in[i]));
  mine[5] = __bfloat16_as_ushort(__float2bfloat16_rz(in[i]));
  mine[6] = __bfloat16_as_ushort(__float2bfloat16_ru(in[i]));
  mine[7] = __bfloat16_as_ushort(__float2bfloat16_rd(in[i]));
}

CASE(round_a_file) {
  std::vector<float> in = read_operands<float>();
  const int n = in.size();
  Device<float> from(in);
  Device<unsigned short> to(8 * n);
  round_floats<<<(n + 255) / 256, 256>>>(from.data, n, to.data);
  write_results(to);
}

__global__ void widen(float* halves, float* bfloats) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  halves[i] = __half2float(__ushort_as_half(i));
  bfloats[i] = __bfloat162float(__ushort_as_bfloat16(i));
}

CASE(widen_all) {
  Device<float> out(2 * 65536);
  widen<<<256, 256>>>(out.data, out.data + 65536);
  write_results(out);
}

// a, b, c to a + b, a - b, a * b, a / b, fma, sqrt |a|, max, min
template <typename H>
__global__ void compute(const H* in, int n, H* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const H a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
  H* mine = out + 8 * i;
  mine[0] = __hadd(a, b);
  mine[1] = a - b;
  mine[2] = __hmul(a, b);
  mine[3] = a / b;
  mine[4] = __hfma(a, b, c);
  mine[5] = hsqrt(__habs(a));
  mine[6] = __hmax(a, b);
  mine[7] = __hmin(a, b);
}

template <typename H>
static void compute_a_file() {
  std::vector<H> in = read_operands<H>();
  const int n = in.size() / 3;
  Device<H> from(in), to(8 * n);
  compute<<<(n + 255) / 256, 256>>>(from.data, n, to.data);
  write_results(to);
}

CASE(compute_a_file_of_halves) { compute_a_file<half>(); }
CASE(compute_a_file_of_bfloats) { compute_a_file<nv_bfloat16>(); }

__global__ void use_pairs(float* out) {
  half2 a = __floats2half2_rn(1.5f, -2.0f), b = __float2half2_rn(3.0f);
  half2 sum = __hadd2(a, b), fused = __hfma2(a, b, sum);
  out[0] = __low2float(sum), out[1] = __high2float(sum);
  out[2] = __low2float(fused), out[3] = __high2float(fused);
  float2 swapped = __half22float2(__lowhigh2highlow(a * b));
  out[4] = swapped.x, out[5] = swapped.y;
  half2 less = __hlt2(a, __float2half2_rn(0.0f));
  out[6] = __low2float(less) * 10 + __high2float(less) + (__hbgt2(b, a) ? 100 : 0);
  out[7] = __half2float(__low2half(h2sqrt(__halves2half2(__float2half(16.0f), CUDART_ONE_FP16))));
  __nv_bfloat162 c = __floats2bfloat162_rn(0.5f, 8.0f);
  c += __halves2bfloat162(__high2bfloat16(c), __low2bfloat16(c));
  out[8] = __low2float(c) + 100 * __high2float(c);
  a.x = __float2half(4.0f);
  out[9] = __half2float(a.x) + __half2float(__hmul(a.y, a.y));
}

CASE(pairs_do_everything_twice) {
  Device<float> out(10);
  use_pairs<<<1, 1>>>(out.data);
  const float wanted[] = {4.5f, 1, 9, -5, -6, 4.5f, 101, 4, 858.5f, 8};
  for (int i = 0; i < 10; ++i) CHECK(out.get()[i] == wanted[i]);
}

__global__ void use_integers(int* out) {
  out[0] = __half2int_rn(__float2half(2.5f)), out[1] = __half2int_rz(__float2half(-2.75f));
  out[2] = __half2int_ru(__float2half(2.25f)), out[3] = __half2int_rd(__float2half(-2.25f));
  out[4] = __half2int_rz(CUDART_INF_FP16), out[5] = __half2int_rn(CUDART_NAN_FP16);
  out[6] = static_cast<int>(__half2float(__int2half_rn(2049)));  // a tie: to even
  out[7] = static_cast<int>(__bfloat162float(__int2bfloat16_rn(16842753)));
  out[8] = __hisnan(CUDART_NAN_FP16) + 2 * __hisinf(CUDART_INF_FP16) + __heq(half(1.0f), half(1));
  out[9] = __hltu(CUDART_NAN_FP16, CUDART_ONE_FP16) + 2 * __hlt(CUDART_NAN_FP16, CUDART_ONE_FP16);
}

CASE(halves_and_integers_become_each_other) {
  Device<int> out(10);
  use_integers<<<1, 1>>>(out.data);
  const int wanted[] = {2, -2, 3, -3, 2147483647, 0, 2048, 16908288, 4, 1};
  for (int i = 0; i < 10; ++i) CHECK(out.get()[i] == wanted[i]);
}

__global__ void add_up(const half* in, float* out, half2* pairs) {
  __shared__ half copy[64];
  copy[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  half value = copy[63 - threadIdx.x];
  half2 both = __half2half2(value);
  for (int step = 16; step > 0; step /= 2) {
    value += __shfl_xor_sync(0xffffffff, value, step);
    both = __hadd2(both, __shfl_down_sync(0xffffffff, both, step));
  }
  out[threadIdx.x] = value;
  if (threadIdx.x % 32 == 0) atomicAdd(pairs, both);
}

CASE(halves_are_shared_shuffled_and_added) {
  std::vector<half> in(64);
  for (int i = 0; i < 64; ++i) in[i] = __float2half(i);
  Device<half> from(in);
  Device<float> to(64);
  Device<half2> pairs(std::vector<half2>(1, __floats2half2_rn(0, 1)));
  add_up<<<1, 64>>>(from.data, to.data, pairs.data);
  for (int i = 0; i < 64; ++i) CHECK(to.get()[i] == (i < 32 ? 1520 : 496));
  float2 sum = __half22float2(pairs.get()[0]);
  CHECK(sum.x == 2016 && sum.y == 2017);
}
