/*!
 * \file numbers.h
 * \brief What the expressions of ops may use beside C's own functions, on a CPU and on a GPU.
 */
#ifndef DLSYS_BACKEND_NUMBERS_H_
#define DLSYS_BACKEND_NUMBERS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#ifdef __CUDACC__
#define DLSYS_INLINE __host__ __device__ inline
#else
#define DLSYS_INLINE inline
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
// The C library has these for whole vectors; they differ from the exact value by 4 units at most.
extern "C" {
#define DLSYS_VECTOR __attribute__((simd("notinbranch")))
DLSYS_VECTOR float expf(float) noexcept;
DLSYS_VECTOR float logf(float) noexcept;
DLSYS_VECTOR float log1pf(float) noexcept;
DLSYS_VECTOR float tanhf(float) noexcept;
DLSYS_VECTOR float powf(float, float) noexcept;
DLSYS_VECTOR float sinf(float) noexcept;
DLSYS_VECTOR float cosf(float) noexcept;
DLSYS_VECTOR double exp(double) noexcept;
DLSYS_VECTOR double log(double) noexcept;
DLSYS_VECTOR double log1p(double) noexcept;
DLSYS_VECTOR double tanh(double) noexcept;
DLSYS_VECTOR double erf(double) noexcept;
DLSYS_VECTOR double pow(double, double) noexcept;
DLSYS_VECTOR double sin(double) noexcept;
DLSYS_VECTOR double cos(double) noexcept;
#undef DLSYS_VECTOR
}
#endif
#endif

namespace dlsys {
namespace backend {

using std::cos;
using std::erf;
using std::exp;
using std::log;
using std::log1p;
using std::sin;
using std::sqrt;
using std::tanh;

/*! \brief How many values, their mean, the sum of squared distances from it. */
template <class T>
struct MomentState {
  T count, mean, squares;
};

/*! \brief bfloat16: the upper half of a float's bits. Arithmetic is done in float. */
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  /*! \brief Rounded to the nearest, ties to even. */
  DLSYS_INLINE explicit BFloat16(float value) {
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    const uint32_t rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
    const uint32_t quiet_nan = (word >> 16) | 0x40;
    bits = static_cast<uint16_t>((word & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
#endif
  }
  DLSYS_INLINE explicit operator float() const {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    memcpy(&value, &word, sizeof(value));
    return value;
  }
};

/*! \brief float16 of IEEE 754. Arithmetic is done in float. */
struct Half {
  uint16_t bits;

  Half() = default;
  /*! \brief Rounded to the nearest, ties to even; what is too large is infinite. */
  DLSYS_INLINE explicit Half(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    const uint32_t sign = (word >> 16) & 0x8000;
    word &= 0x7fffffff;
    uint32_t found;
    if (word >= 0x47800000) {  // 65,536 and more, infinity, NaN
      found = word > 0x7f800000 ? 0x7e00 : 0x7c00;
    } else if (word < 0x38800000) {  // below 2^-14: a float adds, and rounds as it does so
      float tiny;
      memcpy(&tiny, &word, sizeof(tiny));
      tiny += 0.5f;
      memcpy(&found, &tiny, sizeof(found));
      found -= 0x3f000000;
    } else {
      found = (word + 0xc8000fff + ((word >> 13) & 1)) >> 13;
    }
    bits = static_cast<uint16_t>(sign | found);
  }
  DLSYS_INLINE explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
    float value;
    if (exponent == 0) {
      value = static_cast<float>(fraction) * 5.9604644775390625e-08f;  // 2^-24
      uint32_t word;
      memcpy(&word, &value, sizeof(word));
      word |= sign;
      memcpy(&value, &word, sizeof(value));
      return value;
    }
    const uint32_t high = exponent == 31 ? 255 : exponent + 112;
    const uint32_t word = sign | high << 23 | fraction << 13;
    memcpy(&value, &word, sizeof(value));
    return value;
  }
};

/*! \brief The error function. */
template <class T>
DLSYS_INLINE T error_function(T a) {
  return erf(a);
}

#ifndef __CUDACC__
/*! \brief The value of a polynomial, whose first coefficient is that of the highest power. */
template <int count>
DLSYS_INLINE float polynomial(const float (&coefficients)[count], float x) {
  float sum = coefficients[0];
  for (int i = 1; i < count; ++i) sum = sum * x + coefficients[i];
  return sum;
}

/*!
 * \brief The same, 3 units off at most; a loop over it becomes one over vectors.
 *
 * Below 1.4 it is x times a polynomial of x squared; above, 1 - p(x)^-16. Both are fitted so that
 * the largest relative error is least.
 */
template <>
DLSYS_INLINE float error_function(float x) {
  const float kNear[] = {
      6.957571372367966e-07f,  -1.1922999874514062e-05f, 1.1499921674840152e-04f,
      -8.486240985803306e-04f, 5.219817161560059e-03f,   -2.6864582672715187e-02f,
      1.1283761262893677e-01f, -3.7612637877464294e-01f, 1.128379225730896f};
  const float kFar[] = {1.6242603305727243e-04f, -8.601009612902999e-04f, 4.693461116403341e-03f,
                        -4.977048956789076e-04f, 5.4214876145124435e-02f, 6.268414109945297e-02f,
                        1.0021586418151855f};
  const float size = std::fabs(x), far_x = size > 3.93f ? 3.93f : size;
  const float near_x = size > 1.4f ? 1.4f : size;
  const float near_value = near_x * polynomial(kNear, near_x * near_x);
  float power = polynomial(kFar, far_x);
  power *= power;
  power *= power;
  power *= power;
  power *= power;
  const float value = size > 1.4f ? 1 - 1 / power : near_value;
  return std::copysign(value, x);
}
#endif

/*! \brief A value of one dtype as one of another. */
template <class To, class From>
DLSYS_INLINE To as(From value) {
  return static_cast<To>(value);
}

template <class T>
DLSYS_INLINE bool is_nan(T value) {
  return value != value;
}

/*! \brief The larger; NaN if one is NaN. T may be a vector of the compiler's. */
template <class T>
DLSYS_INLINE T maximum(T a, T b) {
  const T larger = a > b ? a : b;  // b if one is NaN
  return a != a ? a : larger;
}

/*! \brief The smaller; NaN if one is NaN. */
template <class T>
DLSYS_INLINE T minimum(T a, T b) {
  const T smaller = a < b ? a : b;
  return a != a ? a : smaller;
}

template <class T>
DLSYS_INLINE T absolute(T a) {
  return a < T(0) ? T(-a) : a == T(0) ? T(0) : a;
}
template <>
DLSYS_INLINE float absolute(float a) {
  return std::fabs(a);
}
template <>
DLSYS_INLINE double absolute(double a) {
  return std::fabs(a);
}

/*! \brief -1, 0 or 1; NaN of NaN. */
template <class T>
DLSYS_INLINE T sign(T a) {
  return a > T(0) ? T(1) : a < T(0) ? T(-1) : a;
}

template <class T>
DLSYS_INLINE T power(T a, T b) {
  return static_cast<T>(std::pow(a, b));
}

/*! \brief To the nearest whole number; whole numbers as they are. */
template <class T>
DLSYS_INLINE T nearest(T a) {
  return a;
}
template <>
DLSYS_INLINE float nearest(float a) {
  return ::rintf(a);
}
template <>
DLSYS_INLINE double nearest(double a) {
  return ::rint(a);
}

// Ways of reduction: where to start, and how two partial results become one.

template <class T>
struct Sum {
  DLSYS_INLINE static T start() { return T(0); }
  template <class V>
  DLSYS_INLINE static V both(V a, V b) {
    return a + b;
  }
};

template <class T>
struct Product {
  DLSYS_INLINE static T start() { return T(1); }
  template <class V>
  DLSYS_INLINE static V both(V a, V b) {
    return a * b;
  }
};

/*! \brief The ends of a type's numbers, known when it is compiled. */
template <class T>
struct Ends {
  typedef std::numeric_limits<T> Limits;
  static constexpr T kLeast = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  static constexpr T kMost = Limits::has_infinity ? Limits::infinity() : Limits::max();
};

template <class T>
struct Largest {
  DLSYS_INLINE static T start() { return Ends<T>::kLeast; }
  template <class V>
  DLSYS_INLINE static V both(V a, V b) {
    return maximum(a, b);
  }
};

template <class T>
struct Smallest {
  DLSYS_INLINE static T start() { return Ends<T>::kMost; }
  template <class V>
  DLSYS_INLINE static V both(V a, V b) {
    return minimum(a, b);
  }
};

/*! \brief Four 32-bit words of the counter-based generator Philox 4x32 with 10 rounds. */
struct Philox {
  uint32_t words[4];

  DLSYS_INLINE Philox(uint64_t count, uint64_t draw, uint64_t seed) {
    uint32_t c[4] = {static_cast<uint32_t>(count), static_cast<uint32_t>(count >> 32),
                     static_cast<uint32_t>(draw), static_cast<uint32_t>(draw >> 32)};
    uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    for (int round = 0; round < 10; ++round) {
      const uint64_t first = static_cast<uint64_t>(c[0]) * 0xD2511F53u;
      const uint64_t second = static_cast<uint64_t>(c[2]) * 0xCD9E8D57u;
      const uint32_t mixed[4] = {
          static_cast<uint32_t>(second >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(second),
          static_cast<uint32_t>(first >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(first)};
      for (int i = 0; i < 4; ++i) c[i] = mixed[i];
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; ++i) words[i] = c[i];
  }

  /*! \brief Word i as a number from 0 up to, but not, 1. */
  template <class T>
  DLSYS_INLINE T uniform(int i) const {
    return static_cast<T>(words[i] >> 8) * static_cast<T>(1.0 / 16777216);
  }
};

/*! \brief What a draw makes of two uniform numbers: of the first, or of both. */
struct UniformDraw {
  template <class T>
  DLSYS_INLINE static void of(T& a, T& b, T low, T high) {
    a = low + (high - low) * a;
    b = low + (high - low) * b;
  }
};

/*! \brief Box and Muller: two independent normal numbers. */
struct NormalDraw {
  template <class T>
  DLSYS_INLINE static void of(T& a, T& b, T mean, T deviation) {
    const T radius = sqrt(T(-2) * log(T(1) - a));
    const T angle = T(6.283185307179586) * b;
    a = mean + deviation * radius * cos(angle);
    b = mean + deviation * radius * sin(angle);
  }
};

struct BernoulliDraw {
  template <class T>
  DLSYS_INLINE static void of(T& a, T& b, T probability, T) {
    a = a < probability ? T(1) : T(0);
    b = b < probability ? T(1) : T(0);
  }
};

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_NUMBERS_H_
