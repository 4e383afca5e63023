/*!
 * \file r13_wgmma.cu
 * \brief Rung 13: Hopper's own way: bulk tensor copies and wgmma, for bfloat16 and TF32.
 *
 * Before: each warp loaded its fragments from shared memory into registers, and multiplied them
 * with mma. Now
 *
 * - a warpgroup of 128 threads multiplies at once, 64 x 256 by one instruction, and reads both
 *   operands where they lie in shared memory; the sums alone are in registers;
 * - one thread asks the copy engine for whole tiles (cp.async.bulk.tensor); it counts their bytes
 *   at a barrier, swizzles them as wgmma wants them, and writes zeros beyond the edges;
 * - the block's first warpgroup only copies, the two others only multiply: full and empty barriers
 *   are all that they share. Registers go to those who multiply (setmaxnreg);
 * - a block stays, and takes tile after tile (persistent), so that the copies of the next tile
 *   begin while this one is written. Tiles come in groups of rows, so that those of one moment
 *   share their operands in the L2 cache.
 *
 * Both operands lie along K: that is the one layout that wgmma takes of TF32. An operand that lies
 * the other way, or whose lines are no multiple of 16 bytes, is laid so by a kernel before.
 *
 * in: a, b as bfloat16, or as float with -DTF32. out: c. grid: the multiprocessors.
 * cost: 2 m n k operations. next: two blocks that share their tiles (clusters), multicast.
 */
#include <cuda.h>
#include <cuda_bf16.h>

#include "ladder.h"

namespace {

#ifdef TF32
typedef float Element;
const CUtensorMapDataType kKind = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
#else
typedef __nv_bfloat16 Element;
const CUtensorMapDataType kKind = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
#endif

#ifndef STAGES
#define STAGES 4
#endif
#ifndef GROUP
#define GROUP 16
#endif

const int kRows = 128, kColumns = 256, kLine = 128;  // of a tile; bytes of a line of a slice
const int kDepth = kLine / static_cast<int>(sizeof(Element));
const int kStages = STAGES, kGroup = GROUP;  // slices in flight; rows of tiles
const int kThreads = 384, kWarpgroup = 128;
const int kBytesA = kRows * kLine, kBytesB = kColumns * kLine, kBytes = kBytesA + kBytesB;
const int kShared = kStages * kBytes + 1024;  // a tile begins at a multiple of 1,024

typedef unsigned long long Barrier;

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

/*! \brief Starts the copy of a tile whose first element is (k, line). */
__device__ inline void copy(void* to, const CUtensorMap* from, int k, int line, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(address(to)),
      "l"(from), "r"(k), "r"(line), "r"(address(barrier))
      : "memory");
}

/*! \brief How wgmma is told of a tile: lines of 128 bytes, swizzled, groups of eight lines. */
__device__ inline uint64_t descriptor(const void* shared) {
  const uint64_t at = (address(shared) & 0x3ffff) >> 4;
  return at | (uint64_t{1} << 16) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 62);
}

/*! \brief sum += a b, 64 x 256, 32 bytes of K. */
__device__ inline void multiply(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile(
#ifdef TF32
      "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {"
#else
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
#endif
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127}, "
#ifdef TF32
      "%128, %129, 1, 1, 1;"
#else
      "%128, %129, 1, 1, 1, 0, 0;"
#endif
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]),
        "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]),
        "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
        "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]),
        "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]),
        "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]),
        "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),
        "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]),
        "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b));
}

/*! \brief The tile that comes number-th: groups of rows, column by column. */
struct Order {
  int rows, columns;  // of tiles

  __device__ void find(int number, int* row, int* column) const {
    const int group = number / (kGroup * columns), in_group = number % (kGroup * columns);
    const int left = rows - group * kGroup, height = left < kGroup ? left : kGroup;
    *row = group * kGroup + in_group % height;
    *column = in_group / height;
  }
};

__global__ __launch_bounds__(kThreads,
                             1) void wgmma_kernel(const __grid_constant__ CUtensorMap of_a,
                                                  const __grid_constant__ CUtensorMap of_b,
                                                  float* c, int m, int n, int k) {
  extern __shared__ unsigned char raw[];
  __shared__ Barrier full[kStages], empty[kStages];
  unsigned char* const tiles = raw + (1024 - address(raw) % 1024) % 1024;
  const int warpgroup = threadIdx.x / kWarpgroup, thread = threadIdx.x % kWarpgroup;
  const Order order = {(m + kRows - 1) / kRows, (n + kColumns - 1) / kColumns};
  const int count = order.rows * order.columns, slices = (k + kDepth - 1) / kDepth;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      prepare(&full[stage], 1);
      prepare(&empty[stage], 8);  // a lane of each warp that multiplies
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int stage = 0, row, column;
  unsigned phase = 0;
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (thread == 0)
      for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
        order.find(tile, &row, &column);
        for (int slice = 0; slice < slices; ++slice) {
          wait(&empty[stage], phase ^ 1);  // the first time at once
          unsigned char* const to = tiles + stage * kBytes;
          expect(&full[stage], kBytes);
          copy(to, &of_a, slice * kDepth, row * kRows, &full[stage]);
          copy(to + kBytesA, &of_b, slice * kDepth, column * kColumns, &full[stage]);
          if (++stage == kStages) stage = 0, phase ^= 1;
        }
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int part = warpgroup - 1, lane = thread % 32;
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
      order.find(tile, &row, &column);
      float sum[128];
      for (int i = 0; i < 128; ++i) sum[i] = 0;
      for (int slice = 0; slice < slices; ++slice) {
        wait(&full[stage], phase);
        const uint64_t a = descriptor(tiles + stage * kBytes + part * 64 * kLine);
        const uint64_t b = descriptor(tiles + stage * kBytes + kBytesA);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int step = 0; step < kLine / 32; ++step)
          multiply(sum, a + step * (32 >> 4), b + step * (32 >> 4));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (lane == 0) arrive(&empty[stage]);
        if (++stage == kStages) stage = 0, phase ^= 1;
      }
      const int first = row * kRows + part * 64 + thread / 32 * 16 + lane / 4;
      for (int i = 0; i < 128; i += 2) {
        const int at_row = first + i / 2 % 2 * 8;
        const int at = column * kColumns + i / 4 * 8 + lane % 4 * 2;
        if (at_row >= m || at >= n) continue;
        float* const to = c + static_cast<int64_t>(at_row) * n + at;
        if (n % 2 == 0) {
          *reinterpret_cast<float2*>(to) = make_float2(sum[i], sum[i + 1]);
        } else {
          to[0] = sum[i];
          if (at + 1 < n) to[1] = sum[i + 1];
        }
      }
    }
  }
}

/*! \brief to[line][k] = from, which lies with these steps; through a tile in shared memory. */
__global__ void lay_kernel(const Element* from, int64_t line_step, int64_t k_step, int lines,
                           int depth, Element* to, int64_t lead) {
  __shared__ Element tile[32][33];
  const int line = blockIdx.y * 32, k = blockIdx.x * 32, x = threadIdx.x;
  const bool along = k_step == 1;
  for (int y = threadIdx.y; y < 32; y += blockDim.y) {
    const int at_line = line + (along ? y : x), at_k = k + (along ? x : y);
    if (at_line < lines && at_k < depth)
      tile[along ? y : x][along ? x : y] = from[at_line * line_step + at_k * k_step];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < 32; y += blockDim.y)
    if (line + y < lines && k + x < depth) to[(line + y) * lead + k + x] = tile[y][x];
}

/*! \brief An operand, and room for it where it is laid along K; kept for the next call. */
struct Operand {
  Element* room = nullptr;
  int64_t size = 0;
  CUtensorMap map;

  cudaError_t prepare(const void* data, int lines, int depth, bool along_k, int box,
                      cudaStream_t on) {
    const Element* x = static_cast<const Element*>(data);
    const int pack = 16 / static_cast<int>(sizeof(Element));
    int64_t lead = depth;
    if (!along_k || depth % pack != 0 || reinterpret_cast<uintptr_t>(data) % 16 != 0) {
      lead = (depth + pack - 1) / pack * pack;
      if (lead * lines > size) {
        cudaFree(room);
        size = lead * lines;
        const cudaError_t error = cudaMalloc(&room, size * sizeof(Element));
        if (error != cudaSuccess) return error;
      }
      const dim3 grid((depth + 31) / 32, (lines + 31) / 32), block(32, 8);
      lay_kernel<<<grid, block, 0, on>>>(x, along_k ? depth : 1, along_k ? 1 : lines, lines, depth,
                                         room, lead);
      x = room;
    }
    return encode(x, lines, depth, lead, box);
  }

  cudaError_t encode(const Element* x, int lines, int depth, int64_t lead, int box) {
    static decltype(&cuTensorMapEncodeTiled) function = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (!function) {
      const cudaError_t error = cudaGetDriverEntryPointByVersion(
          "cuTensorMapEncodeTiled", reinterpret_cast<void**>(&function), 12000, cudaEnableDefault,
          &found);
      if (error != cudaSuccess) return error;
    }
    const cuuint64_t sizes[] = {static_cast<cuuint64_t>(depth), static_cast<cuuint64_t>(lines)};
    const cuuint64_t strides[] = {lead * sizeof(Element)};
    const cuuint32_t boxes[] = {kDepth, static_cast<cuuint32_t>(box)}, steps[] = {1, 1};
    const CUresult result =
        function(&map, kKind, 2, const_cast<Element*>(x), sizes, strides, boxes, steps,
                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
  }
};

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  static Operand of_a, of_b;
  static int processors = 0;
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  cudaError_t error = of_a.prepare(a, m, k, !transposes_a, kRows, on);
  if (error == cudaSuccess) error = of_b.prepare(b, n, k, transposes_b, kColumns, on);
  if (error == cudaSuccess && processors == 0) {
    error =
        cudaFuncSetAttribute(wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
    if (error == cudaSuccess)
      error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  }
  if (error != cudaSuccess) return error;
  const int count = ladder::tiles(m, kRows) * ladder::tiles(n, kColumns);
  const int blocks = count < processors ? count : processors;
  wgmma_kernel<<<blocks, kThreads, kShared, on>>>(of_a.map, of_b.map, c, m, n, k);
  return cudaGetLastError();
}
