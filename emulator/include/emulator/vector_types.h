/*!
 * \file vector_types.h
 * \brief CUDA's short vectors, float4 and its like, and dim3.
 */
#ifndef EMULATOR_VECTOR_TYPES_H_
#define EMULATOR_VECTOR_TYPES_H_

// A load of an aligned vector is one instruction on a GPU, hence the alignments.
#define EMULATOR_VECTOR_TYPES(T, Name, align2, align4)               \
  struct Name##1 { T x; };                                           \
  struct alignas(align2) Name##2 { T x, y; };                        \
  struct Name##3 { T x, y, z; };                                     \
  struct alignas(align4) Name##4 { T x, y, z, w; };                  \
  inline Name##1 make_##Name##1(T x) { return {x}; }                 \
  inline Name##2 make_##Name##2(T x, T y) { return {x, y}; }         \
  inline Name##3 make_##Name##3(T x, T y, T z) { return {x, y, z}; } \
  inline Name##4 make_##Name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

EMULATOR_VECTOR_TYPES(signed char, char, 2, 4)
EMULATOR_VECTOR_TYPES(unsigned char, uchar, 2, 4)
EMULATOR_VECTOR_TYPES(short, short, 4, 8)
EMULATOR_VECTOR_TYPES(unsigned short, ushort, 4, 8)
EMULATOR_VECTOR_TYPES(int, int, 8, 16)
EMULATOR_VECTOR_TYPES(unsigned int, uint, 8, 16)
EMULATOR_VECTOR_TYPES(long, long, 2 * sizeof(long), 16)
EMULATOR_VECTOR_TYPES(unsigned long, ulong, 2 * sizeof(long), 16)
EMULATOR_VECTOR_TYPES(long long, longlong, 16, 16)
EMULATOR_VECTOR_TYPES(unsigned long long, ulonglong, 16, 16)
EMULATOR_VECTOR_TYPES(float, float, 8, 16)
EMULATOR_VECTOR_TYPES(double, double, 16, 16)

#undef EMULATOR_VECTOR_TYPES

namespace emulator {

/*! \brief The same object, at an address that clang checks, as instrument/vector_copies.py says. */
template <typename T>
__attribute__((always_inline)) constexpr T&& whole(T&& vector) {
  return static_cast<T&&>(vector);
}

}  // namespace emulator

/*! \brief Sizes of a grid or a block; what is not given is 1. */
struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

#endif  // EMULATOR_VECTOR_TYPES_H_
