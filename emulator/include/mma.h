/*!
 * \file mma.h
 * \brief Tensor cores: products of small matrices, by all threads of a warp together.
 *
 * Which thread holds what of a fragment is said nowhere, so it may be anything. Here each thread
 * holds all of a and b, and every 32nd element of a sum, which it computes alone: no thread waits
 * for another. Products are exact and are summed in float, int or double, one after the other; a
 * GPU adds several at once, so last bits may differ. TF32 is float whose last 13 bits are dropped.
 */
#ifndef MMA_H_
#define MMA_H_

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
namespace precision {
struct tf32 {};
}  // namespace precision
enum layout_t { mem_row_major, mem_col_major };

namespace details {

/*! \brief How an element is stored, and as what it is multiplied. */
template <class T>
struct Element {
  typedef T Stored;
  static T value(T x) { return x; }
};
template <>
struct Element<precision::tf32> {
  typedef float Stored;
  static float value(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    bits &= 0xffffe000;
    std::memcpy(&x, &bits, sizeof(bits));
    return x;
  }
};
template <>
struct Element<__half> {
  typedef __half Stored;
  static float value(__half x) { return static_cast<float>(x); }
};
template <>
struct Element<__nv_bfloat16> {
  typedef __nv_bfloat16 Stored;
  static float value(__nv_bfloat16 x) { return static_cast<float>(x); }
};

/*! \brief Whether there are products of this size, of elements of that kind. */
template <int m, int n, int k, class T>
struct Exists {
  static const bool small =
      std::is_same<T, __half>::value || std::is_same<T, __nv_bfloat16>::value ||
      std::is_same<T, signed char>::value || std::is_same<T, unsigned char>::value;
  static const bool of_16 = k == 16 && m * n == 256 && (m == 16 || m == 32 || m == 8);
  static const bool value =
      (small && of_16) ||
      (std::is_same<T, precision::tf32>::value && m == 16 && n == 16 && k == 8) ||
      (std::is_same<T, double>::value && m == 8 && n == 8 && k == 4);
};

}  // namespace details

/*! \brief A matrix that the threads of a warp hold together. */
template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment;

template <int m, int n, int k, class T, class Layout>
struct fragment<matrix_a, m, n, k, T, Layout> {
  static_assert(details::Exists<m, n, k, T>::value, "tensor cores have no products of this size");
  typedef typename details::Element<T>::Stored element_type, storage_element_type;
  static const int num_elements = m * k, rows = m, columns = k;
  element_type x[num_elements];
};

template <int m, int n, int k, class T, class Layout>
struct fragment<matrix_b, m, n, k, T, Layout> {
  static_assert(details::Exists<m, n, k, T>::value, "tensor cores have no products of this size");
  typedef typename details::Element<T>::Stored element_type, storage_element_type;
  static const int num_elements = k * n, rows = k, columns = n;
  element_type x[num_elements];
};

template <int m, int n, int k, class T>
struct fragment<accumulator, m, n, k, T, void> {
  typedef T element_type, storage_element_type;
  static const int num_elements = m * n / 32, rows = m, columns = n;
  element_type x[num_elements];
};

template <class Use, int m, int n, int k, class T, class Layout, class V>
inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& f, const V& value) {
  for (int i = 0; i < f.num_elements; ++i)
    f.x[i] = static_cast<typename fragment<Use, m, n, k, T, Layout>::element_type>(value);
}

/*! \brief Reads a or b; rows, or columns, lie `stride` apart. */
template <class Use, int m, int n, int k, class T, class Layout, class P>
inline void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& f, const P* from, unsigned stride) {
  const bool by_rows = std::is_same<Layout, row_major>::value;
  for (int i = 0; i < f.rows; ++i)
    for (int j = 0; j < f.columns; ++j)
      f.x[i * f.columns + j] = by_rows ? from[i * stride + j] : from[j * stride + i];
}

template <int m, int n, int k, class T>
inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& f, const T* from, unsigned stride,
                             layout_t layout) {
  for (int e = 0; e < f.num_elements; ++e) {
    const int at = e * 32 + emulator_lane(), i = at / n, j = at % n;
    f.x[e] = layout == mem_row_major ? from[i * stride + j] : from[j * stride + i];
  }
}

template <int m, int n, int k, class T>
inline void store_matrix_sync(T* to, const fragment<accumulator, m, n, k, T>& f, unsigned stride,
                              layout_t layout) {
  for (int e = 0; e < f.num_elements; ++e) {
    const int at = e * 32 + emulator_lane(), i = at / n, j = at % n;
    to[layout == mem_row_major ? i * stride + j : j * stride + i] = f.x[e];
  }
}

/*! \brief d = a b + c. */
template <int m, int n, int k, class A, class B, class LayoutA, class LayoutB, class D, class C>
inline void mma_sync(fragment<accumulator, m, n, k, D>& d,
                     const fragment<matrix_a, m, n, k, A, LayoutA>& a,
                     const fragment<matrix_b, m, n, k, B, LayoutB>& b,
                     const fragment<accumulator, m, n, k, C>& c) {
  typedef decltype(details::Element<A>::value(a.x[0]) * details::Element<B>::value(b.x[0])) Sum;
  for (int e = 0; e < d.num_elements; ++e) {
    const int at = e * 32 + emulator_lane(), i = at / n, j = at % n;
    Sum sum = static_cast<Sum>(c.x[e]);
    for (int l = 0; l < k; ++l)
      sum +=
          details::Element<A>::value(a.x[i * k + l]) * details::Element<B>::value(b.x[l * n + j]);
    d.x[e] = static_cast<D>(sum);
  }
}

/*! \brief To the nearest number of TF32, halves away from 0. */
inline float __float_to_tf32(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  if ((bits & 0x7f800000) != 0x7f800000) bits = (bits + 0x1000) & 0xffffe000;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

}  // namespace wmma
}  // namespace nvcuda

#endif  // MMA_H_
