/*!
 * \file hopper.cuh
 * \brief Convolutions on Hopper's tensor cores: wgmma multiplies what the copy engine lays.
 *
 *     value     out[f, n p] = sum(w[t, f, c] * x[n, p + t, c])      over t and c
 *     data      out[c, n h] = sum(w[t, c, f] * g[n, h - t, f])      over t and f
 *     weights   out[f, t c] = sum(g[p, f, n] * x[p + t, c, n])      over p and n
 *
 * Both operands of wgmma have K, over which it adds, side by side. So kernels first lay x or g with
 * the channels last, or, for weights, with images last, 32 of them. Then an operand's slice of 32
 * of K is a box of a tensor, whatever the tap: the copy engine moves it to shared memory, takes
 * each stride-th element, and writes zeros where the box leaves the image. Nobody computes an
 * address of an element while others multiply.
 *
 * Numbers are rounded to TF32, of 11 bits; or, for float32, each is a sum high + low of two such,
 * and what is added is high high + high low + low high: of pixels in three slices for one. Lows lie
 * behind all highs.
 *
 * hopper_block.cuh has the block that multiplies, hopper_lays.cuh what lays its operands.
 */
#ifndef DLSYS_BACKEND_HOPPER_CUH_
#define DLSYS_BACKEND_HOPPER_CUH_

#include "hopper_block.cuh"
#include "hopper_lays.cuh"
#include "numbers.h"

namespace dlsys {
namespace backend {
namespace hopper {

/*! \brief Elements of the result whose taps lie alike: all windows of the value; of the data, those
 * that are equal modulo the stride. */
struct Phase {
  int first;          // number of its first tile
  int tap, taps;      // the first, and how many; groups one behind the other, from top to bottom
  int row, column;    // of its first element
  int height, width;  // elements
  int across, down;   // boxes
};

/*! \brief Where a tap reads, from where the element is; and its matrix of the weights. */
struct alignas(16) Tap {
  int column, row, weights, none;
};

/*! \brief How far one is from the next, down and across. */
struct Steps {
  int down, across;
};

inline CUtensorMapDataType kind_of(const float*) { return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32; }
inline CUtensorMapDataType kind_of(const BFloat16*) { return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16; }

/*!
 * \brief The map of a tensor, the innermost axis first, and of boxes of it.
 * \param apart elements from one to the next of the second and each further axis.
 * \param every of an axis only each so many-th is taken; all, if there is none.
 */
template <class Element>
bool encode(CUtensorMap* map, Element* at, int rank, const int64_t* extents, const int64_t* apart,
            const int* box, const int* every) {
  static decltype(&cuTensorMapEncodeTiled) function = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (!function && (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled",
                                                     reinterpret_cast<void**>(&function), 12000,
                                                     cudaEnableDefault, &found) != cudaSuccess ||
                    found != cudaDriverEntryPointSuccess || !function))
    return false;
  cuuint64_t sizes[5], strides[4];
  cuuint32_t boxes[5], of_axes[5];
  for (int i = 0; i < rank; ++i) {
    of_axes[i] = static_cast<cuuint32_t>(every ? every[i] : 1);
    sizes[i] = static_cast<cuuint64_t>(extents[i]);
    boxes[i] = static_cast<cuuint32_t>(box[i]) * of_axes[i];
    if (i + 1 < rank) strides[i] = static_cast<cuuint64_t>(apart[i]) * sizeof(Element);
  }
  return function(map, kind_of(at), static_cast<cuuint32_t>(rank), at, sizes, strides, boxes,
                  of_axes, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/*! \brief The same, where the elements of the second axis lie `lead` apart, and all others dense.
 */
template <class Element>
bool encode(CUtensorMap* map, Element* at, int rank, const int64_t* extents, int64_t lead,
            const int* box) {
  int64_t apart[4] = {lead};
  for (int i = 1; i + 1 < rank; ++i) apart[i] = apart[i - 1] * extents[i];
  return encode(map, at, rank, extents, apart, box, nullptr);
}

/*!
 * \brief The map of images, and of boxes of them.
 *
 * In a box channels are innermost; then columns, rows and images, or images, columns and rows: so
 * a box that is some rows higher has what lies some rows below side by side, too.
 * \param sizes, box channels, width, height, images. \param apart elements from pixel to pixel,
 * from row to row, from image to image. \param steps from pixel to pixel of a box.
 */
template <bool are_images_inner, class Element>
bool encode_images(CUtensorMap* map, Element* at, const int64_t (&sizes)[4], const int64_t* apart,
                   const int (&box)[4], Steps steps) {
  const int last[] = {1, steps.across, steps.down, 1};
  if (!are_images_inner) return encode(map, at, 4, sizes, apart, box, last);
  const int64_t extents[] = {sizes[0], sizes[3], sizes[1], sizes[2]};
  const int64_t distances[] = {apart[2], apart[0], apart[1]};
  const int own[] = {box[0], box[3], box[1], box[2]}, every[] = {1, 1, steps.across, steps.down};
  return encode(map, at, 4, extents, distances, own, every);
}

/*!
 * \brief The value, and the gradient of the data: a is weights, b boxes of pixels.
 *
 * Taps one below the other, `apart` rows, may be a group: a slice has all their weights, and one
 * box that is so much higher, with images innermost. So the pixels of each tap lie side by side, so
 * many rows below those of the one before.
 */
template <int rows_, int wide, int high, int deep, bool packs, int group_, int apart,
          int depth = kDepth>
struct OfPixels {
  static const bool pads = false, in_registers = false;
  static const int rows = rows_, count = wide * high * deep, columns = (count + 7) / 8 * 8;
  static const int group = group_, below = group > 1 ? apart * wide * deep * kLine : 0;
  static const int halves = rows == 128 ? 1 : 2;             // each with pixels of its own
  static const int copies = group > 1 ? 1 : halves;          // boxes of a slice
  static const int step = group > 1 ? halves * high : high;  // rows from tile to tile
  static const int tall = group > 1 ? step + (group - 1) * apart : high;  // rows of a box
  static const int of_box = group > 1 ? wide * tall * deep : columns;
  static const int of_slice = group;
  static const int bytes_a = rows * kLine, bytes_b = copies * wide * tall * deep * kLine;
  static const int room_a = bytes_a, room_b = copies * of_box * kLine;
  static const int slots_a = slots_of(room_a, room_b, group).a;
  static const int slots_b = slots_of(room_a, room_b, group).b;

  float* out;
  const Phase* phases;
  const Tap* taps;
  int64_t size;          // of the result
  int height, width;     // of an image of the result
  Steps reads, writes;   // between elements of a phase
  int lines, images;     // channels or filters of the result
  int chunks, products;  // slices of a tap; for each of them
  int matrices;          // of weights
  bool keeps;            // whether all units read the same boxes of a, for which there are slots
  int tiles, heights;    // of pixels, in all phases; of lines
  int units, parts;

  __device__ Unit unit(int number) const {
    Unit found;
    found.row = number % heights;
    found.tile = number / heights % tiles;
    found.part = number / heights / tiles;
    found.phase = 0;
    while (found.tile >= phases[found.phase].first + boxes_of(phases[found.phase])) ++found.phase;
    const Phase& in = phases[found.phase];
    const int slices = in.taps / group * chunks * products;
    found.begin = found.part * slices / parts;
    found.end = (found.part + 1) * slices / parts;
    return found;
  }

  __device__ int boxes_of(const Phase& in) const {
    const int all = in.across * in.down * ((images + deep - 1) / deep);
    return (all + copies - 1) / copies;
  }

  /*! \brief The first pixel of a box. */
  __device__ void find(const Phase& in, int box, int* image, int* row, int* column) const {
    *column = box % in.across * wide;
    *row = box / in.across % in.down * step;
    *image = box / in.across / in.down * deep;
  }

  /*! \brief Where one of a box's pixels lies from its first. */
  __device__ static int image_at(int pixel) {
    return group > 1 ? pixel % deep : pixel / (wide * high);
  }
  __device__ static int row_at(int pixel) {
    return group > 1 ? pixel / (deep * wide) : pixel / wide % high;
  }
  __device__ static int column_at(int pixel) { return (group > 1 ? pixel / deep : pixel) % wide; }

  __device__ void copy_a(const Unit& unit, int slice, int i, unsigned char* to,
                         const CUtensorMap* from, Barrier* full) const {
    const int product = slice % products, number = slice / products;
    const Tap& tap = taps[phases[unit.phase].tap + number / chunks * group + i];
    hopper::copy(to, from, number % chunks * depth, unit.row * rows,
                 tap.weights + (product == 2 ? matrices : 0), full);
  }

  __device__ void copy_b(const Unit& unit, int slice, unsigned char* to, const CUtensorMap* from,
                         Barrier* full) const {
    const Phase& in = phases[unit.phase];
    const int product = slice % products, number = slice / products;
    const int channel = number % chunks * depth, low = product == 1 ? images : 0;
    const Tap& tap = taps[in.tap + number / chunks * group];
    for (int i = 0; i < copies; ++i) {
      int image, row, column;
      find(in, (unit.tile - in.first) * copies + i, &image, &row, &column);
      copy_images<(group > 1)>(to + i * of_box * kLine, from, channel,
                               column * reads.across + tap.column, row * reads.down + tap.row,
                               image + low, full);
    }
  }

  __device__ static void multiply(float (&sum)[columns / 2], const unsigned char* a,
                                  const unsigned char* b, int i, int half) {
    multiply_lines<OfPixels, Wgmma<columns>>(sum, a, b + i * below, half);
  }

  /*! \brief Writes a warp's 16 lines, 32 pixels at a time: these lie side by side in the result,
   * where a thread's own sums are of two lines, far from each other. */
  __device__ void store(const Unit& unit, const float (&sum)[columns / 2], int half, int thread,
                        float* tray) const {
    const Phase& in = phases[unit.phase];
    const int lane = thread % 32, many = packs ? 4 : 1;
    int image, row, column;
    find(in, (unit.tile - in.first) * copies + (copies > 1 ? half : 0), &image, &row, &column);
    row += copies < halves ? half * high : 0;
    const int first = unit.row * rows + (rows == 128 ? half * 64 : 0) + thread / 32 * 16;
    float* const to = out + unit.part * size;
#pragma unroll
    for (int begin = 0; begin < columns; begin += 32) {
#pragma unroll
      for (int i = 0; i < 16 && begin / 2 + i < columns / 2; i += 2)
        *reinterpret_cast<float2*>(tray + row_of(lane, i) * kLead + column_of(lane, i)) =
            make_float2(sum[begin / 2 + i], sum[begin / 2 + i + 1]);
      __syncwarp();
      const int across = lane * many % 32, pixel = begin + across;
      const int n = image + image_at(pixel), h = row + row_at(pixel);
      const int w = column + column_at(pixel);
      if (pixel < count && n < images && h < in.height && w < in.width) {
        const int at = (in.row + h * writes.down) * width + in.column + w * writes.across;
        const int plane = height * width;
#pragma unroll
        for (int y = 0; y < 16; y += many) {
          const int down = y + lane * many / 32, line = first + down;
          if (line >= lines) break;
          const float* const from = tray + down * kLead + across;
          float* const place = to + static_cast<int64_t>(n * lines + line) * plane + at;
          if (packs)
            *reinterpret_cast<float4*>(place) = *reinterpret_cast<const float4*>(from);
          else
            *place = *from;
        }
      }
      __syncwarp();
    }
  }
};

/*!
 * \brief The gradient of the weights: a is g, b blocks of channels of x, each moved by a tap. A
 * slice of K is 32 images of one window.
 *
 * (32 windows of a row would need no kernel to lay them, but the copy engine swizzles packs of 16
 * bytes: a box that begins within one is an illegal instruction.)
 *
 * For exact products a slice has highs of a, then lows, and highs and lows of b: the copy engine,
 * which has the most to do, moves each once, where three slices would have six operands for four.
 */
template <int rows_, int block, int blocks, bool exact>
struct OfTaps {
  static const bool pads = false, in_registers = false;
  static const int rows = rows_, columns = block * blocks, boxes = rows == 128 ? 1 : 2;
  static const bool keeps = false;
  static const int both = exact ? 2 : 1, of_slice = both, of_highs = boxes * columns * kLine;
  static const int bytes_a = rows * kLine, bytes_b = both * of_highs;
  static const int room_a = bytes_a, room_b = bytes_b;
  static const int slots_a = slots_of(room_a, room_b, of_slice).a;
  static const int slots_b = slots_of(room_a, room_b, of_slice).b;

  float* out;
  const Tap* taps;
  int64_t size;         // of the result
  int lines, channels;  // of the result
  int count, of_tap;    // taps; blocks of a tap
  int width;            // windows side by side
  Steps steps;          // between them
  int chunks, windows;  // slices of a window, how many of these
  int tiles, heights;   // of columns; of lines
  int units, parts;

  __device__ Unit unit(int number) const {
    Unit found;
    found.row = number % heights;
    found.tile = number / heights % tiles;
    found.part = number / heights / tiles;
    const int slices = windows * chunks;
    found.begin = static_cast<int>(static_cast<int64_t>(found.part) * slices / parts);
    found.end = static_cast<int>(static_cast<int64_t>(found.part + 1) * slices / parts);
    found.phase = 0;
    return found;
  }

  __device__ void copy_a(const Unit& unit, int slice, int i, unsigned char* to,
                         const CUtensorMap* from, Barrier* full) const {
    hopper::copy(to, from, 0, unit.row * rows, slice + i * windows * chunks, full);
  }

  __device__ void copy_b(const Unit& unit, int slice, unsigned char* to, const CUtensorMap* from,
                         Barrier* full) const {
    const int chunk = slice % chunks, window = slice / chunks;
    const int column = window % width * steps.across, row = window / width * steps.down;
    const int all = blocks * boxes, last = count * of_tap - 1;  // nobody reads what is behind it
#pragma unroll 1
    for (int i = 0; i < all; ++i) {
      const int own = min(unit.tile * all + i, last);
      const Tap tap = taps[own / of_tap];
      for (int low = 0; low < both; ++low)
        hopper::copy(to + low * of_highs + i * block * kLine, from, 0, own % of_tap * block,
                     chunk + low * chunks, column + tap.column, row + tap.row, full);
    }
  }

  __device__ static void multiply(float (&sum)[columns / 2], const unsigned char* a,
                                  const unsigned char* b, int i, int half) {
    multiply_lines<OfTaps, Wgmma<columns>>(sum, a, b, half);
    if (exact && i == 0) multiply_lines<OfTaps, Wgmma<columns>>(sum, a, b + of_highs, half);
  }

  __device__ void store(const Unit& unit, const float (&sum)[columns / 2], int half, int thread,
                        float*) const {
    const int first = unit.row * rows + (rows == 128 ? half * 64 : 0) + thread / 32 * 16;
    const int number = unit.tile * blocks * boxes + (rows == 128 ? 0 : half * blocks);
    const bool pairs = channels % 2 == 0;
#pragma unroll
    for (int i = 0; i < columns / 2; i += 2) {
      const int line = first + row_of(thread % 32, i), column = column_of(thread % 32, i);
      const int own = number + column / block, tap = own / of_tap;
      const int channel = own % of_tap * block + column % block;
      if (line >= lines || tap >= count || channel >= channels) continue;
      float* const to = out + unit.part * size + (line * count + tap) * channels + channel;
      if (pairs) {
        *reinterpret_cast<float2*>(to) = make_float2(sum[i], sum[i + 1]);
      } else {
        to[0] = sum[i];
        if (channel + 1 < channels) to[1] = sum[i + 1];
      }
    }
  }
};

template <class Work>
bool launch(const CUtensorMap& of_a, const CUtensorMap& of_b, const Work& work, cudaStream_t on) {
  int device, processors;
  const int slots = Work::slots_a * Work::room_a + Work::slots_b * Work::room_b;
  const int bytes = slots + 8 * kTray * 4 + 1024;
  if (cudaFuncSetAttribute(convolution_kernel<Work>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           bytes) != cudaSuccess ||
      cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    return false;
  const int blocks = work.units < processors ? work.units : processors;
  launch_early(convolution_kernel<Work>, blocks, kThreads, bytes, on, of_a, of_b, work);
  return cudaGetLastError() == cudaSuccess;
}

/*! \brief What of_pixels is told, but for where the result goes; slices have `depth` of K. */
template <class Work, int depth>
Work work_of_pixels(char* const* data, const int64_t* n, int products) {
  const auto number = [n](int i) { return static_cast<int>(n[i]); };
  Work work;
  work.phases = reinterpret_cast<const Phase*>(data[3]);
  work.taps = reinterpret_cast<const Tap*>(data[4]);
  work.size = n[0] * n[4] * n[5] * n[6];
  work.height = number(5);
  work.width = number(6);
  work.reads = {number(9), number(10)};
  work.writes = {number(11), number(12)};
  work.lines = number(4);
  work.images = number(0);
  work.chunks = (number(1) + depth - 1) / depth;
  work.products = products;
  work.matrices = number(7);
  work.tiles = number(13);
  work.heights = (work.lines + Work::rows - 1) / Work::rows;
  work.parts = number(14);
  work.units = work.tiles * work.heights * work.parts;
  const bool is_one_phase = work.writes.down == 1 && work.writes.across == 1;
  work.keeps = is_one_phase && work.heights == 1 && work.parts == 1 &&
               number(7) * work.chunks * products <= Work::slots_a;
  return work;
}

inline int whole_packs(int floats) { return (floats + 3) / 4 * 4; }

/*!
 * \brief The value, or the gradient of the data.
 * \param data out, w, x or g, phases, taps, room for both operands as they are laid, and for parts.
 * \param n images; channels that are read, their height and width; channels that are made, height
 * and width; taps; whether it is of the data; steps of what is read and made, down and across;
 * tiles; parts; products.
 */
template <int rows, int wide, int high, int deep, bool packs, int group, int apart>
int of_pixels(char* const* data, const int64_t* n, cudaStream_t on) {
  typedef OfPixels<rows, wide, high, deep, packs, group, apart> Work;
  const auto number = [n](int i) { return static_cast<int>(n[i]); };
  const int images = number(0), depth = number(1), plane = number(2) * number(3);
  const int lines = number(4), taps = number(7), parts = number(14), lead = whole_packs(depth);
  const int products = number(15);
  const int64_t size = n[0] * n[4] * n[5] * n[6];
  const int64_t low_a = products > 1 ? n[7] * lines * lead : 0;
  const int64_t low_b = products > 1 ? n[0] * plane * lead : 0;
  float* const out = reinterpret_cast<float*>(data[0]);
  const float* const w = reinterpret_cast<const float*>(data[1]);
  const float* const x = reinterpret_cast<const float*>(data[2]);
  float* const a = reinterpret_cast<float*>(data[5]);
  float* const b = reinterpret_cast<float*>(data[6]);
  float* const room = parts > 1 ? reinterpret_cast<float*>(data[7]) : nullptr;
  turn(x, b,
       {plane, depth, images, plane, depth * plane, 1, lead, 0, 32, plane * lead, false, low_b},
       on);
  if (n[8] != 0)  // of the data: (depth, lines, taps) to (taps, lines, depth)
    turn(w, a,
         {lines * taps, depth, 1, lines * taps, 0, taps, lead, lines * lead, 32, 0, false, low_a},
         on);
  else
    split(w, a, lines, depth, taps, lead, low_a, on);
  CUtensorMap of_a, of_b;
  const int both = products > 1 ? 2 : 1;
  const int64_t sizes_a[] = {depth, lines, taps * both};
  const int64_t sizes_b[] = {depth, n[3], n[2], images * both};
  const int64_t strides_b[] = {lead, n[3] * lead, static_cast<int64_t>(plane) * lead};
  const int box_a[] = {kDepth, rows, 1}, box_b[] = {kDepth, wide, Work::tall, deep};
  if (!encode(&of_a, a, 3, sizes_a, lead, box_a) ||
      !encode_images<(group > 1)>(&of_b, b, sizes_b, strides_b, box_b, {number(9), number(10)}))
    return -1;
  Work work = work_of_pixels<Work, kDepth>(data, n, products);
  work.out = parts > 1 ? room : out;
  if (!launch(of_a, of_b, work, on)) return -1;
  if (parts > 1) add_parts(out, room, parts, size, on);
  return cudaGetLastError() == cudaSuccess ? 0 : -1;
}

/*!
 * \brief The gradient of the weights.
 * \param data out, g, x, taps, room for both operands as they are laid, and for parts.
 * \param n images; channels, height and width of x; filters, height and width of g; taps;
 * strides down and across; parts; products, three if exact.
 */
template <int rows, int block, int blocks, bool exact>
int of_taps(char* const* data, const int64_t* n, cudaStream_t on) {
  typedef OfTaps<rows, block, blocks, exact> Work;
  const auto number = [n](int i) { return static_cast<int>(n[i]); };
  const int images = number(0), channels = number(1), plane = number(2) * number(3);
  const int lines = number(4), windows = number(5) * number(6), taps = number(7);
  const int chunks = (images + kDepth - 1) / kDepth, both = Work::both;
  float* const out = reinterpret_cast<float*>(data[0]);
  const float* const g = reinterpret_cast<const float*>(data[1]);
  const float* const x = reinterpret_cast<const float*>(data[2]);
  float* const a = reinterpret_cast<float*>(data[4]);
  float* const b = reinterpret_cast<float*>(data[5]);
  float* const room = reinterpret_cast<float*>(data[6]);
  // (images, channels, spots) to (spots, chunks of images, channels, images of a chunk); the lows
  // behind all spots, or behind all chunks of each
  const auto lay = [=](const float* from, float* to, int sides, int spots, int of_spot,
                       int64_t low) {
    const int all = sides * spots, chunk = sides * kDepth, apart = of_spot * chunk;
    turn(from, to,
         {all, images, 1, all, 0, spots, kDepth, apart, chunk, 0, true, both > 1 ? low * chunk : 0},
         on);
  };
  lay(g, a, lines, windows, chunks, n[5] * n[6] * chunks);
  lay(x, b, channels, plane, chunks * both, chunks);
  CUtensorMap of_a, of_b;
  const int64_t sizes_a[] = {kDepth, lines, n[5] * n[6] * chunks * both};
  const int64_t sizes_b[] = {kDepth, channels, chunks * both, n[3], n[2]};
  const int box_a[] = {kDepth, rows, 1}, box_b[] = {kDepth, block, 1, 1, 1};
  if (!encode(&of_a, a, 3, sizes_a, kDepth, box_a) || !encode(&of_b, b, 5, sizes_b, kDepth, box_b))
    return -1;
  Work work;
  work.out = room;
  work.taps = reinterpret_cast<const Tap*>(data[3]);
  work.size = static_cast<int64_t>(lines) * channels * taps;
  work.lines = lines;
  work.channels = channels;
  work.count = taps;
  work.of_tap = (channels + block - 1) / block;
  work.width = number(6);
  work.steps = {number(8), number(9)};
  work.chunks = chunks;
  work.windows = windows;
  const int all = blocks * Work::boxes;
  work.tiles = (taps * work.of_tap + all - 1) / all;
  work.heights = (lines + rows - 1) / rows;
  work.parts = number(10);
  work.units = work.tiles * work.heights * work.parts;
  if (!launch(of_a, of_b, work, on)) return -1;
  join(out, room, work.parts, work.size, lines, channels, taps, on);
  return cudaGetLastError() == cudaSuccess ? 0 : -1;
}

}  // namespace hopper
}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_HOPPER_CUH_
