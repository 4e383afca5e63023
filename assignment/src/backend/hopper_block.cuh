/*!
 * \file hopper_block.cuh
 * \brief A block of Hopper's convolutions: its barriers, the copy engine, wgmma, and its loop.
 *
 * The block is that of src/gemm/r13_wgmma.cu: a warpgroup whose first thread copies, and two that
 * multiply. Blocks stay, and take unit after unit: a tile of the result, and a part of K.
 */
#ifndef DLSYS_BACKEND_HOPPER_BLOCK_CUH_
#define DLSYS_BACKEND_HOPPER_BLOCK_CUH_

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "launch.cuh"

namespace dlsys {
namespace backend {
namespace hopper {

typedef unsigned long long Barrier;

const int kWarpgroup = 128, kThreads = 3 * kWarpgroup;
const int kDepth = 32, kLine = kDepth * 4;  // of a slice: floats and bytes of a line
const int kShared = 207 * 1024;             // bytes of a block, for slices in flight
const int kLead = 36, kTray = 16 * kLead;   // of 16 lines of 32 sums that a warp writes

__device__ inline unsigned address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

__device__ inline void prepare(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}

__device__ inline void expect(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)),
               "r"(bytes)
               : "memory");
}

__device__ inline void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

/*! \brief Waits for the end of a barrier's phase. */
__device__ inline void wait(Barrier* barrier, unsigned phase) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(address(barrier)), "r"(phase)
        : "memory");
}

/*! \brief Starts the copy of a box of three axes. */
__device__ inline void copy(void* to, const CUtensorMap* from, int x, int y, int z,
                            Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(address(to)),
      "l"(from), "r"(x), "r"(y), "r"(z), "r"(address(barrier))
      : "memory");
}

/*! \brief The same of four. */
__device__ inline void copy(void* to, const CUtensorMap* from, int x, int y, int z, int u,
                            Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(address(to)),
      "l"(from), "r"(x), "r"(y), "r"(z), "r"(u), "r"(address(barrier))
      : "memory");
}

/*! \brief The same of five. */
__device__ inline void copy(void* to, const CUtensorMap* from, int x, int y, int z, int u, int v,
                            Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(address(to)),
      "l"(from), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(address(barrier))
      : "memory");
}

/*! \brief Starts the copy of a box of images, which encode_images has told of. */
template <bool are_images_inner>
__device__ inline void copy_images(void* to, const CUtensorMap* from, int channel, int column,
                                   int row, int image, Barrier* barrier) {
  if (are_images_inner)
    copy(to, from, channel, image, column, row, barrier);
  else
    copy(to, from, channel, column, row, image, barrier);
}

/*! \brief How wgmma is told of a tile: lines of 128 bytes, swizzled, groups of eight lines.
 * \param lead bytes from block to block, where lines are blocks of the other axis than K. */
__device__ inline uint64_t descriptor(const void* shared, unsigned lead = 16) {
  const uint64_t at = (address(shared) & 0x3ffff) >> 4;
  return at | (uint64_t{lead >> 4} << 16) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 62);
}

/*! \brief multiply(sum, a, b): sum += a b, 64 x columns, 8 of K. hopper.py writes each. */
template <int columns>
struct Wgmma;

/*! \brief Multiplies matrices whose K lies side by side. Of 128 rows each warpgroup has a half; of
 * 64, each has columns of its own. */
template <class Work, class Instruction>
__device__ inline void multiply_lines(float (&sum)[Work::columns / 2], const unsigned char* of_a,
                                      const unsigned char* of_b, int half) {
  const uint64_t a = descriptor(of_a + (Work::rows == 128 ? half * 64 * kLine : 0));
  const uint64_t b = descriptor(of_b + (Work::rows == 128 ? 0 : half * Work::columns * kLine));
#pragma unroll
  for (int step = 0; step < kLine / 32; ++step)
    Instruction::multiply(sum, a + step * (32 >> 4), b + step * (32 >> 4));
}

/*! \brief A unit of work: where its tile begins, and its slices of K. */
struct Unit {
  int row, tile, part, begin, end, phase;
};

/*! \brief How many slots two rings have. */
struct Slots {
  int a, b;
};

/*! \brief What there is room for, if a slice has so many boxes of a, and one of b: whole slices,
 * and one box of b more where it leaves some of a besides those of a slice; or all taps of a square
 * of a, which then may stay. */
constexpr Slots slots_of(int room_a, int room_b, int of_slice) {
  const int most = 8, whole = kShared / (of_slice * room_a + room_b);
  if (of_slice == 1) return {whole < most ? whole : most, whole < most ? whole : most};
  const int beside_all = (kShared - of_slice * of_slice * room_a) / room_b;
  const bool has_more = kShared - (whole + 1) * room_b >= (of_slice + 2) * room_a;
  const int wanted = beside_all >= 2 ? beside_all : whole < 2 ? 2 : whole + has_more;
  const int b = wanted < most ? wanted : most, a = (kShared - b * room_b) / room_a;
  return {a < 2 * most ? a : 2 * most, b};
}

/*! \brief Slots in shared memory, one behind the other and round about, through which one operand's
 * boxes come; and the one whose turn it is. */
template <int slots, int room>
struct Ring {
  static const int bytes = slots * room;
  unsigned char* memory;
  Barrier *full, *empty;
  int slot = 0;
  unsigned phase = 0;

  __device__ Ring(unsigned char* memory, Barrier* full, Barrier* empty)
      : memory(memory), full(full), empty(empty) {}
  __device__ unsigned char* own() const { return memory + slot * room; }
  __device__ void next() {
    if (++slot == slots) slot = 0, phase ^= 1;
  }
  /*! \brief The barrier of a box of so many bytes, once there is room for it. */
  __device__ Barrier* expect(int count) const {
    wait(&empty[slot], phase ^ 1);  // the first time at once
    hopper::expect(&full[slot], count);
    return &full[slot];
  }
};

/*!
 * \brief The kernel. grid: as many blocks as there are multiprocessors, or units.
 *
 * Work says what is multiplied: `columns` of a warpgroup's part of a tile; the boxes of a,
 * `of_slice`, and the one of b that a slice of K has, their bytes, room and slots; whether they
 * have lines that nobody copies, whether operands come by way of registers; whether it `keeps` the
 * boxes of a, since all units read the same, and each has a slot; unit(), copy_a(), copy_b(),
 * multiply() and store().
 */
template <class Work>
__global__ __launch_bounds__(kThreads,
                             1) void convolution_kernel(const __grid_constant__ CUtensorMap of_a,
                                                        const __grid_constant__ CUtensorMap of_b,
                                                        const __grid_constant__ Work work) {
  extern __shared__ unsigned char raw[];
  __shared__ Barrier full_a[Work::slots_a], empty_a[Work::slots_a];
  __shared__ Barrier full_b[Work::slots_b], empty_b[Work::slots_b];
  unsigned char* const slices = raw + (1024 - address(raw) % 1024) % 1024;
  Ring<Work::slots_a, Work::room_a> a(slices, full_a, empty_a);
  Ring<Work::slots_b, Work::room_b> b(slices + a.bytes, full_b, empty_b);
  float* const trays = reinterpret_cast<float*>(slices + a.bytes + b.bytes);
  const int warpgroup = threadIdx.x / kWarpgroup, thread = threadIdx.x % kWarpgroup;
  if constexpr (Work::pads) {  // such lines are zeros
    for (int i = threadIdx.x * 16; i < a.bytes + b.bytes; i += kThreads * 16)
      *reinterpret_cast<uint4*>(slices + i) = make_uint4(0, 0, 0, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  if (threadIdx.x == 0) {
    const auto prepare_both = [](Barrier* full, Barrier* empty, int count) {
      for (int i = 0; i < count; ++i) {
        prepare(&full[i], 1);
        prepare(&empty[i], 8);  // a lane of each warp that multiplies
      }
    };
    prepare_both(full_a, empty_a, Work::slots_a);
    prepare_both(full_b, empty_b, Work::slots_b);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  wait_for_predecessor();
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (thread == 0)
      for (int number = blockIdx.x; number < work.units; number += gridDim.x) {
        const Unit unit = work.unit(number);
        const bool has_a = work.keeps && number != static_cast<int>(blockIdx.x);
        for (int slice = unit.begin; slice < unit.end; ++slice) {
          work.copy_b(unit, slice, b.own(), &of_b, b.expect(Work::bytes_b));
          b.next();
          for (int i = 0; !has_a && i < Work::of_slice; ++i, a.next())
            work.copy_a(unit, slice, i, a.own(), &of_a, a.expect(Work::bytes_a));
        }
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int half = warpgroup - 1, lane = thread % 32;
    for (int number = blockIdx.x; number < work.units; number += gridDim.x) {
      const Unit unit = work.unit(number);
      float sum[Work::columns / 2];
#pragma unroll
      for (int i = 0; i < Work::columns / 2; ++i) sum[i] = 0;
      [[maybe_unused]] int before_a = -1, before_b = -1;
      if (work.keeps) a.slot = 0, a.phase = 0;
      for (int slice = unit.begin; slice < unit.end; ++slice, b.next()) {
        wait(&full_b[b.slot], b.phase);
#pragma unroll
        for (int i = 0; i < Work::of_slice; ++i, a.next()) {
          wait(&full_a[a.slot], a.phase);
          if constexpr (Work::in_registers) {
            Work::multiply(sum, a.own(), b.own(), i, half);
            __syncwarp();
            if (lane == 0) arrive(&empty_a[a.slot]);
            if (lane == 0) arrive(&empty_b[b.slot]);
          } else {
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            Work::multiply(sum, a.own(), b.own(), i, half);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            // While these are multiplied, those before are done.
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (before_a >= 0 && lane == 0) arrive(&empty_a[before_a]);
            if (i == 0 && before_b >= 0 && lane == 0) arrive(&empty_b[before_b]);
            before_a = a.slot;
          }
        }
        before_b = b.slot;
      }
      if constexpr (!Work::in_registers) {
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < Work::columns / 2; ++i) asm volatile("" : "+f"(sum[i])::"memory");
        if (before_a >= 0 && lane == 0) arrive(&empty_a[before_a]);
        if (before_b >= 0 && lane == 0) arrive(&empty_b[before_b]);
      }
      work.store(unit, sum, half, thread, trays + (half * 4 + thread / 32) * kTray);
    }
  }
}

/*! \brief What a lane has of a warp's 16 lines: element i of its sums is in this line and column.
 */
__device__ inline int row_of(int lane, int i) { return lane / 4 + i / 2 % 2 * 8; }
__device__ inline int column_of(int lane, int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

}  // namespace hopper
}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_HOPPER_BLOCK_CUH_
