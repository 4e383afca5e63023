// Products of fragments, next to plain loops: all kinds of elements, sizes and layouts.
#include <mma.h>

#include <cstring>

#include "check.h"

namespace wmma = nvcuda::wmma;

namespace {

template <class T>
struct Stored {
  typedef T Type;
};
template <>
struct Stored<wmma::precision::tf32> {
  typedef float Type;
};

// Small whole numbers, which every kind of element holds exactly.
template <class T>
std::vector<T> numbers(int count, int seed, bool has_sign) {
  std::vector<T> found;
  for (int i = 0; i < count; ++i) {
    const int value = (i * 7 + seed * 5 + i / 3) % 11;
    found.push_back(static_cast<T>(static_cast<float>(has_sign ? value - 5 : value)));
  }
  return found;
}

template <int m, int n, int k, class T, class LayoutA, class LayoutB, class Sum>
__global__ void product_kernel(const typename Stored<T>::Type* a, int lead_a,
                               const typename Stored<T>::Type* b, int lead_b, const Sum* c, Sum* d,
                               int lead_d, wmma::layout_t layout) {
  wmma::fragment<wmma::matrix_a, m, n, k, T, LayoutA> x;
  wmma::fragment<wmma::matrix_b, m, n, k, T, LayoutB> y;
  wmma::fragment<wmma::accumulator, m, n, k, Sum> sum;
  wmma::load_matrix_sync(x, a, lead_a);
  wmma::load_matrix_sync(y, b, lead_b);
  wmma::load_matrix_sync(sum, c, lead_d, layout);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] + sum.x[i];
  wmma::mma_sync(sum, x, y, sum);
  wmma::store_matrix_sync(d, sum, lead_d, layout);
}

// d = a b + 2 c, of one warp; rows lie apart by more than their length.
template <int m, int n, int k, class T, class LayoutA, class LayoutB, class Sum>
void check_product(wmma::layout_t layout, bool has_sign = true) {
  typedef typename Stored<T>::Type Element;
  const bool a_rows = std::is_same<LayoutA, wmma::row_major>::value;
  const bool b_rows = std::is_same<LayoutB, wmma::row_major>::value;
  const bool d_rows = layout == wmma::mem_row_major;
  const int gap = 16, lead_a = (a_rows ? k : m) + gap, lead_b = (b_rows ? n : k) + gap;
  const int lead_d = (d_rows ? n : m) + gap;
  const auto a = numbers<Element>(lead_a * (a_rows ? m : k), 1, has_sign);
  const auto b = numbers<Element>(lead_b * (b_rows ? k : n), 2, has_sign);
  const auto c = numbers<Sum>(lead_d * (d_rows ? m : n), 3, has_sign);
  Device<Element> on_a(a), on_b(b);
  Device<Sum> on_c(c), on_d(c);
  product_kernel<m, n, k, T, LayoutA, LayoutB, Sum>
      <<<1, 32>>>(on_a.data, lead_a, on_b.data, lead_b, on_c.data, on_d.data, lead_d, layout);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  const std::vector<Sum> d = on_d.get();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const int at = d_rows ? i * lead_d + j : j * lead_d + i;
      float sum = 2 * static_cast<float>(c[at]);
      for (int l = 0; l < k; ++l)
        sum += static_cast<float>(a[a_rows ? i * lead_a + l : l * lead_a + i]) *
               static_cast<float>(b[b_rows ? l * lead_b + j : j * lead_b + l]);
      CHECK(static_cast<float>(d[at]) == sum);
    }
}

template <int m, int n, int k, class T, class Sum>
void check_layouts(bool has_sign = true) {
  typedef wmma::row_major Row;
  typedef wmma::col_major Column;
  check_product<m, n, k, T, Row, Row, Sum>(wmma::mem_row_major, has_sign);
  check_product<m, n, k, T, Row, Column, Sum>(wmma::mem_col_major, has_sign);
  check_product<m, n, k, T, Column, Row, Sum>(wmma::mem_row_major, has_sign);
  check_product<m, n, k, T, Column, Column, Sum>(wmma::mem_col_major, has_sign);
}

__global__ void rounding_kernel(const float* in, float* rounded, float* product, int n) {
  for (int i = 0; i < n; ++i) rounded[i] = wmma::__float_to_tf32(in[i]);
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(x, 1.0f + 0x1.ffcp-11f);  // what TF32 has no bits for
  wmma::fill_fragment(y, 0.125f);
  wmma::fill_fragment(sum, 0);
  wmma::mma_sync(sum, x, y, sum);
  wmma::store_matrix_sync(product, sum, 16, wmma::mem_row_major);
}

}  // namespace

CASE(fragments_of_half_and_bfloat16_in_all_sizes) {
  check_layouts<16, 16, 16, __half, float>();
  check_layouts<32, 8, 16, __half, float>();
  check_layouts<8, 32, 16, __half, __half>();
  check_layouts<16, 16, 16, __nv_bfloat16, float>();
  check_layouts<32, 8, 16, __nv_bfloat16, float>();
}

CASE(fragments_of_whole_numbers_tf32_and_double) {
  check_layouts<16, 16, 16, signed char, int>();
  check_layouts<16, 16, 16, unsigned char, int>(false);
  check_layouts<16, 16, 8, wmma::precision::tf32, float>();
  check_layouts<8, 8, 4, double, double>();
}

CASE(tf32_is_rounded_to_nearest_and_multiplied_without_its_last_bits) {
  const std::vector<float> in = {1, 1 + 0x1p-11f, 1 + 0x1p-12f, -1 - 0x1p-11f, 0, INFINITY};
  const std::vector<float> wanted = {1, 1 + 0x1p-10f, 1, -1 - 0x1p-10f, 0, INFINITY};
  Device<float> on_in(in), rounded(in.size()), product(256);
  rounding_kernel<<<1, 32>>>(on_in.data, rounded.data, product.data, static_cast<int>(in.size()));
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(rounded.get() == wanted);
  CHECK(product.get() == std::vector<float>(256, 1));
}

namespace {

// Element i along K and line `line` of a matrix whose words are given out as PTX says.
template <class T>
__device__ unsigned word_of(const T* lines, int k, int line, int word) {
  unsigned found = 0;
  std::memcpy(&found, lines + line * k + word * (4 / sizeof(T)), 4);
  return found;
}

enum Kind { kTf32, kF16, kBf16 };

// d = 2 c + a b of one warp: a (16, k) by rows, b (k, 8) by columns, c and d (16, 8).
template <Kind kind, class T>
__global__ void instruction_kernel(const T* a, const T* b, const float* c, float* d) {
  const int k = 32 / sizeof(T), g = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned x[4], y[2];
  float s[4];
  for (int i = 0; i < 4; ++i) x[i] = word_of(a, k, g + i % 2 * 8, t + i / 2 * 4);
  for (int i = 0; i < 2; ++i) y[i] = word_of(b, k, g, t + i * 4);
  for (int i = 0; i < 4; ++i) s[i] = 2 * c[(g + i / 2 * 8) * 8 + t * 2 + i % 2];
  if (kind == kTf32)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  else if (kind == kF16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(s[0]), "=f"(s[1]), "=f"(s[2]), "=f"(s[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "f"(s[0]), "f"(s[1]),
          "f"(s[2]), "f"(s[3])
        : "memory");
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = s[i];
}

template <Kind kind, class T>
void check_instruction() {
  const int k = 32 / sizeof(T);
  const auto a = numbers<T>(16 * k, 1, true), b = numbers<T>(8 * k, 2, true);
  const auto c = numbers<float>(128, 3, true);
  Device<T> on_a(a), on_b(b);
  Device<float> on_c(c), on_d(128);
  instruction_kernel<kind><<<1, 32>>>(on_a.data, on_b.data, on_c.data, on_d.data);
  const std::vector<float> d = on_d.get();
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float sum = 2 * c[i * 8 + j];
      for (int l = 0; l < k; ++l)
        sum += static_cast<float>(a[i * k + l]) * static_cast<float>(b[j * k + l]);
      CHECK(d[i * 8 + j] == sum);
    }
}

__global__ void assembled_rounding_kernel(const float* in, float* out) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(in[threadIdx.x]));
  out[threadIdx.x] = __uint_as_float(bits);
}

__global__ void assembled_halving_kernel(const float* in, unsigned short* out) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out[threadIdx.x]) : "f"(in[threadIdx.x]));
}

}  // namespace

CASE(instructions_of_tensor_cores_give_each_thread_what_ptx_says) {
  check_instruction<kTf32, float>();
  check_instruction<kF16, __half>();
  check_instruction<kBf16, __nv_bfloat16>();
}

CASE(an_instruction_rounds_to_tf32) {
  const std::vector<float> in = {1, 1 + 0x1p-11f, 1 + 0x1p-12f, -1 - 0x1p-11f, 0, INFINITY};
  const std::vector<float> wanted = {1, 1 + 0x1p-10f, 1, -1 - 0x1p-10f, 0, INFINITY};
  Device<float> on_in(in), rounded(in.size());
  assembled_rounding_kernel<<<1, 6>>>(on_in.data, rounded.data);
  CHECK(rounded.get() == wanted);
}

CASE(an_instruction_rounds_to_bf16) {
  const std::vector<float> in = {1,        1 + 0x1p-8f, 1 + 0x1.8p-7f, -1 - 0x1.01p-8f,
                                 INFINITY, 3.4e38f,     NAN,           0x1p-133f};
  const std::vector<unsigned short> wanted = {0x3f80, 0x3f80, 0x3f82, 0xbf81,
                                              0x7f80, 0x7f80, 0x7fff, 0x0001};
  Device<float> on_in(in);
  Device<unsigned short> rounded(in.size());
  assembled_halving_kernel<<<1, 8>>>(on_in.data, rounded.data);
  CHECK(rounded.get() == wanted);
}
