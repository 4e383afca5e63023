/*!
 * \file atomics.h
 * \brief Atomic operations and memory fences. All atomics return the old value.
 *
 * Blocks run on several cores, so these are the CPU's own atomic instructions. They keep what is
 * before and after them in order: programs that wait for the last block, as NVIDIA's own do, count
 * on it, and arm64, unlike x86-64, would not do so by itself.
 */
#ifndef EMULATOR_ATOMICS_H_
#define EMULATOR_ATOMICS_H_

#include <cstddef>
#include <cstring>

namespace emulator {

/*! \brief The integer that has a size in bytes. */
template <size_t size>
struct Bits;
template <>
struct Bits<2> {
  typedef unsigned short type;
};
template <>
struct Bits<4> {
  typedef unsigned int type;
};
template <>
struct Bits<8> {
  typedef unsigned long long type;
};

/*! \brief *address = update(*address), tried until no other thread came in between. */
template <typename T, typename Update>
T atomic_update(T* address, Update update) {
  typedef typename Bits<sizeof(T)>::type Word;
  Word* word = reinterpret_cast<Word*>(address);
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED), next;
  T value;
  do {
    std::memcpy(static_cast<void*>(&value), &old, sizeof value);
    T updated = update(value);
    std::memcpy(&next, &updated, sizeof next);
  } while (
      !__atomic_compare_exchange_n(word, &old, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return value;
}

}  // namespace emulator

#define EMULATOR_ATOMIC_INTEGER(T)                                                          \
  inline T atomicAdd(T* p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }      \
  inline T atomicAnd(T* p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_ACQ_REL); }      \
  inline T atomicOr(T* p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL); }        \
  inline T atomicXor(T* p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_ACQ_REL); }      \
  inline T atomicExch(T* p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }    \
  inline T atomicMin(T* p, T v) {                                                           \
    return emulator::atomic_update(p, [v](T old) { return v < old ? v : old; });            \
  }                                                                                         \
  inline T atomicMax(T* p, T v) {                                                           \
    return emulator::atomic_update(p, [v](T old) { return v > old ? v : old; });            \
  }                                                                                         \
  inline T atomicCAS(T* p, T compare, T v) {                                                \
    __atomic_compare_exchange_n(p, &compare, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    return compare;                                                                         \
  }

EMULATOR_ATOMIC_INTEGER(int)
EMULATOR_ATOMIC_INTEGER(unsigned int)
EMULATOR_ATOMIC_INTEGER(unsigned long long)

#undef EMULATOR_ATOMIC_INTEGER

// CUDA has these of the signed 64-bit type.
inline long long atomicMin(long long* p, long long v) {
  return emulator::atomic_update(p, [v](long long old) { return v < old ? v : old; });
}
inline long long atomicMax(long long* p, long long v) {
  return emulator::atomic_update(p, [v](long long old) { return v > old ? v : old; });
}

inline int atomicSub(int* p, int v) { return __atomic_fetch_sub(p, v, __ATOMIC_ACQ_REL); }
inline unsigned int atomicSub(unsigned int* p, unsigned int v) {
  return __atomic_fetch_sub(p, v, __ATOMIC_ACQ_REL);
}

inline float atomicAdd(float* p, float v) {
  return emulator::atomic_update(p, [v](float old) { return old + v; });
}
inline double atomicAdd(double* p, double v) {
  return emulator::atomic_update(p, [v](double old) { return old + v; });
}
inline float atomicExch(float* p, float v) {
  return emulator::atomic_update(p, [v](float) { return v; });
}

/*! \brief Counts up to `limit`, then starts again at 0. */
inline unsigned int atomicInc(unsigned int* p, unsigned int limit) {
  return emulator::atomic_update(p,
                                 [limit](unsigned int old) { return old >= limit ? 0 : old + 1; });
}

/*! \brief Counts down to 0, then starts again at `limit`. */
inline unsigned int atomicDec(unsigned int* p, unsigned int limit) {
  return emulator::atomic_update(
      p, [limit](unsigned int old) { return old == 0 || old > limit ? limit : old - 1; });
}

inline unsigned short atomicCAS(unsigned short* p, unsigned short compare, unsigned short v) {
  __atomic_compare_exchange_n(p, &compare, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return compare;
}

// For the threads of the block alone, or for the host's as well; all are the same here.
#define atomicAdd_block atomicAdd
#define atomicSub_block atomicSub
#define atomicExch_block atomicExch
#define atomicMin_block atomicMin
#define atomicMax_block atomicMax
#define atomicInc_block atomicInc
#define atomicDec_block atomicDec
#define atomicCAS_block atomicCAS
#define atomicAnd_block atomicAnd
#define atomicOr_block atomicOr
#define atomicXor_block atomicXor
#define atomicAdd_system atomicAdd
#define atomicSub_system atomicSub
#define atomicExch_system atomicExch
#define atomicMin_system atomicMin
#define atomicMax_system atomicMax
#define atomicInc_system atomicInc
#define atomicDec_system atomicDec
#define atomicCAS_system atomicCAS
#define atomicAnd_system atomicAnd
#define atomicOr_system atomicOr
#define atomicXor_system atomicXor

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#endif  // EMULATOR_ATOMICS_H_
