/*!
 * \file cooperative_groups.h
 * \brief Cooperative groups: threads of a block that work together, as objects.
 *
 * A block, tiles of up to 32 threads of it, and the threads of a warp that are in one branch. A
 * group of a warp is a mask of lanes; rank r of it is the r-th lane of the mask. A grid can be
 * asked for its size, but cannot wait: its blocks do not run side by side here.
 */
#ifndef COOPERATIVE_GROUPS_H_
#define COOPERATIVE_GROUPS_H_

// What helper headers look for.
#define _COOPERATIVE_GROUPS_H_

#include "cuda_runtime.h"

#define _CG_VERSION_MAJOR 1
#define _CG_HAS_REDUCE_

#define COOPERATIVE_GROUPS_NO_SYNC                                                         \
  EMULATOR_REFUSED(                                                                        \
      "the emulated GPU has no barrier of a whole grid (grid_group::sync); hint: end the " \
      "kernel there and launch a second one, or DEVICE=cuda")

namespace cooperative_groups {

namespace details {

/*! \brief The number of the thread in its block. */
inline unsigned thread_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }

/*! \brief A bit for each of `size` lanes from the lane `first` on. */
inline unsigned lanes(unsigned first, unsigned size) {
  return static_cast<unsigned>(((1ull << size) - 1) << first);
}

constexpr bool is_tile_size(unsigned size) {
  return size >= 1 && size <= 32 && (size & (size - 1)) == 0;
}

}  // namespace details

/*! \brief Any group of threads of a block. */
class thread_group {
 public:
  void sync() const {
    if (is_block_) return __syncthreads();
    __syncwarp(mask_);
  }
  unsigned long long thread_rank() const { return rank_; }
  unsigned long long size() const { return size_; }
  unsigned long long num_threads() const { return size_; }
  bool is_valid() const { return true; }

 protected:
  // A block's.
  thread_group()
      : is_block_(true),
        mask_(0),
        rank_(details::thread_in_block()),
        size_(details::block_size()) {}
  // A warp's.
  thread_group(unsigned mask, unsigned rank, unsigned size)
      : is_block_(false), mask_(mask), rank_(rank), size_(size) {}

  bool is_block_;
  unsigned mask_, rank_, size_;

  friend thread_group tiled_partition(const thread_group& parent, unsigned size);
};

/*! \brief All threads of the block. */
class thread_block : public thread_group {
 public:
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return details::thread_in_block(); }
  static unsigned size() { return details::block_size(); }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static dim3 dim_threads() { return group_dim(); }

 private:
  thread_block() {}
  friend thread_block this_thread_block();
};

inline thread_block this_thread_block() { return thread_block(); }

/*! \brief The threads of all blocks. */
class grid_group {
 public:
  static unsigned long long block_rank() {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x +
           blockIdx.x;
  }
  static unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  static unsigned long long thread_rank() {
    return block_rank() * details::block_size() + details::thread_in_block();
  }
  static unsigned long long num_threads() { return num_blocks() * details::block_size(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 dim_blocks() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  static dim3 group_dim() { return dim_blocks(); }
  /*! \brief Whether the grid can wait: never here. */
  static bool is_valid() { return false; }

  // Never defined; the call is refused where it stands.
  COOPERATIVE_GROUPS_NO_SYNC void sync() const;
};

COOPERATIVE_GROUPS_NO_SYNC void sync(const grid_group& grid);

inline grid_group this_grid() { return grid_group(); }

/*! \brief Threads of one warp. A source that is not in the group leaves a thread its value. */
class warp_group : public thread_group {
 public:
  unsigned thread_rank() const { return rank_; }
  unsigned size() const { return size_; }
  unsigned num_threads() const { return size_; }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

  template <typename T>
  T shfl(T value, int source) const {
    return from(value, static_cast<unsigned>(source) < size_ ? source : rank_);
  }
  template <typename T>
  T shfl_up(T value, unsigned delta) const {
    return from(value, delta <= rank_ ? rank_ - delta : rank_);
  }
  template <typename T>
  T shfl_down(T value, unsigned delta) const {
    return from(value, delta < size_ - rank_ ? rank_ + delta : rank_);
  }
  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }
  /*! \brief Bit r is what rank r says. */
  unsigned ballot(int predicate) const { return ranks(__ballot_sync(mask_, predicate)); }
  template <typename T>
  unsigned match_any(T value) const {
    return ranks(__match_any_sync(mask_, value));
  }
  template <typename T>
  unsigned match_all(T value, int& all_the_same) const {
    return ranks(__match_all_sync(mask_, value, &all_the_same));
  }

  /*! \brief Here only: values[r] becomes the value of rank r. */
  template <typename T>
  void gather(T value, T* values) const {
    static_assert(sizeof(T) <= 32, "groups bring together values of 32 bytes at most");
    const unsigned words = (sizeof(T) + 7) / 8;
    uint64_t given[words] = {}, lanes[words][warpSize];
    std::memcpy(given, &value, sizeof value);
    for (unsigned w = 0; w < words; ++w) emulator_gather(mask_, given[w], lanes[w]);
    for (unsigned r = 0; r < size_; ++r) {
      for (unsigned w = 0; w < words; ++w) given[w] = lanes[w][lane(r)];
      std::memcpy(static_cast<void*>(&values[r]), given, sizeof value);
    }
  }
  /*! \brief Here only: the lanes of the warp that are in the group. */
  unsigned mask() const { return mask_; }

 protected:
  warp_group(unsigned mask, unsigned rank, unsigned size, unsigned meta_rank, unsigned meta_size)
      : thread_group(mask, rank, size), meta_rank_(meta_rank), meta_size_(meta_size) {}

  template <typename T>
  T from(T value, unsigned rank) const {
    return __shfl_sync(mask_, value, lane(rank));
  }
  // The lane of a rank: the place of the mask's bit number `rank`.
  int lane(unsigned rank) const {
    unsigned left = mask_;
    for (; rank > 0; --rank) left &= left - 1;
    return __ffs(static_cast<int>(left)) - 1;
  }
  // A set of lanes as a set of ranks.
  unsigned ranks(unsigned set) const {
    unsigned result = 0, left = mask_;
    for (unsigned rank = 0; left != 0; ++rank, left &= left - 1)
      if (set & left & -left) result |= 1u << rank;
    return result;
  }

  unsigned meta_rank_, meta_size_;
};

/*! \brief The threads of a warp that are in the same branch. */
class coalesced_group : public warp_group {
 public:
  /*! \brief Here only; kernels call coalesced_threads or a partition. */
  explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : warp_group(mask, __popc(mask & ((1u << emulator_lane()) - 1)), __popc(mask), meta_rank,
                   meta_size) {}
};

// Inlined, and with a number of its own, so that each use is a place of its own.
__attribute__((always_inline)) inline coalesced_group coalesced_threads(int place) {
  return coalesced_group(emulator_active(place));
}
#define coalesced_threads() coalesced_threads(__COUNTER__)

namespace details {

/*! \brief What tiles of the size `Size` have, whatever they are part of. */
template <unsigned Size>
class tile : public warp_group {
  static_assert(is_tile_size(Size),
                "the emulated GPU has tiles of 1, 2, 4, 8, 16 or 32 threads; hint: DEVICE=cuda");

 public:
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }

  template <typename T>
  T shfl(T value, int source) const {
    return warp_group::shfl(value, source & (static_cast<int>(Size) - 1));
  }
  template <typename T>
  T shfl_xor(T value, unsigned bits) const {
    return warp_group::shfl(value, static_cast<int>(rank_ ^ bits));
  }

 protected:
  tile(unsigned meta_rank, unsigned meta_size)
      : warp_group(lanes(thread_in_block() % 32 & ~(Size - 1), Size), thread_in_block() % Size,
                   Size, meta_rank, meta_size) {}
};

}  // namespace details

/*! \brief `Size` threads that follow each other in a `Parent`. */
template <unsigned Size, typename Parent = void>
class thread_block_tile : public details::tile<Size> {
 public:
  // A tile of a known parent is one of any, too.
  template <typename Other>
  thread_block_tile(const thread_block_tile<Size, Other>& other)
      : details::tile<Size>(other.meta_group_rank(), other.meta_group_size()) {}

 private:
  explicit thread_block_tile(const Parent& parent)
      : details::tile<Size>(static_cast<unsigned>(parent.thread_rank()) / Size,
                            (static_cast<unsigned>(parent.size()) + Size - 1) / Size) {}
  template <unsigned N, typename P>
  friend thread_block_tile<N, P> tiled_partition(const P& parent);
};

template <unsigned Size>
class thread_block_tile<Size, void> : public details::tile<Size> {
 public:
  template <typename Other>
  thread_block_tile(const thread_block_tile<Size, Other>& other)
      : details::tile<Size>(other.meta_group_rank(), other.meta_group_size()) {}
};

/*! \brief Cuts a block or a tile into tiles; the size is known to the compiler. */
template <unsigned Size, typename Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
  return thread_block_tile<Size, Parent>(parent);
}

/*! \brief The same for a size that is known at run time: 1, 2, 4, 8, 16 or 32. */
inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  assert(details::is_tile_size(size));
  unsigned rank = parent.rank_ % size, left = parent.size_ - (parent.rank_ - rank);
  unsigned count = left < size ? left : size;
  unsigned members = parent.is_block_ ? details::lanes(emulator_lane() - rank, count) : 0;
  unsigned rest = parent.is_block_ ? 0 : parent.mask_;
  for (unsigned r = 0; rest != 0; ++r, rest &= rest - 1)
    if (r / size == parent.rank_ / size) members |= rest & -rest;
  return thread_group(members, rank, count);
}

/*! \brief The threads of a group that have the same value. */
template <typename T>
coalesced_group labeled_partition(const warp_group& group, T label) {
  return coalesced_group(__match_any_sync(group.mask(), label));
}

/*! \brief The threads of a group for which the predicate is the same. */
inline coalesced_group binary_partition(const warp_group& group, bool predicate) {
  unsigned yes = __ballot_sync(group.mask(), predicate);
  return coalesced_group(predicate ? yes : group.mask() & ~yes, predicate, 2);
}

template <typename Group>
void sync(const Group& group) {
  group.sync();
}
template <typename Group>
auto thread_rank(const Group& group) -> decltype(group.thread_rank()) {
  return group.thread_rank();
}
template <typename Group>
auto group_size(const Group& group) -> decltype(group.size()) {
  return group.size();
}

}  // namespace cooperative_groups

#endif  // COOPERATIVE_GROUPS_H_
