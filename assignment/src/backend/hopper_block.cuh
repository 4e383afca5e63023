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

/*! \brief How wgmma is told of a tile: lines of 128 bytes, swizzled, groups of eight lines.
 * \param lead bytes from block to block, where lines are blocks of the other axis than K. */
__device__ inline uint64_t descriptor(const void* shared, unsigned lead = 16) {
  const uint64_t at = (address(shared) & 0x3ffff) >> 4;
  return at | (uint64_t{lead >> 4} << 16) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 62);
}

/*! \brief multiply(sum, a, b): sum += a b, 64 x columns, 8 of K. hopper.py writes each. */
template <int columns>
struct Wgmma;

/*!
 * \brief Multiplies a slice whose operands have K side by side.
 *
 * Work has `rows` of a tile, and the `group` of matrices of a that a slice has, each with b some
 * bytes `below`. Of 128 rows each warpgroup has a half; of 64, each has columns of its own.
 */
template <class Work, class Instruction>
__device__ inline void multiply_lines(float (&sum)[Work::columns / 2], const unsigned char* own,
                                      int half) {
  const int at_a = Work::rows == 128 ? half * 64 * kLine : 0;
  const int at_b =
      (Work::group * Work::rows + (Work::rows == 128 ? 0 : half * Work::columns)) * kLine;
#pragma unroll
  for (int tap = 0; tap < Work::group; ++tap) {
    const uint64_t a = descriptor(own + at_a + tap * Work::rows * kLine);
    const uint64_t b = descriptor(own + at_b + tap * Work::below);
#pragma unroll
    for (int step = 0; step < kLine / 32; ++step)
      Instruction::multiply(sum, a + step * (32 >> 4), b + step * (32 >> 4));
  }
}

/*! \brief A unit of work: where its tile begins, and its slices of K. */
struct Unit {
  int row, tile, part, begin, end, phase;
};

/*!
 * \brief The kernel. grid: as many blocks as there are multiprocessors, or units.
 *
 * Work says what is multiplied: `columns` of a warpgroup's part of a tile, the `bytes` of a slice
 * and the `room` that it takes, `stages` of slices, whether it has lines that nobody copies,
 * whether operands come by way of registers; unit(), copy(), multiply() and store().
 */
template <class Work>
__global__ __launch_bounds__(kThreads,
                             1) void convolution_kernel(const __grid_constant__ CUtensorMap of_a,
                                                        const __grid_constant__ CUtensorMap of_b,
                                                        const __grid_constant__ Work work) {
  extern __shared__ unsigned char raw[];
  __shared__ Barrier full[Work::stages], empty[Work::stages];
  unsigned char* const slices = raw + (1024 - address(raw) % 1024) % 1024;
  float* const trays = reinterpret_cast<float*>(slices + Work::stages * Work::room);
  const int warpgroup = threadIdx.x / kWarpgroup, thread = threadIdx.x % kWarpgroup;
  if constexpr (Work::pads) {  // such lines are zeros
    for (int i = threadIdx.x * 16; i < Work::stages * Work::room; i += kThreads * 16)
      *reinterpret_cast<uint4*>(slices + i) = make_uint4(0, 0, 0, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Work::stages; ++stage) {
      prepare(&full[stage], 1);
      prepare(&empty[stage], 8);  // a lane of each warp that multiplies
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  wait_for_predecessor();
  int stage = 0;
  unsigned phase = 0;
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (thread == 0)
      for (int number = blockIdx.x; number < work.units; number += gridDim.x) {
        const Unit unit = work.unit(number);
        for (int slice = unit.begin; slice < unit.end; ++slice) {
          wait(&empty[stage], phase ^ 1);  // the first time at once
          expect(&full[stage], Work::bytes);
          work.copy(unit, slice, slices + stage * Work::room, &of_a, &of_b, &full[stage]);
          if (++stage == Work::stages) stage = 0, phase ^= 1;
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
      [[maybe_unused]] int before = -1;
      for (int slice = unit.begin; slice < unit.end; ++slice) {
        wait(&full[stage], phase);
        const unsigned char* const own = slices + stage * Work::room;
        if constexpr (Work::in_registers) {
          Work::multiply(sum, own, half);
          __syncwarp();
          if (lane == 0) arrive(&empty[stage]);
        } else {
          asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
          Work::multiply(sum, own, half);
          asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
          // While this slice is multiplied, the one before is done.
          asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
          if (before >= 0 && lane == 0) arrive(&empty[before]);
          before = stage;
        }
        if (++stage == Work::stages) stage = 0, phase ^= 1;
      }
      if constexpr (!Work::in_registers) {
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < Work::columns / 2; ++i) asm volatile("" : "+f"(sum[i])::"memory");
        if (before >= 0 && lane == 0) arrive(&empty[before]);
      }
      work.store(unit, sum, half, thread, trays + (half * 4 + thread / 32) * kTray);
    }
  }
}

/*! \brief What a lane has of a warp's 16 lines: element i of its sums is in this line and column.
 */
__device__ inline int row_of(int lane, int i) { return lane / 4 + i / 2 % 2 * 8; }
__device__ inline int column_of(int lane, int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

/*! \brief Slices of this size that there is room for. */
constexpr int stages_of(int room) { return kShared / room < 8 ? kShared / room : 8; }

}  // namespace hopper
}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_HOPPER_BLOCK_CUH_
