/*!
 * \file hopper_last.cuh
 * \brief Convolutions on Hopper of images that lie with their channels last, and stay so.
 *
 * What hopper.cuh does in two kernels, one that lays images and one that multiplies, is one kernel
 * here: of bfloat16, or of float, which the copy engine rounds to TF32. A line of shared memory has
 * 64 or 32 channels of a pixel. For the value and the gradient of the data K is channels, which lie
 * side by side, as wgmma wants it. For the gradient of the weights K is pixels: wgmma takes both
 * operands the other way, which it can for 16 bits alone; floats are read to registers for
 * mma.sync, which gets them in any order.
 */
#ifndef DLSYS_BACKEND_HOPPER_LAST_CUH_
#define DLSYS_BACKEND_HOPPER_LAST_CUH_

#include "hopper.cuh"

namespace dlsys {
namespace backend {
namespace hopper {

/*! \brief multiply(sum, a, b): sum += a b, 64 x columns, 16 of K; `turned` where K is not side by
 * side. hopper_last.py writes each. */
template <int columns, bool turned>
struct WgmmaOfHalves;

__device__ inline unsigned halves_of(float first, float second) {
  unsigned found;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(found) : "f"(second), "f"(first));
  return found;
}

/*! \brief Writes four matrices of 8 x 8 halves turned: a lane says where one line lies. */
__device__ inline void store_turned(void* line, const unsigned (&matrices)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address(line)),
      "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
      : "memory");
}

/*! \brief The instruction for operands of a kind whose K lies side by side. */
template <class In, int columns>
struct WgmmaOf : WgmmaOfHalves<columns, false> {};
template <int columns>
struct WgmmaOf<float, columns> : Wgmma<columns> {};

/*! \brief The value, and the gradient of the data. In: BFloat16 or float. Out: the same, or float
 * for parts of K. `gathers`: whether moments of each line of the result are written, too. */
template <int rows_, int wide, int high, int deep, int group_, int apart, class In, class Out,
          bool gathers = false>
struct PixelsLast : OfPixels<rows_, wide, high, deep, false, group_, apart, kLine / sizeof(In)> {
  typedef OfPixels<rows_, wide, high, deep, false, group_, apart, kLine / sizeof(In)> Base;
  static const int columns = Base::columns, rows = Base::rows;
  static const bool writes_moments = gathers;

  Out* result;
  MomentState<float>* moments;  // (lines, tiles, halves)

  __device__ static void multiply(float (&sum)[columns / 2], const unsigned char* a,
                                  const unsigned char* b, int i, int half) {
    multiply_lines<Base, WgmmaOf<In, columns>>(sum, a, b + i * Base::below, half);
  }

  /*! \brief How many pixels of a box lie within the images: across, down, and images. */
  struct Inside {
    int across, down, many;

    __device__ int count() const { return max(0, across) * max(0, down) * max(0, many); }
    __device__ bool has(int pixel) const {
      return Base::column_at(pixel) < across && Base::row_at(pixel) < down &&
             Base::image_at(pixel) < many;
    }
  };

  /*!
   * \brief Writes the moments of a warp's 16 lines over its pixels. to: of the first line.
   *
   * Those of a line lie with four lanes. They are taken from the first one, which is inside if any
   * is, so that digits are not lost where the mean is far from 0, and equal ones have no variance.
   */
  template <bool are_all>
  __device__ void gather(const float (&sum)[columns / 2], int lane, const Inside& inside, int line,
                         MomentState<float>* to, int64_t lead) const {
    float first[2], sums[2] = {}, squares[2] = {};
    uint64_t are_inside = 0;  // of the pixels of its elements, two lines of each; one loop for all
#pragma unroll 1
    for (int i = 0; !are_all && i < columns / 4; ++i)
      are_inside |= uint64_t{inside.has(column_of(lane, i / 2 * 4 + i % 2))} << i;
    for (int lower = 0; lower < 2; ++lower)
      first[lower] = __shfl_sync(~0u, static_cast<float>(Out(sum[lower * 2])), lane / 4 * 4);
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) {
      const int lower = i / 2 % 2;
      const float away = static_cast<float>(Out(sum[i])) - first[lower];
      if (!are_all && (are_inside >> (i / 4 * 2 + i % 2) & 1) == 0) continue;
      sums[lower] += away;
      squares[lower] += away * away;
    }
    for (int across = 1; across < 4; across *= 2)
      for (int lower = 0; lower < 2; ++lower) {
        sums[lower] += __shfl_xor_sync(~0u, sums[lower], across);
        squares[lower] += __shfl_xor_sync(~0u, squares[lower], across);
      }
    const float count = static_cast<float>(are_all ? columns : inside.count());
    for (int lower = 0; lower < 2; ++lower) {
      const float mean = count > 0 ? sums[lower] / count : 0;
      const float left = squares[lower] - mean * sums[lower];
      const int own = lane / 4 + lower * 8;
      if (lane % 4 == 0 && line + own < Base::lines)
        to[own * lead] = {count, first[lower] + mean, left < 0 ? 0 : left};
    }
  }

  /*! \brief Writes a warp's 16 lines, some pixels at a time: they lie side by side in the result,
   * where a thread's own sums are of pixels. */
  __device__ void store(const Unit& unit, const float (&sum)[columns / 2], int half, int thread,
                        float* tray) const {
    const int kPixels = sizeof(Out) == 2 ? 32 : 16, kPart = 16 / sizeof(Out), kParts = 16 / kPart;
    const Phase& in = Base::phases[unit.phase];
    const int lane = thread % 32;
    int image, row, column;
    Base::find(in, (unit.tile - in.first) * Base::copies + (Base::copies > 1 ? half : 0), &image,
               &row, &column);
    row += Base::copies < Base::halves ? half * high : 0;
    const int first = unit.row * rows + (rows == 128 ? half * 64 : 0) + thread / 32 * 16;
    if constexpr (gathers) {
      const int64_t tiles = static_cast<int64_t>(Base::tiles) * Base::halves;
      MomentState<float>* const to =
          moments + first * tiles + unit.tile * Base::halves + half % Base::halves;
      const Inside inside = {min(wide, in.width - column), min(high, in.height - row),
                             min(deep, Base::images - image)};
      if (inside.count() == columns)
        gather<true>(sum, lane, inside, first, to, tiles);
      else
        gather<false>(sum, lane, inside, first, to, tiles);
    }
    const int line = first + lane % kParts * kPart;
    Out* const to = result + unit.part * Base::size + line;
    unsigned char* const bytes = reinterpret_cast<unsigned char*>(tray);
    const int kApart = 16 * sizeof(Out) + 16;  // bytes from pixel to pixel
#pragma unroll
    for (int begin = 0; begin < columns; begin += kPixels) {
      if constexpr (sizeof(Out) == 2) {
#pragma unroll
        for (int group = 0; group < 4 && begin + group * 8 < columns; group += 2) {
          unsigned matrices[4];
#pragma unroll
          for (int m = 0; m < 4; ++m) {
            const int first = begin / 2 + (group + m / 2) * 4 + m % 2 * 2;
            matrices[m] = first < columns / 2 ? halves_of(sum[first], sum[first + 1]) : 0;
          }
          const int pixel = (group + lane / 16) * 8 + lane % 8;
          store_turned(bytes + pixel * kApart + lane / 8 % 2 * 16, matrices);
        }
      } else {
#pragma unroll
        for (int i = 0; i < 8 && begin / 2 + i < columns / 2; ++i)
          tray[column_of(lane, i) * (kApart / 4) + row_of(lane, i)] = sum[begin / 2 + i];
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kPixels * kParts / 32; ++i) {
        const int across = (i * 32 + lane) / kParts, pixel = begin + across;
        const int n = image + Base::image_at(pixel), h = row + Base::row_at(pixel);
        const int w = column + Base::column_at(pixel);
        if (pixel >= Base::count || n >= Base::images || h >= in.height || w >= in.width) continue;
        const int64_t place =
            static_cast<int64_t>(n * Base::height + in.row + h * Base::writes.down) * Base::width +
            in.column + w * Base::writes.across;
        if (line < Base::lines)
          *reinterpret_cast<uint4*>(to + place * Base::lines) =
              *reinterpret_cast<const uint4*>(bytes + across * kApart + lane % kParts * 16);
      }
      __syncwarp();
    }
  }
};

/*!
 * \brief The gradient of the weights: a is g, b is x, each a line of channels of a box of pixels.
 *
 * A warpgroup's columns are `blocks` lines of channels, each moved by its tap. Taps one below the
 * other, `apart` rows, may be a group: then one box, so much higher, has the pixels of all.
 */
template <class In, int rows_, int wide, int high, int deep, int blocks, int group, int apart>
struct Taps {
  static const int of_line = kLine / sizeof(In), packs = 32 / sizeof(In);  // of K at once
  static const int rows = rows_, columns = of_line * blocks * group, boxes = rows == 128 ? 1 : 2;
  static const int count = wide * high * deep, whole = (count + packs - 1) / packs * packs;
  static const bool pads = whole != count, in_registers = sizeof(In) > 2, keeps = false;
  static const int lower = apart * wide * deep;  // lines from tap to tap of a group
  static const int of_a = whole * kLine, of_b = (whole + (group - 1) * lower + 7) / 8 * 8 * kLine;
  static const int of_rows = rows / of_line * of_a, tall = high + (group - 1) * apart;
  static const int of_slice = 1, bytes_a = rows / of_line * count * kLine;
  static const int bytes_b = boxes * blocks * wide * tall * deep * kLine;
  static const int room_a = of_rows, room_b = boxes * blocks * of_b;
  static const int slots_a = slots_of(room_a, room_b, 1).a, slots_b = slots_a;

  float* out;
  const Tap* taps;
  int64_t size;         // of the result
  int lines, channels;  // of the result
  int count_of_taps;    // and of blocks of channels
  int of_tap;
  Steps steps;         // between windows
  int across, down;    // boxes
  int slices;          // in all images
  int tiles, heights;  // of columns; of lines
  int units, parts;

  __device__ Unit unit(int number) const {
    Unit found;
    found.row = number % heights;
    found.tile = number / heights % tiles;
    found.part = number / heights / tiles;
    found.begin = static_cast<int>(static_cast<int64_t>(found.part) * slices / parts);
    found.end = static_cast<int>(static_cast<int64_t>(found.part + 1) * slices / parts);
    found.phase = 0;
    return found;
  }

  __device__ void copy_a(const Unit& unit, int slice, int, unsigned char* to,
                         const CUtensorMap* of_g, Barrier* full) const {
    const int column = slice % across * wide, row = slice / across % down * high;
    const int image = slice / across / down * deep;
    for (int i = 0; i < rows / of_line; ++i)
      copy_images<(group > 1)>(to + i * of_a, of_g, unit.row * rows + i * of_line, column, row,
                               image, full);
  }

  __device__ void copy_b(const Unit& unit, int slice, unsigned char* to, const CUtensorMap* of_x,
                         Barrier* full) const {
    const int column = slice % across * wide, row = slice / across % down * high;
    const int image = slice / across / down * deep;
    const int all = blocks * boxes, last = count_of_taps / group * of_tap - 1;
    for (int i = 0; i < all; ++i) {
      const int own = min(unit.tile * all + i, last);  // nobody reads what is behind it
      const Tap tap = taps[own / of_tap * group];
      copy_images<(group > 1)>(to + i * of_b, of_x, own % of_tap * of_line,
                               column * steps.across + tap.column, row * steps.down + tap.row,
                               image, full);
    }
  }

  /*! \brief Where a warpgroup's lines and columns begin in a slice. */
  __device__ static const unsigned char* lines_of(const unsigned char* a, int half) {
    return a + (rows == 128 ? half * (64 / of_line) * of_a : 0);
  }
  __device__ static const unsigned char* columns_of(const unsigned char* b, int half) {
    return b + (rows == 128 ? 0 : half * blocks * of_b);
  }

  /*! \brief Writes two sums side by side, if they are of the result.
   * \param line of a warpgroup's 64. \param block, tap of its columns. */
  __device__ void put(const Unit& unit, int half, int line, int block, int tap, int channel,
                      float first, float second) const {
    line += unit.row * rows + (rows == 128 ? half * 64 : 0);
    const int own = unit.tile * blocks * boxes + (rows == 128 ? 0 : half * blocks) + block;
    const int number = own / of_tap * group + tap;
    channel += own % of_tap * of_line;
    if (line >= lines || number >= count_of_taps || channel >= channels) return;
    float* const to =
        out + unit.part * size +
        (static_cast<int64_t>(line) * count_of_taps + taps[number].weights) * channels;
    *reinterpret_cast<float2*>(to + channel) = make_float2(first, second);
  }
};

/*! \brief Of bfloat16, by wgmma, which is told of lines: of several blocks, or of a group of taps
 * that lie whole groups of eight lines apart. */
template <class In, int rows, int wide, int high, int deep, int blocks, int group, int apart>
struct TapsLast : Taps<In, rows, wide, high, deep, blocks, group, apart> {
  typedef Taps<In, rows, wide, high, deep, blocks, group, apart> Base;
  static const int columns = Base::columns;

  __device__ static void multiply(float (&sum)[columns / 2], const unsigned char* of_g,
                                  const unsigned char* of_x, int, int half) {
    const uint64_t a = descriptor(Base::lines_of(of_g, half));
    const uint64_t b =
        descriptor(Base::columns_of(of_x, half), group > 1 ? Base::lower * kLine : Base::of_b);
#pragma unroll
    for (int step = 0; step < Base::whole / 16; ++step)
      WgmmaOfHalves<columns, true>::multiply(sum, a + step * (16 * kLine >> 4),
                                             b + step * (16 * kLine >> 4));
  }

  __device__ void store(const Unit& unit, const float (&sum)[columns / 2], int half, int thread,
                        float*) const {
#pragma unroll
    for (int i = 0; i < columns / 2; i += 2) {
      const int line = thread / 32 * 16 + row_of(thread % 32, i);
      const int column = column_of(thread % 32, i), block = column / Base::of_line;
      this->put(unit, half, line, group > 1 ? 0 : block, group > 1 ? block : 0,
                column % Base::of_line, sum[i], sum[i + 1]);
    }
  }
};

__device__ inline void multiply_in_registers(float* sum, const float (&a)[4], const float (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

/*!
 * \brief Of float. A warp has all 64 lines, and of each 32 columns the eight of two packs of four
 * channels, `pack` and pack + 4: so its 32 lanes read 32 banks, whatever pixel is the first, as a
 * pack lies by the pixel's number, modulo 8, away from its place.
 */
template <int rows, int wide, int high, int deep, int blocks, int group, int apart>
struct TapsLast<float, rows, wide, high, deep, blocks, group, apart>
    : Taps<float, rows, wide, high, deep, blocks, group, apart> {
  typedef Taps<float, rows, wide, high, deep, blocks, group, apart> Base;
  static const int columns = Base::columns, kAcross = blocks * group;  // eight columns each

  /*! \brief Where a lane finds its element of eight that are in two packs of a pixel. */
  __device__ static int place(int pixel, int pack, int lane) {
    return pixel * kLine + ((pack + lane / 16 * 4) ^ pixel % 8) * 16 + lane / 4 % 4 * 4;
  }
  __device__ static float load(const unsigned char* from) {
    return *reinterpret_cast<const float*>(from);
  }

  __device__ static void multiply(float (&sum)[columns / 2], const unsigned char* of_g,
                                  const unsigned char* of_x, int, int half) {
    const int lane = threadIdx.x % 32, pack = threadIdx.x / 32 % 4, pixel = lane % 4;
    const unsigned char *a = Base::lines_of(of_g, half), *b = Base::columns_of(of_x, half);
#pragma unroll 2
    for (int step = 0; step < Base::whole / 8; ++step, a += 8 * kLine, b += 8 * kLine) {
      float of_a[4][4];
#pragma unroll
      for (int i = 0; i < 16; ++i)  // tile, pixel or the fourth behind it, upper or lower eight
        of_a[i / 4][i % 4] = load(a + i / 8 * Base::of_a +
                                  place(pixel + i / 2 % 2 * 4, i / 4 % 2 * 2 + i % 2, lane));
#pragma unroll
      for (int across = 0; across < kAcross; ++across) {
        const unsigned char* const block = b + across / group * Base::of_b;
        const int first = across % group * Base::lower + pixel;
        const float of_b[2] = {load(block + place(first, pack, lane)),
                               load(block + place(first + 4, pack, lane))};
#pragma unroll
        for (int tile = 0; tile < 4; ++tile)
          multiply_in_registers(sum + (tile * kAcross + across) * 4, of_a[tile], of_b);
      }
    }
  }

  __device__ void store(const Unit& unit, const float (&sum)[columns / 2], int half, int thread,
                        float*) const {
    const int lane = thread % 32, pack = thread / 32 + lane % 4 / 2 * 4;
#pragma unroll
    for (int i = 0; i < columns / 2; i += 2) {
      const int tile = i / 4 / kAcross, across = i / 4 % kAcross;
      const int upper = tile % 2 * 2 + i / 2 % 2 + lane / 16 * 4;  // the pack of a line
      this->put(unit, half, tile / 2 * 32 + upper * 4 + lane / 4 % 4, across / group,
                across % group, pack * 4 + lane % 2 * 2, sum[i], sum[i + 1]);
    }
  }
};

template <class Work, int depth, class Out>
bool launch_pixels(const int64_t* n, char* const* data, const CUtensorMap& of_a,
                   const CUtensorMap& of_b, Out* result, cudaStream_t on) {
  Work work = work_of_pixels<Work, depth>(data, n, 1);
  work.result = result;
  if constexpr (Work::writes_moments) work.moments = reinterpret_cast<MomentState<float>*>(data[5]);
  return launch(of_a, of_b, work, on);
}

/*!
 * \brief The value, or the gradient of the data.
 * \param data out, w as lay_weights lays it, x or g, phases, taps, room for parts or moments.
 * \param n as of_pixels has it, then elements from pixel to pixel of x or g, from row to row, from
 * image to image; whether parts are added. Channels and filters are whole packs of 16 bytes.
 */
template <int rows, int wide, int high, int deep, int group, int apart, class In, bool gathers>
int pixels_last(char* const* data, const int64_t* n, cudaStream_t on) {
  typedef PixelsLast<rows, wide, high, deep, group, apart, In, In, gathers> Whole;
  typedef PixelsLast<rows, wide, high, deep, group, apart, In, float> Part;
  const int kDepth = kLine / sizeof(In);
  const auto number = [n](int i) { return static_cast<int>(n[i]); };
  const int depth = number(1), lines = number(4), taps = number(7), parts = number(14);
  In* const a = reinterpret_cast<In*>(data[1]);
  In* const x = reinterpret_cast<In*>(data[2]);
  CUtensorMap of_a, of_b;
  const int64_t sizes_a[] = {depth, lines, taps}, sizes_b[] = {depth, n[3], n[2], n[0]};
  const int box_a[] = {kDepth, rows, 1}, box_b[] = {kDepth, wide, Whole::tall, deep};
  if (!encode(&of_a, a, 3, sizes_a, depth, box_a) ||
      !encode_images<(group > 1)>(&of_b, x, sizes_b, n + 16, box_b, {number(9), number(10)}))
    return -1;
  In* const out = reinterpret_cast<In*>(data[0]);
  if (parts == 1) return launch_pixels<Whole, kDepth>(n, data, of_a, of_b, out, on) ? 0 : -1;
  float* const room = reinterpret_cast<float*>(data[5]);
  if (!launch_pixels<Part, kDepth>(n, data, of_a, of_b, room, on)) return -1;
  if (n[19] != 0) add_parts(out, room, parts, n[0] * n[4] * n[5] * n[6], on);
  return cudaGetLastError() == cudaSuccess ? 0 : -1;
}

/*!
 * \brief The gradient of the weights.
 * \param data out, g, x, taps, room for parts.
 * \param n images; channels, height and width of x; filters, height and width of g; taps; strides
 * down and across; parts; products, 1; then elements from pixel to pixel of x, from row to row,
 * from image to image. Channels and filters are whole packs of 16 bytes.
 */
template <int rows, int wide, int high, int deep, int blocks, int group, int apart, class In>
int taps_last(char* const* data, const int64_t* n, cudaStream_t on) {
  typedef TapsLast<In, rows, wide, high, deep, blocks, group, apart> Work;
  const int kDepth = Work::of_line;
  const auto number = [n](int i) { return static_cast<int>(n[i]); };
  const int channels = number(1), lines = number(4), taps = number(7), parts = number(10);
  In* const g = reinterpret_cast<In*>(data[1]);
  In* const x = reinterpret_cast<In*>(data[2]);
  float* const room = reinterpret_cast<float*>(data[4]);
  CUtensorMap of_g, of_x;
  const int64_t sizes_g[] = {lines, n[6], n[5], n[0]}, sizes_x[] = {channels, n[3], n[2], n[0]};
  const int box_g[] = {kDepth, wide, high, deep}, box_x[] = {kDepth, wide, Work::tall, deep};
  const int64_t apart_g[] = {lines, n[6] * lines, n[5] * n[6] * lines};
  if (!encode_images<(group > 1)>(&of_g, g, sizes_g, apart_g, box_g, {1, 1}) ||
      !encode_images<(group > 1)>(&of_x, x, sizes_x, n + 12, box_x, {number(8), number(9)}))
    return -1;
  Work work;
  work.out = room;
  work.taps = reinterpret_cast<const Tap*>(data[3]);
  work.size = static_cast<int64_t>(lines) * channels * taps;
  work.lines = lines;
  work.channels = channels;
  work.count_of_taps = taps;
  work.of_tap = (channels + kDepth - 1) / kDepth;
  work.steps = {number(8), number(9)};
  work.across = (number(6) + wide - 1) / wide;
  work.down = (number(5) + high - 1) / high;
  work.slices = work.across * work.down * ((number(0) + deep - 1) / deep);
  const int all = blocks * Work::boxes;
  work.tiles = (taps / group * work.of_tap + all - 1) / all;
  work.heights = (lines + rows - 1) / rows;
  work.parts = parts;
  work.units = work.tiles * work.heights * parts;
  if (!launch(of_g, of_x, work, on)) return -1;
  join(reinterpret_cast<In*>(data[0]), room, parts, work.size, lines, channels, taps, on);
  return cudaGetLastError() == cudaSuccess ? 0 : -1;
}

}  // namespace hopper
}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_HOPPER_LAST_CUH_
