/*!
 * \file shifted.h
 * \brief The CPU back end's convolutions without columns: a row of them is a slice of the image.
 *
 * An image with a border lies in memory as one line. What element (i, j) of all windows has, is
 * then a slice of that line, `shift` elements behind its start:
 *
 *     out[f][q] = sum(w[f][k] * x[shift[k] + q])        q = oh * wide + ow
 *
 * Between rows stand a few results that nobody wants. With a stride s there are s * s such lines,
 * phases, each with every s-th element. Several images lie one behind the other.
 */
#ifndef DLSYS_BACKEND_SHIFTED_H_
#define DLSYS_BACKEND_SHIFTED_H_

#include <vector>

#include "loops.h"
#include "windows.h"

namespace dlsys {
namespace backend {

// What fits in the registers: rows of a tile and vectors of each; rows and shifts of dot products.
#if defined(__AVX512F__)
const int kVectorBytes = 64, kTileRows = 8, kTileVectors = 3, kDotRows = 4, kDotShifts = 6;
#elif defined(__AVX__)
const int kVectorBytes = 32, kTileRows = 4, kTileVectors = 3, kDotRows = 3, kDotShifts = 4;
#else
const int kVectorBytes = 16, kTileRows = 4, kTileVectors = 3, kDotRows = 3, kDotShifts = 4;
#endif

// Keeps a value in a register: GCC would rather read it from memory for each product.
#if defined(__AVX512F__)
#define DLSYS_KEPT(value) asm("" : "+v"(value))
#elif defined(__SSE2__)
#define DLSYS_KEPT(value) asm("" : "+x"(value))
#else
#define DLSYS_KEPT(value) static_cast<void>(value)
#endif

/*! \brief A vector that may lie anywhere. */
template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
  static constexpr int kTile = kLanes * kTileVectors;
};

/*! \brief The next multiple. */
inline int64_t whole(int64_t size, int64_t of) { return (size + of - 1) / of * of; }

/*! \brief Memory of a thread, which it keeps: no run after the first allocates. */
template <class T, int number>
T* scratch(int64_t size) {
  static thread_local std::vector<T> kept;
  if (static_cast<int64_t>(kept.size()) < size) kept.resize(size);
  return kept.data();
}

/*!
 * \brief out[r][q] = sum(packed[k][r] * x[shifts[k] + q]) for the rows and columns of a tile.
 * \param apart the distance of rows of the result; `rows` of them are written.
 */
template <class T>
void shifted_tile(T* out, int64_t apart, int64_t rows, const T* packed, const T* x,
                  const int64_t* shifts, int64_t count) {
  typedef typename VectorOf<T>::Type Vector;
  constexpr int lanes = VectorOf<T>::kLanes;
  Vector sums[kTileRows][kTileVectors] = {};
  for (int64_t k = 0; k < count; ++k) {
    const T* const from = x + shifts[k];
    Vector values[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v)
      values[v] = *reinterpret_cast<const Vector*>(from + v * lanes);
    for (int r = 0; r < kTileRows; ++r)
      for (int v = 0; v < kTileVectors; ++v) sums[r][v] += packed[k * kTileRows + r] * values[v];
  }
  for (int r = 0; r < kTileRows; ++r)
    if (r < rows)
      for (int v = 0; v < kTileVectors; ++v)
        *reinterpret_cast<Vector*>(out + r * apart + v * lanes) = sums[r][v];
}

/*! \brief out[r * apart + k] += sum(g[r * of_g + q] * x[shifts[k] + q]) over q < count. */
template <class T>
void shifted_dots(T* out, int64_t apart, int64_t rows, int64_t columns, const T* g, int64_t of_g,
                  const T* x, const int64_t* shifts, int64_t count) {
  typedef typename VectorOf<T>::Type Vector;
  constexpr int lanes = VectorOf<T>::kLanes;
  Vector sums[kDotRows][kDotShifts] = {};
  for (int64_t q = 0; q < count; q += lanes) {
    Vector grads[kDotRows];
    for (int r = 0; r < kDotRows; ++r)
      grads[r] = *reinterpret_cast<const Vector*>(g + r * of_g + q);
    for (int k = 0; k < kDotShifts; ++k) {
      Vector value = *reinterpret_cast<const Vector*>(x + shifts[k] + q);
      DLSYS_KEPT(value);
      for (int r = 0; r < kDotRows; ++r) sums[r][k] += grads[r] * value;
    }
  }
  for (int r = 0; r < kDotRows; ++r)
    for (int k = 0; k < kDotShifts; ++k)
      if (r < rows && k < columns) {
        T parts[lanes];
        memcpy(parts, &sums[r][k], sizeof(parts));
        out[r * apart + k] += folded<Sum<T>, lanes>(parts);
      }
}

/*! \brief An element of the kernel: which phase it reads, and how far behind. */
struct Tap {
  int64_t phase, shift;
};

/*! \brief How images of a convolution lie as lines. */
struct Lines {
  int64_t tall, wide;  // of a phase, with its part of the border
  int64_t down, across, plane;
  std::vector<int64_t> phases;  // those that taps read: row * across + column
  std::vector<Tap> taps;

  explicit Lines(const Convolution& all) : down(all.down.stride), across(all.across.stride) {
    const auto extent = [](const Slide& slide) {
      const int64_t most = slide.source(slide.out - 1, slide.kernel - 1) + slide.padding;
      return std::max(most, slide.size + slide.padding - 1) / slide.stride + 1;
    };
    tall = extent(all.down), wide = extent(all.across), plane = tall * wide;
    for (int64_t i = 0; i < all.down.kernel; ++i)
      for (int64_t j = 0; j < all.across.kernel; ++j) {
        const int64_t h = i * all.down.dilation, w = j * all.across.dilation;
        const int64_t phase = h % down * across + w % across;
        taps.push_back({number_of(phase), h / down * wide + w / across});
      }
  }

  int64_t count() const { return static_cast<int64_t>(phases.size()); }
  int64_t furthest() const {
    int64_t most = 0;
    for (const Tap& tap : taps) most = std::max(most, tap.shift);
    return most;
  }

 private:
  int64_t number_of(int64_t phase) {
    const auto found = std::find(phases.begin(), phases.end(), phase);
    if (found != phases.end()) return found - phases.begin();
    phases.push_back(phase);
    return count() - 1;
  }
};

/*! \brief Elements of lines that a thread has at a time: they stay in its cache. */
const int64_t kLinesAtOnce = 1 << 16;

/*! \brief A convolution by shifted lines, of one group of some images at a time. */
template <class T>
class Shifted {
 public:
  const Convolution all;
  const Lines lines;

  explicit Shifted(const Convolution& of) : all(of), lines(of) {}

  /*! \brief Images whose lines are made at once, where `planes` of each are needed. */
  int64_t images_at_once(int64_t planes, int64_t most) const {
    const int64_t fit = kLinesAtOnce / std::max<int64_t>(1, planes * lines.plane);
    return std::max<int64_t>(1, std::min(fit, most));
  }

  /*! \brief Elements of `rows` lines, and of what a tile reads behind them. */
  int64_t room(int64_t rows, int64_t images) const {
    return rows * (front() + images * lines.plane) + front() + VectorOf<T>::kTile;
  }
  /*! \brief Zeros before a line of gradients: for shifts, and for the end of the line before. */
  int64_t front() const { return std::max<int64_t>(lines.furthest(), VectorOf<T>::kLanes); }

  /*! \brief Lines (channel, phase, image) of images, zeros in their borders and behind them. */
  void spread(const T* x, int64_t images, int64_t apart, T* made) const {
    const int64_t rows = all.depth() * lines.count() * images * lines.tall, wide = lines.wide;
    for (int64_t row = 0; row < rows; ++row, made += wide) {
      const int64_t u = row % lines.tall, image = row / lines.tall % images;
      const int64_t rest = row / lines.tall / images, phase = lines.phases[rest % lines.count()];
      const int64_t h = u * lines.down + phase / lines.across - all.down.padding;
      const int64_t begin = phase % lines.across - all.across.padding, step = lines.across;
      if (!all.down.has(h)) {
        std::fill(made, made + wide, T(0));
        continue;
      }
      const T* const from =
          x + image * apart + rest / lines.count() * all.plane() + h * all.across.size + begin;
      const int64_t first = begin >= 0 ? 0 : std::min(wide, (-begin + step - 1) / step);
      const int64_t room = all.across.size - 1 - begin;
      const int64_t end = std::max(first, std::min(wide, room < 0 ? 0 : room / step + 1));
      for (int64_t v = 0; v < first; ++v) made[v] = 0;
      if (step == 1)
        for (int64_t v = first; v < end; ++v) made[v] = from[v];
      else
        for (int64_t v = first; v < end; ++v) made[v] = from[v * step];
      for (int64_t v = end; v < wide; ++v) made[v] = 0;
    }
    std::fill(made, made + front() + VectorOf<T>::kTile, T(0));
  }

  /*! \brief Lines of gradients of windows (filter, image), `front()` zeros before each. */
  void spread_grads(const T* g, int64_t images, int64_t apart, T* made) const {
    const int64_t wide = lines.wide, width = all.across.out;
    for (int64_t f = 0; f < all.height(); ++f) {
      std::fill(made, made + front(), T(0));
      made += front();
      for (int64_t image = 0; image < images; ++image) {
        const T* from = g + image * apart + f * all.out();
        for (int64_t u = 0; u < lines.tall; ++u, made += wide) {
          const int64_t count = u < all.down.out ? width : 0;
          for (int64_t v = 0; v < count; ++v) made[v] = from[v];
          for (int64_t v = count; v < wide; ++v) made[v] = 0;
          from += count;
        }
      }
    }
    std::fill(made, made + front() + VectorOf<T>::kTile, T(0));
  }

  /*! \brief The whole of out[m][q] = sum(packed[m][k] * x[shifts[k] + q]), q < width. */
  void multiply(T* out, int64_t apart, int64_t rows, int64_t width, const T* packed, const T* x,
                const std::vector<int64_t>& shifts) const {
    const int64_t count = static_cast<int64_t>(shifts.size());
    for (int64_t q = 0; q < width; q += VectorOf<T>::kTile)
      for (int64_t m = 0; m < rows; m += kTileRows)
        shifted_tile(out + m * apart + q, apart, rows - m, packed + m * count, x + q, shifts.data(),
                     count);
  }
};

/*! \brief Weights as tiles read them: of kTileRows rows each element k side by side. */
template <class T, class Value>
void pack(T* packed, int64_t rows, int64_t count, Value value) {
  for (int64_t m = 0; m < whole(rows, kTileRows); m += kTileRows)
    for (int64_t k = 0; k < count; ++k)
      for (int r = 0; r < kTileRows; ++r) *packed++ = m + r < rows ? value(m + r, k) : T(0);
}

/*! \brief Parts in which threads take images, `at_once` of them: as many as there are threads. */
inline int64_t shared_out(int64_t images, int64_t at_once) {
  return std::max<int64_t>(1, std::min(at_once, images / omp_get_max_threads()));
}

/*! \brief Writes the elements of one phase to where they lie in images, y. */
template <class T>
void gather_phase(const Convolution& all, const Lines& lines, int64_t phase, const T* found,
                  int64_t apart, int64_t images, T* y) {
  const int64_t row = lines.phases[phase] / lines.across, step = lines.across;
  const int64_t column = lines.phases[phase] % lines.across;
  // The first column of the phase that is not border.
  const int64_t before = all.across.padding - column;
  const int64_t first = before <= 0 ? 0 : (before + step - 1) / step;
  const int64_t begin = first * step - before, count = (all.across.size - begin + step - 1) / step;
  for (int64_t i = 0; i < images; ++i)
    for (int64_t c = 0; c < all.depth(); ++c)
      for (int64_t u = 0; u < lines.tall; ++u) {
        const int64_t h = u * lines.down + row - all.down.padding;
        if (!all.down.has(h)) continue;
        T* const to = y + (i * all.channels + c) * all.plane() + h * all.across.size + begin;
        const T* const from = found + c * apart + i * lines.plane + u * lines.wide + first;
        if (step == 1)
          for (int64_t v = 0; v < count; ++v) to[v] = from[v];
        else
          for (int64_t v = 0; v < count; ++v) to[v * step] = from[v];
      }
}

/*! \brief See the instruction Convolve. */
template <class T>
int shifted_value(T* out, const T* x, const T* w, const int64_t* n) {
  const Shifted<T> by{Convolution(n)};
  const Convolution& all = by.all;
  const Lines& lines = by.lines;
  const int64_t rows = all.depth() * lines.count(), work = all.images * all.filters * all.out();
  const int64_t at_once = shared_out(all.images, by.images_at_once(rows, all.images));
  const int64_t parts = (all.images + at_once - 1) / at_once, taps = all.kernel();
  const int64_t of_group = whole(all.height(), kTileRows) * all.filter();
  T* const packed = scratch<T, 3>(all.groups * of_group);
  for (int64_t group = 0; group < all.groups; ++group)
    pack(packed + group * of_group, all.height(), all.filter(),
         [&](int64_t f, int64_t k) { return w[(group * all.height() + f) * all.filter() + k]; });
  for_items(parts * all.groups, work * all.filter(), [&, packed](int64_t item) {
    const int64_t group = item % all.groups, image = item / all.groups * at_once;
    const int64_t count = std::min(at_once, all.images - image), line = count * lines.plane;
    T* const made = scratch<T, 0>(by.room(rows, count));
    const int64_t channel = image * all.channels + group * all.depth();
    by.spread(x + channel * all.plane(), count, all.channels * all.plane(), made);
    std::vector<int64_t> shifts;
    for (int64_t k = 0; k < all.filter(); ++k) {
      const Tap& tap = lines.taps[k % taps];
      shifts.push_back((k / taps * lines.count() + tap.phase) * line + tap.shift);
    }
    const int64_t apart = whole(line, VectorOf<T>::kTile);
    T* const found = scratch<T, 1>(all.height() * apart);
    by.multiply(found, apart, all.height(), line, packed + group * of_group, made, shifts);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t f = 0; f < all.height(); ++f) {
        T* to = out + ((image + i) * all.filters + group * all.height() + f) * all.out();
        const T* from = found + f * apart + i * lines.plane;
        for (int64_t oh = 0; oh < all.down.out; ++oh, to += all.across.out, from += lines.wide)
          std::copy(from, from + all.across.out, to);
      }
  });
  return 0;
}

template <class T>
int shifted_data(T* out, const T* w, const T* g, const int64_t* n) {
  const Shifted<T> by{Convolution(n)};
  const Convolution& all = by.all;
  const Lines& lines = by.lines;
  const int64_t work = all.images * all.filters * all.out();
  const int64_t at_once = shared_out(all.images, by.images_at_once(all.height(), all.images));
  const int64_t parts = (all.images + at_once - 1) / at_once;
  // Of each phase the taps that read it, with all filters.
  std::vector<std::vector<int64_t>> of_phase(lines.count());
  for (int64_t t = 0; t < all.kernel(); ++t) of_phase[lines.taps[t].phase].push_back(t);
  const int64_t height = whole(all.depth(), kTileRows),
                of_group = height * all.height() * all.kernel();
  T* const packed = scratch<T, 3>(all.groups * of_group);
  T* to = packed;
  for (int64_t group = 0; group < all.groups; ++group)
    for (const auto& taps : of_phase) {
      const int64_t count = static_cast<int64_t>(taps.size());
      pack(to, all.depth(), all.height() * count, [&](int64_t c, int64_t k) {
        const int64_t f = group * all.height() + k / count;
        return w[(f * all.depth() + c) * all.kernel() + taps[k % count]];
      });
      to += height * all.height() * count;
    }
  for_items(parts * all.groups, work * all.filter(), [&, packed](int64_t item) {
    const int64_t group = item % all.groups, image = item / all.groups * at_once;
    const int64_t count = std::min(at_once, all.images - image), line = count * lines.plane;
    T* const made = scratch<T, 0>(by.room(all.height(), count));
    const int64_t filter = image * all.filters + group * all.height();
    by.spread_grads(g + filter * all.out(), count, all.filters * all.out(), made);
    const int64_t apart = whole(line, VectorOf<T>::kTile);
    T* const found = scratch<T, 1>(all.depth() * apart);
    T* const y = out + (image * all.channels + group * all.depth()) * all.plane();
    if (lines.count() < lines.down * lines.across)
      for (int64_t i = 0; i < count; ++i)
        std::fill_n(y + i * all.channels * all.plane(), all.depth() * all.plane(), T(0));
    const T* weights = packed + group * of_group;
    for (int64_t phase = 0; phase < lines.count(); ++phase) {
      std::vector<int64_t> shifts;
      for (int64_t f = 0; f < all.height(); ++f)
        for (const int64_t t : of_phase[phase])
          shifts.push_back(f * (by.front() + line) + by.front() - lines.taps[t].shift);
      by.multiply(found, apart, all.depth(), line, weights, made, shifts);
      weights += height * static_cast<int64_t>(shifts.size());
      gather_phase(all, lines, phase, found, apart, count, y);
    }
  });
  return 0;
}

/*! \brief The sums of parts of the images; `sums` is (parts, filters * filter). */
template <class T>
void shifted_sums(const Shifted<T>& by, const T* x, const T* g, int64_t parts, T* sums) {
  const Convolution& all = by.all;
  const Lines& lines = by.lines;
  const int64_t rows = all.depth() * lines.count(), size = all.filters * all.filter();
  const int64_t most = (all.images + parts - 1) / parts, taps = all.kernel();
  const int64_t at_once = by.images_at_once(rows + all.height(), most);
  for_items(parts * all.groups, all.images * all.out() * size, [&](int64_t item) {
    const int64_t part = item / all.groups, group = item % all.groups;
    T* const sum = sums + part * size + group * all.height() * all.filter();
    std::fill(sum, sum + all.height() * all.filter(), T(0));
    const int64_t end = all.images * (part + 1) / parts;
    for (int64_t image = all.images * part / parts; image < end; image += at_once) {
      const int64_t count = std::min(at_once, end - image), line = count * lines.plane;
      T* const made = scratch<T, 0>(by.room(rows, count));
      const int64_t channel = image * all.channels + group * all.depth();
      by.spread(x + channel * all.plane(), count, all.channels * all.plane(), made);
      // Rows beyond the last filter are read, and their sums are dropped.
      const int64_t of_g = by.front() + line, height = whole(all.height(), kDotRows);
      T* const grads = scratch<T, 1>(by.room(height, count));
      const int64_t filter = image * all.filters + group * all.height();
      by.spread_grads(g + filter * all.out(), count, all.filters * all.out(), grads);
      const int64_t behind = by.room(height, count) - by.room(all.height(), count);
      std::fill_n(grads + by.room(all.height(), count), behind, T(0));
      int64_t shifts[kDotShifts];
      for (int64_t k = 0; k < all.filter(); k += kDotShifts) {
        for (int64_t i = 0; i < kDotShifts; ++i) {
          const int64_t at = std::min(k + i, all.filter() - 1);
          const Tap& tap = lines.taps[at % taps];
          shifts[i] = (at / taps * lines.count() + tap.phase) * line + tap.shift;
        }
        for (int64_t f = 0; f < all.height(); f += kDotRows)
          shifted_dots(sum + f * all.filter() + k, all.filter(), all.height() - f, all.filter() - k,
                       grads + f * of_g + by.front(), of_g, made, shifts, line);
      }
    }
  });
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_SHIFTED_H_
