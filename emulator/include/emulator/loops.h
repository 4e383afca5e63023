/*!
 * \file loops.h
 * \brief What block_loops/loops.py builds a second version of a kernel from, one that runs a whole
 * block.
 *
 *   __global__ void add(int n, const float* a, float* out) {
 *     int i = blockIdx.x * blockDim.x + threadIdx.x;
 *     if (i < n) out[i] += a[i];
 *   }
 *
 * gets an overload whose first parameters are a KernelOf and a BlockIndex; launch.h finds it. There
 * the threads of the block are the turns of loops, which a C++ compiler vectorises, and threadIdx
 * is a local variable that hides the one of language.h.
 */
#ifndef EMULATOR_LOOPS_H_
#define EMULATOR_LOOPS_H_

// Its macros become parts of kernels, about which a compiler should not warn twice.
#pragma GCC system_header

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include "emulator/claims.h"
#include "emulator/language.h"
#include "emulator/rows.h"
#include "emulator/shared.h"
#include "emulator/type_traits.h"

extern "C" {
/*! \brief Memory for variables of all threads of a block, until the block's end. */
void* emulator_take_locals(size_t size);
/*! \brief Whether all of some memory may be read; false if that is not known. */
bool emulator_is_readable(const void* begin, size_t size);
}

namespace emulator {

/*! \brief Which block runs. */
struct BlockIndex {
  uint3 block;
  dim3 size, grid;
  unsigned together = 1;  // blocks, with those that follow in x: more than 1 in flat kernels alone
};

/*! \brief So many blocks may run in a row before the launch is looked after. */
const int64_t kBlocksTogether = 32;

/*!
 * \brief Blocks that follow one another in x. A call for each takes longer than a small block.
 *
 * What the rest of the emulated GPU knows of the running block is kept true at each step.
 */
struct BlockRun {
  BlockIndex index;    // of the running block
  uint3* shown;        // blockIdx
  int64_t* next;       // the number of the running block
  unsigned* together;  // how many run at once, from that one on
  int64_t end;         // the number after the last one

  /*! \brief Takes all blocks at once, if their threads lie in one row. */
  void take_all() {
    if (index.size.y * index.size.z == 1)
      *together = index.together = static_cast<unsigned>(end - *next);
  }
  /*! \brief Behind the block that was taken last. */
  void leave_all() {
    *next += index.together;
    index.block.x += index.together - 1;
    *together = index.together = 1;
  }

  /*! \brief Steps to the next block; false behind the last one. */
  bool go_on() {
    if (++*next == end) return false;
    shown->x = ++index.block.x;
    ++emulator_block_number;
    return true;
  }
};

/*! \brief Tells the second version of a kernel from those of others of its name. */
template <int kernel>
struct KernelOf {};

/*! \brief Which thread runs: the first argument of device functions that ask. */
struct Index {
  uint3 thread, block;
  dim3 size, grid;
};

/*! \brief The index for a device function; `asked` calls it, which must be ambiguous. */
template <typename Asked>
__forceinline__ const Index& handed(const Asked& asked, const Index& index) {
  static_assert(!is_called<const Asked&>::value, "another function of that name is called");
  return (void)asked, index;
}

/*! \brief Says that variables of a type do not stay where they are. */
template <typename T>
struct Moved {};

template <typename T, typename... Types>
constexpr bool is_one_of = (... || std::is_same<T, Types>::value);

/*! \brief Whether variables of a type may lie in an array, and with Moved be copied to and fro. */
template <typename T>
struct is_storable : std::is_trivially_copyable<T> {};
// No place for an address, to which nothing may lie any more.
template <typename T>
struct is_storable<Moved<T>>
    : std::integral_constant<
          bool, std::is_trivially_copyable<T>::value &&
                    (is_number<T> || sizeof(T) < sizeof(void*) || alignof(T) < alignof(void*) ||
                     is_one_of<T, float2, float4, double2, double4, int2, int4, uint2, uint4>)> {};

// Of a variable: nothing is lost if it ends before what its address would lead to, and it does
// nothing when it ends.
#define EMULATOR_KEEPS_NO_ADDRESS(name)                                                         \
  static_assert(                                                                                \
      ::emulator::is_storable<::emulator::Moved<::emulator::remove_cv_t<                        \
          ::emulator::remove_all_extents_t<::emulator::remove_reference_t<decltype(name)>>>>>:: \
          value,                                                                                \
      "`" #name "` may keep an address");

/*! \brief Returned by a function that runs a block; in vain if a type cannot be kept as bytes. */
template <typename... Types>
struct Looped {
  static constexpr bool value = (... && is_storable<Types>::value);
  static constexpr bool is_flat = false;
};

/*!
 * \brief Returned by a function that runs blocks side by side as if they were one wide block.
 *
 * It knows its threads by `blockIdx.x * blockDim.x + threadIdx.x` alone: these have types of which
 * nothing else can be made, so that the compiler refuses a function that asks for more.
 */
struct Flat {
  static constexpr bool value = true, is_flat = true;
};

struct FlatBlockX {
  unsigned value;
};
struct FlatSizeX {
  unsigned value;
};
struct FlatThreadX {
  unsigned value;
};
struct FlatStart {
  unsigned value;
};
struct FlatBlock {
  FlatBlockX x;
};
struct FlatSize {
  FlatSizeX x;
};
struct FlatThread {
  FlatThreadX x;
};
struct FlatGrid {};

__forceinline__ FlatStart operator*(FlatBlockX block, FlatSizeX size) {
  return {block.value * size.value};
}
__forceinline__ FlatStart operator*(FlatSizeX size, FlatBlockX block) { return block * size; }
__forceinline__ unsigned operator+(FlatStart start, FlatThreadX thread) {
  return start.value + thread.value;
}
__forceinline__ unsigned operator+(FlatThreadX thread, FlatStart start) { return start + thread; }

/*! \brief threadIdx in a function that runs blocks, by the kind of its blockIdx. */
__forceinline__ uint3 thread_of(const uint3&, unsigned x, unsigned y, unsigned z) {
  return {x, y, z};
}
__forceinline__ FlatThread thread_of(FlatBlock, unsigned x, unsigned, unsigned) { return {{x}}; }
/*! \brief What device functions get: nothing, where blocks run side by side. Not made by a
 * function, whose references would keep the indices in memory. */
struct FlatIndex {
  FlatThread thread;
  FlatBlock block;
  FlatSize size;
  FlatGrid grid;
};
template <typename Thread>
using IndexOf =
    const conditional_t<std::is_same<Thread, const FlatThread>::value, FlatIndex, Index>;

inline size_t threads_of(const BlockIndex& index) {
  return static_cast<size_t>(index.size.x) * index.size.y * index.size.z;
}

/*! \brief A variable of which each thread of the block has its own. */
template <typename T>
T* take_locals(const BlockIndex& index) {
  return static_cast<T*>(emulator_take_locals(threads_of(index) * sizeof(T)));
}

/*! \brief A flag for each thread of the block, none of them set. */
inline bool* take_flags(const BlockIndex& index) {
  bool* const flags = take_locals<bool>(index);
  return static_cast<bool*>(std::memset(flags, 0, threads_of(index)));
}

inline bool are_all_set(const bool* flags, const BlockIndex& index) {
  return std::memchr(flags, 0, threads_of(index)) == nullptr;
}

/*! \brief Where a variable lies, to begin it there. */
template <typename T>
void* place_of(const T& variable) {
  return const_cast<void*>(static_cast<const void*>(std::addressof(variable)));
}

template <typename T>
bool is_readable(const T* begin, unsigned count) {
  return emulator_is_readable(begin, count * sizeof(T));
}

}  // namespace emulator

#define EMULATOR_INLINE __attribute__((always_inline))
#define EMULATOR_UNREACHABLE_IF(condition) \
  if (condition) __builtin_unreachable()

// A compiler that knows CUDA's limits knows that indices do not overflow.
#define EMULATOR_BLOCK                                                                            \
  constexpr unsigned emulator_most = 1024;                                                        \
  const uint3 blockIdx = emulator_block.block;                                                    \
  const dim3 blockDim = emulator_block.size, gridDim = emulator_block.grid;                       \
  const unsigned emulator_width = blockDim.x;                                                     \
  (void)emulator_width;                                                                           \
  EMULATOR_UNREACHABLE_IF(blockDim.x - 1 > 1023 || blockDim.y - 1 > 1023 || blockDim.z - 1 > 63); \
  EMULATOR_UNREACHABLE_IF(blockIdx.x > 0x7fffffff || blockIdx.y > 65535 || blockIdx.z > 65535)

// The same where blocks are taken together, of 1024 threads at most each.
#define EMULATOR_FLAT_BLOCK                                                        \
  constexpr unsigned emulator_most = 1024 * ::emulator::kBlocksTogether;           \
  const ::emulator::FlatBlock blockIdx = {{emulator_block.block.x}};               \
  const ::emulator::FlatSize blockDim = {{emulator_block.size.x}};                 \
  const ::emulator::FlatGrid gridDim = {};                                         \
  const unsigned emulator_width = emulator_block.size.x * emulator_block.together; \
  EMULATOR_UNREACHABLE_IF(emulator_width - 1 > emulator_most - 1 || blockIdx.x.value > 0x7fffffff)

#define EMULATOR_ROWS                                                             \
  for (unsigned emulator_z = 0; emulator_z < emulator_block.size.z; ++emulator_z) \
    for (unsigned emulator_y = 0; emulator_y < emulator_block.size.y; ++emulator_y)

// The thread's number is emulator_row + threadIdx.x.
#define EMULATOR_ROW                                                           \
  const size_t emulator_row =                                                  \
      (static_cast<size_t>(emulator_z) * emulator_block.size.y + emulator_y) * \
      emulator_block.size.x;                                                   \
  (void)emulator_row

#define EMULATOR_THREAD(X)                                                                  \
  EMULATOR_UNREACHABLE_IF((X) >= emulator_most);                                            \
  const auto threadIdx = ::emulator::thread_of(blockIdx, X, emulator_y, emulator_z);        \
  ::emulator::IndexOf<decltype(threadIdx)> emulator_index = {threadIdx, blockIdx, blockDim, \
                                                             gridDim};                      \
  (void)threadIdx, (void)emulator_index

// In a device function.
#define EMULATOR_INDEX                                                            \
  const uint3 threadIdx = emulator_index.thread, blockIdx = emulator_index.block; \
  const dim3 blockDim = emulator_index.size, gridDim = emulator_index.grid

#define EMULATOR_SIDE_BY_SIDE for (int emulator_t = 0; emulator_t < emulator_n; ++emulator_t)

#endif  // EMULATOR_LOOPS_H_
